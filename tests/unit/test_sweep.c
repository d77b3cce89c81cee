/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Passes over rings and flows in plain memory: what goes and what stays, when
 * something changes meanwhile, and when xlbd is killed at any point.
 */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "core/ring_words.h"
#include "core/sweep.h"

#define SIZE 251
#define SETS 16
#define OLD RING_PREV_TICKS

enum { NONE, A, B, C };

static struct xlb_tables *tables;
static struct xlb_ring *ring[2];
static struct xlb_flow_set flows[SETS];
static struct sweep *s;
static uint32_t now;
static bool ring_there[2];

static int
fresh(void **state)
{
	uint32_t i;

	(void)state;
	tables = calloc(1, sizeof(*tables));
	memset(flows, 0, sizeof(flows));
	for (i = 0; i < 2; i++) {
		ring[i] = calloc(1, (size_t)xlb_ring_bytes(SIZE));
		ring[i]->size = SIZE;
		ring_there[i] = i == 0;
	}
	now = 100000;
	s = NULL;
	return 0;
}

static int
done(void **state)
{
	(void)state;
	sweep_free(s);
	free(ring[0]);
	free(ring[1]);
	free(tables);
	return 0;
}

/* As the next process finds it. */
static void
restart(void)
{
	uint32_t i;

	sweep_free(s);
	s = sweep_new(tables, SIZE);
	for (i = 0; i < 2; i++)
		if (ring_there[i])
			sweep_ring(s, i, ring[i]);
	sweep_flows(s, flows, SETS);
}

static uint32_t *
slot(uint32_t r, uint32_t i)
{
	return &ring[r]->slot[(ring[r]->active ? SIZE : 0) + i];
}

static uint32_t *
past(uint32_t r, uint32_t i)
{
	return &ring[r]->slot[2 * SIZE + i];
}

static void
role(uint32_t r, uint32_t number, uint32_t bits)
{
	ring_member_set(ring[r]->member, number, bits);
}

/* An entry for a flow of this slot. */
static uint64_t *
entry(uint32_t i, uint32_t at, uint32_t backend, uint32_t flags, uint32_t age)
{
	/* the middle of the slot: the tag says which it is */
	uint64_t hash = (((uint64_t)i << 32) + (1ULL << 31)) / SIZE;
	uint64_t *e = (uint64_t *)&flows[at / XLB_FLOW_WAYS]
	    .entry[at % XLB_FLOW_WAYS];

	*e = XLB_FLOW(xlb_flow_tag((uint32_t)hash, 0), backend, flags,
	    now - age);
	return e;
}

#define AT_GRACE -2

/* All of a pass; stops before the piece `stop` of it. True if it ended. */
static bool
pass_until(enum sweep_scan scan, int stop)
{
	enum sweep_state state;
	int n = 0;

	sweep_begin(s, scan);
	for (;;) {
		if (n++ == stop)
			return false;
		state = sweep_step(s, now);
		if (state == SWEEP_DONE)
			return true;
		if (state == SWEEP_GRACE && stop == AT_GRACE)
			return false;
		if (state == SWEEP_GRACE)
			sweep_graced(s);
	}
}

static void
finish(void)
{
	while (sweep_step(s, now) != SWEEP_DONE)
		sweep_graced(s);
}

static const struct sweep_result *
pass(void)
{
	assert_true(pass_until(SWEEP_SCAN_ASKED, -1));
	return sweep_result(s);
}

/* A drained and B took over, `age` ticks ago. */
static void
moved(uint32_t i, uint32_t age)
{
	role(0, A, XLB_MEMBER | XLB_MEMBER_KEEPS);
	role(0, B, XLB_MEMBER | XLB_MEMBER_KEEPS);
	*slot(0, i) = XLB_SLOT(B, 1, A);
	*past(0, i) = XLB_PAST(A, (now - age) & XLB_PAST_TICK_MASK);
}

static void
prev_goes_after_its_time_and_lookup_after_that(void **state)
{
	(void)state;
	moved(7, 0);
	moved(8, 1);
	restart();
	assert_int_equal(pass()->prev, 2);
	assert_int_equal(sweep_result(s)->lookup, 2);
	assert_false(sweep_result(s)->scanned);
	now += OLD - 1;
	assert_int_equal(pass()->prev, 1);
	assert_int_equal(*slot(0, 7), XLB_SLOT(B, 1, A));
	assert_int_equal(*slot(0, 8), XLB_SLOT(B, 0, 0));
	assert_true(sweep_result(s)->scanned);
	now++;
	assert_int_equal(pass()->lookup, 0);
	assert_int_equal(*slot(0, 7), XLB_SLOT(B, 0, 0));
	assert_int_equal(pass()->scanned, false);
}

