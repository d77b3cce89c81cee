/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes the route lines that BIRD includes, and reads them back. */
#include "core/bird_text.h"

#include <string.h>

#include "core/announce_route.h"
#include "core/arena.h"

#define ROUTE_HEAD "route "

static void
community_add_print(const struct community *c, FILE *out)
{
	if (c->large)
		fprintf(out, " bgp_large_community.add((%u,%u,%u));",
		    c->a, c->b, c->c);
	else
		fprintf(out, " bgp_community.add((%u,%u));", c->a, c->b);
}

static void
route_print(const struct announce_route *r, uint32_t local_as, FILE *out)
{
	static const struct community gshut = { false, 65535, 0, 0 };
	char buf[PREFIX_STR_MAX];
	uint32_t i;
	size_t k;

	fprintf(out, ROUTE_HEAD "%s via \"" BIRD_DEVICE "\"",
	    prefix_print(&r->prefix, buf));
	if (!r->gshut && r->communities.n == 0 && !r->has_med && r->prepend == 0) {
		fputs(";\n", out);
		return;
	}
	fputs(" {", out);
	if (r->gshut)
		community_add_print(&gshut, out);
	for (k = 0; k < r->communities.n; k++)
		community_add_print(&r->communities.row[k], out);
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
	struct announce_route *r;
	size_t i, n;

	r = announce_routes(an, c, a, &n);
	fputs("# written by xlbd; any change to this file is lost\n", out);
	for (i = 0; i < n; i++)
		if (r[i].wanted && addr_family(&r[i].prefix.addr) == family)
			route_print(&r[i], c->bgp.local_as, out);
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
