/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "state_input.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "core/ids.h"
#include "core/maglev.h"
#include "core/path_mtu.h"
#include "core/ring_words.h"

static void
why_members_are_not_eligible(void **state)
{
	static const struct {
		enum member_why why;
		const char *text;
	} want[] = {
		{ MEMBER_ELIGIBLE, "eligible" },
		{ MEMBER_STATE_DOWN, "state is down" },
		{ MEMBER_STATE_DRAIN, "draining" },
		{ MEMBER_WEIGHT_ZERO, "weight is 0" },
		{ MEMBER_UNHEALTHY, "check fails" },
		{ MEMBER_UNKNOWN, "not checked yet" },
		{ MEMBER_NO_ROUTE, "no route" },
		{ MEMBER_NO_NEIGHBOR, "no neighbour" },
		{ MEMBER_NO_PORT, "interface cannot send XDP frames" },
	};
	struct state s;
	size_t i;
	char addr[16];

	(void)state;
	conf(HEAD WEB "pools: {p: {check: c, min_healthy: 1, backends: [\n"
	    "{name: b1, address: 10.0.0.1},\n"
	    "{name: b2, address: 10.0.0.2, state: down},\n"
	    "{name: b3, address: 10.0.0.3, state: drain},\n"
	    "{name: b4, address: 10.0.0.4, weight: 0},\n"
	    "{name: b5, address: 10.0.0.5},\n"
	    "{name: b6, address: 10.0.0.6},\n"
	    "{name: b7, address: 10.0.0.7},\n"
	    "{name: b8, address: 10.0.0.8},\n"
	    "{name: b9, address: 10.0.0.9}]}}\n");
	for (i = 1; i <= 9; i++) {
		snprintf(addr, sizeof(addr), "10.0.0.%zu", i);
		/* all that comes later in the list is wrong with them, too */
		health_add(addr, 80, i == 1 || i > 6 ? HEALTH_UP :
		    i == 6 ? HEALTH_UNKNOWN : HEALTH_DOWN);
		hop_add(addr, i == 1 ? HOP_OK : i == 8 ? HOP_NO_NEIGHBOR :
		    i == 9 ? HOP_NO_PORT : HOP_NO_ROUTE);
	}
	s = build();
	for (i = 0; i < 9; i++) {
		assert_int_equal(s.pool[0].member[i].why, want[i].why);
		assert_string_equal(member_why_text(want[i].why), want[i].text);
	}
	assert_int_equal(s.pool[0].eligible, 1);
	assert_true(s.pool[0].ready);
	/* weight 0 has a row and a number, but no seat in the ring */
	assert_int_equal(s.nbackend, 9);
	assert_int_equal(s.ring[0].nmember, 8);
	for (i = 0; i < 8; i++)
		assert_int_equal(s.ring[0].eligible[i], i == 0);
	/* as the rows of the maps: no way out, number 0 */
	assert_int_equal(s.nnexthop, 1);
	assert_int_equal(s.backend[0].nexthop, s.nexthop[0].number);
	assert_int_equal(s.backend[1].nexthop, 0);
}

static void
half_of_nothing_is_not_enough(void **state)
{
	struct state s;

	(void)state;
	conf(HEAD WEB "pools: {p: {min_healthy: 50%, backends: []}}\n");
	s = build();
	assert_int_equal(s.pool[0].needed, 1);
	assert_false(s.pool[0].ready);
}

static void
enough_is_a_count_or_a_percentage_rounded_up(void **state)
{
	static const struct {
		const char *min;
		uint32_t needed;
	} row[] = { { "2", 2 }, { "34%", 2 }, { "33%", 1 }, { "67%", 3 },
	    { "100%", 3 } };
	char text[512];
	struct state s;
	size_t i, up;

	(void)state;
	for (i = 1; i <= 3; i++) {
		snprintf(text, sizeof(text), "10.0.0.%zu", i);
		hop_add(text, HOP_OK);
		health_add(text, 80, HEALTH_UP);
	}
	for (i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		snprintf(text, sizeof(text), HEAD WEB
		    "pools: {p: {check: c, min_healthy: %s, backends: [\n"
		    "{name: b1, address: 10.0.0.1},\n"
		    "{name: b2, address: 10.0.0.2},\n"
		    "{name: b3, address: 10.0.0.3}]}}\n", row[i].min);
		conf(text);
		for (up = 0; up <= 3; up++) {
			health[0].fsm.state = up > 0 ? HEALTH_UP : HEALTH_DOWN;
			health[1].fsm.state = up > 1 ? HEALTH_UP : HEALTH_DOWN;
			health[2].fsm.state = up > 2 ? HEALTH_UP : HEALTH_DOWN;
			s = build();
			assert_int_equal(s.pool[0].needed, row[i].needed);
			assert_int_equal(s.pool[0].eligible, up);
			assert_int_equal(s.pool[0].ready,
			    up >= row[i].needed);
		}
	}
}

