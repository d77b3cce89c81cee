/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Rules across services: who listens where, what is announced and how, and
 * what their checks have to know. Limits hold already. */
#include "core/conf_bind.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/conf_schema.h"
#include "core/conf_value.h"
#include "core/health.h"

/* An address of a service where it stands in the files. */
struct place {
	struct conf_address *address;
	const struct conf_service *service;
	const struct node *node;
	size_t seq;		/* in the order of the files */
};

struct places {
	struct place *row;
	size_t n;
};

/* One (address, protocol, port). */
struct listener {
	const struct place *place;
	const struct conf_listen *listen;
	size_t seq;
};

static int
place_cmp(const void *a, const void *b)
{
	const struct place *pa = a, *pb = b;
	int c = addr_cmp(&pa->address->address, &pb->address->address);

	return c != 0 ? c : pa->seq < pb->seq ? -1 : pa->seq > pb->seq;
}

static struct prefix
prefix_announced(const struct conf_address *a)
{
	if (a->has_announce)
		return a->announce;
	return (struct prefix){ a->address, (uint8_t)addr_bits(&a->address) };
}

static int
place_cmp_announced(const void *a, const void *b)
{
	const struct place *pa = a, *pb = b;
	struct prefix xa = prefix_announced(pa->address);
	struct prefix xb = prefix_announced(pb->address);
	int c = prefix_cmp(&xa, &xb);

	return c != 0 ? c : pa->seq < pb->seq ? -1 : pa->seq > pb->seq;
}

static void
places_collect(struct bind *b, struct places *all)
{
	const struct conf *c = b->c;
	const struct node *n;
	struct place *p;
	struct addr a;
	size_t i, j;

	for (i = 0; i < c->nservice; i++)
		for (j = 0; j < c->service[i].naddress; j++) {
			n = bind_element(b->service.row[i].node, "addresses",
			    j);
			if (n->kind == NODE_MAP)
				n = node_get(n, "address");
			if (n == NULL || n->kind != NODE_TEXT ||
			    addr_parse(n->text, &a) < 0)
				continue;	/* reported */
			p = arena_grow(b->a, &all->row, all->n, sizeof(*p));
			p->address = &c->service[i].address[j];
			p->service = &c->service[i];
			p->node = n;
			p->seq = b->service.row[i].seq << 20 | j;
			all->n++;
		}
	if (all->n > 0)
		qsort(all->row, all->n, sizeof(*all->row), place_cmp);
}

static bool
has_attributes(const struct conf_address *a)
{
	return a->communities.n > 0 || a->has_med || a->prepend > 0 ||
	    a->has_announce;
}

static bool
attributes_equal(const struct conf_address *x, const struct conf_address *y)
{
	const struct community *cx = x->communities.row;
	const struct community *cy = y->communities.row;
	size_t i;

	if (x->communities.n != y->communities.n ||
	    x->has_med != y->has_med || x->med != y->med ||
	    x->prepend != y->prepend)
		return false;
	for (i = 0; i < x->communities.n; i++)
		if (cx[i].large != cy[i].large || cx[i].a != cy[i].a ||
		    cx[i].b != cy[i].b || cx[i].c != cy[i].c)
			return false;
	return true;
}

static bool
announced_equal(const struct conf_address *x, const struct conf_address *y)
{
	struct prefix px = prefix_announced(x), py = prefix_announced(y);

	return prefix_cmp(&px, &py) == 0;
}

/* An address is announced once: services that say nothing take over what one
 * of them says; two that say different things are a mistake. */
static void
group_unify(struct bind *b, struct place *row, size_t n)
{
	const struct place *said = NULL;
	struct conf_address *a;
	size_t i;

	for (i = 0; i < n && said == NULL; i++)
		if (has_attributes(row[i].address))
			said = &row[i];
	for (i = 0; i < n && said != NULL; i++) {
		a = row[i].address;
		if (!has_attributes(a)) {
			a->communities = said->address->communities;
			a->has_med = said->address->has_med;
			a->med = said->address->med;
			a->prepend = said->address->prepend;
			a->has_announce = said->address->has_announce;
			a->announce = said->address->announce;
		} else if (!attributes_equal(a, said->address) ||
		    !announced_equal(a, said->address)) {
			bind_fault(b, DIAG_ERROR, row[i].node,
			    "%s is announced otherwise at %s",
			    row[i].node->text,
			    bind_place(b, said->node->mark));
		}
	}
}

