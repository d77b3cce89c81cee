/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the daemon knows, as the JSON that doc/json.md describes. Plain inputs,
 * by pointer: the daemon fills them in, tests make them by hand.
 */
#ifndef XLB_STATUS_H
#define XLB_STATUS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/announce.h"
#include "core/path_mtu.h"
#include "core/plan.h"
#include "core/state.h"
#include "io/bird.h"
#include "io/log.h"
#include "io/prog.h"

/* What became of a ring. Costs two computations of the ring: keep the rows for
 * as long as `wanted` is the same. */
struct status_ring {
	uint64_t fingerprint;
	uint32_t size;		/* slots */
	uint32_t *slots;	/* of each backend, in the file's order */
};

struct status_config {
	const char *file;
	bool ok;		/* it loaded when it was last read */
	bool kept;		/* in force: the text kept from an earlier start */
	const char *error;	/* the first; NULL */
	int64_t read, loaded;	/* CLOCK_REALTIME ns: the last attempt; the one
				 * in force */
};

struct status_flows {
	uint32_t entries;	/* of the table */
	uint64_t live;		/* that bind a flow, when they were counted */
	uint32_t lookup;	/* slots and services with LOOKUP */
	bool surge;		/* every packet is looked up */
	int64_t surge_since;	/* CLOCK_REALTIME ns; 0: no surge */
	uint64_t surge_seconds;	/* of all so far */
};

/* All times: CLOCK_REALTIME, ns; 0: none. */
struct status_input {
	int64_t now, started;
	pid_t pid;
	const char *node;	/* conf_node_name() */
	const struct status_config *config;
	const struct conf *conf;
	const struct override_list *overrides;
	enum node_state node_state;	/* after overrides */
	enum announce_phase phase;
	int64_t phase_until;
	bool forwarding;	/* attached as wanted, no operation failed */
	const char *forwarding_reason;	/* "" */
	const struct prog_link *link;	/* as conf->interface */
	struct status_flows flows;
	const struct state *wanted;
	const struct status_ring *ring;	/* as wanted->pool */
	const struct path_table *paths;
	const struct announce *announce;
	const struct bird *bird;	/* NULL: no bgp: section */
	const struct log_changed *change;	/* the newest first */
	size_t nchange;
};

json_t *time_json(int64_t ns);	/* null: none */
json_t *addr_json(const struct addr *a);

/* Why a backend takes no new flows: what its probe met with, if it is that; ""
 * if it does take them. */
const char *status_member_reason(const struct state_member *m,
    const struct conf_check *check, char buf[HEALTH_WHY_MAX]);

/* Of one of wanted->pool. */
void status_ring_of(const struct state *wanted, const struct state_pool *p,
    struct ring_cache *rc, struct arena *a, struct status_ring *out);
/* One row for each of wanted->pool, in `a`. */
struct status_ring *status_rings(const struct state *wanted,
    struct ring_cache *rc, struct arena *a);

/* The results of the commands; the caller owns them. */
json_t *status_build(const struct status_input *in);
json_t *fingerprint_build(const struct state *wanted,
    const struct status_ring *ring);

#endif
