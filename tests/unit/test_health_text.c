/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Health in words. */
#include "unit.h"

#include <string.h>

#include "core/conf.h"
#include "core/health.h"

static void
reasons_are_told(void **state)
{
	static struct http_range some[] = { { 200, 299 }, { 304, 304 } };
	static const struct conf_check http = { .name = "http", .rise = 2,
	    .fall = 3, .expect = { some, 2 }, .body = "all \"systems\"",
	    .reply = "pong" };
	static const struct {
		enum probe_result r;
		uint16_t detail;
		const char *want;
	} row[] = {
		{ PROBE_OK, 0, "ok" },
		{ PROBE_REFUSED, 0, "connection refused" },
		{ PROBE_STATUS, 500, "HTTP 500, expected 200-299, 304" },
		{ PROBE_STATUS, 200, "HTTP 200" },	/* another check now */
		{ PROBE_DRAIN, 503, "HTTP 503 asks for no new flows" },
		{ PROBE_DRAIN, 0, "asks for no new flows" },
		{ PROBE_REPLY, 0, "reply lacks \"pong\"" },
		{ PROBE_CERT, 18, "certificate verify failed: self-signed" },
		{ PROBE_CERT, 10, "certificate verify failed: expired" },
		{ PROBE_CERT, 1, "certificate verify failed" },
		{ PROBE_RCODE, 3, "NXDOMAIN" },
		{ PROBE_RCODE, 11, "DNS error 11" },
		{ PROBE_NO_ANSWER, 1, "no answer of type A" },
		{ PROBE_TRUNCATED, 16,
		    "reply is truncated, without an answer of type TXT" },
		{ PROBE_QUESTION, 0, "reply is not for the question" },
		{ PROBE_ECHO, 0, "echo reply holds other data" },
		{ PROBE_EXIT, 2, "exit status 2" },
		{ PROBE_SIGNAL, 9, "ended by signal 9" },
		{ PROBE_TLS_TIMEOUT, 0, "TLS handshake timed out" },
		{ PROBE_BODY, 0, "body lacks \"all \"systems\"\"" },
	};
	char buf[HEALTH_WHY_MAX];
	struct health_fsm f;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		memset(&f, 0, sizeof(f));
		health_step(&f, &http, row[i].r, row[i].detail, "");
		assert_string_equal(health_why_print(&f, &http, buf),
		    row[i].want);
	}
	/* errors with words of their own */
	f = (struct health_fsm){ .why = PROBE_TLS, .said = "wrong \033version" };
	assert_string_equal(health_why_print(&f, &http, buf),
	    "TLS handshake failed: wrong \\x1bversion");
	f.why = PROBE_EXIT;
	f.detail = 2;
	assert_string_equal(health_why_print(&f, &http, buf),
	    "exit status 2: wrong \\x1bversion");
	f.why = PROBE_TLS;
	f.said[0] = '\0';
	assert_string_equal(health_why_print(&f, &http, buf),
	    "TLS handshake failed");
	/* the drain's own, though the last was a miss */
	f = (struct health_fsm){ .state = HEALTH_UP };
	health_step(&f, &http, PROBE_DRAIN, 429, "");
	health_step(&f, &http, PROBE_STATUS, 500, "");
	assert_true(health_step(&f, &http, PROBE_TIMEOUT, 0, ""));
	assert_string_equal(health_why_print(&f, &http, buf),
	    "HTTP 429 asks for no new flows");
	assert_string_equal(health_state_text(f.state), "drain");
}

/* The numbers are OpenSSL's. */
static void
certificates_are_told(void **state)
{
	static const struct {
		uint16_t code;
		const char *want;	/* behind "certificate verify failed" */
	} row[] = {
		{ 2, ": issuer unknown" }, { 9, ": not valid yet" },
		{ 10, ": expired" }, { 18, ": self-signed" },
		{ 19, ": self-signed authority that is not in ca" },
		{ 20, ": issuer unknown" }, { 21, ": issuer unknown" },
		{ 24, ": issuer is no authority" }, { 26, ": not for a server" },
		{ 62, ": for another name" }, { 64, ": for another address" },
		{ 66, ": key or signature too weak" },
		{ 68, ": key or signature too weak" }, { 0, "" }, { 999, "" },
	};
	struct conf_check check = { .name = "c" };
	struct health_fsm f = { .why = PROBE_CERT };
	char buf[HEALTH_WHY_MAX];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		f.detail = row[i].code;
		assert_string_equal(health_why_print(&f, &check, buf) + 25,
		    row[i].want);
	}
}

static void
what_is_long_is_cut(void **state)
{
	static struct http_range many[] = { { 200, 200 }, { 202, 204 },
	    { 206, 206 }, { 208, 208 }, { 210, 210 }, { 212, 213 },
	    { 220, 220 } };
	struct conf_check check = { .name = "c", .expect = { many, 7 } };
	struct health_row row = { .fsm = { .why = PROBE_TLS }, .port = 443 };
	struct health_fsm f = { .why = PROBE_STATUS, .detail = 500 };
	char buf[HEALTH_WHY_MAX];

	(void)state;
	assert_string_equal(health_why_print(&f, &check, buf), "HTTP 500, "
	    "expected 200, 202-204, 206, 208, 210, 212-213, ...");
	check.expect.n = 6;
	assert_string_equal(health_why_print(&f, &check, buf), "HTTP 500, "
	    "expected 200, 202-204, 206, 208, 210, 212-213");
	/* the longest of all: each byte is told by four, and a place before it */
	memset(row.fsm.said, '\001', sizeof(row.fsm.said) - 1);
	assert_int_equal(addr_parse("2001:db8:1111:2222:3333:4444:5555:6666",
	    &row.vip), 0);
	health_row_why(&row, &check, buf);
	assert_in_range(strlen(buf), 100, HEALTH_WHY_MAX - 1);
}

static void
targets_say_where_they_are(void **state)
{
	struct conf_check check = { .name = "c", .type = CHECK_HTTPS };
	struct health_row row = { .port = 443, .fsm = { .state = HEALTH_DOWN,
	    .why = PROBE_TIMEOUT } };
	char buf[HEALTH_WHY_MAX], where[ADDRPORT_STR_MAX];

	(void)state;
	assert_string_equal(health_row_why(&row, &check, buf), "timeout");
	assert_int_equal(addr_parse("2001:db8::1", &row.vip), 0);
	assert_string_equal(health_row_why(&row, &check, buf), "https to "
	    "[2001:db8::1]:443 through the tunnel: timeout");
	row.port = 0;
	check.type = CHECK_ICMP;
	assert_string_equal(health_row_why(&row, &check, buf), "icmp to "
	    "2001:db8::1 through the tunnel: timeout");
	assert_string_equal(health_where(&row.vip, 0, where), "2001:db8::1");
	/* another version's, read back from the map */
	check.type = (enum check_type)99;
	row.fsm.why = (enum probe_result)200;
	assert_string_equal(health_row_why(&row, &check, buf), "check to "
	    "2001:db8::1 through the tunnel: other");
	assert_string_equal(health_state_text((enum health_state)9), "other");
}

int
main(void)
{
	const struct CMUnitTest test[] = {
		cmocka_unit_test(reasons_are_told),
		cmocka_unit_test(certificates_are_told),
		cmocka_unit_test(what_is_long_is_cut),
		cmocka_unit_test(targets_say_where_they_are),
	};

	return cmocka_run_group_tests_name("health_text", test, NULL, NULL);
}
