/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Commands that show one kind of object, a line each. */
#include <string.h>

#include "core/addr.h"
#include "ctl/command.h"
#include "ctl/fields.h"
#include "ctl/grid.h"
#include "ctl/view.h"

#define LIST_MS 10000
#define FLOWS_MS 120000	/* a client's ports times the services */

/* What a command shows: of the answer to `request`, as JSON and as lines. */
struct list {
	const char *request;
	int timeout_ms;
	json_t *(*json)(const json_t *result);
	void (*print)(const json_t *result, bool colour);
};

static int
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

static int
list_run(const struct context *x, const struct list *l)
{
	return list_ask(x, l, NULL);
}

static json_t *
member_json(const json_t *result, const char *key)
{
	return json_pack("{s:O}", key, json_object_get(result, key));
}

static void
grid_end(struct grid *g, bool colour)
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
	grid_end(g, colour);
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
	grid_end(g, colour);
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
	grid_end(g, colour);
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
	grid_end(g, colour);
	g = view_addresses(result, ADDRESS_PEERS);
	if (grid_rows(g) > 0)
		putchar('\n');
	grid_end(g, colour);
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
	grid_end(g, colour);
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
	grid_end(g, colour);
}

int
rings_run(const struct context *x)
{
	static const struct list l = { "rings", LIST_MS, rings_json, rings_print };

	return list_run(x, &l);
}

static json_t *
whole_json(const json_t *result)
{
	return json_deep_copy(result);
}

static void
flows_print(const json_t *result, bool colour)
{
	static const char *const head[] = { "BACKEND", "ADDRESS", "FLOWS",
	    NULL };
	const json_t *list = json_object_get(result, "backends"), *b;
	json_t *ages = json_object_get(result, "ages"), *n;
	long long all = number(result, "entries");
	struct grid *g = grid_new("lr");
	const char *age;
	size_t i;

	printf("%lld flows of %lld entries (%.1f %%): %lld established, %lld "
	    "opening, %lld closing\n\n", number(result, "flows"), all,
	    all > 0 ? 100 * (double)number(result, "flows") / (double)all : 0,
	    number(result, "established"), number(result, "opening"),
	    number(result, "closing"));
	if (number(result, "nat") > 0)
		printf("%lld flows of NAT\n\n", number(result, "nat"));
	grid_cell(g, TINT_HEAD, "LAST USED");
	grid_cell(g, TINT_HEAD, "FLOWS");
	json_object_foreach(ages, age, n) {
		grid_cell(g, TINT_NONE, "%s%s", strcmp(age, "older") == 0 ?
		    "" : "< ", age);
		grid_cell(g, TINT_NONE, "%lld",
		    (long long)json_integer_value(n));
	}
	grid_end(g, colour);
	g = grid_new("llr");
	for (i = 0; i < json_array_size(list); i++) {
		b = json_array_get(list, i);
		if (i == 0) {
			putchar('\n');
			grid_heads(g, head);
		}
		joined_cell(g, json_object_get(b, "backends"));
		grid_cell(g, TINT_NONE, "%s", text(b, "address"));
		grid_cell(g, TINT_NONE, "%lld", number(b, "flows"));
	}
	grid_end(g, colour);
}

static void
found_print(const json_t *result, bool colour)
{
	static const char *const head[] = { "PROTOCOL", "PORT", "TO",
	    "BACKEND", "ADDRESS", "STATE", "USED", NULL };
	const json_t *list = json_object_get(result, "found"), *f;
	struct grid *g = grid_new("lrllllr");
	bool v6;
	size_t i;

	grid_heads(g, head);
	for (i = 0; i < json_array_size(list); i++) {
		f = json_array_get(list, i);
		v6 = strchr(text(f, "destination"), ':') != NULL;
		grid_cell(g, TINT_NONE, "%s", text(f, "protocol"));
		grid_cell(g, TINT_NONE, "%lld", number(f, "source_port"));
		grid_cell(g, TINT_NONE, "%s%s%s:%lld", v6 ? "[" : "",
		    text(f, "destination"), v6 ? "]" : "",
		    number(f, "destination_port"));
		joined_cell(g, json_object_get(f, "backends"));
		grid_cell(g, TINT_NONE, "%s", text(f, "backend"));
		grid_cell(g, TINT_NONE, "%s", yes(f, "closing") ? "closing" :
		    yes(f, "confirmed") ? "established" : "opening");
		grid_cell(g, TINT_NONE, "%llds", number(f, "age"));
	}
	grid_end(g, colour);
}