static void
a_pool_may_fail_open(void **state)
{
	struct state s;

	(void)state;
	conf(HEAD WEB "pools: {p: {check: c, fail_open: true, backends: [\n"
	    "{name: b1, address: 10.0.0.1},\n"
	    "{name: b2, address: 10.0.0.2, state: drain},\n"
	    "{name: b3, address: 10.0.0.3},\n"
	    "{name: b4, address: 10.0.0.4}]}}\n");
	hop_add("10.0.0.1", HOP_OK);
	hop_add("10.0.0.2", HOP_OK);
	hop_add("10.0.0.3", HOP_NO_ROUTE);
	hop_add("10.0.0.4", HOP_OK);
	/* nothing is known: a node that starts does not announce blindly */
	s = build();
	assert_false(s.pool[0].failed_open || s.pool[0].ready);
	assert_false(s.ring[0].eligible[0]);
	health_add("10.0.0.1", 80, HEALTH_DOWN);
	health_add("10.0.0.2", 80, HEALTH_UP);
	health_add("10.0.0.3", 80, HEALTH_UP);
	s = build();
	assert_true(s.pool[0].failed_open && s.pool[0].ready);
	assert_int_equal(s.pool[0].eligible, 0);
	assert_true(s.ring[0].eligible[0] && s.ring[0].eligible[3]);
	assert_true(s.pool[0].member[0].keeps && s.pool[0].member[3].keeps);
	assert_false(s.ring[0].eligible[1] || s.ring[0].eligible[2]);
	health_add("10.0.0.4", 80, HEALTH_UP);
	s = build();
	assert_false(s.pool[0].failed_open);
	assert_true(s.pool[0].ready);
	assert_false(s.ring[0].eligible[0]);
}

/* As `state: drain`, said by the backend itself. */
static void
a_backend_may_ask_for_no_new_flows(void **state)
{
	struct state s;

	(void)state;
	conf(HEAD WEB "pools: {p: {check: c, fail_open: true, backends: [\n"
	    "{name: b1, address: 10.0.0.1},\n"
	    "{name: b2, address: 10.0.0.2}]}}\n");
	hop_add("10.0.0.1", HOP_OK);
	hop_add("10.0.0.2", HOP_OK);
	health_add("10.0.0.1", 80, HEALTH_DRAIN);
	health_add("10.0.0.2", 80, HEALTH_UP);
	s = build();
	assert_int_equal(s.pool[0].member[0].why, MEMBER_ASKS_DRAIN);
	assert_string_equal(member_why_text(MEMBER_ASKS_DRAIN),
	    "asks for no new flows");
	assert_int_equal(s.pool[0].eligible, 1);
	assert_false(s.ring[0].eligible[0]);
	/* those that it has stay: the packet path reads this word */
	assert_true(s.pool[0].member[0].keeps);
	assert_int_equal(ring_member(s.ring[0].roles,
	    s.pool[0].member[0].number), XLB_MEMBER | XLB_MEMBER_KEEPS);
	/* nor is it the last resort of a pool that fails open */
	health[1].fsm.state = HEALTH_DOWN;
	s = build();
	assert_true(s.pool[0].failed_open);
	assert_false(s.ring[0].eligible[0]);
	assert_true(s.ring[0].eligible[1]);
	health[1].fsm.state = HEALTH_DRAIN;
	s = build();
	assert_false(s.pool[0].failed_open || s.pool[0].ready);
}

#define TWO "pools: {p: {backends: [{name: b1, address: 10.0.0.1},\n" \
	"{name: b2, address: 10.0.0.2, state: drain}]}}\n"

static void
overrides_end_when_the_file_changes(void **state)
{
	const struct conf *c;
	struct state s;

	(void)state;
	c = conf(HEAD WEB TWO);
	hop_add("10.0.0.1", HOP_OK);
	hop_add("10.0.0.2", HOP_OK);
	override[0] = (struct override){ "p", ip("10.0.0.1"), BACKEND_DRAIN,
	    BACKEND_ACTIVE, 0 };
	override[1] = (struct override){ "p", ip("10.0.0.2"), BACKEND_ACTIVE,
	    BACKEND_DRAIN, 0 };
	overrides.n = 2;
	s = build();
	assert_int_equal(s.pool[0].member[0].why, MEMBER_STATE_DRAIN);
	assert_int_equal(s.pool[0].member[1].why, MEMBER_ELIGIBLE);
	assert_true(override_live(c, &override[0]));
	override[1].file_state = BACKEND_DOWN;	/* the file was edited */
	s = build();
	assert_int_equal(s.pool[0].member[1].why, MEMBER_STATE_DRAIN);
	assert_false(override_live(c, &override[1]));
	override[0].addr = ip("10.0.0.3");
	assert_false(override_live(c, &override[0]));
	override[0].pool = "q";
	assert_false(override_live(c, &override[0]));
	override[2] = (struct override){ NULL, { { 0 } }, BACKEND_DRAIN,
	    BACKEND_ACTIVE, 0 };
	assert_int_equal(override_node(c, &overrides), NODE_ACTIVE);
	overrides.n = 3;
	assert_true(override_live(c, &override[2]));
	assert_int_equal(override_node(c, &overrides), NODE_DRAIN);
	override[2].file_state = BACKEND_DRAIN;
	assert_int_equal(override_node(c, &overrides), NODE_ACTIVE);
	assert_int_equal(override_node(conf("node: {state: drain}\n"),
	    &overrides), NODE_DRAIN);
}

