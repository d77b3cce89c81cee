/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unit.h"

#include <string.h>

#include "core/arena.h"
#include "core/conf_schema.h"
#include "core/conf_value.h"

#define HOUR_MS 3600000

static void
durations(void **state)
{
	static const struct {
		const char *text, *printed;	/* NULL: refused */
		uint32_t ms;
	} row[] = {
		{ "0s", "0s", 0 }, { "0ms", "0s", 0 }, { "1ms", "1ms", 1 },
		{ "999ms", "999ms", 999 }, { "1000ms", "1s", 1000 },
		{ "1500ms", "1500ms", 1500 }, { "90s", "90s", 90000 },
		{ "60s", "1m", 60000 }, { "59m", "59m", 3540000 },
		{ "1h", "1h", HOUR_MS }, { "3600s", "1h", HOUR_MS },
		{ "3600001ms", NULL, 0 }, { "2h", NULL, 0 }, { "", NULL, 0 },
		{ "5", NULL, 0 }, { "s", NULL, 0 }, { "-1s", NULL, 0 },
		{ "+1s", NULL, 0 }, { "01s", NULL, 0 }, { "1.5s", NULL, 0 },
		{ "1 s", NULL, 0 }, { "1S", NULL, 0 }, { "1s ", NULL, 0 },
		{ "1sec", NULL, 0 }, { "1m30s", NULL, 0 }, { "1d", NULL, 0 },
		{ "18446744073709551617ms", NULL, 0 },
		{ "5124095576030431h", NULL, 0 },
	};
	const struct key k = { .type = KEY_MSEC, .max = HOUR_MS };
	char why[WHY_MAX], buf[MSEC_STR_MAX];
	uint32_t ms;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		ms = 7;
		assert_int_equal(value_parse(&k, row[i].text, NULL, &ms, why),
		    row[i].printed != NULL ? 0 : -1);
		/* what is refused changes nothing */
		assert_int_equal(ms, row[i].printed != NULL ? row[i].ms : 7);
		if (row[i].printed != NULL)
			assert_string_equal(msec_print(ms, buf),
			    row[i].printed);
	}
}

static void
integers_have_the_width_of_their_field(void **state)
{
	struct {
		uint16_t a, b;
		uint32_t c;
		uint64_t d;
	} f = { 1, 2, 3, 4 };
	struct key k = { .type = KEY_U16, .max = UINT16_MAX };
	char why[WHY_MAX];

	(void)state;
	assert_int_equal(value_parse(&k, "65535", NULL, &f, why), 0);
	assert_int_equal(f.a, 65535);
	assert_int_equal(f.b, 2);
	assert_int_equal(value_parse(&k, "65536", NULL, &f, why), -1);
	assert_string_equal(why, "65536 is not in 0..65535");
	k.type = KEY_U32;
	k.max = UINT32_MAX;
	k.offset = 4;
	assert_int_equal(value_parse(&k, "4294967295", NULL, &f, why), 0);
	assert_int_equal(f.c, UINT32_MAX);
	assert_int_equal(f.d, 4);
	k.type = KEY_U64;
	k.max = UINT64_MAX;
	k.offset = 8;
	assert_int_equal(value_parse(&k, "18446744073709551615", NULL, &f,
	    why), 0);
	assert_true(f.d == UINT64_MAX);
	assert_int_equal(value_parse(&k, "18446744073709551616", NULL, &f,
	    why), -1);
}

static void
primes_and_powers_of_two(void **state)
{
	const struct key prime = { .type = KEY_U32, .flags = KEY_PRIME,
	    .min = 251, .max = 1048573 };
	const struct key pow2 = { .type = KEY_U32, .flags = KEY_POW2,
	    .min = 1024, .max = 1 << 28 };
	char why[WHY_MAX];
	uint32_t n;

	(void)state;
	assert_int_equal(value_parse(&prime, "251", NULL, &n, why), 0);
	assert_int_equal(value_parse(&prime, "1048573", NULL, &n, why), 0);
	assert_int_equal(value_parse(&prime, "252", NULL, &n, why), -1);
	assert_string_equal(why, "252 is not a prime, 251 and 257 are");
	assert_int_equal(value_parse(&prime, "63001", NULL, &n, why), -1);
	assert_int_equal(value_parse(&pow2, "1024", NULL, &n, why), 0);
	assert_int_equal(n, 1024);
	assert_int_equal(value_parse(&pow2, "1025", NULL, &n, why), 0);
	assert_int_equal(n, 2048);
	assert_int_equal(value_parse(&pow2, "268435455", NULL, &n, why), 0);
	assert_int_equal(n, 1 << 28);
}

