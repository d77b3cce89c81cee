/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Metrics as text: what is escaped, and how durations become buckets. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "core/metric.h"

static char *text;
static size_t len;
static FILE *out;

static void
begin(void)
{
	free(text);
	text = NULL;
	out = open_memstream(&text, &len);
	assert_non_null(out);
}

static const char *
end(void)
{
	assert_int_equal(fclose(out), 0);
	return text;
}

static void
test_labels(void **state)
{
	static const struct {
		const char *what, *value, *want;
	} row[] = {
		{ "plain", "web-1", "web-1" },
		{ "quotes and backslashes", "a\"b\\c", "a\\\"b\\\\c" },
		{ "line feed", "a\nb", "a\\nb" },
		{ "UTF-8 as it is", "z\xc3\xbcrich \xe2\x82\xac \xf0\x9f\x98\x80",
		    "z\xc3\xbcrich \xe2\x82\xac \xf0\x9f\x98\x80" },
		{ "lone bytes", "\xff\xc3(\x80", "?" "?(?" },
		{ "cut short", "a\xe2\x82", "a??" },
		{ "overlong", "\xc0\xaf\xe0\x80\xaf", "?????" },
		{ "a surrogate", "\xed\xa0\x80", "???" },
		{ "beyond Unicode", "\xf4\x90\x80\x80", "????" },
		{ "markup is no matter here", "<b>&", "<b>&" },
	};
	char want[256];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		begin();
		metric_put(out, METRIC_NODE_INFO, &row[i].value, 1);
		snprintf(want, sizeof(want), "xlb_node_info{node=\"%s\"} 1\n",
		    row[i].want);
		if (strcmp(end(), want) != 0)
			fail_msg("%s: %s", row[i].what, text);
	}
}

static void
test_samples(void **state)
{
	const char *label[] = { "www", "203.0.113.1", "tcp", "80" };

	(void)state;
	begin();
	metric_head(out, METRIC_SERVICE_DROPS);
	metric_put(out, METRIC_SERVICE_DROPS, label, UINT64_MAX);
	metric_put_real(out, METRIC_PROCESS_CPU, NULL, 1.5);
	assert_string_equal(end(),
	    "# HELP xlb_service_drops_total packets of the service that were "
	    "dropped\n"
	    "# TYPE xlb_service_drops_total counter\n"
	    "xlb_service_drops_total{service=\"www\",address=\"203.0.113.1\","
	    "protocol=\"tcp\",port=\"80\"} 18446744073709551615\n"
	    "process_cpu_seconds_total 1.500\n");
}

static void
test_histogram(void **state)
{
	struct metric_histogram h;
	const char *label[] = { "c" };
	static const char *const want[] = {
		"_bucket{check=\"c\",le=\"0.0001\"} 1\n",
		"_bucket{check=\"c\",le=\"0.0003\"} 2\n",
		"_bucket{check=\"c\",le=\"3\"} 3\n",
		"_bucket{check=\"c\",le=\"+Inf\"} 4\n",
		"_sum{check=\"c\"} 7.000300001\n",
		"_count{check=\"c\"} 4\n",
	};
	size_t i;

	(void)state;
	memset(&h, 0, sizeof(h));
	metric_histogram_add(&h, 100000);	/* a bound is in its bucket */
	metric_histogram_add(&h, 100001);
	metric_histogram_add(&h, 3000000000);
	metric_histogram_add(&h, 4000100000);
	begin();
	metric_put_histogram(out, METRIC_CHECK_DURATION, label, &h);
	end();
	for (i = 0; i < sizeof(want) / sizeof(want[0]); i++)
		if (strstr(text, want[i]) == NULL)
			fail_msg("no %s in %s", want[i], text);
}

/* What promtool does not see: that there are no two of a name, and each has its
 * meaning. */
static void
test_table(void **state)
{
	size_t i, k;

	(void)state;
	for (i = 0; i < METRIC_COUNT; i++) {
		const struct metric_row *r = metric_get((enum metric)i);

		assert_true(r->help[0] != '\0');
		assert_true((strncmp(r->name, "xlb_", 4) == 0) ||
		    strncmp(r->name, "process_", 8) == 0);
		for (k = 0; k < i; k++)
			assert_string_not_equal(r->name,
			    metric_get((enum metric)k)->name);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_labels),
		cmocka_unit_test(test_samples),
		cmocka_unit_test(test_histogram),
		cmocka_unit_test(test_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
