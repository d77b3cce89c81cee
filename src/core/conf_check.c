/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Rules across a configuration: limits, duplicates, what has to fit. */
#include "core/conf_bind.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/conf_schema.h"

static void
limit_fault(struct bind *b, const struct node *n, enum conf_limit_kind kind)
{
	const struct conf_limit *l = conf_limit_get(kind);

	bind_key_fault(b, n, "more than %" PRIu64 " %s (%s)", l->max, l->what,
	    l->why);
}

/* Points at the first object too many, in the order of the files. */
static int
objects_limit(struct bind *b, const struct objects *all,
    enum conf_limit_kind kind)
{
	const struct node *last = NULL;
	uint64_t max = conf_limit_get(kind)->max;
	size_t i;

	if (all->n <= max)
		return 0;
	for (i = 0; i < all->n; i++)
		if (all->row[i].seq == max)
			last = all->row[i].node;
	limit_fault(b, last, kind);
	return -1;
}

int
conf_check_limits(struct bind *b)
{
	int rc = 0;

	if (objects_limit(b, &b->service, LIMIT_SERVICES) < 0)
		rc = -1;
	if (objects_limit(b, &b->pool, LIMIT_POOLS) < 0)
		rc = -1;
	if (objects_limit(b, &b->check, LIMIT_CHECKS) < 0)
		rc = -1;
	return rc;
}

/* Adds up in the order of names; points at the object that goes over. */
static bool
sums_limit(struct bind *b)
{
	const struct conf *c = b->c;
	const struct node *backends = NULL, *listeners = NULL;
	size_t i, n;

	for (i = n = 0; i < c->npool && backends == NULL; i++) {
		n += c->pool[i].nbackend;
		if (n > CONF_BACKENDS_MAX)
			backends = node_get(b->pool.row[i].node, "backends");
	}
	for (i = n = 0; i < c->nservice && listeners == NULL; i++) {
		n += c->service[i].naddress * c->service[i].nlisten;
		if (n > CONF_LISTENERS_MAX)
			listeners = node_get(b->service.row[i].node,
			    "listen");
	}
	if (backends != NULL)
		limit_fault(b, backends, LIMIT_BACKENDS);
	if (listeners != NULL)
		limit_fault(b, listeners, LIMIT_LISTENERS);
	return backends == NULL && listeners == NULL;
}

/* `again` and `first` have the same value of `key`. */
static void
same_report(struct bind *b, const struct node *again,
    const struct node *first, const char *key)
{
	const struct node *n = node_get(again, key);

	bind_fault(b, DIAG_ERROR, n, "%s is already at %s", n->text,
	    bind_place(b, node_get(first, key)->mark));
}

static void
interfaces_check(struct bind *b)
{
	const struct node *list = node_get(b->root[0], "interfaces");
	const struct conf *c = b->c;
	const struct conf_interface *row = c->interface;
	size_t i, j;

	if (c->nservice > 0 && c->ninterface == 0)
		bind_member_fault(b, DIAG_ERROR, b->root[0], "interfaces",
		    "required where there are services");
	if (c->ninterface > CONF_INTERFACES_MAX) {
		limit_fault(b, list->child[CONF_INTERFACES_MAX],
		    LIMIT_INTERFACES);
		return;
	}
	for (i = 0; i < c->ninterface; i++)
		for (j = 0; j < i; j++) {
			if (row[i].name == NULL || row[j].name == NULL ||
			    strcmp(row[i].name, row[j].name) != 0)
				continue;
			same_report(b, list->child[i], list->child[j],
			    "name");
			break;
		}
}

static bool
is_multicast(const struct addr *a)
{
	return addr_is4(a) ? (a->b[12] & 0xf0) == 0xe0 : a->b[0] == 0xff;
}

static bool
is_loopback(const struct addr *a)
{
	static const struct addr one = { { [15] = 1 } };

	return addr_is4(a) ? a->b[12] == 127 : addr_cmp(a, &one) == 0;
}

const char *
addr_fault(const struct addr *a)
{
	static const uint8_t ones[4] = { 0xff, 0xff, 0xff, 0xff };

	if (is_multicast(a))
		return "is a multicast address";
	if (is_loopback(a))
		return "is a loopback address";
	if (addr_is4(a) && memcmp(a->b + 12, ones, sizeof(ones)) == 0)
		return "is the broadcast address";
	if (addr_is4(a) ? a->b[12] == 0 : addr_is_zero(a))
		return "is no host's address";
	if (!addr_is4(a) && a->b[0] == 0xfe && (a->b[1] & 0xc0) == 0x80)
		return "is link-local";
	return NULL;
}

const char *
bind_addr_fault(struct bind *b, const struct addr *a)
{
	const struct conf *c = b->c;
	const struct prefix *source = addr_is4(a) ? &c->source4 : &c->source6;
	bool has = addr_is4(a) ? c->has_source4 : c->has_source6;
	char buf[PREFIX_STR_MAX];

	if (addr_fault(a) != NULL || !has || !prefix_has(source, a))
		return addr_fault(a);
	return arena_printf(b->a, "is in the tunnel's source prefix %s",
	    prefix_print(source, buf));
}

/* A zero field is one that is not there or that was refused. */
static bool
is_given(const struct node *map, const char *key)
{
	const struct node *n = node_get(map, key);
	struct addr a;

	return n != NULL && n->kind == NODE_TEXT &&
	    addr_parse(n->text, &a) == 0;
}

