/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The words of a slot: owner, the one before, and whether flows are looked up. */
#include "core/ring_words.h"

void
ring_member_set(uint32_t *member, uint32_t number, uint32_t bits)
{
	uint32_t shift = number % 16 * 2;

	member[number / 16] &= ~(3U << shift);
	member[number / 16] |= bits << shift;
}

uint32_t
ring_member_next(const uint32_t *member, uint32_t from)
{
	while (from < XLB_BACKENDS && ring_member(member, from) == 0)
		from = member[from / 16] >> from % 16 * 2 != 0 ? from + 1 :
		    (from / 16 + 1) * 16;
	return from;
}

static uint32_t
past_age(uint32_t past, uint32_t tick)
{
	return (tick - XLB_PAST_TICK(past)) & XLB_PAST_TICK_MASK;
}

static bool
keeps(const uint32_t *member, uint32_t number)
{
	return number != 0 && (ring_member(member, number) & XLB_MEMBER_KEEPS);
}

/* `past` about the slot's `prev`; where it is not (xlbd was killed between two
 * stores), the time of `prev` begins now. */
static uint32_t
past_of(uint32_t past, uint32_t prev, uint32_t tick)
{
	return XLB_PAST_OWNER(past) == prev ? past : XLB_PAST(prev, tick);
}

/*
 * The owner stands in for one that died moments ago; or for one of which nothing
 * was known when the node began.
 */
static bool
stands_in(struct ring_slot was, bool late, uint32_t tick)
{
	uint32_t owner = XLB_PAST_OWNER(was.past);

	if (owner == 0 || past_age(was.past, tick) >= RING_PREV_TICKS)
		return false;
	return owner == XLB_PAST_NOBODY ? late : was.word & XLB_SLOT_LOOKUP;
}

/*
 * Flows of an owner are in the table if the slot had LOOKUP when they began,
 * and it has for as long as `prev` is there, or would be if its backend had
 * lived. So until then the owner that lost the slot to others first is the one
 * whose flows may be unknown: it stays `prev` if it lives, and the others leave
 * no trace. Where it comes back itself, nobody else's flows are unknown. A node
 * that begins hears of its backends one after the other: flows that come from
 * other nodes are of the one that the slot goes to in the end. Not so where one
 * that had slots gets more: members or weights have changed, even so soon.
 */
struct ring_slot
ring_slot_step(struct ring_slot was, uint32_t cur, const uint32_t *member,
    bool late, uint32_t tick)
{
	uint32_t owner = XLB_SLOT_CUR(was.word), past = was.past;
	uint32_t prev = XLB_SLOT_PREV(was.word);
	bool lookup = was.word & XLB_SLOT_LOOKUP, recent;

	if (!keeps(member, prev))
		prev = 0;	/* a dead one is never asked */
	if (cur == owner)
		return (struct ring_slot){ XLB_SLOT(cur, lookup, prev), past };
	/* a slot of nobody without LOOKUP has no flows */
	lookup |= owner != 0;
	if (prev != 0 && prev == cur) {
		prev = 0;
		past = 0;
	} else if (prev != 0) {
		past = past_of(past, prev, tick);
	} else if (stands_in(was, late, tick)) {
		if (cur == XLB_PAST_OWNER(past))
			past = 0;
	} else if (owner != 0) {
		recent = cur != 0 && XLB_PAST_OWNER(past) == cur &&
		    past_age(past, tick) <= XLB_FLOW_LIVE;
		prev = keeps(member, owner) && !recent ? owner : 0;
		past = XLB_PAST(owner, tick);
	} else if (past == 0) {
		past = XLB_PAST(XLB_PAST_NOBODY, tick);
	}
	return (struct ring_slot){ XLB_SLOT(cur, lookup, prev), past };
}

struct ring_slot
ring_slot_age(struct ring_slot was, const uint32_t *member, uint32_t tick)
{
	uint32_t prev = XLB_SLOT_PREV(was.word);

	if (prev != 0) {
		was.past = past_of(was.past, prev, tick);
		if (!keeps(member, prev) ||
		    past_age(was.past, tick) >= RING_PREV_TICKS)
			was.word &= XLB_SLOT_LOOKUP | XLB_SLOT_CUR(~0U);
	}
	if (was.past != 0 && past_age(was.past, tick) > XLB_FLOW_LIVE)
		was.past = 0;
	return was;
}
