/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Udp checks against a socket that echoes, and one that is not there. */
#include "udp_server.h"

/* Says "you said: ..." to all but "hush". */
static size_t
echo(const uint8_t *asked, size_t n, unsigned nth, uint8_t answer[DATAGRAM_MAX])
{
	if (nth > 0 || (n == 4 && memcmp(asked, "hush", 4) == 0))
		return 0;
	memcpy(answer, "you said: ", 10);
	memcpy(answer + 10, asked, n);
	return n + 10;
}

static const struct row {
	const char *send, *reply;
	bool there;		/* somebody listens */
	enum probe_result want;
} row[] = {
	{ "ping", "you said: ping", true, PROBE_OK },
	{ "ping", "said", true, PROBE_OK },
	{ "ping", NULL, true, PROBE_OK },
	{ NULL, "you said: ", true, PROBE_OK },
	{ "ping", "pong", true, PROBE_REPLY },
	{ "ping", "you said: ping!", true, PROBE_REPLY },
	{ "hush", NULL, true, PROBE_TIMEOUT },
	{ "ping", NULL, false, PROBE_REFUSED },
	{ NULL, NULL, false, PROBE_REFUSED },
};
#define ROWS (sizeof(row) / sizeof(row[0]))

static void
each_reply_has_its_result(void **state)
{
	struct conf_check c[ROWS];
	struct health_target t[ROWS];
	char addr[32], name[ROWS][8];
	uint16_t port, nobody;
	struct bench b;
	pid_t pid = udp_server(&port, echo);	/* has no other socket */
	int none = udp_bind(&nobody);
	size_t i;

	(void)state;
	close(none);
	bench_open(&b);
	for (i = 0; i < ROWS; i++) {
		c[i] = check_of(CHECK_UDP, i, name[i],
		    row[i].want == PROBE_TIMEOUT);
		c[i].send = row[i].send;
		c[i].reply = row[i].reply;
		snprintf(addr, sizeof(addr), "127.0.1.%zu", i);
		t[i] = target(addr, row[i].there ? port : nobody, &c[i]);
	}
	assert_int_equal(prober_set(b.p, t, ROWS), 0);
	bench_each(&b, ROWS);
	for (i = 0; i < ROWS; i++)
		if (b.got[i] == 0 || b.last[i] != row[i].want)
			fail_msg("row %zu: %zu results, %s", i, b.got[i],
			    probe_result_text(b.last[i]));
	bench_end(&b, pid);
}

int
main(void)
{
	const struct CMUnitTest test[] = {
		cmocka_unit_test(each_reply_has_its_result),
	};

	net_own();
	return PROBE_TESTS("probe_udp", test);
}
