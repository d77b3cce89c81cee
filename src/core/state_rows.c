/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Rows of a state: their order, and whether they fit together. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "core/arena.h"
#include "core/ids.h"
#include "core/ring_words.h"
#include "core/rows.h"
#include "core/state.h"

static int
u32_cmp(uint32_t a, uint32_t b)
{
	return (a > b) - (a < b);
}

int
state_vip_key_cmp(const void *va, const void *vb)
{
	const struct state_vip *a = va, *b = vb;

	return addr_cmp(&a->addr, &b->addr);
}

int
state_service_key_cmp(const void *va, const void *vb)
{
	const struct state_service *a = va, *b = vb;
	int c = addr_cmp(&a->vip, &b->vip);

	if (c == 0)
		c = u32_cmp(a->proto, b->proto);
	return c != 0 ? c : u32_cmp(a->port, b->port);
}

int
state_backend_key_cmp(const void *va, const void *vb)
{
	const struct state_backend *a = va, *b = vb;

	return addr_cmp(&a->addr, &b->addr);
}

int
state_nexthop_key_cmp(const void *va, const void *vb)
{
	const struct state_nexthop *a = va, *b = vb;
	int c = addr_cmp(&a->gateway, &b->gateway);

	if (c == 0)
		c = u32_cmp(a->ifindex, b->ifindex);
	if (c == 0)
		c = addr_cmp(&a->src, &b->src);
	if (c == 0)
		c = memcmp(a->src_mac, b->src_mac, sizeof(a->src_mac));
	if (c == 0)
		c = u32_cmp(a->mtu, b->mtu);
	return c != 0 ? c : u32_cmp(a->vlan, b->vlan);
}

int
state_source_key_cmp(const void *va, const void *vb)
{
	const struct state_source *a = va, *b = vb;

	return addr_cmp(&a->addr, &b->addr);
}

int
state_door_key_cmp(const void *va, const void *vb)
{
	const struct state_door *a = va, *b = vb;

	return u32_cmp(a->ifindex, b->ifindex);
}

int
state_source_cmp(const void *va, const void *vb)
{
	const struct state_source *a = va, *b = vb;
	int c = state_source_key_cmp(a, b);

	return c != 0 ? c : u32_cmp(a->number, b->number);
}

int
state_door_cmp(const void *va, const void *vb)
{
	const struct state_door *a = va, *b = vb;
	int c = state_door_key_cmp(a, b);

	return c != 0 ? c : u32_cmp(a->number, b->number);
}

int
state_ring_key_cmp(const void *va, const void *vb)
{
	const struct state_ring *a = va, *b = vb;

	return strcmp(a->pool, b->pool);
}

int
state_vip_cmp(const void *va, const void *vb)
{
	const struct state_vip *a = va, *b = vb;
	int c = state_vip_key_cmp(a, b);

	return c != 0 ? c : u32_cmp(a->id, b->id);
}

int
state_service_cmp(const void *va, const void *vb)
{
	const struct state_service *a = va, *b = vb;
	int c = state_service_key_cmp(a, b);

	if (c == 0)
		c = u32_cmp(a->vip_id, b->vip_id);
	return c != 0 ? c : u32_cmp(a->number, b->number);
}

int
state_backend_cmp(const void *va, const void *vb)
{
	const struct state_backend *a = va, *b = vb;
	int c = state_backend_key_cmp(a, b);

	return c != 0 ? c : u32_cmp(a->number, b->number);
}

int
state_nexthop_cmp(const void *va, const void *vb)
{
	const struct state_nexthop *a = va, *b = vb;
	int c = state_nexthop_key_cmp(a, b);

	return c != 0 ? c : u32_cmp(a->number, b->number);
}

int
state_ring_cmp(const void *va, const void *vb)
{
	const struct state_ring *a = va, *b = vb;
	int c = state_ring_key_cmp(a, b);

	return c != 0 ? c : u32_cmp(a->number, b->number);
}

int
state_port_cmp(const void *va, const void *vb)
{
	const uint32_t *a = va, *b = vb;

	return u32_cmp(*a, *b);
}

