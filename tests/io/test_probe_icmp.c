/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Icmp checks in a network namespace whose kernel answers no echo over IPv4, so
 * that somebody here can, well or not. Over IPv6 the kernel does. */
#include "probe_test.h"

#include <netinet/icmp6.h>
#include <netinet/ip_icmp.h>

enum how { HONEST, ID, SEQUENCE, COOKIE, SHORT, LONG, SUM, CODE, SILENT,
	UNREACHABLE, FORGED_FIRST, TWICE };

/* Its address is 127.0.1.i */
static const struct row {
	enum how how;
	enum probe_result want;
	bool waits;
} row[] = {
	{ HONEST, PROBE_OK, false },
	{ TWICE, PROBE_OK, false },
	{ FORGED_FIRST, PROBE_OK, false },
	{ ID, PROBE_TIMEOUT, true },
	{ SEQUENCE, PROBE_TIMEOUT, true },
	{ CODE, PROBE_TIMEOUT, true },
	{ SUM, PROBE_TIMEOUT, true },
	{ COOKIE, PROBE_ECHO, true },
	{ SHORT, PROBE_ECHO, true },
	{ LONG, PROBE_ECHO, true },
	{ SILENT, PROBE_TIMEOUT, true },
	{ UNREACHABLE, PROBE_UNREACHABLE, false },
};
#define ROWS (sizeof(row) / sizeof(row[0]))

static uint16_t
sum_of(const uint8_t *b, size_t n)
{
	uint32_t sum = 0;
	size_t i;

	for (i = 0; i + 1 < n; i += 2)
		sum += (uint32_t)b[i] << 8 | b[i + 1];
	while (sum >> 16 != 0)
		sum = (sum & 0xffff) + (sum >> 16);
	return htons((uint16_t)~sum);
}

/* The IP header is `b`'s as it came, with the addresses swapped. */
static void
reply_send(int fd, const uint8_t *ip, uint8_t *m, size_t n, bool bad_sum)
{
	struct sockaddr_in to = { .sin_family = AF_INET };
	uint8_t out[256];
	uint16_t sum;

	memcpy(out, ip, 20);
	memcpy(out + 12, ip + 16, 4);
	memcpy(out + 16, ip + 12, 4);
	memset(m + 2, 0, 2);
	sum = (uint16_t)(sum_of(m, n) ^ bad_sum);
	memcpy(m + 2, &sum, sizeof(sum));
	memcpy(out + 20, m, n);
	memcpy(&to.sin_addr, out + 16, 4);
	sendto(fd, out, 20 + n, 0, (struct sockaddr *)&to, sizeof(to));
}

static void
answer(int fd, const uint8_t *ip, const uint8_t *asked, size_t n, enum how how)
{
	uint8_t m[256] = { 0 };

	memcpy(m, asked, n);
	m[0] = ICMP_ECHOREPLY;
	switch (how) {
	case SILENT:
		return;
	case UNREACHABLE:	/* quotes the packet that came */
		memset(m, 0, 8);
		m[0] = ICMP_DEST_UNREACH;
		m[1] = ICMP_HOST_UNREACH;
		memcpy(m + 8, ip, 20);
		memcpy(m + 28, asked, n);
		n += 28;
		break;
	case FORGED_FIRST:
		m[n - 1] ^= 1;
		reply_send(fd, ip, m, n, false);
		m[n - 1] ^= 1;
		break;
	case TWICE:
		reply_send(fd, ip, m, n, false);
		break;
	case ID:
		m[4] ^= 1;
		break;
	case SEQUENCE:
		m[7] ^= 1;
		break;
	case COOKIE:
		m[n - 1] ^= 1;
		break;
	case SHORT:
		n -= 2;
		break;
	case LONG:
		n += 2;
		break;
	case CODE:
		m[1] = 1;
		break;
	default:
		break;
	}
	reply_send(fd, ip, m, n, how == SUM);
}

static pid_t
liar_start(void)
{
	int fd = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP);
	int one = 1;
	uint8_t got[256];
	ssize_t n;
	pid_t pid;

	assert_true(fd >= 0);
	assert_int_equal(setsockopt(fd, IPPROTO_IP, IP_HDRINCL, &one,
	    sizeof(one)), 0);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;) {
			n = recv(fd, got, sizeof(got) / 2, 0);
			if (n > 28 && got[20] == ICMP_ECHO && got[18] == 1 &&
			    got[19] < ROWS)
				answer(fd, got, got + 20, (size_t)n - 20,
				    row[got[19]].how);
		}
	}
	close(fd);
	return pid;
}

static void
each_reply_has_its_result(void **state)
{
	struct conf_check c[ROWS];
	struct health_target t[ROWS];
	char addr[32], name[ROWS][8];
	struct bench b;
	pid_t pid = liar_start();
	size_t i;

	(void)state;
	bench_open(&b);
	for (i = 0; i < ROWS; i++) {
		c[i] = check_of(CHECK_ICMP, i, name[i], row[i].waits);
		if (row[i].want == PROBE_ECHO)
			c[i].timeout_ms = ANSWERED_MS;
		snprintf(addr, sizeof(addr), "127.0.1.%zu", i);
		t[i] = target(addr, 0, &c[i]);
	}
	assert_int_equal(prober_set(b.p, t, ROWS), 0);
	bench_each(&b, ROWS);
	for (i = 0; i < ROWS; i++)
		if (b.got[i] == 0 || b.last[i] != row[i].want)
			fail_msg("row %zu: %zu results, %s", i, b.got[i],
			    probe_result_text(b.last[i]));
	bench_end(&b, pid);
}

