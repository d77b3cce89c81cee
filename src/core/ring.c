/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Slot words of wanted rings; primary owners are kept between calls, because
 * they change with members and weights only and cost more than all else. */
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/hash.h"
#include "core/maglev.h"
#include "core/state.h"

#define BUCKETS 1024		/* a power of two, about as many as pools */

/* Primary owners of one set of members; pools with the same share it. */
struct primary {
	struct primary *next;	/* in its bucket */
	uint64_t key;		/* hash of all below; they decide */
	uint64_t seed;
	uint32_t size;
	size_t nmember;
	struct maglev_member *member;
	uint16_t *owner;	/* `size` member indices */
	uint64_t used;		/* tick of the last use */
};

struct ring_cache {
	struct primary *bucket[BUCKETS];
	size_t bytes;		/* held by all entries */
	uint64_t tick;		/* counts uses */
	uint16_t *owner;	/* scratch: eligible owners of one ring */
	uint32_t size;		/* of `owner` */
};

struct ring_cache *
ring_cache_new(void)
{
	return must_calloc(1, sizeof(struct ring_cache));
}

static size_t
primary_bytes(const struct primary *p)
{
	return sizeof(*p) + p->nmember * sizeof(*p->member) +
	    p->size * sizeof(*p->owner);
}

/* Drops what was last used before `tick`. */
static void
cache_drop(struct ring_cache *rc, uint64_t tick)
{
	struct primary **at, *p;
	size_t i;

	for (i = 0; i < BUCKETS; i++) {
		for (at = &rc->bucket[i]; (p = *at) != NULL;) {
			if (p->used >= tick) {
				at = &p->next;
				continue;
			}
			*at = p->next;
			rc->bytes -= primary_bytes(p);
			free(p->member);
			free(p->owner);
			free(p);
		}
	}
}

/* Drops the one that was not used for longest. */
static void
cache_drop_oldest(struct ring_cache *rc)
{
	const struct primary *p;
	uint64_t oldest = rc->tick;
	size_t i;

	for (i = 0; i < BUCKETS; i++)
		for (p = rc->bucket[i]; p != NULL; p = p->next)
			if (p->used < oldest)
				oldest = p->used;
	cache_drop(rc, oldest + 1);
}

void
ring_cache_free(struct ring_cache *rc)
{
	if (rc == NULL)
		return;
	cache_drop(rc, UINT64_MAX);
	free(rc->owner);
	free(rc);
}

static uint64_t
ring_key(const struct state *s, const struct state_ring *ring)
{
	uint64_t h = hash_step(s->seed, s->ring_size);
	size_t i;

	for (i = 0; i < ring->nmember; i++)
		h = hash_mix(h ^ hash_addr(&ring->member[i].addr,
		    ring->member[i].weight));
	return h;
}

static struct primary *
primary_find(const struct ring_cache *rc, const struct state *s,
    const struct state_ring *ring, uint64_t key)
{
	struct primary *p;

	for (p = rc->bucket[key % BUCKETS]; p != NULL; p = p->next)
		if (p->key == key && p->seed == s->seed &&
		    p->size == s->ring_size && p->nmember == ring->nmember &&
		    (p->nmember == 0 || memcmp(p->member, ring->member,
		    p->nmember * sizeof(*p->member)) == 0))
			break;
	return p;
}

static struct primary *
primary_new(const struct state *s, const struct state_ring *ring, uint64_t key)
{
	struct primary *p = must_calloc(1, sizeof(*p));

	p->key = key;
	p->seed = s->seed;
	p->size = s->ring_size;
	p->nmember = ring->nmember;
	p->member = must_calloc(ring->nmember, sizeof(*p->member));
	if (ring->nmember > 0)
		memcpy(p->member, ring->member,
		    ring->nmember * sizeof(*p->member));
	p->owner = must_calloc(p->size, sizeof(*p->owner));
	maglev_build(p->member, p->nmember, p->seed, p->size, p->owner);
	return p;
}

