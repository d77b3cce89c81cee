/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What an entry of the flow table says, by its age. `tick` is now. */
#ifndef XLB_FLOW_ENTRY_H
#define XLB_FLOW_ENTRY_H

#include <stdbool.h>
#include <stdint.h>

#include "xlb_abi.h"

/* In ticks, counted from XLB_FLOW_AHEAD on: another CPU's clock may have been a
 * little ahead. */
static inline uint32_t
flow_entry_age(uint64_t e, uint32_t tick)
{
	return (tick + XLB_FLOW_AHEAD - XLB_FLOW_USED(e)) & XLB_FLOW_AGE_MASK;
}

/* It binds its flow in a slot without LOOKUP. */
static inline bool
flow_entry_live(uint64_t e, uint32_t tick)
{
	uint32_t life = (uint32_t)e & XLB_FLOW_CLOSING ? XLB_FLOW_SESSION :
	    (uint32_t)e & XLB_FLOW_CONFIRMED ? XLB_FLOW_LIVE :
	    XLB_FLOW_OPENING;

	return XLB_FLOW_BACKEND(e) != 0 &&
	    flow_entry_age(e, tick) <= XLB_FLOW_AHEAD + life;
}

/* It says nothing more at all, and has to go before its age wraps. */
static inline bool
flow_entry_over(uint64_t e, uint32_t tick)
{
	return flow_entry_age(e, tick) > XLB_FLOW_AHEAD + XLB_FLOW_KNOWN;
}

#endif
