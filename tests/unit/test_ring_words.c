/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A slot's words, through histories of owners. */
#include "unit.h"

#include <string.h>

#include "core/ring_words.h"

enum { NONE, A, B, C, D };	/* backend numbers */
#define LOOK true

/* One change, or time that passes (`cur` is -1), and what the slot is then. */
struct event {
	uint32_t tick;
	int cur;
	const char *dead;	/* backends whose flows do not stay: "AB"; that
				 * only take no new ones: "ab"; "+": the new
				 * owner has other slots already */
	uint32_t want_cur;
	bool lookup;
	uint32_t prev;
};

#define HOUR XLB_FLOW_LIVE
#define EVENTS 8

static const struct {
	const char *what;
	struct event event[EVENTS];
} history[] = {
	{ "a first owner has no flows to look for", {
		{ 0, A, "", A, false, NONE },
		{ 5, A, "", A, false, NONE } } },
	{ "a node that begins: who is known first leaves no trace", {
		{ 0, NONE, "", NONE, false, NONE },
		{ 1, A, "", A, false, NONE },
		{ 2, B, "", B, LOOK, NONE },
		{ 3, C, "", C, LOOK, NONE } } },
	{ "but one that had slots and gets more is a change like any other", {
		{ 0, NONE, "", NONE, false, NONE },
		{ 1, A, "", A, false, NONE },
		{ 2, B, "", B, LOOK, NONE },
		{ 3, C, "+", C, LOOK, B },
		{ 8, -1, "", C, LOOK, B },
		{ 9, -1, "", C, LOOK, NONE } } },
	{ "nor does one whose end comes so soon", {
		{ 1, A, "", A, false, NONE },
		{ 2, B, "", B, LOOK, NONE },
		{ 3, C, "B", C, LOOK, NONE } } },
	{ "but a drain so soon is one", {
		{ 1, A, "", A, false, NONE },
		{ 3, B, "a", B, LOOK, A } } },
	{ "also of one that took over from another", {
		{ 1, A, "", A, false, NONE },
		{ 2, B, "", B, LOOK, NONE },
		{ 3, C, "b", C, LOOK, B } } },
	{ "and so is any change after a while", {
		{ 1, A, "", A, false, NONE },
		{ 7, B, "", B, LOOK, A } } },
	{ "a drain: unknown flows go to the one before, for 20 s", {
		{ 0, A, "", A, false, NONE },
		{ 50, B, "", B, LOOK, A },
		{ 55, -1, "", B, LOOK, A },
		{ 56, -1, "", B, LOOK, NONE },
		{ 999, -1, "", B, LOOK, NONE } } },
	{ "a dead one is never asked", {
		{ 0, A, "", A, false, NONE },
		{ 50, B, "A", B, LOOK, NONE } } },
	{ "one that dies after its drain is not asked any more", {
		{ 0, A, "", A, false, NONE },
		{ 50, B, "", B, LOOK, A },
		{ 51, -1, "A", B, LOOK, NONE } } },
	{ "nor after the next change; the other's flows are all in the table", {
		{ 0, A, "", A, false, NONE },
		{ 50, B, "", B, LOOK, A },
		{ 51, C, "A", C, LOOK, NONE },
		{ 57, D, "A", D, LOOK, C } } },
	{ "who stands in for a dead one leaves no trace", {
		{ 0, A, "", A, false, NONE },
		{ 50, B, "A", B, LOOK, NONE },
		{ 52, C, "A", C, LOOK, NONE },
		{ 54, A, "", A, LOOK, NONE },
		{ 55, C, "", C, LOOK, A },
		{ 56, A, "", A, LOOK, NONE } } },
	{ "unless it does for long", {
		{ 0, A, "", A, false, NONE },
		{ 50, B, "A", B, LOOK, NONE },
		{ 56, C, "A", C, LOOK, B } } },
	{ "the same owner again changes nothing", {
		{ 0, A, "", A, false, NONE },
		{ 50, B, "", B, LOOK, A },
		{ 52, B, "", B, LOOK, A },
		{ 56, -1, "", B, LOOK, NONE } } },
	{ "but that a dead one goes", {
		{ 0, A, "", A, false, NONE },
		{ 50, B, "", B, LOOK, A },
		{ 52, B, "A", B, LOOK, NONE } } },
	{ "of a chain within 20 s the first stays, from its own time", {
		{ 0, A, "", A, false, NONE },
		{ 50, B, "", B, LOOK, A },
		{ 52, C, "", C, LOOK, A },
		{ 54, D, "", D, LOOK, A },
		{ 55, -1, "", D, LOOK, A },
		{ 56, -1, "", D, LOOK, NONE } } },
	{ "after that the next change begins anew", {
		{ 0, A, "", A, false, NONE },
		{ 50, B, "", B, LOOK, A },
		{ 56, -1, "", B, LOOK, NONE },
		{ 60, C, "", C, LOOK, B } } },
	{ "back within 20 s: nobody else's flows are unknown", {
		{ 0, A, "", A, false, NONE },
		{ 50, B, "", B, LOOK, A },
		{ 52, A, "", A, LOOK, NONE },
		{ 60, -1, "", A, LOOK, NONE } } },
	{ "and there and back again is like the first time", {
		{ 0, A, "", A, false, NONE },
		{ 50, B, "", B, LOOK, A },
		{ 52, A, "", A, LOOK, NONE },
		{ 54, B, "", B, LOOK, A } } },
	{ "a chain that ends where it began", {
		{ 0, A, "", A, false, NONE },
		{ 50, B, "", B, LOOK, A },
		{ 51, C, "", C, LOOK, A },
		{ 52, A, "", A, LOOK, NONE } } },
	{ "back within the hour: its own flows are the unknown ones", {
		{ 0, A, "", A, false, NONE },
		{ 50, B, "", B, LOOK, A },
		{ 60, -1, "", B, LOOK, NONE },
		{ 50 + HOUR, A, "", A, LOOK, NONE } } },
	{ "back after more than an hour: they are the other's", {
		{ 0, A, "", A, false, NONE },
		{ 50, B, "", B, LOOK, A },
		{ 60, -1, "", B, LOOK, NONE },
		{ 51 + HOUR, A, "", A, LOOK, B } } },
	{ "a flap of health: the dead one's flows have moved", {
		{ 0, A, "", A, false, NONE },
		{ 50, B, "A", B, LOOK, NONE },
		{ 52, A, "", A, LOOK, NONE },
		{ 60, B, "A", B, LOOK, NONE },
		{ 890, A, "", A, LOOK, NONE } } },
	{ "the last one drains: it keeps its flows, nobody takes new ones", {
		{ 0, A, "", A, false, NONE },
		{ 50, NONE, "", NONE, LOOK, A },
		{ 53, B, "", B, LOOK, A },
		{ 56, -1, "", B, LOOK, NONE } } },
	{ "everybody is dead, and back", {
		{ 0, A, "", A, false, NONE },
		{ 50, NONE, "A", NONE, LOOK, NONE },
		{ 60, A, "", A, LOOK, NONE } } },
	{ "undrain long after", {
		{ 0, A, "", A, false, NONE },
		{ 50, B, "", B, LOOK, A },
		{ 56, -1, "", B, LOOK, NONE },
		{ 60 + 2 * HOUR, A, "", A, LOOK, B },
		{ 66 + 2 * HOUR, -1, "", A, LOOK, NONE } } },
	{ "the clock's bits may come round", {
		{ 0x1fff0, A, "", A, false, NONE },
		{ 0x1ffff, B, "", B, LOOK, A },
		{ 0x20004, -1, "", B, LOOK, A },
		{ 0x20005, -1, "", B, LOOK, NONE } } },
};

