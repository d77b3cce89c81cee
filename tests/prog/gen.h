/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Frames by a grammar, of everything that may come to a node, and then with
 * something broken in some of them. */
#ifndef XLB_PROG_GEN_H
#define XLB_PROG_GEN_H

#include "reference.h"
#include "rng.h"

/* Into `frame`, at most `room` bytes; its length. */
size_t gen_frame(struct rng *r, const struct ref_config *c, uint8_t *frame,
    size_t room);

#endif
