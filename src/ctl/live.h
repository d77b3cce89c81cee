/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A view that goes on: drawn in place on a terminal, printed again and again
 * elsewhere. */
#ifndef XLB_LIVE_H
#define XLB_LIVE_H

#include "ctl/command.h"
#include "ctl/view.h"

#define LIVE_MS 2000		/* a daemon that hangs is shown as one */

struct live {
	const char *more;	/* the command that shows what had no room */
	/* prints it once; the exit status, other than 0 ends it */
	int (*once)(const struct context *x, void *arg);
	const char *request;	/* what the daemon is asked on a terminal */
	/* its answer as lines */
	void (*draw)(json_t *result, const struct view *view, FILE *out,
	    void *arg);
	void *arg;
};

int live_run(const struct context *x, const struct live *l);
void live_size(struct view *view);	/* of the terminal, if it is one */

#endif
