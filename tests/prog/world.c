/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Configurations at random. */
#include "world.h"

#include <assert.h>
#include <string.h>

#include "ref_packet.h"
#include "world_int.h"
#include "xlb_abi.h"

#define FORWARD(s) ((s)->forward == REF_GUE ? XLB_FORWARD_GUE : \
    (s)->forward == REF_L2 ? XLB_FORWARD_L2 : \
    (s)->forward == REF_NAT ? XLB_FORWARD_NAT | XLB_SERVICE_NAT : \
    XLB_FORWARD_IPIP)

/* From the image into all maps. */
static void
publish(struct world *w, const void *from, size_t len)
{
	size_t at = (size_t)((const uint8_t *)from -
	    (const uint8_t *)w->image);
	unsigned i;

	for (i = 0; i < w->nmaps; i++)
		memcpy((uint8_t *)w->maps[i].tables + at, from, len);
}

void
world_address(uint8_t addr[16], bool v6, unsigned net, unsigned host)
{
	memset(addr, 0, 16);
	if (v6) {
		memcpy(addr, "\x20\x01\x0d\xb8", 4);
		addr[4] = (uint8_t)(net >> 8);
		addr[5] = (uint8_t)net;
	} else {
		addr[10] = addr[11] = 0xff;
		addr[12] = (uint8_t)(net >> 8);
		addr[13] = (uint8_t)net;
	}
	addr[14] = (uint8_t)(host >> 8);
	addr[15] = (uint8_t)host;
}

static void
prefix_make(struct rng *r, struct ref_prefix *p, bool v6)
{
	unsigned bits = v6 ? 128 : 32, bit;
	uint8_t addr[16];

	memset(p, 0, sizeof(*p));
	if (rng_chance(r, 30))
		return;
	world_address(addr, v6, v6 ? 0xff : 0x0aff, 0x0101);
	memcpy(p->addr, addr + (v6 ? 0 : 12), v6 ? 16 : 4);
	p->len = rng_range(r, v6 ? 48 : 12, bits);
	for (bit = p->len; bit < bits; bit++)
		p->addr[bit / 8] &= (uint8_t)~(0x80 >> bit % 8);
}

static void
mask_put(uint8_t *to, const struct ref_prefix *p, unsigned bits)
{
	unsigned bit;

	for (bit = p->len; p->len > 0 && bit < bits; bit++)
		to[bit / 8] |= (uint8_t)(0x80 >> bit % 8);
}

static void
settings_put(struct world *w)
{
	const struct ref_config *c = &w->config;
	struct xlb_settings *s = &w->image->settings;

	memset(s, 0, sizeof(*s));
	s->abi = XLB_ABI;
	s->ring_size = c->ring_size;
	memcpy(s->hash_key, c->key, sizeof(c->key));
	memcpy(s->hash.word, c->hash.word, sizeof(s->hash.word));
	memcpy(s->hash.odd, c->hash.odd, sizeof(s->hash.odd));
	memcpy(&s->source4, c->source4.addr, 4);
	mask_put((uint8_t *)&s->source4_mask, &c->source4, 32);
	memcpy(s->source6, c->source6.addr, 16);
	mask_put(s->source6_mask, &c->source6, 128);
	s->tunnel_mtu = c->tunnel_mtu;
	s->gue_port = c->gue_port;
	/* written and read as ever, but it binds nobody: rings have no members
	 * that keep their flows */
	s->flow_budget = UINT32_MAX;
	publish(w, s, sizeof(*s));
}

static void
settings_make(struct world *w, struct rng *r)
{
	static const unsigned tunnel[] = { 0, 0, 0, 1280, 1400 };
	struct ref_config *c = &w->config;

	rng_bytes(r, c->key, sizeof(c->key));
	if (rng_chance(r, 10))
		memset(c->key, 0, sizeof(c->key));
	ref_hash_expand(c->key, &c->hash);
	prefix_make(r, &c->source4, false);
	prefix_make(r, &c->source6, true);
	c->gue_port = (uint16_t)(rng_chance(r, 50) ? 6080 : rng_next(r));
	c->tunnel_mtu = RNG_PICK(r, tunnel);
	settings_put(w);
}

