/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Bump allocator: one arena per configuration, state or plan; everything in
 * it is freed by one call. Running out of memory ends the process (the pinned
 * program keeps forwarding), so no caller checks for NULL.
 */
#ifndef XLB_ARENA_H
#define XLB_ARENA_H

#include <stddef.h>

struct arena;

struct arena *arena_new(void);
void arena_free(struct arena *a);	/* NULL is allowed */

void *arena_alloc(struct arena *a, size_t size);	/* zeroed, 16-aligned */
void *arena_calloc(struct arena *a, size_t n, size_t size);
void *arena_dup(struct arena *a, const void *src, size_t size);
char *arena_strdup(struct arena *a, const char *s);
char *arena_printf(struct arena *a, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* For what outlives every arena: zeroed, to be freed by free(); never NULL. */
void *must_calloc(size_t n, size_t size);

/*
 * Room for one more element at the end of the array `*base` of `n` elements;
 * grows by doubling. All of them came from here, since it knows by `n` alone
 * where the array is full. Returns the new, zeroed element; the caller counts it.
 */
void *arena_grow(struct arena *a, void *base, size_t n, size_t size);

#endif
