/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Decides address by address whether this node may announce it, and says why
 * not. */
#include "core/announce.h"

#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/rows.h"

static const char *const why_text[] = {
	[ANNOUNCE_OK] = "announced",
	[ANNOUNCE_NO_BGP] = "no bgp: section",
	[ANNOUNCE_STOPPING] = "node is draining",
	[ANNOUNCE_NO_DATAPATH] = "no data path on this node",
	[ANNOUNCE_NOT_READY] = "service is not ready",
	[ANNOUNCE_UNANSWERED] = "too few backends have answered on it yet",
	[ANNOUNCE_HOLD] = "held until it has been healthy for bgp.hold",
};

/* What the services on one address add up to. */
struct demand {
	struct addr addr;
	const struct conf_address *conf;
	const struct conf_service *service;
	const struct state_pool *pool;	/* NULL: the state does not know it */
};

const char *
announce_why_text(enum announce_why w)
{
	return why_text[w];
}

static int
demand_cmp(const void *a, const void *b)
{
	const struct demand *x = a, *y = b;
	int c = addr_cmp(&x->addr, &y->addr);

	if (c != 0)
		return c;
	/* services are sorted, so the first by name comes first */
	return x->service < y->service ? -1 : x->service > y->service;
}

static bool
is_answered(const struct demand *d)
{
	return health_established(&d->pool->paths, &d->addr);
}

static bool
is_ready(const struct demand *d)
{
	return d->pool != NULL && d->pool->ready && is_answered(d);
}

/* One row per address and service, sorted. */
static struct demand *
demands(const struct announce_input *in, struct arena *a, size_t *n)
{
	const struct conf_service *s;
	struct demand *d;
	size_t i, j, k = 0;

	for (i = 0; i < in->conf->nservice; i++)
		k += in->conf->service[i].naddress;
	d = arena_calloc(a, k, sizeof(*d));
	for (i = k = 0; i < in->conf->nservice; i++) {
		s = &in->conf->service[i];
		for (j = 0; j < s->naddress; j++, k++) {
			d[k].addr = s->address[j].address;
			d[k].conf = &s->address[j];
			d[k].service = s;
			d[k].pool = state_pool_find(in->wanted,
			    s->pool->name);
		}
	}
	if (k > 0)
		qsort(d, k, sizeof(*d), demand_cmp);
	*n = k;
	return d;
}

/*
 * All required services must be ready; without required ones, any is enough.
 * NULL, or the first service that keeps the address from being ready.
 */
static const struct demand *
unready(const struct demand *d, size_t n)
{
	const struct demand *first = NULL;
	bool required = false, any = false;
	size_t i;

	for (i = 0; i < n; i++) {
		if (!d[i].service->required)
			continue;
		required = true;
		if (!is_ready(&d[i]))
			return &d[i];
	}
	if (required)
		return NULL;
	for (i = 0; i < n; i++) {
		any |= is_ready(&d[i]);
		if (!is_ready(&d[i]) && first == NULL)
			first = &d[i];
	}
	return any ? NULL : first;
}

