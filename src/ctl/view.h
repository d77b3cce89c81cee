/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What `xlb status` shows of the daemon's answer. */
#ifndef XLB_VIEW_H
#define XLB_VIEW_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

struct view {
	unsigned rows, columns;	/* of the terminal; 0: does not matter */
	bool colour;
};

/* `status`: the result of the status command, see doc/json.md. What is in
 * order is left out if all of it does not fit into view->rows. */
void view_status(const json_t *status, const struct view *view, FILE *out);

struct grid;
/* Of the addresses; `brief`: without those that are in order, and without
 * routes. */
struct grid *view_addresses(const json_t *status, bool brief);
/* The cells of a backend behind its name, in a ring of `slots`. */
void view_backend(const json_t *status, const json_t *backend, long long slots,
    struct grid *g);

#endif
