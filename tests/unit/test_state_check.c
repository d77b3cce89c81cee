/* SPDX-License-Identifier: GPL-2.0-or-later */
/* States that do not fit: into the tables, or together. */
#include "state_input.h"

#include <arpa/inet.h>
#include <stdio.h>

#include "core/ring_words.h"

#define TWO "pools: {p: {backends: [{name: b1, address: 10.0.0.1},\n" \
	"{name: b2, address: 10.0.0.2, state: drain}]}}\n"

static void
a_full_table_is_an_error(void **state)
{
	static struct state_ring ring[XLB_RINGS];
	static const uint32_t slot[65537], roles[RING_MEMBER_WORDS];
	struct state s;
	size_t i;

	(void)state;
	conf(HEAD WEB TWO);
	for (i = 0; i < XLB_RINGS; i++)
		ring[i] = (struct state_ring){ .pool = arena_printf(a,
		    "x%05zu", i), .number = (uint32_t)i, .slot = slot,
		    .roles = roles };
	found.ring = ring;
	found.nring = XLB_RINGS;
	found.ring_size = 65537;
	assert_int_equal(state_build(&in, a, &s, &dg), -1);
	assert_string_equal(dg.row[dg.n - 1].text, "pools: 1 new and 1024 that "
	    "are there, which go last, are more than 1024: make the change in "
	    "two steps");
	ring[1023].pool = "p";
	found.nring = XLB_RINGS;
	state_sort(&found);
	s = build();
	assert_int_equal(s.ring[0].number, 1023);
}

static struct addr
numbered(uint32_t n)
{
	return addr_from4(htonl(0x0b000000 + n));
}

/* As many as there are numbers, all of them others than what is wanted. */
static void
each_table_has_its_limit(void **state)
{
	static struct state_nexthop nexthop[XLB_NEXTHOPS - 1];
	static struct state_backend backend[XLB_BACKENDS - 1];
	static struct state_service service[XLB_SERVICES];
	static struct state_vip vip[STATE_VIP_IDS - 1];
	struct state s;
	uint32_t i;

	(void)state;
	conf(HEAD WEB TWO);
	hop_add("10.0.0.1", HOP_OK);
	hop_add("10.0.0.2", HOP_OK);
	for (i = 0; i < STATE_VIP_IDS - 1; i++)
		vip[i] = (struct state_vip){ .addr = numbered(i), .id = i + 1 };
	for (i = 0; i < XLB_SERVICES; i++)
		service[i] = (struct state_service){ .vip = numbered(i),
		    .proto = 6, .port = 80, .vip_id = 1, .number = i };
	for (i = 0; i < XLB_BACKENDS - 1; i++) {
		backend[i] = (struct state_backend){ .addr = numbered(i),
		    .number = i + 1 };
		nexthop[i] = (struct state_nexthop){ .gateway = numbered(i),
		    .number = i + 1 };
	}
	found.backend = backend;
	found.nbackend = XLB_BACKENDS - 1;
	assert_int_equal(state_build(&in, a, &s, &dg), -1);
	assert_string_equal(dg.row[dg.n - 1].text, "pools: backends: 2 new and "
	    "16383 that are there, which go last, are more than 16383: make "
	    "the change in two steps");
	found.nbackend = 0;
	found.nexthop = nexthop;
	found.nnexthop = XLB_NEXTHOPS - 1;
	assert_int_equal(state_build(&in, a, &s, &dg), -1);
	assert_memory_equal(dg.row[dg.n - 1].text, "next hops: 2 new and 16383",
	    26);
	found.nnexthop = 0;
	found.vip = vip;
	found.nvip = STATE_VIP_IDS - 1;
	assert_int_equal(state_build(&in, a, &s, &dg), -1);
	assert_memory_equal(dg.row[dg.n - 1].text, "services: addresses: 1 new "
	    "and 65535", 35);
	found.nvip = 0;
	found.service = service;
	found.nservice = XLB_SERVICES;
	assert_int_equal(state_build(&in, a, &s, &dg), -1);
	assert_memory_equal(dg.row[dg.n - 1].text, "services: addresses and "
	    "ports: 1 new and 16384", 45);
	/* one less, and there is room */
	found.nservice = XLB_SERVICES - 1;
	s = build();
	assert_int_equal(s.service[0].number, XLB_SERVICES - 1);
}

static void
interfaces_have_a_limit(void **state)
{
	static struct hop many[XLB_PORTS + 1];
	struct hop_table t = { many, XLB_PORTS + 1 };
	char text[64 * (XLB_PORTS + 4)], buf[ADDR_STR_MAX];
	struct state s;
	size_t n;
	uint32_t i;

	(void)state;
	n = (size_t)snprintf(text, sizeof(text), HEAD "pools: {p: {backends: [");
	for (i = 0; i <= XLB_PORTS; i++) {
		many[i].addr = many[i].nexthop.gateway = numbered(i);
		many[i].nexthop.ifindex = i + 2;
		many[i].nexthop.mtu = 1500;
		n += (size_t)snprintf(text + n, sizeof(text) - n,
		    "{name: b%u, address: %s},\n", i,
		    addr_print(&many[i].addr, buf));
	}
	snprintf(text + n, sizeof(text) - n, "]}}\n");
	conf(text);
	in.hops = &t;
	assert_int_equal(state_build(&in, a, &s, &dg), -1);
	assert_string_equal(dg.row[dg.n - 1].text, "backends are behind 257 "
	    "interfaces, more than 256");
	many[XLB_PORTS].nexthop.ifindex--;	/* two behind the last */
	s = build();
	assert_int_equal(s.nport, XLB_PORTS);
	assert_int_equal(s.nnexthop, XLB_PORTS + 1);
}

