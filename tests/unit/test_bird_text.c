/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "core/announce_route.h"
#include "core/arena.h"
#include "core/bird_text.h"

#define NELEM(a) (sizeof(a) / sizeof((a)[0]))
#define HEAD "# written by xlbd; any change to this file is lost\n"

static struct addr
ip(const char *s)
{
	struct addr a;

	assert_int_equal(addr_parse(s, &a), 0);
	return a;
}

static struct prefix
net(const char *s)
{
	struct prefix p;

	assert_int_equal(prefix_parse(s, &p), 0);
	return p;
}

static char *
render(struct announce_row *row, size_t n, const struct conf *c, int family)
{
	struct announce an = { row, n, false };
	char *text;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(out);
	assert_int_equal(bird_render(&an, c, family, out), 0);
	fclose(out);
	return text;
}

static void
expect(struct announce_row *row, size_t n, const struct conf *c, int family,
    const char *want)
{
	char *text = render(row, n, c, family);

	assert_string_equal(text, want);
	free(text);
}

static struct community plain[] = { { false, 64512, 100, 0 } };
static struct community mixed[] = { { true, 4200000000, 1, 7 },
    { false, 64512, 200, 0 }, { false, 64512, 100, 0 } };

static struct conf
config(void)
{
	struct conf c;

	memset(&c, 0, sizeof(c));
	c.bgp.present = true;
	c.bgp.local_as = 64512;
	c.bgp.bird_directory = BIRD_DIRECTORY;
	return c;
}

static struct announce_row
row_of(const struct conf_address *ca, bool wanted, bool gshut)
{
	struct announce_row r = { .addr = ca->address, .conf = ca,
	    .wanted = wanted, .gshut = gshut };

	return r;
}

static void
routes_are_sorted_and_by_family(void **state)
{
	struct conf_address a4 = { .address = ip("192.0.2.10") };
	struct conf_address b4 = { .address = ip("192.0.2.9") };
	struct conf_address c4 = { .address = ip("192.0.2.8") };
	struct conf_address a6 = { .address = ip("2001:db8::1") };
	struct announce_row row[] = { row_of(&a6, true, false),
	    row_of(&a4, true, false), row_of(&b4, true, false),
	    row_of(&c4, false, false) };
	struct conf c = config();

	(void)state;
	expect(row, 4, &c, AF_INET, HEAD
	    "route 192.0.2.9/32 via \"xlb0\";\n"
	    "route 192.0.2.10/32 via \"xlb0\";\n");
	expect(row, 4, &c, AF_INET6, HEAD
	    "route 2001:db8::1/128 via \"xlb0\";\n");
	expect(NULL, 0, &c, AF_INET, HEAD);
}

static void
attributes_in_a_fixed_order(void **state)
{
	struct conf_address a = { .address = ip("192.0.2.1"),
	    .communities = { mixed, NELEM(mixed) }, .has_med = true, .med = 0,
	    .prepend = 2 };
	struct announce_row row = row_of(&a, true, true);
	struct conf c = config();

	(void)state;
	/* 64512:100 comes from both lists and is there once */
	c.bgp.communities.row = plain;
	c.bgp.communities.n = NELEM(plain);
	expect(&row, 1, &c, AF_INET, HEAD
	    "route 192.0.2.1/32 via \"xlb0\" {"
	    " bgp_community.add((65535,0));"
	    " bgp_community.add((64512,100)); bgp_community.add((64512,200));"
	    " bgp_large_community.add((4200000000,1,7));"
	    " xlb_med = 0;"
	    " bgp_path.prepend(64512); bgp_path.prepend(64512); };\n");
}

static void
fingerprints_are_large_communities(void **state)
{
	uint64_t one[] = { UINT64_C(0x0000000100000002),
	    UINT64_C(0xfffffffffffffffe) };
	uint64_t two[] = { UINT64_C(0x0000000100000002) };
	struct conf_address a = { .address = ip("192.0.2.1"),
	    .has_announce = true, .announce = net("192.0.2.0/24") };
	struct conf_address b = { .address = ip("192.0.2.2"),
	    .has_announce = true, .announce = net("192.0.2.0/24") };
	struct announce_row row[] = { row_of(&a, true, false),
	    row_of(&b, true, false) };
	struct conf c = config();

	(void)state;
	row[0].fingerprint = one;
	row[0].nfingerprint = NELEM(one);
	row[1].fingerprint = two;
	row[1].nfingerprint = NELEM(two);
	c.bgp.local_as = 4200000000;
	expect(row, 2, &c, AF_INET, HEAD
	    "route 192.0.2.0/24 via \"xlb0\";\n");
	c.bgp.fingerprint = true;
	expect(row, 2, &c, AF_INET, HEAD
	    "route 192.0.2.0/24 via \"xlb0\" {"
	    " bgp_large_community.add((4200000000,1,2));"
	    " bgp_large_community.add((4200000000,4294967295,4294967294)); "
	    "};\n");
}

