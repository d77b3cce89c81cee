/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The kernel's maps as a place to read a state from and to apply operations
 * to. Two implementations: maps_bpf.c, and tests/fake/maps_mem.c; the Makefile
 * picks.
 */
#ifndef XLB_MAPS_H
#define XLB_MAPS_H

#include "core/lookup.h"
#include "core/plan.h"
#include "core/state.h"

struct arena;
struct maps;
struct sweep;

/* What the maps hold now: the wanted type, read back row by row. Ring slots
 * point into the mapped memory: good until the next maps_read(), whatever is
 * done meanwhile. 0, or -errno (logged). */
int maps_read(struct maps *m, struct arena *a, struct state *found);

/* One operation; idempotent. 0, or -errno: the system's, as in libbpf 1.x. A
 * deletion first waits for a grace period if something was unnamed since the
 * last one: once per plan, some 10 ms.
 * -ENOSPC: no row within XLB_PROBE for a VIP or service. */
int maps_do(struct maps *m, const struct op *op);

/* What time does to rings and flows; told of each operation that it has to know
 * of. */
struct sweep *maps_sweep(struct maps *m);
/* A retired backend whose number is free (see sweep_freed()). */
void maps_backend_free(struct maps *m, uint32_t number);
uint32_t maps_flow_entries(const struct maps *m);
const struct xlb_flow_set *maps_flows(const struct maps *m, uint32_t *sets);
int maps_flow_stats(struct maps *m, struct xlb_flow_stats *out);
/* Now, as the packet program counts: XLB_FLOW_TICK_SHIFT. */
uint32_t maps_tick(void);
/* What time does to the table of NAT, and what it has found. A larger table is
 * taken over by itself. */
struct nat_sweep;
struct nat_sweep *maps_nat(struct maps *m);
uint32_t maps_nat_rows(const struct maps *m);
uint64_t maps_nat_sources(struct maps *m);	/* numbers that flows name, a bit
						 * each */
/* Descriptors for an update of `grace`, which ends in synchronize_rcu. */
void maps_grace_fds(const struct maps *m, int *map, int *inner);

/* Counters, summed over the CPUs. 0, or -errno. */
int maps_reasons(struct maps *m, struct xlb_reasons *out);
int maps_service_stats(struct maps *m, uint32_t number,
    struct xlb_service_stats *out);
int maps_backend_stats(struct maps *m, uint32_t number,
    struct xlb_backend_stats *out);

/* Outer checksums that took all of the payload. */
int maps_csum_full(struct maps *m, uint64_t *out);

/* Where a flow goes, and the words that say so. 0; -ENOENT: no service; -errno. */
struct maps_found {
	uint64_t service;	/* XLB_SERVICE_WORD() */
	struct lookup_hash hash;
	uint32_t word;		/* of the slot */
	uint64_t entry, now;	/* of the flow table, 0: none; the clock, ns */
	uint32_t backend;	/* number; 0: none */
	enum lookup_why why;
	struct xlb_nat nat;	/* of the flow, as NAT has it; word 0: it has
				 * none */
};
int maps_lookup(struct maps *m, const struct lookup_flow *f,
    struct maps_found *out);
uint64_t maps_clock(void);	/* the packet program's, ns */

/* How many slots of a ring are looked up, remember an owner before, have none.
 * 0, or -ENOENT. */
struct maps_ring_count {
	uint32_t lookup, prev, empty;
	uint32_t moved;		/* whose owner before is still remembered */
};
int maps_ring_count(struct maps *m, uint32_t number,
    struct maps_ring_count *out);

/* The flow table and NAT's, to be read in slices: they stay mapped, whatever
 * becomes of them, until maps_flows_close(). NULL: they cannot be, logged. */
struct maps_flows {
	struct xlb_flow_set *set;
	uint32_t n;		/* sets, a power of two */
	struct xlb_nat *nat;
	uint32_t rows;		/* the same */
};
struct maps_flows *maps_flows_open(struct maps *m);
/* The entry of one flow in it; 0: none. */
uint64_t maps_flows_find(const struct maps *m, const struct maps_flows *f,
    const struct lookup_flow *flow, uint32_t service_flags);
/* The same of NAT's; word 0: none. */
void maps_flows_nat(const struct maps *m, const struct maps_flows *f,
    const struct lookup_flow *flow, struct xlb_nat *out);
void maps_flows_close(struct maps_flows *f);	/* NULL is allowed */

/* Health verdicts. The table is in `a`, sorted. 0, or -errno. */
int maps_health_read(struct maps *m, struct arena *a, struct health_table *t);
int maps_health_put(struct maps *m, const struct health_row *row);
int maps_health_del(struct maps *m, const struct health_row *row);

#endif
