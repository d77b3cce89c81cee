/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Udp checks against a socket that echoes, and one that is not there. */
#include "probe_test.h"

static int
udp_bind(uint16_t *port)
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	socklen_t len = sizeof(in);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), on = 1;

	/* answers leave from the address that was asked */
	setsockopt(fd, IPPROTO_IP, IP_PKTINFO, &on, sizeof(on));
	assert_int_equal(bind(fd, (struct sockaddr *)&in, sizeof(in)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&in, &len), 0);
	*port = ntohs(in.sin_port);
	return fd;
}

/* Says "you said: ..." to all but "hush"; the control message that came with
 * the question, sent back, is the source address. */
static _Noreturn void
echo(int fd)
{
	char buf[2048] = "you said: ", control[256];
	struct sockaddr_in from;
	struct iovec iov;
	struct msghdr msg;
	ssize_t n;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		iov = (struct iovec){ buf + 10, sizeof(buf) - 10 };
		msg = (struct msghdr){ .msg_name = &from,
		    .msg_namelen = sizeof(from), .msg_iov = &iov,
		    .msg_iovlen = 1, .msg_control = control,
		    .msg_controllen = sizeof(control) };
		n = recvmsg(fd, &msg, 0);
		if (n < 0 || (n == 4 && memcmp(buf + 10, "hush", 4) == 0))
			continue;
		iov = (struct iovec){ buf, (size_t)n + 10 };
		sendmsg(fd, &msg, 0);
	}
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
	int fd = udp_bind(&port), none = udp_bind(&nobody);
	pid_t pid;
	size_t i;

	(void)state;
	close(none);
	pid = fork();
	if (pid == 0)
		echo(fd);
	close(fd);
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
	assert_int_equal(prober_set(b.p, NULL, 0), 0);
	bench_run(&b, 100, b.total + 1);
	assert_int_equal(fds_of(prober_pid(b.p)), 5);
	bench_close(&b);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

int
main(void)
{
	const struct CMUnitTest test[] = {
		cmocka_unit_test(each_reply_has_its_result),
	};

	if (geteuid() != 0) {
		puts("1..0 # SKIP needs root: looks at the prober in /proc");
		return 0;
	}
	return cmocka_run_group_tests_name("probe_udp", test, NULL, NULL);
}
