/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unit.h"

#include <arpa/inet.h>

#include "core/source.h"

static struct xlb_settings none;

static bool
plain(const struct xlb_settings *s, const char *text)
{
	struct in_addr a;

	assert_int_equal(inet_pton(AF_INET, text, &a), 1);
	return source_is_plain(xlb_source_at(a.s_addr), s);
}

static struct xlb_settings
with(const char *prefix, uint32_t length)
{
	struct xlb_settings s = none;
	struct in_addr a;

	assert_int_equal(inet_pton(AF_INET, prefix, &a), 1);
	s.source4 = a.s_addr;
	s.source4_mask = htonl((uint32_t)(0xffffffffULL >> length));
	return s;
}

static void
what_nobody_sends_from_is_not_plain(void **state)
{
	(void)state;
	assert_true(plain(&none, "1.0.0.1"));
	assert_true(plain(&none, "126.255.0.1"));
	assert_true(plain(&none, "128.0.0.1"));
	assert_true(plain(&none, "223.255.255.255"));
	assert_false(plain(&none, "0.1.2.3"));
	assert_false(plain(&none, "127.200.0.1"));
	assert_false(plain(&none, "224.0.0.1"));
	assert_false(plain(&none, "255.255.255.255"));
}

static void
all_of_the_tunnels_prefix_is_not_plain(void **state)
{
	struct xlb_settings s;

	(void)state;
	s = with("10.252.0.0", 14);
	assert_true(plain(&s, "10.251.255.255"));
	assert_false(plain(&s, "10.252.0.0"));
	assert_false(plain(&s, "10.255.1.1"));
	assert_true(plain(&s, "11.0.0.0"));
	s = with("10.0.0.0", 8);
	assert_false(plain(&s, "10.99.0.0"));
	assert_true(plain(&s, "9.99.0.0"));
	/* longer than 16 bits: the whole of the 16 is looked at */
	s = with("192.0.2.128", 25);
	assert_false(plain(&s, "192.0.200.1"));
	assert_true(plain(&s, "192.1.2.129"));
	s = with("192.0.2.1", 32);
	assert_false(plain(&s, "192.0.2.1"));
	assert_true(plain(&s, "193.0.2.1"));
}

int
main(void)
{
	const struct CMUnitTest test[] = {
		cmocka_unit_test(what_nobody_sends_from_is_not_plain),
		cmocka_unit_test(all_of_the_tunnels_prefix_is_not_plain),
	};

	return cmocka_run_group_tests_name("source", test, NULL, NULL);
}