static void
neighbors_check(struct bind *b)
{
	const struct conf_neighbor *row = b->c->bgp.neighbor;
	const struct node *bgp = node_get(b->root[0], "bgp"), *n;
	char buf[ADDR_STR_MAX];
	size_t i, j;

	if (b->c->bgp.nneighbor > CONF_NEIGHBORS_MAX) {
		limit_fault(b, bind_element(bgp, "neighbors",
		    CONF_NEIGHBORS_MAX), LIMIT_NEIGHBORS);
		return;
	}
	for (i = 0; i < b->c->bgp.nneighbor; i++) {
		n = bind_element(bgp, "neighbors", i);
		if (!is_given(n, "address"))
			continue;
		if (addr_fault(&row[i].address) != NULL)
			bind_member_fault(b, DIAG_ERROR, n, "address",
			    "%s %s", addr_print(&row[i].address, buf),
			    addr_fault(&row[i].address));
		for (j = 0; j < i; j++)
			if (addr_cmp(&row[i].address, &row[j].address) == 0)
				break;
		if (j < i && is_given(bind_element(bgp, "neighbors", j),
		    "address"))
			same_report(b, n, bind_element(bgp, "neighbors", j),
			    "address");
	}
}

static void
tunnel_check(struct bind *b)
{
	const struct node *n = node_get(b->root[0], "tunnel");
	const struct conf *c = b->c;
	char buf[PREFIX_STR_MAX];

	if (c->has_source4 && addr_fault(&c->source4.addr) != NULL)
		bind_member_fault(b, DIAG_ERROR, n, "source_ipv4", "%s %s",
		    prefix_print(&c->source4, buf),
		    addr_fault(&c->source4.addr));
	if (c->has_source6 && addr_fault(&c->source6.addr) != NULL)
		bind_member_fault(b, DIAG_ERROR, n, "source_ipv6", "%s %s",
		    prefix_print(&c->source6, buf),
		    addr_fault(&c->source6.addr));
}

struct backend_ref {
	const struct conf_backend *row;
	const struct node *node;
};

static int
ref_cmp_address(const void *a, const void *b)
{
	const struct backend_ref *ra = a, *rb = b;
	int c = addr_cmp(&ra->row->address, &rb->row->address);

	return c != 0 ? c : ra->row < rb->row ? -1 : ra->row > rb->row;
}

static int
ref_cmp_name(const void *a, const void *b)
{
	const struct backend_ref *ra = a, *rb = b;
	int c = strcmp(ra->row->name, rb->row->name);

	return c != 0 ? c : ra->row < rb->row ? -1 : ra->row > rb->row;
}

/* A backend is its address, once per pool; its name is a label. */
static void
backends_unique(struct bind *b, const struct conf_pool *p,
    const struct node *pool)
{
	struct backend_ref *ref = arena_calloc(b->a, p->nbackend, sizeof(*ref));
	size_t i, n, first;

	for (i = n = 0; i < p->nbackend; i++) {
		ref[n].row = &p->backend[i];
		ref[n].node = bind_element(pool, "backends", i);
		n += is_given(ref[n].node, "address");
	}
	if (n > 0)
		qsort(ref, n, sizeof(*ref), ref_cmp_address);
	for (i = 1, first = 0; i < n; i++)
		if (addr_cmp(&ref[i].row->address,
		    &ref[first].row->address) == 0)
			same_report(b, ref[i].node, ref[first].node, "address");
		else
			first = i;
	for (i = n = 0; i < p->nbackend; i++) {
		ref[n].row = &p->backend[i];
		ref[n].node = bind_element(pool, "backends", i);
		n += ref[n].row->name != NULL;
	}
	if (n > 0)
		qsort(ref, n, sizeof(*ref), ref_cmp_name);
	for (i = 1, first = 0; i < n; i++)
		if (strcmp(ref[i].row->name, ref[first].row->name) == 0)
			same_report(b, ref[i].node, ref[first].node, "name");
		else
			first = i;
}

/* Every member owns a slot: shares are weight / sum of weights, and the sum is
 * at most members * heaviest. */
static void
weights_check(struct bind *b, const struct conf_pool *p,
    const struct node *pool)
{
	uint64_t n = 0, low = UINT64_MAX, high = 0, w;
	size_t i;

	for (i = 0; i < p->nbackend; i++) {
		w = p->backend[i].weight;
		if (w == 0)
			continue;
		n++;
		low = w < low ? w : low;
		high = w > high ? w : high;
	}
	if (n > 0 && n * high > b->c->table_size * low)
		bind_member_fault(b, DIAG_ERROR, pool, "backends", "%" PRIu64
		    " backends of weight %" PRIu64 "..%" PRIu64 " need %"
		    PRIu64 " slots, maglev.table_size is %" PRIu32, n, low,
		    high, (n * high + low - 1) / low, b->c->table_size);
}

static void
backend_check(struct bind *b, const struct conf_backend *be,
    const struct node *n)
{
	const char *why = bind_addr_fault(b, &be->address);
	char buf[ADDR_STR_MAX];

	if (why != NULL)
		bind_member_fault(b, DIAG_ERROR, n, "address", "%s %s",
		    addr_print(&be->address, buf), why);
}

static void
pools_check(struct bind *b)
{
	const struct conf_pool *p;
	const struct node *pool, *n;
	size_t i, j;

	for (i = 0; i < b->c->npool; i++) {
		p = &b->c->pool[i];
		pool = b->pool.row[i].node;
		for (j = 0; j < p->nbackend; j++) {
			n = bind_element(pool, "backends", j);
			if (is_given(n, "address"))
				backend_check(b, &p->backend[j], n);
		}
		backends_unique(b, p, pool);
		weights_check(b, p, pool);
	}
}

void
conf_check_rules(struct bind *b)
{
	interfaces_check(b);
	tunnel_check(b);
	conf_check_nat(b);
	neighbors_check(b);
	if (!sums_limit(b))
		return;
	pools_check(b);
	conf_check_services(b);
}
