/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Probes. The prober is a process of its own: it starts before anything else
 * is open, as user _xlb without capabilities, and ends on EOF from its parent.
 * xlbd makes each socket and passes it; the prober connects, waits and reports
 * one result. It can at most lie about what it was asked.
 */
#ifndef XLB_PROBE_H
#define XLB_PROBE_H

#include <systemd/sd-event.h>

#include "core/health.h"

struct prober;

/* Forks the process. Before the loop and before any other descriptor is open.
 * 0, or -errno. */
int prober_fork(const char *user, struct prober **out);

/* A result; `id` is the index of the target in the list last given. */
typedef void (*probe_fn)(size_t id, enum probe_result r, void *arg);

/* Attaches to the loop. The process is started again if it ends; nothing else
 * notices. */
int prober_start(struct prober *p, sd_event *ev, probe_fn fn, void *arg);

/* What to probe from now on (copied). Targets that stay keep their phase, new
 * ones are probed at once; intervals are spread evenly and jittered. Results of
 * an earlier list are never reported. 0, or -errno. */
int prober_set(struct prober *p, const struct health_target *t, size_t n);

void prober_close(struct prober *p);
pid_t prober_pid(const struct prober *p);

#endif
