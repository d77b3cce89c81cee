/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Flows that routers moved here from another node are unknown here: when many
 * are, every packet is looked up for a while. Goes by counters alone, once a
 * second.
 */
#ifndef XLB_SURGE_CORE_H
#define XLB_SURGE_CORE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/mono.h"
#include "xlb_abi.h"

#define SURGE_SAMPLES 1000	/* that a judgement takes */
#define SURGE_ON_PERMILLE 20	/* unknown, to begin */
#define SURGE_OFF_PERMILLE 5	/* unknown, to end early */
#define SURGE_S 600		/* at most */
#define SURGE_CALM_S 60		/* without a flood, before it begins */
#define SURGE_WINDOW_S 60	/* fewer samples in that time: older ones count
				 * for less */

struct surge {
	bool on;
	mono_t since;		/* of `on` */
	uint64_t seconds;	/* in all */
	uint32_t permille;	/* of the last judgement, for people */
	/* between judgements */
	struct xlb_flow_stats last;
	bool has_last;
	uint64_t sampled, unknown;
	mono_t window;		/* when they began */
	mono_t flood;		/* the last sign of one; ns 0: none */
	bool spent;		/* ended by its time alone: what is unknown now
				 * does not become known by looking it up */
	mono_t counted;		/* `seconds` up to then */
};

/* True if `on` has changed. */
bool surge_step(struct surge *s, const struct xlb_flow_stats *now, mono_t at);

#endif
