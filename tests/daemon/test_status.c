/* SPDX-License-Identifier: GPL-2.0-or-later */
/* status_build() and its like, on a node made by hand: the real core, a BIRD
 * that says what it is told to. */
#include "../unit/unit.h"

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/health.h"
#include "daemon/diff.h"
#include "daemon/status.h"

#define NOON 1767873600500000000LL	/* 2026-01-08T12:00:00.5Z, in ns */
#define SEC 1000000000LL

static const char yaml[] =
    "node: {name: lb1}\n"
    "interfaces: [{name: eth0}, {name: eth1}]\n"
    "maglev: {table_size: 1009}\n"
    "bgp: {local_as: 64512, hold: 0s,\n"
    "  neighbors: [{address: 192.0.2.1, as: 64500}]}\n"
    "checks: {c: {type: tcp, port: 80, via: direct}}\n"
    "pools:\n"
    "  web:\n"
    "    check: c\n"
    "    min_healthy: 1\n"
    "    backends:\n"
    "      - {name: b, address: 10.0.0.2}\n"
    "      - {name: a, address: 10.0.0.1}\n"
    "      - {name: c, address: 10.0.0.3}\n"
    "      - {name: d, address: 10.0.0.4, state: down}\n"
    "  api:\n"
    "    backends: [{name: x, address: 10.0.1.1}]\n"
    "services:\n"
    "  - {name: www, addresses: [203.0.113.10, \"2001:db8::10\"],\n"
    "     listen: [tcp/80, \"udp/*\"], pool: web}\n"
    "  - {name: api, addresses: [203.0.113.11], listen: [tcp/80],\n"
    "     pool: api, hash: source}\n";

/* What BIRD is said to do. */
static const struct bird_peer peers[] = {
	{ .name = "tor1", .state = "Established", .exported4 = 1,
	    .exported6 = 2, .since = NOON - 30 * SEC, .error = "was cut" },
};

const char *
bird_status_text(enum bird_status s)
{
	return s == BIRD_SYNCED ? "synced" : "else";
}

enum bird_status
bird_status(const struct bird *b)
{
	(void)b;
	return BIRD_SYNCED;
}

const char *
bird_reason(const struct bird *b)
{
	(void)b;
	return "words \xff of BIRD";
}

bool
bird_has(const struct bird *b, const struct prefix *p)
{
	(void)b;
	return addr_is4(&p->addr);	/* IPv6 is still on its way */
}

uint32_t
bird_exported(const struct bird *b, const struct prefix *p)
{
	return bird_has(b, p) ? 1 : 0;
}

bool
bird_exports(const struct bird *b, size_t peer, const struct prefix *p)
{
	(void)peer;
	return bird_has(b, p);
}

int64_t
bird_since(const struct bird *b)
{
	(void)b;
	return NOON - 60 * SEC;
}

size_t
bird_stuck(const struct bird *b)
{
	(void)b;
	return 3;
}

const struct bird_peer *
bird_peers(const struct bird *b, size_t *n)
{
	(void)b;
	*n = 1;
	return peers;
}

static const struct log_changed changes[] = {
	{ NOON - 2 * SEC, "backend web/b", "up", "down", "timeout" },
	{ NOON - 5 * SEC, "address 203.0.113.10", "withdrawn",
	    "to be announced", "" },
};

struct node {
	struct arena *a;
	const struct conf *conf;
	struct state found, wanted;
	struct announce announce;
	struct ring_cache *rings;
	struct status_config config;
	struct prog_link link[2];
	struct override override[2];
	struct override_list overrides;
	struct path_mtu path;
	struct path_table paths;
	struct status_input in;
};

static struct addr
addr_of(const char *s)
{
	struct addr a;

	assert_int_equal(addr_parse(s, &a), 0);
	return a;
}

