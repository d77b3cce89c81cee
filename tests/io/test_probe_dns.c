/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Dns checks against a name server that answers by the first label, well or
 * not. */
#include "udp_server.h"

/* An A record of the name that was asked for. */
static const uint8_t record_a[] = { 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4,
    192, 0, 2, 1 };
/* A CNAME to itself, then an A record. */
static const uint8_t record_cname[] = { 0xc0, 12, 0, 5, 0, 1, 0, 0, 0, 60, 0,
    2, 0xc0, 12, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 1 };
/* Its owner is a pointer to itself, at byte 29 of the reply to "loop.example". */
static const uint8_t record_loop[] = { 0xc0, 30, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4,
    192, 0, 2, 1 };
/* It says to be 1000 bytes longer than the datagram is. */
static const uint8_t record_long[] = { 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 3,
    0xec, 192, 0, 2, 1 };

static size_t
reply(uint8_t *b, size_t n, unsigned answers, const uint8_t *records,
    size_t len)
{
	b[2] |= 0x84;		/* a response, with authority */
	b[7] = (uint8_t)answers;
	if (len > 0)
		memcpy(b + n, records, len);
	return n + len;
}

static size_t
serve(const uint8_t *asked, size_t n, unsigned nth, uint8_t b[DATAGRAM_MAX])
{
	const char *name = (const char *)asked + 13;
	uint8_t label = asked[12];
	bool one = nth == 0;

#define IS(text) (label == sizeof(text) - 1 && \
	memcmp(name, text, sizeof(text) - 1) == 0)
	memcpy(b, asked, n);
	if (IS("silent") || n < 17)
		return 0;
	if (IS("late")) {	/* forged ones before the real one */
		if (nth == 3)
			return 0;
		if (nth == 0)
			b[0] ^= 1;
		if (nth == 1)
			b[13] = 'g';
		return reply(b, n, 1, record_a, sizeof(record_a));
	}
	if (!one)
		return 0;
	if (IS("id"))
		b[1] ^= 1;
	else if (IS("name"))
		b[13] = 'x';
	else if (IS("case"))
		b[13] = 'C';
	else if (IS("type"))
		b[n - 3] = 28;
	if (IS("question"))	/* sent back as it came */
		return n;
	if (IS("nx") || IS("refused") || IS("odd")) {
		reply(b, n, 0, NULL, 0);
		b[3] |= IS("nx") ? 3 : IS("refused") ? 5 : 11;
		return n;
	}
	if (IS("formerr")) {	/* without the question */
		reply(b, n, 0, NULL, 0);
		b[3] |= 1;
		b[5] = 0;
		return 12;
	}
	if (IS("empty"))
		return reply(b, n, 0, NULL, 0);
	if (IS("tc")) {
		b[2] |= 2;
		return reply(b, n, 0, NULL, 0);
	}
	if (IS("short"))
		return (size_t)(reply(b, n, 0, NULL, 0) > 0) * 3;
	if (IS("cut"))
		return reply(b, n, 1, record_a, sizeof(record_a)) - 1;
	if (IS("many"))
		return reply(b, n, 9, record_a, sizeof(record_a));
	if (IS("loop"))
		return reply(b, n, 1, record_loop, sizeof(record_loop));
	if (IS("long"))
		return reply(b, n, 1, record_long, sizeof(record_long));
	if (IS("huge")) {
		reply(b, n, 1, record_a, sizeof(record_a));
		return DATAGRAM_MAX;
	}
	if (IS("cname"))
		return reply(b, n, 2, record_cname, sizeof(record_cname));
	return reply(b, n, 1, record_a, sizeof(record_a));
#undef IS
}

static const struct row {
	const char *qname, *qtype;
	enum probe_result want;
	uint16_t detail;
	bool waits;		/* until the timeout */
} row[] = {
	{ "ok.example", "A", PROBE_OK, 0, false },
	{ "ok.example.", "ANY", PROBE_OK, 0, false },
	{ "case.example", "A", PROBE_OK, 0, false },
	{ "cname.example", "A", PROBE_OK, 0, false },
	{ "late.example", "A", PROBE_OK, 0, false },
	{ "ok.example", "TXT", PROBE_NO_ANSWER, 16, false },
	{ "empty.example", "A", PROBE_NO_ANSWER, 1, false },
	{ "tc.example", "AAAA", PROBE_TRUNCATED, 28, false },
	{ "nx.example", "A", PROBE_RCODE, 3, false },
	{ "refused.example", "A", PROBE_RCODE, 5, false },
	{ "odd.example", "A", PROBE_RCODE, 11, false },
	{ "formerr.example", "A", PROBE_RCODE, 1, false },
	{ "cut.example", "A", PROBE_NONSENSE, 0, false },
	{ "many.example", "A", PROBE_NONSENSE, 0, false },
	{ "loop.example", "A", PROBE_NONSENSE, 0, false },
	{ "long.example", "A", PROBE_NONSENSE, 0, false },
	{ "huge.example", "A", PROBE_NONSENSE, 0, false },
	{ "short.example", "A", PROBE_NONSENSE, 0, false },
	{ "id.example", "A", PROBE_QUESTION, 0, true },
	{ "name.example", "A", PROBE_QUESTION, 0, true },
	{ "type.example", "A", PROBE_QUESTION, 0, true },
	{ "question.example", "A", PROBE_QUESTION, 0, true },
	{ "silent.example", "A", PROBE_TIMEOUT, 0, true },
};
#define ROWS (sizeof(row) / sizeof(row[0]))

static void
each_reply_has_its_result(void **state)
{
	struct conf_check c[ROWS];
	struct health_target t[ROWS];
	char addr[32], name[ROWS][8];
	uint16_t port;
	struct bench b;
	pid_t pid = udp_server(&port, serve);
	size_t i;

	(void)state;
	bench_open(&b);
	for (i = 0; i < ROWS; i++) {
		c[i] = check_of(CHECK_DNS, i, name[i], row[i].waits);
		if (row[i].want == PROBE_QUESTION)
			c[i].timeout_ms = ANSWERED_MS;
		c[i].qname = row[i].qname;
		c[i].qtype = row[i].qtype;
		snprintf(addr, sizeof(addr), "127.0.1.%zu", i);
		t[i] = target(addr, port, &c[i]);
	}
	assert_int_equal(prober_set(b.p, t, ROWS), 0);
	bench_each(&b, ROWS);
	for (i = 0; i < ROWS; i++)
		if (b.got[i] == 0 || b.last[i] != row[i].want ||
		    b.detail[i] != row[i].detail)
			fail_msg("row %zu, %s: %zu results, %s (%u)", i,
			    row[i].qname, b.got[i],
			    probe_result_text(b.last[i]), b.detail[i]);
	bench_end(&b, pid);
}

int
main(void)
{
	const struct CMUnitTest test[] = {
		cmocka_unit_test(each_reply_has_its_result),
	};

	return PROBE_TESTS("probe_dns", test);
}