/* The neighbour of a backend that is in use is being asked for. */
static void
a_way_out_is_kept_while_it_is_asked_for(void **state)
{
	struct state s;

	(void)state;
	conf(HEAD WEB TWO);
	hop_add("10.0.0.1", HOP_OK)->nexthop.mac[5] = 7;
	hop_add("10.0.0.2", HOP_RESOLVING);
	s = found = build();
	assert_int_equal(s.pool[0].member[0].why, MEMBER_ELIGIBLE);
	hop[0].status = HOP_RESOLVING;
	memset(&hop[0].nexthop, 0, sizeof(hop[0].nexthop));
	s = build();
	assert_int_equal(s.pool[0].member[0].why, MEMBER_ELIGIBLE);
	assert_int_equal(s.nnexthop, 1);
	assert_int_equal(s.nexthop[0].mac[5], 7);
	/* not asked for at all yet: the same */
	hops.n = 0;
	s = build();
	assert_int_equal(s.nnexthop, 1);
	hops.n = 2;
	hop[0].status = HOP_NO_NEIGHBOR;
	s = found = build();
	assert_int_equal(s.nnexthop, 0);
	assert_int_equal(s.pool[0].ready, false);
	/* and once lost it is not back before it is whole */
	hop[0].status = HOP_RESOLVING;
	s = build();
	assert_int_equal(s.pool[0].member[0].why, MEMBER_NO_NEIGHBOR);
}

static void
next_hops_are_shared_but_not_across_vlans(void **state)
{
	struct hop *h;
	struct state s;

	(void)state;
	conf(HEAD WEB TWO);
	h = hop_add("10.0.0.1", HOP_OK);
	h->nexthop.gateway = ip("fe80::1");
	hop[1] = hop[0];
	hop[1].addr = ip("10.0.0.2");
	hops.n = 2;
	s = build();
	assert_int_equal(s.nnexthop, 1);
	assert_int_equal(s.backend[0].nexthop, s.backend[1].nexthop);
	hop[1].nexthop.vlan = 20;
	s = build();
	assert_int_equal(s.nnexthop, 2);
	assert_int_not_equal(s.backend[0].nexthop, s.backend[1].nexthop);
}

static void
rows_keep_their_numbers(void **state)
{
	static uint32_t slot[65537];
	struct state one, two;
	size_t i;

	(void)state;
	hop_add("10.0.0.1", HOP_OK);
	hop_add("10.0.0.2", HOP_OK);
	hop_add("10.0.0.3", HOP_OK);
	hop_add("10.0.0.4", HOP_OK);
	conf(HEAD "pools:\n"
	    "  p: {backends: [{name: x, address: 10.0.0.2}]}\n"
	    "  q: {backends: [{name: x, address: 10.0.0.3}]}\n"
	    "services:\n"
	    "  - {name: w, addresses: [192.0.2.5], listen: [tcp/80], pool: p}\n"
	    "  - {name: v, addresses: [192.0.2.7], listen: [tcp/80], pool: q}\n");
	one = build();
	one.ring[0].slot = one.ring[1].slot = slot;
	found = one;
	/* something before, between and after each; q is replaced by r, with
	 * another order in the file */
	conf(HEAD "pools:\n"
	    "  r: {backends: [{name: x, address: 10.0.0.3},\n"
	    "     {name: y, address: 10.0.0.1}]}\n"
	    "  a: {backends: [{name: x, address: 10.0.0.4}]}\n"
	    "  p: {backends: [{name: x, address: 10.0.0.2}]}\n"
	    "services:\n"
	    "  - {name: u, addresses: [192.0.2.6, 192.0.2.5], listen: [tcp/80,\n"
	    "     udp/53, udp/54], pool: p}\n"
	    "  - {name: v, addresses: [192.0.2.7], listen: [tcp/81], pool: r}\n");
	two = build();
	assert_int_equal(two.backend[1].number, one.backend[0].number);
	assert_int_equal(two.backend[2].number, one.backend[1].number);
	assert_int_equal(two.nexthop[1].number, one.nexthop[0].number);
	assert_string_equal(two.ring[1].pool, "p");
	assert_int_equal(two.ring[1].number, one.ring[0].number);
	/* q's number is not given to a or r while q is there */
	for (i = 0; i < 3; i += 2)
		assert_int_not_equal(two.ring[i].number, one.ring[1].number);
	assert_int_equal(two.nvip, 3);
	assert_int_equal(two.vip[0].id, one.vip[0].id);
	assert_int_equal(two.vip[2].id, one.vip[1].id);
	assert_int_equal(two.nservice, 7);
	assert_int_equal(two.service[0].number, one.service[0].number);
	for (i = 1; i < 7; i++)
		assert_int_not_equal(two.service[i].number,
		    one.service[1].number);
	/* port 53 is a datagram service by default, on UDP alone */
	assert_int_equal(two.service[0].flags, 0);
	assert_int_equal(two.service[1].flags, XLB_SERVICE_DATAGRAM);
	assert_int_equal(two.service[2].flags, 0);
	/* a number that only a slot names means nobody new, either */
	slot[7] = XLB_SLOT(3, 0, 4);
	two = build();
	assert_int_equal(two.backend[0].number, 5);
	assert_int_equal(two.backend[3].number, 6);
}

