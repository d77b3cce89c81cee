/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How a ring gets from its found words to its wanted ones. */
#include "core/plan_ring.h"

#include <string.h>

#include "core/arena.h"
#include "core/ids.h"
#include "core/rows.h"

struct usable {
	const struct ids *nexthops;	/* that the maps have */
	bool *usable;
};

static void
usable_mark(const void *want, const void *found, void *arg)
{
	const struct state_backend *b = found;
	struct usable *u = arg;

	if (want != NULL && b != NULL && b->number < PLAN_NUMBERS)
		u->usable[b->number] = ids_taken(u->nexthops, b->nexthop);
}

void
plan_rings_init(struct plan_rings *pr, const struct state *wanted,
    const struct state *found, struct ring_cache *rc, struct arena *a)
{
	struct ids nexthops;
	struct usable u = { .nexthops = &nexthops };
	size_t i;

	pr->wanted = wanted;
	pr->rc = rc;
	pr->a = a;
	pr->usable = arena_calloc(a, PLAN_NUMBERS, sizeof(*pr->usable));
	pr->alive = arena_calloc(a, PLAN_NUMBERS, sizeof(*pr->alive));
	pr->word = arena_calloc(a, wanted->ring_size, sizeof(*pr->word));
	pr->usable[0] = true;	/* no backend needs no row */
	ids_init(&nexthops, 1, XLB_NEXTHOPS, a);
	for (i = 0; i < found->nnexthop; i++)
		ids_take(&nexthops, found->nexthop[i].number);
	u.usable = pr->usable;
	rows_walk(wanted->backend, wanted->nbackend, found->backend,
	    found->nbackend, sizeof(*wanted->backend), state_backend_cmp,
	    usable_mark, &u);
}

static struct op_ring *
op_ring_new(struct plan_rings *pr, const struct state_ring *r,
    const uint32_t *word)
{
	struct op_ring *o = arena_alloc(pr->a, sizeof(*o));

	o->number = r->number;
	o->pool = r->pool;
	o->size = pr->wanted->ring_size;
	o->slot = arena_dup(pr->a, word, o->size * sizeof(*word));
	return o;
}

static void
op_ring_count(struct op_ring *o, const uint32_t *was)
{
	uint32_t i;

	for (i = 0; i < o->size; i++)
		o->moved += XLB_SLOT_CUR(o->slot[i]) != XLB_SLOT_CUR(was[i]);
}

/*
 * The final words name backends that are not there yet, and something may fail
 * before they are; what sits on dead backends does not wait for that. A slot of
 * a dead one goes where it will stay if that one is there, else to the next
 * that is; no other slot moves.
 */
static struct op_ring *
interim_build(struct plan_rings *pr, const struct state_ring *want,
    const struct state_ring *found, const uint32_t *final)
{
	bool *there = arena_calloc(pr->a, want->nmember, sizeof(*there));
	struct op_ring *o;
	uint32_t i;
	size_t k;

	for (k = 0; k < want->nmember; k++)
		there[k] = want->eligible[k] && pr->usable[want->number_of[k]];
	state_ring_words_of(pr->rc, pr->wanted, want, there, pr->word);
	for (i = 0; i < pr->wanted->ring_size; i++) {
		if (pr->alive[XLB_SLOT_CUR(found->slot[i])])
			pr->word[i] = found->slot[i];
		else if (pr->usable[XLB_SLOT_CUR(final[i])])
			pr->word[i] = final[i];
	}
	o = op_ring_new(pr, want, pr->word);
	op_ring_count(o, found->slot);
	return o;
}

/* The members that take flows, by number; slots that are empty count, too. */
static void
alive_set(struct plan_rings *pr, const struct state_ring *want, bool on)
{
	size_t k;

	pr->alive[0] = on;
	for (k = 0; k < want->nmember; k++)
		pr->alive[want->number_of[k]] = on && want->eligible[k];
}

void
plan_ring_build(struct plan_rings *pr, const struct state_ring *want,
    const struct state_ring *found, struct plan_ring *out)
{
	uint32_t i, size = pr->wanted->ring_size;

	memset(out, 0, sizeof(*out));
	out->known = found != NULL;
	if (found != NULL &&
	    state_ring_same(pr->rc, pr->wanted, want, found->slot))
		return;
	state_ring_words(pr->rc, pr->wanted, want, pr->word);
	out->final = op_ring_new(pr, want, pr->word);
	if (found == NULL)
		return;
	op_ring_count(out->final, found->slot);
	alive_set(pr, want, true);
	out->now = true;
	for (i = 0; i < size; i++) {
		out->now &= pr->usable[XLB_SLOT_CUR(pr->word[i])];
		out->dead |= !pr->alive[XLB_SLOT_CUR(found->slot[i])];
	}
	if (out->dead && !out->now)
		out->interim =
		    interim_build(pr, want, found, out->final->slot);
	alive_set(pr, want, false);
}
