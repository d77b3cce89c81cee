/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The control socket, the client's side: one request, one reply. */
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "io/ctl.h"

#define REPLY_MAX (256 << 20)	/* bytes */
#define QUEUE_FULL_MS 20	/* between attempts to connect */

struct call {
	int fd;
	int64_t until;		/* ms, CLOCK_MONOTONIC; -1: no end */
	void (*tick)(void *arg);
	void *arg;
};

static int64_t
now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000LL + ts.tv_nsec / 1000000;
}

/* 0 when the descriptor is ready; -ETIMEDOUT. Ticks each second. */
static int
call_wait(const struct call *c, short events)
{
	struct pollfd pfd = { .fd = c->fd, .events = events };
	int64_t left;
	int n;

	for (;;) {
		left = c->until < 0 ? 1000 : c->until - now_ms();
		if (left <= 0)
			return -ETIMEDOUT;
		n = poll(&pfd, 1, left > 1000 ? 1000 : (int)left);
		if (n > 0)
			return 0;
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n == 0 && c->tick != NULL)
			c->tick(c->arg);
	}
}

static int
call_connect(struct call *c, const char *run_dir)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int n;

	n = snprintf(sun.sun_path, sizeof(sun.sun_path), "%s/%s", run_dir,
	    CTL_SOCKET);
	if (n >= (int)sizeof(sun.sun_path))
		return -ENAMETOOLONG;
	c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (c->fd < 0)
		return -errno;
	while (connect(c->fd, (const struct sockaddr *)&sun, sizeof(sun)) < 0) {
		if (errno == EINTR)
			continue;
		if (errno != EAGAIN)
			return -errno;
		/* too many wait to be accepted */
		if (c->until >= 0 && now_ms() >= c->until)
			return -ETIMEDOUT;
		poll(NULL, 0, QUEUE_FULL_MS);
	}
	return 0;
}

/* A refusal may come before all is written: it is read, whatever happens. */
static int
call_write(const struct call *c, const char *text, size_t len)
{
	ssize_t n;
	int rc;

	while (len > 0) {
		n = send(c->fd, text, len, MSG_NOSIGNAL);
		if (n >= 0) {
			text += n;
			len -= (size_t)n;
			continue;
		}
		if (errno == EPIPE || errno == ECONNRESET)
			return 0;
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
		rc = call_wait(c, POLLOUT);
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* What has come, and how much of it is a line that was given out. */
struct input {
	char *text;
	size_t len, size, line;
};

/* The next line, up to its newline: in->line bytes of in->text. */
static int
call_line(const struct call *c, struct input *in)
{
	size_t seen = 0;
	char *bigger, *end;
	ssize_t n;
	int rc;

	in->len -= in->line;
	if (in->line > 0)
		memmove(in->text, in->text + in->line, in->len);
	in->line = 0;
	for (;;) {
		end = in->len > seen ? memchr(in->text + seen, '\n',
		    in->len - seen) : NULL;
		if (end != NULL) {
			in->line = (size_t)(end - in->text) + 1;
			return 0;
		}
		seen = in->len;
		if (in->len == in->size) {
			in->size = in->size == 0 ? 65536 : in->size * 2;
			bigger = in->size > REPLY_MAX ? NULL :
			    realloc(in->text, in->size);
			if (bigger == NULL)
				return -EMSGSIZE;
			in->text = bigger;
		}
		n = recv(c->fd, in->text + in->len, in->size - in->len, 0);
		if (n == 0 || (n < 0 && errno == ECONNRESET))
			return in->len == 0 ? -ECONNRESET : -EPROTO;
		if (n > 0) {
			in->len += (size_t)n;
			continue;
		}
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
		rc = call_wait(c, POLLIN);
		if (rc < 0)
			return rc;
	}
}

static int
reply_parse(const char *text, size_t len, json_t **reply)
{
	json_t *m = json_loadb(text, len, 0, NULL);

	if (json_integer_value(json_object_get(m, "schema")) != CTL_SCHEMA ||
	    !json_is_integer(json_object_get(m, "exit")) ||
	    !json_is_array(json_object_get(m, "errors")) ||
	    !json_is_array(json_object_get(m, "warnings")) ||
	    !json_is_object(json_object_get(m, "result"))) {
		json_decref(m);
		return -EPROTO;
	}
	*reply = m;
	return 0;
}

/* Connects and asks. */
static int
call_ask(struct call *c, const char *run_dir, const char *command,
    json_t *args)
{
	json_t *rq;
	char *out = NULL;
	int rc;

	rq = json_pack("{s:i, s:s, s:o}", "schema", CTL_SCHEMA, "command",
	    command, "args", args != NULL ? args : json_object());
	if (rq == NULL || (out = json_dumps(rq, JSON_COMPACT)) == NULL) {
		rc = -ENOMEM;
		goto done;
	}
	rc = call_connect(c, run_dir);
	if (rc < 0)
		goto done;
	rc = call_write(c, out, strlen(out));
	if (rc == 0)
		rc = call_write(c, "\n", 1);
done:
	json_decref(rq);
	free(out);
	return rc;
}

static int
call_reply(const struct call *c, struct input *in, json_t **reply)
{
	int rc = call_line(c, in);

	return rc < 0 ? rc : reply_parse(in->text, in->line, reply);
}

/* Until `line` has enough, or the daemon ends it. */
static int
call_lines(struct call *c, struct input *in,
    bool (*line)(const json_t *o, void *arg), void *arg)
{
	bool more = true;
	json_t *o;
	int rc;

	c->until = -1;
	while (more) {
		rc = call_line(c, in);
		if (rc < 0)
			return rc;
		o = json_loadb(in->text, in->line, 0, NULL);
		if (!json_is_object(o)) {
			json_decref(o);
			return -EPROTO;
		}
		more = line(o, arg);
		json_decref(o);
	}
	return 0;
}

static void
call_end(const struct call *c, struct input *in)
{
	if (c->fd >= 0)
		close(c->fd);
	free(in->text);
}

int
ctl_call_tick(const char *run_dir, const char *command, json_t *args,
    int timeout_ms, void (*tick)(void *arg), void *arg, json_t **reply)
{
	struct call c = { .fd = -1, .tick = tick, .arg = arg,
	    .until = timeout_ms < 0 ? -1 : now_ms() + timeout_ms };
	struct input in = { .text = NULL };
	int rc;

	rc = call_ask(&c, run_dir, command, args);
	if (rc == 0)
		rc = call_reply(&c, &in, reply);
	call_end(&c, &in);
	return rc;
}

int
ctl_call_lines(const char *run_dir, const char *command, json_t *args,
    int timeout_ms, bool (*line)(const json_t *o, void *arg), void *arg,
    json_t **reply)
{
	struct call c = { .fd = -1, .until = now_ms() + timeout_ms };
	struct input in = { .text = NULL };
	int rc;

	rc = call_ask(&c, run_dir, command, args);
	if (rc == 0)
		rc = call_reply(&c, &in, reply);
	if (rc == 0 &&
	    json_integer_value(json_object_get(*reply, "exit")) == 0) {
		rc = call_lines(&c, &in, line, arg);
		if (rc < 0) {
			json_decref(*reply);
			*reply = NULL;
		}
	}
	call_end(&c, &in);
	return rc;
}

int
ctl_call(const char *run_dir, const char *command, json_t *args,
    int timeout_ms, json_t **reply)
{
	return ctl_call_tick(run_dir, command, args, timeout_ms, NULL, NULL,
	    reply);
}