static void
routes_asked_for(void **state)
{
	struct conf_address a[] = {
		{ .address = ip("2001:db8::1"), .prepend = 2 },
		{ .address = ip("192.0.2.1"), .has_announce = true,
		    .announce = net("192.0.2.0/24"), .has_med = true,
		    .med = 5, .communities = { mixed, NELEM(mixed) } },
		{ .address = ip("192.0.2.2"), .has_announce = true,
		    .announce = net("192.0.2.0/24") } };
	struct conf_service s = { .address = a, .naddress = NELEM(a) };
	struct conf c = config();
	struct arena *arena = arena_new();
	struct announce_route *r;
	size_t n, len;
	char *text;
	FILE *f;

	(void)state;
	c.service = &s;
	c.nservice = 1;
	r = announce_routes_asked(&c, arena, &n);
	assert_int_equal(n, 2);
	assert_true(r[0].wanted && r[1].wanted);
	f = open_memstream(&text, &len);
	announce_route_print(&r[0], f);
	fputs(", ", f);
	announce_route_print(&r[1], f);
	fclose(f);
	assert_string_equal(text, "192.0.2.0/24 med 5 64512:100 64512:200 "
	    "4200000000:1:7, 2001:db8::1/128 prepend 2");
	free(text);
	assert_ptr_equal(announce_route_find(r, n, &r[1].prefix), &r[1]);
	assert_true(announce_route_same(&r[0], &r[0]));
	assert_false(announce_route_same(&r[0], &r[1]));
	c.bgp.present = false;
	announce_routes_asked(&c, arena, &n);
	assert_int_equal(n, 0);
	arena_free(arena);
}

/* What makes a route another one for its peers. */
static void
routes_differ_by_each_attribute(void **state)
{
	struct announce_route r[] = {
		{ .prefix = net("192.0.2.0/24") },
		{ .prefix = net("192.0.2.0/25") },
		{ .prefix = net("192.0.2.0/24"), .has_med = true },
		{ .prefix = net("192.0.2.0/24"), .has_med = true, .med = 1 },
		{ .prefix = net("192.0.2.0/24"), .prepend = 1 },
		{ .prefix = net("192.0.2.0/24"), .gshut = true },
		{ .prefix = net("192.0.2.0/24"), .communities = { mixed, 1 } },
		{ .prefix = net("192.0.2.0/24"), .communities = { plain, 1 } },
		{ .prefix = net("192.0.2.0/24"), .communities = { mixed, 2 } },
	};
	size_t i, k, len;
	char *text;
	FILE *f;

	(void)state;
	for (i = 0; i < NELEM(r); i++)
		for (k = 0; k < NELEM(r); k++)
			assert_int_equal(announce_route_same(&r[i], &r[k]),
			    i == k);
	f = open_memstream(&text, &len);
	announce_route_print(&r[5], f);
	fclose(f);
	assert_string_equal(text, "192.0.2.0/24 65535:0");
	free(text);
}

static void
equal_prefixes_are_one_route(void **state)
{
	struct conf_address a = { .address = ip("192.0.2.1"),
	    .has_announce = true, .announce = net("192.0.2.0/24"),
	    .communities = { mixed, 1 }, .has_med = true, .med = 5 };
	struct conf_address b = { .address = ip("192.0.2.2"),
	    .has_announce = true, .announce = net("192.0.2.0/24"),
	    .communities = { plain, 1 }, .has_med = true, .med = 3,
	    .prepend = 1 };
	struct conf_address other = { .address = ip("192.0.2.3") };
	static const char line[] = HEAD "route 192.0.2.0/24 via \"xlb0\" {"
	    " bgp_community.add((64512,100));"
	    " bgp_large_community.add((4200000000,1,7));"
	    " xlb_med = 5; bgp_path.prepend(64512); };\n";
	struct announce_row row[] = { row_of(&a, true, false),
	    row_of(&b, true, false), row_of(&other, false, false) };
	struct conf c = config();

	(void)state;
	expect(row, 3, &c, AF_INET, line);
	/* while one of them does not go, the route does not */
	row[1].gshut = true;
	expect(row, 3, &c, AF_INET, line);
	row[0].gshut = true;
	row[1].gshut = false;
	expect(row, 3, &c, AF_INET, line);
	row[0].gshut = false;
	/* the same bytes while one of them is up; an address that does not
	 * name the prefix does not hold it */
	row[0].wanted = false;
	expect(row, 3, &c, AF_INET, line);
	row[1].wanted = false;
	row[2].wanted = true;
	expect(row, 3, &c, AF_INET, HEAD "route 192.0.2.3/32 via \"xlb0\";\n");
}

