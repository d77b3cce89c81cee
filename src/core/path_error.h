/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What routers say of packets of ours that were too large for them. */
#ifndef XLB_PATH_ERROR_H
#define XLB_PATH_ERROR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/addr.h"

struct path_error {
	struct addr to;		/* whom the packet was for */
	uint16_t mtu;		/* what they take of it; host byte order */
};

/*
 * An ICMP message, as it came: "fragmentation needed" (RFC 1191), or ICMPv6's
 * "packet too big" (RFC 4443), about an outer packet (IPIP of any kind, or UDP to
 * `gue_port`) that this node sent from `at`, to where the message was sent. The
 * checksum has been looked at. False: it is about something else.
 */
bool path_error_parse(const uint8_t *m, size_t n, bool is4,
    const struct addr *at, uint16_t gue_port, struct path_error *e);

#endif
