/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The control socket, xlbd's side: reads a request, writes a reply. */
#include "io/ctl_int.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "core/diag.h"
#include "io/file.h"
#include "io/log.h"

#define CTL_LOCK "xlb.lock"
#define PATIENCE_SEC 5		/* for a whole request, for a whole reply */
#define HURRY_SEC 2		/* for a request, while half of the places are taken */
#define READ_AT_ONCE (256 << 10)	/* bytes, then the loop goes round */
#define NO_GROUP ((gid_t)-1)

struct ctl {
	sd_event *ev;
	ctl_fn fn;
	void *arg;
	char *path;
	int fd, lock;
	sd_event_source *io;
	gid_t readers, admins;
	struct client *first;
	size_t n;
};

static gid_t
group_id(const char *name)
{
	const struct group *gr = getgrnam(name);

	return gr != NULL ? gr->gr_gid : NO_GROUP;
}

void
client_free(struct client *c)
{
	struct ctl *ctl = c->ctl;

	if (c->stream != NULL)
		stream_gone(c->stream);
	if (c->rq != NULL)
		c->rq->client = NULL;
	if (c->next != NULL)
		c->next->prev = c->prev;
	if (c->prev != NULL)
		c->prev->next = c->next;
	else
		ctl->first = c->next;
	sd_event_source_disable_unref(c->io);
	sd_event_source_disable_unref(c->timer);
	close(c->fd);
	free(c->buf);
	free(c);
	if (ctl->n-- == CTL_CLIENTS_MAX)
		sd_event_source_set_enabled(ctl->io, SD_EVENT_ON);
}

static int
client_late(sd_event_source *s, uint64_t usec, void *arg)
{
	(void)s, (void)usec;
	client_free(arg);
	return 0;
}

void
client_patience(struct client *c, unsigned seconds)
{
	sd_event_source_set_time_relative(c->timer,
	    seconds * UINT64_C(1000000));
	sd_event_source_set_enabled(c->timer,
	    seconds > 0 ? SD_EVENT_ONESHOT : SD_EVENT_OFF);
}

int
client_push(struct client *c)
{
	ssize_t n;

	while (c->done < c->len) {
		n = send(c->fd, c->buf + c->done, c->len - c->done,
		    MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN) {
			sd_event_source_set_io_events(c->io, EPOLLOUT);
			return 1;
		}
		if (n < 0)
			return -errno;
		c->done += (size_t)n;
	}
	return 0;
}

/* The client is gone or done, or waits for EPOLLOUT. */
static void
client_write(struct client *c)
{
	if (client_push(c) <= 0)
		client_free(c);
}

void
client_end(struct client *c)
{
	c->phase = CLIENT_WRITE;
	client_patience(c, PATIENCE_SEC);
	client_write(c);
}

static void
client_reply(struct client *c, json_t *reply)
{
	char *text = json_dumps(reply, JSON_COMPACT);

	json_decref(reply);
	free(c->buf);
	c->buf = text;
	c->len = text != NULL ? strlen(text) : 0;
	if (text != NULL)
		text[c->len++] = '\n';	/* instead of the end */
	c->done = 0;
	client_end(c);
}

static void __attribute__((format(printf, 2, 3)))
client_refuse(struct client *c, const char *fmt, ...)
{
	json_t *reply = ctl_message(1);
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	ctl_error(reply, "%s", text);
	client_reply(c, reply);
}

static void
request_parse(struct client *c)
{
	json_error_t err;
	json_t *rq = json_loadb(c->buf, c->len, JSON_REJECT_DUPLICATES, &err);
	json_t *args = json_object_get(rq, "args");
	const char *command = json_string_value(json_object_get(rq, "command"));

	if (rq == NULL)
		client_refuse(c, "request is not JSON: column %d: %s",
		    err.column, err.text);
	else if (json_integer_value(json_object_get(rq, "schema")) !=
	    CTL_SCHEMA)
		client_refuse(c, "request is not of schema %d: xlb and xlbd "
		    "are of different versions", CTL_SCHEMA);
	else if (command == NULL || (args != NULL && !json_is_object(args)))
		client_refuse(c, "request has no command, or args that are no "
		    "object");
	else {
		c->rq = calloc(1, sizeof(*c->rq));
		if (c->rq == NULL)
			fatal("control socket");
		c->rq->client = c;
		c->phase = CLIENT_WAIT;
		client_patience(c, 0);
		/* EPOLLHUP comes anyway: the client has gone away */
		sd_event_source_set_io_events(c->io, 0);
		if (args == NULL) {
			args = json_object();
			json_object_set_new(rq, "args", args);
		}
		c->ctl->fn(c->rq, command, args, c->may_change, c->ctl->arg);
	}
	json_decref(rq);
}

