/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Operations as text. */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "core/plan.h"

static void
service_print(const struct state_service *v, char *buf, size_t len)
{
	char addr[ADDRPORT_STR_MAX];
	const char *proto = v->proto == IPPROTO_TCP ? "tcp" : "udp";

	if (v->port != 0)
		snprintf(buf, len, "service %s/%s",
		    addrport_print(&v->vip, v->port, addr), proto);
	else
		snprintf(buf, len, addr_is4(&v->vip) ? "service %s:*/%s" :
		    "service [%s]:*/%s", addr_print(&v->vip, addr), proto);
}

static void
nexthop_print(const struct state_nexthop *h, char *buf, size_t len)
{
	char addr[ADDR_STR_MAX];
	int n;

	n = snprintf(buf, len, "next hop %s on interface %u",
	    addr_print(&h->gateway, addr), h->ifindex);
	if (h->vlan != 0 && n > 0 && (size_t)n < len)
		snprintf(buf + n, len - (size_t)n, " vlan %u",
		    h->vlan & 0xfff);
}

const char *
op_print(const struct op *op, char *buf, size_t len)
{
	char addr[ADDR_STR_MAX];

	switch (op->kind) {
	case OP_RING_SLOTS:
	case OP_RING_ROLES:
	case OP_RING_NEW:
	case OP_RING_DEL:
		snprintf(buf, len, "ring %s",
		    ((const struct op_ring *)op->row)->pool);
		break;
	case OP_PORT_PUT:
	case OP_PORT_DEL:
		snprintf(buf, len, "port %u", op->id);
		break;
	case OP_DOOR_PUT:
	case OP_DOOR_DEL:
		snprintf(buf, len, "way back by interface %u",
		    ((const struct state_door *)op->row)->ifindex);
		break;
	case OP_SOURCE_PUT:
	case OP_SOURCE_DEL:
		snprintf(buf, len, "nat address %s", addr_print(
		    &((const struct state_source *)op->row)->addr, addr));
		break;
	case OP_NEXTHOP_PUT:
	case OP_NEXTHOP_DEL:
		nexthop_print(op->row, buf, len);
		break;
	case OP_BACKEND_PUT:
	case OP_BACKEND_RETIRE:
	case OP_BACKEND_DEL:
		snprintf(buf, len, "backend %s", addr_print(
		    &((const struct state_backend *)op->row)->addr, addr));
		break;
	case OP_VIP_PUT:
	case OP_VIP_DEL:
		snprintf(buf, len, "vip %s", addr_print(
		    &((const struct state_vip *)op->row)->addr, addr));
		break;
	case OP_SERVICE_PUT:
	case OP_SERVICE_DEL:
		service_print(op->row, buf, len);
		break;
	case OP_GRACE:
		snprintf(buf, len, "grace period");
		break;
	case OP_SETTINGS_PUT:
	case OP_KINDS:
		snprintf(buf, len, "settings");
		break;
	}
	return buf;
}

const char *
op_verb(const struct op *op)
{
	switch (op->kind) {
	case OP_SERVICE_DEL:
	case OP_VIP_DEL:
	case OP_RING_DEL:
	case OP_BACKEND_RETIRE:
	case OP_BACKEND_DEL:
	case OP_NEXTHOP_DEL:
	case OP_SOURCE_DEL:
	case OP_DOOR_DEL:
	case OP_PORT_DEL:
		return "remove";
	case OP_GRACE:
		return "wait for";
	default:
		return op->known ? "change" : "add";
	}
}

/* The kernel says "argument list too long" of a map that is full. */
static bool
is_full(int err)
{
	return err == ENOSPC || err == E2BIG || err == EOVERFLOW;
}

static void
full_print(const struct op *op, char *buf, size_t len)
{
	switch (op->kind) {
	case OP_PORT_PUT:
		snprintf(buf, len, "at most %d interfaces may lead to backends:"
		    " see the routes to them", XLB_PORTS);
		break;
	case OP_VIP_PUT:
	case OP_SERVICE_PUT:
		snprintf(buf, len, "no free row of %d where it belongs: fewer "
		    "services[].addresses or services[].listen", XLB_PROBE);
		break;
	case OP_RING_NEW:
	case OP_RING_SLOTS:
	case OP_RING_ROLES:
		snprintf(buf, len, "at most %d pools, of maglev.table_size %u "
		    "slots", XLB_RINGS, ((const struct op_ring *)op->row)->size);
		break;
	default:
		break;
	}
}

static void
memory_print(const struct op *op, char *buf, size_t len)
{
	const struct op_ring *ring = op->row;

	if (op->kind == OP_RING_NEW)
		snprintf(buf, len, "%zu kB for maglev.table_size %u, in each "
		    "pool; the unit's MemoryMax= is its limit",
		    (size_t)xlb_ring_bytes(ring->size) >> 10, ring->size);
	else
		snprintf(buf, len, "the unit's MemoryMax= is its limit");
}

const char *
op_why(const struct op *op, int err, char *buf, size_t len)
{
	char more[160] = "";

	if (is_full(err))
		full_print(op, more, sizeof(more));
	else if (err == ENOMEM)
		memory_print(op, more, sizeof(more));
	else if (err == EPERM || err == EACCES)
		snprintf(more, sizeof(more), "it takes the capabilities BPF and "
		    "NET_ADMIN: the unit's CapabilityBoundingSet=");
	else if (err == EMFILE)
		snprintf(more, sizeof(more), "a descriptor for each pool: the "
		    "unit's LimitNOFILE=");
	else if (err == EBUSY)
		snprintf(more, sizeof(more), "somebody else holds it; it is "
		    "tried again");
	snprintf(buf, len, "%s%s%s%s", strerror(err), *more != '\0' ? " (" : "",
	    more, *more != '\0' ? ")" : "");
	return buf;
}
