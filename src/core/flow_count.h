/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How many live flows a change of a ring is about. */
#ifndef XLB_FLOW_COUNT_H
#define XLB_FLOW_COUNT_H

#include <stdint.h>

#include "core/plan.h"

/*
 * For each wanted ring, in `out`: the live entries of its members in slots that
 * change their owner. An entry does not say whose pool's it is, so one of a
 * backend that is in several counts for each. Where the table is large, a part
 * of it is read and the rest taken to be like it.
 */
void flow_count(const struct plan *p, const struct state *wanted,
    const struct state *found, const struct xlb_flow_set *flows, uint32_t sets,
    uint32_t tick, uint64_t *out);

#endif
