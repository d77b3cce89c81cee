/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Counters of xlbd itself that outlive it: a file in the run directory, mapped,
 * so that an addition is an addition and a crash loses none. Rows have a name
 * and COUNTERS_WORDS words. What the packet program counts is in its maps.
 */
#ifndef XLB_COUNTERS_H
#define XLB_COUNTERS_H

#include <stdint.h>

#define COUNTERS_WORDS 20
#define COUNTERS_FILE "counters"	/* in --run-dir */

struct counters;

/* Never fails: where the file cannot be used (logged), they are kept in memory
 * alone. One of another version is begun anew. */
struct counters *counters_open(const char *run_dir);
void counters_close(struct counters *c);	/* NULL is allowed */

/* A new configuration: what it has is asked for anew, by counters_row(). Rows
 * that are not stay, so that an object which comes back goes on where it was,
 * but give way when room is needed. All pointers are void from now on. */
void counters_renew(struct counters *c);

/* The words of "KIND/NAME"; zeros if it is new. Good until
 * counters_renew(). */
uint64_t *counters_row(struct counters *c, const char *kind, const char *name);

#endif
