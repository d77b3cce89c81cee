/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Grace periods beside the loop: synchronize_rcu takes some 10 ms, and health
 * must not wait for it. A thread makes the one system call and nothing else.
 */
#ifndef XLB_GRACE_H
#define XLB_GRACE_H

#include <systemd/sd-event.h>

struct grace;

/* An update of map `map` with `inner` ends in a grace period; both stay the
 * caller's, and open. 0, or -errno. */
int grace_open(sd_event *ev, int map, int inner, void (*done)(void *arg),
    void *arg, struct grace **out);
void grace_close(struct grace *g);	/* waits for one under way; NULL is
					 * allowed */
/* One at a time: `done` is called from the loop, after a period that began
 * after this. */
void grace_ask(struct grace *g);

#endif