/* A default is compared with what is printed: it has to be spelled so. */
static void
default_spelled(const struct section *s, const struct key *k, void *arg)
{
	unsigned char base[512] __attribute__((aligned(16))) = { 0 };
	struct arena *a = arg;
	char why[WHY_MAX];
	const char *text;

	(void)s;
	assert_true(s->size <= sizeof(base));
	if (k->def == NULL || k->type == KEY_CODES || *k->def == '\0')
		return;
	assert_int_equal(value_parse(k, k->def, a, base, why), 0);
	text = value_print(k, base, a);
	assert_non_null(text);
	assert_string_equal(text, k->def);
}

static void
defaults_print_as_they_are_written(void **state)
{
	struct arena *a = arena_new();

	(void)state;
	assert_true(sizeof(struct conf) <= 512);
	schema_walk(schema_root(), default_spelled, a);
	arena_free(a);
}

static void
row_sane(const struct section *s, const struct key *k, void *arg)
{
	size_t *n = arg, i, same = 0;

	(*n)++;
	for (i = 0; i < s->n; i++)
		same += strcmp(s->key[i].name, k->name) == 0;
	assert_int_equal(same, 1);
	assert_true(k->min <= k->max);
	assert_non_null(k->help);
	assert_false((k->flags & KEY_REQUIRED) && k->def != NULL);
	if (k->type == KEY_ENUM)
		assert_non_null(k->value);
	if (k->type >= KEY_SECTION)
		assert_non_null(k->section);
	if (k->type >= KEY_LISTENS && k->type != KEY_SECTION)
		assert_int_not_equal(k->also, 0);
}

static void
rows_are_complete(void **state)
{
	size_t n = 0;

	(void)state;
	schema_walk(schema_root(), row_sane, &n);
	assert_in_range(n, 70, 100);
}

static void
communities(void **state)
{
	static const char *const good[] = { "0:0", "65535:65535", "64512:100",
	    "4294967295:4294967295:4294967295", "1:2:3" };
	static const char *const bad[] = { "", "1", "1:", ":1", "1:2:", "1:2:3:",
	    "1:2:3:4", "65536:1", "1:65536", "4294967296:1:1", "a:b", "1 :2",
	    "0x1:1", "01:1" };
	char why[WHY_MAX], buf[COMMUNITY_STR_MAX];
	struct community c;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(community_parse(good[i], &c, why), 0);
		assert_string_equal(community_print(&c, buf), good[i]);
	}
	assert_true(c.large);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(community_parse(bad[i], &c, why), -1);
}

/* The longest message of each kind stays in its buffer. */
static void
long_texts_are_cut(void **state)
{
	struct key k = { .type = KEY_U32 };
	struct arena *a = arena_new();
	static const enum key_type type[] = { KEY_BOOL, KEY_U32, KEY_MSEC,
	    KEY_NAME, KEY_IFNAME, KEY_PATH, KEY_TEXT, KEY_ADDR, KEY_PREFIX,
	    KEY_COUNT, KEY_METRICS };
	char text[4000], why[WHY_MAX];
	struct conf c;
	size_t i;

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	for (i = 0; i < sizeof(type) / sizeof(type[0]); i++) {
		k.type = type[i];
		assert_int_equal(value_parse(&k, text, a, &c, why), -1);
		assert_in_range(strlen(why), 20, WHY_MAX - 1);
	}
	arena_free(a);
}

int
main(void)
{
	const struct CMUnitTest test[] = {
		cmocka_unit_test(durations),
		cmocka_unit_test(integers_have_the_width_of_their_field),
		cmocka_unit_test(primes_and_powers_of_two),
		cmocka_unit_test(defaults_print_as_they_are_written),
		cmocka_unit_test(rows_are_complete),
		cmocka_unit_test(communities),
		cmocka_unit_test(long_texts_are_cut),
	};

	return cmocka_run_group_tests_name("conf_value", test, NULL, NULL);
}
