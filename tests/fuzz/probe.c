/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What comes from backends, and from the prober, which may be in an attacker's
 * hands. Byte 0 chooses: answers of the prober to xlbd; a reply to a dns, udp or
 * icmp check; ICMP errors about packets of the tunnels: each behind two bytes of
 * length.
 */
#include "fuzz.h"

#include <sys/socket.h>

#include "core/dns.h"
#include "core/path_error.h"
#include "io/probe.c"

#define FLIGHTS 64

static struct target target[FLIGHTS], *target_at[FLIGHTS];
static struct flight flight[FLIGHTS];
static unsigned results;

static void
on_result(size_t id, enum probe_result r, uint16_t detail, const char *said,
    void *arg)
{
	(void)detail, (void)arg;
	FUZZ_CHECK(id < FLIGHTS && r < PROBE_RESULTS);
	FUZZ_CHECK(strlen(said) < HEALTH_SAID_MAX);
	results++;
}

/* Every other row is asked for, those between are free. */
static void
prober_fill(struct prober *p)
{
	uint32_t i;

	memset(p, 0, sizeof(*p));
	memset(target, 0, sizeof(target));
	p->fn = on_result;
	p->idle = p->cancel = NONE;
	p->seed = 1;
	p->flight = flight;
	p->nflight = p->flights_max = FLIGHTS;
	p->target = target_at;
	p->n = FLIGHTS;
	for (i = 0; i < FLIGHTS; i++) {
		target_at[i] = &target[i];
		target[i].index = i;
		target[i].interval_ms = 1000;
		target[i].fd = -1;
		target[i].flight = i;
		flight[i].generation = i % 4;
		if (i % 2 == 1) {
			target[i].flight = NONE;
			flight_free(p, i);
			heap_put(&p->due, &target[i].node, 1);
			continue;
		}
		flight[i].target = &target[i];
		heap_put(&p->overdue, &target[i].node, 1);
	}
}

static size_t
message_len(struct fuzz_in *in)
{
	size_t n = fuzz_byte(in);

	return n | (size_t)fuzz_byte(in) << 8;
}

static void
answers_feed(struct fuzz_in *in)
{
	struct prober p;
	const uint8_t *m;
	unsigned before = results, sent = 0, i;
	size_t n;
	int sv[2];

	prober_fill(&p);
	FUZZ_CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sv) == 0);
	p.sock = sv[0];
	while (in->at < in->end && p.sock >= 0) {
		n = message_len(in);
		m = fuzz_bytes(in, &n);
		FUZZ_CHECK(send(sv[1], m, n, MSG_NOSIGNAL) == (ssize_t)n);
		answer_read(&p);
		sent++;
	}
	/* one result at most for each request, and for each message */
	FUZZ_CHECK(results - before <= FLIGHTS / 2 && results - before <= sent);
	for (i = 0; i < FLIGHTS; i++)
		FUZZ_CHECK(target[i].flight == NONE || p.sock >= 0);
	if (p.sock >= 0)
		close(p.sock);
	close(sv[1]);
	heap_fini(&p.due);
	heap_fini(&p.overdue);
}

/* The query that the check sent: of a root, or of a longer name. */
static struct probe_asked *
dns_asked(unsigned kind)
{
	static const char *const name[] = { ".", "a.example", "example.net" };
	static const uint16_t type[] = { 1, 28, 16, 255, 6 };
	uint8_t query[DNS_QUERY_MAX];
	size_t n = dns_query_build(name[kind % 3], type[kind % 5], 0x1234,
	    query);

	FUZZ_CHECK(n > 0);
	return probe_asked_new(query, n);
}

static struct probe_asked *
icmp_asked(bool is4)
{
	uint8_t echo[40] = { 0 };
	size_t i;

	echo[0] = is4 ? 8 : 128;
	for (i = 4; i < sizeof(echo); i++)
		echo[i] = (uint8_t)i;
	return probe_asked_new(echo, sizeof(echo));
}

static void
replies_feed(struct fuzz_in *in, unsigned kind)
{
	struct probe_end end = { .result = PROBE_TIMEOUT };
	struct probe_asked *asked;
	struct addr to = { .b = { 0x20, 1 } };
	const uint8_t *m;
	bool over = false;
	size_t n;
	int sv[2];

	if (kind & 8)
		addr_parse("192.0.2.1", &to);
	asked = kind % 4 == 1 ? dns_asked(kind >> 4) : kind % 4 == 2 ?
	    probe_asked_new("ok\r\n", kind & 16 ? 4 : 0) :
	    icmp_asked(addr_is4(&to));
	FUZZ_CHECK(asked != NULL);
	FUZZ_CHECK(socketpair(AF_UNIX, SOCK_DGRAM, 0, sv) == 0);
	while (in->at < in->end && !over) {
		n = message_len(in);
		m = fuzz_bytes(in, &n);
		FUZZ_CHECK(send(sv[1], m, n, MSG_NOSIGNAL) == (ssize_t)n);
		over = kind % 4 == 1 ? probe_dns_end(sv[0], asked, &end) :
		    kind % 4 == 2 ? probe_udp_end(sv[0], asked, &end) :
		    probe_icmp_end(sv[0], &to, asked, &end);
		FUZZ_CHECK(end.result < PROBE_RESULTS);
	}
	free(asked);
	close(sv[0]);
	close(sv[1]);
}

static void
errors_feed(struct fuzz_in *in, bool is4)
{
	struct path_error e;
	const uint8_t *m;
	struct addr at;
	size_t n;

	addr_parse(is4 ? "10.0.0.1" : "2001:db8::1", &at);
	while (in->at < in->end) {
		n = message_len(in);
		m = fuzz_bytes(in, &n);
		if (!path_error_parse(m, n, is4, &at, 6080, &e))
			continue;
		FUZZ_CHECK(addr_is4(&e.to) == is4 || !is4);
		FUZZ_CHECK(n >= (is4 ? 36 : 56));
	}
}

static void
log_drop(int level, const char *line, void *arg)
{
	(void)level, (void)line, (void)arg;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct fuzz_in in = { data, data + len };
	unsigned kind = fuzz_byte(&in);

	log_capture(log_drop, NULL);
	if (kind % 4 == 0)
		answers_feed(&in);
	else if (kind % 4 == 3 && kind & 64)
		errors_feed(&in, kind & 8);
	else
		replies_feed(&in, kind);
	return 0;
}
