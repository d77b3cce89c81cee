/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a reload would do, as JSON: objects of the maps, routes, addresses that stay
 * and are announced no more, or again, and the values that differ. */
#include "daemon/diff.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/announce_route.h"
#include "core/arena.h"
#include "core/conf_diff.h"
#include "io/ctl.h"
#include "io/log.h"

/* `moved` of the plan's last operation on that ring: it counts all. */
static uint32_t
ring_moved(const struct plan *p, uint32_t number)
{
	const struct op_ring *r;
	uint32_t moved = 0;
	size_t i;

	for (i = 0; i < p->n; i++)
		if (p->op[i].kind == OP_RING_SLOTS ||
		    p->op[i].kind == OP_RING_NEW) {
			r = p->op[i].row;
			if (r->number == number)
				moved = r->moved;
		}
	return moved;
}

/* A ring that is changed in two steps is one object. */
static bool
listed(const json_t *list, const char *object)
{
	const char *last = json_string_value(json_array_get(list,
	    json_array_size(list) - 1));
	size_t i;

	if (last == NULL || strncmp(object, "ring ", 5) != 0)
		return false;
	for (i = 0; i < json_array_size(list); i++)
		if (strcmp(json_string_value(json_array_get(list, i)),
		    object) == 0)
			return true;
	return false;
}

json_t *
diff_build(const struct plan *p, const struct state *wanted,
    const uint64_t *flows)
{
	json_t *added = json_array(), *changed = json_array();
	json_t *removed = json_array(), *pools = json_array(), *list;
	const char *verb;
	char buf[256];
	size_t i;

	for (i = 0; i < p->n; i++) {
		if (p->op[i].kind == OP_GRACE)
			continue;
		verb = op_verb(&p->op[i]);
		list = strcmp(verb, "add") == 0 ? added :
		    strcmp(verb, "remove") == 0 ? removed : changed;
		op_print(&p->op[i], buf, sizeof(buf));
		if (!listed(list, buf))
			json_array_append_new(list, ctl_text(buf));
	}
	for (i = 0; i < wanted->nring; i++)
		json_array_append_new(pools, json_pack("{s:s, s:I, s:I, s:o}",
		    "name", wanted->ring[i].pool,
		    "slots", (json_int_t)wanted->ring_size, "slots_moved",
		    (json_int_t)ring_moved(p, wanted->ring[i].number),
		    "flows_moved", flows == NULL ? json_null() :
		    json_integer((json_int_t)flows[i])));
	return json_pack("{s:o, s:o, s:o, s:o}", "added", added,
	    "changed", changed, "removed", removed, "pools", pools);
}

static void
route_append(json_t *list, const struct announce_route *r,
    const struct conf *c)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (f == NULL)
		fatal("diff");
	fputs("route ", f);
	announce_route_print(r, f);
	if (c->bgp.fingerprint)
		fputs(" fingerprint", f);
	if (fclose(f) != 0)
		fatal("diff");
	json_array_append_new(list, ctl_text(text));
	free(text);
}

void
diff_routes(const struct conf *old, const struct conf *new, json_t *diff)
{
	struct arena *a = arena_new();
	const struct announce_route *was, *is;
	struct announce_route *o, *n;
	size_t i, no, nn;

	o = announce_routes_asked(old, a, &no);
	n = announce_routes_asked(new, a, &nn);
	for (i = 0; i < nn; i++) {
		was = announce_route_find(o, no, &n[i].prefix);
		if (was == NULL)
			route_append(json_object_get(diff, "added"), &n[i],
			    new);
		else if (!announce_route_same(was, &n[i]) ||
		    old->bgp.fingerprint != new->bgp.fingerprint)
			route_append(json_object_get(diff, "changed"), &n[i],
			    new);
	}
	for (i = 0; i < no; i++) {
		is = announce_route_find(n, nn, &o[i].prefix);
		if (is == NULL)
			route_append(json_object_get(diff, "removed"), &o[i],
			    old);
	}
	arena_free(a);
}

static json_t *
text_or_null(const char *s)
{
	return s != NULL ? ctl_text(s) : json_null();
}

void
diff_settings(const struct conf *old, const struct conf *new, json_t *diff)
{
	struct arena *a = arena_new();
	json_t *list = json_array();
	struct conf_change *c;
	size_t i, n;

	n = conf_diff(old, new, a, &c);
	for (i = 0; i < n; i++)
		json_array_append_new(list, json_pack("{s:o, s:o, s:o}",
		    "key", ctl_text(c[i].key), "old", text_or_null(c[i].was),
		    "new", text_or_null(c[i].is)));
	json_object_set_new(diff, "settings", list);
	arena_free(a);
}

/* A hold is no reason against it: it ends. */
static bool
is_announced(const struct announce_row *row)
{
	return row->wanted || row->why == ANNOUNCE_HOLD;
}

static void
address_append(json_t *list, const struct announce_row *row)
{
	char addr[ADDR_STR_MAX];

	addr_print(&row->addr, addr);
	if (is_announced(row))
		json_array_append_new(list, json_sprintf("address %s: withdrawn "
		    "-> announced", addr));
	else
		json_array_append_new(list, json_sprintf("address %s: announced "
		    "-> withdrawn: %s%s%s", addr, announce_why_text(row->why),
		    row->service != NULL ? ": " : "", row->service != NULL ?
		    row->service : ""));
}

void
diff_addresses(const struct announce *old, const struct announce *new,
    json_t *diff)
{
	size_t i = 0, k;
	int cmp;

	/* both are sorted; those that come or go have their routes */
	for (k = 0; k < new->n; k++) {
		while (i < old->n && (cmp = addr_cmp(&old->row[i].addr,
		    &new->row[k].addr)) < 0)
			i++;
		if (i < old->n && cmp == 0 && is_announced(&old->row[i]) !=
		    is_announced(&new->row[k]))
			address_append(json_object_get(diff, "changed"),
			    &new->row[k]);
	}
}