/* As the maps would hold it: owners, no flows. */
static void
found_now(struct state s)
{
	static uint32_t slot[65537];
	size_t i;

	for (i = 0; i < s.nring; i++)
		s.ring[i].slot = slot;
	found = s;
}

#define FOUR(name) "  " name ": {backends: [{name: b1, address: 10.0.0.1},\n" \
	"     {name: b2, address: 10.0.0.2}, {name: b3, address: 10.0.0.3},\n" \
	"     {name: b4, address: 10.0.0.4}]}\n"

static void
a_pool_that_is_renamed_keeps_its_ring(void **state)
{
	struct state one, two;

	(void)state;
	conf(HEAD "pools:\n" FOUR("p")
	    "  q: {backends: [{name: x, address: 10.0.0.3},\n"
	    "     {name: y, address: 10.0.0.4}]}\n");
	found_now(one = build());
	assert_string_equal(one.ring[0].pool, "p");
	conf(HEAD "pools:\n" FOUR("z")
	    "  q: {backends: [{name: x, address: 10.0.0.3},\n"
	    "     {name: y, address: 10.0.0.4}]}\n");
	two = build();
	assert_string_equal(two.ring[1].pool, "z");
	assert_int_equal(two.ring[1].number, one.ring[0].number);
	assert_int_equal(two.ring[0].number, one.ring[1].number);
	/* with a member less it is still known; with half of them it is not */
	conf(HEAD "pools: {a: {backends: [{name: b1, address: 10.0.0.1},\n"
	    "     {name: b2, address: 10.0.0.2}, {name: b3, address: "
	    "10.0.0.3}]}}\n");
	two = build();
	assert_int_equal(two.ring[0].number, one.ring[0].number);
	conf(HEAD "pools: {a: {backends: [{name: b1, address: 10.0.0.1},\n"
	    "     {name: b2, address: 10.0.0.2}]}}\n");
	two = build();
	assert_int_equal(two.ring[0].number, 2);
	/* the name counts before the members: they were exchanged */
	conf(HEAD "pools:\n" FOUR("q")
	    "  p: {backends: [{name: x, address: 10.0.0.3},\n"
	    "     {name: y, address: 10.0.0.4}]}\n");
	two = build();
	assert_int_equal(two.ring[0].number, one.ring[0].number);
	assert_int_equal(two.ring[1].number, one.ring[1].number);
}

#define ON(pool) "services:\n  - {name: w, addresses: [192.0.2.5], listen: " \
	"[tcp/80, udp/53], pool: " pool "}\n"
#define PQR "pools:\n  p: {backends: [{name: x, address: 10.0.0.1}]}\n" \
	"  q: {backends: [{name: x, address: 10.0.0.2}]}\n" \
	"  r: {backends: [{name: x, address: 10.0.0.3}]}\n"

static void
a_service_that_changes_its_pool_remembers_the_old_one(void **state)
{
	struct state s;

	(void)state;
	conf(HEAD PQR ON("p"));
	found_now(s = build());
	assert_int_equal(s.service[0].old_ring, s.ring[0].number);
	assert_int_equal(s.service[0].flags, 0);
	conf(HEAD PQR ON("q"));
	found_now(s = build());
	assert_int_equal(s.service[0].ring, s.ring[1].number);
	assert_int_equal(s.service[0].old_ring, s.ring[0].number);
	assert_int_equal(s.service[0].flags, XLB_SERVICE_LOOKUP);
	/* datagrams belong to no flow */
	assert_int_equal(s.service[1].old_ring, s.ring[1].number);
	assert_int_equal(s.service[1].flags, XLB_SERVICE_DATAGRAM);
	/* it stays, and of a second change the first counts */
	found_now(s = build());
	assert_int_equal(s.service[0].old_ring, s.ring[0].number);
	conf(HEAD PQR ON("r"));
	found_now(s = build());
	assert_int_equal(s.service[0].ring, s.ring[2].number);
	assert_int_equal(s.service[0].old_ring, s.ring[0].number);
	/* back where it came from: nobody else to ask, but still looked up */
	conf(HEAD PQR ON("p"));
	found_now(s = build());
	assert_int_equal(s.service[0].old_ring, s.ring[0].number);
	assert_int_equal(s.service[0].flags, XLB_SERVICE_LOOKUP);
	/* time has passed: both are kept as they are found */
	found.service[0].flags = 0;
	s = build();
	assert_int_equal(s.service[0].flags, 0);
	/* a ring that is not there cannot be asked */
	found_now(s = build());
	found.nring = 0;
	conf(HEAD PQR ON("q"));
	s = build();
	assert_int_equal(s.service[0].old_ring, s.service[0].ring);
	assert_int_equal(s.service[0].flags, XLB_SERVICE_LOOKUP);
}

