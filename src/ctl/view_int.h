/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of ctl/view share. */
#ifndef XLB_VIEW_INT_H
#define XLB_VIEW_INT_H

#include <stddef.h>

#include "ctl/view.h"

#define CHANGES_MOST 5		/* that status shows */

bool view_announced(const json_t *address);	/* and somebody hears it */

/* view_head.c: the first lines, two columns. */
void view_head(const json_t *status, struct grid *g);
/* What changed last, up to `most` rows and to CHANGES_MOST, each cut to fit into
 * `columns` (0: not), which is what keeps the first look on one screen. */
void view_changes(const json_t *status, size_t most, unsigned columns,
    struct grid *g);
/* How many are in order and not listed. */
void view_rest(const json_t *status, FILE *out);

#endif
