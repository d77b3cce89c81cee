/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A min-heap of times: its nodes live inside what they time. */
#ifndef XLB_HEAP_H
#define XLB_HEAP_H

#include <stddef.h>
#include <stdint.h>

struct heap_node {
	int64_t key;
	size_t pos;		/* its place in the heap, from 1; 0: in none */
};

struct heap {
	struct heap_node **node;
	size_t n, size;
};

#define HEAP_ITEM(node, type, field) \
	((type *)(void *)((char *)(node) - offsetof(type, field)))

/* Puts the node in, or moves it to its new key. */
void heap_put(struct heap *h, struct heap_node *node, int64_t key);
void heap_del(struct heap *h, struct heap_node *node);	/* in no heap: none */
struct heap_node *heap_min(const struct heap *h);	/* NULL: empty */
void heap_fini(struct heap *h);

#endif
