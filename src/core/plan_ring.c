/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How a ring gets from its found words to its wanted ones. */
#include "core/plan_ring.h"

#include <string.h>

#include "core/arena.h"
#include "core/ids.h"
#include "core/rows.h"

struct usable {
	const struct ids *nexthops;	/* that the maps have */
	struct plan_rings *pr;
};

static void
usable_mark(const void *want, const void *found, void *arg)
{
	const struct state_backend *b = found;
	struct usable *u = arg;

	if (want == NULL || b == NULL || b->number >= XLB_BACKENDS)
		return;
	u->pr->usable[b->number] = ids_taken(u->nexthops, b->nexthop);
	if (!b->retired)
		ring_member_set(u->pr->there, b->number, 3);
}

void
plan_rings_init(struct plan_rings *pr, const struct state *wanted,
    const struct state *found, struct ring_cache *rc, uint32_t tick,
    struct arena *a)
{
	struct ids nexthops;
	struct usable u = { .nexthops = &nexthops, .pr = pr };
	size_t i;

	pr->wanted = wanted;
	pr->rc = rc;
	pr->a = a;
	pr->tick = tick;
	pr->usable = arena_calloc(a, PLAN_NUMBERS, sizeof(*pr->usable));
	pr->there = arena_calloc(a, RING_MEMBER_WORDS, sizeof(*pr->there));
	pr->alive = arena_calloc(a, PLAN_NUMBERS, sizeof(*pr->alive));
	pr->late = arena_calloc(a, PLAN_NUMBERS, sizeof(*pr->late));
	pr->word = arena_calloc(a, wanted->ring_size, sizeof(*pr->word));
	pr->usable[0] = true;	/* no backend needs no row */
	ids_init(&nexthops, 1, XLB_NEXTHOPS, a);
	for (i = 0; i < found->nnexthop; i++)
		ids_take(&nexthops, found->nexthop[i].number);
	rows_walk(wanted->backend, wanted->nbackend, found->backend,
	    found->nbackend, sizeof(*wanted->backend), state_backend_cmp,
	    usable_mark, &u);
}

/*
 * What backends are to the pool: as wanted for those that are `there` (NULL:
 * all will be). Those that only were members stay that, without flows, until
 * their number is free.
 */
static uint32_t *
roles_build(struct plan_rings *pr, const struct state_ring *want,
    const struct state_ring *found, const uint32_t *there)
{
	uint32_t *roles = arena_calloc(pr->a, RING_MEMBER_WORDS,
	    sizeof(*roles)), i, f;

	for (i = 0; i < RING_MEMBER_WORDS; i++) {
		f = found != NULL ? found->roles[i] : 0;
		roles[i] = want->roles[i] & (there != NULL ? there[i] : ~0U);
		roles[i] |= (f | f >> 1) & 0x55555555U * XLB_MEMBER;
	}
	return roles;
}

static struct op_ring *
op_ring_new(struct plan_rings *pr, const struct state_ring *r,
    const uint32_t *roles)
{
	struct op_ring *o = arena_calloc(pr->a, 1, sizeof(*o));

	o->number = r->number;
	o->pool = r->pool;
	o->size = pr->wanted->ring_size;
	o->roles = roles;
	return o;
}

/*
 * A new ring: all of its slots are as if they had never had another owner, but
 * those of a backend whose drain is young. Flows of it come here with the node's
 * first packets, so these slots are as on a node that was there when it began.
 */
static void
op_ring_first(struct plan_rings *pr, struct op_ring *o,
    const struct state_ring *want, const uint32_t *owner)
{
	size_t bytes = o->size * sizeof(*owner);
	uint32_t *word = arena_alloc(pr->a, bytes), *past, *primary, i;
	bool *all, *left;
	struct ring_slot s;
	size_t k;

	memcpy(word, owner, bytes);
	o->slot = word;
	if (want->leaving == NULL)
		return;
	all = arena_alloc(pr->a, want->nmember * sizeof(*all));
	left = arena_calloc(pr->a, PLAN_NUMBERS, sizeof(*left));
	for (k = 0; k < want->nmember; k++) {
		all[k] = true;
		left[want->number_of[k]] = want->leaving[k];
	}
	primary = arena_alloc(pr->a, bytes);
	state_ring_words_of(pr->rc, pr->wanted, want, all, primary);
	o->past = past = arena_calloc(pr->a, o->size, sizeof(*past));
	for (i = 0; i < o->size; i++) {
		if (!left[primary[i]])
			continue;
		s = (struct ring_slot){ XLB_SLOT(primary[i], false, 0), 0 };
		s = ring_slot_step(s, owner[i], want->roles, false, pr->tick);
		word[i] = s.word;
		past[i] = s.past;
	}
}

/* The slots' words from the found ones, for new owners. */
static void
op_ring_words(struct plan_rings *pr, struct op_ring *o,
    const struct state_ring *want, const struct state_ring *found,
    const uint32_t *owner)
{
	uint32_t *word = arena_alloc(pr->a, o->size * sizeof(*word)), *past;
	uint32_t i, was;
	struct ring_slot s;

	o->slot = word;
	o->past = past = arena_alloc(pr->a, o->size * sizeof(*past));
	for (i = 0; i < o->size; i++) {
		s.word = found->slot[i];
		s.past = found->past[i];
		was = XLB_SLOT_CUR(s.word);
		o->moved += was != owner[i];
		s = ring_slot_step(s, owner[i], want->roles,
		    pr->alive[was] && pr->late[owner[i]], pr->tick);
		word[i] = s.word;
		past[i] = s.past;
	}
}

