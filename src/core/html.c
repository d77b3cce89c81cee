/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes HTML: escaped text, bars and lines as inline SVG. */
#include "core/html.h"

#include <inttypes.h>

#include "core/metric.h"

/* C0, DEL, and C1 as UTF-8 has it. */
static int
is_control(const char *s)
{
	const unsigned char *p = (const unsigned char *)s;

	return p[0] < 0x20 || p[0] == 0x7f || (p[0] == 0xc2 && p[1] < 0xa0);
}

void
html_text(FILE *out, const char *s)
{
	size_t n;

	for (; *s != '\0'; s += n) {
		n = utf8_length(s);
		if (n == 0 || is_control(s)) {
			fputs("\xef\xbf\xbd", out);
			n = n == 0 ? 1 : n;
		} else if (*s == '&' || *s == '<' || *s == '>' || *s == '"' ||
		    *s == '\'') {
			fprintf(out, "&#%d;", *s);
		} else {
			fwrite(s, 1, n, out);
		}
	}
}

const char *
html_number(uint64_t n, char buf[HTML_NUMBER_MAX])
{
	static const char unit[] = " kMGTPE";
	uint64_t rest = 0;
	size_t u = 0;

	for (; n >= 1000; n /= 1000, u++)
		rest = n % 1000;
	if (u == 0)
		snprintf(buf, HTML_NUMBER_MAX, "%" PRIu64, n);
	else if (n >= 100)
		snprintf(buf, HTML_NUMBER_MAX, "%" PRIu64 "%c", n, unit[u]);
	else if (n >= 10)
		snprintf(buf, HTML_NUMBER_MAX, "%" PRIu64 ".%" PRIu64 "%c", n,
		    rest / 100, unit[u]);
	else
		snprintf(buf, HTML_NUMBER_MAX, "%" PRIu64 ".%02" PRIu64 "%c",
		    n, rest / 10, unit[u]);
	return buf;
}

const char *
html_ago(int64_t ns, char buf[HTML_NUMBER_MAX])
{
	int64_t s = ns > 0 ? ns / 1000000000 : 0;

	if (s < 120)
		snprintf(buf, HTML_NUMBER_MAX, "%" PRId64 " s", s);
	else if (s < 120 * 60)
		snprintf(buf, HTML_NUMBER_MAX, "%" PRId64 " min", s / 60);
	else if (s < 48 * 3600)
		snprintf(buf, HTML_NUMBER_MAX, "%" PRId64 " h", s / 3600);
	else
		snprintf(buf, HTML_NUMBER_MAX, "%" PRId64 " d", s / 86400);
	return buf;
}

void
html_bar(FILE *out, uint64_t part, uint64_t all)
{
	double width = all > 0 ? 100 * (double)part / (double)all : 0;

	fprintf(out, "<svg class=bar viewBox=\"0 0 100 8\" "
	    "preserveAspectRatio=none aria-hidden=true>"
	    "<rect class=all width=100 height=8 />"
	    "<rect class=part width=\"%.2f\" height=8 /></svg>", width);
}

void
html_spark(FILE *out, const uint32_t *value, size_t n, size_t all)
{
	uint32_t max = 1;
	size_t i;

	for (i = 0; i < n; i++)
		if (value[i] > max)
			max = value[i];
	fputs("<svg class=spark viewBox=\"0 0 100 20\" "
	    "preserveAspectRatio=none aria-hidden=true><polyline points=\"",
	    out);
	for (i = 0; i < n; i++)
		fprintf(out, "%s%.1f,%.1f", i > 0 ? " " : "",
		    100 * (double)(all - n + i) / (double)(all - 1),
		    19 - 18 * (double)value[i] / max);
	fputs("\"/></svg>", out);
}
