/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A flow table's entries in a larger one. */
#ifndef XLB_FLOW_COPY_H
#define XLB_FLOW_COPY_H

#include <stdint.h>

#include "xlb_abi.h"

/*
 * Both numbers of sets are powers of two, `nto` not the smaller. An entry does
 * not have the bits that say to which of the sets that its set splits into the
 * flow belongs, so it goes to each: where it is not asked for, it ends with its
 * time. Packets may use either table meanwhile; of two entries of one flow the
 * one used last stays. `tick` is now.
 */
void flow_copy(const struct xlb_flow_set *from, uint32_t nfrom,
    struct xlb_flow_set *to, uint32_t nto, uint32_t tick);

#endif
