/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Rings: who owns each slot, if all are well and if some are not. */
#include "core/maglev.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/hash.h"

#define TAIL 128		/* slots that are left to ring_fill_tail() */

/* One member while the ring is filled: small, so that a thousand of them and
 * the bitmap of taken slots stay in the first-level cache. */
struct turn {
	uint32_t pos, skip;	/* the next slot it likes, and the stride */
	uint32_t left;		/* slots it may still take */
	uint32_t weight;
	uint32_t credit;	/* a turn costs the heaviest weight */
};

/* A member in line for one of the slots that rounding left over. */
struct share {
	uint64_t rest;		/* weight * size modulo the sum of weights */
	uint64_t hash;
	size_t member;
};

/* Largest remainder first; equal ones by hash, so that what rounding gives
 * away does not always go to the lowest addresses. */
static int
share_cmp(const void *va, const void *vb)
{
	const struct share *a = va, *b = vb;

	if (a->rest != b->rest)
		return a->rest > b->rest ? -1 : 1;
	if (a->hash != b->hash)
		return a->hash < b->hash ? -1 : 1;
	return a->member < b->member ? -1 : 1;
}

/* How many slots each member gets: its exact share rounded down, and the rest
 * one each to the largest remainders. Returns the heaviest weight. */
static uint32_t
turns_share(const struct maglev_member *member, size_t n, uint64_t seed,
    uint32_t size, struct arena *a, struct turn *turn)
{
	struct share *share = arena_calloc(a, n, sizeof(*share));
	uint64_t sum = 0, exact;
	uint32_t heaviest = 0, rest = size;
	size_t i;

	for (i = 0; i < n; i++) {
		sum += member[i].weight;
		if (member[i].weight > heaviest)
			heaviest = member[i].weight;
	}
	for (i = 0; i < n; i++) {
		exact = (uint64_t)member[i].weight * size;
		turn[i].left = (uint32_t)(exact / sum);
		rest -= turn[i].left;
		share[i].rest = exact % sum;
		share[i].hash = hash_addr(&member[i].addr, seed);
		share[i].member = i;
		turn[i].weight = member[i].weight;
		turn[i].pos = hash_below(hash_step(share[i].hash, 1), size);
		turn[i].skip =
		    1 + hash_below(hash_step(share[i].hash, 2), size - 1);
	}
	assert(rest < n);
	if (rest > 0)
		qsort(share, n, sizeof(*share), share_cmp);
	for (i = 0; i < rest; i++)
		turn[share[i].member].left++;
	return heaviest;
}

/* x with a * x = 1 modulo the prime m (Euclid's algorithm). */
static uint64_t
inverse(uint32_t a, uint32_t m)
{
	int64_t r0 = m, r1 = a, x0 = 0, x1 = 1, q, tmp;

	while (r1 != 0) {
		q = r0 / r1;
		tmp = r0 - q * r1;
		r0 = r1;
		r1 = tmp;
		tmp = x0 - q * x1;
		x0 = x1;
		x1 = tmp;
	}
	return (uint64_t)(x0 < 0 ? x0 + m : x0);
}

/*
 * The last free slots: stepping to one of f free slots takes size / f steps, so
 * the last hundred cost more than all others. Here each free slot is asked
 * instead how many steps away it is: the same slot, found in f steps.
 */
static void
ring_fill_tail(struct turn *turn, size_t n, struct turn *t, uint32_t heaviest,
    uint32_t size, uint16_t *primary, uint32_t *slot, uint32_t left)
{
	uint64_t inv, steps, least;
	uint32_t i, best;

	for (; left > 0; t = t + 1 == turn + n ? turn : t + 1) {
		t->credit += t->weight;
		if (t->credit < heaviest || t->left == 0)
			continue;
		t->credit -= heaviest;
		inv = inverse(t->skip, size);
		least = UINT64_MAX;
		best = 0;
		for (i = 0; i < left; i++) {
			steps = (slot[i] + size - t->pos) * inv % size;
			if (steps < least) {
				least = steps;
				best = i;
			}
		}
		primary[slot[best]] = (uint16_t)(t - turn);
		t->pos = slot[best];
		t->left--;
		slot[best] = slot[--left];
	}
}