/* What keeps a slot's LOOKUP. */
static void
live_entries_of_other_members_keep_lookup(void **state)
{
	static const struct {
		uint32_t slot, backend, flags, age;
		bool keeps;
	} row[] = {
		{ 7, A, XLB_FLOW_CONFIRMED, 0, true },
		{ 7, A, XLB_FLOW_CONFIRMED, XLB_FLOW_LIVE, true },
		{ 7, A, XLB_FLOW_CONFIRMED, XLB_FLOW_LIVE + 1, false },
		{ 7, A, 0, XLB_FLOW_OPENING, true },
		{ 7, A, 0, XLB_FLOW_OPENING + 1, false },
		{ 7, A, XLB_FLOW_CLOSING, XLB_FLOW_SESSION, true },
		{ 7, A, XLB_FLOW_CLOSING | XLB_FLOW_CONFIRMED,
		    XLB_FLOW_SESSION + 1, false },
		/* a clock that is a little ahead */
		{ 7, A, 0, (uint32_t)-3, true },
		/* the owner's own; another slot's; another pool's */
		{ 7, B, XLB_FLOW_CONFIRMED, 0, false },
		{ 6, A, XLB_FLOW_CONFIRMED, 0, false },
		{ 8, A, XLB_FLOW_CONFIRMED, 0, false },
		{ 7, C, XLB_FLOW_CONFIRMED, 0, false },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		moved(7, OLD);
		restart();
		entry(row[i].slot, (uint32_t)i * 9, row[i].backend,
		    row[i].flags, row[i].age);
		assert_int_equal(pass()->lookup, row[i].keeps);
		if (*slot(0, 7) != XLB_SLOT(B, row[i].keeps, 0))
			fail_msg("row %zu", i);
		memset(flows, 0, sizeof(flows));
	}
	/* a member that does not keep flows now may do so again */
	moved(7, OLD);
	role(0, A, XLB_MEMBER);
	restart();
	entry(7, 3, A, XLB_FLOW_CONFIRMED, 0);
	assert_int_equal(pass()->lookup, 1);
}

/* The tag has 24 bits of the hash, so at an edge it may be either slot. */
static void
an_entry_at_a_slots_edge_counts_for_both(void **state)
{
	uint64_t edge = ((8ULL << 32) + SIZE - 1) / SIZE;

	(void)state;
	moved(7, OLD);
	moved(8, OLD);
	moved(9, OLD);
	restart();
	flows[0].entry[0] = XLB_FLOW(xlb_flow_tag((uint32_t)edge, 0), A,
	    XLB_FLOW_CONFIRMED, now);
	assert_int_equal(pass()->lookup, 2);
	assert_int_equal(*slot(0, 7), XLB_SLOT(B, 1, 0));
	assert_int_equal(*slot(0, 8), XLB_SLOT(B, 1, 0));
	assert_int_equal(*slot(0, 9), XLB_SLOT(B, 0, 0));
}

/* Publishes `word` in one slot as xlbd does. */
static void
publish(uint32_t i, uint32_t word)
{
	uint32_t half[SIZE], *to;

	memcpy(half, slot(0, 0), sizeof(half));
	half[i] = word;
	sweep_ring_moves(s, 0, slot(0, 0), half);
	to = &ring[0]->slot[ring[0]->active ? 0 : SIZE];
	memcpy(to, half, sizeof(half));
	ring[0]->active ^= 1;
}

/* There and back while the table is read: flows of the time between are in what
 * was read before. */
static void
a_slot_that_changed_meanwhile_stays_looked_up(void **state)
{
	int stop, cut = 0;

	(void)state;
	for (stop = 1; stop < 60; stop++) {
		moved(7, OLD);
		moved(8, OLD);
		restart();
		if (pass_until(SWEEP_SCAN_ASKED, stop))
			break;
		/* before 1. it is no change meanwhile */
		if (XLB_SLOT_PREV(*slot(0, 7)) != 0)
			continue;
		if (!(*slot(0, 7) & XLB_SLOT_LOOKUP))
			break;
		publish(7, XLB_SLOT(A, 1, 0));
		publish(7, XLB_SLOT(B, 1, 0));
		finish();
		assert_int_equal(*slot(0, 7), XLB_SLOT(B, 1, 0));
		assert_int_equal(*slot(0, 8), XLB_SLOT(B, 0, 0));
		cut++;
		/* and by the next pass it goes */
		assert_int_equal(pass()->lookup, 0);
	}
	assert_true(cut > 3);
}

