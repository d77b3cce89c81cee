/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What is known of a backend's health: a state machine per target, fed with
 * probe results. A target is (backend address, VIP, port, check). A probe goes
 * to the VIP through the backend's tunnel, or, without VIP, to the backend's own
 * address.
 */
#ifndef XLB_HEALTH_H
#define XLB_HEALTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/addr.h"
#include "core/conf.h"
#include "core/mono.h"

struct arena;
struct diag;

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
	PROBE_TLS,		/* the handshake failed */
	PROBE_TLS_TIMEOUT,	/* it was begun, and never ended */
	PROBE_CERT,		/* detail: X509_V_ERR_*, see x509_text() */
	PROBE_QUESTION,		/* what came was no reply to the query */
	PROBE_RCODE,		/* DNS; detail: the code */
	PROBE_NO_ANSWER,	/* DNS; detail: the type that was asked for */
	PROBE_TRUNCATED,	/* DNS, so that no answer fits; detail: the type */
	PROBE_ECHO,		/* echo reply with other data than was sent */
	PROBE_EXIT,		/* the command failed; detail: its status */
	PROBE_SIGNAL,		/* ended the command; detail: its number */
	PROBE_RESULTS
};

/* It holds what it is asked for, whether or not it wants new flows. */
static inline bool
health_is_alive(enum health_state s)
{
	return s == HEALTH_UP || s == HEALTH_DRAIN;
}

const char *probe_result_text(enum probe_result r);	/* "connection refused" */
const char *health_state_text(enum health_state s);	/* "up" */

/* What an error says in its own words, not kept over a restart: one line, any
 * bytes, with the NUL. */
#define HEALTH_SAID_MAX 96

struct health_fsm {
	enum health_state state;
	enum probe_result why;	/* of the result that led to `state`, or of
				 * those that have said it for another since */
	enum probe_result last;	/* the newest result but PROBE_LOCAL */
	uint32_t run;		/* consecutive results that contradict `state`,
				 * all of them for the better or the worse */
	uint16_t detail;	/* of `why` */
	uint16_t asked;		/* detail of the newest PROBE_DRAIN */
	char said[HEALTH_SAID_MAX];	/* with `why`, in words; "": none */
	bool anew;		/* `why` is of the check as it was before: the
				 * next result that says the same replaces it */
	enum health_state aim;	/* where that run leads: what all agree on */
	enum probe_result other;	/* of results in a row that say `state` */
	uint32_t nother;	/* for another reason: how many */
};

/*
 * One result. True if the state changed. The first result decides when the
 * state is unknown. Then down, drain and up are an order: `rise` results in a
 * row that say better than the state raise it, `fall` that say worse lower it,
 * as far as all of them say: a miss among drain answers cuts nobody's
 * connection. PROBE_LOCAL is no verdict on the backend: it changes nothing.
 * `fall` results in a row that agree with the state, for one reason that is
 * another than `why`, replace that: what is wrong may be wrong elsewhere by now.
 */
bool health_step(struct health_fsm *f, const struct conf_check *check,
    enum probe_result r, uint16_t detail, const char *said);

#define HEALTH_WHY_MAX 256
/* What led to the state: "HTTP 500, expected 200". */
const char *health_why_print(const struct health_fsm *f,
    const struct conf_check *check, char buf[HEALTH_WHY_MAX]);
/* "203.0.113.10:80", or the address alone. Returns `buf`. */
const char *health_where(const struct addr *addr, uint16_t port,
    char buf[ADDRPORT_STR_MAX]);
/* The same of a target: through a tunnel with what was sent, "tcp to
 * 203.0.113.10:80 through the tunnel: timeout". */
struct health_row;
const char *health_row_why(const struct health_row *row,
    const struct conf_check *check, char buf[HEALTH_WHY_MAX]);

/* One thing to probe. Sorted by address, VIP, port, check name; no
 * duplicates. */
struct health_target {	/* port 0: it has none */
	struct addr addr;	/* of the backend */
	struct addr vip;	/* asked through the tunnel; unset: directly */
	uint16_t port;		/* host byte order */
	enum forward form;	/* of the tunnel, where there is a VIP */
	const struct conf_check *check;
};

struct health_row {
	struct addr addr, vip;
	uint16_t port;
	const char *check;	/* name; owned by whoever owns the table */
	bool passed;		/* once, since it is known */
	struct health_fsm fsm;
	int64_t since;		/* CLOCK_REALTIME ns of the last change; 0: never */
};

struct health_table {
	struct health_row *row;	/* sorted as targets are */
	size_t n;
};

/* Every target of the configuration. A backend of a pool with a check is
 * probed on the check's port, or on the port of each service that uses the
 * pool; through the tunnel, on each address of those services. Backends with
 * state down are not probed. */
struct health_target *health_targets(const struct conf *c, struct arena *a,
    size_t *n);

/* What of a pool's backends is probed, sorted by VIP and port; in `a`. */
struct health_path {
	struct addr vip;	/* unset: directly */
	uint16_t port;		/* host byte order */
	enum forward form;
	bool established;	/* min_healthy backends have passed on the VIP
				 * once: they are all expected to. Directly: always */
};

struct health_paths {
	struct health_path *path;
	size_t n;
};

/* With `t` it is found out what is established. */
void health_paths(const struct conf *c, const struct conf_pool *p,
    const struct health_table *t, struct arena *a, struct health_paths *out);
/* The VIP may be announced as far as the pool's check is concerned. */
bool health_established(const struct health_paths *paths,
    const struct addr *vip);

int health_row_cmp(const void *a, const void *b);	/* a rows_cmp */
struct health_row *health_find(const struct health_table *t,
    const struct health_target *target);
/*
 * What is known of a target that the table does not have, from those that are
 * the same backend and check: on another port, or probed the other way. NULL:
 * nothing, or it is another VIP, which says nothing about this one.
 */
const struct health_row *health_kin(const struct health_table *t,
    const struct health_target *target);

/*
 * Of a backend of the pool, by its targets on one VIP (directly: all of them):
 * down if one is down, else unknown if one is unknown (missing from the table,
 * or there is nothing to probe), else drain if one asks for it, else up. The
 * worst of the established VIPs on which it is known counts; while none is
 * established, the best of all. Up without a check. `*row`, if not NULL, is the
 * target that decided (NULL: none).
 */
enum health_state health_verdict(const struct conf_check *check,
    const struct health_paths *paths, const struct addr *addr,
    const struct health_table *t, const struct health_row **row);

/* A check asks a service's addresses through tunnels: the default where what the
 * service forwards by is one. */
bool health_is_tunnelled(const struct conf_check *check,
    const struct conf_service *s);
/* A VIP that is also the host's own address (`local`, sorted) cannot be asked
 * through a tunnel: the probe would be answered here. One row in `dg` each. */
void health_local_check(const struct conf *c, const struct addr *local,
    size_t n, struct diag *dg);

/* min_healthy as a count. */
uint32_t health_needed(const struct conf_pool *p);

#endif
