/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From two states to an ordered list of operations. Order: slots off dead
 * backends, flows off them; additions, make before break (ports, next hops,
 * backends, rings, VIPs, services); deletions in the reverse order, then a grace
 * period so that freed rows and numbers can be used again. After every single
 * operation the maps are consistent; a test replays every prefix.
 *
 * Backends are not deleted here: one of no pool is retired, since flows may name
 * its number; xlbd frees it when none does (see sweep.h).
 */
#ifndef XLB_PLAN_H
#define XLB_PLAN_H

#include "core/state.h"

enum op_kind {
	OP_SETTINGS_PUT,	/* struct xlb_settings */
	OP_RING_SLOTS,		/* struct op_ring: new roles, whole new half by
				 * one store, old roles */
	OP_RING_ROLES,		/* struct op_ring without slots: roles, name */
	OP_PORT_PUT,		/* id: ifindex */
	OP_DOOR_PUT,		/* struct state_door; known: what it is now */
	OP_SOURCE_PUT,		/* struct state_source */
	OP_NEXTHOP_PUT,		/* struct state_nexthop; a known id: only its
				 * mac and vlan, in place */
	OP_BACKEND_PUT,		/* struct state_backend; a known id: only its
				 * nexthop and sources, in place; retired no
				 * more */
	OP_RING_NEW,		/* struct op_ring: made full before it is seen */
	OP_VIP_PUT,		/* struct state_vip; known: only its flags */
	OP_SERVICE_PUT,		/* struct state_service; known: its word */
	OP_SERVICE_DEL,		/* row: which, as it was found */
	OP_VIP_DEL,
	OP_RING_DEL,		/* struct op_ring, without slots and roles */
	OP_BACKEND_RETIRE,	/* no next hop; the number stays */
	OP_BACKEND_DEL,		/* not in plans: a retired one whose number is
				 * free */
	OP_NEXTHOP_DEL,
	OP_SOURCE_DEL,
	OP_DOOR_DEL,
	OP_PORT_DEL,
	OP_GRACE,		/* until no packet still holds a deleted row */
	OP_KINDS
};

struct op_ring {
	uint32_t number;
	const char *pool;
	uint32_t size;
	const uint32_t *slot;	/* `size` words; or NULL */
	const uint32_t *past;	/* as many; in OP_RING_NEW NULL for zeros */
	const uint32_t *roles;	/* RING_MEMBER_WORDS; or NULL */
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

/* `rc` makes the wanted rings; `tick` is now (XLB_FLOW_TICK_SHIFT). `found` may
 * be broken (a row that names a missing one): the plan mends it. */
void plan_build(const struct state *wanted, const struct state *found,
    struct ring_cache *rc, uint32_t tick, struct arena *a, struct plan *p);

/* First operation of the plan that asks the kernel for something, or p->n: those
 * before it are stores in maps that are there. */
size_t plan_first_call(const struct plan *p);

/* First deletion in the plan, or p->n: what is before it makes, what is from
 * it on breaks. */
size_t plan_first_delete(const struct plan *p);

/* True if `op` must not be tried after `failed`, which comes before it, failed:
 * it would name a row that is not there, or take away one that is still named.
 * Slots and roles that only go off dead backends depend on nothing. */
bool plan_depends(const struct op *op, const struct op *failed);

/* True if op[i] depends on one that failed or was not tried: `failed` has a flag
 * for each operation before i. */
bool plan_blocked(const struct plan *p, const bool *failed, size_t i);

/* "service 192.0.2.1:443/tcp", "ring web", "backend 10.0.0.7" */
const char *op_print(const struct op *op, char *buf, size_t len);
const char *op_verb(const struct op *op);	/* "add", "change", ... */
/* What `err` (an errno) means for it: the error, the limit that was met and the
 * setting that it comes from. */
const char *op_why(const struct op *op, int err, char *buf, size_t len);

#endif