/* 10.0.0.2 is down, all the others are up; every backend has a next hop. */
static void
world_build(struct node *n)
{
	static const char *const backend[] = { "10.0.0.1", "10.0.0.2",
	    "10.0.0.3", "10.0.0.4", "10.0.1.1" };
	struct health_row *row = arena_calloc(n->a, 3, sizeof(*row));
	struct health_table health = { row, 3 };
	struct hop *hop = arena_calloc(n->a, 5, sizeof(*hop));
	struct hop_table hops = { hop, 5 };
	struct state_input in = { .conf = n->conf, .health = &health,
	    .overrides = &n->overrides, .hops = &hops, .found = &n->found };
	struct announce_input announce = { .conf = n->conf,
	    .wanted = &n->wanted, .datapath = true };
	struct diag dg;
	size_t i;

	for (i = 0; i < 3; i++) {
		row[i].addr = addr_of(backend[i]);
		row[i].port = 80;
		row[i].check = "c";
		row[i].since = NOON - (int64_t)(i + 1) * 60 * SEC;
		row[i].fsm.state = i == 1 ? HEALTH_DOWN : HEALTH_UP;
		row[i].fsm.why = i == 1 ? PROBE_REFUSED : PROBE_OK;
	}
	for (i = 0; i < 5; i++) {
		hop[i].addr = hop[i].nexthop.gateway = addr_of(backend[i]);
		hop[i].nexthop.ifindex = 2;
		hop[i].nexthop.src = addr_of("10.0.0.100");
		hop[i].nexthop.mtu = 1500;
		hop[i].nexthop.mac[0] = 2;
	}
	diag_init(&dg);
	assert_int_equal(state_build(&in, n->a, &n->wanted, &dg), 0);
	diag_fini(&dg);
	announce_step(NULL, &announce, (mono_t){ 1000 * SEC }, NOON - 5 * SEC,
	    n->a, &n->announce);
}

static void
node_open(struct node *n)
{
	struct conf_source src = { "xlb.yaml", yaml, sizeof(yaml) - 1 };
	struct diag dg;

	memset(n, 0, sizeof(*n));
	n->a = arena_new();
	diag_init(&dg);
	if (conf_load(&src, 1, n->a, &n->conf, &dg) < 0)
		diag_print(&dg, stderr), fail();
	diag_fini(&dg);
	n->rings = ring_cache_new();
	n->override[0] = (struct override){ .pool = "web",
		.addr = addr_of("10.0.0.3"), .state = BACKEND_DRAIN,
		.since = NOON - 3600 * SEC };
	n->overrides = (struct override_list){ n->override, 1 };
	world_build(n);
	n->path = (struct path_mtu){ .addr = addr_of("10.0.0.1"),
		.limit = 1500, .carries = 1460 };
	n->paths = (struct path_table){ &n->path, 1 };
	n->config = (struct status_config){ .file = "xlb.yaml", .ok = true,
		.read = NOON - SEC, .loaded = NOON - SEC };
	n->link[0] = (struct prog_link){ .name = "eth0", .ifindex = 2,
		.attached = true, .mode = "native" };
	n->link[1] = (struct prog_link){ .name = "eth1", .mode = "-",
		.why = "no such interface" };
	n->in = (struct status_input){ .now = NOON, .started = NOON - SEC,
		.pid = 42, .node = "lb1", .config = &n->config,
		.conf = n->conf, .overrides = &n->overrides,
		.forwarding_reason = "eth1", .link = n->link,
		.wanted = &n->wanted, .announce = &n->announce,
		.change = changes, .nchange = 2,
		.paths = &n->paths,
		.bird = (const struct bird *)(const void *)n };
	n->in.ring = status_rings(&n->wanted, n->rings, n->a);
}

static void
node_close(struct node *n)
{
	ring_cache_free(n->rings);
	arena_free(n->a);
}

/* A member by its path: "pools/1/backends/0/name"; "" for one that is none. */
static const json_t *
at(const json_t *o, const char *path)
{
	char key[64];
	size_t len;

	for (; o != NULL && *path != '\0'; path += len + (path[len] == '/')) {
		len = strcspn(path, "/");
		snprintf(key, sizeof(key), "%.*s", (int)len, path);
		o = json_is_array(o) ? json_array_get(o,
		    (size_t)atoi(key)) : json_object_get(o, key);
	}
	if (o == NULL)
		fail_msg("nothing at %s", path);
	return o;
}

