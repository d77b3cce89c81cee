/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The operator's mistakes, collected so that one run shows all of them.
 * Printed as `FILE:LINE:COL: PATH: what, with the value and the limit`.
 */
#ifndef XLB_DIAG_H
#define XLB_DIAG_H

#include <stdio.h>

/* A place in a configuration file; line and column count from 1. */
struct mark {
	const char *file;	/* as the user gave it; NULL: no place */
	unsigned line, col;
};

enum diag_level { DIAG_ERROR, DIAG_WARNING };

struct diag_row {
	enum diag_level level;
	struct mark mark;	/* its file name is the diag's own copy */
	char *text;		/* "path: what", owned by the diag */
};

struct diag {
	struct diag_row *row;	/* in the order found */
	size_t n;
	size_t errors, warnings;
	char **file;		/* the names that the marks use */
	size_t nfile;
};

void diag_init(struct diag *dg);
void diag_fini(struct diag *dg);
void diag_add(struct diag *dg, enum diag_level level, struct mark at,
    const char *fmt, ...) __attribute__((format(printf, 4, 5)));
void diag_sort(struct diag *dg);	/* by file, line, column; stable */
char *diag_line(const struct diag_row *row);	/* malloc'ed, no line end */
/* Warnings are printed with "warning: " after the place. */
void diag_print(const struct diag *dg, FILE *out);

#endif
