/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What probe.c, probe_turn.c, probe_path.c and probe_helpers.c share: all that is on
 * xlbd's side. */
#ifndef XLB_PROBE_PRIVATE_H
#define XLB_PROBE_PRIVATE_H

#include "core/heap.h"
#include "io/probe.h"
#include "io/probe_wire.h"

#define OVERDUE_MS 2000		/* a prober that says nothing for so long after
				 * a timeout hangs */
#define RESTART_MS 1000		/* between starts of probers that end at once */
#define MSEC 1000000LL		/* in ns */
#define NONE UINT32_MAX

/* In `due` while it waits for its turn, in `overdue` while it is probed. */
struct target {
	struct heap_node node;
	struct addr addr, vip;	/* as in struct health_target */
	struct addr src;	/* its sockets' own address; unset: any */
	uint32_t mark;		/* of its sockets; 0: it has none yet */
	uint16_t port;
	char *check;
	size_t index;		/* in the list last given */
	uint32_t interval_ms, timeout_ms;
	uint32_t asked_ms;	/* its timeout when it was last asked */
	uint32_t slot;		/* of its check, if that has a text */
	uint16_t kind;		/* enum probe_request_kind */
	int64_t grid;		/* ns: the last turn, without jitter */
	uint32_t flight;	/* NONE: not being probed */
	bool commanded;		/* by a command that runs */
	bool path;		/* is one of `path`, not a check's */
	int fd;			/* is one of `error`: its socket; else -1 */
	uint16_t size;		/* of what a path is asked; else 0 */
};

/* A request that the prober may hold. Rows are never freed or moved: their
 * index is the id, and the generation tells the uses of a row apart. */
struct flight {
	uint32_t generation;
	uint32_t next;		/* of the free ones, or of those to cancel */
	struct target *target;	/* NULL: free, or to be cancelled */
};

struct prober {
	struct spawner spawner, launcher;
	uint32_t commands;	/* that run */
	sd_event *ev;
	sd_event_source *timer, *spawner_io, *spawner_end, *sock_io;
	sd_event_source *launcher_end;
	probe_fn fn;
	void *arg;

	int sock;		/* to the prober; -1: none */
	pid_t pid;		/* 0: not known (yet) */
	bool full;		/* the socket takes no more for now */
	int64_t started, start_at, retry_at;	/* ns; 0: now */
	int64_t launch_at;	/* a launcher, where there is none */
	int64_t took;		/* ns, the probe that ended last */

	struct target **target, **path;
	size_t n, npath;
	path_ask_fn path_ask;
	path_said_fn path_said;
	struct target *error[2];	/* IPv4, IPv6; NULL: not heard */
	path_error_fn path_error;
	struct probe_checks checks;
	uint64_t phase, seed;
	struct heap due, overdue;

	struct flight *flight;
	uint32_t nflight, flights_max;
	uint32_t idle, cancel;	/* heads of lists, NONE: empty */
	bool warned;		/* that flights_max was reached */
};

/* probe.c */
void target_free(struct prober *p, struct target *t);
void prober_turns(struct prober *p);	/* all whose turn it is */
void prober_lost(struct prober *p, const char *why);
int prober_heard(sd_event_source *s, int fd, uint32_t events, void *arg);
void target_next(struct prober *p, struct target *t, int64_t now);
void target_ended(struct prober *p, struct target *t,
    const struct probe_end *end);
uint32_t flight_new(struct prober *p);	/* NONE: there are as many as may be */
void flight_free(struct prober *p, uint32_t id);

/* probe_turn.c */
bool target_probe(struct prober *p, struct target *t, int64_t now);
void cancel_send(struct prober *p);

/* probe_path.c */
void path_ended(struct prober *p, struct target *t,
    const struct probe_end *end);
void paths_free(struct prober *p);

/* probe_helpers.c */
int spawner_watch(struct prober *p);	/* 0, or -errno */
int launcher_watch(struct prober *p);
void prober_begin(struct prober *p, int64_t now);
void launcher_begin(struct prober *p, int64_t now);

#endif
