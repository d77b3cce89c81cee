/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Carries entries over to a larger flow table, by compare-and-swap. */
#include "core/flow_copy.h"

#include <stddef.h>

#include "core/flow_entry.h"

static bool
swap(__u64 *at, __u64 was, __u64 now)
{
	return __atomic_compare_exchange_n(at, &was, now, false,
	    __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

/* Where an entry may go: the flow's own, else an empty one, else the one that
 * was not used for longest. */
static __u64 *
place(struct xlb_flow_set *set, uint64_t e, uint32_t tick)
{
	__u64 *empty = NULL, *oldest = &set->entry[0], *at;
	int i;

	for (i = 0; i < XLB_FLOW_WAYS; i++) {
		at = &set->entry[i];
		if (*at != 0 && XLB_FLOW_TAG(*at) == XLB_FLOW_TAG(e))
			return at;
		if (*at == 0 && empty == NULL)
			empty = at;
		if (flow_entry_age(*at, tick) >
		    flow_entry_age(*oldest, tick))
			oldest = at;
	}
	return empty != NULL ? empty : oldest;
}

static void
entry_copy(struct xlb_flow_set *set, uint64_t e, uint32_t tick)
{
	__u64 *at, was;
	int tries;

	/* a packet may be quicker, once or twice */
	for (tries = 0; tries < 3; tries++) {
		at = place(set, e, tick);
		was = __atomic_load_n(at, __ATOMIC_RELAXED);
		if (was != 0 && flow_entry_age(was, tick) <=
		    flow_entry_age(e, tick))
			return;
		if (swap(at, was, e))
			return;
	}
}

void
flow_copy(const struct xlb_flow_set *from, uint32_t nfrom,
    struct xlb_flow_set *to, uint32_t nto, uint32_t tick)
{
	const struct xlb_flow_set *set;
	uint32_t i, k;
	uint64_t e;

	for (i = 0; i < nto; i++) {
		set = &from[i & (nfrom - 1)];
		for (k = 0; k < XLB_FLOW_WAYS; k++) {
			e = __atomic_load_n(&set->entry[k], __ATOMIC_RELAXED);
			if (e != 0 && !flow_entry_over(e, tick))
				entry_copy(&to[i], e, tick);
		}
	}
}
