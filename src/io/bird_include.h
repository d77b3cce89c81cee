/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The include of one family: what it should hold, and whether it does. */
#ifndef XLB_BIRD_INCLUDE_H
#define XLB_BIRD_INCLUDE_H

#include "core/announce.h"

struct include {
	int family;		/* AF_INET, AF_INET6 */
	char *path;
	char *text;		/* wanted; NULL: nothing was said yet */
	size_t len;
	struct arena *a;
	struct prefix *want;	/* its routes, sorted */
	size_t nwant;
	int err;		/* of the last write, -errno */
};

/* True if the wanted text is another one now. */
bool include_render(struct include *in, const struct announce *an,
    const struct conf *c);
/*
 * Makes the file hold the wanted text, whoever changed it; true if it had to be
 * written. `marker` is made before.
 */
bool include_write(struct include *in, const char *marker);
/* The prefixes that the file holds now. */
struct prefix *include_read(const struct include *in, struct arena *a,
    size_t *n);
void include_free(struct include *in);

#endif
