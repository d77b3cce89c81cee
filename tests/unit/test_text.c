/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unit.h"

#include <limits.h>
#include <string.h>

#include "core/text.h"

static void
mistakes_are_counted(void **state)
{
	static const struct {
		const char *a, *b;
		unsigned want;
	} row[] = {
		{ "", "", 0 }, { "", "abc", 3 }, { "weight", "weight", 0 },
		{ "wieght", "weight", 1 }, { "weigt", "weight", 1 },
		{ "weights", "weight", 1 }, { "weitht", "weight", 1 },
		{ "hasch", "hash", 1 }, { "abcdef", "badcfe", 3 },
		{ "listen", "tinsel", 4 },
	};
	char longest[66];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		assert_int_equal(text_distance(row[i].a, row[i].b),
		    row[i].want);
		assert_int_equal(text_distance(row[i].b, row[i].a),
		    row[i].want);
	}
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	assert_int_equal(text_distance(longest, "x"), UINT_MAX);
	longest[64] = '\0';
	assert_int_equal(text_distance(longest, "x"), 63);
}

static const char *
guess(const char *word, const char *const *candidate)
{
	struct text_guess g;

	text_guess_init(&g, word);
	for (; *candidate != NULL; candidate++)
		text_guess_try(&g, *candidate);
	return g.best;
}

static void
the_nearest_word_is_guessed(void **state)
{
	static const char *const keys[] = { "name", "address", "weight",
	    "state", "as", NULL };
	static const struct {
		const char *word, *want;
	} row[] = {
		{ "wieght", "weight" }, { "adress", "address" },
		{ "addres", "address" }, { "nam", "name" }, { "sate", "state" },
		{ "stat", "state" }, { "sa", NULL }, { "State", "state" },
		{ "colour", NULL }, { "x", NULL }, { "", NULL },
		{ "wwwwww", NULL }, { "ad", NULL },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		if (row[i].want == NULL)
			assert_null(guess(row[i].word, keys));
		else
			assert_string_equal(guess(row[i].word, keys),
			    row[i].want);
	}
}

static void
what_is_shown_is_safe(void **state)
{
	static const struct {
		const char *text, *want;
	} row[] = {
		{ "plain", "plain" }, { "", "\"\"" }, { " a", "\" a\"" },
		{ "a ", "\"a \"" }, { "a b", "a b" }, { "\x1b[m", "\\x1b[m" },
		{ "a\tb\n", "a\\x09b\\x0a" }, { "\x7f", "\\x7f" },
		{ "\xc2\x9b" "31m", "\\x9b31m" },
		{ "\xc3\xa4", "\xc3\xa4" }, { "\xe2\x82\xac", "\xe2\x82\xac" },
	};
	char buf[TEXT_SHOW_MAX], many[300];
	size_t i, n;

	(void)state;
	for (i = 0; i < sizeof(row) / sizeof(row[0]); i++)
		assert_string_equal(text_show(row[i].text, buf), row[i].want);
	/* at every length, whole characters and never past the end */
	for (n = 1; n < sizeof(many); n++) {
		for (i = 0; i + 3 <= n; i += 3)
			memcpy(many + i, "\xe2\x82\xac", 3);
		many[i] = '\0';
		text_show(many, buf);
		assert_true(strlen(buf) < sizeof(buf));
		if (i > sizeof(buf)) {
			assert_string_equal(buf + strlen(buf) - 3, "...");
			assert_int_equal((strlen(buf) - 3) % 3, 0);
		}
	}
	memset(many, '\1', sizeof(many) - 1);
	many[sizeof(many) - 1] = ' ';
	many[sizeof(many) - 2] = '\0';
	assert_true(strlen(text_show(many, buf)) < sizeof(buf));
}

int
main(void)
{
	const struct CMUnitTest test[] = {
		cmocka_unit_test(mistakes_are_counted),
		cmocka_unit_test(the_nearest_word_is_guessed),
		cmocka_unit_test(what_is_shown_is_safe),
	};

	return cmocka_run_group_tests_name("text", test, NULL, NULL);
}
