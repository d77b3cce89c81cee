/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Entries in a larger table, and how many flows a plan is about. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/flow_copy.h"
#include "core/flow_count.h"
#include "core/hash.h"
#include "core/ring_words.h"

#define SMALL 64
#define LARGE 256
#define NOW 5000

static struct xlb_flow_set small[SMALL], large[LARGE];
static uint64_t dice;

static int
fresh(void **state)
{
	(void)state;
	memset(small, 0, sizeof(small));
	memset(large, 0, sizeof(large));
	dice = 1;
	return 0;
}

static uint64_t
roll(void)
{
	return hash_mix(dice += HASH_GOLDEN);
}

/* As the packet program finds it; NULL: it does not. */
static uint64_t *
find(struct xlb_flow_set *t, uint32_t sets, uint64_t flow)
{
	uint32_t tag = xlb_flow_tag((uint32_t)(flow >> 32), flow), i;
	struct xlb_flow_set *set = &t[xlb_flow_row(flow, sets - 1)];

	for (i = 0; i < XLB_FLOW_WAYS; i++)
		if (set->entry[i] != 0 && XLB_FLOW_TAG(set->entry[i]) == tag)
			return (uint64_t *)&set->entry[i];
	return NULL;
}

static bool
put(struct xlb_flow_set *t, uint32_t sets, uint64_t flow, uint32_t backend,
    uint32_t age)
{
	uint32_t tag = xlb_flow_tag((uint32_t)(flow >> 32), flow), i;
	struct xlb_flow_set *set = &t[xlb_flow_row(flow, sets - 1)];

	for (i = 0; i < XLB_FLOW_WAYS && set->entry[i] != 0; i++)
		;
	if (i == XLB_FLOW_WAYS)
		return false;
	set->entry[i] = XLB_FLOW(tag, backend, XLB_FLOW_CONFIRMED, NOW - age);
	return true;
}

static void
every_flow_is_found_in_the_larger_table(void **state)
{
	uint64_t flow[300], *e;
	uint32_t i, n = 0;

	(void)state;
	while (n < 300) {
		flow[n] = roll();
		n += put(small, SMALL, flow[n], 1 + n % 100, n % 50);
	}
	flow_copy(small, SMALL, large, LARGE, NOW);
	for (i = 0; i < n; i++) {
		e = find(large, LARGE, flow[i]);
		assert_non_null(e);
		assert_int_equal(XLB_FLOW_BACKEND(*e), 1 + i % 100);
	}
	/* twice is as once */
	memcpy(small, large, sizeof(small));
	flow_copy(small, SMALL, large, LARGE, NOW);
	assert_memory_equal(small, large, sizeof(small));
}

/* Packets have used the new table and, a moment longer, the old one. */
static void
the_later_word_counts(void **state)
{
	uint64_t a = roll(), b = roll(), c = roll(), d = roll();

	(void)state;
	put(small, SMALL, a, 1, 10);
	put(small, SMALL, b, 1, 10);
	flow_copy(small, SMALL, large, LARGE, NOW);
	*find(small, SMALL, a) = 0;
	put(small, SMALL, a, 2, 0);
	*find(large, LARGE, b) = 0;
	put(large, LARGE, b, 3, 5);
	put(small, SMALL, c, 4, 0);
	put(small, SMALL, d, 5, XLB_FLOW_KNOWN + 1);
	flow_copy(small, SMALL, large, LARGE, NOW);
	assert_int_equal(XLB_FLOW_BACKEND(*find(large, LARGE, a)), 2);
	assert_int_equal(XLB_FLOW_BACKEND(*find(large, LARGE, b)), 3);
	assert_int_equal(XLB_FLOW_BACKEND(*find(large, LARGE, c)), 4);
	assert_null(find(large, LARGE, d));
}

static void
a_full_set_loses_what_is_oldest(void **state)
{
	uint64_t base = roll() & ~0xffffffffULL, i;

	(void)state;
	for (i = 0; i < 8; i++)
		assert_true(put(large, LARGE, base + (i << 40), 1,
		    100 - (uint32_t)i));
	assert_true(put(small, SMALL, base + (9ULL << 40), 2, 1));
	assert_true(put(small, SMALL, base + (10ULL << 40), 2, 500));
	flow_copy(small, SMALL, large, LARGE, NOW);
	assert_non_null(find(large, LARGE, base + (9ULL << 40)));
	assert_null(find(large, LARGE, base + (10ULL << 40)));
	assert_null(find(large, LARGE, base));
	assert_non_null(find(large, LARGE, base + (1ULL << 40)));
}

/* An empty place has no age: with a clock that has just begun it is not the oldest. */
static void
an_empty_place_is_taken_first(void **state)
{
	uint64_t base = roll() & ~0xffffffffULL, old = base + (1ULL << 40);
	const uint32_t begun = 2;
	struct xlb_flow_set *set = &large[xlb_flow_row(base, LARGE - 1)];

	(void)state;
	assert_ptr_equal(set, &large[xlb_flow_row(old, LARGE - 1)]);
	set->entry[0] = XLB_FLOW(xlb_flow_tag((uint32_t)(old >> 32), old), 1,
	    XLB_FLOW_CONFIRMED, begun - 50);
	small[xlb_flow_row(base, SMALL - 1)].entry[0] =
	    XLB_FLOW(xlb_flow_tag((uint32_t)(base >> 32), base), 2,
	    XLB_FLOW_CONFIRMED, begun);
	flow_copy(small, SMALL, large, LARGE, begun);
	assert_int_equal(XLB_FLOW_BACKEND(*find(large, LARGE, base)), 2);
	assert_int_equal(XLB_FLOW_BACKEND(*find(large, LARGE, old)), 1);
}

