/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An event of the packet program, with names in the place of numbers. */
#ifndef XLB_EVENT_JSON_H
#define XLB_EVENT_JSON_H

#include <jansson.h>
#include <stdint.h>

#include "core/conf.h"
#include "core/state.h"
#include "io/prog.h"

/* Names by number. Plain inputs, good until the next reconciliation. */
struct event_names {
	const struct conf_service *service[XLB_SERVICES];	/* NULL: none */
	const struct state *wanted;
	const struct conf *conf;
	const struct prog_link *link;	/* as conf->interface */
};

void event_names_init(struct event_names *names, const struct conf *conf,
    const struct state *wanted, const struct prog_link *link);

/* What a pool calls a backend number; NULL: it has none of that. */
const char *event_backend(const struct event_names *names,
    const struct conf_pool *pool, uint32_t number);

/* `realtime`: CLOCK_REALTIME when CLOCK_MONOTONIC was 0, ns. */
json_t *event_build(const struct xlb_event *e, const struct event_names *names,
    int64_t realtime);

#endif
