/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where a packet of a flow goes, and why: the packet program's rules, of a
 * packet that is looked up, and is not the first of its flow.
 */
#ifndef XLB_LOOKUP_H
#define XLB_LOOKUP_H

#include <stdbool.h>
#include <stdint.h>

#include "core/addr.h"
#include "xlb_abi.h"

/* A packet, client to VIP. */
struct lookup_flow {
	struct addr src, dst;
	uint16_t sport, dport;	/* host byte order */
	uint8_t proto;
};

/* Both hashes of the flow, as the packet program has them. */
struct lookup_hash {
	uint64_t flow;		/* of the 5-tuple */
	uint32_t select;	/* selects the slot */
	uint32_t slot;
};

enum lookup_why {
	LOOKUP_RING,		/* what the slot says */
	LOOKUP_ENTRY,		/* the flow table's */
	LOOKUP_PREV,		/* unknown: most likely began before a change */
	LOOKUP_NO_BACKEND
};
const char *lookup_why_text(enum lookup_why w);

struct lookup_in {
	uint32_t word;		/* of the slot */
	uint64_t service;	/* XLB_SERVICE_WORD() */
	uint32_t old;		/* owner in the ring of the pool before; 0 */
	uint64_t entry;		/* of this flow; 0: none */
	uint64_t now;		/* coarse monotonic clock, ns */
	uint8_t proto;
	const uint32_t *member;	/* of the service's ring, XLB_MEMBER_* */
};
/* The backend's number; 0: none. */
uint32_t lookup_decide(const struct lookup_in *in, enum lookup_why *why);
/* How long ago the entry was used, ns: units of 4.3 s. */
uint64_t lookup_age(uint64_t entry, uint64_t now);

#endif
