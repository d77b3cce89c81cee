/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes the route lines that BIRD includes, and reads them back. */
#include "core/bird_text.h"

#include <stdlib.h>
#include <string.h>

#include "core/arena.h"

#define ROUTE_HEAD "route "

struct item {
	struct prefix prefix;
	const struct announce_row *row;
};

/* What all addresses of one prefix ask for. */
struct route {
	struct prefix prefix;
	struct community *community;	/* sorted, no duplicates */
	size_t ncommunity;
	bool has_med, gshut;
	uint32_t med, prepend;
};

static int
item_cmp(const void *a, const void *b)
{
	const struct item *x = a, *y = b;
	int c = prefix_cmp(&x->prefix, &y->prefix);

	return c != 0 ? c : addr_cmp(&x->row->addr, &y->row->addr);
}

static struct item *
items(const struct announce *an, int family, struct arena *a, size_t *n)
{
	struct item *it = arena_calloc(a, an->n, sizeof(*it));
	size_t i, used = 0;

	for (i = 0; i < an->n; i++) {
		if (addr_family(&an->row[i].addr) != family)
			continue;
		it[used].prefix = announce_prefix(&an->row[i]);
		it[used++].row = &an->row[i];
	}
	if (used > 0)
		qsort(it, used, sizeof(*it), item_cmp);
	*n = used;
	return it;
}

static int
number_cmp(uint32_t a, uint32_t b)
{
	return a < b ? -1 : a > b;
}

/* Standard before large, each by value. */
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
communities_add(struct route *r, const struct community_list *l,
    struct arena *a)
{
	size_t i;

	for (i = 0; i < l->n; i++) {
		*(struct community *)arena_grow(a, &r->community,
		    r->ncommunity, sizeof(l->row[i])) = l->row[i];
		r->ncommunity++;
	}
}

static void
communities_sort(struct route *r)
{
	struct community *c = r->community;
	size_t i, kept = 0;

	if (r->ncommunity > 0)
		qsort(c, r->ncommunity, sizeof(*c), community_cmp);
	for (i = 0; i < r->ncommunity; i++)
		if (kept == 0 || community_cmp(&c[i], &c[kept - 1]) != 0)
			c[kept++] = c[i];
	r->ncommunity = kept;
}

/* False: none of the addresses is wanted. */
static bool
route_merge(const struct item *it, size_t n, const struct conf *c,
    struct arena *a, struct route *r)
{
	const struct conf_address *ca;
	bool wanted = false;
	size_t i;

	memset(r, 0, sizeof(*r));
	r->prefix = it->prefix;
	r->gshut = true;
	communities_add(r, &c->bgp.communities, a);
	for (i = 0; i < n; i++) {
		ca = it[i].row->conf;
		communities_add(r, &ca->communities, a);
		if (ca->has_med && (!r->has_med || ca->med > r->med)) {
			r->has_med = true;
			r->med = ca->med;
		}
		if (ca->prepend > r->prepend)
			r->prepend = ca->prepend;
		if (it[i].row->wanted) {
			wanted = true;
			r->gshut &= it[i].row->gshut;
		}
	}
	communities_sort(r);
	return wanted;
}

static void
community_print(const struct community *c, FILE *out)
{
	if (c->large)
		fprintf(out, " bgp_large_community.add((%u,%u,%u));",
		    c->a, c->b, c->c);
	else
		fprintf(out, " bgp_community.add((%u,%u));", c->a, c->b);
}

static void
route_print(const struct route *r, uint32_t local_as, FILE *out)
{
	static const struct community gshut = { false, 65535, 0, 0 };
	char buf[PREFIX_STR_MAX];
	uint32_t i;
	size_t k;

	fprintf(out, ROUTE_HEAD "%s via \"" BIRD_DEVICE "\"",
	    prefix_print(&r->prefix, buf));
	if (!r->gshut && r->ncommunity == 0 && !r->has_med && r->prepend == 0) {
		fputs(";\n", out);
		return;
	}
	fputs(" {", out);
	if (r->gshut)
		community_print(&gshut, out);
	for (k = 0; k < r->ncommunity; k++)
		community_print(&r->community[k], out);
	if (r->has_med)
		fprintf(out, " xlb_med = %u;", r->med);
	for (i = 0; i < r->prepend; i++)
		fprintf(out, " bgp_path.prepend(%u);", local_as);
	fputs(" };\n", out);
}

int
bird_render(const struct announce *an, const struct conf *c, int family,
    FILE *out)
{
	struct arena *a = arena_new();
	struct item *it;
	struct route r;
	size_t i, j, n;

	it = items(an, family, a, &n);
	fputs("# written by xlbd; any change to this file is lost\n", out);
	for (i = 0; i < n; i = j) {
		for (j = i + 1; j < n &&
		    prefix_cmp(&it[i].prefix, &it[j].prefix) == 0; j++)
			;
		if (route_merge(it + i, j - i, c, a, &r))
			route_print(&r, c->bgp.local_as, out);
	}
	arena_free(a);
	return ferror(out) ? -1 : 0;
}

struct prefix *
bird_include_parse(const char *text, size_t len, struct arena *a, size_t *n)
{
	const char *end = text + len, *line, *eol, *space;
	char buf[PREFIX_STR_MAX];
	struct prefix p, *out = NULL;
	size_t used = 0, head = strlen(ROUTE_HEAD);

	for (line = text; line < end; line = eol + 1) {
		eol = memchr(line, '\n', (size_t)(end - line));
		if (eol == NULL)
			eol = end;
		if ((size_t)(eol - line) <= head ||
		    memcmp(line, ROUTE_HEAD, head) != 0)
			continue;
		line += head;
		space = memchr(line, ' ', (size_t)(eol - line));
		if (space == NULL || (size_t)(space - line) >= sizeof(buf))
			continue;
		memcpy(buf, line, (size_t)(space - line));
		buf[space - line] = '\0';
		if (prefix_parse(buf, &p) < 0)
			continue;
		*(struct prefix *)arena_grow(a, &out, used, sizeof(p)) = p;
		used++;
	}
	*n = prefix_sort(out, used);
	return out;
}