/* A packet makes new what was too old to count, at any point of a pass: then it
 * is found as long as it is there. */
static void
an_old_entry_that_is_used_meanwhile_keeps_lookup(void **state)
{
	int stop, used = 0;
	uint64_t *e;

	(void)state;
	for (stop = 1; stop < 60; stop++) {
		moved(7, OLD);
		e = entry(7, 3, A, XLB_FLOW_CONFIRMED, XLB_FLOW_LIVE + 1);
		restart();
		if (pass_until(SWEEP_SCAN_ASKED, stop))
			break;
		if (*e == 0 || !(*slot(0, 7) & XLB_SLOT_LOOKUP)) {
			finish();
			continue;
		}
		e = entry(7, 3, A, XLB_FLOW_CONFIRMED, 0);
		used++;
		finish();
		assert_true(*slot(0, 7) & XLB_SLOT_LOOKUP);
		assert_int_equal(pass()->lookup, 1);
	}
	assert_true(used > 5);
	/* where LOOKUP stays for another one's sake, so does it */
	moved(7, OLD);
	e = entry(7, 3, A, XLB_FLOW_CONFIRMED, XLB_FLOW_LIVE + 1);
	entry(7, 4, A, XLB_FLOW_CONFIRMED, 0);
	restart();
	assert_int_equal(pass()->lookup, 1);
	assert_int_not_equal(*e, 0);
}

static void
numbers_are_free_when_no_entry_has_them(void **state)
{
	const struct sweep_result *r;

	(void)state;
	tables->backend[A].flags = XLB_BACKEND_RETIRED;
	tables->backend[C].flags = XLB_BACKEND_RETIRED;
	role(0, A, XLB_MEMBER);
	*slot(0, 3) = XLB_SLOT(A, 0, 0);
	entry(100, 5, C, XLB_FLOW_CONFIRMED, 0);
	entry(100, 6, B, XLB_FLOW_CONFIRMED, 0);
	restart();
	r = pass();
	/* A is named by a slot; C was in the table until now */
	assert_int_equal(r->retired, 2);
	assert_true(r->scrubbed);
	assert_int_equal(flows[0].entry[5], 0);
	assert_int_not_equal(flows[0].entry[6], 0);
	assert_int_equal(sweep_freed(s, 1), XLB_BACKENDS);
	r = pass();
	assert_false(r->scrubbed);
	assert_int_equal(sweep_freed(s, 1), C);
	assert_int_equal(sweep_freed(s, C + 1), XLB_BACKENDS);
	tables->backend[C].flags = 0;
	/* named as the one before, or keeping flows somewhere: not yet */
	*slot(0, 3) = XLB_SLOT(B, 1, A);
	*past(0, 3) = XLB_PAST(A, now);
	pass();
	assert_int_equal(sweep_freed(s, 1), XLB_BACKENDS);
	role(0, A, XLB_MEMBER | XLB_MEMBER_KEEPS);
	pass();
	assert_int_equal(sweep_freed(s, 1), XLB_BACKENDS);
	*slot(0, 3) = XLB_SLOT(B, 0, 0);
	pass();
	assert_int_equal(sweep_freed(s, 1), XLB_BACKENDS);
	role(0, A, XLB_MEMBER);
	pass();
	assert_int_equal(sweep_freed(s, 1), A);
	/* wanted again while the table is read */
	assert_false(pass_until(SWEEP_SCAN_ASKED, AT_GRACE));
	sweep_backend_stays(s, A);
	finish();
	assert_int_equal(sweep_freed(s, 1), XLB_BACKENDS);
}

static void
service(uint32_t number, uint32_t r, uint32_t old, uint32_t flags)
{
	tables->service[number * 7].key = XLB_SERVICE_KEY(1, 6, 80 + number);
	tables->service[number * 7].word = XLB_SERVICE_WORD(number, r, old,
	    flags);
}

static void
assert_service(uint32_t number, uint32_t r, uint32_t old, uint32_t flags)
{
	assert_true(tables->service[number * 7].word ==
	    XLB_SERVICE_WORD(number, r, old, flags));
}

