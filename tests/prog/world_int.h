/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of world.h share. */
#ifndef XLB_PROG_WORLD_INT_H
#define XLB_PROG_WORLD_INT_H

#include "world.h"

/* A row of the table of VIPs, in the image; some before it are gone. */
void world_vip_put(struct world *w, struct rng *r, const uint8_t addr[16],
    uint32_t id, uint32_t flags);

/* Addresses that NAT sends from, which may be VIPs, and interfaces; in the
 * image. */
void world_nat_make(struct world *w, struct rng *r);
/* Their rows among the VIPs, behind those. */
void world_own_make(struct world *w, struct rng *r);
/* Which backends of a ring keep their flows: read for NAT alone. */
void world_roles_make(struct world *w, struct rng *r, unsigned ring);
/* As whom a backend is asked; some by nobody, so its flows find no port. */
void world_sources_give(struct world *w, struct rng *r, unsigned backend);
/* Of one family, mostly: the first one of IPv4. */
bool world_ring_is_nat(unsigned ring);
/* Numbers of sources need not be dense; they keep their order. */
unsigned world_source_number(unsigned i);

#endif
