/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The log: journal fields where stderr is the journal's socket, else plain
 * lines on stderr. The `x` forms do not add errno; all of them keep errno.
 */
#ifndef XLB_LOG_H
#define XLB_LOG_H

#include <stdarg.h>
#include <stdbool.h>

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
 * A state change, once per change: `object` "backend web/10.0.0.7", old -> new
 * and why ("" for none). Structured fields XLB_OBJECT, XLB_OLD, XLB_NEW,
 * XLB_REASON and a fixed MESSAGE_ID in the journal.
 */
void log_change(const char *object, const char *from, const char *to,
    const char *why);

/* Routes libbpf's messages here (warnings as warnings, the rest as debug). */
void log_libbpf(void);

/* For tests: every line goes to this instead of stderr. NULL: back. */
void log_capture(void (*fn)(int level, const char *line, void *arg),
    void *arg);

#endif
