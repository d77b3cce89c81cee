/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The sockets that xlbd makes and the prober connects. */
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "io/probe_wire.h"

int
probe_socket(enum probe_request_kind kind, const struct addr *to)
{
	switch (kind) {
	case PROBE_REQUEST_UDP:
	case PROBE_REQUEST_DNS:
		return probe_udp_socket(to);
	case PROBE_REQUEST_ICMP:
		return probe_icmp_socket(to);
	default:
		return probe_tcp_socket(to);
	}
}

int
probe_socket_whole(int fd, const struct addr *to)
{
	int v4 = IP_PMTUDISC_PROBE, v6 = IPV6_PMTUDISC_PROBE, rc;

	rc = addr_is4(to) ?
	    setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &v4, sizeof(v4)) :
	    setsockopt(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, &v6, sizeof(v6));
	return rc < 0 ? -errno : 0;
}

/* The local port is chosen at connect(), when the peer is known. */
int
probe_socket_mark(int fd, uint32_t mark, const struct addr *src)
{
	struct sockaddr_storage ss;
	socklen_t len = addr_sockaddr(src, 0, &ss);
	int one = 1;

	if (setsockopt(fd, SOL_SOCKET, SO_MARK, &mark, sizeof(mark)) < 0)
		return -errno;
	if (addr_is_zero(src))
		return 0;
	/* ENOPROTOOPT: a raw IPv6 socket, which has no port */
	if ((setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one,
	    sizeof(one)) < 0 && errno != ENOPROTOOPT) ||
	    bind(fd, (const struct sockaddr *)&ss, len) < 0)
		return -errno;
	return 0;
}
