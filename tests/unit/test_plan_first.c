/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A node that begins: while a backend drains, and before all are known. */
#include "unit.h"

#include <string.h>

#include "core/arena.h"
#include "core/diag.h"
#include "core/plan.h"
#include "core/ring_words.h"
#include "fake/maps_mem.h"

#define SIZE 1021
#define BACKENDS 3
#define DRAINS 1		/* which of them */
#define TICK 1000
#define NOW 1700000000000000000LL
#define S 1000000000LL

static const char *const addrs[BACKENDS] = { "10.0.0.1", "10.0.0.2",
    "10.0.0.3" };

#define CONF(members) "interfaces: [{name: eth0}]\n" \
    "maglev: {table_size: 1021}\n" \
    "checks: {c: {type: tcp, port: 80, via: direct}}\n" \
    "services: [{name: w, addresses: [192.0.2.1], listen: [tcp/80], pool: p}]\n" \
    "pools: {p: {check: c, backends: [" members "]}}\n"
#define B2 "{name: b2, address: 10.0.0.2}"

static const char two[] = CONF("{name: b1, address: 10.0.0.1}, " B2);
static const char less[] = CONF("{name: b1, address: 10.0.0.1, weight: 50}, "
    B2);
static const char weightless[] = CONF("{name: b1, address: 10.0.0.1, weight: 0}, "
    B2);
static const char drained[] = CONF("{name: b1, address: 10.0.0.1, state: drain}, "
    B2);
static const char three[] = CONF("{name: b1, address: 10.0.0.1}, " B2
    ", {name: b3, address: 10.0.0.3}");

static struct arena *a;
static struct state found, wanted, last;

struct begin {
	enum backend_state state;	/* by `xlb drain` or `undrain` */
	int64_t ago;			/* ns */
	enum health_state health;	/* of the one that drains */
	enum health_state others;
};

/* How the maps get from `found` to what file, checks and drains say. */
static void
plan_for(const char *text, const struct override_list *overrides,
    const enum health_state *is, uint32_t tick, struct plan *plan)
{
	struct conf_source src = { "f", text, strlen(text) };
	struct health_row health[BACKENDS];
	struct health_table table = { health, BACKENDS };
	struct hop hop[BACKENDS];
	struct hop_table hops = { hop, BACKENDS };
	struct state_input in = { .overrides = overrides, .health = &table,
	    .hops = &hops, .found = &found, .before = &last, .now = NOW };
	struct ring_cache *rc = ring_cache_new();
	struct diag dg;
	size_t i;

	last = wanted;
	memset(hop, 0, sizeof(hop));
	memset(health, 0, sizeof(health));
	for (i = 0; i < BACKENDS; i++) {
		assert_int_equal(addr_parse(addrs[i], &hop[i].addr), 0);
		hop[i].nexthop.gateway = health[i].addr = hop[i].addr;
		hop[i].nexthop.ifindex = 2;
		hop[i].nexthop.mtu = 1500;
		hop[i].nexthop.mac[0] = 2;
		health[i].port = 80;
		health[i].check = "c";
		health[i].fsm.state = is[i];
	}
	diag_init(&dg);
	if (conf_load(&src, 1, a, &in.conf, &dg) < 0 ||
	    state_build(&in, a, &wanted, &dg) < 0)
		fail_msg("%s", dg.row[0].text);
	diag_fini(&dg);
	plan_build(&wanted, &found, rc, tick, a, plan);
	ring_cache_free(rc);
}

/* The new ring's slots, by the operation that makes it. */
static const struct op_ring *
first_ring(const struct begin *b)
{
	struct override o = { .pool = "p", .state = b->state,
	    .file_state = BACKEND_ACTIVE, .since = NOW - b->ago };
	const struct override_list overrides = { &o, 1 };
	enum health_state is[BACKENDS] = { b->others, b->others, b->others };
	struct plan plan;
	size_t i;

	memset(&found, 0, sizeof(found));
	is[DRAINS] = b->health;
	assert_int_equal(addr_parse(addrs[DRAINS], &o.addr), 0);
	plan_for(three, &overrides, is, TICK, &plan);
	for (i = 0; i < plan.n; i++)
		if (plan.op[i].kind == OP_RING_NEW)
			return plan.op[i].row;
	fail_msg("no ring");
	return NULL;
}

static uint32_t
number_of(int backend)
{
	return wanted.pool[0].member[backend].number;
}

/* Slots whose flows may be with the backend that drains; none has another
 * owner before. */
static uint32_t
left(const struct op_ring *r)
{
	uint32_t i, n = 0, prev;

	for (i = 0; i < SIZE; i++) {
		prev = XLB_SLOT_PREV(r->slot[i]);
		assert_true(XLB_SLOT_CUR(r->slot[i]) != number_of(DRAINS) ||
		    prev == 0);
		assert_int_equal(prev != 0,
		    (r->slot[i] & XLB_SLOT_LOOKUP) != 0);
		if (prev == 0) {
			assert_true(r->past == NULL || r->past[i] == 0);
			continue;
		}
		assert_int_equal(prev, number_of(DRAINS));
		assert_int_equal(r->past[i], XLB_PAST(prev, TICK));
		n++;
	}
	return n;
}

static void
unknown_flows_go_where_the_drain_is_young(void **state)
{
	const struct begin young = { BACKEND_DRAIN, 59 * S, HEALTH_UP,
	    HEALTH_UP };
	const struct op_ring *r = first_ring(&young);
	uint32_t i, n = left(r);

	(void)state;
	/* a third, as if it had been there when the drain began */
	assert_in_range(n, SIZE / 3 - 1, SIZE / 3 + 1);
	for (i = 0; i < SIZE; i++)
		assert_true(XLB_SLOT_CUR(r->slot[i]) != 0);
}

