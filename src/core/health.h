/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What is known of a backend's health: a state machine per target, fed with
 * probe results. A target is (backend address, port, check).
 */
#ifndef XLB_HEALTH_H
#define XLB_HEALTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/addr.h"
#include "core/mono.h"

struct arena;
struct conf;
struct conf_check;
struct conf_pool;

/* The numbers are stored in the pinned map `health`: never change one. */
enum health_state {
	HEALTH_UNKNOWN = 0,	/* no result yet: takes no flows */
	HEALTH_UP = 1,
	HEALTH_DOWN = 2,
	HEALTH_DRAIN = 3,	/* alive, and asks for no new flows */
};

/* How a probe ended; a closed set, the text is in probe_result_text(). The
 * numbers are stored in the pinned map `health`: only append. */
enum probe_result {
	PROBE_OK = 0,
	PROBE_TIMEOUT,
	PROBE_REFUSED,
	PROBE_UNREACHABLE,	/* host or network, as ICMP or the kernel said */
	PROBE_RESET,
	PROBE_LOCAL,		/* this node could not send: no socket, no port */
	PROBE_DRAIN,		/* HTTP drain_status; detail: the status */
	PROBE_STATUS,		/* another status than expected; detail: it */
	PROBE_BODY,		/* the body lacks the text */
	PROBE_CLOSED,		/* the answer ended early, or never began */
	PROBE_NONSENSE,		/* the answer is not what the protocol says */
	PROBE_TOO_LONG,		/* its header has no end */
	PROBE_REPLY,		/* the reply lacks the text */
	PROBE_RESULTS
};

const char *probe_result_text(enum probe_result r);	/* "connection refused" */
const char *health_state_text(enum health_state s);	/* "up" */

struct health_fsm {
	enum health_state state;
	enum probe_result why;	/* of the result that led to `state` */
	enum probe_result last;	/* the newest result but PROBE_LOCAL */
	uint32_t run;		/* consecutive results that contradict `state`,
				 * all of them for the better or the worse */
	uint16_t detail;	/* of `why` */
	uint16_t asked;		/* detail of the newest PROBE_DRAIN */
	enum health_state aim;	/* where that run leads: what all agree on */
};

/*
 * One result. True if the state changed. The first result decides when the
 * state is unknown. Then down, drain and up are an order: `rise` results in a
 * row that say better than the state raise it, `fall` that say worse lower it,
 * as far as all of them say: a miss among drain answers cuts nobody's
 * connection. PROBE_LOCAL is no verdict on the backend: it changes nothing.
 */
bool health_step(struct health_fsm *f, const struct conf_check *check,
    enum probe_result r, uint16_t detail);

#define HEALTH_WHY_MAX 128
/* What led to the state: "HTTP 500, expected 200". */
const char *health_why_print(const struct health_fsm *f,
    const struct conf_check *check, char buf[HEALTH_WHY_MAX]);

/* One thing to probe. Sorted by address, port, check name; no duplicates. */
struct health_target {
	struct addr addr;
	uint16_t port;		/* host byte order */
	const struct conf_check *check;
};

struct health_row {
	struct addr addr;
	uint16_t port;
	const char *check;	/* name; owned by whoever owns the table */
	struct health_fsm fsm;
	int64_t since;		/* CLOCK_REALTIME ns of the last change; 0: never */
};

struct health_table {
	struct health_row *row;	/* sorted by address, port, check name */
	size_t n;
};

/* Every target of the configuration. A backend of a pool with a check is
 * probed on the check's port, or on the port of each service that uses the
 * pool. Backends with state down are not probed. */
struct health_target *health_targets(const struct conf *c, struct arena *a,
    size_t *n);

/* The ports on which a pool's backends are probed; sorted, in `a`. */
struct health_ports {
	uint16_t *port;		/* host byte order */
	size_t n;
};
void health_ports(const struct conf *c, const struct conf_pool *p,
    struct arena *a, struct health_ports *out);

struct health_row *health_find(const struct health_table *t,
    const struct addr *addr, uint16_t port, const char *check);

/* Down if one of the pool's targets of this address is down, else unknown if
 * one is unknown (missing from the table, or there is nothing to probe), else
 * drain if one asks for it, else up. Up without a check.
 * `*row`, if not NULL, is the target that decided (NULL: none). */
enum health_state health_of(const struct conf *c, const struct conf_pool *p,
    const struct addr *addr, const struct health_table *t,
    const struct health_row **row);

/* The same for many backends of one pool, whose ports are found once. */
enum health_state health_verdict(const struct conf_check *check,
    const struct health_ports *ports, const struct addr *addr,
    const struct health_table *t, const struct health_row **row);

#endif
