/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Maglev and a table of the flows used last. */
#include "lru.h"

#include <stdlib.h>
#include <string.h>

#include "core/maglev.h"

static void *
alloc(size_t n, size_t size)
{
	void *p = calloc(n, size);

	if (p == NULL)
		abort();
	return p;
}

void
lru_init(struct lru *l, uint32_t ring_size, size_t room, uint32_t flows)
{
	unsigned i;

	memset(l, 0, sizeof(*l));
	l->ring_size = ring_size;
	l->room = room;
	l->flows = flows;
	l->owner = alloc(flows, sizeof(*l->owner));
	l->older = alloc(flows + 1, sizeof(*l->older));
	l->newer = alloc(flows + 1, sizeof(*l->newer));
	for (i = 0; i < SITE_POOLS; i++)
		l->ring[i].owner = alloc(ring_size, sizeof(uint16_t));
	lru_empty(l);
}

void
lru_fini(struct lru *l)
{
	unsigned i;

	free(l->owner);
	free(l->older);
	free(l->newer);
	for (i = 0; i < SITE_POOLS; i++)
		free(l->ring[i].owner);
}

void
lru_empty(struct lru *l)
{
	memset(l->owner, 0, l->flows);
	l->held = 0;
	l->older[l->flows] = l->newer[l->flows] = l->flows;
}

static void
pool_build(struct lru *l, const struct site *s, unsigned pool, const bool *up)
{
	struct maglev_member member[SITE_BACKENDS];
	uint16_t *owner = l->ring[pool].owner, index[SITE_BACKENDS];
	uint32_t i, n = 0;

	memset(member, 0, sizeof(member));
	for (i = 0; i < s->nbackend; i++) {
		if (!site_eligible(s, pool, i, up))
			continue;
		member[n].addr = site_address(i);
		member[n].weight = s->pool[pool].member[i].weight;
		index[n++] = (uint16_t)i;
	}
	if (n == 0) {
		for (i = 0; i < l->ring_size; i++)
			owner[i] = MAGLEV_NONE;
		return;
	}
	maglev_build(member, n, 0, l->ring_size, owner);
	for (i = 0; i < l->ring_size; i++)
		owner[i] = index[owner[i]];
}

void
lru_build(struct lru *l, const struct site *s, const bool *up)
{
	unsigned i;

	for (i = 0; i < s->npool; i++)
		pool_build(l, s, i, up);
}

static void
unlink_flow(struct lru *l, uint32_t f)
{
	l->newer[l->older[f]] = l->newer[f];
	l->older[l->newer[f]] = l->older[f];
}

static void
link_newest(struct lru *l, uint32_t f)
{
	uint32_t end = l->flows;

	l->older[f] = l->older[end];
	l->newer[f] = end;
	l->newer[l->older[f]] = f;
	l->older[end] = f;
}

void
lru_forget(struct lru *l, uint32_t f)
{
	if (l->owner[f] == 0)
		return;
	unlink_flow(l, f);
	l->owner[f] = 0;
	l->held--;
}

/* The list's end is before the oldest and behind the newest. */
static void
evict(struct lru *l)
{
	lru_forget(l, l->newer[l->flows]);
	l->evicted++;
}

int
lru_packet(struct lru *l, const struct site *s, const bool *up,
    unsigned pool, uint32_t select, uint32_t flow)
{
	uint16_t to = l->ring[pool].owner[(uint64_t)select * l->ring_size >>
	    32];

	if (l->owner[flow] != 0) {
		unlink_flow(l, flow);
		link_newest(l, flow);
		if (site_lives(s, pool, l->owner[flow] - 1U, up))
			return l->owner[flow] - 1;
	}
	if (to == MAGLEV_NONE)
		return -1;
	if (l->owner[flow] == 0) {
		if (l->room != 0 && l->held == l->room)
			evict(l);
		link_newest(l, flow);
		l->held++;
	}
	l->owner[flow] = (uint8_t)(to + 1);
	return to;
}