static void
backend_put(struct world *w, unsigned n)
{
	struct xlb_backend *row = &w->image->backend[n];
	unsigned i;

	memcpy(row->addr, w->config.backend[n].addr, 16);
	row->nexthop = w->config.backend[n].hop;
	row->sources = 0;
	for (i = 0; i < REF_SOURCES; i++)
		if (w->config.backend[n].source[i])
			row->sources |= 1ULL << world_source_number(i);
	publish(w, row, sizeof(*row));
}

static void
hop_put(struct world *w, unsigned n)
{
	const struct ref_hop *h = &w->config.hop[n];
	struct xlb_nexthop *row = &w->image->nexthop[n];
	uint8_t word[8] = { 0 };

	if (h->resolved) {
		memcpy(word, h->mac, 6);
		word[6] = (uint8_t)(h->tci >> 8);
		word[7] = (uint8_t)h->tci;
	}
	memcpy(&row->mac_vlan, word, 8);
	memcpy(row->src_mac, h->own_mac, 6);
	row->mtu = h->mtu;
	row->ifindex = h->ifindex;
	row->flags = XLB_NEXTHOP_VALID;
	memcpy(row->src, h->src, 16);
	memcpy(row->gateway, h->gateway, 16);
	publish(w, row, sizeof(*row));
}

static void
hop_make(struct world *w, struct rng *r, unsigned n, bool v6, bool jumbo)
{
	static const uint16_t mtu[] = { 300, 576, 1280, 1400, 1492, 1500, 1500,
	    1500, 9000, 9000 };
	struct ref_hop *h = &w->config.hop[n];

	h->resolved = rng_chance(r, 93);
	rng_bytes(r, h->mac, 6);
	rng_bytes(r, h->own_mac, 6);
	h->mac[0] = h->own_mac[0] = 2;
	h->tci = rng_chance(r, 60) ? 0 :
	    (uint16_t)(rng_range(r, 5, 7) | (rng_chance(r, 20) ? 0x2000 : 0));
	h->mtu = jumbo && rng_chance(r, 20) ? 15000 : RNG_PICK(r, mtu);
	if (w->config.tunnel_mtu != 0 && w->config.tunnel_mtu < h->mtu)
		h->mtu = (uint16_t)w->config.tunnel_mtu;
	h->ifindex = rng_chance(r, 75) ? 1 : rng_chance(r, 85) ? 2 : 3;
	world_address(h->src, v6, v6 ? 1 : 0x0a00, rng_range(r, 1, 3));
	world_address(h->gateway, v6, v6 ? 1 : 0x0a00, 0xfe);
}

/* A next hop of its own for each, and a few that are shared. */
static void
backends_make(struct world *w, struct rng *r, bool jumbo)
{
	struct ref_config *c = &w->config;
	struct ref_backend *b;
	unsigned n;

	for (n = 1; n < REF_BACKENDS; n++) {
		b = &c->backend[n];
		b->v6 = rng_chance(r, 45);
		world_address(b->addr, b->v6, b->v6 ? 1 : 0x0a01,
		    n | rng_below(r, 200) << 8);
		hop_make(w, r, n, b->v6, jumbo);
		if (rng_chance(r, 75))
			memcpy(c->hop[n].gateway, b->addr, 16);
		b->hop = rng_chance(r, 97) ? n : 0;
		world_sources_give(w, r, n);
		if (n > 1 && rng_chance(r, 15) && c->backend[n - 1].v6 == b->v6)
			b->hop = n - 1;
		hop_put(w, n);
		backend_put(w, n);
	}
}

