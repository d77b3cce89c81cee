/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unit.h"

#include <stdbool.h>
#include <stdlib.h>

#include "core/heap.h"

#define N 500

struct item {
	int other;
	struct heap_node node;
	bool in;
};

static void
heap_holds(const struct heap *h)
{
	size_t i;

	for (i = 0; i < h->n; i++) {
		assert_int_equal(h->node[i]->pos, i + 1);
		if (i > 0)
			assert_true(h->node[(i - 1) / 2]->key <=
			    h->node[i]->key);
	}
}

static void
smallest_comes_first_whatever_was_done(void **state)
{
	static struct item item[N];
	struct heap h = { 0 };
	struct heap_node *min;
	unsigned seed = 7;
	int64_t least, last;
	size_t n = 0, i, step;

	(void)state;
	for (step = 0; step < 20000; step++) {
		i = (size_t)rand_r(&seed) % N;
		if (rand_r(&seed) % 3 == 0) {
			heap_del(&h, &item[i].node);
			n -= item[i].in;
			item[i].in = false;
		} else {
			heap_put(&h, &item[i].node, rand_r(&seed) % 1000);
			n += !item[i].in;
			item[i].in = true;
		}
		assert_int_equal(h.n, n);
		if (step % 100 != 0)
			continue;
		heap_holds(&h);
		least = INT64_MAX;
		for (i = 0; i < N; i++)
			if (item[i].in && item[i].node.key < least)
				least = item[i].node.key;
		if (n > 0)
			assert_int_equal(heap_min(&h)->key, least);
	}
	for (last = -1; (min = heap_min(&h)) != NULL; last = min->key) {
		assert_true(min->key >= last);
		assert_true(HEAP_ITEM(min, struct item, node)->in);
		heap_del(&h, min);
		n--;
	}
	assert_int_equal(n, 0);
	heap_fini(&h);
}

int
main(void)
{
	const struct CMUnitTest test[] = {
		cmocka_unit_test(smallest_comes_first_whatever_was_done),
	};

	return cmocka_run_group_tests_name("heap", test, NULL, NULL);
}
