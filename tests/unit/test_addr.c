/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unit.h"

#include <string.h>

#include "core/addr.h"

static void
addresses_parse_and_print(void **state)
{
	static const char *const same[] = { "0.0.0.0", "192.0.2.1",
	    "255.255.255.255", "::", "2001:db8::1", "fe80::1" };
	char buf[ADDR_STR_MAX];
	struct addr a;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
		assert_int_equal(addr_parse(same[i], &a), 0);
		assert_string_equal(addr_print(&a, buf), same[i]);
	}
}

static void
what_is_no_literal_is_refused(void **state)
{
	static const char *const bad[] = { "", "192.0.2", "192.0.2.256",
	    "localhost", "::ffff:192.0.2.1", "2001:db8::1%eth0", "1.2.3.4 " };
	struct addr a;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(addr_parse(bad[i], &a), -1);
}

static void
prefixes_hold_their_addresses(void **state)
{
	static const struct {
		const char *prefix, *addr;
		bool in;
	} row[] = {
		{ "0.0.0.0/0", "192.0.2.1", true },
		{ "0.0.0.0/0", "2001:db8::1", false },
		{ "10.1.2.0/23", "10.1.3.255", true },
		{ "10.1.2.0/23", "10.1.4.0", false },
		{ "10.1.2.3/32", "10.1.2.3", true },
		{ "2001:db8::/33", "2001:db8:7fff::", true },
		{ "2001:db8::/33", "2001:db8:8000::", false },
		{ "::/0", "192.0.2.1", false },
	};
	struct prefix p;
	struct addr a;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		assert_int_equal(prefix_parse(row[i].prefix, &p), 0);
		assert_int_equal(addr_parse(row[i].addr, &a), 0);
		assert_int_equal(prefix_has(&p, &a), row[i].in);
	}
	assert_int_equal(prefix_parse("10.0.0.1/16", &p), -1);
	assert_int_equal(prefix_parse("10.0.0.0/33", &p), -1);
	assert_int_equal(prefix_parse("10.0.0.0/+8", &p), -1);
	assert_int_equal(prefix_parse("10.0.0.0", &p), -1);
}

static void
ports_want_brackets_round_ipv6(void **state)
{
	char buf[ADDRPORT_STR_MAX];
	struct addr a;
	uint16_t port;

	(void)state;
	assert_int_equal(addrport_parse("[2001:db8::1]:443", &a, &port), 0);
	assert_string_equal(addrport_print(&a, port, buf), "[2001:db8::1]:443");
	assert_int_equal(addrport_parse("192.0.2.1:80", &a, &port), 0);
	assert_string_equal(addrport_print(&a, port, buf), "192.0.2.1:80");
	assert_int_equal(addrport_parse("2001:db8::1:443", &a, &port), -1);
	assert_int_equal(addrport_parse("[192.0.2.1]:80", &a, &port), -1);
	assert_int_equal(addrport_parse("[2001:db8::1]443", &a, &port), -1);
	assert_int_equal(addrport_parse("[2001:db8::1:443", &a, &port), -1);
	/* cut to the longest text of an address it would be one */
	assert_int_equal(addrport_parse("[1111:2222:3333:4444:5555:6666:"
	    "111.112.113.114]:1", &a, &port), 0);
	assert_int_equal(addrport_parse("[1111:2222:3333:4444:5555:6666:"
	    "111.112.113.1145]:1", &a, &port), -1);
	assert_int_equal(addrport_parse("192.0.2.1:65536", &a, &port), -1);
	assert_int_equal(addrport_parse("192.0.2.1:", &a, &port), -1);
}

static void
sockaddr_and_back(void **state)
{
	static const char *const text[] = { "192.0.2.1", "2001:db8::1" };
	struct sockaddr_storage ss;
	struct addr a, b;
	size_t i;

	(void)state;
	for (i = 0; i < 2; i++) {
		assert_int_equal(addr_parse(text[i], &a), 0);
		addr_sockaddr(&a, 443, &ss);
		b = addr_from_sockaddr(&ss);
		assert_int_equal(addr_cmp(&a, &b), 0);
	}
	ss.ss_family = AF_UNIX;
	b = addr_from_sockaddr(&ss);
	assert_true(addr_is_zero(&b));
}

int
main(void)
{
	const struct CMUnitTest test[] = {
		cmocka_unit_test(addresses_parse_and_print),
		cmocka_unit_test(what_is_no_literal_is_refused),
		cmocka_unit_test(prefixes_hold_their_addresses),
		cmocka_unit_test(ports_want_brackets_round_ipv6),
		cmocka_unit_test(sockaddr_and_back),
	};

	return cmocka_run_group_tests_name("addr", test, NULL, NULL);
}
