/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * io/maps.h on memory, stricter than the kernel: what a plan must never ask for
 * is remembered in `broken`. Small on purpose, and open, so that a test can edit
 * it behind the back of its caller and copy it whole.
 */
#ifndef XLB_MAPS_MEM_H
#define XLB_MAPS_MEM_H

#include "core/ring_words.h"
#include "io/maps.h"

#define MEM_ROWS 128		/* numbers of each kind are below */
#define MEM_RINGS 32
#define MEM_SLOTS 1021		/* largest ring */

struct mem_ring {
	bool used;
	char pool[XLB_POOL_NAME];
	uint32_t slot[MEM_SLOTS], past[MEM_SLOTS];
	uint32_t roles[RING_MEMBER_WORDS];
};

struct maps {
	struct xlb_settings settings;
	struct state_vip vip[MEM_ROWS];	/* in no order */
	size_t nvip;
	struct state_service service[MEM_ROWS];
	size_t nservice;
	struct state_backend backend[MEM_ROWS];	/* by number; number 0: free */
	struct state_nexthop nexthop[MEM_ROWS];
	struct mem_ring ring[MEM_RINGS];
	struct state_source source[XLB_NAT_SOURCES];
	struct state_door door[XLB_DOORS];
	uint32_t port[MEM_ROWS];
	size_t nport;
	/* freed, and not to be used again before a grace period */
	bool old_vip[MEM_ROWS], old_service[MEM_ROWS], old_nexthop[MEM_ROWS],
	    old_ring[MEM_RINGS];
	size_t fail_at;		/* the operation that fails, from 0 */
	int fail_errno;		/* 0: none */
	size_t done;		/* operations so far */
	const char *broken;	/* NULL, or what should never have been asked */
};

void maps_mem_init(struct maps *m);
/* What xlbd does when time has passed: `prev`, LOOKUP and old rings go, and
 * numbers of retired backends that nothing names are free. */
void maps_mem_settle(struct maps *m);

#endif
