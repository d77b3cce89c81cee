/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A tcp check: a connection that is made, and taken down by RST. */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "io/probe_wire.h"

int
probe_tcp_socket(const struct addr *to)
{
	/* close sends RST: TIME_WAIT would use up the local ports */
	const struct linger abort_on_close = { .l_onoff = 1 };
	int fd, rc;

	fd = socket(addr_family(to), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
	    IPPROTO_TCP);
	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_SOCKET, SO_LINGER, &abort_on_close,
	    sizeof(abort_on_close)) < 0) {
		rc = -errno;
		close(fd);
		return rc;
	}
	return fd;
}

/* `sync`: connect() itself said it, so nothing came over the network. */
enum probe_result
probe_errno(int err, bool sync)
{
	switch (err) {
	case 0:
		return PROBE_OK;
	case ETIMEDOUT:
		return PROBE_TIMEOUT;
	case ECONNREFUSED:
		return PROBE_REFUSED;
	case ECONNRESET:
	case EPIPE:
		return PROBE_RESET;
	case ENETUNREACH:
	case EHOSTUNREACH:
	case ENETDOWN:
	case EHOSTDOWN:
	case ENONET:
		return PROBE_UNREACHABLE;
	case EACCES:		/* ICMPv6: administratively prohibited */
	case EPROTO:		/* ICMPv6: parameter problem */
	case ENOPROTOOPT:	/* ICMP: protocol unreachable */
	case EOPNOTSUPP:	/* ICMP: source route failed */
	case EMSGSIZE:
		return sync ? PROBE_LOCAL : PROBE_UNREACHABLE;
	default:
		return PROBE_LOCAL;
	}
}

/* Nobody listens on a local port, and the kernel chose that very port for our
 * end: TCP then connects to itself (RFC 9293, 3.5, simultaneous open). */
static bool
connected_to_self(int fd, const struct addr *to, uint16_t port)
{
	struct sockaddr_storage self, peer;
	socklen_t len = sizeof(self), want;

	memset(&self, 0, sizeof(self));
	want = addr_sockaddr(to, port, &peer);
	return getsockname(fd, (struct sockaddr *)&self, &len) == 0 &&
	    len == want && memcmp(&self, &peer, len) == 0;
}

bool
probe_tcp_begin(int fd, const struct addr *to, uint16_t port,
    enum probe_result *r)
{
	struct sockaddr_storage ss;
	socklen_t len = addr_sockaddr(to, port, &ss);

	if (connect(fd, (const struct sockaddr *)&ss, len) == 0) {
		*r = connected_to_self(fd, to, port) ? PROBE_REFUSED : PROBE_OK;
		return true;
	}
	if (errno == EINPROGRESS || errno == EINTR)
		return false;
	*r = probe_errno(errno, true);
	return true;
}

enum probe_result
probe_tcp_end(int fd, const struct addr *to, uint16_t port)
{
	int err = 0;
	socklen_t len = sizeof(err);

	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len) < 0)
		return PROBE_LOCAL;
	if (err == 0 && connected_to_self(fd, to, port))
		return PROBE_REFUSED;
	return probe_errno(err, false);
}

enum probe_result
probe_tcp_result(int err)
{
	return err == 0 ? PROBE_CLOSED : probe_errno(err, false);
}