static void
groups_check(struct bind *b, struct places *all)
{
	struct place *row = all->row;
	size_t i, first = 0;

	for (i = 0; i < all->n; i++) {
		if (i > first && addr_cmp(&row[i].address->address,
		    &row[first].address->address) != 0) {
			group_unify(b, row + first, i - first);
			first = i;
		}
		if (i > first && row[i].service == row[i - 1].service)
			bind_fault(b, DIAG_ERROR, row[i].node,
			    "%s is already at %s", row[i].node->text,
			    bind_place(b, row[i - 1].node->mark));
	}
	if (all->n > 0)
		group_unify(b, row + first, all->n - first);
}

/* Two addresses behind one prefix are one route. */
static void
routes_check(struct bind *b, const struct places *all)
{
	struct place *row;
	size_t i, n = 0;

	row = arena_calloc(b->a, all->n, sizeof(*row));
	for (i = 0; i < all->n; i++)
		if (!all->row[i].address->has_announce ||
		    prefix_has(&all->row[i].address->announce,
		    &all->row[i].address->address))
			row[n++] = all->row[i];
	if (n > 0)
		qsort(row, n, sizeof(*row), place_cmp_announced);
	for (i = 1; i < n; i++)
		if (announced_equal(row[i - 1].address, row[i].address) &&
		    addr_cmp(&row[i - 1].address->address,
		    &row[i].address->address) != 0 &&
		    !attributes_equal(row[i - 1].address, row[i].address))
			bind_fault(b, DIAG_ERROR, row[i].node,
			    "its prefix is announced otherwise at %s",
			    bind_place(b, row[i - 1].node->mark));
}

static void
place_check(struct bind *b, const struct place *p)
{
	const struct conf_address *a = p->address;
	const char *why = bind_addr_fault(b, &a->address);
	char buf[PREFIX_STR_MAX];

	if (why != NULL)
		bind_fault(b, DIAG_ERROR, p->node, "%s %s", p->node->text, why);
	if (a->has_announce && !prefix_has(&a->announce, &a->address))
		bind_member_fault(b, DIAG_ERROR, p->node->parent, "announce",
		    "%s does not hold %s", prefix_print(&a->announce, buf),
		    p->node->text);
}

