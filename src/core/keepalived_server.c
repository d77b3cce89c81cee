/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A virtual_server of keepalived to services. */
#include "core/keepalived_int.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/conf_schema.h"

static const struct ka_word server_words[] = {
	{ "alpha", NULL },	/* unknown is not up */
	{ "warmup", NULL },	/* probes are spread anyway */
	{ "ip_family", NULL },	/* the address says it */
	{ "snmp_name", NULL },
	{ "flag-1", NULL },	/* said with the scheduler */
	{ "flag-2", NULL },
	{ "flag-3", NULL },
	{ "sh-port", NULL },
	{ "sh-fallback", NULL },	/* a dead backend's flows go on anyway */
	{ "mh-port", NULL },
	{ "mh-fallback", NULL },
	{ "omega", "no scripts are run" },
	{ "ha_suspend", "every node probes, and announces by itself" },
	{ "hysteresis", "rise, fall and bgp.hold damp" },
	{ "quorum_up", "no scripts are run; follow the journal or xlb status" },
	{ "quorum_down", "no scripts are run; follow the journal or xlb status" },
	{ "smtp_alert", "no mail is sent; follow the journal or xlb status" },
	{ "inhibit_on_failure", "what a dead backend had goes to others at "
	    "once; state: drain keeps flows" },
	{ "persistence_engine", "packets are not looked into" },
	{ "sorry_server", "without enough backends the address is withdrawn; "
	    "let another place announce it with a larger med, or set "
	    "fail_open" },
	{ "sorry_server_inhibit", NULL },
	{ "sorry_server_lvs_method", NULL },
	{ NULL, NULL }
};

static bool
has_word(const struct ka_stmt *parent, const char *a, const char *b)
{
	const struct ka_stmt *s;

	for (s = parent->child; s != NULL; s = s->next)
		if (ka_is(s, a) || ka_is(s, b))
			return true;
	return false;
}

static void
scheduler_take(struct ka_job *j, const struct ka_stmt *s, struct ka_server *v)
{
	const char *name = ka_arg(j, s);

	v->by_weight = strcmp(name, "rr") != 0 && strcmp(name, "lc") != 0;
	if (strcmp(name, "sh") == 0 || strcmp(name, "mh") == 0) {
		/* flag-2: the old name of both */
		if (!has_word(v->stmt, *name == 's' ? "sh-port" : "mh-port",
		    "flag-2"))
			v->hash = HASH_SOURCE;
	} else if (strcmp(name, "dh") == 0) {
		ka_note(j, s, "no equal: the destination is always the same "
		    "here; by flow instead");
	} else if (strcmp(name, "fo") == 0 || strcmp(name, "ovf") == 0) {
		ka_note(j, s, "no equal: all backends serve, by weight; give "
		    "the spare ones state: down, or a pool of their own");
	} else if (strcmp(name, "rr") != 0 && strcmp(name, "wrr") != 0) {
		ka_note(j, s, "no equal: connections are not counted; flows "
		    "are spread by weight, the same on every node");
	}
}

/* "TUN type gue port 6080" */
static void
tunnel_take(struct ka_job *j, const struct ka_stmt *s, struct ka_server *v)
{
	const char *type = "ipip";
	uint32_t port = 0;
	size_t i;

	for (i = 2; i < s->nword; i++) {
		if (strcmp(s->word[i], "type") == 0 && i + 1 < s->nword)
			type = s->word[++i];
		else if (strcmp(s->word[i], "port") == 0 && i + 1 < s->nword)
			port = ka_number(j, s, s->word[++i], 1, 65535);
		else if (strcmp(s->word[i], "nocsum") != 0)
			ka_note(j, s, "%s has no equal: outer UDP checksums "
			    "are not sent", s->word[i]);
	}
	v->forward = strcmp(type, "gue") == 0 ? FORWARD_GUE : FORWARD_IPIP;
	if (strcmp(type, "gre") == 0)
		ka_note(j, s, "no equal: GRE is not sent; ipip instead");
	if (port == 0)
		return;
	if (j->has_gue_port && j->c->gue_port != port)
		ka_note(j, s, "no equal: tunnel.gue_port is the same for all, "
		    "%u here", j->c->gue_port);
	else
		j->c->gue_port = (uint16_t)port;
	j->has_gue_port = true;
}

void
ka_method_take(struct ka_job *j, const struct ka_stmt *s, struct ka_server *v)
{
	const char *method = ka_first(j, s);

	if (strcmp(method, "DR") == 0) {
		v->forward = FORWARD_L2;
	} else if (strcmp(method, "TUN") == 0) {
		tunnel_take(j, s, v);
	} else if (strcmp(method, "NAT") != 0) {
		ka_fault(j, s, "is none of NAT, DR and TUN");
	} else {
		v->forward = FORWARD_NAT;
	}
}

static void
persistence_take(struct ka_job *j, const struct ka_stmt *s,
    struct ka_server *v)
{
	v->hash = HASH_SOURCE;
	ka_note(j, s, "no equal: hash: source instead; a client stays on its "
	    "backend as long as that is eligible, not for a time");
}

static void
protocol_take(struct ka_job *j, const struct ka_stmt *s, struct ka_server *v)
{
	const char *name = ka_arg(j, s);

	if (strcasecmp(name, "TCP") == 0) {
		v->proto = IPPROTO_TCP;
	} else if (strcasecmp(name, "UDP") == 0) {
		v->proto = IPPROTO_UDP;
	} else if (strcasecmp(name, "SCTP") == 0) {
		ka_note(j, s, "no equal: TCP and UDP alone; this "
		    "virtual_server is left out");
		v->proto = 0;
	} else {
		ka_fault(j, s, "is none of TCP, UDP and SCTP");
	}
}

