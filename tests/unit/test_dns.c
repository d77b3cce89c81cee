/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Queries, byte by byte, and replies with any byte missing or wrong. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/dns.h"

/* www.example.com, A (RFC 1035, 4.1) */
static const uint8_t query_www[] = { 0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0,
    3, 'w', 'w', 'w', 7, 'e', 'x', 'a', 'm', 'p', 'l', 'e', 3, 'c', 'o', 'm',
    0, 0, 1, 0, 1 };
static const uint8_t answer_www[] = { 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4,
    192, 0, 2, 1 };

static void
types_have_names_and_numbers(void **state)
{
	char buf[DNS_TYPE_STR_MAX];

	(void)state;
	assert_int_equal(dns_type_parse("A"), 1);
	assert_int_equal(dns_type_parse("aaaa"), 28);
	assert_int_equal(dns_type_parse("SOA"), 6);
	assert_int_equal(dns_type_parse("TYPE65535"), 65535);
	assert_int_equal(dns_type_parse("TYPE65536"), 0);
	assert_int_equal(dns_type_parse("TYPE0"), 0);
	assert_int_equal(dns_type_parse("TYPE"), 0);
	assert_int_equal(dns_type_parse("TYPE1 "), 0);
	assert_int_equal(dns_type_parse("AX"), 0);
	assert_int_equal(dns_type_parse(""), 0);
	assert_string_equal(dns_type_print(15, buf), "MX");
	assert_string_equal(dns_type_print(999, buf), "TYPE999");
	assert_string_equal(dns_rcode_text(3), "NXDOMAIN");
	assert_null(dns_rcode_text(9));
}

static void
queries_are_built(void **state)
{
	static const uint8_t root[] = { 0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0,
	    0, 6, 0, 1 };
	uint8_t q[DNS_QUERY_MAX];
	char name[300];

	(void)state;
	assert_int_equal(dns_query_build("www.example.com", 1, 0x1234, q),
	    sizeof(query_www));
	assert_memory_equal(q, query_www, sizeof(query_www));
	assert_int_equal(dns_query_build("www.example.com.", 1, 0x1234, q),
	    sizeof(query_www));
	assert_int_equal(dns_query_build("", 6, 1, q), sizeof(root));
	assert_memory_equal(q, root, sizeof(root));
	assert_int_equal(dns_query_build(".", 6, 1, q), sizeof(root));
	assert_int_equal(dns_query_build("a..b", 1, 1, q), 0);
	assert_int_equal(dns_query_build(".a", 1, 1, q), 0);
	memset(name, 'a', sizeof(name));
	name[63] = '\0';
	assert_int_not_equal(dns_query_build(name, 1, 1, q), 0);
	name[63] = 'a';
	name[64] = '\0';
	assert_int_equal(dns_query_build(name, 1, 1, q), 0);
	memset(name, 'a', sizeof(name));
	for (size_t i = 9; i < sizeof(name); i += 10)
		name[i] = '.';
	name[253] = '\0';
	assert_int_not_equal(dns_query_build(name, 1, 1, q), 0);
	name[253] = 'a';
	name[254] = '\0';
	assert_int_equal(dns_query_build(name, 1, 1, q), 0);
}

static bool
judge(const uint8_t *m, size_t len, enum probe_result *r)
{
	/* exactly as long as it is, for whoever watches memory */
	uint8_t *exact = malloc(len + (len == 0));
	uint16_t detail;
	bool rc;

	memcpy(exact, m, len);
	rc = dns_reply_judge(query_www, sizeof(query_www), exact, len, r,
	    &detail);
	free(exact);
	return rc;
}

/* With any byte behind the flags missing it is nonsense; with any bit wrong it is
 * something, and never read beyond. */
static void
no_damage_passes_unseen(void **state)
{
	uint8_t m[sizeof(query_www) + sizeof(answer_www)];
	size_t i, bit, passed = 0;
	enum probe_result r;

	(void)state;
	memcpy(m, query_www, sizeof(query_www));
	memcpy(m + sizeof(query_www), answer_www, sizeof(answer_www));
	m[2] = 0x81;
	m[7] = 1;
	assert_true(judge(m, sizeof(m), &r));
	assert_int_equal(r, PROBE_OK);
	for (i = 0; i < sizeof(m); i++)
		if (judge(m, i, &r))
			assert_int_equal(r, PROBE_NONSENSE);
		else
			assert_true(i < 3);
	for (i = 0; i < sizeof(m); i++)
		for (bit = 0; bit < 8; bit++) {
			m[i] ^= (uint8_t)(1U << bit);
			if (judge(m, sizeof(m), &r) && r == PROBE_OK)
				passed++;
			m[i] ^= (uint8_t)(1U << bit);
		}
	/* flags 10 (of 16: not the response bit, not four of opcode and five
	 * others that an answer may have); the case of 13 letters; TTL 32 and
	 * address 32, which nobody reads */
	assert_in_range(passed, 32 + 32 + 13, 32 + 32 + 13 + 16);
	/* more records announced than there are */
	m[7] = 2;
	assert_true(judge(m, sizeof(m), &r));
	assert_int_equal(r, PROBE_NONSENSE);
}

/* A reply that is none to the question is waited past, unless it is an error
 * that leaves the question out. */
static void
errors_may_leave_out_the_question(void **state)
{
	uint8_t m[sizeof(query_www)];
	enum probe_result r;

	(void)state;
	memcpy(m, query_www, sizeof(m));
	m[2] = 0x81;
	m[3] = 5;		/* REFUSED */
	assert_true(judge(m, sizeof(m), &r));
	assert_int_equal(r, PROBE_RCODE);
	m[13] = 'x';		/* another name's */
	assert_false(judge(m, sizeof(m), &r));
	m[3] = 0;
	assert_false(judge(m, sizeof(m), &r));
	m[5] = 0;		/* no question at all: the header alone */
	assert_false(judge(m, 12, &r));
	m[3] = 1;
	assert_true(judge(m, 12, &r));
	assert_int_equal(r, PROBE_RCODE);
}

int
main(void)
{
	const struct CMUnitTest test[] = {
		cmocka_unit_test(types_have_names_and_numbers),
		cmocka_unit_test(queries_are_built),
		cmocka_unit_test(no_damage_passes_unseen),
		cmocka_unit_test(errors_may_leave_out_the_question),
	};

	return cmocka_run_group_tests_name("dns", test, NULL, NULL);
}
