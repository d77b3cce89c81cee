/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The kernel's maps as a place to read a state from and to apply operations
 * to. Two implementations: maps_bpf.c, and tests/fake/maps_mem.c; the Makefile
 * picks.
 */
#ifndef XLB_MAPS_H
#define XLB_MAPS_H

#include "core/plan.h"
#include "core/state.h"

struct arena;
struct maps;

/* What the maps hold now: the wanted type, read back row by row. Ring slots
 * point into the mapped memory: good until the next maps_read(), whatever is
 * done meanwhile. 0, or -errno (logged). */
int maps_read(struct maps *m, struct arena *a, struct state *found);

/* One operation; idempotent. 0, or -errno: the system's, as in libbpf 1.x. A
 * deletion first waits for a grace period if something was unnamed since the
 * last one: once per plan, some 10 ms.
 * -ENOSPC: no row within XLB_PROBE for a VIP or service. */
int maps_do(struct maps *m, const struct op *op);

/* Counters, summed over the CPUs. 0, or -errno. */
int maps_reasons(struct maps *m, struct xlb_reasons *out);
int maps_service_stats(struct maps *m, uint32_t number,
    struct xlb_service_stats *out);
int maps_backend_stats(struct maps *m, uint32_t number,
    struct xlb_backend_stats *out);

/* Outer checksums that took all of the payload. */
int maps_csum_full(struct maps *m, uint64_t *out);

/* Health verdicts. The table is in `a`, sorted. 0, or -errno. */
int maps_health_read(struct maps *m, struct arena *a, struct health_table *t);
int maps_health_put(struct maps *m, const struct health_row *row);
int maps_health_del(struct maps *m, const struct health_row *row);

#endif
