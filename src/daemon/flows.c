/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counts the flows in the table, or finds a client's, in slices that hold the
 * loop for less than a millisecond each. */
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/nat_sweep.h"
#include "daemon/daemon.h"
#include "daemon/status.h"
#include "io/log.h"
#include "io/maps.h"

#define SLICE_NS 500000
#define AT_ONCE 512		/* sets, then the clock is looked at */
#define NS UINT64_C(1000000000)
/* A closing flow of which nothing came for so long has ended: what follows a FIN
 * or RST, late acknowledgements and what is sent again, is over by then. */
#define ENDED_NS (10 * NS)
#define IDLE_NS (60 * NS)

/* Flows by how long ago they were used; the last one is the rest. */
static const struct {
	const char *name;
	uint64_t below;		/* ns */
} age_row[] = {
	{ "10s", 10 * NS }, { "1m", 60 * NS }, { "10m", 600 * NS },
	{ "1h", 3600 * NS }, { "older", UINT64_MAX }
};
#define AGES (sizeof(age_row) / sizeof(age_row[0]))

struct flows_scan {
	struct daemon *d;
	struct ctl_request *rq;
	sd_event_source *next;
	struct maps_flows *flows;
	uint32_t at;		/* set */
	uint64_t now;
	uint64_t established, opening, closing;
	uint64_t age[AGES];
	struct flows_of {
		uint32_t flows, idle, ended;
	} backend[XLB_BACKENDS];	/* by number */
	/* of one client: all its ports are tried */
	json_t *found;		/* NULL: all are counted */
	struct addr client;
	size_t service;		/* that is tried */
	uint32_t port;		/* the next one, of the client */
	bool every;		/* a service on every port was left out */
};

/* One that binds its flow no more is as good as not there. */
static bool
entry_dead(uint64_t entry, uint64_t age)
{
	uint64_t life = entry & XLB_FLOW_CLOSING ? XLB_FLOW_SESSION :
	    entry & XLB_FLOW_CONFIRMED ? XLB_FLOW_KNOWN : XLB_FLOW_OPENING;

	return age > life << XLB_FLOW_TICK_SHIFT;
}

static void
entry_count(struct flows_scan *s, uint64_t entry)
{
	uint64_t age = lookup_age(entry, s->now);
	struct flows_of *of;
	size_t i = 0;

	if (XLB_FLOW_BACKEND(entry) == 0 ||
	    XLB_FLOW_BACKEND(entry) >= XLB_BACKENDS || entry_dead(entry, age))
		return;
	if (entry & XLB_FLOW_CLOSING)
		s->closing++;
	else if (entry & XLB_FLOW_CONFIRMED)
		s->established++;
	else
		s->opening++;
	while (age >= age_row[i].below && i + 1 < AGES)
		i++;
	s->age[i]++;
	of = &s->backend[XLB_FLOW_BACKEND(entry)];
	of->flows++;
	if ((entry & XLB_FLOW_CLOSING) && age >= ENDED_NS)
		of->ended++;
	else if (age >= IDLE_NS)
		of->idle++;
}

static void
scan_free(struct flows_scan *s)
{
	s->d->scan = NULL;
	sd_event_source_disable_unref(s->next);
	maps_flows_close(s->flows);
	json_decref(s->found);
	free(s);
}

static json_t *
scan_result(const struct flows_scan *s)
{
	const struct state *w = &s->d->wanted;
	json_t *list = json_array(), *ages = json_object();
	struct members members;
	const struct flows_of *of;
	size_t i;

	members_init(&members, s->d->config->conf);
	for (i = 0; i < w->nbackend; i++) {
		of = &s->backend[w->backend[i].number % XLB_BACKENDS];
		json_array_append_new(list, json_pack(
		    "{s:o, s:o, s:I, s:I, s:I}",
		    "address", addr_json(&w->backend[i].addr), "backends",
		    members_json(&members, &w->backend[i].addr), "flows",
		    (json_int_t)of->flows, "idle", (json_int_t)of->idle,
		    "ended", (json_int_t)of->ended));
	}
	free(members.row);
	for (i = 0; i < AGES; i++)
		json_object_set_new(ages, age_row[i].name,
		    json_integer((json_int_t)s->age[i]));
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:o, s:o}",
	    "entries", (json_int_t)s->flows->n * XLB_FLOW_WAYS,
	    "flows", (json_int_t)(s->established + s->opening + s->closing),
	    "established", (json_int_t)s->established,
	    "opening", (json_int_t)s->opening,
	    "closing", (json_int_t)s->closing, "ages", ages,
	    "backends", list);
}

static uint64_t
clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NS + (uint64_t)ts.tv_nsec;
}

/* The next sets; false: that was all. */
static bool
count_some(struct flows_scan *s)
{
	uint32_t i, way;

	for (i = 0; i < AT_ONCE && s->at < s->flows->n; i++, s->at++)
		for (way = 0; way < XLB_FLOW_WAYS; way++)
			entry_count(s, __atomic_load_n(
			    &s->flows->set[s->at].entry[way],
			    __ATOMIC_RELAXED));
	return s->at < s->flows->n;
}

