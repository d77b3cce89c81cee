/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Aligned columns for people. */
#ifndef XLB_GRID_H
#define XLB_GRID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum tint { TINT_NONE, TINT_HEAD, TINT_GOOD, TINT_BAD, TINT_ODD };

/* The first `len` bytes of a text. */
void tint_print(enum tint tint, const char *text, size_t len, bool colour,
    FILE *out);

struct grid;

/* One letter for each column: 'l' left, 'r' right. */
struct grid *grid_new(const char *align);
void grid_free(struct grid *g);
/* The next cell, row after row. */
void grid_cell(struct grid *g, enum tint tint, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* A whole row of its own that no column is made wider for. */
void grid_line(struct grid *g, enum tint tint, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* A row of titles; they end with NULL. */
void grid_heads(struct grid *g, const char *const *head);
size_t grid_rows(const struct grid *g);
size_t grid_width(const struct grid *g);	/* of its columns, lines apart */
/* `width`: no line is longer than so many characters; 0: no matter. */
void grid_print(const struct grid *g, unsigned width, bool colour, FILE *out);

#endif
