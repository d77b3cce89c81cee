/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What NAT has of a configuration at random. */
#include "world_int.h"

#include <string.h>

#include "xlb_abi.h"

#define OWN_ID 1000		/* and on, in the table of VIPs */

unsigned
world_source_number(unsigned i)
{
	return 7 * i + 1;
}

bool
world_ring_is_nat(unsigned n)
{
	return n >= REF_RINGS - REF_NAT_RINGS;
}

void
world_roles_make(struct world *w, struct rng *r, unsigned n)
{
	unsigned i, k;
	uint32_t word[2] = { 0 };

	for (i = 1; i < REF_BACKENDS; i++) {
		w->config.keeps[n][i] = rng_chance(r, 80);
		if (w->config.keeps[n][i])
			word[i / 16] |= (uint32_t)(XLB_MEMBER |
			    XLB_MEMBER_KEEPS) << i % 16 * 2;
	}
	for (k = 0; k < w->nmaps; k++)
		memcpy(w->maps[k].ring[n]->member, word, sizeof(word));
}

void
world_sources_give(struct world *w, struct rng *r, unsigned backend)
{
	struct ref_backend *b = &w->config.backend[backend];
	bool none = rng_chance(r, 30);
	unsigned i;

	for (i = 0; i < REF_SOURCES; i++)
		b->source[i] = i % 2 == b->v6 && !none &&
		    (i < 2 || rng_chance(r, 30));
}

static bool
is_vip(const struct ref_config *c, const uint8_t addr[16])
{
	unsigned i;

	for (i = 0; i < c->nvip; i++)
		if (memcmp(c->vip[i].addr, addr, 16) == 0)
			return true;
	return false;
}

/* What NAT sends from: addresses of the host's own, which may be VIPs. */
static void
sources_make(struct world *w, struct rng *r)
{
	struct ref_config *c = &w->config;
	unsigned i, v6;

	for (i = 0; i < REF_SOURCES; i++) {
		v6 = i % 2;
		world_address(c->source[i], v6, v6 ? 1 : 0x0a00, 10 + i);
		if (i >= 4 && rng_chance(r, 40))
			memcpy(c->source[i], c->vip[2 * rng_below(r, 3) +
			    v6].addr, 16);
		memcpy(w->image->source[world_source_number(i)].addr, c->source[i],
		    16);
	}
}

void
world_own_make(struct world *w, struct rng *r)
{
	const struct ref_config *c = &w->config;
	unsigned i;

	for (i = 0; i < REF_SOURCES; i++)
		if (!is_vip(c, c->source[i]))
			world_vip_put(w, r, c->source[i], (OWN_ID + i) |
			    XLB_VIP_OWN, 0);
}

/* The interface that frames come by is one, mostly. */
static void
doors_make(struct world *w, struct rng *r)
{
	static const uint16_t mtu[] = { 576, 1280, 1400, 1500, 1500, 1500, 9000,
	    16000 };
	struct xlb_nexthop *row;
	struct ref_door *d;
	unsigned i;

	for (i = 0; i < REF_DOORS; i++) {
		d = &w->config.door[i];
		row = &w->image->door[11 * i + 3];
		d->there = rng_chance(r, 95);
		rng_bytes(r, d->own_mac, 6);
		d->mtu = RNG_PICK(r, mtu);
		d->ifindex = i == 0 ? 2 : 1;
		if (!d->there)
			continue;
		memcpy(row->src_mac, d->own_mac, 6);
		row->mtu = d->mtu;
		row->ifindex = d->ifindex;
		row->flags = XLB_NEXTHOP_VALID;
	}
}

void
world_nat_make(struct world *w, struct rng *r)
{
	sources_make(w, r);
	doors_make(w, r);
}
