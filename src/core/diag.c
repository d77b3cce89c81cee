/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A list of mistakes with their places. */
#include "core/diag.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void
diag_init(struct diag *dg)
{
	memset(dg, 0, sizeof(*dg));
}

void
diag_fini(struct diag *dg)
{
	size_t i;

	for (i = 0; i < dg->n; i++)
		free(dg->row[i].text);
	for (i = 0; i < dg->nfile; i++)
		free(dg->file[i]);
	free(dg->file);
	free(dg->row);
	memset(dg, 0, sizeof(*dg));
}

/* Messages outlive the text they are about, and its name. */
static const char *
file_intern(struct diag *dg, const char *name)
{
	char **file;
	size_t i;

	for (i = dg->nfile; name != NULL && i-- > 0; )
		if (strcmp(dg->file[i], name) == 0)
			return dg->file[i];
	if (name == NULL)
		return NULL;
	file = reallocarray(dg->file, dg->nfile + 1, sizeof(*file));
	if (file == NULL || (file[dg->nfile] = strdup(name)) == NULL)
		abort();
	dg->file = file;
	return file[dg->nfile++];
}

void
diag_add(struct diag *dg, enum diag_level level, struct mark at,
    const char *fmt, ...)
{
	struct diag_row *row;
	va_list ap;

	row = reallocarray(dg->row, dg->n + 1, sizeof(*row));
	if (row == NULL)
		abort();
	dg->row = row;
	row += dg->n;
	row->level = level;
	row->mark = at;
	row->mark.file = file_intern(dg, at.file);
	va_start(ap, fmt);
	if (vasprintf(&row->text, fmt, ap) < 0)
		abort();
	va_end(ap);
	dg->n++;
	if (level == DIAG_ERROR)
		dg->errors++;
	else
		dg->warnings++;
}

static int
mark_cmp(const struct mark *a, const struct mark *b)
{
	int c = 0;

	if (a->file != NULL && b->file != NULL)
		c = strcmp(a->file, b->file);
	else
		c = (a->file != NULL) - (b->file != NULL);
	if (c != 0)
		return c;
	if (a->line != b->line)
		return a->line < b->line ? -1 : 1;
	return a->col == b->col ? 0 : a->col < b->col ? -1 : 1;
}

struct numbered {
	struct diag_row row;
	size_t number;
};

static int
numbered_cmp(const void *a, const void *b)
{
	const struct numbered *na = a, *nb = b;
	int c = mark_cmp(&na->row.mark, &nb->row.mark);

	return c != 0 ? c : na->number < nb->number ? -1 : 1;
}

/* qsort() alone need not be stable. */
void
diag_sort(struct diag *dg)
{
	struct numbered *all;
	size_t i;

	if (dg->n < 2)
		return;
	all = reallocarray(NULL, dg->n, sizeof(*all));
	if (all == NULL)
		abort();
	for (i = 0; i < dg->n; i++)
		all[i] = (struct numbered){ dg->row[i], i };
	qsort(all, dg->n, sizeof(*all), numbered_cmp);
	for (i = 0; i < dg->n; i++)
		dg->row[i] = all[i].row;
	free(all);
}

char *
diag_line(const struct diag_row *row)
{
	const char *level = row->level == DIAG_WARNING ? "warning: " : "";
	const struct mark *at = &row->mark;
	char *line;
	int n;

	if (at->file == NULL)
		n = asprintf(&line, "%s%s", level, row->text);
	else if (at->line == 0)
		n = asprintf(&line, "%s: %s%s", at->file, level, row->text);
	else
		n = asprintf(&line, "%s:%u:%u: %s%s", at->file, at->line,
		    at->col, level, row->text);
	if (n < 0)
		abort();
	return line;
}

void
diag_print(const struct diag *dg, FILE *out)
{
	char *line;
	size_t i;

	for (i = 0; i < dg->n; i++) {
		line = diag_line(&dg->row[i]);
		fprintf(out, "%s\n", line);
		free(line);
	}
}