static void
who_keeps_its_flows(void **state)
{
	static const uint32_t want[] = { 3, 1, 3, 3, 1, 3, 1, 1, 1 };
	struct state s;
	size_t i;
	char addr[16];

	(void)state;
	conf(HEAD WEB "pools: {p: {check: c, backends: [\n"
	    "{name: b1, address: 10.0.0.1},\n"
	    "{name: b2, address: 10.0.0.2, state: down},\n"
	    "{name: b3, address: 10.0.0.3, state: drain},\n"
	    "{name: b4, address: 10.0.0.4, weight: 0},\n"
	    "{name: b5, address: 10.0.0.5},\n"		/* check fails */
	    "{name: b6, address: 10.0.0.6},\n"		/* not checked yet */
	    "{name: b7, address: 10.0.0.7},\n"		/* no route */
	    "{name: b8, address: 10.0.0.8, state: drain},\n"	/* and dead */
	    "{name: b9, address: 10.0.0.9, state: drain}]}}\n"); /* no hop */
	for (i = 1; i <= 9; i++) {
		snprintf(addr, sizeof(addr), "10.0.0.%zu", i);
		health_add(addr, 80, i == 5 || i == 8 ? HEALTH_DOWN :
		    i == 6 ? HEALTH_UNKNOWN : HEALTH_UP);
		hop_add(addr, i == 7 ? HOP_NO_ROUTE :
		    i == 9 ? HOP_NO_NEIGHBOR : HOP_OK);
	}
	s = build();
	for (i = 0; i < 9; i++) {
		assert_int_equal(s.pool[0].member[i].keeps, want[i] == 3);
		assert_int_equal(ring_member(s.ring[0].roles,
		    s.pool[0].member[i].number), want[i]);
	}
	assert_int_equal(ring_member_next(s.ring[0].roles, 10), XLB_BACKENDS);
}

static void
addresses_say_what_listens(void **state)
{
	struct conf c;
	struct state s;

	(void)state;
	local[0] = ip("192.0.2.2");
	in.nlocal = 1;
	c = *conf(HEAD "pools: {p: {backends: []}}\nservices:\n"
	    "  - {name: a, addresses: [192.0.2.1], listen: [tcp/*], pool: p}\n"
	    "  - {name: b, addresses: [192.0.2.2], listen: [udp/*, tcp/1],\n"
	    "     pool: p, hash: source, udp: datagram}\n"
	    "  - {name: c, addresses: [192.0.2.3], listen: [udp/53], pool: p}\n");
	c.service[2].udp = UDP_SESSION;
	s = build();
	assert_int_equal(s.vip[0].flags, XLB_VIP_ANY_TCP);
	assert_int_equal(s.vip[1].flags, XLB_VIP_LOCAL | XLB_VIP_ANY_UDP);
	assert_int_equal(s.vip[2].flags, 0);
	/* tcp before udp */
	assert_int_equal(s.service[1].flags, XLB_SERVICE_HASH_SOURCE);
	assert_int_equal(s.service[2].flags,
	    XLB_SERVICE_HASH_SOURCE | XLB_SERVICE_DATAGRAM);
	assert_int_equal(s.service[3].flags, 0);
	assert_false(s.pool[0].ready);
}

/* The program compares with one number. */
static void
the_tunnels_mtu_is_the_ways_if_it_is_less(void **state)
{
	struct conf c;
	struct state s;

	(void)state;
	c = *conf(HEAD WEB TWO);
	in.conf = &c;
	hop_add("10.0.0.1", HOP_OK)->nexthop.mtu = 1300;
	hop_add("10.0.0.2", HOP_OK);
	hop[1].nexthop.gateway = ip("10.0.0.9");
	c.tunnel_mtu = 1400;
	s = build();
	assert_int_equal(s.nnexthop, 2);
	assert_int_equal(s.nexthop[0].mtu, 1300);
	assert_int_equal(s.nexthop[1].mtu, 1400);
	c.tunnel_mtu = 0;
	s = build();
	assert_int_equal(s.nexthop[0].mtu, 1300);
	assert_int_equal(s.nexthop[1].mtu, 1500);
}

