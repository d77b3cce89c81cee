/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From the configuration and what is known of health, routes and the maps to
 * the state that the maps should have. */
#include "core/state.h"

#include <netinet/in.h>
#include <string.h>

#include "core/arena.h"
#include "core/hash_key.h"
#include "core/ids.h"
#include "core/path_mtu.h"
#include "core/rows.h"
#include "core/state_build.h"

#define FLOW_BUDGET_MIN 16	/* for tables that are for trying out */

/* Host bits as ones. */
static void
host_mask(const struct prefix *p, uint8_t mask[16])
{
	unsigned bit, first = 128 - addr_bits(&p->addr) + p->len;

	memset(mask, 0, 16);
	for (bit = first; bit < 128; bit++)
		mask[bit / 8] |= (uint8_t)(0x80 >> bit % 8);
}

/*
 * New entries per CPU and window of 67 ms: a 256th of the table, so that one CPU
 * needs 17 seconds to write all of it and 16 of them one, which is what a flow
 * has to send its second packet and be confirmed. Confirmed flows do not depend
 * on it. A node that is sized as the manual says (four entries for a flow) comes
 * that far with flows of 4 seconds on one CPU alone.
 */
static uint32_t
flow_budget(uint32_t entries)
{
	return entries / 256 > FLOW_BUDGET_MIN ? entries / 256 :
	    FLOW_BUDGET_MIN;
}

static void
settings_build(const struct state_input *in, struct xlb_settings *s)
{
	const struct conf *c = in->conf;
	uint8_t mask[16];

	memset(s, 0, sizeof(*s));
	s->abi = XLB_ABI;
	s->ring_size = c->table_size;
	s->seed = c->seed;
	memcpy(s->hash_key, in->hash_key, sizeof(s->hash_key));
	hash_expand(in->hash_key, &s->hash);
	if (c->has_source4) {
		host_mask(&c->source4, mask);
		s->source4 = addr_to4(&c->source4.addr);
		memcpy(&s->source4_mask, mask + 12, 4);
	}
	if (c->has_source6) {
		memcpy(s->source6, c->source6.addr.b, 16);
		host_mask(&c->source6, s->source6_mask);
	}
	s->tunnel_mtu = c->tunnel_mtu;
	s->gue_port = c->gue_port;
	s->flags = in->surge ? XLB_SURGE : 0;
	s->flow_budget = flow_budget(c->flow_entries);
}

/* One row for each address of any pool. */
static void
backends_build(struct state_build *b)
{
	const struct conf *c = b->in->conf;
	const struct conf_pool *p;
	struct state *s = b->s;
	size_t i, k, n = 0;

	for (i = 0; i < c->npool; i++)
		n += c->pool[i].nbackend;
	s->backend = arena_calloc(b->a, n, sizeof(*s->backend));
	for (i = 0; i < c->npool; i++) {
		p = &c->pool[i];
		for (k = 0; k < p->nbackend; k++)
			s->backend[s->nbackend++].addr = p->backend[k].address;
	}
	rows_sort(s->backend, n, sizeof(*s->backend), state_backend_cmp);
	s->nbackend = rows_unique(s->backend, n, sizeof(*s->backend),
	    state_backend_cmp);
}

/* The way out that the maps have for a backend, or NULL. */
static const struct state_nexthop *
hop_found(const struct state *found, const struct state_nexthop **by_number,
    const struct addr *addr)
{
	struct state_backend key = { .addr = *addr };
	const struct state_backend *old;

	old = rows_find(&key, found->backend, found->nbackend,
	    sizeof(*found->backend), state_backend_key_cmp);
	return old == NULL || old->nexthop >= XLB_NEXTHOPS ? NULL :
	    by_number[old->nexthop];
}

/* What goes that way to the backend: the packet program then compares with one
 * number. */
static uint16_t
hop_mtu(const struct state_input *in, const struct state_nexthop *hop,
    const struct addr *addr)
{
	uint32_t mtu = hop->mtu, narrow;

	if (in->conf->tunnel_mtu != 0 && mtu > in->conf->tunnel_mtu)
		mtu = in->conf->tunnel_mtu;
	narrow = in->paths != NULL ? path_narrow(in->paths, addr) : 0;
	return (uint16_t)(narrow != 0 && mtu > narrow ? narrow : mtu);
}

