/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a ring gives each backend, for status. */
#include <string.h>

#include "core/arena.h"
#include "daemon/status.h"

/* How often each backend number owns a slot. */
static void
slots_count(const uint32_t *word, uint32_t size, uint32_t *count)
{
	uint32_t i;

	memset(count, 0, XLB_BACKENDS * sizeof(*count));
	for (i = 0; i < size; i++)
		if (XLB_SLOT_CUR(word[i]) < XLB_BACKENDS)
			count[XLB_SLOT_CUR(word[i])]++;
}

/* `word` and `count` are scratch. */
static void
ring_judge(const struct state *wanted, const struct state_pool *p,
    struct ring_cache *rc, struct arena *a, uint32_t *word, uint32_t *count,
    struct status_ring *out)
{
	const struct state_ring *ring = state_ring_find(wanted, p->conf->name);
	size_t i;

	memset(out, 0, sizeof(*out));
	out->slots = arena_calloc(a, p->conf->nbackend + 1,
	    sizeof(out->slots[0]));
	if (ring == NULL)
		return;
	out->size = wanted->ring_size;
	out->fingerprint = state_ring_fingerprint(rc, wanted, ring);
	state_ring_words(rc, wanted, ring, word);
	slots_count(word, wanted->ring_size, count);
	for (i = 0; i < p->conf->nbackend; i++)
		if (p->member[i].number > 0)
			out->slots[i] = count[p->member[i].number];
}

void
status_ring_of(const struct state *wanted, const struct state_pool *p,
    struct ring_cache *rc, struct arena *a, struct status_ring *out)
{
	ring_judge(wanted, p, rc, a,
	    arena_calloc(a, wanted->ring_size, sizeof(uint32_t)),
	    arena_calloc(a, XLB_BACKENDS, sizeof(uint32_t)), out);
}

struct status_ring *
status_rings(const struct state *wanted, struct ring_cache *rc, struct arena *a)
{
	struct status_ring *list = arena_calloc(a, wanted->npool + 1,
	    sizeof(*list));
	uint32_t *word = arena_calloc(a, wanted->ring_size, sizeof(*word));
	uint32_t *count = arena_calloc(a, XLB_BACKENDS, sizeof(*count));
	size_t i;

	for (i = 0; i < wanted->npool; i++)
		ring_judge(wanted, &wanted->pool[i], rc, a, word, count,
		    &list[i]);
	return list;
}
