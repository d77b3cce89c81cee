/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table of NAT as time goes by: what ends, and which places are empty again. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "core/nat_sweep.h"

#define ROWS 256
#define MASK (ROWS - 1)

static struct xlb_tables tables;
static struct xlb_nat row[ROWS];
static struct nat_sweep *sweep;

static int
begin(void **state)
{
	(void)state;
	memset(&tables, 0, sizeof(tables));
	memset(row, 0, sizeof(row));
	sweep = nat_sweep_new(&tables);
	nat_sweep_table(sweep, row, ROWS);
	return 0;
}

static int
end(void **state)
{
	(void)state;
	nat_sweep_free(sweep);
	return 0;
}

static void
pass(uint32_t tick)
{
	nat_sweep_begin(sweep, tick);
	while (nat_sweep_step(sweep))
		;
}

/* The `step`th place of a search from `home`. */
static uint32_t
put(uint32_t home, uint32_t step, uint32_t flags, uint32_t tick)
{
	uint32_t at = xlb_nat_at(home, step, MASK);

	assert_int_equal(row[at].word, 0);
	row[at].word = (uint64_t)home << 32 | flags |
	    step << XLB_NAT_STEP_SHIFT | tick;
	return at;
}

static void
pair(uint32_t a, uint32_t b, uint16_t backend, uint8_t source)
{
	row[a].peer = b;
	row[b].peer = a;
	row[a].ports = row[b].ports = a + 1;
	row[a].backend = row[b].backend = backend;
	row[a].source = row[b].source = source;
}

static void
places_and_back(void **state)
{
	bool seen[ROWS];
	uint32_t home, i, at;

	(void)state;
	for (home = 0; home < ROWS; home++) {
		memset(seen, 0, sizeof(seen));
		for (i = 0; i < XLB_NAT_PROBE; i++) {
			at = xlb_nat_at(home, i, MASK);
			assert_true(at < ROWS && !seen[at]);
			seen[at] = true;
			assert_int_equal(xlb_nat_home(at, i, MASK), home);
			assert_int_equal(at / 4 == home / 4, i < 4);
		}
	}
}

/* By what it is a flow lasts so many ticks after the last use of either row. */
static void
lives(void **state)
{
	static const struct {
		uint32_t flags, life;
	} kind[] = {
		{ 0, 14 }, { XLB_NAT_REPLIED, 14 },
		{ XLB_NAT_REPLIED | XLB_NAT_ESTABLISHED, 1677 },
		{ XLB_NAT_REPLIED | XLB_NAT_ESTABLISHED | XLB_NAT_CLOSING, 7 },
		{ XLB_NAT_UDP, 14 }, { XLB_NAT_UDP | XLB_NAT_REPLIED, 70 },
	};
	uint32_t a, b, used;
	size_t i;

	for (i = 0; i < 2 * sizeof(kind) / sizeof(kind[0]); i++) {
		end(state);
		begin(state);
		used = 1000 + (i % 2 ? 0 : 3);
		a = put(10, 0, XLB_NAT_FORWARD | kind[i / 2].flags, used);
		b = put(90, 0, XLB_NAT_REPLY | kind[i / 2].flags, 2003 - used);
		pair(a, b, 1, 5);
		pass(1003 + kind[i / 2].life);
		assert_int_equal(nat_sweep_result(sweep)->flows, 1);
		assert_int_equal(nat_sweep_result(sweep)->source[5], 1);
		assert_int_equal(nat_sweep_sources(sweep), 1 << 5);
		pass(1004 + kind[i / 2].life);
		assert_int_equal(nat_sweep_result(sweep)->flows, 0);
		assert_int_equal(nat_sweep_result(sweep)->expired, 1);
		assert_true(row[a].word & XLB_NAT_GONE);
		assert_true(row[b].word & XLB_NAT_GONE);
		assert_int_equal(nat_sweep_sources(sweep), 0);
	}
}

/* A clock that another CPU has read a little earlier is no great age. */
static void
from_the_future(void **state)
{
	uint32_t a;

	(void)state;
	a = put(10, 0, XLB_NAT_FORWARD, 1002);
	pass(1000);
	assert_int_equal(nat_sweep_result(sweep)->flows, 1);
	row[a].word = XLB_NAT_GONE | 1002;
	pass(1000);
	assert_true(row[a].word != 0);
}