/* Finds each backend's way out, with the MTU of the path. While its
 * neighbour is being asked for, which takes a second at most, the one that the
 * maps have is kept. */
static void
hops_find(struct state_build *b)
{
	const struct state *found = b->in->found;
	const struct hop_table *t = b->in->hops;
	const struct state_nexthop **by_number;
	const struct hop *h;
	const struct addr *addr;
	struct state_nexthop *row;
	struct backend_hop *out;
	size_t i, at = 0;

	by_number = arena_calloc(b->a, XLB_NEXTHOPS, sizeof(*by_number));
	for (i = 0; i < found->nnexthop; i++)
		if (found->nexthop[i].number < XLB_NEXTHOPS)
			by_number[found->nexthop[i].number] =
			    &found->nexthop[i];
	b->hop = arena_calloc(b->a, b->s->nbackend, sizeof(*b->hop));
	for (i = 0; i < b->s->nbackend; i++) {
		out = &b->hop[i];
		addr = &b->s->backend[i].addr;
		while (at < t->n && addr_cmp(&t->row[at].addr, addr) < 0)
			at++;
		h = at < t->n && addr_cmp(&t->row[at].addr, addr) == 0 ?
		    &t->row[at] : NULL;
		switch (h == NULL ? HOP_RESOLVING : h->status) {
		case HOP_OK:
			row = arena_calloc(b->a, 1, sizeof(*row));
			*row = h->nexthop;
			row->mtu = hop_mtu(b->in, row, addr);
			out->nexthop = row;
			break;
		case HOP_RESOLVING:
			out->nexthop = hop_found(found, by_number, addr);
			out->kept = true;
			out->why = MEMBER_NO_NEIGHBOR;
			break;
		case HOP_NO_ROUTE:
			out->why = MEMBER_NO_ROUTE;
			break;
		case HOP_NO_NEIGHBOR:
			out->why = MEMBER_NO_NEIGHBOR;
			break;
		case HOP_NO_PORT:
			out->why = MEMBER_NO_PORT;
			break;
		}
	}
}

/* Rows for the ways out that backends use. Where one is in use both as the
 * kernel says it is now and as it was found, the former counts: `number` is 0
 * for those, so they sort first. */
static int
nexthops_build(struct state_build *b)
{
	struct state *s = b->s;
	const struct backend_hop *h;
	struct state_nexthop *row;
	size_t i, n = 0;

	s->nexthop = arena_calloc(b->a, s->nbackend, sizeof(*s->nexthop));
	for (i = 0; i < s->nbackend; i++) {
		h = &b->hop[i];
		if (h->nexthop == NULL)
			continue;
		row = &s->nexthop[n++];
		*row = *h->nexthop;
		row->number = h->kept;
	}
	rows_sort(s->nexthop, n, sizeof(*s->nexthop), state_nexthop_cmp);
	s->nnexthop = rows_unique(s->nexthop, n, sizeof(*s->nexthop),
	    state_nexthop_key_cmp);
	if (state_number(b, NUMBER_NEXTHOP) < 0)
		return -1;
	for (i = 0; i < s->nbackend; i++) {
		if (b->hop[i].nexthop == NULL)
			continue;
		row = rows_find(b->hop[i].nexthop, s->nexthop, s->nnexthop,
		    sizeof(*row), state_nexthop_key_cmp);
		s->backend[i].nexthop = row->number;
	}
	return 0;
}

static int
ports_build(struct state_build *b)
{
	struct state *s = b->s;
	size_t i, n = s->nnexthop + s->ndoor;

	s->port = arena_calloc(b->a, n, sizeof(*s->port));
	for (i = 0; i < s->nnexthop; i++)
		s->port[i] = s->nexthop[i].ifindex;
	for (i = 0; i < s->ndoor; i++)
		s->port[s->nnexthop + i] = s->door[i].ifindex;
	rows_sort(s->port, n, sizeof(*s->port), state_port_cmp);
	s->nport = rows_unique(s->port, n, sizeof(*s->port), state_port_cmp);
	if (s->nport <= XLB_PORTS)
		return 0;
	diag_add(b->dg, DIAG_ERROR, (struct mark){ 0 }, "backends are behind "
	    "%zu interfaces, more than %u", s->nport, XLB_PORTS);
	return -1;
}

