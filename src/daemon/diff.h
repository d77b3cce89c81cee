/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a reload would do, as doc/json.md describes it. */
#ifndef XLB_DIFF_H
#define XLB_DIFF_H

#include <jansson.h>
#include <stdint.h>

#include "core/announce.h"
#include "core/plan.h"
#include "core/state.h"

/* `flows` has a number for each wanted ring; NULL: nobody knows. */
json_t *diff_build(const struct plan *p, const struct state *wanted,
    const uint64_t *flows);
/* Adds the routes that the two configurations ask for, were everything
 * healthy. */
void diff_routes(const struct conf *old, const struct conf *new,
    json_t *diff);
/* The values that differ. */
void diff_settings(const struct conf *old, const struct conf *new,
    json_t *diff);
/* Addresses that both have, and one of them announces. */
void diff_addresses(const struct announce *old, const struct announce *new,
    json_t *diff);

#endif
