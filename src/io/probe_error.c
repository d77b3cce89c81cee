/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ICMP errors about packets of the tunnels: a raw socket of each family, which
 * xlbd makes and keeps, and the prober reads. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/icmp.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/path_error.h"
#include "io/probe_wire.h"

#define MESSAGE_MAX 2048	/* bytes; an error is of 576 or 1280 at most */
#define OTHERS_MAX 64		/* messages; then xlbd says when to go on */

/* Of what is unreachable only for its size: hosts are told of many ports. */
static int
filter4_set(int fd)
{
	struct icmp_filter types = { ~(1U << ICMP_DEST_UNREACH) };
	struct sock_filter code[] = {
		BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 0),
		BPF_STMT(BPF_LD | BPF_B | BPF_IND, 1),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ICMP_FRAG_NEEDED, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	struct sock_fprog prog = { sizeof(code) / sizeof(code[0]), code };

	if (setsockopt(fd, SOL_RAW, ICMP_FILTER, &types, sizeof(types)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &prog,
	    sizeof(prog)) < 0)
		return -errno;
	return 0;
}

static int
filter6_set(int fd)
{
	struct icmp6_filter types;
	int one = 1;

	ICMP6_FILTER_SETBLOCKALL(&types);
	ICMP6_FILTER_SETPASS(ICMP6_PACKET_TOO_BIG, &types);
	if (setsockopt(fd, IPPROTO_ICMPV6, ICMP6_FILTER, &types,
	    sizeof(types)) < 0 || setsockopt(fd, IPPROTO_IPV6,
	    IPV6_RECVPKTINFO, &one, sizeof(one)) < 0)
		return -errno;
	return 0;
}

int
probe_error_socket(bool is4)
{
	int fd, rc;

	fd = socket(is4 ? AF_INET : AF_INET6, SOCK_RAW | SOCK_NONBLOCK |
	    SOCK_CLOEXEC, is4 ? IPPROTO_ICMP : IPPROTO_ICMPV6);
	if (fd < 0)
		return -errno;
	rc = is4 ? filter4_set(fd) : filter6_set(fd);
	if (rc == 0)
		return fd;
	close(fd);
	return rc;
}

/* What came, where to, and from whom. */
struct heard {
	uint8_t b[MESSAGE_MAX];
	size_t n;
	struct addr at, from;
	const uint8_t *message;	/* in b */
};

static struct addr
addr_of4(const uint8_t *b)
{
	struct addr a = { .b = { [10] = 0xff, [11] = 0xff } };

	memcpy(a.b + 12, b, 4);
	return a;
}

/* The kernel gives the IPv4 header, and has not looked at the sum. */
static bool
heard4(struct heard *h)
{
	size_t header = h->n < sizeof(struct iphdr) ? h->n :
	    (size_t)(h->b[0] & 15) * 4;

	if (header >= h->n || header < sizeof(struct iphdr) ||
	    probe_icmp_sum(h->b + header, h->n - header) != 0)
		return false;
	h->from = addr_of4(h->b + 12);
	h->at = addr_of4(h->b + 16);
	h->message = h->b + header;
	h->n -= header;
	return true;
}

static bool
heard6(struct heard *h, struct msghdr *msg)
{
	const struct sockaddr_in6 *from = msg->msg_name;
	struct in6_pktinfo info;
	struct cmsghdr *c;

	for (c = CMSG_FIRSTHDR(msg); c != NULL; c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level != IPPROTO_IPV6 ||
		    c->cmsg_type != IPV6_PKTINFO)
			continue;
		memcpy(&info, CMSG_DATA(c), sizeof(info));
		memcpy(h->at.b, &info.ipi6_addr, sizeof(h->at.b));
		memcpy(h->from.b, &from->sin6_addr, sizeof(h->from.b));
		h->message = h->b;
		return true;
	}
	return false;
}

/* 1: a message; 0: one that is none; -1, with errno. */
static int
message_take(int fd, bool is4, struct heard *h)
{
	union {
		struct cmsghdr align;
		char b[CMSG_SPACE(sizeof(struct in6_pktinfo))];
	} control;
	struct sockaddr_in6 from;
	struct iovec iov = { h->b, sizeof(h->b) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1,
	    .msg_name = &from, .msg_namelen = sizeof(from),
	    .msg_control = &control, .msg_controllen = sizeof(control) };
	ssize_t n;

	n = recvmsg(fd, &msg, MSG_DONTWAIT);
	if (n < 0)
		return -1;
	h->n = (size_t)n;
	if (msg.msg_flags & MSG_TRUNC)
		return 0;
	return is4 ? heard4(h) : heard6(h, &msg);
}

/* "BACKEND ROUTER", for probe_error_read(). */
static void
said_write(const struct path_error *e, const struct addr *from,
    struct probe_end *end)
{
	char to[ADDR_STR_MAX], by[ADDR_STR_MAX];

	snprintf(end->said, sizeof(end->said), "%s %s", addr_print(&e->to, to),
	    addr_print(from, by));
	end->detail = e->mtu;
	end->result = PROBE_OK;
}

bool
probe_error_end(int fd, const struct addr *family, uint16_t gue_port,
    uint16_t *others, struct probe_end *end)
{
	static struct heard h;
	bool is4 = addr_is4(family);
	struct path_error e;
	int rc;

	rc = message_take(fd, is4, &h);
	if (rc < 0) {
		end->result = PROBE_LOCAL;
		return errno != EAGAIN && errno != EINTR;
	}
	end->result = PROBE_TIMEOUT;
	if (rc == 0 || !path_error_parse(h.message, h.n, is4, &h.at, gue_port,
	    &e))
		return ++*others == OTHERS_MAX;
	said_write(&e, &h.from, end);
	return true;
}

bool
probe_error_read(const struct probe_end *end, struct addr *to,
    struct addr *from)
{
	char text[HEALTH_SAID_MAX], *by;

	memcpy(text, end->said, sizeof(text));
	by = strchr(text, ' ');
	if (end->result != PROBE_OK || by == NULL)
		return false;
	*by++ = '\0';
	return addr_parse(text, to) == 0 && addr_parse(by, from) == 0;
}