/* Where the maps are of no use at all, pools are judged all the same. */
static void
pools_are_judged_without_maps(void **state)
{
	static struct state_backend backend[1];
	static struct state_nexthop nexthop[1];
	struct state s;

	(void)state;
	conf(HEAD WEB "pools: {p: {check: c, min_healthy: 2, backends: [\n"
	    "{name: b1, address: 10.0.0.1}, {name: b2, address: 10.0.0.2},\n"
	    "{name: b3, address: 10.0.0.3}, {name: b4, address: 10.0.0.4}]}}\n");
	health_add("10.0.0.1", 80, HEALTH_UP);
	health_add("10.0.0.2", 80, HEALTH_UP);
	health_add("10.0.0.3", 80, HEALTH_DOWN);
	health_add("10.0.0.4", 80, HEALTH_UP);
	hop_add("10.0.0.1", HOP_OK);
	hop_add("10.0.0.2", HOP_RESOLVING);
	hop_add("10.0.0.3", HOP_OK);
	hop_add("10.0.0.4", HOP_NO_ROUTE);
	backend[0] = (struct state_backend){ .addr = ip("10.0.0.2"),
	    .number = 7, .nexthop = 3 };
	nexthop[0] = (struct state_nexthop){ .gateway = ip("10.0.0.2"),
	    .number = 3 };
	found.backend = backend;
	found.nexthop = nexthop;
	found.nbackend = found.nnexthop = 1;
	found.ring_size = 1;		/* state_build() would refuse it */
	found.nring = 1;
	state_judge(&in, a, &s);
	assert_int_equal(s.npool, 1);
	assert_int_equal(s.pool[0].needed, 2);
	assert_int_equal(s.pool[0].eligible, 2);
	assert_true(s.pool[0].ready);
	assert_int_equal(s.pool[0].member[1].why, MEMBER_ELIGIBLE);
	assert_int_equal(s.pool[0].member[2].why, MEMBER_UNHEALTHY);
	assert_int_equal(s.pool[0].member[3].why, MEMBER_NO_ROUTE);
	nexthop[0].number = 4;		/* nor is the way that it had there */
	state_judge(&in, a, &s);
	assert_int_equal(s.pool[0].member[1].why, MEMBER_NO_NEIGHBOR);
	assert_false(s.pool[0].ready);
}

static void
up_is_what_is_not_down(void **state)
{
	static const struct {
		enum health_state health;
		enum member_why why;
		bool up;
	} row[] = {
		{ HEALTH_UP, MEMBER_ELIGIBLE, true },
		{ HEALTH_UP, MEMBER_STATE_DRAIN, true },
		{ HEALTH_UP, MEMBER_WEIGHT_ZERO, true },
		{ HEALTH_DRAIN, MEMBER_ASKS_DRAIN, true },
		{ HEALTH_UP, MEMBER_STATE_DOWN, false },
		{ HEALTH_UP, MEMBER_NO_ROUTE, false },
		{ HEALTH_UP, MEMBER_NO_NEIGHBOR, false },
		{ HEALTH_UP, MEMBER_NO_PORT, false },
		{ HEALTH_DOWN, MEMBER_UNHEALTHY, false },
		{ HEALTH_DOWN, MEMBER_STATE_DRAIN, false },
		{ HEALTH_UNKNOWN, MEMBER_UNKNOWN, false },
	};
	struct state_member m = { 0 };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		m.health = row[i].health;
		m.why = row[i].why;
		if (member_is_up(&m) != row[i].up)
			fail_msg("%s, %s", health_state_text(m.health),
			    member_why_text(m.why));
	}
}

