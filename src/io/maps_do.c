/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Operations on the kernel's maps: idempotent, each row published last. */
#include "io/maps_int.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "core/sweep.h"
#include "io/log.h"

int
maps_grace(struct maps *m)
{
	uint32_t zero = 0;

	/* the update of a map of maps ends in synchronize_rcu */
	if (bpf_map_update_elem(m->fd[MAP_GRACE], &zero, &m->grace_fd,
	    BPF_ANY) < 0)
		return -errno;
	m->unsettled = false;
	table_graced(m);
	return 0;
}

/* Before a row is emptied, packets that were led to it have gone. The plan has
 * taken its name off everything; one grace period covers all of a plan. */
static int
settle(struct maps *m)
{
	return m->unsettled ? maps_grace(m) : 0;
}

/* Only words that differ are written: what stays the same never wavers. */
static int
settings_put(struct maps *m, const struct xlb_settings *s)
{
	uint64_t *to = (uint64_t *)&m->tables->settings, from[sizeof(*s) / 8];
	size_t i;

	_Static_assert(sizeof(*s) % 8 == 0 &&
	    offsetof(struct xlb_settings, listening) % 8 == 0, "whole words");
	table_sources_put(m, s);
	memcpy(from, s, sizeof(*s));
	for (i = 0; i < sizeof(from) / sizeof(from[0]); i++)
		if (to[i] != from[i] &&
		    i != offsetof(struct xlb_settings, listening) / 8)
			__atomic_store_n(&to[i], from[i], __ATOMIC_RELEASE);
	return 0;
}

static int
port_put(struct maps *m, uint32_t ifindex)
{
	if (bpf_map_update_elem(m->fd[MAP_TX_PORTS], &ifindex, &ifindex,
	    BPF_ANY) < 0)
		return -errno;
	return 0;
}

static int
port_del(struct maps *m, uint32_t ifindex)
{
	int rc = settle(m);

	if (rc < 0)
		return rc;
	if (bpf_map_delete_elem(m->fd[MAP_TX_PORTS], &ifindex) < 0 &&
	    errno != ENOENT)
		return -errno;
	return 0;
}

static int
source_put(struct maps *m, const struct state_source *s)
{
	if (s->number >= XLB_NAT_SOURCES)
		return -EINVAL;
	memcpy(m->tables->source[s->number].addr, s->addr.b,
	    sizeof(s->addr.b));
	return 0;
}

static int
source_del(struct maps *m, const struct state_source *s)
{
	int rc = settle(m);

	if (rc == 0 && s->number < XLB_NAT_SOURCES)
		memset(&m->tables->source[s->number], 0,
		    sizeof(m->tables->source[s->number]));
	return rc;
}

static int
door_del(struct maps *m, const struct state_door *d)
{
	struct xlb_nexthop *to;

	if (d->number >= XLB_DOORS)
		return -EINVAL;
	to = &m->tables->door[d->number];
	__atomic_store_n(&to->flags, 0, __ATOMIC_SEQ_CST);
	__atomic_store_n(&to->ifindex, 0, __ATOMIC_SEQ_CST);
	return 0;
}

static int
door_put(struct maps *m, const struct state_door *d)
{
	struct xlb_nexthop *to;
	int rc = door_del(m, d);

	if (rc < 0)
		return rc;
	to = &m->tables->door[d->number];
	memcpy(to->src_mac, d->mac, sizeof(to->src_mac));
	to->mtu = d->mtu;
	__atomic_store_n(&to->ifindex, d->ifindex, __ATOMIC_RELEASE);
	__atomic_store_n(&to->flags, XLB_NEXTHOP_VALID, __ATOMIC_RELEASE);
	return 0;
}

static struct xlb_nexthop
nexthop_row(const struct state_nexthop *nh)
{
	struct xlb_nexthop row;
	uint8_t mac_vlan[8];

	memset(&row, 0, sizeof(row));
	memcpy(mac_vlan, nh->mac, 6);
	mac_vlan[6] = (uint8_t)(nh->vlan >> 8);
	mac_vlan[7] = (uint8_t)nh->vlan;
	memcpy(&row.mac_vlan, mac_vlan, sizeof(row.mac_vlan));
	memcpy(row.src_mac, nh->src_mac, sizeof(row.src_mac));
	row.mtu = nh->mtu;
	row.ifindex = nh->ifindex;
	row.flags = XLB_NEXTHOP_VALID;
	memcpy(row.src, nh->src.b, sizeof(row.src));
	memcpy(row.gateway, nh->gateway.b, sizeof(row.gateway));
	return row;
}

static int
nexthop_put(struct maps *m, uint32_t number, const struct state_nexthop *nh)
{
	struct xlb_nexthop row = nexthop_row(nh), same, *to;
	uint64_t mac_vlan = row.mac_vlan;

	if (number == 0 || number >= XLB_NEXTHOPS)
		return -EINVAL;
	to = &m->tables->nexthop[number];
	same = *to;
	same.mac_vlan = mac_vlan;
	if (memcmp(&same, &row, sizeof(row)) != 0) {
		/* unresolved while it is written, free if that is cut short */
		__atomic_store_n(&to->mac_vlan, 0, __ATOMIC_SEQ_CST);
		__atomic_store_n(&to->flags, 0, __ATOMIC_SEQ_CST);
		row.mac_vlan = 0;
		row.flags = 0;
		*to = row;
		__atomic_store_n(&to->flags, XLB_NEXTHOP_VALID,
		    __ATOMIC_RELEASE);
	}
	__atomic_store_n(&to->mac_vlan, mac_vlan, __ATOMIC_RELEASE);
	return 0;
}

