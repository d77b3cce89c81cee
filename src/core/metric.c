/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table of metrics, and samples in Prometheus' text format. */
#include "core/metric.h"

#include <assert.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

static const struct metric_row row[METRIC_COUNT] = {
#define X(NAME, name_, type_, help_, ...) [METRIC_##NAME] = { \
	.name = (name_), .type = METRIC_##type_, .help = (help_), \
	.label = { __VA_ARGS__ } },
	METRICS(X)
#undef X
};

static const uint64_t bound[METRIC_BUCKETS] = {
	100000, 300000, 1000000, 3000000, 10000000, 30000000, 100000000,
	300000000, 1000000000, 3000000000
};

const struct metric_row *
metric_get(enum metric m)
{
	return &row[m];
}

const char *
metric_type_text(enum metric_type t)
{
	return t == METRIC_COUNTER ? "counter" :
	    t == METRIC_GAUGE ? "gauge" : "histogram";
}

void
metric_head(FILE *out, enum metric m)
{
	fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", row[m].name, row[m].help,
	    row[m].name, metric_type_text(row[m].type));
}

size_t
utf8_length(const char *s)
{
	const unsigned char *p = (const unsigned char *)s;
	size_t n, i;

	if (p[0] < 0x80)
		return 1;
	n = p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 :
	    p[0] < 0xf5 ? 4 : 0;
	for (i = 1; i < n; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	/* overlong, surrogates, beyond U+10FFFF */
	if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
	    (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
		return 0;
	return n;
}

/* What needs no look: most there is, and it is written at once. */
#define PLAIN "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ" \
	"0123456789.:-_ "

static void
label_value(FILE *out, const char *s)
{
	size_t n;

	for (; *s != '\0'; s += n) {
		n = strspn(s, PLAIN);
		if (n > 0) {
			fwrite(s, 1, n, out);
			continue;
		}
		n = utf8_length(s);
		if (n == 0) {
			putc('?', out);
			n = 1;
		} else if (*s == '\n') {
			fputs("\\n", out);
		} else {
			if (*s == '\\' || *s == '"')
				putc('\\', out);
			fwrite(s, 1, n, out);
		}
	}
}

/* The name and its labels; `le` is one more, NULL: none. */
static void
sample_head(FILE *out, enum metric m, const char *suffix,
    const char *const *label, const char *le)
{
	const char *sep = "{";
	size_t i;

	fputs(row[m].name, out);
	fputs(suffix, out);
	for (i = 0; row[m].label[i] != NULL; i++) {
		fprintf(out, "%s%s=\"", sep, row[m].label[i]);
		label_value(out, label[i]);
		putc('"', out);
		sep = ",";
	}
	if (le != NULL) {
		fprintf(out, "%sle=\"%s\"", sep, le);
		sep = ",";
	}
	fputs(*sep == '{' ? " " : "} ", out);
}

void
metric_put(FILE *out, enum metric m, const char *const *label, uint64_t value)
{
	sample_head(out, m, "", label, NULL);
	fprintf(out, "%" PRIu64 "\n", value);
}

void
metric_put_real(FILE *out, enum metric m, const char *const *label,
    double value)
{
	sample_head(out, m, "", label, NULL);
	fprintf(out, "%.3f\n", value);
}

void
metric_histogram_add(struct metric_histogram *h, uint64_t ns)
{
	size_t i = 0;

	while (i < METRIC_BUCKETS && ns > bound[i])
		i++;
	h->bucket[i]++;
	h->sum += ns;
}

void
metric_put_histogram(FILE *out, enum metric m, const char *const *label,
    const struct metric_histogram *h)
{
	uint64_t count = 0;
	char le[32];
	size_t i;

	assert(row[m].type == METRIC_HISTOGRAM);
	for (i = 0; i < METRIC_BUCKETS; i++) {
		count += h->bucket[i];
		snprintf(le, sizeof(le), "%g", (double)bound[i] / 1e9);
		sample_head(out, m, "_bucket", label, le);
		fprintf(out, "%" PRIu64 "\n", count);
	}
	count += h->bucket[METRIC_BUCKETS];
	sample_head(out, m, "_bucket", label, "+Inf");
	fprintf(out, "%" PRIu64 "\n", count);
	sample_head(out, m, "_sum", label, NULL);
	fprintf(out, "%.9f\n", (double)h->sum / 1e9);
	sample_head(out, m, "_count", label, NULL);
	fprintf(out, "%" PRIu64 "\n", count);
}
