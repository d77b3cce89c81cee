/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the operator wants, as the model keeps it: pools over one set of
 * backends that are known by their index, and a service for each port.
 */
#ifndef XLB_MODEL_SITE_H
#define XLB_MODEL_SITE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "core/conf.h"

#define SITE_POOLS 3
#define SITE_BACKENDS 128
#define SITE_SERVICES 4
#define SITE_PORT 8000		/* of service 0; the next ones follow */

struct site_member {
	bool in;
	uint32_t weight;
	enum backend_state state;
	int64_t said;		/* it drains by an override since then, ns; 0: the
				 * file says what it does */
};

struct site_pool {
	char name[32];
	struct site_member member[SITE_BACKENDS];
};

struct site_service {
	unsigned pool;
	bool source;		/* hash: source */
};

struct site {
	uint32_t ring_size, entries;
	unsigned npool, nbackend, nservice;
	struct site_pool pool[SITE_POOLS];
	struct site_service service[SITE_SERVICES];
};

struct addr site_address(unsigned backend);
/* The one of that address on the wire, or -1. */
int site_backend(const uint8_t ip4[4]);
void site_print(const struct site *s, FILE *out);

/* What a backend is to a pool on a node that finds it up or down. */
static inline bool
site_lives(const struct site *s, unsigned pool, unsigned b, const bool *up)
{
	const struct site_member *m = &s->pool[pool].member[b];

	return m->in && m->state != BACKEND_DOWN && up[b];
}

static inline bool
site_eligible(const struct site *s, unsigned pool, unsigned b, const bool *up)
{
	const struct site_member *m = &s->pool[pool].member[b];

	return site_lives(s, pool, b, up) && m->state == BACKEND_ACTIVE &&
	    m->weight > 0;
}

#endif
