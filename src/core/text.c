/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shows a word safely, and guesses which word was meant. */
#include "core/text.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define WORD_MAX 64

/* C0, DEL, and C1 as UTF-8 has it: a terminal may obey them. */
static int
is_control(const unsigned char *p)
{
	return p[0] < 0x20 || p[0] == 0x7f || (p[0] == 0xc2 && p[1] < 0xa0);
}

const char *
text_show(const char *s, char buf[TEXT_SHOW_MAX])
{
	const unsigned char *p = (const unsigned char *)s;
	size_t n = 0, step, i;
	bool quoted;

	/* what begins or ends nowhere visible gets quotes */
	if (*s == '\0' || *s == ' ' || s[strlen(s) - 1] == ' ')
		buf[n++] = '"';
	quoted = n > 0;
	while (*p != '\0') {
		step = is_control(p) ? 4 : 1;
		for (i = 1; step != 4 && (p[i] & 0xc0) == 0x80; i++)
			step++;
		if (n + step + sizeof("...\"") > TEXT_SHOW_MAX) {
			memcpy(buf + n, "...", 3);
			n += 3;
			break;
		}
		if (is_control(p)) {
			snprintf(buf + n, 5, "\\x%02x", *p == 0xc2 ? p[1] : *p);
			p += *p == 0xc2 ? 2 : 1;
		} else {
			memcpy(buf + n, p, step);
			p += step;
		}
		n += step;
	}
	if (quoted)
		buf[n++] = '"';
	buf[n] = '\0';
	return buf;
}

static unsigned
least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* Optimal string alignment: three rows of the usual table. */
unsigned
text_distance(const char *a, const char *b)
{
	unsigned row[3][WORD_MAX + 1], *cur, *up, *up2, d;
	size_t na = strlen(a), nb = strlen(b), i, j;

	if (na > WORD_MAX || nb > WORD_MAX)
		return UINT_MAX;
	for (j = 0; j <= nb; j++)
		row[0][j] = (unsigned)j;
	for (i = 1; i <= na; i++) {
		cur = row[i % 3];
		up = row[(i - 1) % 3];
		up2 = row[(i + 1) % 3];
		cur[0] = (unsigned)i;
		for (j = 1; j <= nb; j++) {
			d = least(up[j], cur[j - 1]) + 1;
			d = least(d, up[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] &&
			    a[i - 2] == b[j - 1])
				d = least(d, up2[j - 2] + 1);
			cur[j] = d;
		}
	}
	return row[na % 3][nb];
}

void
text_guess_init(struct text_guess *g, const char *word)
{
	size_t n = strlen(word);

	g->word = word;
	g->best = NULL;
	/* One mistake in three letters, two at most; more is another word. */
	g->distance = (n < 6 ? (unsigned)n / 3 : 2) + 1;
}

void
text_guess_try(struct text_guess *g, const char *candidate)
{
	unsigned d = text_distance(g->word, candidate);

	if (d >= g->distance)
		return;
	g->best = candidate;
	g->distance = d;
}