static const struct place *
place_find(const struct places *all, const struct addr *a)
{
	size_t low = 0, high = all->n, mid;

	while (low < high) {
		mid = low + (high - low) / 2;
		if (addr_cmp(&all->row[mid].address->address, a) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low < all->n && addr_cmp(&all->row[low].address->address, a) ==
	    0 ? &all->row[low] : NULL;
}

/* Encapsulated to a service's address it would come back to a balancer. */
static void
backends_check(struct bind *b, const struct places *all)
{
	const struct conf_pool *p;
	const struct place *at;
	const struct node *n;
	size_t i, j;

	for (i = 0; i < b->c->npool; i++)
		for (p = &b->c->pool[i], j = 0; j < p->nbackend; j++) {
			at = place_find(all, &p->backend[j].address);
			if (at == NULL)
				continue;
			n = bind_element(b->pool.row[i].node, "backends", j);
			bind_member_fault(b, DIAG_ERROR, n, "address",
			    "%s is the address of a service, at %s",
			    at->node->text, bind_place(b, at->node->mark));
		}
}

static int
listener_cmp(const void *a, const void *b)
{
	const struct listener *la = a, *lb = b;
	int c = addr_cmp(&la->place->address->address,
	    &lb->place->address->address);

	if (c == 0)
		c = (int)la->listen->proto - (int)lb->listen->proto;
	if (c == 0)
		c = (int)la->listen->port - (int)lb->listen->port;
	return c != 0 ? c : la->seq < lb->seq ? -1 : la->seq > lb->seq;
}

static const struct node *
listener_node(const struct bind *b, const struct listener *l)
{
	const struct conf_service *s = l->place->service;

	return bind_element(b->service.row[s - b->c->service].node, "listen",
	    (size_t)(l->listen - s->listen));
}

static void
listeners_check(struct bind *b, const struct places *all)
{
	struct listener *row = NULL, *l;
	char buf[LISTEN_STR_MAX];
	size_t i, j, n = 0, first = 0;

	for (i = 0; i < all->n; i++)
		for (j = 0; j < all->row[i].service->nlisten; j++) {
			if (all->row[i].service->listen[j].proto == 0)
				continue;	/* reported */
			l = arena_grow(b->a, &row, n, sizeof(*l));
			l->place = &all->row[i];
			l->listen = &all->row[i].service->listen[j];
			l->seq = n++;
		}
	if (n > 0)
		qsort(row, n, sizeof(*row), listener_cmp);
	for (i = 1; i < n; i++) {
		l = &row[first];
		if (addr_cmp(&l->place->address->address,
		    &row[i].place->address->address) != 0 ||
		    l->listen->proto != row[i].listen->proto ||
		    l->listen->port != row[i].listen->port) {
			first = i;
			continue;
		}
		/* the same address twice in a service is reported as that */
		if (l->place->service == row[i].place->service &&
		    l->place != row[i].place)
			continue;
		bind_fault(b, DIAG_ERROR, listener_node(b, &row[i]),
		    "%s on %s is already at %s",
		    listen_print(row[i].listen, buf), l->place->node->text,
		    bind_place(b, l->listen->mark));
	}
}

/* A list that has to have something in it. */
static void
list_check(struct bind *b, const struct node *service, const char *key)
{
	const struct node *n = node_get(service, key);

	if (n != NULL && ((n->kind == NODE_LIST && n->n == 0) ||
	    node_is_empty(n)))
		bind_key_fault(b, n, "needs at least one entry");
}

/* Without a port of its own a check asks the service's, which `*` is not. */
static void
ports_check(struct bind *b, const struct conf_service *s, bool *told)
{
	const struct conf_check *check = s->pool == NULL ? NULL :
	    s->pool->check;
	const struct node *n;
	char buf[LISTEN_STR_MAX];
	size_t i, at;

	if (check == NULL || check->port != 0 || check->type == CHECK_ICMP)
		return;
	at = (size_t)(check - b->c->check);
	n = b->check.row[at].node;
	for (i = 0; i < s->nlisten; i++) {
		if (s->listen[i].proto == 0 || s->listen[i].port != 0 ||
		    told[at] || node_get(n, "port") != NULL)
			continue;
		bind_member_fault(b, DIAG_ERROR, n, "port",
		    "required by %s at %s", listen_print(&s->listen[i], buf),
		    bind_place(b, s->listen[i].mark));
		told[at] = true;
	}
}

/* Each verdict has a row in a map. */
static void
targets_limit(struct bind *b)
{
	const struct conf *c = b->c;
	struct health_paths paths;
	size_t i, total = 0;

	for (i = 0; i < c->npool; i++) {
		health_paths(c, &c->pool[i], NULL, b->a, &paths);
		total += paths.n * c->pool[i].nbackend;
	}
	if (total > CONF_TARGETS_MAX)
		bind_member_fault(b, DIAG_ERROR, b->root[0], "checks",
		    "%zu backends, addresses and ports to probe, more than "
		    "%d: a check with via: direct asks no address", total,
		    CONF_TARGETS_MAX);
}

void
conf_check_services(struct bind *b)
{
	const struct conf *c = b->c;
	struct places all = { NULL, 0 };
	bool *told = arena_calloc(b->a, c->ncheck, sizeof(*told));
	size_t i;

	for (i = 0; i < c->nservice; i++) {
		list_check(b, b->service.row[i].node, "addresses");
		list_check(b, b->service.row[i].node, "listen");
		ports_check(b, &c->service[i], told);
	}
	places_collect(b, &all);
	for (i = 0; i < all.n; i++)
		place_check(b, &all.row[i]);
	groups_check(b, &all);
	routes_check(b, &all);
	listeners_check(b, &all);
	backends_check(b, &all);
	targets_limit(b);
}
