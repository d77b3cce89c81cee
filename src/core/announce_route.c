/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Gathers the addresses behind each prefix, and what they ask for. */
#include "core/announce_route.h"

#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/conf_value.h"

/* An address and where it is announced. */
struct item {
	struct prefix prefix;
	const struct announce_row *row;
};

static int
item_cmp(const void *a, const void *b)
{
	const struct item *x = a, *y = b;
	int c = prefix_cmp(&x->prefix, &y->prefix);

	return c != 0 ? c : addr_cmp(&x->row->addr, &y->row->addr);
}

static struct item *
items(const struct announce *an, struct arena *a)
{
	struct item *it = arena_calloc(a, an->n, sizeof(*it));
	size_t i;

	for (i = 0; i < an->n; i++) {
		it[i].prefix = announce_prefix(&an->row[i]);
		it[i].row = &an->row[i];
	}
	if (an->n > 0)
		qsort(it, an->n, sizeof(*it), item_cmp);
	return it;
}

static int
number_cmp(uint32_t a, uint32_t b)
{
	return a < b ? -1 : a > b;
}

static int
community_cmp(const void *a, const void *b)
{
	const struct community *x = a, *y = b;
	int c;

	if (x->large != y->large)
		return x->large ? 1 : -1;
	c = number_cmp(x->a, y->a);
	if (c == 0)
		c = number_cmp(x->b, y->b);
	if (c == 0 && x->large)
		c = number_cmp(x->c, y->c);
	return c;
}

static void
communities_add(struct community_list *to, const struct community *row,
    size_t n, struct arena *a)
{
	size_t i;

	for (i = 0; i < n; i++)
		*(struct community *)arena_grow(a, &to->row, to->n++,
		    sizeof(row[i])) = row[i];
}

static void
communities_sort(struct community_list *l)
{
	struct community *c = l->row;
	size_t i, kept = 0;

	if (l->n > 0)
		qsort(c, l->n, sizeof(*c), community_cmp);
	for (i = 0; i < l->n; i++)
		if (kept == 0 || community_cmp(&c[i], &c[kept - 1]) != 0)
			c[kept++] = c[i];
	l->n = kept;
}

static void
fingerprints_add(struct announce_route *r, const struct announce_row *row,
    uint32_t local_as, struct arena *a)
{
	struct community c = { .large = true, .a = local_as };
	size_t i;

	for (i = 0; i < row->nfingerprint; i++) {
		c.b = (uint32_t)(row->fingerprint[i] >> 32);
		c.c = (uint32_t)row->fingerprint[i];
		communities_add(&r->communities, &c, 1, a);
	}
}

static void
route_merge(const struct item *it, size_t n, const struct conf *c,
    struct arena *a, struct announce_route *r)
{
	const struct conf_address *ca;
	const struct announce_row *row;
	size_t i;

	memset(r, 0, sizeof(*r));
	r->prefix = it->prefix;
	communities_add(&r->communities, c->bgp.communities.row,
	    c->bgp.communities.n, a);
	for (i = 0; i < n; i++) {
		row = it[i].row;
		ca = row->conf;
		communities_add(&r->communities, ca->communities.row,
		    ca->communities.n, a);
		if (c->bgp.fingerprint)
			fingerprints_add(r, row, c->bgp.local_as, a);
		if (ca->has_med && (!r->has_med || ca->med > r->med)) {
			r->has_med = true;
			r->med = ca->med;
		}
		if (ca->prepend > r->prepend)
			r->prepend = ca->prepend;
		if (!row->wanted)
			continue;
		r->gshut = row->gshut && (!r->wanted || r->gshut);
		r->wanted = true;
	}
	communities_sort(&r->communities);
}

struct announce_route *
announce_routes(const struct announce *an, const struct conf *c,
    struct arena *a, size_t *n)
{
	struct announce_route *r = arena_calloc(a, an->n, sizeof(*r));
	struct item *it = items(an, a);
	size_t i, j;

	*n = 0;
	for (i = 0; i < an->n; i = j) {
		for (j = i + 1; j < an->n &&
		    prefix_cmp(&it[i].prefix, &it[j].prefix) == 0; j++)
			;
		route_merge(it + i, j - i, c, a, &r[(*n)++]);
	}
	return r;
}

static int
route_cmp(const void *prefix, const void *route)
{
	return prefix_cmp(prefix,
	    &((const struct announce_route *)route)->prefix);
}

const struct announce_route *
announce_route_find(const struct announce_route *r, size_t n,
    const struct prefix *p)
{
	return n == 0 ? NULL : bsearch(p, r, n, sizeof(*r), route_cmp);
}

struct announce_route *
announce_routes_asked(const struct conf *c, struct arena *a, size_t *n)
{
	struct announce an = { 0 };
	struct announce_row *row;
	size_t i, j;

	for (i = 0; c->bgp.present && i < c->nservice; i++)
		for (j = 0; j < c->service[i].naddress; j++) {
			row = arena_grow(a, &an.row, an.n++, sizeof(*row));
			memset(row, 0, sizeof(*row));
			row->conf = &c->service[i].address[j];
			row->addr = row->conf->address;
			row->wanted = true;
		}
	return announce_routes(&an, c, a, n);
}

bool
announce_route_same(const struct announce_route *x,
    const struct announce_route *y)
{
	size_t i;

	if (prefix_cmp(&x->prefix, &y->prefix) != 0 ||
	    x->communities.n != y->communities.n || x->gshut != y->gshut ||
	    x->has_med != y->has_med || x->med != y->med ||
	    x->prepend != y->prepend)
		return false;
	for (i = 0; i < x->communities.n; i++)
		if (community_cmp(&x->communities.row[i],
		    &y->communities.row[i]) != 0)
			return false;
	return true;
}

void
announce_route_print(const struct announce_route *r, FILE *out)
{
	char buf[PREFIX_STR_MAX], community[COMMUNITY_STR_MAX];
	size_t i;

	fputs(prefix_print(&r->prefix, buf), out);
	if (r->has_med)
		fprintf(out, " med %u", r->med);
	if (r->prepend > 0)
		fprintf(out, " prepend %u", r->prepend);
	if (r->gshut)
		fputs(" 65535:0", out);
	for (i = 0; i < r->communities.n; i++)
		fprintf(out, " %s",
		    community_print(&r->communities.row[i], community));
}