void
state_sort(struct state *s)
{
	rows_sort(s->vip, s->nvip, sizeof(*s->vip), state_vip_cmp);
	rows_sort(s->service, s->nservice, sizeof(*s->service), state_service_cmp);
	rows_sort(s->backend, s->nbackend, sizeof(*s->backend), state_backend_cmp);
	rows_sort(s->nexthop, s->nnexthop, sizeof(*s->nexthop), state_nexthop_cmp);
	rows_sort(s->ring, s->nring, sizeof(*s->ring), state_ring_cmp);
	rows_sort(s->port, s->nport, sizeof(*s->port), state_port_cmp);
	rows_sort(s->source, s->nsource, sizeof(*s->source), state_source_cmp);
	rows_sort(s->door, s->ndoor, sizeof(*s->door), state_door_cmp);
}

void
state_empty(struct state *s, const struct state *found)
{
	memset(s, 0, sizeof(*s));
	s->ring_size = found->ring_size;
	s->seed = found->seed;
	s->settings = found->settings;
}

/* A check in progress: the numbers that rows have. */
struct check {
	const struct state *s;
	struct arena *a;
	struct ids port, nexthop, backend, ring, vip, service;
	struct ids present;	/* backends that are not retired */
};

static const char *
sorted(const struct check *c, const char *what, const void *base, size_t n,
    size_t size, int (*cmp)(const void *, const void *))
{
	const char *row = base;
	size_t i;

	for (i = 1; i < n; i++)
		if (cmp(row + (i - 1) * size, row + i * size) >= 0)
			return arena_printf(c->a, "%s %zu is out of order",
			    what, i);
	return NULL;
}

static const char *
check_sorted(struct check *c)
{
	const struct state *s = c->s;
	const char *e;

	e = sorted(c, "vip", s->vip, s->nvip, sizeof(*s->vip), state_vip_cmp);
	if (e == NULL)
		e = sorted(c, "service", s->service, s->nservice,
		    sizeof(*s->service), state_service_cmp);
	if (e == NULL)
		e = sorted(c, "backend", s->backend, s->nbackend,
		    sizeof(*s->backend), state_backend_cmp);
	if (e == NULL)
		e = sorted(c, "next hop", s->nexthop, s->nnexthop,
		    sizeof(*s->nexthop), state_nexthop_cmp);
	if (e == NULL)
		e = sorted(c, "ring", s->ring, s->nring, sizeof(*s->ring),
		    state_ring_cmp);
	if (e == NULL)
		e = sorted(c, "port", s->port, s->nport, sizeof(*s->port),
		    state_port_cmp);
	return e;
}

static const char *
check_hops(struct check *c)
{
	const struct state *s = c->s;
	const struct state_nexthop *h;
	const struct state_backend *b;
	char buf[ADDR_STR_MAX];
	size_t i;

	for (i = 0; i < s->nnexthop; i++) {
		h = &s->nexthop[i];
		if (!ids_take(&c->nexthop, h->number))
			return arena_printf(c->a, "next hop %s: number %u is "
			    "taken or out of range",
			    addr_print(&h->gateway, buf), h->number);
		if (rows_find(&h->ifindex, s->port, s->nport,
		    sizeof(*s->port), state_port_cmp) == NULL)
			return arena_printf(c->a, "next hop %s: port %u is "
			    "missing", addr_print(&h->gateway, buf),
			    h->ifindex);
	}
	for (i = 0; i < s->nbackend; i++) {
		b = &s->backend[i];
		if (!b->retired)
			ids_take(&c->present, b->number);
		if (!ids_take(&c->backend, b->number))
			return arena_printf(c->a, "backend %s: number %u is "
			    "taken or out of range", addr_print(&b->addr, buf),
			    b->number);
		if (b->nexthop != 0 && !ids_taken(&c->nexthop, b->nexthop))
			return arena_printf(c->a, "backend %s: next hop %u is "
			    "missing", addr_print(&b->addr, buf), b->nexthop);
	}
	return NULL;
}

/* Slots name backends that are there and members, and where flows stay there is
 * somebody to take them. */
