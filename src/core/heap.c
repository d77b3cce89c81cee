/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A binary min-heap of intrusive nodes. */
#include "core/heap.h"

#include <stdlib.h>
#include <string.h>

static void
place(struct heap *h, size_t i, struct heap_node *node)
{
	h->node[i] = node;
	node->pos = i + 1;
}

static void
sift_up(struct heap *h, size_t i)
{
	struct heap_node *node = h->node[i];
	size_t parent;

	for (; i > 0; i = parent) {
		parent = (i - 1) / 2;
		if (h->node[parent]->key <= node->key)
			break;
		place(h, i, h->node[parent]);
	}
	place(h, i, node);
}

static void
sift_down(struct heap *h, size_t i)
{
	struct heap_node *node = h->node[i];
	size_t child;

	for (; (child = 2 * i + 1) < h->n; i = child) {
		if (child + 1 < h->n &&
		    h->node[child + 1]->key < h->node[child]->key)
			child++;
		if (node->key <= h->node[child]->key)
			break;
		place(h, i, h->node[child]);
	}
	place(h, i, node);
}

void
heap_put(struct heap *h, struct heap_node *node, int64_t key)
{
	node->key = key;
	if (node->pos == 0) {
		if (h->n == h->size) {
			h->size = h->size == 0 ? 64 : h->size * 2;
			h->node = reallocarray(h->node, h->size,
			    sizeof(h->node[0]));
			if (h->node == NULL)
				abort();
		}
		place(h, h->n++, node);
	}
	sift_up(h, node->pos - 1);
	sift_down(h, node->pos - 1);
}

void
heap_del(struct heap *h, struct heap_node *node)
{
	struct heap_node *last;
	size_t i = node->pos - 1;

	if (node->pos == 0)
		return;
	node->pos = 0;
	last = h->node[--h->n];
	if (last == node)
		return;
	place(h, i, last);
	sift_up(h, i);
	sift_down(h, last->pos - 1);
}

struct heap_node *
heap_min(const struct heap *h)
{
	return h->n > 0 ? h->node[0] : NULL;
}

void
heap_fini(struct heap *h)
{
	free(h->node);
	memset(h, 0, sizeof(*h));
}
