/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the paths to backends carry: a search for each, fed with whether probes
 * of some size were answered. Sizes are of the outer packet, in bytes from its
 * IP header on.
 */
#ifndef XLB_PATH_MTU_H
#define XLB_PATH_MTU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/addr.h"
#include "core/conf.h"
#include "core/mono.h"

#define PATH_ROUND_MS	60000	/* from the end of a round to the next one */
#define PATH_TIMEOUT_MS	500	/* of one probe */
#define PATH_TRIES	3	/* without an answer: it is not carried */
#define PATH_LEARNED_MS	600000	/* what an error taught, and no probe confirmed
				 * (RFC 1191, section 6.3) */
#define PATH_ERROR_MS	1000	/* between two errors that are believed */

struct path_mtu {
	struct addr addr;	/* of the backend */
	uint16_t limit;		/* what the link takes; 0: not known yet */
	uint16_t carries;	/* as found last; 0: not known */
	mono_t learned;		/* since when no probe has confirmed that; 0: one
				 * has found it */
	mono_t told;		/* the last error that was believed */

	/* of the round that is on; hi 0: none is */
	uint16_t lo, hi;	/* was carried (0: nothing yet), was not */
	uint16_t asked;		/* what the answer will be about */
	uint8_t misses;		/* of that size */
	bool confirm;		/* `limit` once more: it may have been a loss
				 * of another kind */
};

struct path_table {
	struct path_mtu *row;	/* sorted by address */
	size_t n;
};

/* The size to ask for next. `limit` is known. */
uint16_t path_mtu_ask(struct path_mtu *p);
/*
 * What came of it; nothing, if a round was begun since it was asked. A round begins
 * with `limit`; what is not carried is searched for between the least that the
 * protocol asks of a link and that, if this least is answered: else the backend
 * answers no probe of any size, and nothing is learned. ms until the next one;
 * `*changed`: `carries` is another one.
 */
uint32_t path_mtu_step(struct path_mtu *p, bool answered, bool *changed);
/*
 * A router says that it takes `mtu`. True: `carries` is that now, which is less
 * than what was known; probes begin anew, and have the last word: whoever forges
 * an error makes them ask, and no more.
 */
bool path_mtu_error(struct path_mtu *p, uint16_t mtu, mono_t now);
/* True: what an error taught is too old, nothing is known now. */
bool path_mtu_expire(struct path_mtu *p, mono_t now);
/* The link takes as much now. */
void path_mtu_limit(struct path_mtu *p, uint16_t limit);

/* What is around a packet that is forwarded so, in bytes. */
uint16_t path_overhead(enum forward form, const struct addr *backend);
/* Less than the link takes, as far as is known; else 0. */
uint16_t path_narrow(const struct path_table *t, const struct addr *backend);

/* NULL: there is none. */
struct path_mtu *path_find(const struct path_table *t,
    const struct addr *backend);

#endif
