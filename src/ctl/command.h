/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The commands of xlb: one table drives usage, help, completion and dispatch;
 * tests hold the manual against it. */
#ifndef XLB_COMMAND_H
#define XLB_COMMAND_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "core/diag.h"
#include "core/options.h"

#define XLB_SCHEMA 1		/* of everything that --json prints */

enum exit_status {
	STATUS_DONE = 0,
	STATUS_FAILED = 1,
	STATUS_USAGE = 2,
	STATUS_CONFIG = 3,	/* the configuration is invalid */
	STATUS_NO_DAEMON = 4,
};

/* Options behind the command; each is a bit of context.flags. */
enum flag {
	FLAG_JSON = 1, FLAG_WATCH = 2, FLAG_EXIT_CODE = 4, FLAG_FORCE = 8,
	FLAG_FLUSH = 16, FLAG_WAIT = 32, FLAG_SERVICE = 64, FLAG_REASON = 128,
	FLAG_COUNT = 256, FLAG_SAMPLE = 512, FLAG_RATE = 1024,
	FLAG_CLIENT = 2048, FLAG_NAT = 4096,
};
#define FLAG_BITS 16

/* What completion offers for an argument, of a command or an option. */
enum complete { COMPLETE_NONE, COMPLETE_FILE, COMPLETE_OBJECT,
    COMPLETE_COMMAND, COMPLETE_SERVICE, COMPLETE_REASON, COMPLETE_PROTOCOL };

struct flag_row {
	const char *name;	/* "--exit-code" */
	enum flag flag;
	const char *help;
	const char *value;	/* "NAME"; NULL: it takes none */
	enum complete complete;	/* of the value */
};

struct context {
	struct options o;
	unsigned flags;		/* enum flag */
	const char *value[FLAG_BITS];	/* by bit number, see flag_value() */
	bool terminal;		/* stdout is one */
	bool colour;
	const struct command *command;
	char **arg;
	int narg;
};

struct command {
	const char *name;
	const char *args;	/* "[FILE]"; "" for none */
	int least, most;	/* how many of them */
	unsigned flags;		/* besides FLAG_JSON, which all have */
	enum complete complete;
	const char *help;
	int (*run)(const struct context *x);	/* returns the exit status */
};

extern const struct command command_table[];	/* ends with a NULL name */
extern const struct flag_row flag_table[];
extern const char *const option_table[];	/* the shared ones: "--config FILE" */

const struct command *command_find(const char *name);
/* What was given with an option; NULL: it was not. */
const char *flag_value(const struct context *x, enum flag f);
/* The same as a number. False, after saying so, if it is none of 1 to `most`;
 * `*out` stays as it is where the option was not given. */
bool flag_number(const struct context *x, enum flag f, long most, long *out);
void usage_print(FILE *out);
void help_print(const struct command *c, FILE *out);
/* Says so, and which one may be meant; the exit status. */
int command_unknown(const char *name);

int check_run(const struct context *x);		/* config.c */
int diff_run(const struct context *x);
int bird_config_run(const struct context *x);
int reload_run(const struct context *x);	/* request.c */
int restart_run(const struct context *x);
int stop_run(const struct context *x);
int drain_run(const struct context *x);
int undrain_run(const struct context *x);
int fingerprint_run(const struct context *x);
int detach_run(const struct context *x);
int status_run(const struct context *x);	/* status.c */
int events_run(const struct context *x);	/* events.c */
int stats_run(const struct context *x);		/* stats.c */
int services_run(const struct context *x);	/* lists.c */
int pools_run(const struct context *x);
int backends_run(const struct context *x);
int neighbors_run(const struct context *x);
int bgp_run(const struct context *x);
int rings_run(const struct context *x);
int flows_run(const struct context *x);		/* flows.c */
int lookup_run(const struct context *x);
int import_run(const struct context *x);	/* import.c */
int version_run(const struct context *x);	/* help.c */
int help_run(const struct context *x);
int completion_run(const struct context *x);	/* completion.c; hidden */
void zsh_print(void);				/* completion_zsh.c */

/* ask.c: one line on stderr, "xlb: " before it. */
void complain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Asks the daemon. 0 and the reply; else the exit status, the reason is on
 * stderr already. `args` is stolen. */
int ask(const struct context *x, const char *command, json_t *args,
    int timeout_ms, json_t **reply);
/* Why no reply came. */
int ask_failed(const struct context *x, int rc);
/* The errors and warnings of a reply, to stderr. Its exit status. */
int reply_take(const json_t *reply);
/* `o` with the schema in front, to stdout; `o` is stolen. */
int json_out(const struct context *x, json_t *o);
/* What --json shows of a command that does something: result, errors and
 * warnings. */
int reply_out(const struct context *x, const json_t *reply);
/* The same of a command that shows something, and could not. */
void reply_refused(const struct context *x, const json_t *reply);
/* The same of what went wrong here: of each line of `dg`, or of `why`. */
void diag_refused(const struct context *x, const struct diag *dg);
void why_refused(const struct context *x, const char *why);

#endif