/* Two behind the same gateway, one of them behind less: a row for each. */
static void
what_a_path_carries_is_its_own(void **state)
{
	struct path_mtu row[2] = { { .limit = 1500, .carries = 1460 },
		{ .limit = 1500, .carries = 1500 } };
	struct path_table paths = { row, 2 };
	struct state s;

	(void)state;
	in.conf = conf(HEAD WEB TWO);
	hop_add("10.0.0.1", HOP_OK);
	hop_add("10.0.0.2", HOP_OK);
	row[0].addr = ip("10.0.0.1");
	row[1].addr = ip("10.0.0.2");
	hop[1].nexthop.gateway = hop[0].nexthop.gateway;
	s = build();
	assert_int_equal(s.nnexthop, 1);
	in.paths = &paths;
	s = build();
	assert_int_equal(s.nnexthop, 2);
	assert_int_equal(s.nexthop[0].mtu, 1460);
	assert_int_equal(s.nexthop[1].mtu, 1500);
	assert_int_equal(s.backend[0].nexthop, s.nexthop[0].number);
	assert_int_equal(s.backend[1].nexthop, s.nexthop[1].number);
	/* more than the link takes is no more than that */
	hop[0].nexthop.mtu = hop[1].nexthop.mtu = 1400;
	s = build();
	assert_int_equal(s.nnexthop, 1);
	assert_int_equal(s.nexthop[0].mtu, 1400);
	in.paths = NULL;
}

static const struct state_vip *
vip_of(const struct state *s, const char *text)
{
	struct addr x = ip(text);
	size_t i;

	for (i = 0; i < s->nvip; i++)
		if (addr_cmp(&s->vip[i].addr, &x) == 0)
			return &s->vip[i];
	return NULL;
}

#define NAT "services: [{name: w, addresses: [192.0.2.1], listen: [tcp/80]," \
	" pool: p, forward: nat, backend_port: 8080}]\n"
#define BOTH "pools: {p: {backends: [{name: b1, address: 10.0.0.1}, " \
	"{name: b2, address: 10.0.0.2}]}, q: {backends: " \
	"[{name: b3, address: 10.0.0.3}]}}\n"

/* What NAT sends from: by default the route's, in a pool that NAT sends to. */
static void
nat_has_addresses_and_doors(void **state)
{
	const struct state_vip *v;
	struct state s;

	(void)state;
	conf(HEAD NAT BOTH);
	hop_add("10.0.0.1", HOP_OK);
	hop_add("10.0.0.2", HOP_OK)->nexthop.src = ip("10.9.9.9");
	hop_add("10.0.0.3", HOP_OK);
	in.door[0] = (struct state_door){ .ifindex = 7, .mtu = 1500 };
	in.ndoor = 1;
	s = build();
	assert_int_equal(s.nsource, 2);
	assert_int_equal(s.backend[0].sources, 1 << s.source[0].number);
	assert_int_equal(s.backend[1].sources, 1 << s.source[1].number);
	assert_int_equal(s.backend[2].sources, 0);
	assert_int_equal(s.ndoor, 1);
	assert_int_equal(s.nport, 2);	/* 2: the next hops'; 7: the door's */
	v = vip_of(&s, "10.9.9.9");
	assert_true(v != NULL && v->own && v->flags == XLB_VIP_SOURCE);
	v = vip_of(&s, "192.0.2.1");
	assert_true(v != NULL && !v->own && v->flags == 0);
	assert_int_equal(s.service[0].backend_port, 8080);
	assert_int_equal(s.service[0].flags,
	    XLB_FORWARD_NAT | XLB_SERVICE_NAT);
	conf("nat: {source_ipv4: [10.0.0.7, 10.0.0.8]}\n" HEAD NAT BOTH);
	s = build();
	assert_int_equal(s.nsource, 2);
	assert_int_equal(s.backend[0].sources, 3);
	assert_int_equal(s.backend[1].sources, 3);
	/* the host's own address as a VIP */
	conf("nat: {source_ipv4: [10.0.0.7]}\n" HEAD BOTH "services: [{name: w,"
	    " addresses: [10.0.0.254], listen: [tcp/80], pool: p, forward: "
	    "nat}, {name: x, addresses: [10.0.0.6], listen: [tcp/80], pool: q}"
	    "]\n");
	s = build();
	assert_int_equal(s.nvip, 3);
	conf(HEAD WEB BOTH);
	s = build();
	assert_int_equal(s.nsource + s.ndoor, 0);
	assert_int_equal(s.nvip, 1);
}

/* An address that is not wanted stays as long as flows have it, by its number. */
static void
nat_keeps_what_flows_have(void **state)
{
	struct state s;

	(void)state;
	conf("nat: {source_ipv4: [10.0.0.7, 10.0.0.8]}\n" HEAD NAT BOTH);
	hop_add("10.0.0.1", HOP_OK);
	s = build();
	assert_int_equal(s.source[1].number, 1);
	found = s;
	found.nring = 0;
	conf("nat: {source_ipv4: [10.0.0.6, 10.0.0.8]}\n" HEAD NAT BOTH);
	in.named_sources = 1;
	s = build();
	assert_int_equal(s.nsource, 3);
	assert_int_equal(s.source[1].number, 0);	/* 10.0.0.7 */
	assert_int_equal(s.source[2].number, 1);
	assert_int_equal(s.source[0].number, 2);
	assert_int_equal(s.backend[0].sources, 1 << 1 | 1 << 2);
	assert_true(vip_of(&s, "10.0.0.7")->own);
	in.named_sources = 0;
	s = build();
	assert_int_equal(s.nsource, 2);
	assert_null(vip_of(&s, "10.0.0.7"));
}