/* The request ends at its first newline, or where the client stops writing. */
static void
request_end(struct client *c, size_t len)
{
	size_t i;

	for (i = len; i < c->len; i++)
		if (strchr(" \t\r\n", c->buf[i]) == NULL) {
			client_refuse(c, "more than one request");
			return;
		}
	c->len = len;
	request_parse(c);
}

static size_t
request_max(const struct client *c)
{
	return c->may_change ? CTL_REQUEST_MAX : CTL_READER_MAX;
}

static void
too_large(struct client *c)
{
	client_refuse(c, "request of more than %zu bytes%s", request_max(c),
	    c->may_change ? "" : ", the limit for those who may only read");
}

/* Bytes that will not be used; false: no more for now, or the client is gone. */
static bool
client_forget(struct client *c)
{
	ssize_t n = recv(c->fd, c->buf, c->size, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n > 0)
		c->done += (size_t)n;
	if (n < 0 || c->done > CTL_REQUEST_MAX) {
		client_free(c);
		return false;
	}
	if (n == 0 || memchr(c->buf, '\n', (size_t)n) != NULL) {
		too_large(c);
		return false;
	}
	return true;
}

static bool
client_read(struct client *c)
{
	size_t before = c->len;
	char *bigger, *end;
	ssize_t n;

	if (c->phase == CLIENT_REFUSE)
		return client_forget(c);
	if (c->len == c->size) {
		bigger = realloc(c->buf, c->size == 0 ? 4096 : c->size * 2);
		if (bigger == NULL)
			fatal("control socket");
		c->buf = bigger;
		c->size = c->size == 0 ? 4096 : c->size * 2;
	}
	n = recv(c->fd, c->buf + c->len, c->size - c->len, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n < 0 || (n == 0 && c->len == 0)) {
		client_free(c);
		return false;
	}
	c->len += (size_t)n;
	end = memchr(c->buf + before, '\n', c->len - before);
	if (end != NULL || n == 0) {
		if (c->len > request_max(c))
			too_large(c);
		else
			request_end(c, end != NULL ? (size_t)(end - c->buf) :
			    c->len);
		return false;
	}
	if (c->len > request_max(c)) {
		c->phase = CLIENT_REFUSE;
		c->done = c->len;
	}
	return true;
}

static int
client_ready(sd_event_source *s, int fd, uint32_t events, void *arg)
{
	struct client *c = arg;
	size_t i;

	(void)s, (void)fd;
	switch (c->phase) {
	case CLIENT_READ:
	case CLIENT_REFUSE:
		for (i = 0; i < READ_AT_ONCE / 4096 && client_read(c); i++)
			;
		break;
	case CLIENT_WAIT:
		if (events & (EPOLLHUP | EPOLLERR))
			client_free(c);
		break;
	case CLIENT_WRITE:
		client_write(c);
		break;
	case CLIENT_STREAM:
		stream_ready(c, events);
		break;
	}
	return 0;
}

static bool
peer_in_group(int fd, const struct ucred *peer, gid_t group)
{
	gid_t *list;
	socklen_t len = 0;
	bool in = peer->gid == group;
	size_t i;

	if (group == NO_GROUP)
		return false;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, NULL, &len) == 0 ||
	    errno != ERANGE)
		return in;	/* it has no other groups */
	list = malloc(len);
	if (list == NULL ||
	    getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, list, &len) < 0)
		len = 0;
	for (i = 0; i < len / sizeof(list[0]); i++)
		if (list[i] == group)
			in = true;
	free(list);
	return in;
}

