/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Builds the JSON of an event. */
#include "daemon/event_json.h"

#include <arpa/inet.h>
#include <assert.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "core/reason.h"
#include "daemon/status.h"
#include "io/ctl.h"

static const struct state_service *
service_row(const struct state *wanted, const struct addr *vip, uint8_t proto,
    uint16_t port)
{
	struct state_service key = { .vip = *vip, .proto = proto,
	    .port = port };

	if (wanted->nservice == 0)
		return NULL;
	return bsearch(&key, wanted->service, wanted->nservice, sizeof(key),
	    state_service_key_cmp);
}

void
event_names_init(struct event_names *names, const struct conf *conf,
    const struct state *wanted, const struct prog_link *link)
{
	const struct conf_service *s;
	const struct state_service *row;
	size_t i, j, k;

	memset(names, 0, sizeof(*names));
	names->conf = conf;
	names->wanted = wanted;
	names->link = link;
	for (i = 0; i < conf->nservice; i++) {
		s = &conf->service[i];
		for (j = 0; j < s->naddress; j++)
			for (k = 0; k < s->nlisten; k++) {
				row = service_row(wanted,
				    &s->address[j].address, s->listen[k].proto,
				    s->listen[k].port);
				if (row != NULL && row->number < XLB_SERVICES)
					names->service[row->number] = s;
			}
	}
}

const char *
event_backend(const struct event_names *names, const struct conf_pool *pool,
    uint32_t number)
{
	const struct state *w = names->wanted;
	const struct state_pool *p;
	size_t i, j;

	for (i = 0; i < w->npool; i++) {
		p = &w->pool[i];
		if (p->conf != pool)
			continue;
		for (j = 0; j < pool->nbackend; j++)
			if (p->member[j].number == number)
				return pool->backend[j].name;
	}
	return NULL;
}

static json_t *
name_json(const char *name)
{
	return name != NULL ? ctl_text(name) : json_null();
}

static json_t *
interface_json(const struct event_names *names, uint32_t ifindex)
{
	size_t i;

	for (i = 0; i < names->conf->ninterface; i++)
		if (names->link[i].ifindex == ifindex)
			return ctl_text(names->conf->interface[i].name);
	return json_null();
}

static json_t *
protocol_json(const struct xlb_event *e)
{
	if (!(e->flags & XLB_EVENT_IP))
		return json_null();
	switch (e->proto) {
	case IPPROTO_TCP:
		return json_string("tcp");
	case IPPROTO_UDP:
		return json_string("udp");
	case IPPROTO_ICMP:
		return json_string("icmp");
	case IPPROTO_ICMPV6:
		return json_string("icmpv6");
	default:
		return json_sprintf("%u", e->proto);
	}
}

/* Address and port into `o`. */
static void
end_set(json_t *o, const struct xlb_event *e, const char *name,
    const char *port_name, const __be32 addr[4], unsigned port)
{
	struct addr a;

	memcpy(a.b, addr, sizeof(a.b));
	json_object_set_new(o, name, e->flags & XLB_EVENT_IP ? addr_json(&a) :
	    json_null());
	json_object_set_new(o, port_name, e->proto == IPPROTO_TCP ||
	    e->proto == IPPROTO_UDP ? json_integer((json_int_t)port) :
	    json_null());
}

/* What people look for first. */
static const char *
event_kind(const struct xlb_event *e)
{
	if (e->flags & XLB_EVENT_BEGINS)
		return "new_flow";
	if (e->reason == XLB_REASON_ECHO || e->reason == XLB_REASON_TOO_BIG)
		return "answer";
	switch (reason_kind((enum xlb_reason)e->reason)) {
	case REASON_SENT:
		return "forward";
	case REASON_PASS:
		return "pass";
	default:
		return "drop";
	}
}

json_t *
event_build(const struct xlb_event *e, const struct event_names *names,
    int64_t realtime)
{
	const struct conf_service *s = e->service < XLB_SERVICES ?
	    names->service[e->service] : NULL;
	const char *backend = s != NULL && e->backend != 0 ?
	    event_backend(names, s->pool, e->backend) : NULL;
	uint32_t ports = ntohl(e->ports);
	json_t *o;

	o = json_pack("{s:o, s:s, s:s, s:o, s:o, s:o, s:o, s:I, s:o, s:I}",
	    "time", time_json(realtime + (int64_t)e->at),
	    "event", event_kind(e),
	    "reason", reason_name((enum xlb_reason)e->reason),
	    "service", name_json(s != NULL ? s->name : NULL),
	    "pool", name_json(s != NULL ? s->pool->name : NULL),
	    "backend", name_json(backend), "protocol", protocol_json(e),
	    "length", (json_int_t)e->len,
	    "interface", interface_json(names, e->ifindex),
	    "cpu", (json_int_t)e->cpu);
	assert(o != NULL);
	end_set(o, e, "source", "source_port", e->src, ports >> 16);
	end_set(o, e, "destination", "destination_port", e->dst,
	    ports & 0xffff);
	return o;
}
