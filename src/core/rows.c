/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sorted arrays: sort, find, compare side by side. */
#include "core/rows.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void
rows_sort(void *base, size_t n, size_t size, rows_cmp cmp)
{
	if (n > 1)
		qsort(base, n, size, cmp);
}

size_t
rows_unique(void *base, size_t n, size_t size, rows_cmp cmp)
{
	char *row = base;
	size_t i, k = 0;

	for (i = 0; i < n; i++) {
		if (k > 0 && cmp(row + (k - 1) * size, row + i * size) == 0)
			continue;
		if (k != i)
			memcpy(row + k * size, row + i * size, size);
		k++;
	}
	return k;
}

void *
rows_find(const void *key, const void *base, size_t n, size_t size,
    rows_cmp cmp)
{
	const char *row = base;
	size_t low = 0, high = n, mid;

	while (low < high) {
		mid = low + (high - low) / 2;
		if (cmp(row + mid * size, key) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	if (low == n || cmp(row + low * size, key) != 0)
		return NULL;
	/* as bsearch(): the caller knows whether it may write there */
	return (void *)(uintptr_t)(row + low * size);
}

void
rows_walk(const void *want, size_t nwant, const void *found, size_t nfound,
    size_t size, rows_cmp cmp,
    void (*fn)(const void *want, const void *found, void *arg), void *arg)
{
	const char *wrow = want, *frow = found;
	size_t w = 0, f = 0;
	int c;

	while (w < nwant || f < nfound) {
		if (w == nwant)
			c = 1;
		else if (f == nfound)
			c = -1;
		else
			c = cmp(wrow + w * size, frow + f * size);
		fn(c <= 0 ? wrow + w * size : NULL,
		    c >= 0 ? frow + f * size : NULL, arg);
		w += c <= 0;
		f += c >= 0;
	}
}