static void
setting_take(struct ka_job *j, const struct ka_stmt *s, struct ka_server *v)
{
	const struct ka_stmt **row;

	if (ka_is(s, "real_server")) {
		row = arena_grow(j->a, &v->real, v->nreal++, sizeof(*row));
		*row = s;
	} else if (ka_is(s, "lvs_sched") || ka_is(s, "lb_algo")) {
		scheduler_take(j, s, v);
	} else if (ka_is(s, "lvs_method") || ka_is(s, "lb_kind")) {
		ka_method_take(j, s, v);
	} else if (ka_is(s, "persistence_timeout")) {
		persistence_take(j, s, v);
	} else if (ka_is(s, "persistence_granularity")) {
		ka_note(j, s, "no equal: hash: source takes the whole address");
	} else if (ka_is(s, "protocol")) {
		protocol_take(j, s, v);
	} else if (ka_is(s, "ops")) {
		v->one_packet = true;
	} else if (ka_is(s, "quorum")) {
		v->quorum = ka_number(j, s, ka_arg(j, s), 1, 1 << 30);
	} else if (ka_is(s, "virtualhost")) {
		v->timers.virtualhost = ka_arg(j, s);
	} else if (!ka_timer(j, s, &v->timers) &&
	    !ka_known(j, s, server_words)) {
		ka_unknown(j, s);
	}
}

static bool
addresses_same(const struct conf_service *a, const struct conf_service *b)
{
	size_t i;

	if (a->naddress != b->naddress)
		return false;
	for (i = 0; i < a->naddress; i++)
		if (addr_cmp(&a->address[i].address, &b->address[i].address) !=
		    0)
			return false;
	return true;
}

static bool
is_listening(const struct conf_service *s, const struct conf_listen *l)
{
	size_t i;

	for (i = 0; i < s->nlisten; i++)
		if (s->listen[i].proto == l->proto &&
		    s->listen[i].port == l->port)
			return true;
	return false;
}

/* The service, or one more listener of one that differs in nothing else. */
static void
service_add(struct ka_job *j, const struct ka_server *v, const char *name,
    struct conf_service *s)
{
	struct conf_service **row, *old;
	size_t i;

	for (i = 0; i < j->nservice; i++) {
		old = j->service[i];
		if (old->pool != s->pool || old->forward != s->forward ||
		    old->hash != s->hash || old->udp != s->udp ||
		    old->backend_port != s->backend_port ||
		    !addresses_same(old, s))
			continue;
		if (is_listening(old, s->listen))
			ka_fault(j, v->stmt, "the same as line %u",
			    old->mark.line);
		else
			*(struct conf_listen *)arena_grow(j->a, &old->listen,
			    old->nlisten++, sizeof(*old->listen)) = *s->listen;
		return;
	}
	s->name = ka_name_free(j, name, &j->services);
	row = arena_grow(j->a, &j->service, j->nservice++, sizeof(*row));
	*row = s;
}

/* All addresses of the server that have the port of its row `first`. */
static void
service_take(struct ka_job *j, const struct ka_server *v, size_t first,
    const char *name, struct conf_pool *pool)
{
	struct conf_service *s = arena_alloc(j->a, sizeof(*s));
	struct conf_address *at;
	const char *real = v->nreal > 0 && v->real[0]->nword > 2 ?
	    v->real[0]->word[2] : "0";
	uint16_t port = v->port[first].port, to;
	size_t i;

	conf_defaults(schema_find(schema_root(), "services")->section, j->a, s);
	s->mark = v->stmt->mark;
	s->pool = pool;
	s->forward = v->forward;
	s->hash = v->hash;
	to = (uint16_t)strtoul(real, NULL, 10);
	if (v->forward == FORWARD_NAT && to != port)
		s->backend_port = to;
	if (v->proto == IPPROTO_UDP && v->one_packet && port != 53)
		s->udp = UDP_DATAGRAM;
	arena_grow(j->a, &s->listen, s->nlisten++, sizeof(*s->listen));
	s->listen->proto = v->proto;
	s->listen->port = port;
	for (i = first; i < v->nport; i++) {
		if (v->port[i].port != port)
			continue;
		at = arena_grow(j->a, &s->address, s->naddress++, sizeof(*at));
		at->address = v->port[i].address;
	}
	service_add(j, v, name, s);
}

void
ka_server_build(struct ka_job *j, struct ka_server *v)
{
	const struct ka_stmt *s;
	struct conf_pool *pool;
	const char *name;
	size_t i, k;

	for (s = v->stmt->child; s != NULL; s = s->next)
		setting_take(j, s, v);
	if (!has_word(v->stmt, "lvs_method", "lb_kind"))
		ka_method_take(j, &(struct ka_stmt){ .mark = v->stmt->mark,
		    .word = (const char *[]){ "lb_kind", "NAT" }, .nword = 2 },
		    v);
	if (v->proto == 0 || v->nport == 0)
		return;
	name = v->name != NULL ? v->name : ka_name(j, &v->port[0].address);
	pool = ka_pool_take(j, v, name);
	for (i = 0; i < v->nport; i++) {
		for (k = 0; k < i; k++)
			if (v->port[k].port == v->port[i].port)
				break;
		if (k == i)
			service_take(j, v, i, name, pool);
	}
}
