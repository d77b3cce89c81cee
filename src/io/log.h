/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The log: journal fields where stderr is the journal's socket, else plain
 * lines on stderr. The `x` forms do not add errno; all of them keep errno.
 */
#ifndef XLB_LOG_H
#define XLB_LOG_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOG_PRINTF __attribute__((format(printf, 1, 2)))

/* Call once. `name` goes before each line on a terminal. */
void log_init(const char *name, bool debug);

void log_warn(const char *fmt, ...) LOG_PRINTF;	/* adds ": strerror" */
void log_warnx(const char *fmt, ...) LOG_PRINTF;
void log_info(const char *fmt, ...) LOG_PRINTF;
void log_debug(const char *fmt, ...) LOG_PRINTF;
_Noreturn void fatal(const char *fmt, ...) LOG_PRINTF;	/* exit status 1 */
_Noreturn void fatalx(const char *fmt, ...) LOG_PRINTF;

/*
 * A state change, once per change: `object` is its kind and name, "backend
 * web/b (10.0.0.7:80)", then old -> new and why ("" for none). In the journal it
 * has a fixed MESSAGE_ID and the fields XLB_OBJECT, XLB_OLD, XLB_NEW,
 * XLB_REASON, and the name by kind: XLB_BACKEND=web/b.
 */
void log_change(const char *object, const char *from, const char *to,
    const char *why);

/* The last of them, cut to fit. */
#define LOG_CHANGES 64
struct log_changed {
	int64_t at;		/* CLOCK_REALTIME, ns */
	char object[128], from[48], to[48], why[192];
};
/* Up to `max` of them, the newest first; how many. */
size_t log_changes(struct log_changed *out, size_t max);

/* Routes libbpf's messages here (warnings as warnings, the rest as debug). */
void log_libbpf(void);

/* For tests: every line goes to this instead of stderr. NULL: back. */
void log_capture(void (*fn)(int level, const char *line, void *arg),
    void *arg);

#endif
