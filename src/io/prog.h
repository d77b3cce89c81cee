/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The packet program and its pins: opened or adopted, attached to interfaces,
 * replaced in place, taken away. Owns the directory given by --bpf-dir.
 */
#ifndef XLB_PROG_H
#define XLB_PROG_H

#include <systemd/sd-event.h>

#include "core/conf.h"
#include "io/maps.h"

struct prog;

struct prog_config {
	const char *bpf_dir;	/* used whole, nothing is appended */
	uint32_t ring_size;
	uint32_t flow_entries;	/* of the flow table: a power of two */
	bool nat;		/* a service needs the table of NAT, which then
				 * has as many rows */
	uint64_t seed;
	uint8_t hash_key[16];
	bool frags;		/* mark the program xdp.frags */
};

/*
 * Adopts what is pinned, or loads and pins anew what is missing; an existing
 * program is replaced through its links when the one built in differs. Kernel
 * features that are missing are named. Maps whose layout or size differs from
 * ours are refused with the map, both sizes and the remedy.
 * 0 and `*out`, or -errno after logging why.
 */
int prog_open(const struct prog_config *c, struct prog **out);

/* Larger tables of flows in the place of those in use, with their entries; packets
 * go on. 0 (it may have been large enough), or -errno after logging why: then it
 * is the one that was. */
int prog_grow(struct prog *p, const struct prog_config *c);
/* The same beside the loop, which it holds up only for the switch: `done` gets
 * that result. 0, also where one is under way already (one at a time) or there
 * is nothing to do, or -errno (logged). */
int prog_grow_begin(struct prog *p, const struct prog_config *c, sd_event *ev,
    void (*done)(int rc, void *arg), void *arg);
bool prog_growing(const struct prog *p);

/* `xlbd --preflight`: would prog_open() adopt what is pinned there (or start
 * anew), and does this kernel take the program on it? Changes nothing. 0, or
 * -errno after logging why not. */
int prog_check(const struct prog_config *c);
void prog_close(struct prog *p);	/* everything stays pinned */
struct maps *prog_maps(struct prog *p);
/* The descriptors of the maps tx_ports and tables. */
int prog_ports(const struct prog *p);
int prog_tables(const struct prog *p);
bool prog_adopted(const struct prog *p);	/* maps were there before */

/* What somebody has removed is put back: pins (all that they name is open here)
 * and entries of ring_table. How many that were; logged. What cannot be put back
 * is logged once for each reason, and tried again by the next call. */
struct prog_mended {
	size_t pins, rings;
};
void prog_mend(struct prog *p, struct prog_mended *out);

/* What is attached where. */
struct prog_link {
	const char *name;	/* the interface */
	uint32_t ifindex;	/* 0: no such interface */
	bool attached;		/* in the mode that is wanted */
	bool again;		/* somebody had taken it off */
	bool adopted;		/* it was attached before, not by this call */
	bool moved;		/* it was, in a mode that is no longer wanted */
	const char *mode;	/* "native" or "generic"; "-" */
	char why[256];		/* of the last failure; "" */
};

/* Attaches to each interface that is there (again, if the link was lost),
 * detaches from links no longer wanted. Never forces a foreign program off:
 * its id is named. 0, or -1 if an interface is not as wanted; `link` has one
 * row per interface. Logs changes only. */
int prog_attach(struct prog *p, const struct conf_interface *want, size_t n,
    struct prog_link *link);

/* Detach all, unpin all, remove the directory. 0, or -errno. */
int prog_remove(struct prog *p);
/* The same without a daemon: `xlb detach --force`. */
int prog_remove_dir(const char *bpf_dir);

#endif