/* The ring's primary owners; valid until the next call. */
static const uint16_t *
ring_primary(struct ring_cache *rc, const struct state *s,
    const struct state_ring *ring)
{
	uint64_t key = ring_key(s, ring);
	struct primary *p = primary_find(rc, s, ring, key);

	if (p == NULL) {
		p = primary_new(s, ring, key);
		p->next = rc->bucket[key % BUCKETS];
		rc->bucket[key % BUCKETS] = p;
		rc->bytes += primary_bytes(p);
	}
	p->used = ++rc->tick;
	while (rc->bytes > RING_CACHE_MAX && rc->bytes > primary_bytes(p))
		cache_drop_oldest(rc);
	return p->owner;
}

void
ring_cache_trim(struct ring_cache *rc, const struct state *wanted)
{
	uint64_t before = rc->tick;
	struct primary *p;
	size_t i;

	for (i = 0; i < wanted->nring; i++) {
		p = primary_find(rc, wanted, &wanted->ring[i],
		    ring_key(wanted, &wanted->ring[i]));
		if (p != NULL)
			p->used = ++rc->tick;
	}
	cache_drop(rc, before + 1);
}

/* Eligible owners; valid until the next call. */
static const uint16_t *
ring_owners(struct ring_cache *rc, const struct state *s,
    const struct state_ring *ring, const bool *eligible)
{
	const uint16_t *primary = ring_primary(rc, s, ring);
	size_t i;

	for (i = 0; i < ring->nmember && eligible[i]; i++)
		;
	if (i == ring->nmember)
		return primary;
	if (rc->size != s->ring_size) {
		free(rc->owner);
		rc->owner = must_calloc(s->ring_size, sizeof(*rc->owner));
		rc->size = s->ring_size;
	}
	maglev_eligible(ring->member, ring->nmember, s->seed, s->ring_size,
	    primary, eligible, rc->owner);
	return rc->owner;
}

static uint32_t
owner_word(const struct state_ring *ring, uint16_t owner)
{
	return owner == MAGLEV_NONE ? 0 :
	    XLB_SLOT(ring->number_of[owner], 0, 0);
}

void
state_ring_words_of(struct ring_cache *rc, const struct state *wanted,
    const struct state_ring *ring, const bool *eligible, uint32_t *word)
{
	const uint16_t *owner = ring_owners(rc, wanted, ring, eligible);
	uint32_t i;

	for (i = 0; i < wanted->ring_size; i++)
		word[i] = owner_word(ring, owner[i]);
}

void
state_ring_words(struct ring_cache *rc, const struct state *wanted,
    const struct state_ring *ring, uint32_t *word)
{
	state_ring_words_of(rc, wanted, ring, ring->eligible, word);
}

bool
state_ring_same(struct ring_cache *rc, const struct state *wanted,
    const struct state_ring *ring, const uint32_t *word)
{
	const uint16_t *owner = ring_owners(rc, wanted, ring, ring->eligible);
	uint32_t i, end, diff = 0;

	/* in stretches, so that the loop has no exit to predict; nobody owns
	 * one slot only where nobody owns any */
	for (i = 0; i < wanted->ring_size && diff == 0;) {
		end = wanted->ring_size - i > 4096 ? i + 4096 :
		    wanted->ring_size;
		if (owner[0] == MAGLEV_NONE)
			for (; i < end; i++)
				diff |= word[i];
		else
			for (; i < end; i++)
				diff |= word[i] ^ ring->number_of[owner[i]];
		diff = XLB_SLOT_CUR(diff);
	}
	return diff == 0;
}

uint64_t
state_ring_fingerprint(struct ring_cache *rc, const struct state *wanted,
    const struct state_ring *ring)
{
	return maglev_fingerprint(ring->member, ring->nmember,
	    wanted->ring_size, ring_owners(rc, wanted, ring, ring->eligible));
}

const struct state_ring *
state_ring_find(const struct state *s, const char *pool)
{
	size_t i;

	for (i = 0; i < s->nring; i++)
		if (strcmp(s->ring[i].pool, pool) == 0)
			return &s->ring[i];
	return NULL;
}