/* One that went stays as a mark while a row was placed beyond it. */
static void
marks(void **state)
{
	uint32_t first, second, other;

	(void)state;
	first = put(20, 0, XLB_NAT_FORWARD | XLB_NAT_CLOSING, 1000);
	second = put(20, 1, XLB_NAT_FORWARD, 1000);
	other = put(40, 0, XLB_NAT_FORWARD | XLB_NAT_CLOSING, 1000);
	pass(1008);
	assert_true(row[first].word & row[other].word & XLB_NAT_GONE);
	pass(1009);		/* a packet may have seen them until just now */
	assert_true(row[other].word != 0);
	pass(1010);
	assert_int_equal(row[other].word, 0);
	assert_true(row[first].word & XLB_NAT_GONE);
	assert_true(row[second].word & XLB_NAT_FORWARD);
	pass(1015);
	assert_true(row[second].word & XLB_NAT_GONE);
	assert_int_equal(row[first].word, 0);
	pass(1017);
	assert_int_equal(row[second].word, 0);
	assert_int_equal(nat_sweep_result(sweep)->used, 0);
}

/* Numbers of backends are free when rows had time to go. */
static void
retired(void **state)
{
	uint32_t a, b;

	(void)state;
	a = put(10, 0, XLB_NAT_FORWARD | XLB_NAT_ESTABLISHED, 1000);
	b = put(90, 0, XLB_NAT_REPLY | XLB_NAT_ESTABLISHED, 1000);
	pair(a, b, 7, 0);
	pass(1001);
	assert_false(nat_sweep_clean(sweep, 7));
	tables.backend[7].flags = XLB_BACKEND_RETIRED;
	pass(1002);
	assert_true(row[a].word & row[b].word & XLB_NAT_GONE);
	assert_false(nat_sweep_clean(sweep, 7));
	pass(1003);
	assert_true(nat_sweep_clean(sweep, 7));
	tables.backend[7].flags = 0;	/* it is back */
	assert_false(nat_sweep_clean(sweep, 7));
	pass(1004);
	tables.backend[7].flags = XLB_BACKEND_RETIRED;
	assert_false(nat_sweep_clean(sweep, 7));
}

/* A writer never comes back: it was a packet, which takes microseconds. */
static void
busy(void **state)
{
	uint32_t a;

	(void)state;
	a = put(10, 0, XLB_NAT_FORWARD | XLB_NAT_BUSY, 1000);
	pass(1010);
	assert_true(row[a].word & XLB_NAT_BUSY);
	assert_int_equal(nat_sweep_result(sweep)->flows, 0);
	pass(1015);
	assert_true(row[a].word & XLB_NAT_GONE);
}

/* Rows come and go at random; whatever is live is found by its search, which ends
 * at the first empty place. */
static void
always_found(void **state)
{
	uint32_t tick = 5000, n, i, at, free_at, free_step, found = 0;
	uint64_t w;

	(void)state;
	srand(7);
	for (n = 0; n < 20000; n++) {
		uint32_t home = (uint32_t)rand() & MASK;

		free_at = UINT32_MAX;
		free_step = 0;
		for (i = 0; i < XLB_NAT_PROBE; i++) {
			at = xlb_nat_at(home, i, MASK);
			w = row[at].word;
			if (free_at == UINT32_MAX &&
			    (w == 0 || (w & XLB_NAT_GONE))) {
				free_at = at;
				free_step = i;
			}
			if (w == 0)
				break;
		}
		if (free_at != UINT32_MAX)
			row[free_at].word = (uint64_t)home << 32 |
			    XLB_NAT_FORWARD | free_step << XLB_NAT_STEP_SHIFT |
			    tick;
		if (n % 20 == 0)
			pass(tick += (uint32_t)rand() % 4);
		for (at = 0; n % 100 == 0 && at < ROWS; at++) {
			w = row[at].word;
			if (!(w & XLB_NAT_FORWARD))
				continue;
			for (i = 0; i < XLB_NAT_STEP(w); i++)
				assert_true(row[xlb_nat_at((uint32_t)(w >> 32),
				    i, MASK)].word != 0);
			found++;
		}
	}
	assert_true(found > 10000);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(places_and_back),
		cmocka_unit_test_setup_teardown(lives, begin, end),
		cmocka_unit_test_setup_teardown(from_the_future, begin, end),
		cmocka_unit_test_setup_teardown(marks, begin, end),
		cmocka_unit_test_setup_teardown(retired, begin, end),
		cmocka_unit_test_setup_teardown(busy, begin, end),
		cmocka_unit_test_setup_teardown(always_found, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
