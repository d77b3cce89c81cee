/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Builds the JSON of status and fingerprint. */
#include "daemon/status.h"

#include <assert.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/announce_route.h"
#include "core/arena.h"
#include "core/conf_value.h"
#include "io/ctl.h"
#include "io/log.h"

#define ADDRESS_WHY_MAX 64	/* "BIRD: " and the longest status */
#define NS 1000000000LL

static const char *const backend_state_name[] = {
	[BACKEND_ACTIVE] = "active", [BACKEND_DRAIN] = "drain",
	[BACKEND_DOWN] = "down" };
static const char *const phase_name[] = { [PHASE_SERVE] = "serving",
	[PHASE_GSHUT] = "graceful_shutdown", [PHASE_WITHDRAW] = "withdrawn" };
static const char *const forward_name[] = { [FORWARD_IPIP] = "ipip",
	[FORWARD_GUE] = "gue", [FORWARD_L2] = "l2", [FORWARD_NAT] = "nat" };

json_t *
time_json(int64_t ns)
{
	char day[32], buf[64];
	time_t s = (time_t)(ns / NS);
	struct tm tm;

	if (ns <= 0 || gmtime_r(&s, &tm) == NULL)
		return json_null();
	strftime(day, sizeof(day), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(buf, sizeof(buf), "%s.%03dZ", day, (int)(ns % NS / 1000000));
	return json_string(buf);
}

json_t *
addr_json(const struct addr *a)
{
	char buf[ADDR_STR_MAX];

	return json_string(addr_print(a, buf));
}

static json_t *
text_or_null(const char *s)
{
	return s != NULL ? ctl_text(s) : json_null();
}

static json_t *
config_json(const struct status_config *c)
{
	return json_pack("{s:b, s:o, s:o, s:o, s:b, s:o}", "ok", c->ok,
	    "time", time_json(c->read), "loaded", time_json(c->loaded),
	    "file", ctl_text(c->file), "kept", c->kept,
	    "error", text_or_null(c->error));
}

static json_t *
interfaces_json(const struct status_input *in)
{
	json_t *list = json_array();
	const struct prog_link *l;
	size_t i;

	for (i = 0; i < in->conf->ninterface; i++) {
		l = &in->link[i];
		json_array_append_new(list, json_pack("{s:o, s:s, s:b, s:o}",
		    "name", ctl_text(in->conf->interface[i].name),
		    "mode", l->mode != NULL ? l->mode : "-",
		    "attached", l->attached, "reason", ctl_text(l->why)));
	}
	return list;
}

static json_t *
bird_json(const struct bird *b)
{
	const struct bird_peer *peer;
	json_t *list;
	size_t i, n;

	if (b == NULL)
		return json_null();
	list = json_array();
	peer = bird_peers(b, &n);
	for (i = 0; i < n; i++)
		json_array_append_new(list, json_pack(
		    "{s:o, s:o, s:o, s:o, s:I}",
		    "name", ctl_text(peer[i].name),
		    "state", ctl_text(peer[i].state),
		    "since", time_json(peer[i].since),
		    "reason", ctl_text(peer[i].error), "exported",
		    (json_int_t)peer[i].exported4 + peer[i].exported6));
	return json_pack("{s:s, s:o, s:o, s:I, s:o}", "status",
	    bird_status_text(bird_status(b)), "since", time_json(bird_since(b)),
	    "reason", ctl_text(bird_reason(b)), "stuck",
	    (json_int_t)bird_stuck(b), "peers", list);
}

/* The names of those that a route is exported to. */
static json_t *
exports_json(const struct bird *b, const struct prefix *p)
{
	json_t *list = json_array();
	const struct bird_peer *peer;
	size_t i, n = 0;

	peer = b != NULL ? bird_peers(b, &n) : NULL;
	for (i = 0; i < n; i++)
		if (bird_exports(b, i, p))
			json_array_append_new(list, ctl_text(peer[i].name));
	return list;
}

/* Why it is not announced: it may not be, or BIRD has not taken it. */
static const char *
address_why(const struct status_input *in, const struct announce_row *row,
    bool in_bird, bool exported, char why[ADDRESS_WHY_MAX])
{
	enum bird_status s;

	if (!row->wanted)
		return announce_why_text(row->why);
	s = in->bird != NULL ? bird_status(in->bird) : BIRD_OFF;
	if (in_bird && !exported)
		return "no BGP session exports it";
	if (in_bird || s == BIRD_OFF || s == BIRD_SYNCED)
		return "";
	snprintf(why, ADDRESS_WHY_MAX, "BIRD: %s", bird_status_text(s));
	return why;
}

/* As the route is announced, or would be. */
static json_t *
communities_json(const struct announce_route *r)
{
	json_t *list = json_array();
	char buf[COMMUNITY_STR_MAX];
	size_t i;

	if (r->gshut)
		json_array_append_new(list, json_string("65535:0"));
	for (i = 0; i < r->communities.n; i++)
		json_array_append_new(list, json_string(
		    community_print(&r->communities.row[i], buf)));
	return list;
}

static void
route_json(const struct announce_route *r, json_t *o)
{
	json_object_set_new(o, "communities", communities_json(r));
	json_object_set_new(o, "med", r->has_med ?
	    json_integer(r->med) : json_null());
	json_object_set_new(o, "prepend", json_integer(r->prepend));
}

static json_t *
addresses_json(const struct status_input *in)
{
	json_t *list = json_array(), *o;
	const struct announce_row *row;
	struct arena *a = arena_new();
	struct announce_route *route;
	char buf[PREFIX_STR_MAX], why[ADDRESS_WHY_MAX];
	struct prefix p;
	uint32_t exported;
	bool in_bird;
	size_t i, n;

	route = announce_routes(in->announce, in->conf, a, &n);
	for (i = 0; i < in->announce->n; i++) {
		row = &in->announce->row[i];
		p = announce_prefix(row);
		in_bird = in->bird != NULL && bird_has(in->bird, &p);
		exported = in->bird != NULL ? bird_exported(in->bird, &p) : 0;
		o = json_pack(
		    "{s:o, s:s, s:b, s:b, s:I, s:o, s:o, s:s, s:o, s:b}",
		    "address", addr_json(&row->addr),
		    "prefix", prefix_print(&p, buf),
		    "wanted", row->wanted, "in_bird", in_bird,
		    "exported", (json_int_t)exported,
		    "peers", exports_json(in->bird, &p),
		    "since", time_json(row->since),
		    "reason", address_why(in, row, in_bird, exported > 0,
		    why),
		    "service", text_or_null(row->wanted ? NULL : row->service),
		    "graceful_shutdown", row->wanted && row->gshut);
		route_json(announce_route_find(route, n, &p), o);
		json_array_append_new(list, o);
	}
	arena_free(a);
	return list;
}

const char *
status_member_reason(const struct state_member *m, const struct conf_check *check,
    char buf[HEALTH_WHY_MAX])
{
	if (m->why == MEMBER_ELIGIBLE)
		return "";
	if ((m->why == MEMBER_UNHEALTHY || m->why == MEMBER_ASKS_DRAIN) &&
	    m->health_row != NULL)
		return health_row_why(m->health_row, check, buf);
	return member_why_text(m->why);
}

/* When the operator put it into the state that it is in; null: the file did. */
static json_t *
state_since(const struct status_input *in, const char *pool,
    const struct addr *addr)
{
	const struct override *o;
	size_t i;

	for (i = 0; i < in->overrides->n; i++) {
		o = &in->overrides->row[i];
		if (o->pool == NULL ? pool == NULL : pool != NULL &&
		    strcmp(o->pool, pool) == 0 && addr_cmp(&o->addr, addr) == 0)
			return time_json(o->since);
	}
	return json_null();
}

/* null: not known. */
static json_t *
bytes_json(uint16_t n)
{
	return n == 0 ? json_null() : json_integer(n);
}

static json_t *
backends_json(const struct status_input *in, const struct state_pool *p,
    const struct status_ring *ring)
{
	json_t *list = json_array();
	const struct conf_backend *b;
	const struct state_member *m;
	const struct path_mtu *path;
	char why[HEALTH_WHY_MAX];
	size_t i;

	for (i = 0; i < p->conf->nbackend; i++) {
		b = &p->conf->backend[i];
		m = &p->member[i];
		path = path_find(in->paths, &b->address);
		json_array_append_new(list, json_pack(
		    "{s:s, s:o, s:I, s:s, s:o, s:s, s:s, s:o, s:I, s:b, s:o, "
		    "s:o}", "name", b->name, "address", addr_json(&b->address),
		    "weight", (json_int_t)b->weight,
		    "state", backend_state_name[m->state],
		    "state_since", state_since(in, p->conf->name, &b->address),
		    "health", health_state_text(m->health),
		    "reason", status_member_reason(m, p->conf->check, why),
		    "since", time_json(m->health_row != NULL ?
		    m->health_row->since : 0),
		    "slots", (json_int_t)ring->slots[i],
		    "eligible", m->why == MEMBER_ELIGIBLE,
		    "path_mtu", bytes_json(path != NULL ? path->carries : 0),
		    "link_mtu", bytes_json(path != NULL ? path->limit : 0)));
	}
	return list;
}

static void
fingerprint_print(const struct status_ring *ring, char buf[17])
{
	snprintf(buf, 17, "%016llx", (unsigned long long)ring->fingerprint);
}

static json_t *
pools_json(const struct status_input *in)
{
	json_t *list = json_array();
	const struct state_pool *p;
	char hex[17];
	size_t i;

	for (i = 0; i < in->wanted->npool; i++) {
		p = &in->wanted->pool[i];
		fingerprint_print(&in->ring[i], hex);
		json_array_append_new(list, json_pack(
		    "{s:s, s:o, s:s, s:I, s:I, s:I, s:b, s:b, s:o}",
		    "name", p->conf->name, "check", text_or_null(
		    p->conf->check != NULL ? p->conf->check->name : NULL),
		    "fingerprint", hex, "slots", (json_int_t)in->ring[i].size,
		    "eligible", (json_int_t)p->eligible,
		    "needed", (json_int_t)p->needed, "ready", p->ready,
		    "failed_open", p->failed_open,
		    "backends", backends_json(in, p, &in->ring[i])));
	}
	return list;
}

static bool
pool_ready(const struct state *wanted, const struct conf_pool *pool)
{
	size_t i;

	for (i = 0; i < wanted->npool; i++)
		if (wanted->pool[i].conf == pool)
			return wanted->pool[i].ready;
	return false;
}

static json_t *
services_json(const struct status_input *in)
{
	json_t *list = json_array(), *addresses, *listen;
	const struct conf_service *s;
	const char *proto;
	size_t i, j;

	for (i = 0; i < in->conf->nservice; i++) {
		s = &in->conf->service[i];
		addresses = json_array();
		for (j = 0; j < s->naddress; j++)
			json_array_append_new(addresses,
			    addr_json(&s->address[j].address));
		listen = json_array();
		for (j = 0; j < s->nlisten; j++) {
			proto = s->listen[j].proto == IPPROTO_TCP ? "tcp" :
			    "udp";
			json_array_append_new(listen, s->listen[j].port == 0 ?
			    json_sprintf("%s/*", proto) :
			    json_sprintf("%s/%u", proto, s->listen[j].port));
		}
		json_array_append_new(list, json_pack(
		    "{s:s, s:s, s:s, s:s, s:b, s:b, s:o, s:o}",
		    "name", s->name, "pool", s->pool->name,
		    "forward", forward_name[s->forward],
		    "hash", s->hash == HASH_SOURCE ? "source" : "flow",
		    "required", s->required,
		    "ready", pool_ready(in->wanted, s->pool),
		    "addresses", addresses, "listen", listen));
	}
	return list;
}

/* An override names an address, people say POOL/BACKEND. */
static json_t *
override_object(const struct conf *c, const struct override *o)
{
	const struct conf_pool *p;
	char buf[ADDR_STR_MAX];
	size_t i;

	if (o->pool == NULL)
		return json_string("node");
	p = conf_pool_find(c, o->pool);
	for (i = 0; p != NULL && i < p->nbackend; i++)
		if (addr_cmp(&p->backend[i].address, &o->addr) == 0)
			return json_sprintf("%s/%s", o->pool,
			    p->backend[i].name);
	return json_sprintf("%s/%s", o->pool, addr_print(&o->addr, buf));
}

static json_t *
overrides_json(const struct status_input *in)
{
	json_t *list = json_array();
	const struct override *o;
	size_t i;

	for (i = 0; i < in->overrides->n; i++) {
		o = &in->overrides->row[i];
		json_array_append_new(list, json_pack("{s:o, s:s, s:o}",
		    "object", override_object(in->conf, o),
		    "state", backend_state_name[o->state],
		    "since", time_json(o->since)));
	}
	return list;
}

static json_t *
flow_table_json(const struct status_flows *f)
{
	return json_pack("{s:I, s:I, s:I, s:b, s:o, s:I}",
	    "entries", (json_int_t)f->entries, "live", (json_int_t)f->live,
	    "lookup", (json_int_t)f->lookup, "surge", f->surge,
	    "surge_since", time_json(f->surge_since),
	    "surge_seconds", (json_int_t)f->surge_seconds);
}

static json_t *
changes_json(const struct status_input *in)
{
	json_t *list = json_array();
	const struct log_changed *c;
	size_t i;

	for (i = 0; i < in->nchange; i++) {
		c = &in->change[i];
		json_array_append_new(list, json_pack(
		    "{s:o, s:o, s:o, s:o, s:o}", "time", time_json(c->at),
		    "object", ctl_text(c->object), "old", ctl_text(c->from),
		    "new", ctl_text(c->to), "reason", ctl_text(c->why)));
	}
	return list;
}

json_t *
status_build(const struct status_input *in)
{
	json_t *o = json_pack("{s:o, s:o, s:s, s:I, s:o, s:s, s:o, s:s, s:o, "
	    "s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
	    "time", time_json(in->now), "node", ctl_text(in->node),
	    "version", PACKAGE_VERSION, "pid", (json_int_t)in->pid,
	    "started", time_json(in->started),
	    "state", in->node_state == NODE_DRAIN ? "drain" : "active",
	    "state_since", state_since(in, NULL, NULL),
	    "phase", phase_name[in->phase],
	    "phase_until", time_json(in->phase_until),
	    "forwarding", in->forwarding,
	    "forwarding_reason", ctl_text(in->forwarding_reason),
	    "config", config_json(in->config),
	    "interfaces", interfaces_json(in),
	    "flow_table", flow_table_json(&in->flows),
	    "bird", bird_json(in->bird),
	    "addresses", addresses_json(in), "pools", pools_json(in),
	    "services", services_json(in), "overrides", overrides_json(in),
	    "changes", changes_json(in));

	assert(o != NULL);
	return o;
}

json_t *
fingerprint_build(const struct state *wanted, const struct status_ring *ring)
{
	json_t *o = json_object();
	char hex[17];
	size_t i;

	for (i = 0; i < wanted->npool; i++) {
		fingerprint_print(&ring[i], hex);
		json_object_set_new(o, wanted->pool[i].conf->name,
		    json_string(hex));
	}
	return o;
}