static const char *
text_at(const json_t *o, const char *path)
{
	const char *s = json_string_value(at(o, path));

	return s != NULL ? s : "(no text)";
}

static void
each_value_is_where_it_belongs(void **state)
{
	static const struct {
		const char *path, *want;
	} row[] = {
		{ "time", "2026-01-08T12:00:00.500Z" },
		{ "started", "2026-01-08T11:59:59.500Z" },
		{ "node", "lb1" }, { "state", "active" },
		{ "phase", "serving" }, { "forwarding_reason", "eth1" },
		{ "config/file", "xlb.yaml" },
		{ "interfaces/0/mode", "native" },
		{ "interfaces/1/name", "eth1" },
		{ "interfaces/1/reason", "no such interface" },
		{ "bird/status", "synced" },
		{ "bird/reason", "words ? of BIRD" },
		{ "bird/since", "2026-01-08T11:59:00.500Z" },
		{ "bird/peers/0/since", "2026-01-08T11:59:30.500Z" },
		{ "bird/peers/0/reason", "was cut" },
		{ "bird/peers/0/name", "tor1" },
		{ "addresses/2/address", "2001:db8::10" },
		{ "addresses/0/peers/0", "tor1" },
		{ "addresses/2/prefix", "2001:db8::10/128" },
		{ "addresses/0/address", "203.0.113.10" },
		{ "addresses/0/since", "2026-01-08T11:59:55.500Z" },
		{ "pools/0/name", "api" }, { "pools/1/name", "web" },
		{ "pools/1/check", "c" },
		{ "pools/1/backends/0/name", "b" },
		{ "pools/1/backends/0/health", "down" },
		{ "pools/1/backends/0/reason", "connection refused" },
		{ "pools/1/backends/0/since", "2026-01-08T11:58:00.500Z" },
		{ "pools/1/backends/1/health", "up" },
		{ "pools/1/backends/1/reason", "" },
		{ "pools/1/backends/2/state", "drain" },
		{ "pools/1/backends/3/state", "down" },
		{ "services/0/name", "api" }, { "services/0/hash", "source" },
		{ "services/1/listen/1", "udp/*" },
		{ "services/1/listen/0", "tcp/80" },
		{ "services/1/addresses/0", "203.0.113.10" },
		{ "pools/1/backends/2/state_since", "2026-01-08T11:00:00.500Z" },
		{ "changes/0/time", "2026-01-08T11:59:58.500Z" },
		{ "changes/0/object", "backend web/b" },
		{ "changes/0/old", "up" }, { "changes/0/new", "down" },
		{ "changes/0/reason", "timeout" },
		{ "changes/1/object", "address 203.0.113.10" },
		{ "overrides/0/object", "web/c" },
		{ "overrides/0/state", "drain" },
	};
	struct node n;
	json_t *o;
	size_t i;

	(void)state;
	node_open(&n);
	o = status_build(&n.in);
	for (i = 0; i < sizeof(row) / sizeof(row[0]); i++)
		if (strcmp(text_at(o, row[i].path), row[i].want) != 0)
			fail_msg("%s: %s, not %s", row[i].path,
			    text_at(o, row[i].path), row[i].want);
	assert_true(json_is_null(at(o, "phase_until")));
	assert_true(json_is_null(at(o, "state_since")));
	assert_true(json_is_null(at(o, "pools/1/backends/3/state_since")));
	assert_true(json_is_null(at(o, "pools/0/check")));
	assert_true(json_is_null(at(o, "pools/0/backends/0/since")));
	assert_true(json_is_false(at(o, "forwarding")));
	assert_true(json_is_true(at(o, "addresses/2/wanted")));
	assert_int_equal(json_array_size(at(o, "addresses/2/peers")), 0);
	assert_int_equal(json_integer_value(at(o, "bird/stuck")), 3);
	assert_true(json_is_false(at(o, "addresses/2/in_bird")));
	assert_true(json_is_true(at(o, "addresses/0/in_bird")));
	assert_true(json_is_true(at(o, "pools/1/ready")));
	assert_int_equal(json_integer_value(at(o, "pools/1/eligible")), 1);
	assert_int_equal(json_integer_value(at(o, "bird/peers/0/exported")), 3);
	assert_int_equal(json_integer_value(at(o,
	    "pools/1/backends/1/path_mtu")), 1460);
	assert_int_equal(json_integer_value(at(o,
	    "pools/1/backends/1/link_mtu")), 1500);
	assert_true(json_is_null(at(o, "pools/1/backends/0/path_mtu")));
	assert_true(json_is_null(at(o, "pools/1/backends/0/link_mtu")));
	json_decref(o);
	node_close(&n);
}