static void
the_order_of_rows_does_not_matter(void **state)
{
	struct conf_address ca[6];
	struct announce_row row[6];
	struct conf c = config();
	char *first = NULL, *text, buf[32];
	size_t i, round;

	(void)state;
	memset(ca, 0, sizeof(ca));
	for (i = 0; i < 6; i++) {
		snprintf(buf, sizeof(buf), "198.51.100.%zu", i);
		ca[i].address = ip(buf);
		ca[i].has_announce = i >= 4;
		ca[i].announce = net("198.51.100.0/25");
		ca[i].communities.row = &mixed[i % 3];
		ca[i].communities.n = 1;
	}
	for (round = 0; round < 6; round++) {
		for (i = 0; i < 6; i++)
			row[(i + round) % 6] = row_of(&ca[i], true, false);
		text = render(row, 6, &c, AF_INET);
		if (first != NULL)
			assert_string_equal(text, first);
		else
			first = strdup(text);
		free(text);
	}
	free(first);
}

static void
a_full_disk_is_an_error(void **state)
{
	struct conf_address a = { .address = ip("192.0.2.1") };
	struct announce_row row = row_of(&a, true, false);
	struct announce an = { &row, 1, false };
	struct conf c = config();
	FILE *out = fopen("/dev/full", "w");

	(void)state;
	assert_non_null(out);
	setvbuf(out, NULL, _IONBF, 0);
	assert_int_equal(bird_render(&an, &c, AF_INET, out), -1);
	fclose(out);
}

static void
an_include_reads_back(void **state)
{
	static const char text[] = HEAD
	    "route 192.0.2.9/32 via \"xlb0\" { xlb_med = 1; };\n"
	    "route 192.0.2.0/24 via \"xlb0\";\n"
	    "route 192.0.2.9/32 via \"xlb0\";\n"
	    "route 192.0.2.1/24 via \"xlb0\";\n"	/* host bits */
	    "route nonsense via \"xlb0\";\n"
	    "route \n"
	    "#route 192.0.2.7/32 via \"xlb0\";\n"
	    "\n"
	    "route 2001:db8::/64 via \"xlb0\"";	/* no end of line */
	struct arena *a = arena_new();
	struct prefix *p, want;
	char *copy;
	size_t n, i;

	(void)state;
	p = bird_include_parse(text, strlen(text), a, &n);
	assert_int_equal(n, 3);
	want = net("192.0.2.0/24");
	assert_int_equal(prefix_cmp(&p[0], &want), 0);
	want = net("2001:db8::/64");
	assert_true(prefix_find(p, n, &want));
	bird_include_parse("", 0, a, &n);
	assert_int_equal(n, 0);
	/* cut anywhere: no byte behind the end is read (ASan) */
	for (i = 0; i <= strlen(text); i++) {
		copy = malloc(i > 0 ? i : 1);
		memcpy(copy, text, i);
		bird_include_parse(copy, i, a, &n);
		free(copy);
	}
	arena_free(a);
}