static uint32_t
service_flags(const struct conf_service *v, const struct conf_listen *l)
{
	static const uint32_t forward[] = { [FORWARD_IPIP] = XLB_FORWARD_IPIP,
	    [FORWARD_GUE] = XLB_FORWARD_GUE, [FORWARD_L2] = XLB_FORWARD_L2,
	    [FORWARD_NAT] = XLB_FORWARD_NAT };
	uint32_t flags = forward[v->forward];

	if (v->hash == HASH_SOURCE)
		flags |= XLB_SERVICE_HASH_SOURCE;
	if (l->proto == IPPROTO_UDP && (v->udp == UDP_DATAGRAM ||
	    (v->udp == UDP_DEFAULT && l->port == 53)))
		flags |= XLB_SERVICE_DATAGRAM;
	if (v->forward == FORWARD_NAT)
		flags |= XLB_SERVICE_NAT;
	return flags;
}

/* A row for each address and listener of each service. */
static void
services_collect(struct state_build *b)
{
	const struct conf *c = b->in->conf;
	const struct conf_service *v;
	struct state *s = b->s;
	struct state_service *row;
	size_t i, j, k, n = 0;

	for (j = 0; j < c->nservice; j++)
		n += c->service[j].naddress * c->service[j].nlisten;
	s->service = arena_calloc(b->a, n, sizeof(*s->service));
	for (j = 0; j < c->nservice; j++) {
		v = &c->service[j];
		for (i = 0; i < v->naddress * v->nlisten; i++) {
			k = i % v->nlisten;
			row = &s->service[s->nservice++];
			row->vip = v->address[i / v->nlisten].address;
			row->proto = v->listen[k].proto;
			row->port = v->listen[k].port;
			row->ring = s->ring[v->pool - c->pool].number;
			row->flags = service_flags(v, &v->listen[k]);
			row->backend_port = v->backend_port;
		}
	}
	rows_sort(s->service, n, sizeof(*s->service), state_service_cmp);
}

static int
addr_row_cmp(const void *a, const void *b)
{
	return addr_cmp(a, b);
}

static int
services_build(struct state_build *b)
{
	struct state *s = b->s;
	struct state_service *v;
	struct state_vip *vip = NULL;
	size_t i;

	services_collect(b);
	s->vip = arena_calloc(b->a, s->nservice + s->nsource,
	    sizeof(*s->vip));
	for (i = 0; i < s->nservice; i++) {
		v = &s->service[i];
		if (vip == NULL || addr_cmp(&vip->addr, &v->vip) != 0) {
			vip = &s->vip[s->nvip++];
			vip->addr = v->vip;
			if (rows_find(&v->vip, b->in->local, b->in->nlocal,
			    sizeof(*b->in->local), addr_row_cmp) != NULL)
				vip->flags |= XLB_VIP_LOCAL;
		}
		if (v->port == 0)
			vip->flags |= v->proto == IPPROTO_TCP ?
			    XLB_VIP_ANY_TCP : XLB_VIP_ANY_UDP;
	}
	state_nat_vips(b);
	if (state_number(b, NUMBER_VIP) < 0)
		return -1;
	vip = s->vip;
	for (i = 0; i < s->nservice; i++) {
		v = &s->service[i];
		while (addr_cmp(&vip->addr, &v->vip) != 0)
			vip++;
		v->vip_id = vip->id;
	}
	return state_number(b, NUMBER_SERVICE);
}

struct changed_pool {
	struct ids rings;	/* that are found */
};

/* A service whose pool is another one now: its flows are looked up, and those
 * that are unknown go where the old ring says, for a while. Of several changes
 * in that time the first counts, as for a slot. */
