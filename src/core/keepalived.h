/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A keepalived.conf as statements, and what of it a configuration of ours can
 * say. The syntax is that of keepalived.conf(5), 2.3: words up to the end of the
 * line, blocks in braces, `#` and `!` begin comments, "..." and '...' quote,
 * $NAME stands for what was defined, include files.
 */
#ifndef XLB_KEEPALIVED_H
#define XLB_KEEPALIVED_H

#include <stdbool.h>
#include <stddef.h>

#include "core/conf.h"

#define KA_DEPTH_MAX	16	/* blocks in blocks */
#define KA_INCLUDES_MAX	256	/* files */

struct ka_stmt {
	struct mark mark;	/* of the first word */
	const char **word;	/* word[0] is the keyword */
	size_t nword;		/* at least 1 */
	bool block;		/* braces followed */
	struct ka_stmt *child, *next;
};

/*
 * The files that `pattern` of an include statement in the file `from` names, in
 * the arena; `*n` may become 0. 0, or -1 with the reason in `dg`, at `at`.
 */
typedef int ka_include(void *arg, const char *pattern, struct mark at,
    struct arena *a, struct conf_source **src, size_t *n, struct diag *dg);

/* All statements of the top; NULL for an empty file or after a mistake, which is
 * in `dg` with its line. */
struct ka_stmt *ka_parse(const struct conf_source *src, ka_include *include,
    void *arg, struct arena *a, struct diag *dg);

/*
 * What it comes to. What has no equal is a warning in `dg`, at its place, with
 * the way out. 0, or -1 after a mistake. `*out` need not load: a kind of check
 * may not be there yet.
 */
int ka_import(const struct ka_stmt *top, struct arena *a, struct conf *out,
    struct diag *dg);

#endif