static void
a_service_forgets_its_old_ring_then_its_lookup(void **state)
{
	uint32_t i;

	(void)state;
	ring_there[1] = true;
	role(1, A, XLB_MEMBER | XLB_MEMBER_KEEPS);
	role(1, B, XLB_MEMBER | XLB_MEMBER_KEEPS);
	for (i = 0; i < SIZE; i++) {
		*slot(0, i) = XLB_SLOT(A, 0, 0);
		*slot(1, i) = XLB_SLOT(B, 0, 0);
	}
	service(3, 1, 0, XLB_SERVICE_LOOKUP | XLB_SERVICE_HASH_SOURCE);
	service(4, 0, 0, 0);
	entry(5, 9, A, XLB_FLOW_CONFIRMED, 0);
	restart();
	assert_int_equal(pass()->prev, 1);
	now += OLD - 1;
	assert_false(pass()->old_gone);
	assert_service(3, 1, 0, XLB_SERVICE_LOOKUP | XLB_SERVICE_HASH_SOURCE);
	/* another process begins its time anew */
	restart();
	pass();
	now += OLD - 1;
	assert_false(pass()->old_gone);
	now++;
	assert_true(pass()->old_gone);
	assert_service(3, 1, 1, XLB_SERVICE_LOOKUP | XLB_SERVICE_HASH_SOURCE);
	/* the entry may be one of its flows */
	assert_int_equal(pass()->lookup, 1);
	entry(5, 9, B, XLB_FLOW_CONFIRMED, 0);
	/* it changes while the table is read: not by this pass */
	assert_false(pass_until(SWEEP_SCAN_ASKED, AT_GRACE));
	sweep_service_moves(s, 3);
	finish();
	assert_int_equal(sweep_result(s)->lookup, 1);
	/* nor if its ring does */
	assert_false(pass_until(SWEEP_SCAN_ASKED, AT_GRACE));
	sweep_ring_moves(s, 1, slot(1, 0), slot(1, 0));
	finish();
	assert_int_equal(sweep_result(s)->lookup, 1);
	assert_int_equal(pass()->lookup, 0);
	assert_service(3, 1, 1, XLB_SERVICE_HASH_SOURCE);
	assert_service(4, 0, 0, 0);
}

/* An age has 15 bits: then an old entry would be a young one. */
static void
entries_go_before_their_age_wraps(void **state)
{
	uint64_t *old, *known;

	(void)state;
	restart();
	old = entry(1, 0, A, XLB_FLOW_CONFIRMED, XLB_FLOW_KNOWN + 1);
	known = entry(1, 1, A, XLB_FLOW_CONFIRMED, XLB_FLOW_KNOWN);
	assert_false(pass()->scanned);
	assert_true(pass_until(SWEEP_SCAN_ALWAYS, -1));
	assert_int_equal(*old, 0);
	assert_int_not_equal(*known, 0);
	assert_int_equal(sweep_result(s)->wrapped, 1);
	assert_int_equal(sweep_result(s)->live, 0);
}

/* With no memory of its own, however often it begins anew. */
static void
killed_anywhere_it_ends_the_same(void **state)
{
	int stop, rounds;

	(void)state;
	for (stop = 1; stop < 60; stop++) {
		memset(flows, 0, sizeof(flows));
		moved(7, OLD);
		moved(8, OLD);
		moved(9, 0);
		entry(8, 1, A, XLB_FLOW_CONFIRMED, 0);
		entry(100, 5, C, XLB_FLOW_CONFIRMED, 0);
		tables->backend[C].flags = XLB_BACKEND_RETIRED;
		for (rounds = 0; rounds < 3; rounds++) {
			restart();
			/* a kill, once further on each time */
			if (pass_until(SWEEP_SCAN_ALWAYS, stop + rounds))
				break;
			/* the flow that was there is still looked up */
			assert_true(*slot(0, 8) & XLB_SLOT_LOOKUP);
			assert_int_equal(XLB_SLOT_PREV(*slot(0, 9)), A);
		}
		restart();
		pass();
		pass();
		assert_int_equal(*slot(0, 7), XLB_SLOT(B, 0, 0));
		assert_int_equal(*slot(0, 8), XLB_SLOT(B, 1, 0));
		assert_int_equal(*slot(0, 9), XLB_SLOT(B, 1, A));
		assert_int_equal(flows[0].entry[5], 0);
		assert_int_equal(sweep_freed(s, 1), C);
	}
}

