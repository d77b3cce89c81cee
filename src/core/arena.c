/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Bump allocator in blocks that double up to 1 MiB. */
#include "core/arena.h"

#include <assert.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_MIN 4096
#define BLOCK_MAX (1 << 20)
#define ALIGN 16

struct block {
	struct block *next;
	size_t used, size;
	alignas(ALIGN) unsigned char data[];
};

struct arena {
	struct block *head;	/* the one being filled */
};

static _Noreturn void
out_of_memory(size_t size)
{
	fprintf(stderr, "out of memory: %zu bytes\n", size);
	abort();
}

void *
must_calloc(size_t n, size_t size)
{
	void *p = calloc(n == 0 ? 1 : n, size);

	if (p == NULL)
		out_of_memory(n > SIZE_MAX / size ? SIZE_MAX : n * size);
	return p;
}

static struct block *
block_new(size_t size)
{
	struct block *b = must_calloc(1, sizeof(*b) + size);

	b->size = size;
	return b;
}

struct arena *
arena_new(void)
{
	return must_calloc(1, sizeof(struct arena));
}

void
arena_free(struct arena *a)
{
	struct block *b, *next;

	if (a == NULL)
		return;
	for (b = a->head; b != NULL; b = next) {
		next = b->next;
		free(b);
	}
	free(a);
}

void *
arena_alloc(struct arena *a, size_t size)
{
	struct block *b = a->head;
	size_t want;
	void *p;

	if (size > SIZE_MAX / 2)
		out_of_memory(size);
	size = (size + ALIGN - 1) & ~(size_t)(ALIGN - 1);
	if (b == NULL || b->size - b->used < size) {
		want = b == NULL ? BLOCK_MIN : b->size * 2;
		if (want > BLOCK_MAX)
			want = BLOCK_MAX;
		if (size > want / 4 && b != NULL) {
			/* its own block, behind the one being filled */
			b = block_new(size);
			b->used = size;
			b->next = a->head->next;
			a->head->next = b;
			return b->data;
		}
		b = block_new(size > want ? size : want);
		b->next = a->head;
		a->head = b;
	}
	p = b->data + b->used;
	b->used += size;
	return p;
}

void *
arena_calloc(struct arena *a, size_t n, size_t size)
{
	size_t total;

	if (__builtin_mul_overflow(n, size, &total))
		out_of_memory(SIZE_MAX);
	return arena_alloc(a, total);
}

void *
arena_dup(struct arena *a, const void *src, size_t size)
{
	void *p = arena_alloc(a, size);

	if (size > 0)
		memcpy(p, src, size);
	return p;
}

char *
arena_strdup(struct arena *a, const char *s)
{
	return arena_dup(a, s, strlen(s) + 1);
}

char *
arena_printf(struct arena *a, const char *fmt, ...)
{
	va_list ap, again;
	int n;
	char *s;

	va_start(ap, fmt);
	va_copy(again, ap);
	n = vsnprintf(NULL, 0, fmt, ap);
	assert(n >= 0);
	s = arena_alloc(a, (size_t)n + 1);
	vsnprintf(s, (size_t)n + 1, fmt, again);
	va_end(again);
	va_end(ap);
	return s;
}

void *
arena_grow(struct arena *a, void *base, size_t n, size_t size)
{
	unsigned char **array = base;
	unsigned char *bigger;

	/* full at 0, 8, 16, 32, ... elements */
	if (n == 0 || (n >= 8 && (n & (n - 1)) == 0)) {
		bigger = arena_calloc(a, n < 8 ? 8 : n * 2, size);
		if (n > 0)
			memcpy(bigger, *array, n * size);
		*array = bigger;
	}
	return *array + n * size;
}
