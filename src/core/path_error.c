/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads ICMP errors about packets of the tunnels. */
#include "core/path_error.h"

#include <netinet/in.h>
#include <string.h>

#define HEADER		8	/* of the message; then what it quotes */
#define TYPE_IP4	3	/* destination unreachable */
#define CODE_IP4	4	/* fragmentation needed and DF set */
#define TYPE_IP6	2	/* packet too big */
#define IP4_MIN		20
#define IP6_HEADER	40
#define QUOTED_LEAST	8	/* behind the IP header (RFC 792) */

static uint32_t
number(const uint8_t *b, size_t bytes)
{
	uint32_t n = 0;

	while (bytes-- > 0)
		n = n << 8 | *b++;
	return n;
}

static struct addr
addr4(const uint8_t *b)
{
	struct addr a = { .b = { [10] = 0xff, [11] = 0xff } };

	memcpy(a.b + 12, b, 4);
	return a;
}

static struct addr
addr6(const uint8_t *b)
{
	struct addr a;

	memcpy(a.b, b, sizeof(a.b));
	return a;
}

/* What xlb sends to backends. `l4`: what is quoted behind the IP header. */
static bool
is_tunnel(uint8_t proto, const uint8_t *l4, uint16_t gue_port)
{
	return proto == IPPROTO_IPIP || proto == IPPROTO_IPV6 ||
	    (proto == IPPROTO_UDP && number(l4 + 2, 2) == gue_port);
}

bool
path_error_parse(const uint8_t *m, size_t n, bool is4, const struct addr *at,
    uint16_t gue_port, struct path_error *e)
{
	size_t least = is4 ? IP4_MIN : IP6_HEADER, header = least;
	const uint8_t *quoted = m + HEADER;
	struct addr from;
	uint32_t mtu;

	if (n < HEADER + least + QUOTED_LEAST ||
	    quoted[0] >> 4 != (is4 ? 4 : 6))
		return false;
	if (is4)
		header = (size_t)(quoted[0] & 15) * 4;
	if (header < least || n < HEADER + header + QUOTED_LEAST)
		return false;
	if (is4 ? m[0] != TYPE_IP4 || m[1] != CODE_IP4 : m[0] != TYPE_IP6)
		return false;
	if (!is_tunnel(quoted[is4 ? 9 : 6], quoted + header, gue_port))
		return false;
	from = is4 ? addr4(quoted + 12) : addr6(quoted + 8);
	if (addr_cmp(&from, at) != 0)
		return false;
	mtu = is4 ? number(m + 6, 2) : number(m + 4, 4);
	e->to = is4 ? addr4(quoted + 16) : addr6(quoted + 24);
	e->mtu = mtu > UINT16_MAX ? UINT16_MAX : (uint16_t)mtu;
	return true;
}