static void
slots_are_those_of_the_ring(void **state)
{
	struct node n;
	json_t *o;

	(void)state;
	node_open(&n);
	o = status_build(&n.in);
	/* one of four is eligible: all are its own */
	assert_int_equal(json_integer_value(at(o, "pools/1/slots")), 1009);
	assert_int_equal(json_integer_value(at(o,
	    "pools/1/backends/0/slots")), 0);
	assert_int_equal(json_integer_value(at(o,
	    "pools/1/backends/1/slots")), 1009);
	json_decref(o);
	/* without the override there are two */
	n.overrides.n = 0;
	world_build(&n);
	n.in.ring = status_rings(&n.wanted, n.rings, n.a);
	o = status_build(&n.in);
	assert_in_range(json_integer_value(at(o, "pools/1/backends/1/slots")),
	    450, 560);
	assert_int_equal(json_integer_value(at(o, "pools/1/backends/1/slots")) +
	    json_integer_value(at(o, "pools/1/backends/2/slots")), 1009);
	json_decref(o);
	node_close(&n);
}

static void
same_keys(const json_t *got, const json_t *want, const char *path)
{
	const char *key;
	json_t *value;
	char below[256];

	if (json_is_array(want) && json_array_size(want) > 0 &&
	    json_array_size(got) > 0) {
		same_keys(json_array_get(got, 0), json_array_get(want, 0),
		    path);
		return;
	}
	if (!json_is_object(want))
		return;
	json_object_foreach((json_t *)(uintptr_t)want, key, value) {
		snprintf(below, sizeof(below), "%s/%s", path, key);
		if (json_object_get(got, key) == NULL)
			fail_msg("%s is not made", below);
		same_keys(json_object_get(got, key), value, below);
	}
	json_object_foreach((json_t *)(uintptr_t)got, key, value)
		if (json_object_get(want, key) == NULL)
			fail_msg("%s/%s is not in the golden", path, key);
}

/* The client's tests show what it makes of that golden. */
static void
keys_are_those_that_the_client_knows(void **state)
{
	const char *top = getenv("top_srcdir");
	char path[4096];
	json_t *golden, *o;
	struct node n;

	(void)state;
	snprintf(path, sizeof(path), "%s/tests/golden/status/small.json",
	    top != NULL ? top : ".");
	golden = json_load_file(path, 0, NULL);
	assert_non_null(golden);
	node_open(&n);
	o = status_build(&n.in);
	same_keys(o, golden, "");
	json_decref(o);
	json_decref(golden);
	node_close(&n);
}

static void
fingerprint_is_16_digits_for_each_pool(void **state)
{
	struct node n;
	json_t *o, *s;

	(void)state;
	node_open(&n);
	o = fingerprint_build(&n.wanted, n.in.ring);
	s = status_build(&n.in);
	assert_int_equal(json_object_size(o), 2);
	assert_int_equal(strspn(text_at(o, "web"), "0123456789abcdef"), 16);
	assert_int_equal(json_string_length(at(o, "web")), 16);
	assert_string_equal(text_at(o, "web"), text_at(s,
	    "pools/1/fingerprint"));
	assert_string_not_equal(text_at(o, "web"), text_at(o, "api"));
	json_decref(o);
	json_decref(s);
	node_close(&n);
}

