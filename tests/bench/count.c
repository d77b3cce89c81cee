/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How many instructions a packet takes: what no neighbour changes, and a test
 * can hold the program to. Driver and program run on the maps of the kernel's
 * run, by a clock of their own.
 */
#include "bench.h"

#include <linux/types.h>
#include <stdio.h>
#include <time.h>

#include <bpf/libbpf.h>

#include "../prog/engine.h"
#include "machine.h"
#include "xlb_abi.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wcast-qual"
#include "driver.skel.h"
#pragma GCC diagnostic pop

#include "count.h"

#define WARM 8192U		/* packets */
#define COUNTED 4096U
#define PERIOD 100		/* ns between two packets */
#define TICK 64			/* packets in one of the kernel's ticks */

/* Where the next window of the insert budget begins: none does on the way, and
 * what the kernel's run has left in the maps is of the past. */
static uint64_t
window_ns(void)
{
	struct timespec t;
	uint64_t ns;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	ns = (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
	return (1 + (ns >> XLB_FLOW_WINDOW_SHIFT)) << XLB_FLOW_WINDOW_SHIFT;
}

double
count_insns(const struct driver_bpf *d, int action, uint32_t first)
{
	struct machine_program driver = {
		.insn = bpf_program__insns(d->progs.driver),
		.n = bpf_program__insn_cnt(d->progs.driver) }, xlb;
	struct machine *m = machine_new();
	uint64_t from = window_ns(), before = 0;
	double counted;
	uint32_t warm = first + WARM, i;
	int got = action;

	xlb.insn = engine_insns(&xlb.n);
	for (i = 0; m != NULL && i < warm + COUNTED && got == action; i++) {
		if (i == warm)
			before = machine_insns(m);
		machine_clock(m, from + i * PERIOD, 1 + i / TICK);
		got = machine_run(m, &driver, &xlb,
		    (const void *)&d->rodata->frame, BENCH_FRAME);
	}
	counted = m == NULL || got != action ? -1 :
	    (double)(machine_insns(m) - before) / COUNTED;
	if (counted < 0)
		fprintf(stderr, "bench: interpreted: XDP action %d, not %d\n",
		    m == NULL ? -1 : got, action);
	machine_free(m);
	return counted;
}
