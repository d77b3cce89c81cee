/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A virtual_server of keepalived to a pool, its check, and services. */
#include "core/keepalived_int.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/conf_schema.h"

#define WEIGHT_MAX 1000		/* ours */
#define KA_WEIGHT_MAX 65535	/* the kernel's */

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

static const struct ka_word real_words[] = {
	{ "alpha", NULL },
	{ "warmup", NULL },
	{ "snmp_name", NULL },
	{ "notify_up", "no scripts are run; follow the journal or xlb status" },
	{ "notify_down", "no scripts are run; follow the journal or xlb status" },
	{ "smtp_alert", "no mail is sent; follow the journal or xlb status" },
	{ "inhibit_on_failure", "what a dead backend had goes to others at "
	    "once; state: drain keeps flows" },
	{ "uthreshold", "connections are not counted before they are spread; "
	    "a backend can ask for fewer by drain_status" },
	{ "lthreshold", "see uthreshold" },
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

static void
method_take(struct ka_job *j, const struct ka_stmt *s, struct ka_server *v)
{
	const struct key *k = schema_find(schema_find(schema_root(),
	    "services")->section, "forward");
	const char *method = ka_first(j, s);

	if (strcmp(method, "DR") == 0) {
		v->forward = FORWARD_L2;
	} else if (strcmp(method, "TUN") == 0) {
		tunnel_take(j, s, v);
	} else if (strcmp(method, "NAT") != 0) {
		ka_fault(j, s, "is none of NAT, DR and TUN");
	} else if (schema_is_later(k, FORWARD_NAT)) {
		ka_note(j, s, "forward: nat is not available in this version; "
		    "ipip instead: backends hold the address on lo, unwrap "
		    "(xlb-decap(8)) and answer directly");
		v->forward = FORWARD_IPIP;
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
		method_take(j, s, v);
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

/* Its address, and its port if that can be another one. */
static void
backend_place(struct ka_job *j, const struct ka_stmt *s,
    const struct ka_server *v, struct conf_backend *b)
{
	uint32_t port;

	if (addr_parse(ka_first(j, s), &b->address) < 0)
		ka_fault(j, s, "is not an address");
	b->name = ka_name(j, &b->address);
	if (s->nword < 3)
		return;
	port = ka_number(j, s, s->word[2], 0, 65535);
	if (v->nport > 0 && port != 0 && port != v->port[0].port &&
	    v->forward != FORWARD_NAT)
		ka_note(j, s, "port %u is of no use: packets arrive as the "
		    "client sent them, at port %u; let the server listen there",
		    port, v->port[0].port);
}

static struct conf_backend *
backend_take(struct ka_job *j, const struct ka_stmt *s,
    const struct ka_server *v, struct ka_timers *t)
{
	struct conf_backend *b = arena_alloc(j->a, sizeof(*b));
	struct ka_server own = *v;
	const struct ka_stmt *k;
	const char *kind;

	backend_place(j, s, v, b);
	b->weight = 1;
	for (k = s->child; k != NULL; k = k->next) {
		kind = k->word[0];
		if (ka_is(k, "weight"))
			b->weight = ka_number(j, k, ka_arg(j, k), 0,
			    KA_WEIGHT_MAX);
		else if (ka_is(k, "virtualhost"))
			t->virtualhost = ka_arg(j, k);
		else if (ka_is(k, "lvs_method") || ka_is(k, "lb_kind"))
			method_take(j, k, &own);
		else if (!ka_timer(j, k, t) && !ka_known(j, k, real_words) &&
		    strstr(kind, "_CHECK") == NULL &&
		    strstr(kind, "_GET") == NULL)
			ka_unknown(j, k);
	}
	if (own.forward != v->forward)
		ka_note(j, s, "no equal: all backends of a service are "
		    "reached in the same way; give it a service of its own");
	return b;
}

/* Equal ones need not be said; what is above our limit is scaled. */
static void
weights_settle(struct ka_job *j, const struct ka_server *v,
    struct conf_pool *p)
{
	uint32_t most = 0, least = UINT32_MAX, w;
	size_t i;

	for (i = 0; i < p->nbackend; i++) {
		w = p->backend[i].weight;
		most = w > most ? w : most;
		least = w > 0 && w < least ? w : least;
	}
	if (most > WEIGHT_MAX && most != least && v->by_weight)
		ka_note(j, v->stmt, "weights up to %u are scaled to %u", most,
		    WEIGHT_MAX);
	for (i = 0; i < p->nbackend; i++) {
		w = p->backend[i].weight;
		if (w == 0)
			continue;
		if (most == least || !v->by_weight)
			w = 100;
		else if (most > WEIGHT_MAX)
			w = w * WEIGHT_MAX / most > 0 ?
			    w * WEIGHT_MAX / most : 1;
		p->backend[i].weight = w;
	}
}

static int
weight_cmp(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return *x < *y ? 1 : *x > *y ? -1 : 0;
}

/* A sum of weights to a number of backends: as few as can reach it. */
static void
quorum_settle(struct ka_job *j, const struct ka_server *v, struct conf_pool *p)
{
	uint32_t *w = arena_calloc(j->a, p->nbackend, sizeof(*w)), n = 0;
	uint64_t sum = 0;
	size_t i;

	for (i = 0; i < p->nbackend; i++)
		w[i] = p->backend[i].weight;
	if (p->nbackend > 0)
		qsort(w, p->nbackend, sizeof(*w), weight_cmp);
	for (i = 0; i < p->nbackend && sum < v->quorum; i++, n++)
		sum += w[i];
	p->min_healthy = n > 1 ? n : 1;
	if (v->quorum > 1 && (p->nbackend == 0 || w[0] != w[p->nbackend - 1]))
		ka_note(j, v->stmt, "quorum %u is a sum of weights, "
		    "min_healthy a number of backends: %u, as few as reach it",
		    v->quorum, p->min_healthy);
}

/* The backends, and the check that most of what they say is about. */
static struct conf_check *
backends_take(struct ka_job *j, const struct ka_server *v,
    struct conf_pool *p)
{
	struct conf_check *check = NULL, *own;
	struct conf_backend *b, *row = NULL;
	struct ka_timers t;
	size_t i, k;

	for (i = 0; i < v->nreal; i++) {
		t = v->timers;
		b = backend_take(j, v->real[i], v, &t);
		for (k = 0; k < p->nbackend; k++)
			if (addr_cmp(&row[k].address, &b->address) == 0)
				break;
		if (k < p->nbackend) {
			ka_note(j, v->real[i], "no equal: a backend is its "
			    "address, once in a pool; left out");
			continue;
		}
		own = ka_check(j, v->real[i], v->nport > 0 ?
		    v->port[0].port : 0, &t);
		if (p->nbackend == 0)
			check = own;
		else if (!ka_check_same(check, own))
			ka_note(j, v->real[i], "no equal: a pool has one "
			    "check, and this one differs from the first "
			    "real_server's; an exec check can tell them apart");
		*(struct conf_backend *)arena_grow(j->a, &row, p->nbackend++,
		    sizeof(*row)) = *b;
	}
	p->backend = row;
	return check;
}

static bool
pool_same(const struct conf_pool *a, const struct conf_pool *b)
{
	size_t i;

	if (a->nbackend != b->nbackend || a->min_healthy != b->min_healthy ||
	    a->check != b->check)
		return false;
	for (i = 0; i < a->nbackend; i++)
		if (addr_cmp(&a->backend[i].address, &b->backend[i].address) !=
		    0 || a->backend[i].weight != b->backend[i].weight)
			return false;
	return true;
}

/* "NAME", or "NAME-2" and so on where that is taken. */
static const char *
name_free(struct ka_job *j, const char *want, struct ka_names *names)
{
	const char *name = want, **row;
	size_t i, k;

	for (k = 2; ; k++) {
		for (i = 0; i < names->n; i++)
			if (strcmp(names->row[i], name) == 0)
				break;
		if (i == names->n)
			break;
		name = arena_printf(j->a, "%.*s-%zu", CONF_NAME_MAX - 8, want,
		    k);
	}
	row = arena_grow(j->a, &names->row, names->n++, sizeof(*row));
	return *row = name;
}

/* The same check for all that ask the same; at a port of its own where the
 * service has none. */
static struct conf_check *
check_settle(struct ka_job *j, const struct ka_server *v, const char *name,
    struct conf_check *c)
{
	struct conf_check **row;
	size_t i;

	if (c == NULL)
		return NULL;
	if (v->port[0].port == 0 && c->port == 0 && c->type != CHECK_EXEC &&
	    c->type != CHECK_ICMP) {
		ka_note(j, v->stmt, "its check has no port to ask; left out: "
		    "give it a port");
		return NULL;
	}
	for (i = 0; i < j->ncheck; i++)
		if (ka_check_same(j->check[i], c))
			return j->check[i];
	c->name = name_free(j, name, &j->checks);
	row = arena_grow(j->a, &j->check, j->ncheck++, sizeof(*row));
	*row = c;
	return c;
}

static struct conf_pool *
pool_take(struct ka_job *j, const struct ka_server *v, const char *name)
{
	struct conf_pool *p = arena_alloc(j->a, sizeof(*p)), **row;
	struct conf_check *check;
	size_t i;

	conf_defaults(schema_find(schema_root(), "pools")->section, j->a, p);
	check = backends_take(j, v, p);
	quorum_settle(j, v, p);
	weights_settle(j, v, p);
	p->check = check_settle(j, v, name, check);
	for (i = 0; i < j->npool; i++)
		if (pool_same(j->pool[i], p))
			return j->pool[i];
	p->name = name_free(j, name, &j->pools);
	row = arena_grow(j->a, &j->pool, j->npool++, sizeof(*row));
	*row = p;
	return p;
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
	s->name = name_free(j, name, &j->services);
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
		method_take(j, &(struct ka_stmt){ .mark = v->stmt->mark,
		    .word = (const char *[]){ "lb_kind", "NAT" }, .nword = 2 },
		    v);
	if (v->proto == 0 || v->nport == 0)
		return;
	name = v->name != NULL ? v->name : ka_name(j, &v->port[0].address);
	pool = pool_take(j, v, name);
	for (i = 0; i < v->nport; i++) {
		for (k = 0; k < i; k++)
			if (v->port[k].port == v->port[i].port)
				break;
		if (k == i)
			service_take(j, v, i, name, pool);
	}
}