static void
settings_are_as_the_program_wants_them(void **state)
{
	static const uint8_t mask6[16] = { [8] = 0xff, 0xff, 0xff, 0xff, 0xff,
	    0xff, 0xff, 0xff };
	struct conf c;
	struct state s;

	(void)state;
	c = *conf("tunnel: {source_ipv4: 10.255.0.0/20,\n"
	    "  source_ipv6: \"2001:db8:ff::/64\"}\n"
	    "maglev: {table_size: 1009, seed: 7}\n");
	c.gue_port = 6081;
	c.tunnel_mtu = 1400;
	in.conf = &c;
	in.hash_key[15] = 9;
	s = build();
	assert_int_equal(s.settings.abi, XLB_ABI);
	assert_int_equal(s.settings.ring_size, 1009);
	assert_int_equal(s.settings.seed, 7);
	assert_int_equal(s.settings.hash_key[15], 9);
	assert_int_equal(ntohl(s.settings.source4), 0x0aff0000);
	assert_int_equal(ntohl(s.settings.source4_mask), 0x00000fff);
	assert_int_equal(s.settings.source6[5], 0xff);
	assert_memory_equal(s.settings.source6_mask, mask6, 16);
	assert_int_equal(s.settings.tunnel_mtu, 1400);
	assert_int_equal(s.settings.gue_port, 6081);
	assert_int_equal(s.settings.flow_budget, 4096);
	c.flow_entries = 1024;
	assert_int_equal(build().settings.flow_budget, 16);
}

static void
what_would_move_every_flow_is_refused(void **state)
{
	struct state s;

	(void)state;
	hop_add("10.0.0.1", HOP_OK);
	conf(HEAD WEB TWO);
	s = build();
	assert_int_equal(state_keeps_flows(&s, &found, &dg), 0);
	found = s;
	assert_int_equal(state_keeps_flows(&s, &found, &dg), 0);
	found.service = arena_dup(a, s.service, sizeof(*s.service));
	found.service[0].flags ^= XLB_SERVICE_HASH_SOURCE;
	assert_int_equal(state_keeps_flows(&s, &found, &dg), -1);
	assert_string_equal(dg.row[dg.n - 1].text, "service 192.0.2.1:80/tcp: "
	    "another `hash` moves every flow: drain the node, then "
	    "`xlb restart --flush`");
	found.service = s.service;
	found.settings.seed++;
	assert_int_equal(state_keeps_flows(&s, &found, &dg), -1);
	found.settings = s.settings;
	found.settings.hash_key[3]++;
	assert_int_equal(state_keeps_flows(&s, &found, &dg), -1);
	found.settings = s.settings;
	found.settings.ring_size = 251;
	assert_int_equal(state_keeps_flows(&s, &found, &dg), -1);
	/* rings of another size cannot even be compared */
	found = s;
	found.ring_size = 251;
	assert_int_equal(state_build(&in, a, &s, &dg), -1);
}

#define AGREE 5

/* The address of each slot's owner, and the ring's fingerprint. */
static uint64_t
owners(struct addr out[65537])
{
	static uint32_t word[65537];
	struct ring_cache *rc = ring_cache_new();
	struct state s = build();
	uint64_t f = state_ring_fingerprint(rc, &s, &s.ring[0]);
	size_t i, k;

	state_ring_words(rc, &s, &s.ring[0], word);
	for (i = 0; i < 65537; i++) {
		for (k = 0; s.backend[k].number != XLB_SLOT_CUR(word[i]); k++)
			;
		out[i] = s.backend[k].addr;
	}
	ring_cache_free(rc);
	return f;
}

/* Nodes do not talk: names, order in the file and numbers that backends happen
 * to have make no difference, and one that finds a backend down is of another
 * mind about that one's slots alone. */