static int
nexthop_del(struct maps *m, uint32_t number)
{
	static const struct xlb_nexthop none;
	int rc;

	if (number == 0 || number >= XLB_NEXTHOPS)
		return -EINVAL;
	rc = settle(m);
	if (rc < 0)
		return rc;
	__atomic_store_n(&m->tables->nexthop[number].flags, 0, __ATOMIC_SEQ_CST);
	m->tables->nexthop[number] = none;
	return 0;
}

/* In words: a row cut short has an address that nobody wants. */
static void
backend_addr_put(struct xlb_backend *to, const struct addr *addr)
{
	uint32_t word[4], i;

	memcpy(word, addr->b, sizeof(word));
	for (i = 0; i < 4; i++)
		__atomic_store_n((uint32_t *)to->addr + i, word[i],
		    __ATOMIC_RELEASE);
}

static int
backend_put(struct maps *m, uint32_t number, const struct state_backend *b)
{
	struct xlb_backend *to;

	if (number == 0 || number >= XLB_BACKENDS)
		return -EINVAL;
	to = &m->tables->backend[number];
	if (memcmp(to->addr, b->addr.b, sizeof(to->addr)) != 0) {
		stats_zero(m, &m->stats->backend[number],
		    sizeof(m->stats->backend[number]));
		backend_addr_put(to, &b->addr);
	}
	if (to->nexthop != b->nexthop)
		m->unsettled = true;
	__atomic_store_n(&to->nexthop, b->nexthop, __ATOMIC_RELEASE);
	__atomic_store_n(&to->sources, b->sources, __ATOMIC_RELEASE);
	__atomic_store_n(&to->flags, 0, __ATOMIC_RELEASE);
	sweep_backend_stays(m->sweep, number);
	return 0;
}

/* Of no pool any more. Flows that it had may come back with it, and may not be
 * taken for another's: address and number stay. */
static int
backend_retire(struct maps *m, uint32_t number)
{
	struct xlb_backend *to;
	int rc;

	if (number == 0 || number >= XLB_BACKENDS)
		return -EINVAL;
	rc = settle(m);
	if (rc < 0)
		return rc;
	to = &m->tables->backend[number];
	__atomic_store_n(&to->flags, XLB_BACKEND_RETIRED, __ATOMIC_RELEASE);
	__atomic_store_n(&to->nexthop, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&to->sources, 0, __ATOMIC_RELEASE);
	return 0;
}

static int
backend_del(struct maps *m, uint32_t number)
{
	struct xlb_backend *to;
	int rc;

	if (number == 0 || number >= XLB_BACKENDS)
		return -EINVAL;
	rc = settle(m);
	if (rc < 0)
		return rc;
	to = &m->tables->backend[number];
	__atomic_store_n(&to->nexthop, 0, __ATOMIC_RELEASE);
	memset(to, 0, sizeof(*to));
	return 0;
}

static uint64_t
service_key(const struct state_service *s)
{
	return XLB_SERVICE_KEY(s->vip_id, s->proto, s->port);
}

static int
service_put(struct maps *m, const struct state_service *s)
{
	const struct xlb_service *old;

	if (s->number >= XLB_SERVICES || s->ring >= XLB_RINGS ||
	    s->old_ring >= XLB_RINGS)
		return -EINVAL;
	old = table_service_find(m, service_key(s));
	if (old == NULL || XLB_WORD_NUMBER(old->word) != s->number)
		stats_zero(m, &m->stats->service[s->number],
		    sizeof(m->stats->service[s->number]));
	m->tables->backend_port[s->number] = s->backend_port;
	sweep_service_moves(m->sweep, s->number);
	return table_service_put(m, service_key(s),
	    XLB_SERVICE_WORD(s->number, s->ring, s->old_ring, s->flags));
}

int
maps_do(struct maps *m, const struct op *op)
{
	switch (op->kind) {
	case OP_SETTINGS_PUT:
		return settings_put(m, op->row);
	case OP_RING_SLOTS:
		return ring_slots(m, op->row);
	case OP_RING_ROLES:
		return ring_roles(m, op->row);
	case OP_PORT_PUT:
		return port_put(m, op->id);
	case OP_DOOR_PUT:
		return door_put(m, op->row);
	case OP_DOOR_DEL:
		return door_del(m, op->row);
	case OP_SOURCE_PUT:
		return source_put(m, op->row);
	case OP_SOURCE_DEL:
		return source_del(m, op->row);
	case OP_NEXTHOP_PUT:
		return nexthop_put(m, op->id, op->row);
	case OP_BACKEND_PUT:
		return backend_put(m, op->id, op->row);
	case OP_RING_NEW:
		return ring_new(m, op->row);
	case OP_VIP_PUT:
		return table_vip_put(m, op->row);
	case OP_SERVICE_PUT:
		return service_put(m, op->row);
	case OP_SERVICE_DEL:
		return table_service_del(m, service_key(op->row));
	case OP_VIP_DEL:
		return table_vip_del(m, op->row);
	case OP_RING_DEL:
		return ring_del(m, op->id);
	case OP_BACKEND_RETIRE:
		return backend_retire(m, op->id);
	case OP_BACKEND_DEL:
		return backend_del(m, op->id);
	case OP_NEXTHOP_DEL:
		return nexthop_del(m, op->id);
	case OP_PORT_DEL:
		return port_del(m, op->id);
	case OP_GRACE:
		return maps_grace(m);
	case OP_KINDS:
		break;
	}
	return -EINVAL;
}
