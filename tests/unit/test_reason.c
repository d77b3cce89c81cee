/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reasons have names that lead back to them, and kinds that add up. */
#include "unit.h"

#include <string.h>

#include "core/reason.h"

static void
names_lead_back(void **state)
{
	int r;

	(void)state;
	for (r = 0; r < XLB_REASON_COUNT; r++)
		assert_int_equal(reason_find(reason_name((enum xlb_reason)r)),
		    r);
	assert_string_equal(reason_name(XLB_REASON_NO_BACKEND), "no_backend");
	assert_int_equal(reason_find("no_such"), -1);
	assert_int_equal(reason_find(""), -1);
	/* what another build's program counts */
	assert_string_equal(reason_name(XLB_REASON_COUNT), "unknown");
}

static void
kinds_say_what_became_of_the_packet(void **state)
{
	static const struct {
		enum xlb_reason r;
		enum reason_kind kind;
	} row[] = {
		{ XLB_REASON_FORWARD, REASON_SENT },
		{ XLB_REASON_FORWARD_PREV, REASON_SENT },
		{ XLB_REASON_FORWARD_PINNED, REASON_SENT },
		{ XLB_REASON_ECHO, REASON_SENT },
		{ XLB_REASON_TOO_BIG, REASON_SENT },
		{ XLB_REASON_NOT_VIP, REASON_PASS },
		{ XLB_REASON_VIP_LOCAL, REASON_PASS },
		{ XLB_REASON_NO_SERVICE, REASON_DROP },
		{ XLB_REASON_NO_BACKEND, REASON_DROP },
		{ XLB_REASON_MALFORMED, REASON_DROP },
		{ XLB_REASON_MARTIAN, REASON_DROP },
		{ XLB_REASON_COUNT, REASON_DROP },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(row) / sizeof(row[0]); i++)
		if (reason_kind(row[i].r) != row[i].kind)
			fail_msg("%s", reason_name(row[i].r));
}

int
main(void)
{
	const struct CMUnitTest test[] = {
		cmocka_unit_test(names_lead_back),
		cmocka_unit_test(kinds_say_what_became_of_the_packet),
	};

	return cmocka_run_group_tests_name("reason", test, NULL, NULL);
}
