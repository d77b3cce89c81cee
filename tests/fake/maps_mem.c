/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The kernel's maps as plain arrays, for tests. */
#include "fake/maps_mem.h"

#include <errno.h>
#include <string.h>

#include "core/arena.h"

void
maps_mem_init(struct maps *m)
{
	memset(m, 0, sizeof(*m));
}

static const struct state_vip *
vip_by_id(const struct maps *m, uint32_t id)
{
	size_t i;

	for (i = 0; i < m->nvip; i++)
		if (m->vip[i].id == id)
			return &m->vip[i];
	return NULL;
}

int
maps_read(struct maps *m, struct arena *a, struct state *s)
{
	const struct state_vip *vip;
	size_t i;

	memset(s, 0, sizeof(*s));
	s->settings = m->settings;
	s->ring_size = m->settings.ring_size;
	s->seed = m->settings.seed;
	s->vip = arena_dup(a, m->vip, sizeof(m->vip));
	s->nvip = m->nvip;
	s->service = arena_dup(a, m->service, sizeof(m->service));
	s->nservice = m->nservice;
	for (i = 0; i < s->nservice; i++) {
		vip = vip_by_id(m, s->service[i].vip_id);
		memset(&s->service[i].vip, 0, sizeof(s->service[i].vip));
		if (vip != NULL)
			s->service[i].vip = vip->addr;
	}
	s->backend = arena_calloc(a, MEM_ROWS, sizeof(*s->backend));
	s->nexthop = arena_calloc(a, MEM_ROWS, sizeof(*s->nexthop));
	s->ring = arena_calloc(a, MEM_RINGS, sizeof(*s->ring));
	for (i = 0; i < MEM_ROWS; i++) {
		if (m->backend[i].number != 0)
			s->backend[s->nbackend++] = m->backend[i];
		if (m->nexthop[i].number != 0)
			s->nexthop[s->nnexthop++] = m->nexthop[i];
	}
	for (i = 0; i < MEM_RINGS; i++) {
		if (!m->ring[i].used)
			continue;
		s->ring[s->nring].pool = arena_strdup(a, m->ring[i].pool);
		s->ring[s->nring].number = (uint32_t)i;
		s->ring[s->nring].past = m->ring[i].past;
		s->ring[s->nring].roles = m->ring[i].roles;
		s->ring[s->nring++].slot = m->ring[i].slot;
	}
	for (i = 0; i < XLB_NAT_SOURCES; i++) {
		if (!addr_is_zero(&m->source[i].addr))
			*(struct state_source *)arena_grow(a, &s->source,
			    s->nsource++, sizeof(*s->source)) = m->source[i];
		if (m->door[i].ifindex != 0)
			*(struct state_door *)arena_grow(a, &s->door,
			    s->ndoor++, sizeof(*s->door)) = m->door[i];
	}
	s->port = arena_dup(a, m->port, sizeof(m->port));
	s->nport = m->nport;
	state_sort(s);
	return 0;
}

static int
broken(struct maps *m, const char *what)
{
	if (m->broken == NULL)
		m->broken = what;
	return -EINVAL;
}

static int
ring_do(struct maps *m, const struct op *op)
{
	const struct op_ring *r = op->row;
	struct mem_ring *ring = &m->ring[op->id];

	if (op->id >= MEM_RINGS || op->id != r->number ||
	    r->size > MEM_SLOTS || r->size != m->settings.ring_size)
		return broken(m, "ring: number or size");
	if (ring->used != (op->kind != OP_RING_NEW))
		return broken(m, "ring: there, or not there");
	if (op->kind == OP_RING_DEL && strcmp(ring->pool, r->pool) != 0)
		return broken(m, "ring: of another pool");
	if ((r->slot != NULL) !=
	    (op->kind == OP_RING_NEW || op->kind == OP_RING_SLOTS) ||
	    (r->past == NULL && op->kind == OP_RING_SLOTS) ||
	    (r->past != NULL && r->slot == NULL) ||
	    (r->roles != NULL) != (op->kind != OP_RING_DEL))
		return broken(m, "ring: words");
	if (op->kind == OP_RING_NEW && m->old_ring[op->id])
		return broken(m, "ring: number used without grace");
	m->old_ring[op->id] = op->kind == OP_RING_DEL;
	ring->used = op->kind != OP_RING_DEL;
	if (!ring->used)
		return 0;
	strcpy(ring->pool, r->pool);
	memcpy(ring->roles, r->roles, sizeof(ring->roles));
	if (r->slot != NULL) {
		memcpy(ring->slot, r->slot, r->size * sizeof(*r->slot));
		memset(ring->past, 0, sizeof(ring->past));
	}
	if (r->past != NULL)
		memcpy(ring->past, r->past, r->size * sizeof(*r->past));
	return 0;
}

