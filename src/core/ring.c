/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Slot words of wanted rings; primary owners are kept between calls, because
 * they change with members and weights only and cost more than all else. */
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/hash.h"
#include "core/maglev.h"
#include "core/state.h"

/* Primary owners of one set of members; pools with the same share it. */
struct primary {
	struct primary *next;	/* more recently used ones are in front */
	uint64_t key;		/* hash of all below; they decide */
	uint64_t seed;
	uint32_t size;
	size_t nmember;
	struct maglev_member *member;
	uint16_t *owner;	/* `size` member indices */
	bool wanted;		/* while trimming */
};

struct ring_cache {
	struct primary *head;
	size_t bytes;		/* held by all entries */
	uint16_t *owner;	/* scratch: eligible owners of one ring */
	uint32_t size;		/* of `owner` */
};

struct ring_cache *
ring_cache_new(void)
{
	struct ring_cache *rc = calloc(1, sizeof(*rc));

	if (rc == NULL)
		abort();
	return rc;
}

static size_t
primary_bytes(const struct primary *p)
{
	return sizeof(*p) + p->nmember * sizeof(*p->member) +
	    p->size * sizeof(*p->owner);
}

/* Takes out *at. */
static void
primary_drop(struct ring_cache *rc, struct primary **at)
{
	struct primary *p = *at;

	*at = p->next;
	rc->bytes -= primary_bytes(p);
	free(p->member);
	free(p->owner);
	free(p);
}

void
ring_cache_free(struct ring_cache *rc)
{
	if (rc == NULL)
		return;
	while (rc->head != NULL)
		primary_drop(rc, &rc->head);
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

/* Where the ring's entry hangs, or the end of the list. */
static struct primary **
primary_find(struct ring_cache *rc, const struct state *s,
    const struct state_ring *ring, uint64_t key)
{
	struct primary **at, *p;

	for (at = &rc->head; (p = *at) != NULL; at = &p->next) {
		if (p->key == key && p->seed == s->seed &&
		    p->size == s->ring_size && p->nmember == ring->nmember &&
		    (p->nmember == 0 || memcmp(p->member, ring->member,
		    p->nmember * sizeof(*p->member)) == 0))
			break;
	}
	return at;
}

static void *
alloc(size_t n, size_t size)
{
	void *p = calloc(n == 0 ? 1 : n, size);

	if (p == NULL)
		abort();
	return p;
}

static struct primary *
primary_new(const struct state *s, const struct state_ring *ring, uint64_t key)
{
	struct primary *p = alloc(1, sizeof(*p));

	p->key = key;
	p->seed = s->seed;
	p->size = s->ring_size;
	p->nmember = ring->nmember;
	p->member = alloc(ring->nmember, sizeof(*p->member));
	if (ring->nmember > 0)
		memcpy(p->member, ring->member,
		    ring->nmember * sizeof(*p->member));
	p->owner = alloc(p->size, sizeof(*p->owner));
	maglev_build(p->member, p->nmember, p->seed, p->size, p->owner);
	return p;
}

/* The ring's primary owners; valid until the next call. */
static const uint16_t *
ring_primary(struct ring_cache *rc, const struct state *s,
    const struct state_ring *ring)
{
	uint64_t key = ring_key(s, ring);
	struct primary **at = primary_find(rc, s, ring, key), *p = *at;

	if (p != NULL) {
		*at = p->next;
	} else {
		p = primary_new(s, ring, key);
		rc->bytes += primary_bytes(p);
	}
	p->next = rc->head;
	rc->head = p;
	while (rc->bytes > RING_CACHE_MAX && p->next != NULL) {
		for (at = &p->next; (*at)->next != NULL; at = &(*at)->next)
			;
		primary_drop(rc, at);
	}
	return p->owner;
}

void
ring_cache_trim(struct ring_cache *rc, const struct state *wanted)
{
	struct primary **at, *p;
	size_t i;

	for (p = rc->head; p != NULL; p = p->next)
		p->wanted = false;
	for (i = 0; i < wanted->nring; i++) {
		p = *primary_find(rc, wanted, &wanted->ring[i],
		    ring_key(wanted, &wanted->ring[i]));
		if (p != NULL)
			p->wanted = true;
	}
	for (at = &rc->head; *at != NULL;) {
		if ((*at)->wanted)
			at = &(*at)->next;
		else
			primary_drop(rc, at);
	}
}

/* Eligible owners, in the cache's scratch. */
static const uint16_t *
ring_owners(struct ring_cache *rc, const struct state *s,
    const struct state_ring *ring, const bool *eligible)
{
	const uint16_t *primary = ring_primary(rc, s, ring);

	if (rc->size != s->ring_size) {
		free(rc->owner);
		rc->owner = alloc(s->ring_size, sizeof(*rc->owner));
		rc->size = s->ring_size;
	}
	maglev_eligible(ring->member, ring->nmember, s->seed, s->ring_size,
	    primary, eligible, rc->owner);
	return rc->owner;
}

void
state_ring_words_of(struct ring_cache *rc, const struct state *wanted,
    const struct state_ring *ring, const bool *eligible, uint32_t *word)
{
	const uint16_t *owner = ring_owners(rc, wanted, ring, eligible);
	uint32_t i;

	for (i = 0; i < wanted->ring_size; i++)
		word[i] = owner[i] == MAGLEV_NONE ? 0 :
		    XLB_SLOT(ring->number_of[owner[i]], 0, 0);
}

void
state_ring_words(struct ring_cache *rc, const struct state *wanted,
    const struct state_ring *ring, uint32_t *word)
{
	state_ring_words_of(rc, wanted, ring, ring->eligible, word);
}

uint64_t
state_ring_fingerprint(struct ring_cache *rc, const struct state *wanted,
    const struct state_ring *ring)
{
	return maglev_fingerprint(ring->member, ring->nmember,
	    wanted->ring_size, ring_owners(rc, wanted, ring, ring->eligible));
}
