/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Real servers of a virtual_server of keepalived to a pool and its check. */
#include "core/keepalived_int.h"

#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/conf_schema.h"

#define WEIGHT_MAX 1000		/* ours */
#define KA_WEIGHT_MAX 65535	/* the kernel's */

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
			ka_method_take(j, k, &own);
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

const char *
ka_name_free(struct ka_job *j, const char *want, struct ka_names *names)
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
	c->name = ka_name_free(j, name, &j->checks);
	row = arena_grow(j->a, &j->check, j->ncheck++, sizeof(*row));
	*row = c;
	return c;
}

struct conf_pool *
ka_pool_take(struct ka_job *j, const struct ka_server *v, const char *name)
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
	p->name = ka_name_free(j, name, &j->pools);
	row = arena_grow(j->a, &j->pool, j->npool++, sizeof(*row));
	*row = p;
	return p;
}
