/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counts live flows by the slots that a plan moves. */
#include "core/flow_count.h"

#include "core/flow_entry.h"
#include "core/ring_words.h"

#define SETS_ALL (1U << 17)	/* read for all rings together: some 10 ms */
#define SETS_MIN 1024

static const struct op_ring *
ring_op(const struct plan *p, uint32_t number)
{
	const struct op_ring *last = NULL;
	size_t i;

	for (i = 0; i < p->n; i++)
		if (p->op[i].kind == OP_RING_SLOTS && p->op[i].id == number)
			last = p->op[i].row;
	return last;
}

static const struct state_ring *
ring_by_number(const struct state *s, uint32_t number)
{
	size_t i;

	for (i = 0; i < s->nring; i++)
		if (s->ring[i].number == number)
			return &s->ring[i];
	return NULL;
}

/* In the slot of the middle of the hashes that the tag stands for. */
static bool
entry_moves(uint64_t e, const struct op_ring *op,
    const struct state_ring *found)
{
	uint32_t hash = (XLB_FLOW_TAG(e) & 0xffffff00U) | 0x80;
	uint32_t slot = (uint32_t)((uint64_t)hash * op->size >> 32);
	uint32_t backend = XLB_FLOW_BACKEND(e);

	return XLB_SLOT_CUR(op->slot[slot]) != XLB_SLOT_CUR(found->slot[slot]) &&
	    backend < XLB_BACKENDS && ring_member(found->roles, backend) != 0;
}

static uint64_t
ring_count(const struct op_ring *op, const struct state_ring *found,
    const struct xlb_flow_set *flows, uint32_t sets, uint32_t step,
    uint32_t tick)
{
	uint64_t n = 0, e;
	uint32_t i, k;

	for (i = 0; i < sets; i += step)
		for (k = 0; k < XLB_FLOW_WAYS; k++) {
			e = flows[i].entry[k];
			n += flow_entry_live(e, tick) &&
			    entry_moves(e, op, found);
		}
	return n * step;
}

void
flow_count(const struct plan *p, const struct state *wanted,
    const struct state *found, const struct xlb_flow_set *flows, uint32_t sets,
    uint32_t tick, uint64_t *out)
{
	uint32_t most = SETS_ALL, step = 1;
	const struct state_ring *was;
	const struct op_ring *op;
	size_t i;

	if (wanted->nring > 0)
		most = SETS_ALL / (uint32_t)wanted->nring;
	if (most < SETS_MIN)
		most = SETS_MIN;
	while (sets / step > most)
		step *= 2;
	for (i = 0; i < wanted->nring; i++) {
		op = ring_op(p, wanted->ring[i].number);
		was = ring_by_number(found, wanted->ring[i].number);
		out[i] = op == NULL || was == NULL ? 0 :
		    ring_count(op, was, flows, sets, step, tick);
	}
}