/*
 * The final words name backends that are not there yet, and something may fail
 * before they are; what sits on dead backends does not wait for that. A slot of
 * a dead one goes where it will stay if that one is there, else to the next
 * that is; no other slot moves.
 */
static void
interim_owners(struct plan_rings *pr, const struct state_ring *want,
    const struct state_ring *found, const uint32_t *final)
{
	bool *there = arena_calloc(pr->a, want->nmember, sizeof(*there));
	uint32_t i, was;
	size_t k;

	for (k = 0; k < want->nmember; k++)
		there[k] = want->eligible[k] && pr->usable[want->number_of[k]];
	state_ring_words_of(pr->rc, pr->wanted, want, there, pr->word);
	for (i = 0; i < pr->wanted->ring_size; i++) {
		was = XLB_SLOT_CUR(found->slot[i]);
		if (pr->alive[was])
			pr->word[i] = was;
		else if (pr->usable[XLB_SLOT_CUR(final[i])])
			pr->word[i] = XLB_SLOT_CUR(final[i]);
	}
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

static void
late_set(struct plan_rings *pr, const struct state_ring *want,
    const struct state_ring *found)
{
	uint32_t i, number;
	size_t k;

	memset(pr->late, 0, PLAN_NUMBERS * sizeof(*pr->late));
	for (k = 0; k < want->nmember; k++) {
		number = want->number_of[k];
		pr->late[number] = ring_member(found->roles, number) != 0 &&
		    (want->held == NULL || !want->held[number]);
	}
	for (i = 0; i < pr->wanted->ring_size; i++)
		pr->late[XLB_SLOT_CUR(found->slot[i])] = false;
}

/* Which of the two operations on slots, and in which part of the plan. */
static void
slots_build(struct plan_rings *pr, const struct state_ring *want,
    const struct state_ring *found, const uint32_t *now, const uint32_t *then,
    struct plan_ring *out)
{
	uint32_t i, size = pr->wanted->ring_size;

	state_ring_words(pr->rc, pr->wanted, want, pr->word);
	alive_set(pr, want, true);
	late_set(pr, want, found);
	out->now = true;
	for (i = 0; i < size; i++) {
		out->now &= pr->usable[pr->word[i]];
		out->dead |= !pr->alive[XLB_SLOT_CUR(found->slot[i])];
	}
	out->final = op_ring_new(pr, want, out->now ? now : then);
	op_ring_words(pr, out->final, want, found, pr->word);
	if (out->dead && !out->now) {
		out->interim = op_ring_new(pr, want, now);
		interim_owners(pr, want, found, out->final->slot);
		op_ring_words(pr, out->interim, want, found, pr->word);
	}
	alive_set(pr, want, false);
}

static bool
roles_same(const uint32_t *a, const uint32_t *b)
{
	return memcmp(a, b, RING_MEMBER_WORDS * sizeof(*a)) == 0;
}

/* No slot has a dead backend, or none, to send unknown flows to. */
static bool
prevs_keep(const struct state_ring *want, const struct state_ring *found,
    uint32_t size)
{
	uint32_t i, all = 0, prev;

	for (i = 0; i < size; i++)
		all |= found->slot[i];
	if (XLB_SLOT_PREV(all) == 0)
		return true;
	for (i = 0; i < size; i++) {
		prev = XLB_SLOT_PREV(found->slot[i]);
		if (prev != 0 &&
		    !(ring_member(want->roles, prev) & XLB_MEMBER_KEEPS))
			return false;
	}
	return true;
}

void
plan_ring_build(struct plan_rings *pr, const struct state_ring *want,
    const struct state_ring *found, struct plan_ring *out)
{
	uint32_t *then = roles_build(pr, want, found, NULL), *now;
	bool renamed, moves;

	memset(out, 0, sizeof(*out));
	out->known = found != NULL;
	if (found == NULL) {
		state_ring_words(pr->rc, pr->wanted, want, pr->word);
		out->final = op_ring_new(pr, want, then);
		op_ring_first(pr, out->final, want, pr->word);
		return;
	}
	moves = !state_ring_same(pr->rc, pr->wanted, want, found->slot) ||
	    !prevs_keep(want, found, pr->wanted->ring_size);
	renamed = strcmp(want->pool, found->pool) != 0;
	if (!moves && !renamed && roles_same(then, found->roles))
		return;
	now = roles_build(pr, want, found, pr->there);
	if (moves)
		slots_build(pr, want, found, now, then, out);
	if (out->interim == NULL && !out->now &&
	    (renamed || !roles_same(now, found->roles)))
		out->roles_now = op_ring_new(pr, want, now);
	if ((!moves || out->now) && !roles_same(then, now))
		out->roles_then = op_ring_new(pr, want, then);
}