static void
nodes_agree_without_talking(void **state)
{
	static struct addr one[65537], other[65537];
	static struct state_backend had[AGREE];
	struct addr lost = ip("10.0.0.3");
	char addr[16];
	size_t i, moved = 0;
	uint64_t f;

	(void)state;
	for (i = 0; i < AGREE; i++) {
		snprintf(addr, sizeof(addr), "10.0.0.%zu", i + 1);
		hop_add(addr, HOP_OK);
		health_add(addr, 80, HEALTH_UP);
		had[i].addr = ip(addr);
		had[i].number = (uint32_t)(900 - i * 7);
	}
	conf(HEAD WEB "pools: {p: {check: c, backends: ["
	    "{name: b1, address: 10.0.0.1}, {name: b2, address: 10.0.0.2},\n"
	    "{name: b3, address: 10.0.0.3, weight: 70},\n"
	    "{name: b4, address: 10.0.0.4, weight: 30},\n"
	    "{name: b5, address: 10.0.0.5}]}}\n");
	f = owners(one);
	conf("pools: {p: {backends: ["
	    "{weight: 30, address: 10.0.0.4, name: x}, "
	    "{name: b1, address: 10.0.0.2}, {name: b2, address: 10.0.0.1},\n"
	    "{name: y, address: 10.0.0.5}, "
	    "{name: z, weight: 70, address: 10.0.0.3}], check: c}}\n"
	    WEB HEAD);
	found.backend = had;
	found.nbackend = AGREE;
	assert_true(owners(other) == f);
	assert_memory_equal(one, other, sizeof(one));
	health[2].fsm.state = HEALTH_DOWN;
	assert_true(owners(other) != f);
	for (i = 0; i < 65537; i++) {
		assert_int_not_equal(addr_cmp(&other[i], &lost), 0);
		if (addr_cmp(&one[i], &lost) == 0)
			moved++;
		else if (addr_cmp(&one[i], &other[i]) != 0)
			fail_msg("slot %zu moved", i);
	}
	assert_true(moved > 10000);
}

static void
rings_are_those_of_maglev(void **state)
{
	static uint16_t owner[65537];
	static uint32_t word[65537];
	struct ring_cache *rc = ring_cache_new();
	struct state s;
	size_t i, round;

	(void)state;
	hop_add("10.0.0.1", HOP_OK);
	hop_add("10.0.0.2", HOP_OK);
	conf(HEAD WEB "pools: {p: {backends: [{name: b1, address: 10.0.0.1},\n"
	    "{name: b2, address: 10.0.0.2, weight: 50}]}}\n");
	/* the second time from the cache, the third after it was emptied */
	for (round = 0; round < 3; round++) {
		s = build();
		maglev_build(s.ring[0].member, 2, s.seed, 65537, owner);
		state_ring_words(rc, &s, &s.ring[0], word);
		for (i = 0; i < 65537; i++)
			assert_int_equal(word[i], s.backend[owner[i]].number);
		assert_true(state_ring_fingerprint(rc, &s, &s.ring[0]) ==
		    maglev_fingerprint(s.ring[0].member, 2, 65537, owner));
		if (round == 1) {
			s.nring = 0;
			ring_cache_trim(rc, &s);
		}
	}
	/* nobody is eligible: no backend, everywhere */
	hop[0].status = hop[1].status = HOP_NO_ROUTE;
	s = build();
	state_ring_words(rc, &s, &s.ring[0], word);
	for (i = 0; i < 65537; i++)
		assert_int_equal(word[i], 0);
	ring_cache_free(rc);
}

static void
numbers_are_the_lowest_free(void **state)
{
	struct ids ids;

	(void)state;
	ids_init(&ids, 1, 130, a);
	assert_false(ids_take(&ids, 0));
	assert_false(ids_take(&ids, 130));
	assert_true(ids_take(&ids, 2));
	assert_false(ids_take(&ids, 2));
	assert_int_equal(ids_new(&ids), 1);
	assert_int_equal(ids_new(&ids), 3);
	while (ids_new(&ids) != 129)
		;
	assert_int_equal(ids_new(&ids), IDS_NONE);
	assert_true(ids_taken(&ids, 129));
	assert_false(ids_taken(&ids, 130));
}

int
main(void)
{
	const struct CMUnitTest test[] = {
		CASE(why_members_are_not_eligible),
		CASE(half_of_nothing_is_not_enough),
		CASE(enough_is_a_count_or_a_percentage_rounded_up),
		CASE(a_pool_may_fail_open),
		CASE(a_backend_may_ask_for_no_new_flows),
		CASE(overrides_end_when_the_file_changes),
		CASE(a_way_out_is_kept_while_it_is_asked_for),
		CASE(next_hops_are_shared_but_not_across_vlans),
		CASE(rows_keep_their_numbers),
		CASE(a_pool_that_is_renamed_keeps_its_ring),
		CASE(a_service_that_changes_its_pool_remembers_the_old_one),
		CASE(who_keeps_its_flows),
		CASE(addresses_say_what_listens),
		CASE(the_tunnels_mtu_is_the_ways_if_it_is_less),
		CASE(what_a_path_carries_is_its_own),
		CASE(nat_has_addresses_and_doors),
		CASE(nat_keeps_what_flows_have),
		CASE(settings_are_as_the_program_wants_them),
		CASE(what_would_move_every_flow_is_refused),
		CASE(nodes_agree_without_talking),
		CASE(rings_are_those_of_maglev),
		CASE(numbers_are_the_lowest_free),
	};

	return cmocka_run_group_tests_name("state", test, NULL, NULL);
}
