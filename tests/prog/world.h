/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A configuration made up at random, as the reference reads it, and written
 * into the maps as bpf/xlb_abi.h says.
 */
#ifndef XLB_PROG_WORLD_H
#define XLB_PROG_WORLD_H

#include "reference.h"
#include "rng.h"

struct xlb_nat;
struct xlb_tables;
struct xlb_ring;

#define WORLD_ENGINES 2

/* The maps of one program under test. */
struct world_maps {
	struct xlb_tables *tables;
	struct xlb_ring *ring[REF_RINGS];
	struct xlb_nat *nat;	/* not written here */
};

struct world {
	struct ref_config config;
	struct xlb_tables *image;
	struct world_maps maps[WORLD_ENGINES];
	unsigned nmaps;
	unsigned half[REF_RINGS];	/* that is active */
};

/* IPv4: the upper and lower half of it; IPv6: 2001:db8:NET::HOST. */
void world_address(uint8_t addr[16], bool v6, unsigned net, unsigned host);
/* A new configuration; what was there before is gone. */
void world_build(struct world *w, struct rng *r, bool jumbo);
/* One thing changes: a ring, a neighbour, a backend's address. */
void world_step(struct world *w, struct rng *r);

#endif