static void
nat_print(const json_t *result, bool colour)
{
	static const char *const head[] = { "ADDRESS", "FLOWS", NULL };
	const json_t *list = json_object_get(result, "sources"), *s;
	struct grid *g = grid_new("lr");
	size_t i;

	printf("%lld flows in %lld of %lld rows: %lld established, %lld of "
	    "UDP\n\n", number(result, "flows"), number(result, "used"),
	    number(result, "rows"), number(result, "established"),
	    number(result, "udp"));
	grid_heads(g, head);
	json_array_foreach(list, i, s) {
		grid_cell(g, TINT_NONE, "%s", text(s, "address"));
		grid_cell(g, TINT_NONE, "%lld", number(s, "flows"));
	}
	grid_end(g, colour);
}

int
flows_run(const struct context *x)
{
	static const struct list nat = { "flows", FLOWS_MS, whole_json,
	    nat_print };
	static const struct list all = { "flows", FLOWS_MS, whole_json,
	    flows_print };
	static const struct list found = { "flows", FLOWS_MS, whole_json,
	    found_print };
	const char *client = flag_value(x, FLAG_CLIENT);
	struct addr a;

	if (x->flags & FLAG_NAT)
		return list_ask(x, &nat, json_pack("{s:b}", "nat", 1));
	if (client == NULL)
		return list_run(x, &all);
	if (addr_parse(client, &a) < 0) {
		complain("flows: --client: %s is not an address", client);
		return STATUS_USAGE;
	}
	return list_ask(x, &found, json_pack("{s:s}", "client", client));
}

static const char *
name_or_none(const json_t *o, const char *key)
{
	return text(o, key)[0] != '\0' ? text(o, key) : "none";
}

static void
lookup_print(const json_t *r, bool colour)
{
	static const char *const said[][2] = {
		{ "ring", "its slot's owner" },
		{ "entry", "the flow table has it" },
		{ "prev", "not known: most likely began before the slot moved"
		    },
		{ "no_backend", "its slot has no owner: dropped" } };
	const json_t *nat = json_object_get(r, "nat");
	const json_t *e = json_object_get(r, "entry");
	struct grid *g = grid_new("ll");
	size_t i;

	grid_cell(g, TINT_HEAD, "service");
	grid_cell(g, TINT_NONE, "%s", text(r, "service"));
	grid_cell(g, TINT_HEAD, "backend");
	for (i = 0; i < sizeof(said) / sizeof(said[0]) - 1; i++)
		if (strcmp(said[i][0], text(r, "why")) == 0)
			break;
	grid_cell(g, text(r, "backend")[0] != '\0' ? TINT_GOOD : TINT_BAD,
	    "%s/%s: %s", text(r, "pool"), name_or_none(r, "backend"),
	    said[i][1]);
	grid_cell(g, TINT_HEAD, "slot");
	grid_cell(g, TINT_NONE, "%lld: owner %s, before %s, %s",
	    number(r, "slot"), name_or_none(r, "cur"),
	    name_or_none(r, "prev"), yes(r, "lookup") ?
	    "every packet is looked up" : "stable");
	grid_cell(g, TINT_HEAD, "entry");
	if (json_is_object(e))
		grid_cell(g, TINT_NONE, "%s, %s, used %lld s ago",
		    name_or_none(e, "backend"), yes(e, "closing") ? "closing" :
		    yes(e, "confirmed") ? "established" : "opening",
		    number(e, "age"));
	else
		grid_cell(g, TINT_NONE, "none");
	if (json_is_object(nat)) {
		grid_cell(g, TINT_HEAD, "nat");
		grid_cell(g, TINT_NONE, "from %s to port %lld, %s",
		    text(nat, "source"), number(nat, "port"),
		    text(nat, "state"));
	}
	grid_end(g, colour);
}

int
lookup_run(const struct context *x)
{
	static const struct list l = { "lookup", LIST_MS, whole_json, lookup_print };
	struct addr a[2];
	uint16_t port;
	int i;

	if (strcmp(x->arg[0], "tcp") != 0 && strcmp(x->arg[0], "udp") != 0) {
		complain("lookup: %s is neither tcp nor udp", x->arg[0]);
		return STATUS_USAGE;
	}
	for (i = 0; i < 2; i++)
		if (addrport_parse(x->arg[1 + i], &a[i], &port) < 0) {
			complain("lookup: %s is neither ADDRESS:PORT nor "
			    "[ADDRESS]:PORT", x->arg[1 + i]);
			return STATUS_USAGE;
		}
	if (addr_is4(&a[0]) != addr_is4(&a[1])) {
		complain("lookup: %s and %s are of different families",
		    x->arg[1], x->arg[2]);
		return STATUS_USAGE;
	}
	return list_ask(x, &l, json_pack("{s:s, s:s, s:s}", "protocol",
	    x->arg[0], "source", x->arg[1], "destination", x->arg[2]));
}
