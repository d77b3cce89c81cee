/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Slot words: how a slot gets from one owner to the next without losing flows.
 * A slot that moves is looked up from then on (LOOKUP), and for a while packets
 * of unknown flows go to the owner before (prev). A slot that stays keeps its
 * word.
 */
#ifndef XLB_RING_WORDS_H
#define XLB_RING_WORDS_H

#include <stdbool.h>
#include <stdint.h>

#include "xlb_abi.h"

/* What a backend is to a pool, XLB_MEMBER_*, two bits for each number. */
#define RING_MEMBER_WORDS (XLB_BACKENDS / 16)

static inline uint32_t
ring_member(const uint32_t *member, uint32_t number)
{
	return XLB_MEMBER_BITS(member[number / 16], number);
}

void ring_member_set(uint32_t *member, uint32_t number, uint32_t bits);
/* The first number from `from` on that is something to the pool; XLB_BACKENDS:
 * none. */
uint32_t ring_member_next(const uint32_t *member, uint32_t from);

/* For `prev`: 20 s at least, 26 at most. */
#define RING_PREV_TICKS 6

/* The words of one slot. */
struct ring_slot {
	uint32_t word;		/* XLB_SLOT() */
	uint32_t past;		/* XLB_PAST(), 0: nobody known */
};

/* `was` when `cur` becomes the owner; `tick` is now, any number of bits.
 * `late`: the owner before would take new flows, and `cur`, a member all the
 * time that nobody kept from them, takes its first ones. */
struct ring_slot ring_slot_step(struct ring_slot was, uint32_t cur,
    const uint32_t *member, bool late, uint32_t tick);

/* What time does to a slot whose owner stays: `prev` goes after its time, and
 * at once if its backend is dead; `past` that no rule asks for any more goes,
 * before its tick comes round again. */
struct ring_slot ring_slot_age(struct ring_slot was, const uint32_t *member,
    uint32_t tick);

#endif
