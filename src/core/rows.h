/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sorted arrays of rows: the form of every table here. All of these are fit for
 * n = 0 with a NULL base, which qsort() and bsearch() are not.
 */
#ifndef XLB_ROWS_H
#define XLB_ROWS_H

#include <stddef.h>

typedef int (*rows_cmp)(const void *a, const void *b);

void rows_sort(void *base, size_t n, size_t size, rows_cmp cmp);
/* Of equal neighbours the first stays; returns how many rows are left. */
size_t rows_unique(void *base, size_t n, size_t size, rows_cmp cmp);
/* The first row equal to `key`, or NULL. */
void *rows_find(const void *key, const void *base, size_t n, size_t size,
    rows_cmp cmp);

/*
 * Walks two sorted arrays side by side: fn(want, NULL) for a row that only
 * `want` has, fn(NULL, found) for one that only `found` has, fn(want, found)
 * for a pair. Of equal rows on one side the first makes the pair.
 */
void rows_walk(const void *want, size_t nwant, const void *found,
    size_t nfound, size_t size, rows_cmp cmp,
    void (*fn)(const void *want, const void *found, void *arg), void *arg);

#endif
