/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the paths to backends carry: the search for it. */
#include "core/path_mtu.h"

#include "core/rows.h"

/* What every link has to take: RFC 791 (of reassembly, and what no link of today
 * is below), RFC 8200. */
#define LEAST_IP4	576
#define LEAST_IP6	1280

static uint16_t
least(const struct path_mtu *p)
{
	return addr_is4(&p->addr) ? LEAST_IP4 : LEAST_IP6;
}

static uint16_t
size_next(const struct path_mtu *p)
{
	if (p->hi == 0 || p->confirm)
		return p->limit;
	if (p->lo == 0)
		return least(p);
	/* first whether it is as it was, which two answers tell */
	if (p->lo < p->carries && p->carries < p->hi)
		return p->carries;
	if (p->lo == p->carries)
		return (uint16_t)(p->lo + 1);
	return (uint16_t)(p->lo + (p->hi - p->lo) / 2);
}

uint16_t
path_mtu_ask(struct path_mtu *p)
{
	p->asked = size_next(p);
	return p->asked;
}

static void
round_begin(struct path_mtu *p)
{
	p->lo = p->hi = p->asked = 0;
	p->misses = 0;
	p->confirm = false;
}

/* `carries` was answered, and nothing larger. */
static uint32_t
round_found(struct path_mtu *p, uint16_t carries, bool *changed)
{
	*changed = carries != p->carries;
	p->carries = carries;
	p->learned.ns = 0;
	round_begin(p);
	return PATH_ROUND_MS;
}

/* Nothing was answered: what was known is as true as before. */
static uint32_t
round_silent(struct path_mtu *p)
{
	round_begin(p);
	return PATH_ROUND_MS;
}

uint32_t
path_mtu_step(struct path_mtu *p, bool answered, bool *changed)
{
	uint16_t size = p->asked;

	*changed = false;
	if (size == 0)
		return 0;
	if (!answered && ++p->misses < PATH_TRIES)
		return 0;
	p->misses = 0;
	if (answered && size == p->limit)
		return round_found(p, p->limit, changed);
	if (p->confirm)
		return round_found(p, p->lo, changed);
	if (answered)
		p->lo = size;
	else if (p->lo == 0 && p->hi != 0)
		return round_silent(p);
	else
		p->hi = size;
	if (p->lo == 0 && p->hi <= least(p))
		return round_silent(p);
	p->confirm = p->lo != 0 && p->hi - p->lo == 1 && p->hi == p->limit;
	if (p->lo != 0 && p->hi - p->lo == 1 && !p->confirm)
		return round_found(p, p->lo, changed);
	return 0;
}

void
path_mtu_limit(struct path_mtu *p, uint16_t limit)
{
	if (p->limit == limit)
		return;
	if (p->carries == p->limit || p->carries >= limit)
		p->carries = 0;		/* it was the link's */
	p->limit = limit;
	round_begin(p);
}

bool
path_mtu_error(struct path_mtu *p, uint16_t mtu, mono_t now)
{
	uint16_t known = p->carries != 0 ? p->carries : p->limit;

	if (mtu < least(p) || mtu >= known)
		return false;
	if (p->told.ns != 0 && mono_ms_since(now, p->told) < PATH_ERROR_MS)
		return false;
	p->carries = mtu;
	p->learned = p->told = now;
	round_begin(p);
	return true;
}

bool
path_mtu_expire(struct path_mtu *p, mono_t now)
{
	if (p->learned.ns == 0 ||
	    mono_ms_since(now, p->learned) < PATH_LEARNED_MS)
		return false;
	p->carries = 0;
	p->learned.ns = 0;
	return true;
}

uint16_t
path_overhead(enum forward form, const struct addr *backend)
{
	return (uint16_t)((addr_is4(backend) ? 20 : 40) +
	    (form == FORWARD_GUE ? 8 : 0));
}

struct path_mtu *
path_find(const struct path_table *t, const struct addr *backend)
{
	return rows_find(backend, t->row, t->n, sizeof(*t->row), addr_order);
}

uint16_t
path_narrow(const struct path_table *t, const struct addr *backend)
{
	const struct path_mtu *p = path_find(t, backend);

	return p == NULL || (p->limit != 0 && p->carries >= p->limit) ? 0 :
	    p->carries;
}