/* Nobody is known to be up yet: the others' slots are not its. */
static void
others_are_not_known_yet(void **state)
{
	const struct begin early = { BACKEND_DRAIN, 5 * S, HEALTH_UNKNOWN,
	    HEALTH_UNKNOWN };
	const struct op_ring *r = first_ring(&early);

	(void)state;
	assert_in_range(left(r), SIZE / 3 - 1, SIZE / 3 + 1);
	assert_int_equal(XLB_SLOT_CUR(r->slot[0]), 0);
}

static void
otherwise_they_go_by_the_ring(void **state)
{
	static const struct begin none[] = {
		{ BACKEND_DRAIN, 60 * S, HEALTH_UP, HEALTH_UP },
		/* the clock was set back: nobody knows how old it is */
		{ BACKEND_DRAIN, -S, HEALTH_UP, HEALTH_UP },
		{ BACKEND_DRAIN, 5 * S, HEALTH_DOWN, HEALTH_UP },
		{ BACKEND_ACTIVE, 5 * S, HEALTH_UP, HEALTH_UP },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		assert_int_equal(left(first_ring(&none[i])), 0);
}

/* The maps are as wanted then; how many slots send unknown flows to the owner
 * before. */
static uint32_t
carried_out(struct maps *m, const char *text, const enum health_state *is,
    uint32_t tick)
{
	const struct override_list none = { NULL, 0 };
	uint32_t n = 0, k;
	struct plan plan;
	size_t i;

	assert_int_equal(maps_read(m, a, &found), 0);
	plan_for(text, &none, is, tick, &plan);
	for (i = 0; i < plan.n; i++)
		assert_int_equal(maps_do(m, &plan.op[i]), 0);
	assert_null(m->broken);
	assert_int_equal(maps_read(m, a, &found), 0);
	for (k = 0; k < SIZE; k++) {
		if (XLB_SLOT_PREV(found.ring[0].slot[k]) == 0)
			continue;
		assert_true(found.ring[0].slot[k] & XLB_SLOT_LOOKUP);
		n++;
	}
	return n;
}

/*
 * Flows that come from other nodes are of those that the slots go to in the end.
 * But where the file has changed they are, as ever, of the owners before.
 */
static void
a_backend_is_known_later_or_the_file_has_changed(void **state)
{
	static struct maps m;
	enum health_state is[BACKENDS] = { HEALTH_UNKNOWN, HEALTH_UNKNOWN,
	    HEALTH_UP };
	uint32_t before[SIZE], k, n;

	(void)state;
	maps_mem_init(&m);
	m.settings.ring_size = SIZE;
	assert_int_equal(carried_out(&m, two, is, TICK), 0);
	for (k = 0; k < 2; k++) {
		is[k] = HEALTH_UP;
		assert_int_equal(carried_out(&m, two, is, TICK + k), 0);
	}
	memcpy(before, found.ring[0].slot, sizeof(before));
	n = carried_out(&m, less, is, TICK + 2);
	for (k = 0; k < SIZE; k++)
		if (XLB_SLOT_CUR(before[k]) !=
		    XLB_SLOT_CUR(found.ring[0].slot[k]))
			assert_int_equal(XLB_SLOT_PREV(found.ring[0].slot[k]),
			    XLB_SLOT_CUR(before[k]));
	/* a half becomes a third */
	assert_in_range(n, SIZE / 6 - 1, SIZE / 3);
	/* its first slots, but nobody waited for it */
	carried_out(&m, three, is, TICK + 3);
	for (k = n = 0; k < SIZE; k++)
		n += XLB_SLOT_CUR(found.ring[0].slot[k]) ==
		    wanted.ring[0].number_of[2] &&
		    XLB_SLOT_PREV(found.ring[0].slot[k]) != 0;
	assert_in_range(n, SIZE / 3 - 1, SIZE / 3 + 1);
}

/* Whom the file kept from having slots nobody waited for. */
static void
a_member_that_was_held_back_is_not_late(void **state)
{
	static const char *const held[] = { weightless, drained };
	static const enum health_state unknown[BACKENDS];
	static const enum health_state up[BACKENDS] = { HEALTH_UP, HEALTH_UP,
	    HEALTH_UP };
	static struct maps m;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(held) / sizeof(held[0]); i++) {
		memset(&wanted, 0, sizeof(wanted));
		maps_mem_init(&m);
		m.settings.ring_size = SIZE;
		carried_out(&m, held[i], unknown, TICK);
		assert_int_equal(carried_out(&m, held[i], up, TICK + 1), 0);
		assert_in_range(carried_out(&m, two, up, TICK + 2),
		    SIZE / 2 - 1, SIZE / 2 + 1);
	}
}

static int
begin(void **state)
{
	(void)state;
	a = arena_new();
	memset(&wanted, 0, sizeof(wanted));
	return 0;
}

static int
end(void **state)
{
	(void)state;
	arena_free(a);
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
		    unknown_flows_go_where_the_drain_is_young, begin, end),
		cmocka_unit_test_setup_teardown(others_are_not_known_yet,
		    begin, end),
		cmocka_unit_test_setup_teardown(otherwise_they_go_by_the_ring,
		    begin, end),
		cmocka_unit_test_setup_teardown(
		    a_backend_is_known_later_or_the_file_has_changed, begin,
		    end),
		cmocka_unit_test_setup_teardown(
		    a_member_that_was_held_back_is_not_late, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
