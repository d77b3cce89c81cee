/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An udp check: a datagram is sent, and the first that comes back decides. */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
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

struct probe_asked *
probe_asked_new(const void *b, size_t len)
{
	struct probe_asked *a = malloc(sizeof(*a) + len);

	if (a == NULL)
		return NULL;
	a->len = len;
	memcpy(a->b, b, len);
	return a;
}

bool
probe_datagram_connect(int fd, const struct addr *to, uint16_t port,
    struct probe_end *end)
{
	struct sockaddr_storage ss;
	socklen_t sslen = addr_sockaddr(to, port, &ss);

	/* connected, it hears of ICMP errors, and of nobody else */
	if (connect(fd, (const struct sockaddr *)&ss, sslen) == 0)
		return false;
	end->result = probe_errno(errno, true);
	return true;
}

bool
probe_datagram_send(int fd, const void *b, size_t len, struct probe_end *end)
{
	if (send(fd, b, len, MSG_NOSIGNAL) >= 0)
		return false;
	end->result = probe_errno(errno, true);
	return true;
}

ssize_t
probe_datagram_take(int fd, const uint8_t **got, struct probe_end *end)
{
	static uint8_t buf[REPLY_MAX];
	ssize_t n;

	n = recv(fd, buf, sizeof(buf), MSG_DONTWAIT);
	if (n >= 0) {
		*got = buf;
		return n;
	}
	if (errno == EAGAIN || errno == EINTR)
		return -1;	/* its checksum was wrong */
	end->result = probe_errno(errno, false);
	return -2;
}

bool
probe_udp_begin(int fd, const struct addr *to, uint16_t port,
    const struct probe_check *check, struct probe_asked **asked,
    struct probe_end *end)
{
	*asked = probe_asked_new(check->reply, strlen(check->reply));
	if (*asked == NULL) {
		end->result = PROBE_LOCAL;
		return true;
	}
	return probe_datagram_connect(fd, to, port, end) ||
	    probe_datagram_send(fd, check->send, strlen(check->send), end);
}

bool
probe_udp_end(int fd, const struct probe_asked *asked, struct probe_end *end)
{
	const uint8_t *got;
	ssize_t n;

	n = probe_datagram_take(fd, &got, end);
	if (n < 0)
		return n == -2;
	end->result = asked->len > 0 && memmem(got, (size_t)n, asked->b,
	    asked->len) == NULL ? PROBE_REPLY : PROBE_OK;
	return true;
}
