/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Collects cells, then prints them in columns as wide as need be. */
#include "ctl/grid.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define GAP 2

struct cell {
	char *text;
	enum tint tint;
	bool line;		/* the others of its row are empty */
};

struct grid {
	const char *align;
	size_t columns;
	struct cell *cell;
	size_t n, size;
};

struct grid *
grid_new(const char *align)
{
	struct grid *g = calloc(1, sizeof(*g));

	if (g == NULL)
		abort();
	g->align = align;
	g->columns = strlen(align);
	return g;
}

void
grid_free(struct grid *g)
{
	size_t i;

	for (i = 0; i < g->n; i++)
		free(g->cell[i].text);
	free(g->cell);
	free(g);
}

static struct cell *
cell_add(struct grid *g, enum tint tint, const char *fmt, va_list ap)
{
	struct cell *c;

	if (g->n == g->size) {
		g->size = g->size == 0 ? 64 : g->size * 2;
		g->cell = reallocarray(g->cell, g->size, sizeof(*g->cell));
		if (g->cell == NULL)
			abort();
	}
	c = &g->cell[g->n++];
	c->tint = tint;
	c->line = false;
	if (vasprintf(&c->text, fmt, ap) < 0)
		abort();
	return c;
}

void
grid_cell(struct grid *g, enum tint tint, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	cell_add(g, tint, fmt, ap);
	va_end(ap);
}

void
grid_line(struct grid *g, enum tint tint, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	cell_add(g, tint, fmt, ap)->line = true;
	va_end(ap);
	while (g->n % g->columns != 0)
		grid_cell(g, TINT_NONE, "%s", "");
}

void
grid_heads(struct grid *g, const char *const *head)
{
	for (; *head != NULL; head++)
		grid_cell(g, TINT_HEAD, "%s", *head);
}

size_t
grid_rows(const struct grid *g)
{
	return (g->n + g->columns - 1) / g->columns;
}

static size_t
column_width(const struct grid *g, size_t column)
{
	size_t i, len, width = 0;

	for (i = column; i < g->n; i += g->columns) {
		len = strlen(g->cell[i].text);
		if (len > width && !g->cell[i].line)
			width = len;
	}
	return width;
}

size_t
grid_width(const struct grid *g)
{
	size_t i, width = 0;

	for (i = 0; i < g->columns; i++)
		width += column_width(g, i) + (i > 0 ? GAP : 0);
	return width;
}

void
tint_print(enum tint tint, const char *text, size_t len, bool colour,
    FILE *out)
{
	static const char *const code[] = { [TINT_NONE] = "",
	    [TINT_HEAD] = "\033[1m", [TINT_GOOD] = "\033[32m",
	    [TINT_BAD] = "\033[31m", [TINT_ODD] = "\033[33m" };

	colour = colour && tint != TINT_NONE && len > 0;
	fprintf(out, "%s%.*s%s", colour ? code[tint] : "", (int)len, text,
	    colour ? "\033[0m" : "");
}

/* Blanks are printed before the next text, so that no line ends in any. */
static void
row_print(const struct grid *g, size_t row, const size_t *width,
    unsigned limit, bool colour, FILE *out)
{
	size_t column, len, blank = 0, at = 0, end, i;

	for (column = 0; column < g->columns; column++) {
		i = row * g->columns + column;
		if (i >= g->n)
			break;
		len = strlen(g->cell[i].text);
		if (g->align[column] == 'r')
			blank += width[column] - len;
		if (len > 0) {
			end = at + blank + len;
			if (limit != 0 && at + blank >= limit)
				break;
			if (limit != 0 && end > limit)
				len = limit - at - blank;
			fprintf(out, "%*s", (int)blank, "");
			tint_print(g->cell[i].tint, g->cell[i].text, len,
			    colour, out);
			at += blank + len;
			blank = 0;
		}
		if (g->cell[i].line)
			break;
		if (g->align[column] == 'l')
			blank += width[column] - len;
		blank += GAP;
	}
	fputc('\n', out);
}

void
grid_print(const struct grid *g, unsigned width, bool colour, FILE *out)
{
	size_t *widths = calloc(g->columns, sizeof(*widths)), i;

	if (widths == NULL)
		abort();
	for (i = 0; i < g->columns; i++)
		widths[i] = column_width(g, i);
	for (i = 0; i < grid_rows(g); i++)
		row_print(g, i, widths, width, colour, out);
	free(widths);
}
