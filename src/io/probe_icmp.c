/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An icmp check: an echo request (RFC 792, RFC 4443), whose reply has to be the
 * same but for its type. */
#include <errno.h>
#include <linux/icmp.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "io/probe_wire.h"

#define COOKIE 32		/* bytes that nobody can guess */

struct echo {
	uint8_t type, code;
	uint16_t sum;		/* of ICMPv6: the kernel's */
	uint16_t id, sequence;
	uint8_t cookie[COOKIE];
};

/*
 * A raw socket, since one of SOCK_DGRAM depends on what net.ipv4.
 * ping_group_range says in this namespace. It is given echo replies alone, and
 * once it is connected, those of its peer.
 */
static int
filter_set(int fd, bool is4)
{
	struct icmp_filter types = { ~(1U << ICMP_ECHOREPLY) };
	struct icmp6_filter types6;

	if (is4)
		return setsockopt(fd, SOL_RAW, ICMP_FILTER, &types,
		    sizeof(types)) < 0 ? -errno : 0;
	ICMP6_FILTER_SETBLOCKALL(&types6);
	ICMP6_FILTER_SETPASS(ICMP6_ECHO_REPLY, &types6);
	return setsockopt(fd, IPPROTO_ICMPV6, ICMP6_FILTER, &types6,
	    sizeof(types6)) < 0 ? -errno : 0;
}

/* Errors on the way are heard of, as in other checks. Not before it is
 * connected: it would hear of those of all others. */
static bool
errors_want(int fd, bool is4)
{
	int one = 1;

	return setsockopt(fd, is4 ? IPPROTO_IP : IPPROTO_IPV6,
	    is4 ? IP_RECVERR : IPV6_RECVERR, &one, sizeof(one)) == 0;
}

int
probe_icmp_socket(const struct addr *to)
{
	bool is4 = addr_is4(to);
	int fd, rc;

	fd = socket(addr_family(to), SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC,
	    is4 ? IPPROTO_ICMP : IPPROTO_ICMPV6);
	if (fd < 0)
		return -errno;
	rc = filter_set(fd, is4);
	if (rc < 0) {
		close(fd);
		return rc;
	}
	return fd;
}

uint16_t
probe_icmp_sum(const void *b, size_t len)
{
	const uint8_t *at = b;
	uint32_t sum = 0;
	uint16_t word;

	for (; len >= sizeof(word); at += sizeof(word), len -= sizeof(word)) {
		memcpy(&word, at, sizeof(word));
		sum += word;
	}
	if (len > 0) {
		word = 0;
		memcpy(&word, at, 1);
		sum += word;
	}
	while (sum >> 16 != 0)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

/* A request of `len` bytes, padded with zeros: their sum is 0, too. NULL: there
 * is no memory, or no chance. */
static struct probe_asked *
echo_new(bool is4, size_t len)
{
	struct probe_asked *a = calloc(1, sizeof(*a) + len);
	struct echo e;

	if (a == NULL || getrandom(&e, sizeof(e), 0) != sizeof(e)) {
		free(a);
		return NULL;
	}
	e.type = is4 ? ICMP_ECHO : ICMP6_ECHO_REQUEST;
	e.code = 0;
	e.sum = 0;
	if (is4)
		e.sum = probe_icmp_sum(&e, sizeof(e));
	a->len = len;
	memcpy(a->b, &e, sizeof(e));
	return a;
}

bool
probe_icmp_begin(int fd, const struct addr *to, uint16_t size,
    struct probe_asked **asked, struct probe_end *end)
{
	size_t header = addr_is4(to) ? sizeof(struct iphdr) :
	    sizeof(struct ip6_hdr), len = sizeof(struct echo);

	if (size > header + len)
		len = size - header;
	*asked = echo_new(addr_is4(to), len);
	if (probe_datagram_connect(fd, to, 0, end))
		return true;
	if (*asked == NULL || !errors_want(fd, addr_is4(to))) {
		end->result = PROBE_LOCAL;
		return true;
	}
	return probe_datagram_send(fd, (*asked)->b, (*asked)->len, end);
}

/* The message in what a raw socket gives, which has the IPv4 header, but not
 * the IPv6 one. Its length; 0: none whose sum is right. */
static size_t
message_find(const struct addr *to, const uint8_t *got, size_t n,
    const uint8_t **at)
{
	size_t header;

	*at = got;
	if (!addr_is4(to))
		return n;	/* the kernel looked at the sum */
	header = n < sizeof(struct iphdr) ? n : (size_t)(got[0] & 15) * 4;
	if (header >= n)
		return 0;
	*at = got + header;
	n -= header;
	return probe_icmp_sum(*at, n) == 0 ? n : 0;
}

/* Replies to whoever else asks the backend come here too. */
bool
probe_icmp_end(int fd, const struct addr *to, const struct probe_asked *asked,
    struct probe_end *end)
{
	const uint8_t *got, *at;
	struct echo sent, e;
	ssize_t n;
	size_t len;

	n = probe_datagram_take(fd, &got, end);
	if (n < 0)
		return n == -2;
	memcpy(&sent, asked->b, sizeof(sent));
	len = message_find(to, got, (size_t)n, &at);
	if (len < offsetof(struct echo, cookie))
		return false;
	memset(&e, 0, sizeof(e));
	memcpy(&e, at, len < sizeof(e) ? len : sizeof(e));
	if (e.type != (addr_is4(to) ? ICMP_ECHOREPLY : ICMP6_ECHO_REPLY) ||
	    e.code != 0 || e.id != sent.id || e.sequence != sent.sequence)
		return false;
	/* perhaps a forged one: the real one may still come */
	end->result = PROBE_ECHO;
	if (len != asked->len || memcmp(e.cookie, sent.cookie, COOKIE) != 0)
		return false;
	end->result = PROBE_OK;
	return true;
}
