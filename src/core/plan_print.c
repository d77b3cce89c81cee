/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Operations as text. */
#include <netinet/in.h>
#include <stdio.h>

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
	case OP_PORT_DEL:
		return "remove";
	case OP_GRACE:
		return "wait for";
	default:
		return op->known ? "change" : "add";
	}
}
