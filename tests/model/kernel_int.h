/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Between kernel.c and kernel_run.c. */
#ifndef XLB_MODEL_KERNEL_INT_H
#define XLB_MODEL_KERNEL_INT_H

#include "io/maps_int.h"
#include "kernel.h"

/* A map: a file, named by its inode in DIR/maps. */
struct kernel_map {
	int fd;
	uint64_t id;
	size_t value, entries;
	void *memory;
};

struct kernel {
	struct kernel *next;	/* of those there are */
	char dir[128];
	uint32_t ring_size, entries;
	struct kernel_map map[MAP_IDS];
	struct xlb_ring *ring[XLB_RINGS];	/* as ring_table names them */
	uint64_t ring_id[XLB_RINGS];
	struct maps *maps;	/* xlbd's; NULL: it does not run */
};

/* The machine that libbpf's calls are about. */
extern struct kernel *kernel_now;

#endif