static void
found_add(struct flows_scan *s, const struct lookup_flow *f, uint64_t entry)
{
	uint64_t age = lookup_age(entry, s->now);
	const struct state *w = &s->d->wanted;
	json_t *backend = json_null();
	size_t i;

	if (entry_dead(entry, age))
		return;
	for (i = 0; i < w->nbackend; i++)
		if (w->backend[i].number == XLB_FLOW_BACKEND(entry))
			backend = addr_json(&w->backend[i].addr);
	json_array_append_new(s->found, json_pack(
	    "{s:s, s:I, s:o, s:I, s:o, s:b, s:b, s:I}",
	    "protocol", f->proto == IPPROTO_UDP ? "udp" : "tcp",
	    "source_port", (json_int_t)f->sport,
	    "destination", addr_json(&f->dst),
	    "destination_port", (json_int_t)f->dport, "backend", backend,
	    "confirmed", (entry & XLB_FLOW_CONFIRMED) != 0,
	    "closing", (entry & XLB_FLOW_CLOSING) != 0,
	    "age", (json_int_t)(age / NS)));
}

/* The next ports of the client, to the next service; false: that was all. A
 * reload may have come in between: what is tried twice is found twice at
 * worst. */
static bool
try_some(struct flows_scan *s)
{
	const struct state *w = &s->d->wanted;
	const struct state_service *row;
	struct lookup_flow f = { .src = s->client };
	uint64_t entry;
	uint32_t i;

	if (s->service >= w->nservice)
		return false;
	row = &w->service[s->service];
	s->every |= row->port == 0 &&
	    addr_is4(&row->vip) == addr_is4(&s->client);
	if (row->port == 0 || addr_is4(&row->vip) != addr_is4(&s->client)) {
		s->service++;
		return true;
	}
	f.dst = row->vip;
	f.dport = row->port;
	f.proto = row->proto;
	for (i = 0; i < AT_ONCE && s->port <= UINT16_MAX; i++, s->port++) {
		f.sport = (uint16_t)s->port;
		entry = maps_flows_find(prog_maps(s->d->prog), s->flows, &f,
		    row->flags);
		if (entry != 0)
			found_add(s, &f, entry);
	}
	if (s->port > UINT16_MAX) {
		s->port = 0;
		s->service++;
	}
	return true;
}

static void
scan_answer(struct flows_scan *s)
{
	json_t *reply = ctl_message(0);

	if (s->every)
		ctl_warning(reply, "flows to services on every port cannot be "
		    "found");
	json_object_set_new(reply, "result", s->found == NULL ?
	    scan_result(s) : json_pack("{s:o, s:O}", "client",
	    addr_json(&s->client), "found", s->found));
	ctl_reply(s->rq, reply);
}

static int
on_slice(sd_event_source *source, void *arg)
{
	struct flows_scan *s = arg;
	uint64_t begin = clock_ns();
	bool more;

	do
		more = s->found != NULL ? try_some(s) : count_some(s);
	while (more && clock_ns() - begin < SLICE_NS);
	if (more) {
		sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
		return 0;
	}
	scan_answer(s);
	scan_free(s);
	return 0;
}

/* What the last pass over NAT's table has found: it is counted anyway. */
static json_t *
nat_result(struct daemon *d)
{
	struct maps *m = prog_maps(d->prog);
	const struct nat_sweep_result *r = nat_sweep_result(maps_nat(m));
	const struct state *w = &d->wanted;
	json_t *list = json_array();
	size_t i;

	for (i = 0; i < w->nsource; i++)
		json_array_append_new(list, json_pack("{s:o, s:I}",
		    "address", addr_json(&w->source[i].addr),
		    "flows", (json_int_t)r->source[w->source[i].number %
		    XLB_NAT_SOURCES]));
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:o}",
	    "rows", (json_int_t)maps_nat_rows(m), "used", (json_int_t)r->used,
	    "flows", (json_int_t)r->flows,
	    "established", (json_int_t)r->established,
	    "udp", (json_int_t)r->udp, "sources", list);
}

static void
refuse(struct ctl_request *rq, const char *why)
{
	json_t *reply = ctl_message(1);

	ctl_error(reply, "%s", why);
	ctl_reply(rq, reply);
}

void
handle_flows(struct daemon *d, struct ctl_request *rq, const json_t *args)
{
	const char *client = json_string_value(json_object_get(args,
	    "client"));
	struct flows_scan *s;
	struct addr addr;

	if (json_is_true(json_object_get(args, "nat"))) {
		json_t *reply = ctl_message(0);

		json_object_set_new(reply, "result", nat_result(d));
		ctl_reply(rq, reply);
		return;
	}
	if (client != NULL && addr_parse(client, &addr) < 0) {
		refuse(rq, "client is not an address");
		return;
	}
	if (d->scan != NULL) {
		refuse(rq, "the flows are being counted for another one");
		return;
	}
	s = calloc(1, sizeof(*s));
	if (s == NULL)
		fatal("flows");
	s->d = d;
	s->rq = rq;
	s->now = maps_clock();
	if (client != NULL) {
		s->client = addr;
		s->found = json_array();
	}
	d->scan = s;
	s->flows = maps_flows_open(prog_maps(d->prog));
	if (s->flows == NULL ||
	    sd_event_add_defer(d->ev, &s->next, on_slice, s) < 0 ||
	    sd_event_source_set_priority(s->next, SD_EVENT_PRIORITY_IDLE) < 0) {
		refuse(rq, "the flow table cannot be read");
		scan_free(s);
	}
}

void
flows_close(struct daemon *d)
{
	if (d->scan == NULL)
		return;
	refuse(d->scan->rq, "xlbd ends");
	scan_free(d->scan);
}
