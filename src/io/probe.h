/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Probes. The prober is a process of its own: it starts before anything else
 * is open, as user _xlb without capabilities, and ends on EOF from its parent.
 * xlbd makes each socket and passes it; the prober connects, asks, and reports
 * one result. It can at most lie about what it was asked.
 */
#ifndef XLB_PROBE_H
#define XLB_PROBE_H

#include <systemd/sd-event.h>

#include "core/health.h"

struct prober;

#define PROBER_USER "_xlb"	/* whom it runs as, if there is one */

/* Forks the process. Before the loop and before any other descriptor is open.
 * 0, or -errno. */
int prober_fork(const char *user, struct prober **out);

/* xlbd needs SETUID, SETGID and KILL to start and to end these processes, and not
 * otherwise: from now on they are in force only while it does that. */
void spawner_rights_rest(void);

/* A result, its detail and what it says in words (see health.h); `id` is the
 * index of the target in the list last given. It may call prober_set(), not
 * prober_close(). */
typedef void (*probe_fn)(size_t id, enum probe_result r, uint16_t detail,
    const char *said, void *arg);

/* Attaches to the loop; before the first prober_set(). The process is started
 * again if it ends; nothing else notices. */
int prober_start(struct prober *p, sd_event *ev, probe_fn fn, void *arg);

/* What to probe from now on (copied; sorted, as health_targets() gives it).
 * Targets that stay (same address, VIP, port and check) keep their phase and the
 * probe under way, so that frequent reloads hide no dead backend; new ones are
 * probed at once; intervals are spread evenly and jittered. Nothing is ever
 * reported of a target that is gone. 0, or -errno. */
int prober_set(struct prober *p, const struct health_target *t, size_t n);

/*
 * How target `id`, which has a VIP, reaches its backend: the mark of its sockets
 * (probe_abi.h) and the address that they are bound to (unset: the kernel
 * chooses). Without a mark, 0, as at first, it is not probed.
 */
void prober_mark(struct prober *p, size_t id, uint32_t mark,
    const struct addr *src);

/* How long the probe took whose result is being told, ns; 0: it was not sent.
 * For the callback. */
int64_t prober_took(const struct prober *p);

/*
 * Beside the checks: what paths carry (core/path_mtu.h), by echo requests
 * through the tunnel. When the turn of path `id` comes, `ask` fills in the
 * question; false: not now. `said` is told how it ended, as probe_fn is, and
 * says in how many ms its next turn is.
 */
struct path_question {
	struct addr vip;	/* whom to ask */
	struct addr src;	/* unset: the kernel's choice */
	uint32_t mark;
	uint16_t size;		/* of the packet inside, from its IP header on */
};
typedef bool (*path_ask_fn)(size_t id, struct path_question *q, void *arg);
typedef uint32_t (*path_said_fn)(size_t id, enum probe_result r, void *arg);

/* These replace all that there were, and their turns come soon. `arg` as
 * prober_start()'s. 0, or -errno. */
int prober_paths(struct prober *p, size_t n, path_ask_fn ask,
    path_said_fn said);

/* The turn of path `id` is now, if it is not being asked. */
void prober_path_soon(struct prober *p, size_t id);

/*
 * And what routers say of packets of the tunnels that were too large for them:
 * to the backend `to`, by `from`, of whom anybody may write. `gue_port`: where
 * GUE is sent. 0, or -errno: none of that family is heard.
 */
typedef void (*path_error_fn)(const struct addr *to, const struct addr *from,
    uint16_t mtu, void *arg);
int prober_errors(struct prober *p, uint16_t gue_port, path_error_fn fn);

void prober_close(struct prober *p);
/* 0: none at the moment */
pid_t prober_pid(const struct prober *p);
pid_t prober_launcher_pid(const struct prober *p);

#endif
