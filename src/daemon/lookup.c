/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where a flow goes and why, and what the rings are like. */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/daemon.h"
#include "daemon/event_json.h"
#include "daemon/status.h"
#include "io/log.h"
#include "io/maps.h"

/* A backend number as a name; one that left the pool keeps its address. */
static json_t *
number_json(const struct event_names *names, const struct conf_pool *pool,
    uint32_t number)
{
	const struct state *w = names->wanted;
	const char *name = number != 0 ? event_backend(names, pool, number) :
	    NULL;
	size_t i;

	if (name != NULL)
		return ctl_text(name);
	for (i = 0; number != 0 && i < w->nbackend; i++)
		if (w->backend[i].number == number)
			return addr_json(&w->backend[i].addr);
	return json_null();
}

static json_t *
entry_json(const struct event_names *names, const struct conf_pool *pool,
    uint64_t entry, uint64_t now)
{
	if (entry == 0)
		return json_null();
	return json_pack("{s:o, s:b, s:b, s:I}", "backend",
	    number_json(names, pool, XLB_FLOW_BACKEND(entry)),
	    "confirmed", (entry & XLB_FLOW_CONFIRMED) != 0,
	    "closing", (entry & XLB_FLOW_CLOSING) != 0,
	    "age", (json_int_t)(lookup_age(entry, now) / 1000000000));
}

/* As what the backend knows the flow. */
static json_t *
nat_json(const struct daemon *d, const struct xlb_nat *row)
{
	const struct state *w = &d->wanted;
	char buf[ADDRPORT_STR_MAX];
	uint16_t port[2];
	size_t i;

	if (row->word == 0)
		return json_null();
	memcpy(port, &row->back, sizeof(port));
	for (i = 0; i < w->nsource; i++)
		if (w->source[i].number == row->source)
			return json_pack("{s:s, s:s, s:I}", "source",
			    addrport_print(&w->source[i].addr, ntohs(port[1]),
			    buf), "state",
			    row->word & XLB_NAT_CLOSING ? "closing" :
			    row->word & XLB_NAT_ESTABLISHED ? "established" :
			    row->word & XLB_NAT_REPLIED ? "replied" :
			    "opening", "port", (json_int_t)ntohs(port[0]));
	return json_null();
}

static json_t *
found_json(const struct daemon *d, const struct maps_found *f,
    const struct event_names *names)
{
	const struct conf_service *s =
	    names->service[XLB_WORD_NUMBER(f->service) % XLB_SERVICES];

	if (s == NULL)
		return NULL;
	return json_pack("{s:s, s:s, s:o, s:s, s:I, s:o, s:o, s:b, s:o, s:o}",
	    "service", s->name, "pool", s->pool->name,
	    "backend", number_json(names, s->pool, f->backend),
	    "why", lookup_why_text(f->why), "slot", (json_int_t)f->hash.slot,
	    "cur", number_json(names, s->pool, XLB_SLOT_CUR(f->word)),
	    "prev", number_json(names, s->pool, XLB_SLOT_PREV(f->word)),
	    "lookup", (f->word & XLB_SLOT_LOOKUP) != 0,
	    "entry", entry_json(names, s->pool, f->entry, f->now),
	    "nat", nat_json(d, &f->nat));
}

/* False: not a flow. */
static bool
flow_take(const json_t *args, struct lookup_flow *f)
{
	const char *proto = json_string_value(json_object_get(args,
	    "protocol"));
	const char *src = json_string_value(json_object_get(args, "source"));
	const char *dst = json_string_value(json_object_get(args,
	    "destination"));

	if (proto == NULL || src == NULL || dst == NULL ||
	    addrport_parse(src, &f->src, &f->sport) < 0 ||
	    addrport_parse(dst, &f->dst, &f->dport) < 0 ||
	    addr_is4(&f->src) != addr_is4(&f->dst))
		return false;
	f->proto = strcmp(proto, "udp") == 0 ? IPPROTO_UDP : IPPROTO_TCP;
	return f->proto == IPPROTO_UDP || strcmp(proto, "tcp") == 0;
}

void
handle_lookup(struct daemon *d, struct ctl_request *rq, const json_t *args)
{
	struct event_names *names = malloc(sizeof(*names));
	json_t *reply = ctl_message(0), *result = NULL;
	struct maps_found found;
	struct lookup_flow flow;
	int status = 0, rc;

	if (names == NULL)
		fatal("lookup");
	event_names_init(names, d->config->conf, &d->wanted, d->link);
	if (!flow_take(args, &flow)) {
		ctl_error(reply, "this is no flow");
		status = 2;
	} else {
		rc = maps_lookup(prog_maps(d->prog), &flow, &found);
		if (rc == 0)
			result = found_json(d, &found, names);
		if (rc < 0 && rc != -ENOENT)
			ctl_error(reply, "the maps cannot be read: %s",
			    strerror(-rc));
		else if (result == NULL)
			ctl_error(reply, "no service matches");
		status = result == NULL;
	}
	json_object_set_new(reply, "exit", json_integer(status));
	if (result != NULL)
		json_object_set_new(reply, "result", result);
	ctl_reply(rq, reply);
	free(names);
}

static json_t *
shares_json(const struct state_pool *p, const struct status_ring *ring)
{
	json_t *list = json_array();
	size_t i;

	for (i = 0; i < p->conf->nbackend; i++)
		json_array_append_new(list, json_pack("{s:s, s:o, s:I, s:I}",
		    "name", p->conf->backend[i].name,
		    "address", addr_json(&p->conf->backend[i].address),
		    "weight", (json_int_t)p->conf->backend[i].weight,
		    "slots", (json_int_t)ring->slots[i]));
	return list;
}

static uint32_t
ring_number(const struct state *w, const char *pool)
{
	size_t i;

	for (i = 0; i < w->nring; i++)
		if (strcmp(w->ring[i].pool, pool) == 0)
			return w->ring[i].number;
	return XLB_RINGS;
}

json_t *
rings_build(struct daemon *d, const struct status_ring *ring)
{
	const struct state *w = &d->wanted;
	json_t *list = json_array();
	const struct state_pool *p;
	struct maps_ring_count n;
	size_t i;

	for (i = 0; i < w->npool; i++) {
		p = &w->pool[i];
		if (maps_ring_count(prog_maps(d->prog), ring_number(w,
		    p->conf->name), &n) < 0)
			continue;
		json_array_append_new(list, json_pack(
		    "{s:s, s:o, s:I, s:I, s:I, s:I, s:I, s:o}",
		    "pool", p->conf->name, "fingerprint", json_sprintf(
		    "%016llx", (unsigned long long)ring[i].fingerprint),
		    "slots", (json_int_t)ring[i].size,
		    "lookup", (json_int_t)n.lookup,
		    "prev", (json_int_t)n.prev, "moved", (json_int_t)n.moved,
		    "empty", (json_int_t)n.empty,
		    "backends", shares_json(p, &ring[i])));
	}
	return json_pack("{s:o}", "rings", list);
}
