/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Frames by a grammar, of everything that may come to a node, and then with
 * something broken in some of them. */
#ifndef XLB_PROG_GEN_H
#define XLB_PROG_GEN_H

#include "reference.h"
#include "rng.h"

struct gen_wish {
	size_t room;		/* for a frame */
	unsigned nat;		/* percent: of flows that NAT has, and of some that
				 * begin */
	unsigned plain;		/* percent: TCP and UDP with nothing wrong */
};

/* Into `frame`; its length. */
size_t gen_frame(struct rng *r, const struct ref_config *c,
    const struct ref_state *s, const struct gen_wish *w, uint8_t *frame);

#endif
