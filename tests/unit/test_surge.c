/* SPDX-License-Identifier: GPL-2.0-or-later */
/* When every packet is looked up, and what must not lead to it. */
#include "unit.h"

#include <string.h>

#include "core/surge.h"

static struct surge s;
static struct xlb_flow_stats total;
static mono_t at;

static int
fresh(void **state)
{
	(void)state;
	memset(&s, 0, sizeof(s));
	memset(&total, 0, sizeof(total));
	at.ns = 1000000000;
	surge_step(&s, &total, at);
	return 0;
}

/* Some seconds, each with so many samples and unknown ones. */
static void
run(unsigned seconds, uint64_t sampled, uint64_t unknown)
{
	while (seconds-- > 0) {
		at.ns += 1000000000;
		total.sampled += sampled;
		total.unknown += unknown;
		surge_step(&s, &total, at);
	}
}

static void
a_node_is_lost_and_its_flows_come_here(void **state)
{
	(void)state;
	run(5, 2000, 10);
	assert_false(s.on);
	run(1, 2000, 500);
	assert_true(s.on);
	assert_int_equal(s.permille, 250);
	/* they become known */
	run(3, 2000, 100);
	assert_true(s.on);
	run(1, 2000, 10);
	assert_true(s.on);
	run(1, 2000, 9);
	assert_false(s.on);
	assert_int_equal(s.seconds, 5);
	/* and again: that was no one's fault */
	run(1, 2000, 500);
	assert_true(s.on);
}

static void
the_share_has_to_be_above_two_percent(void **state)
{
	(void)state;
	run(100, 1000, 20);
	assert_false(s.on);
	run(1, 1000, 21);
	assert_true(s.on);
}

static void
few_samples_say_nothing(void **state)
{
	(void)state;
	/* fewer than a thousand within the time that they count for */
	run(200, 5, 5);
	assert_false(s.on);
	/* a quiet node's add up */
	fresh(NULL);
	run(40, 100, 0);
	run(9, 100, 30);
	assert_false(s.on);
	run(1, 100, 30);
	assert_true(s.on);
}

static void
it_ends_after_ten_minutes_and_has_to_be_earned_again(void **state)
{
	(void)state;
	run(1, 2000, 200);
	assert_true(s.on);
	run(SURGE_S - 1, 2000, 200);
	assert_true(s.on);
	run(1, 2000, 200);
	assert_false(s.on);
	assert_int_equal(s.seconds, SURGE_S);
	/* packets that never become known: forged ones */
	run(1000, 2000, 200);
	assert_false(s.on);
	run(1, 2000, 30);
	run(1, 2000, 200);
	assert_true(s.on);
}

static void
a_flood_is_no_surge(void **state)
{
	__u64 *sign[] = { &total.skip_budget, &total.evict_unconfirmed,
	    &total.evict_confirmed };
	size_t i;

	(void)state;
	for (i = 0; i < 3; i++) {
		fresh(NULL);
		*sign[i] += 1;
		run(SURGE_CALM_S, 2000, 500);
		assert_false(s.on);
		run(1, 2000, 500);
		assert_true(s.on);
	}
}

/* A SYN flood and UDP are not sampled at all: nothing to judge by. */
static void
other_packets_are_none_of_it(void **state)
{
	(void)state;
	total.insert += 1000000;
	total.used += 1000000;
	run(100, 0, 0);
	assert_false(s.on);
}

#define CASE(f) cmocka_unit_test_setup(f, fresh)

int
main(void)
{
	const struct CMUnitTest test[] = {
		CASE(a_node_is_lost_and_its_flows_come_here),
		CASE(the_share_has_to_be_above_two_percent),
		CASE(few_samples_say_nothing),
		CASE(it_ends_after_ten_minutes_and_has_to_be_earned_again),
		CASE(a_flood_is_no_surge),
		CASE(other_packets_are_none_of_it),
	};

	return cmocka_run_group_tests_name("surge", test, NULL, NULL);
}
