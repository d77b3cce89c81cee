/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shows what is attached, with which settings, and what the packets met. */
#include "decap/decap.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STATUS_SCHEMA 1

static const struct {
	const char *name, *what;
} reason[] = {
#define X(NAME, name, kind, what) { #name, what },
	DECAP_REASONS(X)
#undef X
};

static void
append(json_t *array, json_t *value)
{
	if (json_array_append_new(array, value) < 0)
		errx(EXIT_FAILED, "memory");
}

static void
set(json_t *object, const char *key, json_t *value)
{
	if (json_object_set_new(object, key, value) < 0)
		errx(EXIT_FAILED, "memory");
}

/* An address alone, or a prefix. */
static json_t *
prefix_json(const struct prefix *p)
{
	char buf[PREFIX_STR_MAX];

	if (p->len == addr_bits(&p->addr))
		return json_string(addr_print(&p->addr, buf));
	return json_string(prefix_print(p, buf));
}

/* Those rows of a map of prefixes that have one of the flags. */
static void
trie_rows(int map, uint32_t flags, json_t *out)
{
	struct decap_prefix key, *prev = NULL;
	struct prefix p;
	uint32_t value;

	while (bpf_map_get_next_key(map, prev, &key) == 0) {
		if (bpf_map_lookup_elem(map, &key, &value) == 0 &&
		    (value & flags) != 0) {
			key_prefix(&key, &p);
			append(out, prefix_json(&p));
		}
		prev = &key;
	}
}

static void
locals_rows(int map, uint32_t flags, json_t *out)
{
	struct decap_prefix key = { .bits = 0 };
	struct decap_addr addr, *prev = NULL;
	struct prefix p;
	uint32_t value;

	while (bpf_map_get_next_key(map, prev, &addr) == 0) {
		if (bpf_map_lookup_elem(map, &addr, &value) == 0 &&
		    (value & flags) != 0) {
			key.a = addr;
			key.bits = DECAP_FAMILY_BITS +
			    (addr.family == 4 ? 32 : 128);
			key_prefix(&key, &p);
			append(out, prefix_json(&p));
		}
		prev = &addr;
	}
}

/* Is this row of the host in the program's maps? */
static bool
host_row_known(const struct instance *i, const struct host_addr *row)
{
	struct decap_prefix key = key_build(&row->p);
	uint32_t value = 0;

	if (!(row->flags & DECAP_HOST)) {
		return bpf_map_lookup_elem(i->map[MAP_VIPS], &key,
		    &value) == 0;
	}
	return bpf_map_lookup_elem(i->map[MAP_LOCALS], &key.a, &value) == 0 &&
	    (value & row->flags) == row->flags;
}

static bool
host_has(const struct host *h, const char *text, uint32_t flags)
{
	struct prefix p;
	size_t i;

	if (addr_parse(text, &p.addr) < 0)
		return true;
	for (i = 0; i < h->n; i++)
		if ((h->addr[i].flags & flags) == flags &&
		    addr_cmp(&h->addr[i].p.addr, &p.addr) == 0)
			return true;
	return false;
}

/* The program knows the addresses of the time when it was attached. */
static void
changes_find(const struct instance *i, const struct host *h, json_t *added,
    json_t *removed)
{
	json_t *list = json_array(), *row;
	size_t k;

	for (k = 0; k < h->n; k++)
		if (!host_row_known(i, &h->addr[k]))
			append(added, prefix_json(&h->addr[k].p));
	locals_rows(i->map[MAP_LOCALS], DECAP_HOST, list);
	json_array_foreach(list, k, row) {
		if (!host_has(h, json_string_value(row), DECAP_HOST))
			append(removed, json_incref(row));
	}
	json_array_clear(list);
	locals_rows(i->map[MAP_LOCALS], DECAP_LO, list);
	json_array_foreach(list, k, row) {
		const char *text = json_string_value(row);

		if (host_has(h, text, DECAP_HOST) &&
		    !host_has(h, text, DECAP_LO))
			append(removed, json_incref(row));
	}
	json_decref(list);
}

static json_t *
reasons_json(const struct instance *i)
{
	int cpus = libbpf_num_possible_cpus(), cpu, k;
	json_t *out = json_object();
	struct decap_counters *c;
	uint64_t sum;

	if (cpus < 1)
		errx(EXIT_FAILED, "number of CPUs: %s", strerror(-cpus));
	c = calloc((size_t)cpus, sizeof(*c));
	if (c == NULL)
		err(EXIT_FAILED, "memory");
	if (bpf_map_lookup_elem(i->map[MAP_COUNTERS], &(uint32_t){ 0 }, c) < 0)
		err(EXIT_FAILED, "counters");
	for (k = 0; k < DECAP_REASON_COUNT; k++) {
		for (sum = 0, cpu = 0; cpu < cpus; cpu++)
			sum += c[cpu].packets[k];
		set(out, reason[k].name, json_integer((json_int_t)sum));
	}
	free(c);
	return out;
}

/* As the kernel has it, not as it was asked for. */
static const char *
mode_found(const struct instance *i)
{
	LIBBPF_OPTS(bpf_xdp_query_opts, q);

	if (i->ifindex == 0 || bpf_xdp_query((int)i->ifindex, 0, &q) < 0)
		return "-";
	if (q.drv_prog_id == i->prog_id)
		return "native";
	return q.skb_prog_id == i->prog_id ? "generic" : "-";
}