static void
roles_set(uint32_t *member, const char *dead)
{
	uint32_t i;

	for (i = A; i <= D; i++)
		ring_member_set(member, i, XLB_MEMBER |
		    (strchr(dead, (int)('A' + i - A)) ? 0 : XLB_MEMBER_KEEPS));
}

/* The owner would go on, but now the new one is known, too. */
static bool
is_late(uint32_t owner, const char *dead)
{
	return owner != NONE && !strchr(dead, (int)('A' + owner - A)) &&
	    !strchr(dead, (int)('a' + owner - A)) && !strchr(dead, '+');
}

static void
histories(void **state)
{
	uint32_t member[RING_MEMBER_WORDS] = { 0 };
	const struct event *e;
	struct ring_slot s;
	size_t i, k;

	(void)state;
	for (i = 0; i < sizeof(history) / sizeof(history[0]); i++) {
		memset(&s, 0, sizeof(s));
		for (k = 0; k < EVENTS; k++) {
			e = &history[i].event[k];
			if (e->dead == NULL)
				break;
			roles_set(member, e->dead);
			s = e->cur < 0 ? ring_slot_age(s, member, e->tick) :
			    ring_slot_step(s, (uint32_t)e->cur, member,
			    is_late(XLB_SLOT_CUR(s.word), e->dead), e->tick);
			if (s.word != XLB_SLOT(e->want_cur, e->lookup, e->prev))
				fail_msg("%s: event %zu: cur %u%s prev %u",
				    history[i].what, k, XLB_SLOT_CUR(s.word),
				    s.word & XLB_SLOT_LOOKUP ? " lookup" : "",
				    XLB_SLOT_PREV(s.word));
		}
		assert_true(k > 1);
	}
}

