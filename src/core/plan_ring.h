/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Rings of a plan: new words, and whether they can go first. Part of plan.c. */
#ifndef XLB_PLAN_RING_H
#define XLB_PLAN_RING_H

#include "core/plan.h"
#include "core/ring_words.h"

#define PLAN_NUMBERS (XLB_SLOT_CUR(~0U) + 1)	/* that a slot can name */

struct plan_rings {
	const struct state *wanted;
	struct ring_cache *rc;
	struct arena *a;
	uint32_t tick;
	bool *usable;		/* by backend number: it stays, and can be sent
				 * to as the maps are */
	uint32_t *there;	/* as roles: both bits of backends that have
				 * their row and stay */
	bool *alive;		/* scratch: eligible in the ring at hand */
	bool *late;		/* scratch: a member all the time that has had
				 * no slot, though it might have */
	uint32_t *word;		/* scratch: one ring's owners */
};

/* What happens to a wanted ring. */
struct plan_ring {
	struct op_ring *interim;	/* NULL: none; with rows that are there
				 * alone: off dead backends, for now */
	struct op_ring *final;	/* NULL: slots are as they should be */
	struct op_ring *roles_now;	/* NULL: nothing to do but with slots */
	struct op_ring *roles_then;
	bool known;		/* the ring is there */
	bool dead;		/* slots name backends that take no flows */
	bool now;		/* `final` needs no row that is not there */
};

void plan_rings_init(struct plan_rings *pr, const struct state *wanted,
    const struct state *found, struct ring_cache *rc, uint32_t tick,
    struct arena *a);
/* `found` is NULL for a new ring. */
void plan_ring_build(struct plan_rings *pr, const struct state_ring *want,
    const struct state_ring *found, struct plan_ring *out);

#endif
