/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where a flow goes, rule by rule. */
#include "unit.h"

#include <netinet/in.h>
#include <string.h>

#include "core/lookup.h"

#define TICK (UINT64_C(1) << XLB_FLOW_TICK_SHIFT)
#define NOW 40000	/* ticks: the 15 bits of an entry have wrapped */
#define C XLB_FLOW_CONFIRMED
#define F XLB_FLOW_CLOSING

/* Backend 1 is the slot's owner, 2 keeps its flows, 3 is dead, 4 keeps them. */
static const struct {
	const char *what;
	uint8_t proto;		/* 0: TCP */
	uint32_t word, service, old;
	uint32_t entry, flags, age;	/* backend, XLB_FLOW_*, ticks */
	uint32_t want;
	enum lookup_why why;
} row[] = {
	{ .what = "the slot's owner", .word = XLB_SLOT(1, 0, 0), .want = 1 },
	{ .what = "nobody", .want = 0, .why = LOOKUP_NO_BACKEND },
	{ .what = "an entry that agrees", .word = XLB_SLOT(1, 0, 0),
	  .entry = 1, .flags = C, .want = 1 },
	{ .what = "an entry that does not, stable", .word = XLB_SLOT(1, 0, 0),
	  .entry = 2, .flags = C, .age = XLB_FLOW_LIVE, .want = 2,
	  .why = LOOKUP_ENTRY },
	{ .what = "the same, older than what was waited for",
	  .word = XLB_SLOT(1, 0, 0), .entry = 2, .flags = C,
	  .age = XLB_FLOW_LIVE + 1, .want = 1 },
	{ .what = "the same, moved", .word = XLB_SLOT(1, 1, 0), .entry = 2,
	  .flags = C, .age = XLB_FLOW_LIVE + 1, .want = 2,
	  .why = LOOKUP_ENTRY },
	{ .what = "moved, for long not used", .word = XLB_SLOT(1, 1, 0),
	  .entry = 2, .flags = C, .age = XLB_FLOW_KNOWN + 1, .want = 1 },
	{ .what = "opening, stable", .word = XLB_SLOT(1, 0, 0), .entry = 2,
	  .age = XLB_FLOW_OPENING, .want = 2, .why = LOOKUP_ENTRY },
	{ .what = "opening, too long", .word = XLB_SLOT(1, 0, 0), .entry = 2,
	  .age = XLB_FLOW_OPENING + 1, .want = 1 },
	{ .what = "closing", .word = XLB_SLOT(1, 1, 0), .entry = 2,
	  .flags = C | F, .age = XLB_FLOW_SESSION, .want = 2,
	  .why = LOOKUP_ENTRY },
	{ .what = "closed", .word = XLB_SLOT(1, 1, 2), .entry = 4,
	  .flags = C | F, .age = XLB_FLOW_SESSION + 1, .want = 2,
	  .why = LOOKUP_PREV },
	{ .what = "an entry of a dead one", .word = XLB_SLOT(1, 1, 2),
	  .entry = 3, .flags = C, .want = 1 },
	{ .what = "the owner before", .word = XLB_SLOT(1, 1, 2), .want = 2,
	  .why = LOOKUP_PREV },
	{ .what = "the owner before is dead", .word = XLB_SLOT(1, 1, 3),
	  .want = 1 },
	{ .what = "a service that changed its pool",
	  .word = XLB_SLOT(1, 0, 2), .service = XLB_SERVICE_LOOKUP, .old = 4,
	  .want = 4, .why = LOOKUP_PREV },
	{ .what = "to one without the backend", .word = XLB_SLOT(1, 0, 0),
	  .service = XLB_SERVICE_LOOKUP, .old = 3, .want = 1 },
	{ .what = "UDP, stable", .proto = IPPROTO_UDP,
	  .word = XLB_SLOT(1, 0, 0), .entry = 2, .flags = F, .want = 1 },
	{ .what = "UDP, moved", .proto = IPPROTO_UDP,
	  .word = XLB_SLOT(1, 1, 0), .entry = 2, .flags = F, .want = 2,
	  .why = LOOKUP_ENTRY },
	{ .what = "datagrams", .proto = IPPROTO_UDP,
	  .service = XLB_SERVICE_DATAGRAM, .word = XLB_SLOT(1, 1, 2),
	  .entry = 2, .flags = F, .want = 1 },
	{ .what = "written by a clock that is ahead",
	  .word = XLB_SLOT(1, 0, 0), .entry = 2, .flags = C,
	  .age = (uint32_t)-3, .want = 2, .why = LOOKUP_ENTRY },
};

static void
the_rules(void **state)
{
	static uint32_t member[XLB_BACKENDS / 16];
	enum lookup_why why;
	uint32_t got;
	size_t i;

	(void)state;
	member[0] = XLB_MEMBER << 6 | (XLB_MEMBER | XLB_MEMBER_KEEPS) << 2 |
	    (XLB_MEMBER | XLB_MEMBER_KEEPS) << 4 |
	    (XLB_MEMBER | XLB_MEMBER_KEEPS) << 8;
	for (i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct lookup_in in = { .word = row[i].word,
		    .service = XLB_SERVICE_WORD(0, 0, 0, row[i].service),
		    .old = row[i].old, .now = NOW * TICK + TICK / 2,
		    .member = member, .proto = row[i].proto != 0 ?
		    row[i].proto : IPPROTO_TCP };

		if (row[i].entry != 0)
			in.entry = XLB_FLOW(7, row[i].entry, row[i].flags,
			    NOW - row[i].age);
		got = lookup_decide(&in, &why);
		if (got != row[i].want || why != row[i].why)
			fail_msg("%s: %u by %s", row[i].what, got,
			    lookup_why_text(why));
	}
}

static void
ages(void **state)
{
	(void)state;
	assert_int_equal(lookup_age(XLB_FLOW(1, 1, C, NOW), NOW * TICK), 0);
	assert_int_equal(lookup_age(XLB_FLOW(1, 1, C, NOW - 9), NOW * TICK),
	    9 * TICK);
	assert_int_equal(lookup_age(XLB_FLOW(1, 1, C, NOW + 2), NOW * TICK),
	    0);
}

int
main(void)
{
	const struct CMUnitTest test[] = {
		cmocka_unit_test(the_rules),
		cmocka_unit_test(ages),
	};

	return cmocka_run_group_tests_name("lookup", test, NULL, NULL);
}
