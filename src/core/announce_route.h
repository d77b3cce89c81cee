/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The routes that the addresses of a configuration come to. Addresses with the
 * same `announce` prefix share one; its attributes are those of all of them, up
 * or not, so that they do not change with health: every community, the greatest
 * MED, the most prepending.
 */
#ifndef XLB_ANNOUNCE_ROUTE_H
#define XLB_ANNOUNCE_ROUTE_H

#include <stdio.h>

#include "core/announce.h"

struct announce_route {
	struct prefix prefix;
	bool wanted;		/* one of its addresses is */
	bool gshut;		/* all that are wanted are draining */
	/* Without 65535:0 of `gshut`; sorted, no duplicates: standard before
	 * large, each by value. With bgp.fingerprint a large one for each ring
	 * behind the prefix: local_as, and the upper and lower half of the
	 * fingerprint. */
	struct community_list communities;
	bool has_med;
	uint32_t med, prepend;
};

/* Sorted by prefix, IPv4 first; `*n` rows in `a`. */
struct announce_route *announce_routes(const struct announce *an,
    const struct conf *c, struct arena *a, size_t *n);
const struct announce_route *announce_route_find(
    const struct announce_route *r, size_t n, const struct prefix *p);

/* What the configuration asks for, were everything healthy, without
 * fingerprints, which are not its own. */
struct announce_route *announce_routes_asked(const struct conf *c,
    struct arena *a, size_t *n);

/* Prefix and attributes equal? */
bool announce_route_same(const struct announce_route *x,
    const struct announce_route *y);

/* "203.0.113.0/24 med 50 prepend 2 64512:100": 65535:0 comes first. */
void announce_route_print(const struct announce_route *r, FILE *out);

#endif