/* Each rule of state_check() catches its breach. */
static void
broken_states_are_found(void **state)
{
	struct ring_cache *rc = ring_cache_new();
	struct state s, good;
	uint32_t *word, *roles;

	(void)state;
	hop_add("10.0.0.1", HOP_OK);
	hop_add("10.0.0.2", HOP_OK);
	conf(HEAD WEB TWO);
	good = build();
	word = arena_calloc(a, good.ring_size, sizeof(*word));
	state_ring_words(rc, &good, &good.ring[0], word);
	good.ring[0].slot = word;
	assert_null(state_check(&good, a));
	s = good;
	s.nvip = 0;
	assert_string_equal(state_check(&s, a), "service 192.0.2.1 proto 6 port "
	    "80: its vip is missing");
	s = good;
	s.nring = 0;
	assert_string_equal(state_check(&s, a), "service 192.0.2.1 proto 6 port "
	    "80: its ring is missing");
	s = good;
	s.nnexthop = 1;
	assert_string_equal(state_check(&s, a), "backend 10.0.0.2: next hop 2 "
	    "is missing");
	s = good;
	s.nport = 0;
	assert_string_equal(state_check(&s, a), "next hop 10.0.0.1: port 2 is "
	    "missing");
	word[5] = XLB_SLOT(1, 0, 3);
	assert_string_equal(state_check(&good, a), "ring p: slot 5: backend 1 "
	    "or 3 is missing");
	word[5] = XLB_SLOT(1, 0, 2);
	assert_null(state_check(&good, a));
	roles = arena_dup(a, good.ring[0].roles, RING_MEMBER_WORDS * 4);
	good.ring[0].roles = roles;
	ring_member_set(roles, 2, 0);
	assert_string_equal(state_check(&good, a), "ring p: slot 5: backend 1 "
	    "or 2 is no member");
	ring_member_set(roles, 2, XLB_MEMBER | XLB_MEMBER_KEEPS);
	good.backend[1].retired = true;
	assert_string_equal(state_check(&good, a), "ring p: keeps flows of "
	    "backend 2, which is missing");
	ring_member_set(roles, 2, XLB_MEMBER);
	assert_null(state_check(&good, a));
	good.service[0].old_ring = 1;
	assert_string_equal(state_check(&good, a), "service 192.0.2.1 proto 6 "
	    "port 80: its old ring is missing");
	good.backend[1].number = 1;
	assert_string_equal(state_check(&good, a), "backend 10.0.0.2: number 1 "
	    "is taken or out of range");
	ring_cache_free(rc);
}

/* Of each kind, what has another's number, or one that is none. */
static void
broken_numbers_are_found(void **state)
{
	struct state_nexthop hops2[2];
	struct state_ring rings[2];
	struct state_service services[2];
	struct state_vip vips[2];
	struct state good, s;

	(void)state;
	hop_add("10.0.0.1", HOP_OK);
	hop_add("10.0.0.2", HOP_OK);
	conf(HEAD "services: [{name: w, addresses: [192.0.2.1, 192.0.2.2],\n"
	    "  listen: [tcp/80], pool: p}]\n"
	    "pools: {p: {backends: [{name: b, address: 10.0.0.1}]},\n"
	    "  q: {backends: [{name: b, address: 10.0.0.2}]}}\n");
	good = build();
	memcpy(hops2, good.nexthop, sizeof(hops2));
	memcpy(rings, good.ring, sizeof(rings));
	memcpy(services, good.service, sizeof(services));
	memcpy(vips, good.vip, sizeof(vips));
	s = good;
	s.nexthop = hops2;
	hops2[1].number = hops2[0].number;
	assert_string_equal(state_check(&s, a), "next hop 10.0.0.2: number 1 "
	    "is taken or out of range");
	s = good;
	s.ring = rings;
	rings[1].number = XLB_RINGS;
	assert_string_equal(state_check(&s, a), "ring q: number 1024 is taken "
	    "or out of range");
	s = good;
	s.nbackend = 1;
	assert_string_equal(state_check(&s, a), "ring q: keeps flows of "
	    "backend 2, which is missing");
	rings[1] = good.ring[1];
	rings[1].roles = arena_alloc(a, RING_MEMBER_WORDS * 4);
	s.ring = rings;
	assert_string_equal(state_check(&s, a), "ring q: backend 2 is missing");
	s = good;
	s.vip = vips;
	vips[1].id = vips[0].id;
	assert_string_equal(state_check(&s, a), "vip 192.0.2.2: id 1 is taken "
	    "or out of range");
	s = good;
	s.service = services;
	services[1].number = services[0].number;
	assert_string_equal(state_check(&s, a), "service 192.0.2.2 proto 6 "
	    "port 80: its number is taken or out of range");
	services[1] = good.service[1];
	services[1].port = 0;
	assert_string_equal(state_check(&s, a), "service 192.0.2.2 proto 6 "
	    "port 0: its vip lacks the flag for any port");
	services[1] = good.service[0];
	assert_string_equal(state_check(&s, a), "service 1 is out of order");
	/* the same one twice, on two addresses' ids */
	services[0].vip_id = 2;
	assert_string_equal(state_check(&s, a), "service 1 is out of order");
	services[1].vip_id = 3;
	assert_string_equal(state_check(&s, a), "service 192.0.2.1 proto 6 "
	    "port 80: its vip is missing");
}

int
main(void)
{
	const struct CMUnitTest test[] = {
		CASE(a_full_table_is_an_error),
		CASE(each_table_has_its_limit),
		CASE(interfaces_have_a_limit),
		CASE(pools_are_judged_without_maps),
		CASE(up_is_what_is_not_down),
		CASE(broken_states_are_found),
		CASE(broken_numbers_are_found),
	};

	return cmocka_run_group_tests_name("state_check", test, NULL, NULL);
}
