/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One long call beside the loop, in a thread of its own that ends with it. What it
 * works on is its own until `done`.
 */
#ifndef XLB_WORK_H
#define XLB_WORK_H

#include <pthread.h>
#include <systemd/sd-event.h>

struct work;

/* fn(arg) begins now; done(arg) is called from the loop when it is over, and
 * may call work_close(). 0, or -errno. */
int work_open(sd_event *ev, void (*fn)(void *arg), void (*done)(void *arg),
    void *arg, struct work **out);
/* Waits for the call that is under way; `done` is not called then. NULL is
 * allowed. */
void work_close(struct work *w);

/* A thread that takes no signals: they are the loop's. 0, or -errno. */
int work_thread(pthread_t *thread, void *(*fn)(void *arg), void *arg);

#endif
