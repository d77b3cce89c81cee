/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What xlb is measured against: each packet is looked up in an LRU of exact
 * flows, one that is not there goes by Maglev over the backends that take flows
 * now, which is rebuilt at each change, and is remembered.
 */
#ifndef XLB_MODEL_LRU_H
#define XLB_MODEL_LRU_H

#include "site.h"

/* An LRU hash entry takes this many of xlb's (96 bytes and 8). */
#define LRU_COST 12

struct lru_ring {
	uint16_t *owner;	/* by slot: backend; MAGLEV_NONE */
};

struct lru {
	uint32_t ring_size;
	struct lru_ring ring[SITE_POOLS];
	size_t room, held;	/* entries; room 0: no limit */
	uint32_t flows;		/* flow numbers are below */
	uint8_t *owner;		/* by flow: backend + 1; 0: not held */
	uint32_t *older, *newer;	/* by flow; [flows] is the list's end */
	uint64_t evicted;
};

void lru_init(struct lru *l, uint32_t ring_size, size_t room, uint32_t flows);
void lru_fini(struct lru *l);
void lru_empty(struct lru *l);
/* The number is another flow's from now on. */
void lru_forget(struct lru *l, uint32_t flow);
void lru_build(struct lru *l, const struct site *s, const bool *up);
/* The backend, or -1. */
int lru_packet(struct lru *l, const struct site *s, const bool *up,
    unsigned pool, uint32_t select, uint32_t flow);

#endif
