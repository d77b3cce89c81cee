/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What time does to the table of NAT: rows past their life go, and places that
 * nobody's search passes any more are empty again. Packets use the table
 * meanwhile; each change is a compare-and-swap of one word.
 */
#ifndef XLB_NAT_SWEEP_H
#define XLB_NAT_SWEEP_H

#include <stdbool.h>
#include <stdint.h>

#include "xlb_abi.h"

struct nat_sweep;

/* The last pass that was finished. */
struct nat_sweep_result {
	uint32_t flows;		/* that live */
	uint32_t established, udp;	/* of them */
	uint32_t expired;	/* flows that ended by their age */
	uint32_t used;		/* rows that are not empty */
	uint32_t source[XLB_NAT_SOURCES];	/* flows by the address they use */
};

/* `tables` outlives it. */
struct nat_sweep *nat_sweep_new(const struct xlb_tables *tables);
void nat_sweep_free(struct nat_sweep *s);	/* NULL is allowed */
/* The table is this one from now on; a pass that is on is given up. `rows` is a
 * power of two. */
void nat_sweep_table(struct nat_sweep *s, struct xlb_nat *table, uint32_t rows);

void nat_sweep_begin(struct nat_sweep *s, uint32_t tick);
/* Some 100 us of work. True: there is more of the pass. */
bool nat_sweep_step(struct nat_sweep *s);
bool nat_sweep_running(const struct nat_sweep *s);
const struct nat_sweep_result *nat_sweep_result(const struct nat_sweep *s);

/* No row names the backend, which was retired before the last pass but one. */
bool nat_sweep_clean(const struct nat_sweep *s, uint32_t backend);
/* A bit for each source that rows may name. */
uint64_t nat_sweep_sources(const struct nat_sweep *s);

/* The row's other direction is where it says. */
bool nat_pair(const struct xlb_nat *table, uint32_t rows, uint32_t at);

#endif
