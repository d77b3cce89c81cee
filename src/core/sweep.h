/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What time does to rings and flows. In passes, and each pass in pieces, so that
 * a loop may do it beside its work:
 *   1. `prev` and old rings go after their time; slots that have LOOKUP and
 *      nothing else, and retired backends that nothing names, are candidates
 *   2. the caller waits for a grace period: no packet holds what went
 *   3. the flow table is read: a live entry of a slot's that is with another
 *      member than the owner keeps the slot's LOOKUP; entries of retired
 *      backends are taken out, and so are those whose age is about to wrap
 *   4. where LOOKUP may go, entries that are too old to keep it are taken out: a
 *      packet of theirs would make them new before it goes
 *   5. LOOKUP goes where no entry needs it and the slot has not changed since 1;
 *      numbers of retired backends of which there was no entry are free
 * All it goes by is in the maps, but how long services have had an old ring:
 * for one that another process left, that time begins anew.
 * It works on the maps' memory: rings are written by the same process alone,
 * flow entries by packets, too, so they change by compare-and-swap.
 */
#ifndef XLB_SWEEP_H
#define XLB_SWEEP_H

#include <stdbool.h>
#include <stdint.h>

#include "xlb_abi.h"

struct sweep;

enum sweep_state {
	SWEEP_MORE,		/* call sweep_step() again */
	SWEEP_GRACE,		/* call sweep_graced() after a grace period */
	SWEEP_DONE
};

/* The last pass. */
struct sweep_result {
	uint32_t prev;		/* slots and services that still have one */
	uint32_t lookup;	/* slots and services that still are looked up */
	uint32_t retired;	/* backends whose number is not free yet */
	bool scrubbed;		/* of some of them there were entries: the next
				 * pass may free them */
	bool waits;		/* there were candidates */
	bool scanned;		/* the flow table was read: `live` is new */
	bool old_gone;		/* a service has no old ring any more */
	uint64_t live;		/* entries that bind a flow */
	uint64_t wrapped;	/* taken out because of their age */
};

struct sweep *sweep_new(struct xlb_tables *tables, uint32_t ring_size);
void sweep_free(struct sweep *s);	/* NULL is allowed */

/* A ring is there, or is not any more (NULL). */
void sweep_ring(struct sweep *s, uint32_t number, struct xlb_ring *ring);
/* Its slots change: called with both halves before the new one is published. */
void sweep_ring_moves(struct sweep *s, uint32_t number, const uint32_t *was,
    const uint32_t *now);
/* Its members change, its slots do not. */
void sweep_ring_roles(struct sweep *s, uint32_t number);
/* `sets` is a power of two. */
void sweep_flows(struct sweep *s, struct xlb_flow_set *flows, uint32_t sets);
void sweep_service_moves(struct sweep *s, uint32_t number);
void sweep_backend_stays(struct sweep *s, uint32_t number); /* not retired */

/* When the flow table, which takes longest, is read. */
enum sweep_scan {
	SWEEP_SCAN_NEVER,	/* candidates wait for another pass */
	SWEEP_SCAN_ASKED,	/* if there are candidates */
	SWEEP_SCAN_ALWAYS
};
void sweep_begin(struct sweep *s, enum sweep_scan scan);
/* Some 10 us to 100 us of work. `tick` is now. */
enum sweep_state sweep_step(struct sweep *s, uint32_t tick);
void sweep_graced(struct sweep *s);
bool sweep_running(const struct sweep *s);

const struct sweep_result *sweep_result(const struct sweep *s);
/* Numbers that the pass that is done has found free, from `from` on;
 * XLB_BACKENDS: no more. */
uint32_t sweep_freed(const struct sweep *s, uint32_t from);

#endif