static void
service_follow(const void *want, const void *found, void *arg)
{
	/* ours to write */
	struct state_service *w = (struct state_service *)(uintptr_t)want;
	const struct state_service *f = found;
	const struct changed_pool *c = arg;

	if (w == NULL)
		return;
	w->old_ring = w->ring;
	if (f == NULL || (w->flags & XLB_SERVICE_DATAGRAM))
		return;
	if (f->ring == w->ring)
		w->flags |= f->flags & XLB_SERVICE_LOOKUP;
	else
		w->flags |= XLB_SERVICE_LOOKUP;
	w->old_ring = f->old_ring != f->ring ? f->old_ring : f->ring;
	if (!ids_taken(&c->rings, w->old_ring))
		w->old_ring = w->ring;
}

static void
services_follow(struct state_build *b)
{
	const struct state *found = b->in->found;
	struct changed_pool c;
	size_t i;

	ids_init(&c.rings, 0, XLB_RINGS, b->a);
	for (i = 0; i < found->nring; i++)
		ids_take(&c.rings, found->ring[i].number);
	rows_walk(b->s->service, b->s->nservice, found->service,
	    found->nservice, sizeof(*found->service), state_service_key_cmp,
	    service_follow, &c);
}

int
state_build(const struct state_input *in, struct arena *a,
    struct state *wanted, struct diag *dg)
{
	struct state_build b = { .in = in, .a = a, .s = wanted, .dg = dg };

	memset(wanted, 0, sizeof(*wanted));
	wanted->ring_size = in->conf->table_size;
	wanted->seed = in->conf->seed;
	settings_build(in, &wanted->settings);
	if (in->found->nring > 0 &&
	    in->found->ring_size != wanted->ring_size) {
		diag_add(dg, DIAG_ERROR, (struct mark){ 0 },
		    "maglev.table_size: %u, but the rings have %u slots: "
		    "drain the node, then `xlb restart --flush`",
		    wanted->ring_size, in->found->ring_size);
		return -1;
	}
	backends_build(&b);
	hops_find(&b);
	if (state_number(&b, NUMBER_BACKEND) < 0 || nexthops_build(&b) < 0 ||
	    state_nat(&b) < 0 || ports_build(&b) < 0 || state_pools(&b) < 0)
		return -1;
	if (services_build(&b) < 0)
		return -1;
	services_follow(&b);
	return 0;
}

void
state_judge(const struct state_input *in, struct arena *a,
    struct state *wanted)
{
	struct state_build b = { .in = in, .a = a, .s = wanted };

	memset(wanted, 0, sizeof(*wanted));
	backends_build(&b);
	hops_find(&b);
	state_pools_judge(&b);
}

struct keeps {
	struct diag *dg;
	int result;
};

static void
keeps_hash(const void *want, const void *found, void *arg)
{
	const struct state_service *w = want, *f = found;
	struct keeps *k = arg;
	char buf[ADDRPORT_STR_MAX];

	if (w == NULL || f == NULL ||
	    !((w->flags ^ f->flags) & XLB_SERVICE_HASH_SOURCE))
		return;
	diag_add(k->dg, DIAG_ERROR, (struct mark){ 0 }, "service %s/%s: "
	    "another `hash` moves every flow: drain the node, then "
	    "`xlb restart --flush`", addrport_print(&w->vip, w->port, buf),
	    w->proto == IPPROTO_TCP ? "tcp" : "udp");
	k->result = -1;
}

int
state_keeps_flows(const struct state *wanted, const struct state *found,
    struct diag *dg)
{
	const struct xlb_settings *w = &wanted->settings, *f = &found->settings;
	struct keeps k = { .dg = dg };
	const char *what = NULL;

	if (f->abi != 0 && w->ring_size != f->ring_size)
		what = "maglev.table_size";
	else if (f->abi != 0 && w->seed != f->seed)
		what = "maglev.seed";
	else if (f->abi != 0 &&
	    memcmp(w->hash_key, f->hash_key, sizeof(w->hash_key)) != 0)
		what = "maglev.key_file";
	if (what != NULL) {
		diag_add(dg, DIAG_ERROR, (struct mark){ 0 }, "%s: another "
		    "value moves every flow: drain the node, then "
		    "`xlb restart --flush`", what);
		k.result = -1;
	}
	rows_walk(wanted->service, wanted->nservice, found->service,
	    found->nservice, sizeof(*wanted->service), state_service_key_cmp,
	    keeps_hash, &k);
	return k.result;
}