static void
lines_of_the_protocol(void **state)
{
	static const struct {
		const char *line;
		int prev, rc, code;
		bool last;
		const char *text;
	} row[] = {
		{ "0001 BIRD 2.0.12 ready.", -1, 0, 1, true,
		    "BIRD 2.0.12 ready." },
		{ "0000 ", -1, 0, 0, true, "" },
		{ "0000 \r", -1, 0, 0, true, "" },
		{ "1007-Table xlb4t:", -1, 0, 1007, false, "Table xlb4t:" },
		{ " 192.0.2.1/32", 1007, 0, 1007, false, "192.0.2.1/32" },
		{ " \tdev xlb0", 1007, 0, 1007, false, "\tdev xlb0" },
		{ " ", 1006, 0, 1006, false, "" },
		{ "+Config timeout expired", 1007, 0, -1, false,
		    "Config timeout expired" },
		{ " starts with a continuation", -1, -1, 0, false, NULL },
		{ "", -1, -1, 0, false, NULL },
		{ "", 1007, -1, 0, false, NULL },
		{ "0000", -1, -1, 0, false, NULL },
		{ "000x ", -1, -1, 0, false, NULL },
		{ "00001 ", -1, -1, 0, false, NULL },
		{ "-001 x", -1, -1, 0, false, NULL },
		{ "HTTP/1.1 400 Bad Request", -1, -1, 0, false, NULL },
	};
	struct bird_line l;
	size_t i;

	(void)state;
	for (i = 0; i < NELEM(row); i++) {
		print_message("# \"%s\"\n", row[i].line);
		assert_int_equal(bird_line_parse(row[i].line,
		    strlen(row[i].line), row[i].prev, &l), row[i].rc);
		if (row[i].rc < 0)
			continue;
		assert_int_equal(l.code, row[i].code);
		assert_int_equal(l.last, row[i].last);
		assert_int_equal(l.len, strlen(row[i].text));
		assert_memory_equal(l.text, row[i].text, l.len);
	}
}

static void
codes_of_configure(void **state)
{
	static const struct {
		int code;
		enum bird_verdict want;
	} row[] = {
		{ 3, BIRD_DONE }, { 4, BIRD_PENDING }, { 5, BIRD_PENDING },
		{ 6, BIRD_RETRY }, { 7, BIRD_REFUSED }, { 8002, BIRD_REFUSED },
		{ 8007, BIRD_REFUSED }, { 9001, BIRD_REFUSED },
		{ 0, BIRD_REFUSED },
	};
	size_t i;

	(void)state;
	for (i = 0; i < NELEM(row); i++)
		assert_int_equal(bird_configure_verdict(row[i].code),
		    row[i].want);
}

static void
routes_of_show_route(void **state)
{
	static const struct {
		const char *text, *prefix;
	} row[] = {
		{ "192.0.2.1/32         unicast [xlb4 22:20:45.394] * (200)",
		    "192.0.2.1/32" },
		{ "2001:db8::1/128      unicast [xlb6 22:20:45.394] * (200)",
		    "2001:db8::1/128" },
		{ "192.0.2.0/24", "192.0.2.0/24" },
		{ "\tdev xlb0", NULL },
		{ "Table xlb4t:", NULL },
		{ "                     unicast [xlb4 22:20:45.394] (200)", NULL },
		{ "", NULL },
		{ "11111111111111111111111111111111111111111111111111111111",
		    NULL },
	};
	struct prefix p, want;
	size_t i;

	(void)state;
	for (i = 0; i < NELEM(row); i++) {
		if (row[i].prefix == NULL) {
			assert_int_equal(bird_route_parse(row[i].text,
			    strlen(row[i].text), &p), -1);
			continue;
		}
		assert_int_equal(bird_route_parse(row[i].text,
		    strlen(row[i].text), &p), 0);
		want = net(row[i].prefix);
		assert_int_equal(prefix_cmp(&p, &want), 0);
	}
}

