/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rings: Maglev hashing (Eisenbud et al., NSDI 2016, section 3.4) over all
 * members gives each slot a primary owner; a second step gives the slots of
 * members that are not eligible to others without moving any other slot. The
 * result is a pure function of (members, weights, seed, size, eligible set):
 * the order and the names do not matter, so all nodes agree without talking.
 * tests/golden fixes hash, weights and walk: a change is a new major version.
 */
#ifndef XLB_MAGLEV_H
#define XLB_MAGLEV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/addr.h"

#define MAGLEV_WALK 32		/* steps of the walk before rendezvous */
#define MAGLEV_NONE 0xffff	/* no owner: nobody is eligible */

struct maglev_member {
	struct addr addr;
	uint32_t weight;	/* 1..1000 */
};

/* `member` sorted by address. n * heaviest / lightest weight <= size is the
 * caller's to keep (conf_check refuses more). Writes `size` member indices;
 * shares follow weight to within one slot. */
void maglev_build(const struct maglev_member *member, size_t n, uint64_t seed,
    uint32_t size, uint16_t *primary);

/* Owners after taking out the members that are not eligible; MAGLEV_NONE
 * everywhere if nobody is. `owner` may not be `primary`. */
void maglev_eligible(const struct maglev_member *member, size_t n,
    uint64_t seed, uint32_t size, const uint16_t *primary,
    const bool *eligible, uint16_t *owner);

/* Over the address of each slot's owner, so that two nodes with different
 * backend numbers agree. */
uint64_t maglev_fingerprint(const struct maglev_member *member, size_t n,
    uint32_t size, const uint16_t *owner);

#endif
