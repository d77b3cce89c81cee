/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The service manager: readiness, watchdog, the descriptor store,
 * and the question which job SIGTERM belongs to. Does nothing without one.
 */
#ifndef XLB_NOTIFY_H
#define XLB_NOTIFY_H

#include <stdint.h>

void notify_ready(const char *status);
/* This process begins anew: until notify_ready() the watchdog waits longer. */
void notify_again(void);
void notify_stopping(void);
void notify_extend(uint64_t usec);	/* EXTEND_TIMEOUT_USEC */

/* Stores the descriptor under `name` with FDPOLL=0. 0, or -errno. */
int notify_store(const char *name, int fd);
void notify_unstore(const char *name);
/* A stored descriptor by name (LISTEN_FDNAMES), or -1. */
int notify_stored(const char *name);

/* Why SIGTERM came, asked over sd-bus in-process with a bound of 500 ms. */
enum notify_job { JOB_NONE, JOB_STOP, JOB_RESTART };
enum notify_job notify_job(void);

#endif
