/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Commands that show one kind of object, a line each. */
#include <string.h>

#include "ctl/command.h"
#include "ctl/fields.h"
#include "ctl/grid.h"
#include "ctl/list.h"
#include "ctl/view.h"

int
list_ask(const struct context *x, const struct list *l, json_t *args)
{
	json_t *reply, *result;
	int status = ask(x, l->request, args, l->timeout_ms, &reply);

	if (status != 0)
		return status;
	status = reply_take(reply);
	result = json_object_get(reply, "result");
	if (status == STATUS_DONE && (x->flags & FLAG_JSON))
		status = json_out(x, l->json(result));
	else if (status == STATUS_DONE)
		l->print(result, x->colour);
	else
		reply_refused(x, reply);
	json_decref(reply);
	return status;
}

int
list_run(const struct context *x, const struct list *l)
{
	return list_ask(x, l, NULL);
}

static json_t *
member_json(const json_t *result, const char *key)
{
	return json_pack("{s:O}", key, json_object_get(result, key));
}

void
list_end(struct grid *g, bool colour)
{
	grid_print(g, 0, colour, stdout);
	grid_free(g);
}

static void
number_cell(struct grid *g, long long n)
{
	if (n != 0)
		grid_cell(g, TINT_NONE, "%lld", n);
	else
		grid_cell(g, TINT_NONE, "%s", "");
}

static json_t *
services_json(const json_t *result)
{
	return member_json(result, "services");
}

/* An address a line: they come and go one by one. */
static void
services_print(const json_t *result, bool colour)
{
	static const char *const head[] = { "SERVICE", "ADDRESS", "LISTEN",
	    "POOL", "FORWARD", "HASH", "STATE", NULL };
	const json_t *list = json_object_get(result, "services"), *s, *addr;
	struct grid *g = grid_new("lllllll");
	size_t i, j;

	grid_heads(g, head);
	for (i = 0; i < json_array_size(list); i++) {
		s = json_array_get(list, i);
		addr = json_object_get(s, "addresses");
		for (j = 0; j < json_array_size(addr); j++) {
			grid_cell(g, TINT_NONE, "%s", text(s, "name"));
			grid_cell(g, TINT_NONE, "%s",
			    json_string_value(json_array_get(addr, j)));
			joined_cell(g, json_object_get(s, "listen"));
			grid_cell(g, TINT_NONE, "%s", text(s, "pool"));
			grid_cell(g, TINT_NONE, "%s", text(s, "forward"));
			grid_cell(g, TINT_NONE, "%s", text(s, "hash"));
			grid_cell(g, yes(s, "ready") ? TINT_GOOD :
			    yes(s, "required") ? TINT_BAD : TINT_ODD, "%s%s",
			    yes(s, "ready") ? "ready" : "not ready",
			    yes(s, "required") ? "" : ", not required");
		}
	}
	list_end(g, colour);
}

int
services_run(const struct context *x)
{
	static const struct list l = { "status", LIST_MS, services_json,
	    services_print };

	return list_run(x, &l);
}

static json_t *
pools_json(const json_t *result)
{
	return member_json(result, "pools");
}

static void
pools_print(const json_t *result, bool colour)
{
	static const char *const head[] = { "POOL", "BACKENDS", "ELIGIBLE",
	    "NEEDED", "STATE", "CHECK", "FINGERPRINT", NULL };
	const json_t *list = json_object_get(result, "pools"), *p;
	struct grid *g = grid_new("lrrrlll");
	bool ready, open;
	size_t i;

	grid_heads(g, head);
	for (i = 0; i < json_array_size(list); i++) {
		p = json_array_get(list, i);
		ready = yes(p, "ready");
		open = yes(p, "failed_open");
		grid_cell(g, TINT_NONE, "%s", text(p, "name"));
		grid_cell(g, TINT_NONE, "%zu",
		    json_array_size(json_object_get(p, "backends")));
		grid_cell(g, TINT_NONE, "%lld", number(p, "eligible"));
		grid_cell(g, TINT_NONE, "%lld", number(p, "needed"));
		grid_cell(g, open ? TINT_ODD : ready ? TINT_GOOD : TINT_BAD,
		    "%s", open ? "fail open" : ready ? "ready" : "not ready");
		grid_cell(g, TINT_NONE, "%s", text(p, "check"));
		grid_cell(g, TINT_NONE, "%s", text(p, "fingerprint"));
	}
	list_end(g, colour);
}

