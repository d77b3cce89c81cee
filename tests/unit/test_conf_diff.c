/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unit.h"

#include <string.h>

#include "core/arena.h"
#include "core/conf.h"
#include "core/conf_diff.h"

#define BASE \
	"interfaces: [{name: eth0}]\n" \
	"bgp: {local_as: 1, neighbors: [{address: 10.0.0.1, as: 2, " \
	"password: secret}]}\n" \
	"checks: {c: {type: http, port: 80, expect: [200, 300-399]}}\n" \
	"pools:\n" \
	"  web: {check: c, backends: [{name: a, address: 10.0.1.1}," \
	" {name: b, address: 10.0.1.2}]}\n" \
	"  web-2: {backends: [{name: a, address: 10.0.1.1}]}\n" \
	"services:\n" \
	"- {name: www, addresses: [203.0.113.10], listen: [tcp/80], pool: web}\n"

static struct arena *a;

static int
fresh(void **state)
{
	(void)state;
	a = arena_new();
	return 0;
}

static int
done(void **state)
{
	(void)state;
	arena_free(a);
	return 0;
}

static const struct conf *
load(const char *text)
{
	struct conf_source src = { "f", text, strlen(text) };
	const struct conf *c = NULL;
	struct diag dg;

	diag_init(&dg);
	if (conf_load(&src, 1, a, &c, &dg) < 0)
		fail_msg("%s in %s", dg.row[0].text, text);
	diag_fini(&dg);
	return c;
}

/* BASE with each `from` as `to`. */
static const char *
changed(const char *from, const char *to)
{
	const char *at = strstr(BASE, from);

	assert_non_null(at);
	return arena_printf(a, "%.*s%s%s", (int)(at - BASE), BASE, to,
	    at + strlen(from));
}

/* "KEY: WAS -> IS" of each, a line each. */
static const char *
diff(const char *was, const char *is)
{
	struct conf_change *c;
	size_t i, n = conf_diff(load(was), load(is), a, &c);
	const char *all = "";

	for (i = 0; i < n; i++)
		all = arena_printf(a, "%s%s: %s -> %s\n", all, c[i].key,
		    c[i].was == NULL ? "none" : c[i].was,
		    c[i].is == NULL ? "none" : c[i].is);
	return all;
}

static void
the_same_has_no_changes(void **state)
{
	(void)state;
	assert_string_equal(diff(BASE, BASE), "");
	assert_string_equal(diff("", ""), "");
	/* what a default says is no change, nor is an order that means nothing */
	assert_string_equal(diff(BASE, changed("port: 80,",
	    "port: 80, interval: 2s,")), "");
	assert_string_equal(diff(BASE, changed("{name: a, address: 10.0.1.1}, "
	    "{name: b, address: 10.0.1.2}", "{name: b, address: 10.0.1.2}, "
	    "{name: a, address: 10.0.1.1}")), "");
}

static void
values_are_named_with_both_sides(void **state)
{
	(void)state;
	assert_string_equal(diff(BASE, changed("{name: eth0}",
	    "{name: eth0, xdp: generic}")),
	    "interfaces[eth0].xdp: native -> generic\n");
	assert_string_equal(diff(BASE, changed("check: c,",
	    "check: c, min_healthy: 2,")),
	    "pools.web.min_healthy: 1 -> 2\n");
	assert_string_equal(diff(BASE, changed("10.0.1.2}",
	    "10.0.1.2, weight: 0}")),
	    "pools.web.backends[b].weight: 100 -> 0\n");
	assert_string_equal(diff(BASE, changed("300-399", "301")),
	    "checks.c.expect: 200, 300-399 -> 200, 301\n");
	assert_string_equal(diff(BASE, changed("[203.0.113.10]",
	    "[{address: 203.0.113.10, med: 5}]")),
	    "services[www].addresses[203.0.113.10].med: none -> 5\n");
}

static void
passwords_are_not_told(void **state)
{
	(void)state;
	assert_string_equal(diff(BASE, changed("secret", "other")),
	    "bgp.neighbors[10.0.0.1].password: (hidden) -> (hidden)\n");
	assert_string_equal(diff(BASE, changed(", password: secret", "")),
	    "bgp.neighbors[10.0.0.1].password: (hidden) -> none\n");
}

static void
an_object_that_comes_or_goes_is_one_line(void **state)
{
	(void)state;
	assert_string_equal(diff(BASE, changed("{name: b,", "{name: c,")),
	    "pools.web.backends[b]:  -> none\n"
	    "pools.web.backends[c]: none -> \n");
	/* web-2 is no part of web, though it begins with it */
	assert_string_equal(diff(BASE, changed("  web-2:", "  web-3:")),
	    "pools.web-2:  -> none\n"
	    "pools.web-3: none -> \n");
	assert_string_equal(diff("", BASE),
	    "bgp: none -> \n"
	    "checks.c: none -> \n"
	    "interfaces[eth0]: none -> \n"
	    "pools.web: none -> \n"
	    "pools.web-2: none -> \n"
	    "services[www]: none -> \n");
	assert_string_equal(diff(BASE, ""),
	    "bgp:  -> none\n"
	    "checks.c:  -> none\n"
	    "interfaces[eth0]:  -> none\n"
	    "pools.web:  -> none\n"
	    "pools.web-2:  -> none\n"
	    "services[www]:  -> none\n");
}

int
main(void)
{
	const struct CMUnitTest test[] = {
		cmocka_unit_test_setup_teardown(the_same_has_no_changes,
		    fresh, done),
		cmocka_unit_test_setup_teardown(
		    values_are_named_with_both_sides, fresh, done),
		cmocka_unit_test_setup_teardown(passwords_are_not_told,
		    fresh, done),
		cmocka_unit_test_setup_teardown(
		    an_object_that_comes_or_goes_is_one_line, fresh, done),
	};

	return cmocka_run_group_tests_name("conf_diff", test, NULL, NULL);
}
