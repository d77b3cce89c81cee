/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One machine as xlb sees it: the maps, and the packet program that reads them.
 * kernel.c keeps maps in files and answers libbpf's calls, so that xlbd's own
 * io/maps works on them, in this process or in one that is killed; the program
 * is compiled for this machine (kernel_run.c). kernel_bpf.c is the real one:
 * maps and program are the kernel's, but for the program's clock, and the other
 * program does the same beside it. The Makefile picks.
 */
#ifndef XLB_MODEL_KERNEL_H
#define XLB_MODEL_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "xlb_abi.h"

struct kernel;
struct maps;

#define KERNEL_IFINDEX 1	/* where packets come in and leave: BPF_PROG_TEST_RUN's
				 * is the loopback device */
#define KERNEL_FRAME_MAX 256

/* NULL: `why`; *skip: it is not permitted here. `entries` is a power of two. */
struct kernel *kernel_new(uint32_t ring_size, uint32_t entries, char *why,
    size_t len, bool *skip);
void kernel_free(struct kernel *k);

/* As xlbd does when it starts and when it ends: maps are adopted, and stay. */
struct maps *kernel_adopt(struct kernel *k);
void kernel_leave(struct kernel *k);
/* The machine has booted: nothing is left. xlbd does not run. */
void kernel_reboot(struct kernel *k);
/* Which machine xlbd's calls are about, from now on. */
void kernel_use(struct kernel *k);
/* Maps were changed by a process that is no more. */
void kernel_sync(struct kernel *k);

struct xlb_tables *kernel_tables(struct kernel *k);
struct xlb_flow_set *kernel_flows(struct kernel *k, uint32_t *sets);
struct xlb_ring *kernel_ring(struct kernel *k, uint32_t number); /* or NULL */
void kernel_flow_stats(struct kernel *k, struct xlb_flow_stats *out);

/* The time that the program sees, from now on; all machines have the same. */
void kernel_clock(uint64_t ns);
uint64_t kernel_ns(void);
uint32_t kernel_tick(void);	/* what xlbd would read */

/* The XDP action; the frame is changed in place and may begin elsewhere in its
 * buffer of KERNEL_FRAME_MAX bytes. */
int kernel_run(struct kernel *k, uint8_t *buf, uint8_t **frame, size_t *len);

/* In what the two programs differed first; NULL: in nothing, or there is one. */
const char *kernel_differs(void);

/* Of this frame, which is TCP over IP without options: the hash that selects the
 * slot, and that of the flow. */
void kernel_hash(struct kernel *k, const uint8_t *frame, bool source,
    uint32_t *select, uint64_t *flow);

#endif
