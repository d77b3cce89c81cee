/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Builds the JSON of stats and neighbors. */
#include <net/if.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "core/reason.h"
#include "daemon/daemon.h"
#include "daemon/event_json.h"
#include "daemon/status.h"
#include "io/log.h"
#include "io/maps.h"

static json_t *
reasons_json(struct maps *m)
{
	struct xlb_reasons r;
	json_t *o;
	int i;

	if (maps_reasons(m, &r) < 0)
		return NULL;
	o = json_object();
	for (i = 0; i < XLB_REASON_COUNT; i++)
		json_object_set_new(o, reason_name((enum xlb_reason)i),
		    json_integer((json_int_t)r.packets[i]));
	return o;
}

static json_t *
service_json(struct maps *m, const struct state_service *row,
    const struct event_names *names)
{
	const struct conf_service *s = row->number < XLB_SERVICES ?
	    names->service[row->number] : NULL;
	struct xlb_service_stats n;

	if (s == NULL || maps_service_stats(m, row->number, &n) < 0)
		return NULL;
	return json_pack("{s:s, s:o, s:s, s:o, s:I, s:I, s:I}",
	    "name", s->name, "address", addr_json(&row->vip),
	    "protocol", row->proto == IPPROTO_TCP ? "tcp" : "udp",
	    "port", row->port != 0 ? json_integer(row->port) : json_null(),
	    "packets", (json_int_t)n.packets, "bytes", (json_int_t)n.bytes,
	    "drops", (json_int_t)n.drops);
}

static json_t *
services_json(struct maps *m, const struct daemon *d)
{
	struct event_names *names = malloc(sizeof(*names));
	json_t *list = json_array(), *o;
	size_t i;

	if (names == NULL)
		fatal("stats");
	event_names_init(names, d->config->conf, &d->wanted, d->link);
	for (i = 0; i < d->wanted.nservice; i++) {
		o = service_json(m, &d->wanted.service[i], names);
		if (o != NULL)
			json_array_append_new(list, o);
	}
	free(names);
	return list;
}

static int
member_order(const void *a, const void *b)
{
	const struct member *x = a, *y = b;
	int c = addr_cmp(&x->backend->address, &y->backend->address);

	return c != 0 ? c : strcmp(x->pool->name, y->pool->name);
}

void
members_init(struct members *m, const struct conf *c)
{
	const struct conf_pool *p;
	size_t i, j;

	for (m->n = i = 0; i < c->npool; i++)
		m->n += c->pool[i].nbackend;
	m->row = calloc(m->n + 1, sizeof(*m->row));
	if (m->row == NULL)
		fatal("stats");
	for (m->n = i = 0; i < c->npool; i++) {
		p = &c->pool[i];
		for (j = 0; j < p->nbackend; j++)
			m->row[m->n++] = (struct member){ p, &p->backend[j] };
	}
	qsort(m->row, m->n, sizeof(*m->row), member_order);
}

json_t *
members_json(const struct members *m, const struct addr *addr)
{
	json_t *list = json_array();
	size_t low = 0, high = m->n, mid;

	while (low < high) {
		mid = (low + high) / 2;
		if (addr_cmp(&m->row[mid].backend->address, addr) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	for (; low < m->n &&
	    addr_cmp(&m->row[low].backend->address, addr) == 0; low++)
		json_array_append_new(list, json_sprintf("%s/%s",
		    m->row[low].pool->name, m->row[low].backend->name));
	return list;
}

static json_t *
backends_json(struct maps *m, const struct daemon *d)
{
	json_t *list = json_array();
	const struct state_backend *b;
	struct xlb_backend_stats n;
	struct members members;
	size_t i;

	members_init(&members, d->config->conf);
	for (i = 0; i < d->wanted.nbackend; i++) {
		b = &d->wanted.backend[i];
		if (maps_backend_stats(m, b->number, &n) < 0)
			continue;
		json_array_append_new(list, json_pack("{s:o, s:o, s:I, s:I}",
		    "address", addr_json(&b->addr), "backends",
		    members_json(&members, &b->addr), "packets",
		    (json_int_t)n.packets, "bytes", (json_int_t)n.bytes));
	}
	free(members.row);
	return list;
}

static json_t *
flows_json(const struct xlb_flow_stats *n)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}",
	    "insert", (json_int_t)n->insert,
	    "evict_unconfirmed", (json_int_t)n->evict_unconfirmed,
	    "evict_confirmed", (json_int_t)n->evict_confirmed,
	    "skip_budget", (json_int_t)n->skip_budget,
	    "cas_lost", (json_int_t)n->cas_lost,
	    "full", (json_int_t)n->full, "sampled", (json_int_t)n->sampled,
	    "unknown", (json_int_t)n->unknown);
}

static json_t *
drift_json(const struct drift *t)
{
	json_t *o = json_object();
	int k;

	for (k = 0; k < DRIFT_KINDS; k++)
		json_object_set_new(o, drift_text((enum drift_kind)k),
		    json_integer((json_int_t)t->n[k]));
	return o;
}

json_t *
stats_build(struct daemon *d)
{
	struct maps *m = prog_maps(d->prog);
	json_t *reasons = reasons_json(m);
	struct xlb_flow_stats flows;
	uint64_t csum_full;

	if (reasons == NULL || maps_csum_full(m, &csum_full) < 0 ||
	    maps_flow_stats(m, &flows) < 0) {
		json_decref(reasons);
		return NULL;
	}
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:o}",
	    "time", time_json(daemon_realtime()), "reasons", reasons,
	    "flow_table", flows_json(&flows),
	    "services", services_json(m, d), "backends", backends_json(m, d),
	    "csum_full", (json_int_t)csum_full,
	    "repairs", (json_int_t)drift_total(&d->drift),
	    "drift", drift_json(&d->drift));
}

static json_t *
mac_json(const uint8_t mac[6])
{
	return json_sprintf("%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1],
	    mac[2], mac[3], mac[4], mac[5]);
}

static json_t *
neighbor_json(const struct members *members, const struct hop *h)
{
	const struct state_nexthop *n = &h->nexthop;
	char name[IF_NAMESIZE];
	json_t *o;

	o = json_pack("{s:o, s:o, s:b, s:s}", "address", addr_json(&h->addr),
	    "backends", members_json(members, &h->addr),
	    "resolved", h->status == HOP_OK, "reason",
	    h->why != NULL ? h->why : "");
	if (h->status != HOP_OK)
		return o;
	json_object_set_new(o, "gateway", addr_json(&n->gateway));
	json_object_set_new(o, "mac", mac_json(n->mac));
	json_object_set_new(o, "interface", ctl_text(if_indextoname(n->ifindex,
	    name) != NULL ? name : ""));
	json_object_set_new(o, "vlan", json_integer(n->vlan & 0xfff));
	json_object_set_new(o, "mtu", json_integer(n->mtu));
	json_object_set_new(o, "source", addr_json(&n->src));
	return o;
}

json_t *
neighbors_build(struct daemon *d)
{
	const struct hop_table *t = netlink_hops(d->nl);
	json_t *list = json_array();
	struct members members;
	size_t i;

	members_init(&members, d->config->conf);
	for (i = 0; i < t->n; i++)
		json_array_append_new(list, neighbor_json(&members,
		    &t->row[i]));
	free(members.row);
	return json_pack("{s:o}", "neighbors", list);
}