static int
fingerprint_cmp(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* Of each ring behind the address. */
static void
fingerprints(const struct announce_input *in, const struct demand *d, size_t n,
    struct arena *a, struct announce_row *row)
{
	size_t i, used = 0;

	row->fingerprint = arena_calloc(a, n, sizeof(*row->fingerprint));
	for (i = 0; i < n; i++)
		if (d[i].pool != NULL)
			row->fingerprint[used++] =
			    in->fingerprint[d[i].pool - in->wanted->pool];
	rows_sort(row->fingerprint, used, sizeof(*row->fingerprint),
	    fingerprint_cmp);
	row->nfingerprint = rows_unique(row->fingerprint, used,
	    sizeof(*row->fingerprint), fingerprint_cmp);
}

static int
row_cmp(const void *addr, const void *row)
{
	return addr_cmp(addr, &((const struct announce_row *)row)->addr);
}

static const struct announce_row *
row_find(const struct announce *an, const struct addr *addr)
{
	if (an == NULL || an->n == 0)
		return NULL;
	return bsearch(addr, an->row, an->n, sizeof(*an->row), row_cmp);
}

static int
row_order(const void *va, const void *vb)
{
	const struct announce_row *a = va, *b = vb;

	return addr_cmp(&a->addr, &b->addr);
}

/*
 * The first reason that applies. `announced`: it is now, so it needs no hold;
 * and a node that drains keeps it for the while, but adds nothing.
 */
static enum announce_why
row_why(const struct announce_input *in, const struct announce_row *row,
    bool announced, mono_t now)
{
	if (!in->conf->bgp.present)
		return ANNOUNCE_NO_BGP;
	if (in->phase == PHASE_WITHDRAW ||
	    (in->phase == PHASE_GSHUT && !announced))
		return ANNOUNCE_STOPPING;
	if (!in->datapath)
		return ANNOUNCE_NO_DATAPATH;
	if (row->ready_since.ns == 0)
		return row->unanswered ? ANNOUNCE_UNANSWERED :
		    ANNOUNCE_NOT_READY;
	if (!announced && mono_before(now,
	    mono_add_ms(row->ready_since, in->conf->bgp.hold_ms)))
		return ANNOUNCE_HOLD;
	return ANNOUNCE_OK;
}

static void
row_step(const struct announce_row *old, const struct announce_input *in,
    mono_t now, int64_t realtime, struct announce_row *row)
{
	bool announced = old != NULL && old->wanted;

	if (row->service == NULL)
		row->ready_since = old != NULL && old->ready_since.ns != 0 ?
		    old->ready_since : now;
	row->why = row_why(in, row, announced, now);
	row->wanted = row->why == ANNOUNCE_OK;
	row->gshut = row->wanted && in->phase == PHASE_GSHUT;
	row->since = old != NULL && old->wanted == row->wanted ? old->since :
	    realtime;
}

static bool
row_differs(const struct announce_row *old, const struct announce_row *row)
{
	return old == NULL || old->wanted != row->wanted ||
	    old->gshut != row->gshut || old->why != row->why;
}

mono_t
announce_step(const struct announce *prev, const struct announce_input *in,
    mono_t now, int64_t realtime, struct arena *a, struct announce *next)
{
	const struct demand *lacking;
	const struct announce_row *old;
	struct announce_row *row;
	struct demand *d;
	mono_t end, wake = { 0 };
	size_t i, j, n, known = 0;

	memset(next, 0, sizeof(*next));
	d = demands(in, a, &n);
	next->row = arena_calloc(a, n, sizeof(*next->row));
	for (i = 0; i < n; i = j) {
		for (j = i + 1; j < n &&
		    addr_cmp(&d[i].addr, &d[j].addr) == 0; j++)
			;
		row = &next->row[next->n++];
		row->addr = d[i].addr;
		row->conf = d[i].conf;
		lacking = unready(d + i, j - i);
		if (lacking != NULL) {
			row->service = lacking->service->name;
			row->unanswered = lacking->pool != NULL &&
			    lacking->pool->ready && !is_answered(lacking);
		}
		if (in->fingerprint != NULL)
			fingerprints(in, d + i, j - i, a, row);
		old = row_find(prev, &row->addr);
		known += old != NULL;
		row_step(old, in, now, realtime, row);
		next->changed |= row_differs(old, row);
		if (row->why != ANNOUNCE_HOLD)
			continue;
		end = mono_add_ms(row->ready_since, in->conf->bgp.hold_ms);
		if (wake.ns == 0 || mono_before(end, wake))
			wake = end;
	}
	next->changed |= prev != NULL && known != prev->n;
	return wake;
}

void
announce_keep(const struct announce *prev, const struct announce *next,
    struct arena *a, struct announce *out)
{
	const struct announce_row *old;
	struct announce_row *row;
	size_t i;

	*out = *next;
	out->row = arena_dup(a, next->row, next->n * sizeof(*next->row));
	for (i = 0; i < out->n; i++) {
		row = &out->row[i];
		old = row_find(prev, &row->addr);
		if (old != NULL && old->nfingerprint > 0) {
			row->nfingerprint = old->nfingerprint;
			row->fingerprint = arena_dup(a, old->fingerprint,
			    old->nfingerprint * sizeof(*old->fingerprint));
		}
		if (old == NULL || !old->wanted)
			row->wanted = row->gshut = false;
	}
}

struct prefix
announce_prefix(const struct announce_row *row)
{
	if (row->conf->has_announce)
		return row->conf->announce;
	return (struct prefix){ row->addr, (uint8_t)addr_bits(&row->addr) };
}

void
announce_adopted(const struct conf *c, const struct prefix *p, size_t np,
    int64_t realtime, struct arena *a, struct announce *out)
{
	const struct conf_address *ca;
	struct announce_row *row, one = { .wanted = true, .since = realtime };
	struct prefix want;
	size_t i, j, used = 0;

	memset(out, 0, sizeof(*out));
	for (i = 0; i < c->nservice; i++)
		for (j = 0; j < c->service[i].naddress; j++) {
			ca = &c->service[i].address[j];
			one.addr = ca->address;
			one.conf = ca;
			want = announce_prefix(&one);
			if (!prefix_find(p, np, &want))
				continue;
			row = arena_grow(a, &out->row, used++, sizeof(*row));
			*row = one;
		}
	rows_sort(out->row, used, sizeof(*row), row_order);
	out->n = rows_unique(out->row, used, sizeof(*row), row_order);
}
