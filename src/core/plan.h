/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From two states to an ordered list of operations. Order: slots off dead
 * backends; additions, make before break (ports, next hops, backends, rings,
 * VIPs, services); deletions in the reverse order, then a grace period so that
 * freed rows and numbers can be used again. After every single operation the
 * maps are consistent; a test replays every prefix.
 */
#ifndef XLB_PLAN_H
#define XLB_PLAN_H

#include "core/state.h"

enum op_kind {
	OP_SETTINGS_PUT,	/* struct xlb_settings */
	OP_RING_SLOTS,		/* struct op_ring: whole new half, one store */
	OP_PORT_PUT,		/* id: ifindex */
	OP_NEXTHOP_PUT,		/* struct state_nexthop; a known id: only its
				 * mac and vlan, in place */
	OP_BACKEND_PUT,		/* struct state_backend; a known id: only its
				 * nexthop, in place */
	OP_RING_NEW,		/* struct op_ring: made full before it is seen */
	OP_VIP_PUT,		/* struct state_vip; known: only its flags */
	OP_SERVICE_PUT,		/* struct state_service; known: its word */
	OP_SERVICE_DEL,		/* row: which, as it was found */
	OP_VIP_DEL,
	OP_RING_DEL,		/* struct op_ring, without slots */
	OP_BACKEND_DEL,
	OP_NEXTHOP_DEL,
	OP_PORT_DEL,
	OP_GRACE,		/* until no packet still holds a deleted row */
	OP_KINDS
};

struct op_ring {
	uint32_t number;
	const char *pool;
	uint32_t size;
	const uint32_t *slot;	/* `size` words; NULL in OP_RING_DEL */
	uint32_t moved;		/* slots that name another backend than the
				 * found ones; the second of two operations on
				 * one ring counts those of the first too */
};

struct op {
	enum op_kind kind;
	uint32_t id;		/* the row's number: ring, backend, next hop,
				 * vip id, service number, ifindex */
	bool known;		/* a *_PUT of a row that is there already */
	const void *row;	/* as the kind says, NULL for ports and grace;
				 * in the plan's arena or in one of the states,
				 * which must live as long */
};

struct plan {
	struct op *op;
	size_t n;
	size_t added, changed, removed;	/* objects, without rings' slots */
};

/* `rc` makes the wanted rings. `found` may be broken (a row that names a
 * missing one): the plan mends it. */
void plan_build(const struct state *wanted, const struct state *found,
    struct ring_cache *rc, struct arena *a, struct plan *p);

/* First deletion in the plan, or p->n: what is before it makes, what is from
 * it on breaks. */
size_t plan_first_delete(const struct plan *p);

/* True if `op` must not be tried after `failed`, which comes before it, failed:
 * it would name a row that is not there, or take away one that is still named.
 * A RING_SLOTS that only takes slots off dead backends depends on nothing. */
bool plan_depends(const struct op *op, const struct op *failed);

/* True if op[i] depends on one that failed or was not tried: `failed` has a flag
 * for each operation before i. */
bool plan_blocked(const struct plan *p, const bool *failed, size_t i);

/* "service 192.0.2.1:443/tcp", "ring web", "backend 10.0.0.7" */
const char *op_print(const struct op *op, char *buf, size_t len);
const char *op_verb(const struct op *op);	/* "add", "change", ... */

#endif