/* Between reading the rings and the flows. */
static void
what_goes_meanwhile_is_left_alone(void **state)
{
	uint32_t other = XLB_SLOT(C, 0, 0);

	(void)state;
	ring_there[1] = true;
	moved(7, OLD);
	moved(8, OLD);
	role(1, B, XLB_MEMBER | XLB_MEMBER_KEEPS);
	*slot(1, 9) = XLB_SLOT(B, 1, 0);
	entry(9, 3, A, XLB_FLOW_CONFIRMED, 0);
	role(1, A, XLB_MEMBER | XLB_MEMBER_KEEPS);
	restart();
	assert_false(pass_until(SWEEP_SCAN_ASKED, AT_GRACE));
	*slot(0, 7) = other;		/* by somebody, who told nobody */
	sweep_ring(s, 1, NULL);
	finish();
	assert_int_equal(sweep_result(s)->lookup, 2);
	assert_int_equal(*slot(0, 7), other);
	assert_int_equal(*slot(0, 8), XLB_SLOT(B, 0, 0));
	assert_int_equal(*slot(1, 9), XLB_SLOT(B, 1, 0));
	/* and there is nothing to do until the next pass */
	assert_false(sweep_running(s));
	assert_int_equal(sweep_step(s, now), SWEEP_DONE);
}

/* Edited maps: rows name what is none. */
static void
services_that_are_none_are_left_alone(void **state)
{
	uint64_t word[2] = { XLB_SERVICE_WORD(XLB_SERVICES, 0, 0,
	    XLB_SERVICE_LOOKUP), XLB_SERVICE_WORD(1, XLB_RINGS, 0,
	    XLB_SERVICE_LOOKUP) };
	int i;

	(void)state;
	for (i = 0; i < 2; i++) {
		tables->service[i].key = XLB_SERVICE_VALID;
		tables->service[i].word = word[i];
	}
	service(3, 0, 0, XLB_SERVICE_LOOKUP);
	restart();
	assert_int_equal(pass()->lookup, 0);
	assert_service(3, 0, 0, 0);
	for (i = 0; i < 2; i++)
		assert_true(tables->service[i].word == word[i]);
}

/* More slots than are done in one piece: each is reached. */
static void
large_rings_go_in_pieces(void **state)
{
	static const uint32_t at[] = { 0, 4095, 4096, 65536 };
	const uint32_t size = 65537;
	struct xlb_ring *large = calloc(1, (size_t)xlb_ring_bytes(size));
	uint32_t i, pieces = 0;

	(void)state;
	large->size = size;
	ring_member_set(large->member, A, XLB_MEMBER | XLB_MEMBER_KEEPS);
	ring_member_set(large->member, B, XLB_MEMBER | XLB_MEMBER_KEEPS);
	for (i = 0; i < 4; i++) {
		large->slot[at[i]] = XLB_SLOT(B, 1, A);
		large->slot[2 * size + at[i]] = XLB_PAST(A, (now - OLD) &
		    XLB_PAST_TICK_MASK);
	}
	s = sweep_new(tables, size);
	sweep_ring(s, 0, large);
	sweep_flows(s, flows, SETS);
	sweep_begin(s, SWEEP_SCAN_ASKED);
	for (; sweep_step(s, now) != SWEEP_DONE; pieces++)
		sweep_graced(s);
	assert_true(pieces > 8);
	for (i = 0; i < 4; i++)
		assert_int_equal(large->slot[at[i]], XLB_SLOT(B, 0, 0));
	free(large);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, fresh, done)

int
main(void)
{
	const struct CMUnitTest test[] = {
		CASE(prev_goes_after_its_time_and_lookup_after_that),
		CASE(live_entries_of_other_members_keep_lookup),
		CASE(an_entry_at_a_slots_edge_counts_for_both),
		CASE(a_slot_that_changed_meanwhile_stays_looked_up),
		CASE(an_old_entry_that_is_used_meanwhile_keeps_lookup),
		CASE(numbers_are_free_when_no_entry_has_them),
		CASE(a_service_forgets_its_old_ring_then_its_lookup),
		CASE(entries_go_before_their_age_wraps),
		CASE(killed_anywhere_it_ends_the_same),
		CASE(what_goes_meanwhile_is_left_alone),
		CASE(services_that_are_none_are_left_alone),
		CASE(large_rings_go_in_pieces),
	};

	return cmocka_run_group_tests_name("sweep", test, NULL, NULL);
}
