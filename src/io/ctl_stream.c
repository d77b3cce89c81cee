/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Clients that get lines for as long as they stay. What a slow one does not take
 * is not kept for it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "io/ctl_int.h"
#include "io/log.h"

struct ctl_stream {
	struct client *client;
	void (*gone)(void *arg);	/* NULL: nobody wants to know */
	void *arg;
};

void
stream_gone(struct ctl_stream *s)
{
	if (s->gone != NULL)
		s->gone(s->arg);
	free(s);
}

/* Its memory is all that a client ever costs. */
static bool
stream_append(struct client *c, const char *text, size_t len)
{
	if (c->done > 0) {
		memmove(c->buf, c->buf + c->done, c->len - c->done);
		c->len -= c->done;
		c->done = 0;
	}
	if (len > c->size - c->len)
		return false;
	memcpy(c->buf + c->len, text, len);
	c->len += len;
	return true;
}

static void
stream_write(struct client *c)
{
	size_t before = c->done;
	int rc = client_push(c);

	if (rc < 0) {
		client_free(c);
		return;
	}
	if (rc == 0) {
		c->len = c->done = 0;
		sd_event_source_set_io_events(c->io, 0);
		client_patience(c, 0);
	} else if (c->done != before) {
		client_patience(c, CTL_STREAM_SEC);
	}
}

void
stream_ready(struct client *c, uint32_t events)
{
	if (events & (EPOLLHUP | EPOLLERR))
		client_free(c);
	else
		stream_write(c);
}

struct ctl_stream *
ctl_stream(struct ctl_request *rq, json_t *reply, void (*gone)(void *arg),
    void *arg)
{
	struct client *c = rq->client;
	char *text = json_dumps(reply, JSON_COMPACT);
	struct ctl_stream *s = NULL;

	free(rq);
	json_decref(reply);
	if (c == NULL)
		goto done;
	s = calloc(1, sizeof(*s));
	free(c->buf);
	c->size = CTL_STREAM_BYTES;
	c->buf = malloc(c->size);
	if (text == NULL || s == NULL || c->buf == NULL)
		fatal("control socket");
	s->client = c;
	s->arg = arg;
	c->rq = NULL;
	c->stream = s;
	c->phase = CLIENT_STREAM;
	c->len = c->done = 0;
	stream_append(c, text, strlen(text));
	stream_append(c, "\n", 1);
	client_patience(c, CTL_STREAM_SEC);
	s->gone = gone;
	/* written when the loop comes round: the caller has the stream then */
	sd_event_source_set_io_events(c->io, EPOLLOUT);
done:
	free(text);
	return s;
}

bool
ctl_stream_line(struct ctl_stream *s, const char *text, size_t len)
{
	struct client *c = s->client;
	bool idle = c->done == c->len;

	if (!stream_append(c, text, len))
		return false;
	if (idle) {
		client_patience(c, CTL_STREAM_SEC);
		stream_write(c);
	}
	return true;
}

void
ctl_stream_end(struct ctl_stream *s)
{
	struct client *c = s->client;

	c->stream = NULL;
	free(s);
	client_end(c);
}