/* A ring of 251 slots, most of one backend; what the plan says moves, moves. */
#define SIZE 251

static void
the_prediction_is_what_happens(void **state)
{
	uint32_t was[SIZE], now[SIZE], roles[RING_MEMBER_WORDS] = { 0 }, i;
	struct op_ring op_row = { .number = 3, .size = SIZE, .slot = now };
	struct op op = { .kind = OP_RING_SLOTS, .id = 3, .row = &op_row };
	struct plan p = { .op = &op, .n = 1 };
	struct state_ring f = { .number = 3, .slot = was, .roles = roles };
	struct state_ring w[2] = { { .number = 4 }, { .number = 3 } };
	struct state found = { .ring = &f, .nring = 1 };
	struct state wanted = { .ring = w, .nring = 2 };
	uint64_t flow, moved[2], expect = 0;
	uint32_t slot, backend, n = 0;

	(void)state;
	ring_member_set(roles, 1, XLB_MEMBER | XLB_MEMBER_KEEPS);
	ring_member_set(roles, 2, XLB_MEMBER);
	for (i = 0; i < SIZE; i++) {
		was[i] = XLB_SLOT(1 + i % 2, i % 3 == 0, 0);
		now[i] = XLB_SLOT(i % 5 ? 1 + i % 2 : 2 - i % 2, 1, 0);
	}
	while (n < 800) {
		flow = roll();
		backend = 1 + n % 3;	/* 3 is another pool's */
		if (!put(large, LARGE, flow, backend,
		    n % 7 ? 0 : XLB_FLOW_LIVE + 1))
			continue;
		slot = (uint32_t)((flow >> 32) * SIZE >> 32);
		expect += n % 7 != 0 && backend != 3 &&
		    XLB_SLOT_CUR(was[slot]) != XLB_SLOT_CUR(now[slot]);
		n++;
	}
	flow_count(&p, &wanted, &found, large, LARGE, NOW, moved);
	assert_int_equal(moved[0], 0);
	assert_int_equal(moved[1], expect);
	assert_true(expect > 50);
	/* nothing moves, nothing is counted */
	op.kind = OP_RING_ROLES;
	flow_count(&p, &wanted, &found, large, LARGE, NOW, moved);
	assert_int_equal(moved[1], 0);
}

/* Rings of a large node: of a large table each gets a part, taken for the whole.
 * Entries are in one set of 128, in the sets that are read and in others. */
static void
of_many_rings_a_part_is_counted(void **state)
{
	static uint32_t was[SIZE], now[SIZE], roles[RING_MEMBER_WORDS];
	static struct state_ring w[1024];
	struct op_ring op_row = { .number = 7, .size = SIZE, .slot = now };
	struct op op = { .kind = OP_RING_SLOTS, .id = 7, .row = &op_row };
	struct plan p = { .op = &op, .n = 1 };
	struct state_ring f = { .number = 7, .slot = was, .roles = roles };
	struct state found = { .ring = &f, .nring = 1 };
	struct state wanted = { .ring = w, .nring = 1024 };
	struct xlb_flow_set *flows;
	uint64_t moved[1024];
	uint32_t i, sets = 1 << 17;

	(void)state;
	flows = calloc(sets, sizeof(*flows));
	ring_member_set(roles, 1, XLB_MEMBER | XLB_MEMBER_KEEPS);
	for (i = 0; i < SIZE; i++) {
		was[i] = XLB_SLOT(1, 0, 0);
		now[i] = XLB_SLOT(2, 0, 0);
	}
	for (i = 0; i < 1024; i++)
		w[i].number = i;
	/* of 1024 sets that are read, one in two has an entry */
	for (i = 0; i < sets; i += 256)
		flows[i].entry[0] = XLB_FLOW(1, 1, XLB_FLOW_CONFIRMED, NOW);
	flows[1].entry[0] = flows[0].entry[0];	/* not read */
	flow_count(&p, &wanted, &found, flows, sets, NOW, moved);
	assert_int_equal(moved[7], 512 * 128);
	assert_int_equal(moved[6], 0);
	/* alone it is counted whole */
	w[0].number = 7;
	wanted.nring = 1;
	flow_count(&p, &wanted, &found, flows, sets, NOW, moved);
	assert_int_equal(moved[0], 513);
	free(flows);
}

#define CASE(f) cmocka_unit_test_setup(f, fresh)

int
main(void)
{
	const struct CMUnitTest test[] = {
		CASE(every_flow_is_found_in_the_larger_table),
		CASE(the_later_word_counts),
		CASE(a_full_set_loses_what_is_oldest),
		CASE(an_empty_place_is_taken_first),
		CASE(the_prediction_is_what_happens),
		CASE(of_many_rings_a_part_is_counted),
	};

	return cmocka_run_group_tests_name("flow_table", test, NULL, NULL);
}
