/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a web server answers to an http check. Byte 0 chooses the check, byte 1
 * the length of the pieces that the answer comes in; it ends as the server hangs
 * up, or with the check's time.
 */
#include "fuzz.h"

#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "io/probe_http.h"

#define PIECES 64

static struct http *http;
static int epoll;
static unsigned ended;
static struct probe_end end;

static void
on_end(void *owner, const struct probe_end *e, void *arg)
{
	(void)arg;
	FUZZ_CHECK(owner == &ended && e->result < PROBE_RESULTS);
	FUZZ_CHECK(memchr(e->said, '\0', sizeof(e->said)) != NULL);
	end = *e;
	ended++;
}

static void
check_make(struct probe_check *c, unsigned kind)
{
	memset(c, 0, sizeof(*c));
	strcpy(c->path, "/");
	strcpy(c->method, kind & 1 ? "HEAD" : "GET");
	if (kind & 2)
		strcpy(c->body, "ok");
	if (kind & 4)
		strcpy(c->host, "example.net");
	c->expect[200 / 8] |= 1 << 200 % 8;
	c->drain[503 / 8] |= 1 << 503 % 8;
}

/* All that libcurl wants to do for now. */
static void
turn(const struct http_probe *p)
{
	struct epoll_event ev;
	int i;

	for (i = 0; i < 8 && !ended; i++) {
		if (http_due(http) <= probe_now().ns)
			http_timer(http);
		else if (epoll_wait(epoll, &ev, 1, 0) == 1)
			http_event(http, p, ev.events);
		else
			break;
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct fuzz_in in = { data, data + len };
	const struct probe_ca none = { 0 };
	struct probe_check check;
	struct http_probe *p;
	struct addr to;
	const uint8_t *at;
	unsigned kind = fuzz_byte(&in), piece = fuzz_byte(&in), i;
	size_t n;
	int sv[2];

	if (http == NULL) {
		epoll = epoll_create1(EPOLL_CLOEXEC);
		http = http_open(epoll, on_end, NULL);
		FUZZ_CHECK(http != NULL);
	}
	check_make(&check, kind);
	addr_parse("192.0.2.1", &to);
	FUZZ_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0,
	    sv) == 0);
	ended = 0;
	p = http_begin(http, sv[0], &to, 80, &check, &none, 1, &ended);
	FUZZ_CHECK(p != NULL);
	turn(p);		/* the request */
	for (i = 0; i < PIECES && in.at < in.end && !ended; i++) {
		n = i + 1 == PIECES ? SIZE_MAX : 1 + piece * 8;
		at = fuzz_bytes(&in, &n);
		if (send(sv[1], at, n, MSG_NOSIGNAL) < 0)
			break;
		turn(p);
	}
	if (!ended && !(kind & 8)) {
		shutdown(sv[1], SHUT_WR);
		turn(p);
	}
	if (!ended) {
		FUZZ_CHECK(http_late(p) < PROBE_RESULTS);
		http_cancel(http, p);
	} else if (end.result == PROBE_OK) {
		/* an answer says so, nothing else does */
		FUZZ_CHECK(len > 2 + 12);
	}
	close(sv[1]);
	return 0;
}
