/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which values of two configurations are not the same. */
#ifndef XLB_CONF_DIFF_H
#define XLB_CONF_DIFF_H

#include <stddef.h>

struct arena;
struct conf;

struct conf_change {
	const char *key;	/* "pools.web.backends[web1].weight" */
	/* NULL: it is not there; "": an object that is, whose values are not
	 * listed where the other side has no such object */
	const char *was, *is;
};

/* By key; how many. Passwords are not told. */
size_t conf_diff(const struct conf *was, const struct conf *is,
    struct arena *a, struct conf_change **out);

#endif