static int
nexthop_do(struct maps *m, const struct op *op)
{
	const struct state_nexthop *h = op->row;
	struct state_nexthop *row = &m->nexthop[op->id];

	if (op->id == 0 || op->id >= MEM_ROWS || op->id != h->number)
		return broken(m, "next hop: number");
	if ((row->number != 0) != (op->kind == OP_NEXTHOP_DEL || op->known))
		return broken(m, "next hop: there, or not there");
	if (row->number != 0 && state_nexthop_cmp(row, h) != 0)
		return broken(m, "next hop: another one has the number");
	if (row->number == 0 && m->old_nexthop[op->id])
		return broken(m, "next hop: number used without grace");
	m->old_nexthop[op->id] = op->kind == OP_NEXTHOP_DEL;
	if (op->kind == OP_NEXTHOP_DEL)
		memset(row, 0, sizeof(*row));
	else
		*row = *h;
	return 0;
}

static int
backend_do(struct maps *m, const struct op *op)
{
	const struct state_backend *b = op->row;
	struct state_backend *row = &m->backend[op->id];

	if (op->id == 0 || op->id >= MEM_ROWS || op->id != b->number)
		return broken(m, "backend: number");
	if ((row->number != 0) != (op->kind == OP_BACKEND_RETIRE || op->known))
		return broken(m, "backend: there, or not there");
	if (op->kind == OP_BACKEND_RETIRE && row->retired)
		return broken(m, "backend: retired twice");
	if (row->number != 0 && addr_cmp(&row->addr, &b->addr) != 0)
		return broken(m, "backend: another one has the number");
	*row = *b;
	row->retired = op->kind == OP_BACKEND_RETIRE;
	if (row->retired)
		row->nexthop = 0;
	return 0;
}

static bool
backend_named(const struct maps *m, uint32_t number)
{
	uint32_t i, k;

	for (i = 0; i < MEM_RINGS; i++)
		for (k = 0; m->ring[i].used && k < m->settings.ring_size; k++)
			if (XLB_SLOT_CUR(m->ring[i].slot[k]) == number ||
			    XLB_SLOT_PREV(m->ring[i].slot[k]) == number)
				return true;
	return false;
}

void
maps_mem_settle(struct maps *m)
{
	uint32_t i, k;

	for (i = 0; i < m->nservice; i++) {
		m->service[i].old_ring = m->service[i].ring;
		m->service[i].flags &= ~(uint32_t)XLB_SERVICE_LOOKUP;
	}
	for (i = 0; i < MEM_RINGS; i++)
		for (k = 0; k < MEM_SLOTS; k++)
			m->ring[i].slot[k] = XLB_SLOT_CUR(m->ring[i].slot[k]);
	for (i = 1; i < MEM_ROWS; i++) {
		if (!m->backend[i].retired || backend_named(m, i))
			continue;
		memset(&m->backend[i], 0, sizeof(m->backend[i]));
		for (k = 0; k < MEM_RINGS; k++)
			ring_member_set(m->ring[k].roles, i, 0);
	}
}

static int
vip_do(struct maps *m, const struct op *op)
{
	const struct state_vip *v = op->row;
	size_t i;

	if (op->id == 0 || op->id >= MEM_ROWS || op->id != v->id)
		return broken(m, "vip: id");
	for (i = 0; i < m->nvip; i++)
		if (m->vip[i].id == v->id ||
		    addr_cmp(&m->vip[i].addr, &v->addr) == 0)
			break;
	if ((i < m->nvip) != (op->kind == OP_VIP_DEL || op->known))
		return broken(m, "vip: there, or not there");
	if (i < m->nvip && state_vip_cmp(&m->vip[i], v) != 0)
		return broken(m, "vip: another id");
	if (i == m->nvip && m->old_vip[op->id])
		return broken(m, "vip: id used without grace");
	m->old_vip[op->id] = op->kind == OP_VIP_DEL;
	if (op->kind == OP_VIP_DEL)
		m->vip[i] = m->vip[--m->nvip];
	else
		m->vip[i] = *v;
	m->nvip += i == m->nvip && op->kind == OP_VIP_PUT;
	return 0;
}

