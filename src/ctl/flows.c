/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Commands that show flows: how many there are, a client's, and what would become
 * of one. */
#include <string.h>

#include "core/addr.h"
#include "ctl/command.h"
#include "ctl/fields.h"
#include "ctl/grid.h"
#include "ctl/list.h"
#include "ctl/view.h"

#define FLOWS_MS 120000	/* a client's ports times the services */

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
	list_end(g, colour);
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
	list_end(g, colour);
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
	list_end(g, colour);
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
	list_end(g, colour);
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
	list_end(g, colour);
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
