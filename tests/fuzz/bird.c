/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What BIRD says: the framing of its socket as the client reads it, every parser
 * of a line, what is made of the lines, and an include of an earlier xlbd. Byte 0
 * says how long the pieces are that the socket gives.
 */
#include "fuzz.h"

#include <sys/socket.h>

#include "core/arena.h"
#include "io/bird_client.c"
#include "io/bird_view.h"

static struct bird_view view;
static unsigned lines, ups;

static void
line_parse(const struct bird_line *line)
{
	struct bird_detail d;
	struct prefix p;

	bird_configure_verdict(line->code);
	if (bird_protocol_parse(line->code, line->text, line->len, &d) !=
	    BIRD_FIELD_NONE) {
		FUZZ_CHECK(strlen(d.name) < sizeof(d.name));
		FUZZ_CHECK(strlen(d.kind) < sizeof(d.kind));
		FUZZ_CHECK(strlen(d.value) < sizeof(d.value));
	}
	if (bird_route_parse(line->text, line->len, &p) == 0)
		FUZZ_CHECK(p.len <= (addr_is4(&p.addr) ? 32 : 128));
}

/* Each reply is taken for a listing of the protocols, and one of routes. */
static void
on_event(void *arg, enum client_event event, const struct bird_line *line,
    int err)
{
	struct bird_client *c = arg;

	switch (event) {
	case CLIENT_UP:
		FUZZ_CHECK(c->up && !c->busy);
		ups++;
		sessions_begin(&view);
		routes_begin(&view.table[V4]);
		FUZZ_CHECK(client_send(c, "show protocols all") == 0);
		break;
	case CLIENT_LINE:
		FUZZ_CHECK(line->code >= 0 && line->code <= 9999);
		FUZZ_CHECK(c->up && line->len <= sizeof(c->buf));
		lines++;
		line_parse(line);
		sessions_line(&view, line);
		routes_line(&view.table[V4], line);
		if (!line->last)
			break;
		FUZZ_CHECK(!c->busy);
		sessions_end(&view, true);
		routes_end(&view.table[V4]);
		peers_update(&view);
		sessions_begin(&view);
		routes_begin(&view.table[V4]);
		client_send(c, "show route");
		break;
	case CLIENT_LATE:
		break;
	case CLIENT_LOST:
		FUZZ_CHECK(err > 0 && c->fd < 0);
		break;
	}
}

static void
socket_feed(sd_event *ev, const uint8_t *data, size_t len, size_t piece)
{
	struct bird_client c;
	size_t n;
	int sv[2];

	client_init(&c, ev, on_event, &c);
	FUZZ_CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, sv) == 0);
	c.fd = sv[0];
	FUZZ_CHECK(sd_event_add_time_relative(ev, &c.timer, CLOCK_MONOTONIC,
	    3600 * 1000000ULL, 0, on_timer, &c) >= 0);
	c.busy = true;
	c.code = -1;
	for (; len > 0 && c.fd >= 0; data += n, len -= n) {
		n = len < piece ? len : piece;
		FUZZ_CHECK(send(sv[1], data, n, MSG_DONTWAIT) == (ssize_t)n);
		on_io(NULL, c.fd, EPOLLIN, &c);
	}
	client_close(&c);
	close(sv[1]);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static sd_event *ev;
	struct fuzz_in in = { data, data + len };
	struct arena *a = arena_new();
	struct prefix *p;
	size_t piece = fuzz_byte(&in), n, i;

	if (ev == NULL)
		FUZZ_CHECK(sd_event_new(&ev) >= 0);
	len = (size_t)(in.end - in.at);
	socket_feed(ev, in.at, len, 1 + len / 128 + piece * 16);
	view_free(&view);
	memset(&view, 0, sizeof(view));
	p = bird_include_parse((const char *)in.at, len, a, &n);
	for (i = 1; i < n; i++)
		FUZZ_CHECK(prefix_cmp(&p[i - 1], &p[i]) < 0);
	arena_free(a);
	return 0;
}