static json_t *
instance_json(const struct instance *i, const struct host *h)
{
	json_t *out = json_object(), *from = json_array(), *vip = json_array();
	json_t *lo = json_array(), *local = json_array();
	json_t *added = json_array(), *removed = json_array();
	char name[IF_NAMESIZE];
	const char *mode = mode_found(i);

	if (i->ifindex == 0 || if_indextoname(i->ifindex, name) == NULL)
		snprintf(name, sizeof(name), "%s", i->settings.name);
	trie_rows(i->map[MAP_FROM], DECAP_GIVEN, from);
	trie_rows(i->map[MAP_VIPS], DECAP_GIVEN, vip);
	locals_rows(i->map[MAP_LOCALS], DECAP_LO, lo);
	trie_rows(i->map[MAP_VIPS], DECAP_LO, lo);
	locals_rows(i->map[MAP_LOCALS], DECAP_HOST, local);
	changes_find(i, h, added, removed);
	set(out, "name", json_string(name));
	set(out, "attached", json_boolean(strcmp(mode, "-") != 0));
	set(out, "mode", json_string(mode));
	set(out, "frags", json_boolean(i->settings.frags));
	set(out, "program", json_integer(i->prog_id));
	set(out, "gue_port", json_integer(ntohs(i->settings.gue_port)));
	set(out, "from", from);
	set(out, "vip", vip);
	set(out, "lo", lo);
	set(out, "local", local);
	set(out, "added", added);
	set(out, "removed", removed);
	set(out, "reasons", reasons_json(i));
	return out;
}

static void
list_print(const json_t *interface, const char *key, const char *title)
{
	const json_t *row;
	size_t k;

	if (json_array_size(json_object_get(interface, key)) == 0)
		return;
	printf("  %-13s", title);
	json_array_foreach(json_object_get(interface, key), k, row)
		printf(" %s", json_string_value(row));
	printf("\n");
}

static void
interface_print(const json_t *interface)
{
	const char *mode = json_string_value(json_object_get(interface, "mode"));
	const json_t *reasons = json_object_get(interface, "reasons");
	json_int_t n;
	int k;

	printf("%s: ", json_string_value(json_object_get(interface, "name")));
	if (json_is_true(json_object_get(interface, "attached")))
		printf("%s mode%s", mode, json_is_true(json_object_get(
		    interface, "frags")) ? ", several buffers" : "");
	else
		printf("NOT ATTACHED any more, attach again");
	printf(", program %" JSON_INTEGER_FORMAT ", GUE port %"
	    JSON_INTEGER_FORMAT "\n",
	    json_integer_value(json_object_get(interface, "program")),
	    json_integer_value(json_object_get(interface, "gue_port")));
	list_print(interface, "from", "from");
	list_print(interface, "vip", "vip");
	list_print(interface, "lo", "on lo");
	list_print(interface, "added", "NEW ADDRESS");
	list_print(interface, "removed", "ADDRESS GONE");
	if (json_array_size(json_object_get(interface, "added")) > 0 ||
	    json_array_size(json_object_get(interface, "removed")) > 0)
		printf("  addresses have changed: attach again\n");
	for (k = 0; k < DECAP_REASON_COUNT; k++) {
		n = json_integer_value(json_object_get(reasons,
		    reason[k].name));
		if (n > 0 || k == DECAP_DECAPSULATED)
			printf("  %-13s %12" JSON_INTEGER_FORMAT "  %s\n",
			    reason[k].name, n, reason[k].what);
	}
}

static int
interfaces_read(struct pins *pins, const struct host *h, json_t *out)
{
	unsigned *list;
	struct instance i;
	size_t n = pins_list(pins, &list), k;
	uint64_t netns = host_netns();
	int r, failed = 0;

	for (k = 0; k < n; k++) {
		r = instance_open(pins, list[k], &i);
		if (r < 0 || i.settings.abi == 0) {
			warnx("%s/%u: %s", pins->dir, list[k], r < 0 ?
			    strerror(-r) : "made by another version of "
			    "xlb-decap: attach again");
			failed = 1;
		} else if (i.settings.netns == netns) {
			append(out, instance_json(&i, h));
		}
		if (r == 0)
			instance_close(&i);
	}
	free(list);
	return failed;
}

int
status(const char *dir, bool json)
{
	json_t *all = json_array(), *row, *doc;
	struct pins pins;
	struct host host;
	size_t k;
	int r;

	program_quiet(true);
	r = host_read(&host);
	if (r < 0)
		errx(EXIT_FAILED, "addresses of the host: %s", strerror(-r));
	if (pins_open(dir, false, &pins) < 0)
		return EXIT_FAILED;
	r = interfaces_read(&pins, &host, all);
	pins_close(&pins);
	host_free(&host);
	if (json) {
		doc = json_pack("{s:i, s:o}", "schema", STATUS_SCHEMA,
		    "interfaces", all);
		if (doc == NULL || json_dumpf(doc, stdout,
		    JSON_INDENT(2)) < 0 || putchar('\n') == EOF)
			err(EXIT_FAILED, "standard output");
		json_decref(doc);
		return r != 0 ? EXIT_FAILED : EXIT_DONE;
	}
	if (json_array_size(all) == 0 && r == 0)
		printf("attached to no interface\n");
	json_array_foreach(all, k, row)
		interface_print(row);
	json_decref(all);
	return r != 0 ? EXIT_FAILED : EXIT_DONE;
}
