/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Each system call of a piece of work fails in turn, whatever it is: libxlbio.a is
 * linked with wrappers of what it calls (fault_calls.inc), and the work is done again
 * and again, each time in a process of its own, until no call is left to fail.
 *
 * A failure has to be noticed: the work ends with an error, or the log has it. Where
 * it may pass in silence, `borne` says so. Nothing may crash or hang, and no
 * descriptor be left.
 */
#ifndef XLB_TEST_FAULT_H
#define XLB_TEST_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <systemd/sd-event.h>

struct fault_work {
	const char *name;
	int (*run)(void);	/* 0, or what it ended with, -errno */
	const char *borne;	/* "call other": may fail in silence; NULL: none */
	bool helpers;		/* calls of its child processes fail, not ours;
				 * what they do about it is not looked at */
	const char *from;	/* the first call that fails; NULL: the first one */
	int most;		/* so many of them; 0: all */
	int err;		/* the errno; 0: ENOMEM */
};

/* Fails the test, or prints how many calls failed: system calls; what asks for
 * memory (fault_memory.inc), each place in the code once. */
void fault_sweep(const struct fault_work *w);
void fault_sweep_memory(const struct fault_work *w);

/* From now on the packet program is a small one; off: those are closed. */
void fault_small_programs(bool on);

/* The loop, until `done` says so. A second after a call failed, or when the log has
 * that, it is over: -ETIMEDOUT. */
int fault_loop(sd_event *ev, bool (*done)(void *arg), void *arg);

/* What the test itself calls meanwhile succeeds. */
void fault_hold(void);
void fault_go(void);

extern char fault_dir[];	/* for files */

/* Each ends with a row without a name. */
extern const struct fault_work fault_host[], fault_bpf[], fault_serve[];

#endif
