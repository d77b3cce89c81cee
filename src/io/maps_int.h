/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The kernel's maps as io/prog hands them over: opened or made, pinned, and
 * checked to be what xlb_abi.h says.
 */
#ifndef XLB_MAPS_INT_H
#define XLB_MAPS_INT_H

#include "io/maps.h"

/* In the order they are pinned: `tables` has the settings, and where it is
 * missing, nothing that depends on ring_size, seed or hash_key is pinned. */
enum map_id {
	MAP_TABLES, MAP_RING_TABLE, MAP_TX_PORTS, MAP_STATS, MAP_HEALTH,
	MAP_GRACE, MAP_SAVED, MAP_FRAGMENTS, MAP_RARE, MAP_EVENTS,
	MAP_EVENT_STATE, MAP_FLOWS, MAP_FLOW_STATS, MAP_NAT, MAP_IDS
};
extern const char *const map_name[MAP_IDS];	/* names of the pins */

#define MAPS_PATH_MAX 4096

struct maps_ring {
	int fd;			/* -1: no such ring */
	struct xlb_ring *map;
};

enum maps_table { TABLE_VIP, TABLE_SERVICE, TABLES };

struct maps {
	const char *dir;	/* of the pins; not ours */
	uint32_t ring_size;
	int ncpu;
	int fd[MAP_IDS];
	int grace_fd;		/* an inner map for `grace` */
	struct xlb_tables *tables;
	struct xlb_stats *stats;	/* one for each CPU */
	uint32_t source_vips[XLB_SOURCES];	/* how many begin with that */
	struct maps_ring ring[XLB_RINGS];
	/* rings taken out; mapped until no `found` points into them */
	struct xlb_ring **dead;
	size_t ndead;
	/* rows deleted since the last grace period: not to be used again */
	uint8_t fresh[TABLES][XLB_TABLE_ROWS];
	bool unsettled;		/* a packet may hold what is no longer named */
	struct xlb_flow_set *flows;
	uint32_t sets;
	struct xlb_nat *nat;
	uint32_t nat_rows;
	struct nat_sweep *nat_sweep;
	struct sweep *sweep;
};

/* Maps what `fd` (stays the caller's) holds, adopts the rings in DIR/rings and
 * completes what a crash left half done. 0, or -errno after logging why. */
int maps_open(const char *dir, const int fd[MAP_IDS], uint32_t ring_size,
    struct maps **out);
void maps_close(struct maps *m);	/* NULL is allowed */

/* Memory of one value, whole pages. */
void *maps_map(int fd, size_t size);
void maps_unmap(void *p, size_t size);

/* maps_ring.c */
/* One of the parts of a ring: 0 and 1 its halves, 2 `past`. */
uint32_t *ring_part(const struct maps *m, struct xlb_ring *ring,
    uint32_t part);
int ring_adopt(struct maps *m);
int ring_new(struct maps *m, const struct op_ring *r);
int ring_slots(struct maps *m, const struct op_ring *r);
int ring_roles(struct maps *m, const struct op_ring *r);
int ring_del(struct maps *m, uint32_t number);
void ring_bury(struct maps *m);		/* unmaps the dead */
/* Puts back pins and entries of ring_table that somebody removed. 0, or
 * -errno; adds to both numbers. */
int ring_mend(struct maps *m, size_t *pins, size_t *entries);
/* -EEXIST after logging: a pinned ring of another size. */
int ring_check(const char *dir, uint32_t ring_size);

/* maps_table.c */
int table_vip_put(struct maps *m, const struct state_vip *v);
int table_vip_del(struct maps *m, const struct state_vip *v);
/* The row of a service; NULL: there is none. */
struct xlb_service *table_service_find(struct maps *m, uint64_t key);
int table_service_put(struct maps *m, uint64_t key, uint64_t word);
int table_service_del(struct maps *m, uint64_t key);
void table_filter_check(struct maps *m);
/* Which IPv4 sources are plain, before or after `s` is in force: both are true. */
void table_sources_put(struct maps *m, const struct xlb_settings *s);
bool table_any_gone(const struct maps *m);
void table_graced(struct maps *m);	/* a grace period has passed */

/* maps_stats.c: the counters `of`, in the first CPU's memory, on all of them */
void stats_zero(struct maps *m, void *of, size_t size);

/* maps_hash.c */
void maps_hash(const struct xlb_settings *s, const struct lookup_flow *f,
    uint32_t service_flags, struct lookup_hash *out);
/* maps_flow.c */
int flows_map(struct maps *m);
void flows_unmap(struct maps *m);

/* maps_nat.c */
int nat_map(struct maps *m);
void nat_unmap(struct maps *m);
/* The live row of a client's flow with this hash; word 0: there is none. */
void nat_row_find(const struct xlb_nat *table, uint32_t rows,
    const struct lookup_flow *f, uint64_t hash, struct xlb_nat *out);
void nat_take(struct maps *m, struct xlb_nat *table, uint32_t rows);
/* Rows of live flows into a larger table. */
struct nat_copy {
	struct xlb_nat *to;
	uint32_t rows;		/* of it, a power of two */
	bool all;		/* not only what changed `since`, a tick */
	uint32_t since;
	bool used;		/* packets make rows there, too */
};
void nat_copy(const struct maps *m, const struct nat_copy *c);

/* maps_do.c */
int maps_grace(struct maps *m);

#endif