/* Into the half that is not active, then that one is. */
static void
ring_make(struct world *w, struct rng *r, unsigned n)
{
	struct ref_config *c = &w->config;
	unsigned i, k, pool[6], npool = rng_chance(r, 7) ? 0 :
	    rng_range(r, 1, 6);

	for (k = 0; k < npool; k++)
		do
			pool[k] = rng_range(r, 1, REF_BACKENDS - 1);
		while (world_ring_is_nat(n) && c->backend[pool[k]].v6 != n % 2 &&
		    rng_chance(r, 95));
	if (world_ring_is_nat(n))
		world_roles_make(w, r, n);
	w->half[n] ^= 1;
	for (i = 0; i < c->ring_size; i++) {
		c->ring[n][i] = npool == 0 || rng_chance(r, 4) ? 0 :
		    (uint16_t)pool[rng_below(r, npool)];
		for (k = 0; k < w->nmaps; k++)
			w->maps[k].ring[n]->slot[i + w->half[n] *
			    c->ring_size] = XLB_SLOT(c->ring[n][i], 0, 0);
	}
	for (k = 0; k < w->nmaps; k++) {
		w->maps[k].ring[n]->size = c->ring_size;
		w->maps[k].ring[n]->active = w->half[n];
	}
}

/* No IPv4 source that begins with these two bytes is a martian. */
static bool
plain(const struct ref_config *c, const uint8_t b[2])
{
	uint8_t mask[2] = { 0xff, 0xff };
	unsigned i;

	if (b[0] == 0 || b[0] == 127 || b[0] >= 224)
		return false;
	for (i = 0; i < c->nvip; i++)
		if (memcmp(c->vip[i].addr + 12, b, 2) == 0)
			return false;
	if (c->source4.len == 0)
		return true;
	for (i = c->source4.len; i < 16; i++)
		mask[i / 8] &= (uint8_t)~(0x80 >> i % 8);
	return ((b[0] ^ c->source4.addr[0]) & mask[0]) != 0 ||
	    ((b[1] ^ c->source4.addr[1]) & mask[1]) != 0;
}

/* Some of the bits that may be there. */
static void
plain_make(struct world *w, struct rng *r)
{
	unsigned at, few = rng_below(r, 3);
	uint8_t b[2];
	uint16_t word;

	for (at = 0; at < 65536; at++) {
		word = (uint16_t)at;
		memcpy(b, &word, sizeof(b));
		if (plain(&w->config, b) && (few != 0 || rng_chance(r, 50)))
			w->image->plain_source[at / 8] |=
			    (uint8_t)(1 << at % 8);
	}
}

/* Some rows before it are gone. */
void
world_vip_put(struct world *w, struct rng *r, const uint8_t of[16], __u32 id,
    __u32 flags)
{
	struct xlb_vip *row;
	__be32 addr[4];
	__u32 hash, gone = rng_below(r, 4);

	memcpy(addr, of, 16);
	hash = xlb_vip_hash(addr);
	w->image->vip_filter[hash / 64] |= 1ULL << (hash & 63);
	for (;; hash++) {
		row = &w->image->vip[hash & (XLB_TABLE_ROWS - 1)];
		if (row->id != XLB_ROW_EMPTY)
			continue;
		memcpy(row->addr, addr, 16);
		row->id = id;
		row->flags = flags;
		if (gone-- == 0)
			return;
		row->id = XLB_ROW_GONE;
	}
}

static void
service_put(struct world *w, struct rng *r, const struct ref_service *s)
{
	__u64 key = XLB_SERVICE_KEY(s->vip + 1, s->proto, s->port);
	__u32 at = xlb_service_hash(key), gone = rng_below(r, 4);
	struct xlb_service *row;

	for (;; at++) {
		row = &w->image->service[at & (XLB_TABLE_ROWS - 1)];
		if (row->key != XLB_ROW_EMPTY)
			continue;
		row->key = XLB_ROW_GONE;
		if (gone-- == 0)
			break;
	}
	row->key = key;
	row->word = XLB_SERVICE_WORD(s->number, s->ring, s->ring, FORWARD(s) |
	    (s->by_source ? XLB_SERVICE_HASH_SOURCE : 0));
}

