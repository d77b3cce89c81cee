/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A node: a machine (kernel.h), and xlbd without its loop: configuration,
 * wanted and found state, plan, io/maps and sweep are xlbd's own code, called in
 * the order of daemon/reconcile.c and daemon/tidy.c.
 */
#ifndef XLB_MODEL_NODE_H
#define XLB_MODEL_NODE_H

#include "core/state.h"
#include "core/surge.h"
#include "kernel.h"
#include "site.h"

struct node {
	struct kernel *k;
	struct maps *maps;	/* NULL: xlbd does not run */
	struct arena *arena;	/* of the configuration */
	struct conf conf;
	struct override_list overrides;	/* in `arena` as well */
	bool up[SITE_BACKENDS];	/* verdicts: they outlive xlbd */
	struct ring_cache *rings;
	bool graced;		/* the pass under way waited for its grace */
	bool again, fresh;
	int64_t due, scanned;	/* ns; scanned 0: never */
	struct surge surge;
	int64_t second;		/* the next look at the counters */
	uint64_t passes, killed;
};

/* How a packet ends. */
enum { NODE_DROPPED = -1 };

struct tuple {
	uint32_t client;	/* IPv4, host byte order */
	uint16_t port;
	uint8_t service;
	bool v6;
};

enum { TCP_FIN = 1, TCP_SYN = 2, TCP_RST = 4, TCP_PSH = 8, TCP_ACK = 16 };

void node_init(struct node *n, struct kernel *k, const struct site *s);
void node_fini(struct node *n);
/* Loads the file anew; node_reconcile() does the rest. */
void node_reload(struct node *n, const struct site *s);

void node_start(struct node *n);
void node_stop(struct node *n);		/* xlbd ends: by any signal */
void node_reconcile(struct node *n);
/* Does a piece of what time asks for. False: nothing is due. */
bool node_tidy(struct node *n);
/* All of it. */
void node_tidy_all(struct node *n);
/* The same, in a process that is killed after it has turned to `writes` pages
 * of the maps. False: it was not, it was done before. xlbd is stopped. */
bool node_kill_in(struct node *n, void (*fn)(struct node *), unsigned writes);

/* The backend's index that gets it, or NODE_DROPPED. */
int node_packet(struct node *n, const struct tuple *t, unsigned flags,
    bool data);
void node_hash(struct node *n, const struct tuple *t, bool source,
    uint32_t *select, uint64_t *flow);
/* The flow's entry; 0: none. */
uint64_t node_entry(struct node *n, uint32_t select, uint64_t flow);
/* The backend of that number by index, or -1. */
int node_backend(struct node *n, uint32_t number);

#endif
