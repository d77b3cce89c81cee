/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A process that answers datagrams on every address of lo. */
#ifndef XLB_UDP_SERVER_H
#define XLB_UDP_SERVER_H

#include "probe_test.h"

#define DATAGRAM_MAX 65000

/* Makes answer number `nth` (from 0) to the `n` bytes asked: its length, 0: no
 * more of them. */
typedef size_t (*answer_fn)(const uint8_t *asked, size_t n, unsigned nth,
    uint8_t answer[DATAGRAM_MAX]);

static inline int
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

/* The control message that came with the question, sent back, is the source
 * address. */
static inline _Noreturn void
udp_serve(int fd, answer_fn fn)
{
	static uint8_t answer[DATAGRAM_MAX];
	uint8_t asked[2048];
	char control[256];
	struct sockaddr_in from;
	struct iovec iov;
	struct msghdr msg;
	unsigned nth;
	ssize_t n;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		iov = (struct iovec){ asked, sizeof(asked) };
		msg = (struct msghdr){ .msg_name = &from,
		    .msg_namelen = sizeof(from), .msg_iov = &iov,
		    .msg_iovlen = 1, .msg_control = control,
		    .msg_controllen = sizeof(control) };
		n = recvmsg(fd, &msg, 0);
		msg.msg_iov = &iov;
		for (nth = 0; n >= 0; nth++) {
			iov = (struct iovec){ answer,
			    fn(asked, (size_t)n, nth, answer) };
			if (iov.iov_len == 0)
				break;
			sendmsg(fd, &msg, 0);
		}
	}
}

static inline pid_t
udp_server(uint16_t *port, answer_fn fn)
{
	int fd = udp_bind(port);
	pid_t pid = fork();

	if (pid == 0)
		udp_serve(fd, fn);
	close(fd);
	return pid;
}

#endif
