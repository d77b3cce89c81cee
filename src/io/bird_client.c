/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The connection to BIRD's control socket. Never half-closed: BIRD answers
 * nothing after that. A BIRD that hangs accepts and never greets, so the
 * connection is kept while it does: it answers at once when it goes on.
 */
#include "io/bird_client.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define GREETING_MS 2000
#define ANSWER_MS 5000		/* between two pieces of a reply */
#define GIVE_UP_MS 30000
#define COMMAND_MAX 1000	/* BIRD hangs up at 1024 bytes */
#define READS_MAX 16		/* in one turn of the loop */
#define REPLY_WELCOME 1

void
client_init(struct bird_client *c, sd_event *ev,
    void (*fn)(void *, enum client_event, const struct bird_line *, int),
    void *arg)
{
	memset(c, 0, sizeof(*c));
	c->ev = ev;
	c->fd = -1;
	c->fn = fn;
	c->arg = arg;
}

void
client_close(struct bird_client *c)
{
	c->io = sd_event_source_disable_unref(c->io);
	c->timer = sd_event_source_disable_unref(c->timer);
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
	c->up = c->busy = c->late = c->skip = false;
	c->len = 0;
}

static void
lost(struct bird_client *c, int err)
{
	client_close(c);
	c->fn(c->arg, CLIENT_LOST, NULL, err);
}

static int
on_timer(sd_event_source *s, uint64_t usec, void *arg)
{
	struct bird_client *c = arg;

	(void)usec;
	if (c->late) {
		lost(c, ETIMEDOUT);
		return 0;
	}
	c->late = true;
	sd_event_source_set_time_relative(s, GIVE_UP_MS * 1000);
	sd_event_source_set_enabled(s, SD_EVENT_ONESHOT);
	c->fn(c->arg, CLIENT_LATE, NULL, 0);
	return 0;
}

/* The wait begins anew; 0 ends it. */
static void
bound(struct bird_client *c, unsigned ms)
{
	c->late = false;
	sd_event_source_set_time_relative(c->timer, (uint64_t)ms * 1000);
	sd_event_source_set_enabled(c->timer,
	    ms > 0 ? SD_EVENT_ONESHOT : SD_EVENT_OFF);
}

/* False: the connection is gone or is another one now. */
static bool
on_line(struct bird_client *c, const char *text, size_t len)
{
	unsigned opened = c->opened;
	struct bird_line line;

	if (bird_line_parse(text, len, c->code, &line) < 0 ||
	    (!c->busy && line.code >= 0)) {
		lost(c, EPROTO);
		return false;
	}
	if (line.code < 0)
		return true;
	c->code = line.code;
	if (line.last) {
		c->busy = false;
		c->code = -1;
		bound(c, 0);
	}
	if (c->up) {
		c->fn(c->arg, CLIENT_LINE, &line, 0);
	} else if (line.code != REPLY_WELCOME) {
		lost(c, EPROTO);
	} else if (line.last) {
		c->up = true;
		c->fn(c->arg, CLIENT_UP, NULL, 0);
	}
	return c->fd >= 0 && c->opened == opened;
}

/* Hands over the whole lines of the buffer. Of a line that does not fit, the
 * front counts: the code is there. */
static bool
take_lines(struct bird_client *c)
{
	char *line = c->buf, *end = c->buf + c->len, *eol;

	for (; line < end; line = eol + 1) {
		eol = memchr(line, '\n', (size_t)(end - line));
		if (eol == NULL)
			break;
		if (!c->skip && !on_line(c, line, (size_t)(eol - line)))
			return false;
		c->skip = false;
	}
	c->len = (size_t)(end - line);
	memmove(c->buf, line, c->len);
	if (c->len < sizeof(c->buf))
		return true;
	if (!c->skip && !on_line(c, c->buf, c->len))
		return false;
	c->skip = true;
	c->len = 0;
	return true;
}

static int
on_io(sd_event_source *s, int fd, uint32_t revents, void *arg)
{
	struct bird_client *c = arg;
	ssize_t n;
	int i;

	(void)s;
	(void)revents;
	for (i = 0; i < READS_MAX; i++) {
		n = recv(fd, c->buf + c->len, sizeof(c->buf) - c->len,
		    MSG_DONTWAIT);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return 0;
		if (n <= 0) {
			lost(c, n < 0 ? errno : ECONNRESET);
			return 0;
		}
		c->len += (size_t)n;
		if (c->busy)
			bound(c, ANSWER_MS);
		if (!take_lines(c))
			return 0;
	}
	return 0;
}

bool
client_turn(struct bird_client *c, int ms)
{
	struct pollfd p = { .fd = c->fd, .events = POLLIN };

	if (c->fd < 0 || poll(&p, 1, ms) <= 0)
		return false;
	on_io(c->io, c->fd, EPOLLIN, c);
	return true;
}

static int
client_connect(struct bird_client *c, const char *path)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	struct ucred who;
	socklen_t len = sizeof(who);

	if (strlen(path) >= sizeof(sun.sun_path))
		return -ENAMETOOLONG;
	memcpy(sun.sun_path, path, strlen(path) + 1);
	c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (c->fd < 0)
		return -errno;
	if (connect(c->fd, (const struct sockaddr *)&sun, sizeof(sun)) < 0 ||
	    getsockopt(c->fd, SOL_SOCKET, SO_PEERCRED, &who, &len) < 0)
		return -errno;
	c->peer = who.pid;
	return 0;
}

int
client_open(struct bird_client *c, const char *path)
{
	int rc = client_connect(c, path);

	if (rc == 0)
		rc = sd_event_add_io(c->ev, &c->io, c->fd, EPOLLIN, on_io, c);
	if (rc >= 0)
		rc = sd_event_add_time_relative(c->ev, &c->timer,
		    CLOCK_MONOTONIC, GREETING_MS * 1000, 1000, on_timer, c);
	if (rc < 0) {
		client_close(c);
		return rc;
	}
	c->opened++;
	c->busy = true;
	c->code = -1;
	return 0;
}

int
client_send(struct bird_client *c, const char *command)
{
	char buf[COMMAND_MAX + 1];
	size_t len = strlen(command);
	int rc = 0;

	if (!c->up || c->busy || len > COMMAND_MAX)
		return -EINVAL;
	memcpy(buf, command, len);
	buf[len++] = '\n';
	/* far below the socket's buffer: all of it or nothing */
	errno = 0;
	if (send(c->fd, buf, len, MSG_NOSIGNAL) != (ssize_t)len) {
		rc = errno != 0 ? -errno : -EIO;
		client_close(c);
		return rc;
	}
	c->busy = true;
	c->code = -1;
	bound(c, ANSWER_MS);
	return 0;
}