static const char *
check_ring(struct check *c, const struct state_ring *r)
{
	uint32_t i, cur, prev;

	for (i = ring_member_next(r->roles, 1); i < XLB_BACKENDS;
	    i = ring_member_next(r->roles, i + 1))
		if ((ring_member(r->roles, i) & XLB_MEMBER_KEEPS) &&
		    !ids_taken(&c->present, i))
			return arena_printf(c->a, "ring %s: keeps flows of "
			    "backend %u, which is missing", r->pool, i);
	for (i = 0; r->slot == NULL && i < r->nmember; i++)
		if (!ids_taken(&c->backend, r->number_of[i]))
			return arena_printf(c->a, "ring %s: backend %u is "
			    "missing", r->pool, r->number_of[i]);
	for (i = 0; r->slot != NULL && i < c->s->ring_size; i++) {
		cur = XLB_SLOT_CUR(r->slot[i]);
		prev = XLB_SLOT_PREV(r->slot[i]);
		if ((cur != 0 && !ids_taken(&c->backend, cur)) ||
		    (prev != 0 && !ids_taken(&c->backend, prev)))
			return arena_printf(c->a, "ring %s: slot %u: "
			    "backend %u or %u is missing", r->pool, i,
			    cur, prev);
		if ((cur != 0 && !ring_member(r->roles, cur)) ||
		    (prev != 0 && !ring_member(r->roles, prev)))
			return arena_printf(c->a, "ring %s: slot %u: "
			    "backend %u or %u is no member", r->pool, i,
			    cur, prev);
	}
	return NULL;
}

static const char *
check_rings(struct check *c)
{
	const struct state *s = c->s;
	const char *e = NULL;
	size_t k;

	for (k = 0; k < s->nring && e == NULL; k++) {
		if (!ids_take(&c->ring, s->ring[k].number))
			return arena_printf(c->a, "ring %s: number %u is taken "
			    "or out of range", s->ring[k].pool,
			    s->ring[k].number);
		e = check_ring(c, &s->ring[k]);
	}
	return e;
}

/* A wanted state has no ring that it wants to be rid of. */
static bool
is_found(const struct state *s)
{
	return s->nring == 0 || s->ring[0].slot != NULL;
}

static const char *
check_services(struct check *c)
{
	const struct state *s = c->s;
	const struct state_service *v;
	const struct state_vip *vip;
	struct state_vip key;
	const char *wrong;
	char buf[ADDR_STR_MAX];
	size_t i;

	for (i = 0; i < s->nvip; i++)
		if (!ids_take(&c->vip, s->vip[i].id))
			return arena_printf(c->a, "vip %s: id %u is taken or "
			    "out of range", addr_print(&s->vip[i].addr, buf),
			    s->vip[i].id);
	for (i = 0; i < s->nservice; i++) {
		v = &s->service[i];
		key.addr = v->vip;
		vip = rows_find(&key, s->vip, s->nvip, sizeof(*s->vip),
		    state_vip_key_cmp);
		wrong = NULL;
		if (vip == NULL || vip->id != v->vip_id)
			wrong = "its vip is missing";
		else if (v->port == 0 && !(vip->flags & (v->proto ==
		    IPPROTO_TCP ? XLB_VIP_ANY_TCP : XLB_VIP_ANY_UDP)))
			wrong = "its vip lacks the flag for any port";
		else if (!ids_taken(&c->ring, v->ring))
			wrong = "its ring is missing";
		else if (is_found(s) && !ids_taken(&c->ring, v->old_ring))
			wrong = "its old ring is missing";
		else if (!ids_take(&c->service, v->number))
			wrong = "its number is taken or out of range";
		if (wrong != NULL)
			return arena_printf(c->a, "service %s proto %u port "
			    "%u: %s", addr_print(&v->vip, buf), v->proto,
			    v->port, wrong);
	}
	return NULL;
}

const char *
state_check(const struct state *s, struct arena *a)
{
	struct check c = { .s = s, .a = a };
	const char *e;

	ids_init(&c.nexthop, 1, XLB_NEXTHOPS, a);
	ids_init(&c.backend, 1, XLB_BACKENDS, a);
	ids_init(&c.present, 1, XLB_BACKENDS, a);
	ids_init(&c.ring, 0, XLB_RINGS, a);
	ids_init(&c.vip, 1, STATE_VIP_IDS, a);
	ids_init(&c.service, 0, XLB_SERVICES, a);
	e = check_sorted(&c);
	if (e == NULL)
		e = check_hops(&c);
	if (e == NULL)
		e = check_rings(&c);
	if (e == NULL)
		e = check_services(&c);
	return e;
}
