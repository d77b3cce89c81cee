/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What `xlb status` shows of the daemon's answer. */
#ifndef XLB_VIEW_H
#define XLB_VIEW_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

struct view {
	unsigned rows, columns;	/* of the terminal; 0: does not matter */
	bool whole;		/* a long line is better than a cut one */
	bool colour;
};

/* `status`: the result of the status command, see doc/json.md. What is in
 * order is left out if all of it does not fit into view->rows, and routes if they
 * do not fit into view->columns. */
void view_status(const json_t *status, const struct view *view, FILE *out);

struct grid;
enum view_address {
	ADDRESS_ALL,
	ADDRESS_PEERS,		/* with the names of the peers, not their number */
	ADDRESS_NARROW,		/* without routes */
	ADDRESS_TROUBLE,	/* the same of those that are not in order */
};
struct grid *view_addresses(const json_t *status, enum view_address how);
/* Texts of a list in one cell. */
void joined_cell(struct grid *g, const json_t *list);
/* The cells of a backend behind its name, in a ring of `slots`. */
void view_backend(const json_t *status, const json_t *backend, long long slots,
    struct grid *g);

#endif
