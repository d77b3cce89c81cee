/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Between kernel_run.c and who keeps the maps: kernel.c, or kernel_bpf.c. */
#ifndef XLB_MODEL_KERNEL_INT_H
#define XLB_MODEL_KERNEL_INT_H

#include "io/maps_int.h"
#include "kernel.h"

/* A value of a map as the program that is compiled for this machine sees it;
 * NULL: there is none. It runs as the first CPU. */
void *kernel_value(struct kernel *k, enum map_id map, uint32_t row);
/* That program's verdict; see kernel_run(). */
int kernel_run_host(struct kernel *k, uint32_t ring_size, uint32_t entries,
    uint8_t *buf, uint8_t **frame, size_t *len);
uint64_t kernel_jiffies(void);

#endif
