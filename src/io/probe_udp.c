/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An udp check: a datagram is sent, and the first that comes back decides. */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "io/probe_wire.h"

#define REPLY_MAX 65536		/* no datagram is longer */

int
probe_udp_socket(const struct addr *to)
{
	int fd = socket(addr_family(to), SOCK_DGRAM | SOCK_NONBLOCK |
	    SOCK_CLOEXEC, IPPROTO_UDP);

	return fd < 0 ? -errno : fd;
}

bool
probe_udp_begin(int fd, const struct addr *to, uint16_t port,
    const struct probe_check *check, enum probe_result *r)
{
	struct sockaddr_storage ss;
	socklen_t len = addr_sockaddr(to, port, &ss);

	/* connected, it hears of ICMP errors, and of nobody else */
	if (connect(fd, (const struct sockaddr *)&ss, len) == 0 &&
	    send(fd, check->send, strlen(check->send), MSG_NOSIGNAL) >= 0)
		return false;
	*r = probe_errno(errno, true);
	return true;
}

bool
probe_udp_end(int fd, const char *reply, enum probe_result *r)
{
	static char got[REPLY_MAX];
	size_t len = strlen(reply);
	ssize_t n;

	n = recv(fd, got, sizeof(got), MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;	/* its checksum was wrong */
	if (n < 0)
		*r = probe_errno(errno, false);
	else if (len > 0 && memmem(got, (size_t)n, reply, len) == NULL)
		*r = PROBE_REPLY;
	else
		*r = PROBE_OK;
	return true;
}
