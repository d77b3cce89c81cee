/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Numbers that a seed repeats. */
#ifndef XLB_PROG_RNG_H
#define XLB_PROG_RNG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rng {
	uint64_t at;
};

static inline uint64_t
rng_next(struct rng *r)
{
	uint64_t z = r->at += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

/* 0..n-1 */
static inline unsigned
rng_below(struct rng *r, unsigned n)
{
	return (unsigned)((rng_next(r) >> 32) * n >> 32);
}

static inline unsigned
rng_range(struct rng *r, unsigned from, unsigned to)
{
	return from + rng_below(r, to - from + 1);
}

/* True in `percent` of the cases. */
static inline bool
rng_chance(struct rng *r, unsigned percent)
{
	return rng_below(r, 100) < percent;
}

static inline void
rng_bytes(struct rng *r, uint8_t *to, size_t n)
{
	while (n-- > 0)
		to[n] = (uint8_t)rng_next(r);
}

#define RNG_PICK(r, a) ((a)[rng_below(r, sizeof(a) / sizeof((a)[0]))])

#endif