/* xlbd was killed between two stores, or somebody wrote there. */
static void
a_prev_of_unknown_age_begins_now(void **state)
{
	uint32_t member[RING_MEMBER_WORDS] = { 0 };
	struct ring_slot s = { XLB_SLOT(B, 1, A), 0 };

	(void)state;
	roles_set(member, "");
	s = ring_slot_age(s, member, 500);
	assert_int_equal(s.word, XLB_SLOT(B, 1, A));
	assert_int_equal(s.past, XLB_PAST(A, 500));
	s = ring_slot_age(s, member, 505);
	assert_int_equal(s.word, XLB_SLOT(B, 1, A));
	s = ring_slot_age(s, member, 506);
	assert_int_equal(s.word, XLB_SLOT(B, 1, 0));
	s.word = XLB_SLOT(B, 1, A);
	s.past = XLB_PAST(C, 400);
	s = ring_slot_step(s, D, member, true, 500);
	assert_int_equal(s.word, XLB_SLOT(D, 1, A));
	assert_int_equal(s.past, XLB_PAST(A, 500));
}

/* 17 bits of ticks are 6.5 days: then it would look young again. */
static void
the_past_is_forgotten(void **state)
{
	uint32_t member[RING_MEMBER_WORDS] = { 0 };
	struct ring_slot s = { XLB_SLOT(B, 1, 0), XLB_PAST(A, 100) };

	(void)state;
	roles_set(member, "");
	assert_int_equal(ring_slot_age(s, member, 100 + HOUR).past, s.past);
	assert_int_equal(ring_slot_age(s, member, 101 + HOUR).past, 0);
}

static void
members_are_two_bits_each(void **state)
{
	uint32_t member[RING_MEMBER_WORDS] = { 0 };
	static const uint32_t number[] = { 1, 15, 16, 17, 5000, 16383 };
	size_t i, n = sizeof(number) / sizeof(number[0]);
	uint32_t at = 0;

	(void)state;
	assert_int_equal(ring_member_next(member, 0), XLB_BACKENDS);
	for (i = 0; i < n; i++)
		ring_member_set(member, number[i], i % 3 + 1);
	for (i = 0; i < n; i++) {
		assert_int_equal(ring_member(member, number[i]), i % 3 + 1);
		at = ring_member_next(member, at);
		assert_int_equal(at++, number[i]);
	}
	assert_int_equal(ring_member_next(member, at), XLB_BACKENDS);
	for (i = 0; i < n; i++)
		ring_member_set(member, number[i], 0);
	assert_int_equal(ring_member_next(member, 0), XLB_BACKENDS);
}

int
main(void)
{
	const struct CMUnitTest test[] = {
		cmocka_unit_test(histories),
		cmocka_unit_test(a_prev_of_unknown_age_begins_now),
		cmocka_unit_test(the_past_is_forgotten),
		cmocka_unit_test(members_are_two_bits_each),
	};

	return cmocka_run_group_tests_name("ring_words", test, NULL, NULL);
}
