/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counts the flows in the tables, or finds a client's, in slices that hold the
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
	uint32_t at;		/* set, and behind the last one a row of NAT's */
	uint64_t now;
	uint64_t established, opening, closing;	/* of the flow table */
	uint64_t nat;
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

/* A flow of this backend, last used so long ago. */
static void
flow_count(struct flows_scan *s, uint32_t backend, uint64_t age, bool closing)
{
	struct flows_of *of = &s->backend[backend];
	size_t i = 0;

	while (age >= age_row[i].below && i + 1 < AGES)
		i++;
	s->age[i]++;
	of->flows++;
	if (closing && age >= ENDED_NS)
		of->ended++;
	else if (age >= IDLE_NS)
		of->idle++;
}

static void
entry_count(struct flows_scan *s, uint64_t entry)
{
	uint64_t age = lookup_age(entry, s->now);

	if (XLB_FLOW_BACKEND(entry) == 0 ||
	    XLB_FLOW_BACKEND(entry) >= XLB_BACKENDS || entry_dead(entry, age))
		return;
	if (entry & XLB_FLOW_CLOSING)
		s->closing++;
	else if (entry & XLB_FLOW_CONFIRMED)
		s->established++;
	else
		s->opening++;
	flow_count(s, XLB_FLOW_BACKEND(entry), age,
	    (entry & XLB_FLOW_CLOSING) != 0);
}

/* By the direction that was used last. */
static uint64_t
row_age(const struct flows_scan *s, uint64_t word, uint64_t back)
{
	uint32_t now = (uint32_t)(s->now >> XLB_FLOW_TICK_SHIFT);
	uint32_t age = xlb_nat_age(word, now), other = xlb_nat_age(back, now);

	return (uint64_t)(age < other ? age : other) << XLB_FLOW_TICK_SHIFT;
}

/* The row of the client's direction stands for the flow. */
static void
row_count(struct flows_scan *s, uint32_t at)
{
	const struct xlb_nat *row = &s->flows->nat[at];
	uint64_t word = __atomic_load_n(&row->word, __ATOMIC_ACQUIRE), back = 0;
	uint32_t now = (uint32_t)(s->now >> XLB_FLOW_TICK_SHIFT);

	if (!(word & XLB_NAT_FORWARD) || (word & (XLB_NAT_BUSY | XLB_NAT_GONE)))
		return;
	if (nat_pair(s->flows->nat, s->flows->rows, at))
		back = s->flows->nat[row->peer].word;
	if (back == 0 || (xlb_nat_old(word, now) && xlb_nat_old(back, now)))
		return;
	s->nat++;
	flow_count(s, row->backend % XLB_BACKENDS, row_age(s, word, back),
	    (word & XLB_NAT_CLOSING) != 0);
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
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o}",
	    "entries", (json_int_t)s->flows->n * XLB_FLOW_WAYS,
	    "flows", (json_int_t)(s->established + s->opening + s->closing),
	    "established", (json_int_t)s->established,
	    "opening", (json_int_t)s->opening,
	    "closing", (json_int_t)s->closing,
	    "nat", (json_int_t)s->nat, "ages", ages, "backends", list);
}

static uint64_t
clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NS + (uint64_t)ts.tv_nsec;
}

/* The next sets and rows; false: that was all. */
static bool
count_some(struct flows_scan *s)
{
	uint32_t end = s->flows->n + s->flows->rows, i, way;

	for (i = 0; i < AT_ONCE && s->at < end; i++, s->at++) {
		if (s->at >= s->flows->n) {
			row_count(s, s->at - s->flows->n);
			continue;
		}
		for (way = 0; way < XLB_FLOW_WAYS; way++)
			entry_count(s, __atomic_load_n(
			    &s->flows->set[s->at].entry[way],
			    __ATOMIC_RELAXED));
	}
	return s->at < end;
}

static void
found_add(struct flows_scan *s, const struct lookup_flow *f, uint32_t number,
    uint64_t age, bool confirmed, bool closing)
{
	const struct state *w = &s->d->wanted;
	json_t *backend = json_null();
	size_t i;

	for (i = 0; i < w->nbackend; i++)
		if (w->backend[i].number == number)
			backend = addr_json(&w->backend[i].addr);
	json_array_append_new(s->found, json_pack(
	    "{s:s, s:I, s:o, s:I, s:o, s:b, s:b, s:I}",
	    "protocol", f->proto == IPPROTO_UDP ? "udp" : "tcp",
	    "source_port", (json_int_t)f->sport,
	    "destination", addr_json(&f->dst),
	    "destination_port", (json_int_t)f->dport, "backend", backend,
	    "confirmed", confirmed, "closing", closing,
	    "age", (json_int_t)(age / NS)));
}

/* Is it known, to the service with these flags? */
static void
flow_try(struct flows_scan *s, const struct lookup_flow *f, uint32_t flags)
{
	const struct maps *m = prog_maps(s->d->prog);
	struct xlb_nat row;
	uint64_t entry, age;

	if (flags & XLB_SERVICE_NAT) {
		maps_flows_nat(m, s->flows, f, &row);
		if (row.word != 0)
			found_add(s, f, row.backend,
			    row_age(s, row.word, row.word),
			    (row.word & XLB_NAT_ESTABLISHED) != 0,
			    (row.word & XLB_NAT_CLOSING) != 0);
		return;
	}
	entry = maps_flows_find(m, s->flows, f, flags);
	age = lookup_age(entry, s->now);
	if (entry != 0 && !entry_dead(entry, age))
		found_add(s, f, XLB_FLOW_BACKEND(entry), age,
		    (entry & XLB_FLOW_CONFIRMED) != 0,
		    (entry & XLB_FLOW_CLOSING) != 0);
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
		flow_try(s, &f, row->flags);
	}
	if (s->port > UINT16_MAX) {
		s->port = 0;
		s->service++;
	}
	return true;
}

/* By the configuration of now: a reload may have come since they were found. */
static void
found_name(struct flows_scan *s)
{
	struct members members;
	struct addr addr;
	json_t *row, *name;
	size_t i;

	members_init(&members, s->d->config->conf);
	json_array_foreach(s->found, i, row) {
		name = json_object_get(row, "backend");
		json_object_set_new(row, "backends", json_is_string(name) &&
		    addr_parse(json_string_value(name), &addr) == 0 ?
		    members_json(&members, &addr) : json_array());
	}
	free(members.row);
}

static void
scan_answer(struct flows_scan *s)
{
	json_t *reply = ctl_message(0);

	if (s->every)
		ctl_warning(reply, "flows to services on every port cannot be "
		    "found");
	if (s->found != NULL)
		found_name(s);
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
