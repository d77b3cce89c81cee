/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The packet program and its maps on their way into the kernel. */
#ifndef XLB_PROG_LOAD_H
#define XLB_PROG_LOAD_H

#include "io/prog_int.h"

/* bpftool 7.1 writes a cast that drops const */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wcast-qual"
#include "xlb.skel.h"
#pragma GCC diagnostic pop

/* A map as it has to be. */
struct spec {
	uint32_t type, key, value, max, flags;
};

struct load {
	const struct prog_config *c;
	struct xlb_bpf *skel;
	struct bpf_map *map[MAP_IDS];	/* NULL: none of the program's */
	struct spec spec[MAP_IDS];
	int fd[MAP_IDS];	/* ours; -1: not there */
	bool pinned[MAP_IDS];
	char *log;
};

/* In this order; each 0, or -errno after logging why. */
/* The program in memory, with our sizes; nothing is in the kernel yet. */
int load_init(const struct prog_config *c, struct load *l);
/* Opens what is pinned and looks whether it is what we need. */
int load_pins(struct load *l);
int load_pins_but(struct load *l, uint32_t but);	/* bits: left out */
int load_run(struct load *l);	/* program and missing maps into the kernel */
int load_pin(struct load *l);	/* pins the maps that were not */
void load_fini(struct load *l);	/* after any of them */

/* prog.c: the loaded program in the place of the one in use. */
int prog_switch(struct prog *p, const struct load *l);

#endif