/* The kernel's own answers, and an address without a route. */
static void
the_kernel_answers_over_ipv6(void **state)
{
	struct conf_check c = check_tcp(NEVER_MS, 60000);
	struct health_target t[2];
	struct bench b;

	(void)state;
	c.type = CHECK_ICMP;
	t[0] = target("::1", 0, &c);
	t[1] = target("2001:db8::1", 0, &c);
	bench_open(&b);
	assert_int_equal(prober_set(b.p, t, 2), 0);
	bench_each(&b, 2);
	assert_int_equal(b.last[0], PROBE_OK);
	assert_int_equal(b.last[1], PROBE_UNREACHABLE);
	bench_close(&b);
}

/* Many at once ask the same kernel: each hears its own answer. */
static void
replies_are_not_mixed_up(void **state)
{
	struct conf_check c[200];
	struct health_target t[200];
	char name[200][8];
	struct bench b;
	size_t i;

	(void)state;
	bench_open(&b);
	for (i = 0; i < 200; i++) {
		c[i] = check_of(CHECK_ICMP, 1000 + i, name[i], false);
		t[i] = target("::1", 0, &c[i]);
	}
	assert_int_equal(prober_set(b.p, t, 200), 0);
	bench_each(&b, 200);
	for (i = 0; i < 200; i++) {
		if (b.got[i] == 0 || b.last[i] != PROBE_OK)
			fail_msg("%zu: %zu results, %s", i, b.got[i],
			    probe_result_text(b.last[i]));
	}
	bench_close(&b);
}

static const uint16_t sizes[] = { 81, 576, 1281, 1500, 9000 };
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))
static size_t answered, turns;

static bool
loopback_ask(size_t id, struct path_question *q, void *arg)
{
	(void)arg;
	assert_true(id < SIZES);
	if (turns++ == 0)
		return false;	/* asked again later */
	memset(q, 0, sizeof(*q));
	q->vip.b[15] = 1;	/* ::1 */
	q->mark = 1;
	q->size = sizes[id];
	return true;
}

static uint32_t
loopback_said(size_t id, enum probe_result r, void *arg)
{
	(void)id, (void)arg;
	/* half a second is not enough for a busy machine: once more */
	if (r == PROBE_TIMEOUT)
		return 10;
	assert_int_equal(r, PROBE_OK);
	answered++;
	return NEVER_MS;
}

/* As large as asked, and in one piece: a socket here sees them, too. */
static void
paths_are_asked_in_full_size(void **state)
{
	int fd = socket(AF_INET6, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK,
	    IPPROTO_ICMPV6);
	struct icmp6_filter requests;
	static uint8_t got[65536];
	struct bench b;
	size_t i, seen = 0;
	ssize_t n;

	(void)state;
	ICMP6_FILTER_SETBLOCKALL(&requests);
	ICMP6_FILTER_SETPASS(ICMP6_ECHO_REQUEST, &requests);
	assert_true(fd >= 0);
	assert_int_equal(setsockopt(fd, IPPROTO_ICMPV6, ICMP6_FILTER,
	    &requests, sizeof(requests)), 0);
	bench_open(&b);
	assert_int_equal(prober_paths(b.p, SIZES, loopback_ask, loopback_said),
	    0);
	while (answered < SIZES && probe_now().ns < b.begin + ENOUGH_NS)
		bench_run(&b, 100, SIZE_MAX);
	assert_int_equal(answered, SIZES);
	while ((n = recv(fd, got, sizeof(got), 0)) >= 0)
		for (i = 0; i < SIZES; i++)
			if (n == sizes[i] - 40)
				seen |= 1U << i;
	assert_int_equal(seen, (1U << SIZES) - 1);
	close(fd);
	/* none left: nothing is asked, and nothing is held */
	assert_int_equal(prober_paths(b.p, 0, loopback_ask, loopback_said), 0);
	bench_idle(&b);
	bench_close(&b);
}

static int
namespace_enter(void)
{
	int file;

	if (!net_own())
		return -1;
	file = open("/proc/sys/net/ipv4/icmp_echo_ignore_all",
	    O_WRONLY | O_CLOEXEC);
	if (write(file, "1", 1) != 1)
		return -1;
	return close(file);
}

int
main(void)
{
	const struct CMUnitTest test[] = {
		cmocka_unit_test(each_reply_has_its_result),
		cmocka_unit_test(the_kernel_answers_over_ipv6),
		cmocka_unit_test(replies_are_not_mixed_up),
		cmocka_unit_test(paths_are_asked_in_full_size),
	};

	if (namespace_enter() < 0) {
		puts("1..0 # SKIP needs root and a network namespace");
		return 0;
	}
	return cmocka_run_group_tests_name("probe_icmp", test, NULL, NULL);
}