static int
service_do(struct maps *m, const struct op *op)
{
	const struct state_service *v = op->row;
	size_t i;

	if (op->id >= MEM_ROWS || op->id != v->number)
		return broken(m, "service: number");
	for (i = 0; i < m->nservice; i++)
		if (m->service[i].vip_id == v->vip_id &&
		    m->service[i].proto == v->proto &&
		    m->service[i].port == v->port)
			break;
	if ((i < m->nservice) != (op->kind == OP_SERVICE_DEL || op->known))
		return broken(m, "service: there, or not there");
	if (i == m->nservice && m->old_service[op->id])
		return broken(m, "service: number used without grace");
	m->old_service[op->id] = op->kind == OP_SERVICE_DEL;
	if (op->kind == OP_SERVICE_DEL) {
		m->service[i] = m->service[--m->nservice];
		return 0;
	}
	m->service[i] = *v;
	m->nservice += i == m->nservice;
	return 0;
}

static int
port_do(struct maps *m, const struct op *op)
{
	size_t i;

	for (i = 0; i < m->nport && m->port[i] != op->id; i++)
		;
	if ((i < m->nport) != (op->kind == OP_PORT_DEL))
		return broken(m, "port: there, or not there");
	if (op->kind == OP_PORT_DEL)
		m->port[i] = m->port[--m->nport];
	else
		m->port[m->nport++] = op->id;
	return 0;
}

static int
source_do(struct maps *m, const struct op *op)
{
	const struct state_source *s = op->row;
	struct state_source *row = &m->source[op->id % XLB_NAT_SOURCES];
	bool there = !addr_is_zero(&row->addr);

	if (op->id >= XLB_NAT_SOURCES || op->id != s->number)
		return broken(m, "source: number");
	if (there != (op->kind == OP_SOURCE_DEL))
		return broken(m, "source: there, or not there");
	*row = *s;
	if (op->kind == OP_SOURCE_DEL)
		memset(row, 0, sizeof(*row));
	return 0;
}

static int
door_do(struct maps *m, const struct op *op)
{
	const struct state_door *d = op->row;
	struct state_door *row = &m->door[op->id % XLB_DOORS];
	bool there = row->ifindex != 0;

	if (op->id >= XLB_DOORS || op->id != d->number)
		return broken(m, "door: number");
	if (there != (op->kind == OP_DOOR_DEL || op->known))
		return broken(m, "door: there, or not there");
	if (there && row->ifindex != d->ifindex)
		return broken(m, "door: another one has the number");
	*row = *d;
	if (op->kind == OP_DOOR_DEL)
		memset(row, 0, sizeof(*row));
	return 0;
}

static int
grace_do(struct maps *m)
{
	memset(m->old_vip, 0, sizeof(m->old_vip));
	memset(m->old_service, 0, sizeof(m->old_service));
	memset(m->old_nexthop, 0, sizeof(m->old_nexthop));
	memset(m->old_ring, 0, sizeof(m->old_ring));
	return 0;
}

int
maps_do(struct maps *m, const struct op *op)
{
	if (m->fail_errno != 0 && m->done++ == m->fail_at)
		return -m->fail_errno;
	switch (op->kind) {
	case OP_SETTINGS_PUT:
		memcpy(&m->settings, op->row, sizeof(m->settings));
		return 0;
	case OP_RING_SLOTS:
	case OP_RING_ROLES:
	case OP_RING_NEW:
	case OP_RING_DEL:
		return ring_do(m, op);
	case OP_PORT_PUT:
	case OP_PORT_DEL:
		return port_do(m, op);
	case OP_SOURCE_PUT:
	case OP_SOURCE_DEL:
		return source_do(m, op);
	case OP_DOOR_PUT:
	case OP_DOOR_DEL:
		return door_do(m, op);
	case OP_NEXTHOP_PUT:
	case OP_NEXTHOP_DEL:
		return nexthop_do(m, op);
	case OP_BACKEND_PUT:
	case OP_BACKEND_RETIRE:
		return backend_do(m, op);
	case OP_VIP_PUT:
	case OP_VIP_DEL:
		return vip_do(m, op);
	case OP_SERVICE_PUT:
	case OP_SERVICE_DEL:
		return service_do(m, op);
	case OP_GRACE:
		return grace_do(m);
	case OP_BACKEND_DEL:
	case OP_KINDS:
		break;
	}
	return broken(m, "no such operation");
}
