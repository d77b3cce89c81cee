/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Text as HTML, whatever it holds; figures for people. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "core/html.h"

static char *text;
static size_t len;

static void
test_text(void **state)
{
	static const struct {
		const char *value, *want;
	} row[] = {
		{ "plain", "plain" },
		{ "<script>\"&'", "&#60;script&#62;&#34;&#38;&#39;" },
		{ "&lt;", "&#38;lt;" },
		{ "z\xc3\xbc", "z\xc3\xbc" },
		{ "a\x1b[31m\n\x7f", "a\xef\xbf\xbd[31m\xef\xbf\xbd\xef\xbf\xbd" },
		{ "\xc2\x9b" "1m", "\xef\xbf\xbd" "1m" },
		{ "\xff\xc3<", "\xef\xbf\xbd\xef\xbf\xbd&#60;" },
		{ "", "" },
	};
	FILE *out;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		out = open_memstream(&text, &len);
		assert_non_null(out);
		html_text(out, row[i].value);
		assert_int_equal(fclose(out), 0);
		assert_string_equal(text, row[i].want);
		free(text);
	}
}

static void
test_number(void **state)
{
	static const struct {
		uint64_t n;
		const char *want;
	} row[] = {
		{ 0, "0" }, { 999, "999" }, { 1000, "1.00k" }, { 1234, "1.23k" },
		{ 12345, "12.3k" }, { 123456, "123k" }, { 999999, "999k" },
		{ 1000000, "1.00M" }, { 1048576, "1.04M" },
		{ 1005000, "1.00M" }, { UINT64_MAX, "18.4E" },
	};
	char buf[HTML_NUMBER_MAX];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(row) / sizeof(row[0]); i++)
		assert_string_equal(html_number(row[i].n, buf), row[i].want);
}

static void
test_ago(void **state)
{
	static const struct {
		int64_t s;
		const char *want;
	} row[] = {
		{ -5, "0 s" }, { 0, "0 s" }, { 119, "119 s" }, { 120, "2 min" },
		{ 7199, "119 min" }, { 7200, "2 h" }, { 172799, "47 h" },
		{ 172800, "2 d" },
	};
	char buf[HTML_NUMBER_MAX];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(row) / sizeof(row[0]); i++)
		assert_string_equal(html_ago(row[i].s * 1000000000, buf),
		    row[i].want);
}

static void
test_images(void **state)
{
	static const uint32_t value[] = { 0, 5, 10 };
	FILE *out = open_memstream(&text, &len);

	(void)state;
	assert_non_null(out);
	html_bar(out, 1, 4);
	html_bar(out, 0, 0);
	html_spark(out, value, 3, 3);
	html_spark(out, value, 2, 5);
	assert_int_equal(fclose(out), 0);
	assert_non_null(strstr(text, "width=\"25.00\""));
	assert_non_null(strstr(text, "width=\"0.00\""));
	assert_non_null(strstr(text, "points=\"0.0,19.0 50.0,10.0 100.0,1.0\""));
	assert_non_null(strstr(text, "points=\"75.0,19.0 100.0,1.0\""));
	free(text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_number),
		cmocka_unit_test(test_ago),
		cmocka_unit_test(test_images),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
