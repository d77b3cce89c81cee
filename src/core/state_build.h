/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Between the files that build a wanted state; nobody else includes it. */
#ifndef XLB_STATE_BUILD_H
#define XLB_STATE_BUILD_H

#include "core/state.h"

/* A backend's way out, beside its row. */
struct backend_hop {
	const struct state_nexthop *nexthop;	/* NULL: none; see why */
	enum member_why why;
	bool kept;		/* it is the one that was found */
};

struct state_build {
	const struct state_input *in;
	struct arena *a;
	struct state *s;	/* being built */
	struct backend_hop *hop;	/* as s->backend */
	struct diag *dg;
};

/* What NAT sends from and by, and which backend is sent to from where. */
int state_nat(struct state_build *b);
/* Sources that no service has as its address are rows of their own. */
void state_nat_vips(struct state_build *b);

/* Gives the rows of one kind their numbers. 0, or -1 if there are too many. */
enum state_kind {
	NUMBER_NEXTHOP, NUMBER_BACKEND, NUMBER_RING, NUMBER_VIP, NUMBER_SERVICE,
	NUMBER_SOURCE, NUMBER_DOOR
};
int state_number(struct state_build *b, enum state_kind kind);

void state_pools_judge(struct state_build *b);

/* Pools and their rings, once the backends have numbers. 0, or -1. */
int state_pools(struct state_build *b);

#endif
