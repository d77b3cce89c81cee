/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counts what the reference says of frames. */
#include "differ_count.h"

#include <linux/bpf.h>
#include <stdio.h>

#define MANY 8000		/* of so many packets one ends in each reason;
				 * of fewer that is not asked */

#define NAME(NAME, name, kind) #name,
static const char *const reason_name[] = { XLB_REASONS(NAME) };

const char *
differ_reason(unsigned reason)
{
	return reason_name[reason];
}

void
differ_count_add(struct differ_count *c, const struct ref_result *r)
{
	unsigned from = r->service == NULL ? DIFFER_BACKEND : DIFFER_CLIENT;

	c->packets++;
	c->reason[r->reason]++;
	if (!r->nat)
		return;
	c->nat[from]++;
	/* "too big" is the only answer that NAT gives itself */
	if ((r->action == XDP_TX || r->action == XDP_REDIRECT) &&
	    r->reason != XLB_REASON_TOO_BIG)
		c->translated[from]++;
}

static void
print_nat(const struct differ_count *c)
{
	printf("# of NAT: %lu from clients, %lu translated; %lu to addresses of "
	    "ours, %lu translated\n", c->nat[DIFFER_CLIENT],
	    c->translated[DIFFER_CLIENT], c->nat[DIFFER_BACKEND],
	    c->translated[DIFFER_BACKEND]);
}

bool
differ_count_reasons(const struct differ_count *c)
{
	bool all = c->nat[DIFFER_CLIENT] > c->packets / 8 &&
	    c->nat[DIFFER_BACKEND] > c->packets / 8;
	unsigned i;

	print_nat(c);
	for (i = 0; i < XLB_REASON_COUNT; i++) {
		printf("# %8lu %s\n", c->reason[i], reason_name[i]);
		/* what takes a ring that has changed is not in this yet */
		if (i != XLB_REASON_FORWARD_PREV &&
		    i != XLB_REASON_FORWARD_PINNED && c->packets >= MANY)
			all &= c->reason[i] > c->packets / MANY;
	}
	return all;
}

bool
differ_count_nat(const struct differ_count *c)
{
	unsigned long client = c->translated[DIFFER_CLIENT];
	unsigned long backend = c->translated[DIFFER_BACKEND];

	print_nat(c);
	/* a round begins without flows, and a short run has begun alone */
	return c->packets < MANY || (client + backend > c->packets / 5 * 2 &&
	    client > c->packets / 7 && backend > c->packets / 7);
}
