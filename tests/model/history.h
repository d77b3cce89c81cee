/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A history: nodes, an operator and clients at random, and beside them what
 * must be true. The reference knows each connection's backend from its first
 * packet on; a connection whose backend dies is over.
 */
#ifndef XLB_MODEL_HISTORY_H
#define XLB_MODEL_HISTORY_H

#include "lru.h"
#include "node.h"
#include "../prog/rng.h"

#define HISTORY_NODES 2
#define HISTORY_FLOWS 700
#define HISTORY_IDS (1U << 18)	/* of tuples, in the LRU */
#define HISTORY_LOG 48
#define SECOND 1000000000LL

struct profile {
	const char *name;
	unsigned nodes;
	uint32_t entries;	/* of the flow table */
	bool floods;
	bool roomy;		/* nothing is ever forgotten for want of room */
	bool pools;		/* services change theirs, pools their names */
	bool kills;
};

enum flow_state { FLOW_FREE, FLOW_OPEN, FLOW_CLOSING };

struct flow {
	enum flow_state state;
	struct tuple t;
	unsigned node;
	uint32_t id, select;
	uint64_t hash;
	int owner, lru_owner;	/* backend; -1: none */
	bool hopped;		/* it has come by another node */
	bool broken, lru_broken;	/* it was moved */
	bool answered;		/* it has sent more than SYNs */
	bool confirmed;		/* data came within a minute of `opened` */
	int64_t began, fin;
	int64_t opened;		/* the table knows it since: its SYN, or data
				 * after an hour without any */
	int64_t sure;		/* last packet that xlb must see */
};

/* Connections that were moved, by why that may be. */
struct count {
	uint64_t packets, flows, changes, kills, histories;
	uint64_t moved_idle;	/* not seen for an hour */
	uint64_t moved_mute;	/* sent no data in its first minute */
	uint64_t moved_room;	/* the table had no room for it */
	uint64_t moved_node;	/* routers moved it to a node that did not
				 * know it */
	uint64_t lru_moved;
};

struct history {
	const struct profile *profile;
	uint64_t seed;
	struct rng rng;
	struct site site;
	struct node node[HISTORY_NODES];
	bool settled[HISTORY_NODES];	/* the maps are as wanted */
	int64_t left[HISTORY_NODES];	/* since when they are not */
	int64_t back[HISTORY_NODES];	/* when a killed xlbd starts again */
	struct lru lru[HISTORY_NODES];
	struct flow flow[HISTORY_FLOWS];
	uint32_t next_id;
	unsigned renamed;
	struct count *count;
	char log[HISTORY_LOG][120];
	unsigned logged;
	const char *wrong;	/* NULL, or what must never be */
};

/* NULL, or why it cannot be run; *skip: here. */
const char *history_begin(struct history *h, const struct profile *p,
    uint64_t seed, struct count *count, bool *skip);
void history_end(struct history *h);

void history_log(struct history *h, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* One thing happens. */
void history_step(struct history *h);

/* history_flow.c: one packet of a connection, and its verdict */
void flow_step(struct history *h, struct flow *f);
void flow_flood(struct history *h, unsigned packets);
void flows_void(struct history *h);	/* those whose backend is dead */
void flow_print(struct history *h, const struct flow *f);

/* history_change.c: the operator, health, and xlbd's end */
void change_step(struct history *h);
void change_apply(struct history *h, unsigned node);
void change_start(struct history *h, unsigned node);

#endif
