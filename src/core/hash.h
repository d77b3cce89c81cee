/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The mixing hash of rings and fingerprints. All nodes must compute the same:
 * 64-bit unsigned arithmetic alone, bytes read in network order. It spreads, it
 * does not resist: its inputs are the operator's own addresses. Flows are
 * hashed with a key, elsewhere.
 */
#ifndef XLB_HASH_H
#define XLB_HASH_H

#include <stdint.h>

#include "core/addr.h"

#define HASH_GOLDEN 0x9e3779b97f4a7c15ULL	/* 2^64 / golden ratio, odd */

/* A bijection in which each input bit flips each output bit about half of the
 * time: two rounds of xor-shift and multiply (Stafford's variant 13). */
static inline uint64_t
hash_mix(uint64_t x)
{
	x ^= x >> 30;
	x *= 0xbf58476d1ce4e5b9ULL;
	x ^= x >> 27;
	x *= 0x94d049bb133111ebULL;
	return x ^ x >> 31;
}

/* The k-th of many values from one hash. */
static inline uint64_t
hash_step(uint64_t h, uint64_t k)
{
	return hash_mix(h + k * HASH_GOLDEN);
}

/* 0..n-1, without a division; n < 2^32. */
static inline uint32_t
hash_below(uint64_t h, uint32_t n)
{
	return (uint32_t)((h >> 32) * n >> 32);
}

static inline uint64_t
hash_be64(const uint8_t *b)
{
	uint64_t x = 0;
	int i;

	for (i = 0; i < 8; i++)
		x = x << 8 | b[i];
	return x;
}

static inline uint64_t
hash_addr(const struct addr *a, uint64_t seed)
{
	uint64_t h = hash_mix(seed + HASH_GOLDEN);

	h = hash_mix(h ^ hash_be64(a->b));
	return hash_mix(h ^ hash_be64(a->b + 8));
}

#endif
