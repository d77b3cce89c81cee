/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What routers say of the tunnels' packets, in a network namespace where nobody
 * else says anything: from a raw socket to the prober's. */
#include "probe_test.h"

#include <netinet/icmp6.h>
#include <netinet/ip_icmp.h>

#define GUE 6080

static struct {
	struct addr to, from;
	uint16_t mtu;
	size_t n;
} heard;

static void
error_heard(const struct addr *to, const struct addr *from, uint16_t mtu,
    void *arg)
{
	(void)arg;
	heard.to = *to;
	heard.from = *from;
	heard.mtu = mtu;
	heard.n++;
}

/* Until `n` have been heard, or for a minute. */
static void
hear(struct bench *b, size_t n)
{
	int64_t until = probe_now().ns + ENOUGH_NS;

	while (heard.n < n && probe_now().ns < until)
		bench_run(b, 20, SIZE_MAX);
}

static void
is(const char *to, const char *from, uint16_t mtu)
{
	char buf[ADDR_STR_MAX];

	assert_string_equal(addr_print(&heard.to, buf), to);
	assert_string_equal(addr_print(&heard.from, buf), from);
	assert_int_equal(heard.mtu, mtu);
}

/* From a loopback address to 127.0.0.1, about a packet to 10.0.1.11. */
static void
send4(uint8_t proto, uint8_t code, uint16_t mtu, bool bad_sum)
{
	struct sockaddr_in me = { .sin_family = AF_INET },
		to = { .sin_family = AF_INET };
	uint8_t m[36] = { ICMP_DEST_UNREACH, code, 0, 0, 0, 0,
	    (uint8_t)(mtu >> 8), (uint8_t)mtu, 0x45 };
	int fd = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP);
	uint16_t sum;

	m[8 + 9] = proto;
	inet_pton(AF_INET, "127.0.0.1", m + 8 + 12);
	inet_pton(AF_INET, "10.0.1.11", m + 8 + 16);
	m[28 + 2] = GUE >> 8;
	m[28 + 3] = GUE & 255;
	sum = (uint16_t)(probe_icmp_sum(m, sizeof(m)) ^ bad_sum);
	memcpy(m + 2, &sum, sizeof(sum));
	inet_pton(AF_INET, "127.0.0.9", &me.sin_addr);
	inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
	assert_int_equal(bind(fd, (struct sockaddr *)&me, sizeof(me)), 0);
	assert_int_equal(sendto(fd, m, sizeof(m), 0, (struct sockaddr *)&to,
	    sizeof(to)), sizeof(m));
	close(fd);
}

/* From ::1 to itself, about a packet to 2001:db8::11; the kernel puts the sum. */
static void
send6(uint8_t proto, uint32_t mtu)
{
	struct sockaddr_in6 to = { .sin6_family = AF_INET6,
		.sin6_addr = IN6ADDR_LOOPBACK_INIT };
	uint8_t m[56] = { ICMP6_PACKET_TOO_BIG, 0, 0, 0, (uint8_t)(mtu >> 24),
	    (uint8_t)(mtu >> 16), (uint8_t)(mtu >> 8), (uint8_t)mtu, 0x60 };
	int fd = socket(AF_INET6, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMPV6);

	m[8 + 6] = proto;
	inet_pton(AF_INET6, "::1", m + 8 + 8);
	inet_pton(AF_INET6, "2001:db8::11", m + 8 + 24);
	assert_int_equal(sendto(fd, m, sizeof(m), 0, (struct sockaddr *)&to,
	    sizeof(to)), sizeof(m));
	close(fd);
}

static void
errors_are_heard(void **state)
{
	struct bench b;
	size_t i;

	(void)state;
	memset(&heard, 0, sizeof(heard));
	bench_open(&b);
	assert_int_equal(prober_errors(b.p, GUE, error_heard), 0);
	bench_run(&b, 100, SIZE_MAX);
	send4(IPPROTO_IPIP, ICMP_FRAG_NEEDED, 1400, false);
	hear(&b, 1);
	is("10.0.1.11", "127.0.0.9", 1400);
	send6(IPPROTO_IPV6, 1380);
	hear(&b, 2);
	is("2001:db8::11", "::1", 1380);
	send4(IPPROTO_UDP, ICMP_FRAG_NEEDED, 1300, false);
	hear(&b, 3);
	is("10.0.1.11", "127.0.0.9", 1300);
	/* what is none, and more of it than is read at once */
	for (i = 0; i < 100; i++) {
		send4(IPPROTO_TCP, ICMP_FRAG_NEEDED, 1200, false);
		send4(IPPROTO_IPIP, ICMP_PORT_UNREACH, 1200, false);
		send6(IPPROTO_ICMPV6, 1280);
	}
	send4(IPPROTO_IPIP, ICMP_FRAG_NEEDED, 1200, true);
	send4(IPPROTO_IPIP, ICMP_FRAG_NEEDED, 1399, false);
	hear(&b, 4);
	is("10.0.1.11", "127.0.0.9", 1399);
	assert_int_equal(heard.n, 4);
	/* those that come together are all heard */
	for (i = 0; i < 50; i++)
		send4(IPPROTO_IPIP, ICMP_FRAG_NEEDED, (uint16_t)(1000 + i),
		    false);
	hear(&b, 54);
	is("10.0.1.11", "127.0.0.9", 1049);
	bench_close(&b);
}

/* What comes meanwhile waits in the socket. */
static void
a_new_prober_hears_them_too(void **state)
{
	struct bench b;
	size_t mine;
	pid_t before;

	(void)state;
	memset(&heard, 0, sizeof(heard));
	bench_open(&b);
	assert_int_equal(prober_errors(b.p, GUE, error_heard), 0);
	/* its three, its socket, its epoll set, and one of each family */
	BENCH_HOLDS(&b, 7);
	mine = fds_of(getpid());
	before = prober_pid(b.p);
	kill(before, SIGSTOP);
	process_await(before, "T");
	send4(IPPROTO_IPIP, ICMP_FRAG_NEEDED, 1400, false);
	kill(before, SIGKILL);
	hear(&b, 1);
	is("10.0.1.11", "127.0.0.9", 1400);
	BENCH_AWAIT(&b, prober_pid(b.p) != before && prober_pid(b.p) != 0);
	/* another port: the sockets are others, and as many */
	assert_int_equal(prober_errors(b.p, GUE + 1, error_heard), 0);
	assert_int_equal(prober_errors(b.p, GUE + 1, error_heard), 0);
	bench_run(&b, 100, SIZE_MAX);
	BENCH_HOLDS(&b, 7);
	assert_int_equal(fds_of(getpid()), mine);
	send4(IPPROTO_UDP, ICMP_FRAG_NEEDED, 1300, false);
	send4(IPPROTO_IPIP, ICMP_FRAG_NEEDED, 1200, false);
	hear(&b, 2);
	is("10.0.1.11", "127.0.0.9", 1200);
	assert_int_equal(heard.n, 2);
	bench_close(&b);
}

int
main(void)
{
	const struct CMUnitTest test[] = {
		cmocka_unit_test(errors_are_heard),
		cmocka_unit_test(a_new_prober_hears_them_too),
	};

	if (!net_own()) {
		puts("1..0 # SKIP needs root and a network namespace");
		return 0;
	}
	return cmocka_run_group_tests_name("probe_error", test, NULL, NULL);
}