int
pools_run(const struct context *x)
{
	static const struct list l = { "status", LIST_MS, pools_json, pools_print };

	return list_run(x, &l);
}

/* Those of all pools, each with its pool's name and size of ring. */
static json_t *
backends_json(const json_t *result)
{
	const json_t *pools = json_object_get(result, "pools"), *p, *list;
	json_t *all = json_array(), *b;
	size_t i, j;

	for (i = 0; i < json_array_size(pools); i++) {
		p = json_array_get(pools, i);
		list = json_object_get(p, "backends");
		for (j = 0; j < json_array_size(list); j++) {
			b = json_pack("{s:O, s:O}", "pool",
			    json_object_get(p, "name"), "ring",
			    json_object_get(p, "slots"));
			json_object_update_missing(b, json_array_get(list, j));
			json_array_append_new(all, b);
		}
	}
	return json_pack("{s:o}", "backends", all);
}

static void
backends_print(const json_t *result, bool colour)
{
	static const char *const head[] = { "BACKEND", "ADDRESS", "WEIGHT",
	    "SHARE", "STATE", "SINCE", "WHY", NULL };
	json_t *all = backends_json(result);
	const json_t *list = json_object_get(all, "backends"), *b;
	struct grid *g = grid_new("llrrlrl");
	size_t i;

	grid_heads(g, head);
	for (i = 0; i < json_array_size(list); i++) {
		b = json_array_get(list, i);
		grid_cell(g, TINT_NONE, "%s/%s", text(b, "pool"),
		    text(b, "name"));
		view_backend(result, b, number(b, "ring"), g);
	}
	list_end(g, colour);
	json_decref(all);
}

int
backends_run(const struct context *x)
{
	static const struct list l = { "status", LIST_MS, backends_json,
	    backends_print };

	return list_run(x, &l);
}

static json_t *
bgp_json(const json_t *result)
{
	return json_pack("{s:O, s:O}", "bird", json_object_get(result, "bird"),
	    "addresses", json_object_get(result, "addresses"));
}

static void
bgp_print(const json_t *result, bool colour)
{
	static const char *const head[] = { "SESSION", "STATE", "EXPORTED",
	    "SINCE", "WHY", NULL };
	const json_t *bird = json_object_get(result, "bird"), *list, *peer;
	struct grid *g;
	char buf[24];
	bool up;
	size_t i;

	if (!json_is_object(bird)) {
		puts("nothing is announced: no bgp: section");
		return;
	}
	printf("BIRD: %s%s%s\n\n", text(bird, "status"),
	    text(bird, "reason")[0] != '\0' ? ": " : "", text(bird, "reason"));
	list = json_object_get(bird, "peers");
	g = grid_new("llrrl");
	grid_heads(g, head);
	for (i = 0; i < json_array_size(list); i++) {
		peer = json_array_get(list, i);
		up = strcmp(text(peer, "state"), "Established") == 0;
		grid_cell(g, TINT_NONE, "%s", text(peer, "name"));
		grid_cell(g, up ? TINT_GOOD : TINT_BAD, "%s",
		    text(peer, "state"));
		grid_cell(g, TINT_NONE, "%lld", number(peer, "exported"));
		grid_cell(g, TINT_NONE, "%s", ago(result, peer, "since", buf));
		grid_cell(g, TINT_NONE, "%s", text(peer, "reason"));
	}
	list_end(g, colour);
	g = view_addresses(result, ADDRESS_PEERS);
	if (grid_rows(g) > 0)
		putchar('\n');
	list_end(g, colour);
}

