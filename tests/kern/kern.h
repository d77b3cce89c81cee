/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A place of its own for tests against the real kernel: network and mount
 * namespaces without names, so nothing is left behind however a test ends.
 */
#ifndef XLB_TEST_KERN_H
#define XLB_TEST_KERN_H

#include <stdbool.h>
#include <sys/types.h>

/* Moves this process into new namespaces. If that is not permitted, says so as
 * TAP wants it and ends the program. */
void kern_enter(void);

/* Another network namespace, held by a child that dies with us. */
pid_t kern_peer(void);
void kern_peer_end(pid_t pid);

/* A command that has to succeed; in `pid`'s network namespace. */
void run(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void run_in(pid_t pid, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* One that may fail: its exit status. */
int run_try(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

double now_ms(void);

/* A BPF file system of our own on /sys/fs/bpf. */
void kern_bpffs(void);
#define KERN_DIR "/sys/fs/bpf/xlb"

/* Log lines since the last call of kern_log_clear(); they are not printed. */
void kern_log_clear(void);
bool kern_log_has(const char *text);
const char *kern_log(void);

struct prog;
/* All that it pinned goes, and it itself; 0, or -errno. */
int kern_prog_end(struct prog *p);

#endif