/* Root and whoever xlbd runs as change things; so do members of xlb-admin. */
static void
peer_rights(const struct ctl *ctl, int fd, bool *read, bool *change,
    uid_t *uid)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	*read = *change = false;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		return;
	*uid = peer.uid;
	*change = peer.uid == 0 || peer.uid == geteuid() ||
	    peer_in_group(fd, &peer, ctl->admins);
	*read = *change || peer_in_group(fd, &peer, ctl->readers);
}

static void
client_new(struct ctl *ctl, int fd)
{
	struct client *c = calloc(1, sizeof(*c));
	unsigned patience = PATIENCE_SEC;
	bool may_read;
	int rc;

	if (c == NULL)
		fatal("control socket");
	if (ctl->n >= CTL_CLIENTS_MAX / 2)
		patience = HURRY_SEC;	/* the queue must move */
	c->ctl = ctl;
	c->fd = fd;
	c->next = ctl->first;
	if (c->next != NULL)
		c->next->prev = c;
	ctl->first = c;
	if (++ctl->n == CTL_CLIENTS_MAX)	/* the rest waits in the queue */
		sd_event_source_set_enabled(ctl->io, SD_EVENT_OFF);
	rc = sd_event_add_io(ctl->ev, &c->io, fd, EPOLLIN, client_ready, c);
	if (rc >= 0)
		rc = sd_event_add_time_relative(ctl->ev, &c->timer,
		    CLOCK_MONOTONIC, patience * UINT64_C(1000000), 0,
		    client_late, c);
	if (rc < 0) {
		log_warnx("control socket: %s", strerror(-rc));
		client_free(c);
		return;
	}
	peer_rights(ctl, fd, &may_read, &c->may_change, &c->uid);
	if (!may_read)
		client_refuse(c, "permission denied");
}

static int
ctl_ready(sd_event_source *s, int fd, uint32_t events, void *arg)
{
	struct ctl *ctl = arg;
	int client;

	(void)s, (void)events;
	client = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (client >= 0)
		client_new(ctl, client);
	else if (errno != EAGAIN && errno != ECONNABORTED && errno != EINTR)
		log_warn("control socket: accept");
	return 0;
}

static int
lock_take(struct ctl *ctl, const char *run_dir)
{
	char pid[32], path[4096];
	ssize_t n;
	int rc;

	snprintf(path, sizeof(path), "%s/%s", run_dir, CTL_LOCK);
	ctl->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (ctl->lock < 0) {
		rc = -errno;
		log_warn("%s", path);
		return rc;
	}
	if (flock(ctl->lock, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK) {
			rc = -errno;
			log_warn("%s", path);
			return rc;
		}
		n = read(ctl->lock, pid, sizeof(pid) - 1);
		pid[n > 0 ? n : 0] = '\0';
		pid[strcspn(pid, "\n")] = '\0';
		log_warnx("%s: xlbd is running already on this directory, "
		    "pid %s", run_dir, *pid != '\0' ? pid : "unknown");
		return -EADDRINUSE;
	}
	n = snprintf(pid, sizeof(pid), "%d\n", (int)getpid());
	if (ftruncate(ctl->lock, 0) < 0 ||
	    pwrite(ctl->lock, pid, (size_t)n, 0) != n)
		log_warn("%s", path);	/* only the message above needs it */
	return 0;
}

/* Under another name until its owner and mode are right and somebody listens;
 * then it takes the place of whatever an earlier xlbd left behind. */
static int
socket_make(struct ctl *ctl)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int n;

	n = snprintf(sun.sun_path, sizeof(sun.sun_path), "%s~", ctl->path);
	if (n >= (int)sizeof(sun.sun_path))
		return -ENAMETOOLONG;
	if (unlink(sun.sun_path) < 0 && errno != ENOENT)
		return -errno;
	ctl->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
	    0);
	if (ctl->fd < 0 || fchmod(ctl->fd, 0600) < 0 ||
	    bind(ctl->fd, (const struct sockaddr *)&sun, sizeof(sun)) < 0)
		return -errno;
	if (ctl->readers != NO_GROUP && geteuid() == 0 &&
	    chown(sun.sun_path, 0, ctl->readers) < 0)
		return -errno;
	if (ctl->readers != NO_GROUP && chmod(sun.sun_path, 0660) < 0)
		return -errno;
	if (listen(ctl->fd, CTL_CLIENTS_MAX) < 0 ||
	    rename(sun.sun_path, ctl->path) < 0)
		return -errno;
	return 0;
}