int
bgp_run(const struct context *x)
{
	static const struct list l = { "status", LIST_MS, bgp_json, bgp_print };

	return list_run(x, &l);
}

static json_t *
neighbors_json(const json_t *result)
{
	return member_json(result, "neighbors");
}

static void
neighbors_print(const json_t *result, bool colour)
{
	static const char *const head[] = { "BACKEND", "ADDRESS", "VIA", "MAC",
	    "INTERFACE", "VLAN", "MTU", "SOURCE", "STATE", NULL };
	const json_t *list = json_object_get(result, "neighbors"), *n;
	struct grid *g = grid_new("lllllrrll");
	bool ok;
	size_t i;

	grid_heads(g, head);
	for (i = 0; i < json_array_size(list); i++) {
		n = json_array_get(list, i);
		ok = yes(n, "resolved");
		joined_cell(g, json_object_get(n, "backends"));
		grid_cell(g, TINT_NONE, "%s", text(n, "address"));
		grid_cell(g, TINT_NONE, "%s", text(n, "gateway"));
		grid_cell(g, TINT_NONE, "%s", text(n, "mac"));
		grid_cell(g, TINT_NONE, "%s", text(n, "interface"));
		number_cell(g, number(n, "vlan"));
		number_cell(g, number(n, "mtu"));
		grid_cell(g, TINT_NONE, "%s", text(n, "source"));
		grid_cell(g, ok ? TINT_GOOD : TINT_BAD, "%s", ok ? "ok" :
		    text(n, "reason"));
	}
	list_end(g, colour);
}

int
neighbors_run(const struct context *x)
{
	static const struct list l = { "neighbors", LIST_MS, neighbors_json,
	    neighbors_print };

	return list_run(x, &l);
}

static json_t *
rings_json(const json_t *result)
{
	return member_json(result, "rings");
}

static void
share_cells(const json_t *ring, const json_t *b, long long weights,
    struct grid *g)
{
	double slots = (double)number(ring, "slots");
	double is = slots > 0 ? 100 * (double)number(b, "slots") / slots : 0;
	double due = weights > 0 ? 100 * (double)number(b, "weight") /
	    (double)weights : 0;

	grid_cell(g, TINT_NONE, "  %s", text(b, "name"));
	grid_cell(g, TINT_NONE, "%s", text(b, "address"));
	grid_cell(g, TINT_NONE, "%lld", number(b, "slots"));
	grid_cell(g, TINT_NONE, "%.2f%%", is);
	grid_cell(g, TINT_NONE, "%.2f%%", due);
}

static void
rings_print(const json_t *result, bool colour)
{
	static const char *const head[] = { "POOL/BACKEND", "ADDRESS", "SLOTS",
	    "SHARE", "BY WEIGHT", NULL };
	const json_t *list = json_object_get(result, "rings"), *r, *backends;
	struct grid *g = grid_new("llrrr");
	long long weights;
	size_t i, j;

	grid_heads(g, head);
	for (i = 0; i < json_array_size(list); i++) {
		r = json_array_get(list, i);
		backends = json_object_get(r, "backends");
		grid_line(g, number(r, "empty") > 0 ? TINT_BAD : TINT_NONE,
		    "%s: %s, %lld slots: %lld moved lately, %lld looked up, "
		    "%lld with an owner before, %lld empty", text(r, "pool"),
		    text(r, "fingerprint"), number(r, "slots"),
		    number(r, "moved"), number(r, "lookup"),
		    number(r, "prev"), number(r, "empty"));
		for (j = weights = 0; j < json_array_size(backends); j++)
			weights += number(json_array_get(backends, j),
			    "weight");
		for (j = 0; j < json_array_size(backends); j++)
			share_cells(r, json_array_get(backends, j), weights,
			    g);
	}
	list_end(g, colour);
}

int
rings_run(const struct context *x)
{
	static const struct list l = { "rings", LIST_MS, rings_json, rings_print };

	return list_run(x, &l);
}