static bool
holds(const json_t *list, const char *what)
{
	size_t i;

	for (i = 0; i < json_array_size(list); i++)
		if (strcmp(json_string_value(json_array_get(list, i)),
		    what) == 0)
			return true;
	return false;
}

static void
diff_lists_the_objects_of_a_plan(void **state)
{
	struct node n;
	struct plan p;
	struct state empty;
	json_t *o;

	(void)state;
	node_open(&n);
	plan_build(&n.wanted, &n.found, n.rings, 0, n.a, &p);
	o = diff_build(&p, &n.wanted, NULL);
	assert_true(holds(at(o, "added"), "service 203.0.113.10:80/tcp"));
	assert_true(holds(at(o, "added"), "ring web"));
	assert_true(holds(at(o, "added"), "backend 10.0.0.1"));
	assert_int_equal(json_array_size(at(o, "removed")), 0);
	assert_string_equal(text_at(o, "pools/0/name"), "api");
	assert_int_equal(json_integer_value(at(o, "pools/0/slots")), 1009);
	assert_true(json_is_null(at(o, "pools/0/flows_moved")));
	json_decref(o);
	/* and the other way round: to a node that serves nothing */
	state_empty(&empty, &n.wanted);
	plan_build(&empty, &n.wanted, n.rings, 0, n.a, &p);
	o = diff_build(&p, &empty, NULL);
	assert_int_equal(json_array_size(at(o, "added")), 0);
	assert_true(holds(at(o, "removed"), "service 203.0.113.10:80/tcp"));
	assert_true(holds(at(o, "removed"), "vip 203.0.113.11"));
	assert_int_equal(json_array_size(at(o, "pools")), 0);
	json_decref(o);
	node_close(&n);
}

static void
diff_lists_routes(void **state)
{
	struct conf_address old[] = { { .address = addr_of("192.0.2.1") },
		{ .address = addr_of("192.0.2.2") },
		{ .address = addr_of("192.0.2.3") } };
	struct conf_address new[] = { { .address = addr_of("192.0.2.1") },
		{ .address = addr_of("192.0.2.2"), .has_med = true },
		{ .address = addr_of("192.0.2.4"), .prepend = 1 } };
	struct conf_service so = { .address = old, .naddress = 3 };
	struct conf_service sn = { .address = new, .naddress = 3 };
	struct conf a = { .service = &so, .nservice = 1 };
	struct conf b = { .service = &sn, .nservice = 1 };
	json_t *o = json_pack("{s:[], s:[], s:[]}", "added", "changed",
	    "removed");

	(void)state;
	a.bgp.present = b.bgp.present = true;
	diff_routes(&a, &b, o);
	assert_int_equal(json_array_size(at(o, "added")), 1);
	assert_true(holds(at(o, "added"), "route 192.0.2.4/32 prepend 1"));
	assert_int_equal(json_array_size(at(o, "changed")), 1);
	assert_true(holds(at(o, "changed"), "route 192.0.2.2/32 med 0"));
	assert_int_equal(json_array_size(at(o, "removed")), 1);
	assert_true(holds(at(o, "removed"), "route 192.0.2.3/32"));
	json_decref(o);
	/* fingerprints are on all of them */
	b.service = &so;
	b.bgp.fingerprint = true;
	o = json_pack("{s:[], s:[], s:[]}", "added", "changed", "removed");
	diff_routes(&a, &b, o);
	assert_int_equal(json_array_size(at(o, "changed")), 3);
	assert_true(holds(at(o, "changed"), "route 192.0.2.1/32 fingerprint"));
	json_decref(o);
}

int
main(void)
{
	const struct CMUnitTest test[] = {
		cmocka_unit_test(each_value_is_where_it_belongs),
		cmocka_unit_test(slots_are_those_of_the_ring),
		cmocka_unit_test(keys_are_those_that_the_client_knows),
		cmocka_unit_test(fingerprint_is_16_digits_for_each_pool),
		cmocka_unit_test(diff_lists_the_objects_of_a_plan),
		cmocka_unit_test(diff_lists_routes),
	};

	return cmocka_run_group_tests_name("status", test, NULL, NULL);
}