int
ctl_open(sd_event *ev, const char *run_dir, ctl_fn fn, void *arg,
    struct ctl **out)
{
	struct ctl *ctl = calloc(1, sizeof(*ctl));
	int rc;

	if (ctl == NULL)
		return -ENOMEM;
	ctl->ev = sd_event_ref(ev);
	ctl->fn = fn;
	ctl->arg = arg;
	ctl->fd = ctl->lock = -1;
	ctl->readers = group_id("xlb");
	ctl->admins = group_id("xlb-admin");
	rc = file_mkdir(run_dir, 0755);
	if (rc < 0)
		log_warnx("%s: %s", run_dir, strerror(-rc));
	else
		rc = lock_take(ctl, run_dir);
	if (rc == 0) {
		if (asprintf(&ctl->path, "%s/%s", run_dir, CTL_SOCKET) < 0)
			fatal("control socket");
		rc = socket_make(ctl);
		if (rc == 0)
			rc = sd_event_add_io(ev, &ctl->io, ctl->fd, EPOLLIN,
			    ctl_ready, ctl);
		if (rc < 0)
			log_warnx("%s: %s", ctl->path, strerror(-rc));
	}
	if (rc < 0) {
		ctl_close(ctl);
		return rc;
	}
	*out = ctl;
	return 0;
}

void
ctl_close(struct ctl *ctl)
{
	if (ctl == NULL)
		return;
	while (ctl->first != NULL)
		client_free(ctl->first);
	if (ctl->io != NULL)		/* it listened: the name is ours */
		unlink(ctl->path);
	sd_event_source_disable_unref(ctl->io);
	if (ctl->fd >= 0)
		close(ctl->fd);
	if (ctl->lock >= 0)
		close(ctl->lock);
	sd_event_unref(ctl->ev);
	free(ctl->path);
	free(ctl);
}

void
ctl_reply(struct ctl_request *rq, json_t *reply)
{
	struct client *c = rq->client;

	free(rq);
	if (c == NULL) {
		json_decref(reply);
		return;
	}
	c->rq = NULL;
	client_reply(c, reply);
}

json_t *
ctl_message(int status)
{
	json_t *m = json_pack("{s:i, s:i, s:[], s:[], s:{}}", "schema",
	    CTL_SCHEMA, "exit", status, "errors", "warnings", "result");

	assert(m != NULL);
	return m;
}

static void
line_vadd(json_t *reply, const char *key, const char *before, const char *fmt,
    va_list ap)
{
	char *text, *line;

	if (vasprintf(&text, fmt, ap) < 0 ||
	    asprintf(&line, "%s%s", before, text) < 0)
		fatal("control socket");
	json_array_append_new(json_object_get(reply, key), ctl_text(line));
	free(line);
	free(text);
}

void
ctl_error(json_t *reply, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	line_vadd(reply, "errors", "", fmt, ap);
	va_end(ap);
}

void
ctl_warning(json_t *reply, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	line_vadd(reply, "warnings", "warning: ", fmt, ap);
	va_end(ap);
}

void
ctl_diag(json_t *reply, const struct diag *dg)
{
	const struct diag_row *row;
	char *line;
	size_t i;

	for (i = 0; i < dg->n; i++) {
		row = &dg->row[i];
		line = diag_line(row);
		json_array_append_new(json_object_get(reply,
		    row->level == DIAG_ERROR ? "errors" : "warnings"),
		    ctl_text(line));
		free(line);
	}
}

void
ctl_asked(const struct ctl_request *rq, const char *command,
    char buf[CTL_ASKED_MAX])
{
	if (rq->client == NULL)
		snprintf(buf, CTL_ASKED_MAX, "xlb %s", command);
	else if (rq->client->uid == 0)
		snprintf(buf, CTL_ASKED_MAX, "xlb %s by root", command);
	else
		snprintf(buf, CTL_ASKED_MAX, "xlb %s by uid %u", command,
		    rq->client->uid);
}