void
maglev_build(const struct maglev_member *member, size_t n, uint64_t seed,
    uint32_t size, uint16_t *primary)
{
	struct arena *a;
	struct turn *turn, *t;
	uint64_t *taken;
	uint32_t heaviest, pos, left = size, tail[TAIL], ntail = 0;

	assert(n < MAGLEV_NONE && n <= size && size > 1);
	memset(primary, 0xff, size * sizeof(*primary));
	if (n == 0)
		return;
	a = arena_new();
	turn = arena_calloc(a, n, sizeof(*turn));
	taken = arena_calloc(a, size / 64 + 1, sizeof(*taken));
	heaviest = turns_share(member, n, seed, size, a, turn);
	/* Rounds: a member of the heaviest weight takes its next free favourite
	 * in each, one of half that weight in every second. */
	for (t = turn; left > TAIL; t = t + 1 == turn + n ? turn : t + 1) {
		t->credit += t->weight;
		if (t->credit < heaviest || t->left == 0)
			continue;
		t->credit -= heaviest;
		pos = t->pos;
		while (taken[pos / 64] >> pos % 64 & 1) {
			pos += t->skip;
			if (pos >= size)
				pos -= size;
		}
		taken[pos / 64] |= 1ULL << pos % 64;
		primary[pos] = (uint16_t)(t - turn);
		t->pos = pos;
		t->left--;
		left--;
	}
	for (pos = 0; pos < size; pos++)
		if (primary[pos] == MAGLEV_NONE)
			tail[ntail++] = pos;
	assert(ntail == left);
	ring_fill_tail(turn, n, t, heaviest, size, primary, tail, left);
	arena_free(a);
}

/*
 * -log2(h / 2^64), in units of 2^-31. Integers alone: all nodes must agree to
 * the bit, and libm's log() differs between them. With h = 2^e (1 + f),
 * log2(1 + f) = f + f (1 - f) (a - b f + c f^2 - d f^3) to 0.0001.
 */
static uint64_t
neg_log2(uint64_t h)
{
	unsigned lead;
	uint64_t f, poly;

	h |= 1;
	lead = (unsigned)__builtin_clzll(h);
	f = h << lead << 1 >> 33;
	poly = 9848 - (f * 2969 >> 31);
	poly = 17622 - (f * poly >> 31);
	poly = 28983 - (f * poly >> 31);
	f += (f * ((1ULL << 31) - f) >> 31) * poly >> 16;
	return ((uint64_t)(lead + 1) << 31) - f;
}

/* An eligible member, as rendezvous sees it. */
struct bidder {
	uint64_t hash;
	uint32_t weight;
	uint16_t member;
};

static struct bidder *
bidders_build(const struct maglev_member *member, size_t n, uint64_t seed,
    const bool *eligible, struct arena *a)
{
	struct bidder *bidder = arena_calloc(a, n, sizeof(*bidder));
	size_t i, k = 0;

	for (i = 0; i < n; i++)
		if (eligible[i])
			bidder[k++] = (struct bidder){
			    hash_addr(&member[i].addr, seed), member[i].weight,
			    (uint16_t)i };
	return bidder;
}

/*
 * Weighted rendezvous: each eligible member draws an exponentially distributed
 * value whose rate is its weight, the least one wins. Who drops out changes the
 * slots that it had won, and nothing else.
 */
static uint16_t
rendezvous(const struct bidder *bidder, size_t n, uint64_t slot)
{
	const struct bidder *b, *best = bidder;
	uint64_t cost, least = neg_log2(hash_mix(bidder->hash ^ slot));

	for (b = bidder + 1; b < bidder + n; b++) {
		cost = neg_log2(hash_mix(b->hash ^ slot));
		if (cost * best->weight < least * b->weight) {
			best = b;
			least = cost;
		}
	}
	return best->member;
}

void
maglev_eligible(const struct maglev_member *member, size_t n, uint64_t seed,
    uint32_t size, const uint16_t *primary, const bool *eligible,
    uint16_t *owner)
{
	struct arena *a = NULL;
	struct bidder *bidder = NULL;
	uint64_t walk = hash_mix(seed), step;
	uint32_t slot, k;
	size_t i, up = 0;
	uint16_t who;

	for (i = 0; i < n; i++)
		up += eligible[i];
	if (up == 0)
		memset(owner, 0xff, size * sizeof(*owner));
	else
		memcpy(owner, primary, size * sizeof(*owner));
	if (up == 0 || up == n)
		return;
	for (slot = 0; slot < size; slot++) {
		who = primary[slot];
		step = (uint64_t)slot * (MAGLEV_WALK + 1);
		for (k = 0; !eligible[who] && k < MAGLEV_WALK; k++)
			who = primary[hash_below(hash_step(walk, step + k),
			    size)];
		if (!eligible[who]) {
			if (bidder == NULL) {
				a = arena_new();
				bidder = bidders_build(member, n, seed,
				    eligible, a);
			}
			who = rendezvous(bidder, up, hash_step(walk, step + k));
		}
		owner[slot] = who;
	}
	arena_free(a);
}

uint64_t
maglev_fingerprint(const struct maglev_member *member, size_t n, uint32_t size,
    const uint16_t *owner)
{
	struct arena *a = arena_new();
	uint64_t *hash = arena_calloc(a, n, sizeof(*hash)), sum = 0;
	uint32_t slot;
	size_t i;

	for (i = 0; i < n; i++)
		hash[i] = hash_addr(&member[i].addr, 0);
	/* a sum: the terms are independent, so the CPU overlaps them */
	for (slot = 0; slot < size; slot++)
		sum += hash_step(
		    owner[slot] == MAGLEV_NONE ? 0 : hash[owner[slot]], slot);
	arena_free(a);
	return hash_step(sum, size);
}