static void
details_of_show_protocols(void **state)
{
	static const struct {
		int code;
		const char *text;
		enum bird_field field;
		const char *name, *kind, *value;
		uint32_t number;
	} row[] = {
		{ 2002, "Name       Proto      Table      State  Since",
		    BIRD_FIELD_NONE, "", "", "", 0 },
		{ 1002, "up4        BGP        ---        start  22:20:45.394"
		    "  Active", BIRD_FIELD_PROTOCOL, "up4", "BGP", "start", 0 },
		{ 1002, "xlb4       Static     xlb4t      up     22:20:45.394 ",
		    BIRD_FIELD_PROTOCOL, "xlb4", "Static", "up", 0 },
		{ 1002, "broken", BIRD_FIELD_NONE, "", "", "", 0 },
		{ 1006, "  BGP state:          Established",
		    BIRD_FIELD_SESSION, "", "", "Established", 0 },
		{ 1006, "    Last error:       Received: Hold timer expired ",
		    BIRD_FIELD_ERROR, "", "", "", 0 },
		{ 1006, "    Last error:", BIRD_FIELD_ERROR, "", "", "", 0 },
		{ 1006, "    Neighbor address: 10.99.1.254", BIRD_FIELD_NONE,
		    "", "", "", 0 },
		{ 1006, "  Channel ipv6", BIRD_FIELD_CHANNEL, "", "", "ipv6",
		    0 },
		{ 1006, "    Routes:         0 imported, 12 exported, 0 "
		    "preferred", BIRD_FIELD_EXPORTED, "", "", "", 12 },
		{ 1006, "    Routes:         1 imported, 2 filtered, 3 "
		    "exported, 1 preferred", BIRD_FIELD_EXPORTED, "", "", "",
		    3 },
		{ 1006, "    Routes:         none", BIRD_FIELD_NONE, "", "",
		    "", 0 },
		{ 1006, "    Routes:  99999999999 exported", BIRD_FIELD_NONE,
		    "", "", "", 0 },
		{ 1006, "", BIRD_FIELD_NONE, "", "", "", 0 },
		{ 1006, "  Channel an-address-family-of-a-later-bird",
		    BIRD_FIELD_CHANNEL, "", "",
		    "an-address-family-of-a-later-bi", 0 },
		{ 1007, "  BGP state:          Established", BIRD_FIELD_NONE,
		    "", "", "", 0 },
	};
	struct bird_detail d;
	size_t i;

	(void)state;
	for (i = 0; i < NELEM(row); i++) {
		print_message("# %d %s\n", row[i].code, row[i].text);
		assert_int_equal(bird_protocol_parse(row[i].code, row[i].text,
		    strlen(row[i].text), &d), row[i].field);
		if (row[i].field == BIRD_FIELD_NONE)
			continue;
		assert_string_equal(d.name, row[i].name);
		assert_string_equal(d.kind, row[i].kind);
		assert_string_equal(d.value, row[i].value);
		assert_int_equal(d.number, row[i].number);
		assert_string_equal(d.text, strstr(row[i].text, "Received") ?
		    "Received: Hold timer expired" : "");
	}
}

static void
times_of_show_protocols(void **state)
{
	static const struct {
		const char *since;
		struct bird_time want;
	} row[] = {
		{ "15:14:07.123", { .has_time = true, .hour = 15, .minute = 14,
		    .second = 7 } },
		{ "05:14:37", { .has_time = true, .hour = 5, .minute = 14,
		    .second = 37 } },
		{ "2026-11-09", { .has_date = true, .year = 2026, .month = 11,
		    .day = 9 } },
		{ "2026-11-29 15:14:37", { true, true, 2026, 11, 29, 15, 14,
		    37 } },
		{ "2026-11-29x", { 0 } },
		{ "15:14", { 0 } },
		{ "15:14:3", { 0 } },
		{ "15:14:37x", { 0 } },
		{ "1764515677", { 0 } },
		{ "", { 0 } },
	};
	struct bird_detail d;
	char line[128];
	size_t i;

	(void)state;
	for (i = 0; i < NELEM(row); i++) {
		snprintf(line, sizeof(line), "tor1 BGP --- up %s Established",
		    row[i].since);
		print_message("# %s\n", line);
		assert_int_equal(bird_protocol_parse(1002, line, strlen(line),
		    &d), BIRD_FIELD_PROTOCOL);
		assert_int_equal(d.since.has_date, row[i].want.has_date);
		assert_int_equal(d.since.has_time, row[i].want.has_time);
		if (d.since.has_date) {
			assert_int_equal(d.since.year, row[i].want.year);
			assert_int_equal(d.since.month, row[i].want.month);
			assert_int_equal(d.since.day, row[i].want.day);
		}
		if (d.since.has_time) {
			assert_int_equal(d.since.hour, row[i].want.hour);
			assert_int_equal(d.since.minute, row[i].want.minute);
			assert_int_equal(d.since.second, row[i].want.second);
		}
	}
}

int
main(void)
{
	const struct CMUnitTest test[] = {
		cmocka_unit_test(routes_are_sorted_and_by_family),
		cmocka_unit_test(attributes_in_a_fixed_order),
		cmocka_unit_test(fingerprints_are_large_communities),
		cmocka_unit_test(routes_asked_for),
		cmocka_unit_test(routes_differ_by_each_attribute),
		cmocka_unit_test(equal_prefixes_are_one_route),
		cmocka_unit_test(the_order_of_rows_does_not_matter),
		cmocka_unit_test(a_full_disk_is_an_error),
		cmocka_unit_test(an_include_reads_back),
		cmocka_unit_test(lines_of_the_protocol),
		cmocka_unit_test(codes_of_configure),
		cmocka_unit_test(routes_of_show_route),
		cmocka_unit_test(details_of_show_protocols),
		cmocka_unit_test(times_of_show_protocols),
	};

	return cmocka_run_group_tests_name("bird_text", test, NULL, NULL);
}