static void
service_make(struct world *w, struct rng *r, unsigned vip, uint8_t proto,
    uint16_t port)
{
	struct ref_config *c = &w->config;
	struct ref_service *s = &c->service[c->nservice++];
	unsigned kind = rng_below(r, 10);

	assert(c->nservice <= REF_SERVICES);
	s->vip = vip;
	s->proto = proto;
	s->port = port;
	s->number = c->nservice;
	s->ring = rng_chance(r, 97) ? rng_below(r, REF_RINGS -
	    REF_NAT_RINGS) : REF_RINGS + 1;
	s->forward = kind < 4 ? REF_IPIP : kind < 6 ? REF_GUE :
	    kind < 7 ? REF_L2 : REF_NAT;
	s->by_source = rng_chance(r, 25);
	s->backend_port = 0;
	if (s->forward == REF_NAT) {
		s->ring = REF_RINGS - REF_NAT_RINGS + s->vip % 2;
		s->backend_port = (uint16_t)(rng_chance(r, 50) ? 0 : 8080);
	}
	w->image->backend_port[s->number] = s->backend_port;
	service_put(w, r, s);
}

static void
vip_make(struct world *w, struct rng *r, unsigned n)
{
	struct ref_vip *v = &w->config.vip[n];

	w->config.nvip = n + 1;
	v->v6 = n % 2;
	v->local = rng_chance(r, 20);
	world_address(v->addr, v->v6, v->v6 ? 5 : 0xcb00,
	    n | rng_below(r, 255) << 8);
}

/* What gen.c sends to: 80 and 443 mostly. */
static void
services_make(struct world *w, struct rng *r, unsigned n)
{
	struct ref_vip *v = &w->config.vip[n];
	__u32 flags = v->local ? XLB_VIP_LOCAL : 0;

	service_make(w, r, n, 6, 80);
	if (rng_chance(r, 70))
		service_make(w, r, n, 6, 443);
	if (rng_chance(r, 80))
		service_make(w, r, n, 17, 443);
	if (rng_chance(r, 20)) {
		service_make(w, r, n, 6, 0);
		flags |= XLB_VIP_ANY_TCP;
	}
	if (rng_chance(r, 20)) {
		service_make(w, r, n, 17, 0);
		flags |= XLB_VIP_ANY_UDP;
	}
	if (ref_is_source(&w->config, v->addr))
		flags |= XLB_VIP_SOURCE;
	world_vip_put(w, r, v->addr, n + 1, flags);
}

void
world_build(struct world *w, struct rng *r, bool jumbo)
{
	struct ref_config *c = &w->config;
	unsigned i;

	memset(w->image, 0, sizeof(*w->image));
	c->nvip = c->nservice = 0;
	c->ingress = 1;
	c->port[0] = 2;
	c->nport = 1;
	settings_make(w, r);
	for (i = 0; i < REF_VIPS - 2; i++)
		vip_make(w, r, i);
	world_nat_make(w, r);
	for (i = 0; i < c->nvip; i++)
		services_make(w, r, i);
	world_own_make(w, r);
	for (i = 0; i < 50; i++)	/* bits for nothing */
		w->image->vip_filter[rng_below(r, XLB_TABLE_ROWS / 64)] |=
		    rng_next(r) & rng_next(r);
	if (rng_chance(r, 80))
		plain_make(w, r);
	publish(w, w->image, sizeof(*w->image));
	backends_make(w, r, jumbo);
	for (i = 0; i < REF_RINGS; i++)
		ring_make(w, r, i);
}

void
world_step(struct world *w, struct rng *r)
{
	unsigned n = rng_range(r, 1, REF_BACKENDS - 1);
	struct ref_config *c = &w->config;
	struct ref_backend *b = &c->backend[n];
	struct ref_hop *h = &c->hop[n];

	switch (rng_below(r, 7)) {
	case 0:
		ring_make(w, r, rng_below(r, REF_RINGS));
		break;
	case 1:
		h->resolved = !h->resolved;
		break;
	case 2:
		rng_bytes(r, h->mac, 6);
		break;
	case 3:
		world_address(b->addr, b->v6, b->v6 ? 1 : 0x0a01,
		    n | rng_below(r, 200) << 8);
		break;
	case 4:
		b->hop = b->hop == 0 ? n : 0;
		break;
	case 5:
		world_roles_make(w, r, REF_RINGS - 1 -
		    rng_below(r, REF_NAT_RINGS));
		break;
	case 6:
		world_sources_give(w, r, n);
		break;
	}
	hop_put(w, n);
	backend_put(w, n);
}
