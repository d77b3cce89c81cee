/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Frames by a grammar, of everything that may come to a node, and then with
 * something broken in some of them. */
#ifndef XLB_PROG_GEN_H
#define XLB_PROG_GEN_H

#include "reference.h"
#include "rng.h"

/* Into `frame`, at most `room` bytes; its length. Some are of the flows that `s`
 * knows, in either direction. */
size_t gen_frame(struct rng *r, const struct ref_config *c,
    const struct ref_state *s, uint8_t *frame, size_t room);

#endif
