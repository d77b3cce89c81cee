/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * BPF programs executed step by step, as libbpf has loaded them and on the same
 * maps: how many instructions a packet takes, which no other load on the
 * machine changes. A helper counts as one, whether the kernel puts a few
 * instructions in its place or calls a function.
 */
#ifndef XLB_BENCH_MACHINE_H
#define XLB_BENCH_MACHINE_H

#include <stddef.h>
#include <stdint.h>

struct bpf_insn;

struct machine_program {
	const struct bpf_insn *insn;	/* subprograms behind the program */
	size_t n;
};

struct machine;

/* NULL: no memory. */
struct machine *machine_new(void);
void machine_free(struct machine *m);

/* What the program's clocks say: monotonic, ns; the kernel's ticks. */
void machine_clock(struct machine *m, uint64_t ns, uint64_t jiffies);

/* Runs `first` on the frame; where it makes a tail call, `next` goes on, and
 * only what that executes is counted. The XDP action, or -1 after saying what
 * this machine does not have. */
int machine_run(struct machine *m, const struct machine_program *first,
    const struct machine_program *next, const void *frame, size_t len);

/* Executed and counted since the beginning. */
uint64_t machine_insns(const struct machine *m);

#endif
