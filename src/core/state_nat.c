/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What NAT needs of the state: addresses that it sends from, and interfaces that
 * clients are behind. */
#include <string.h>

#include "core/arena.h"
#include "core/rows.h"
#include "core/state_build.h"

/* Pools that NAT sends to. */
static bool
pool_is_nat(const struct conf *c, const struct conf_pool *p)
{
	size_t i;

	for (i = 0; i < c->nservice; i++)
		if (c->service[i].forward == FORWARD_NAT &&
		    c->service[i].pool == p)
			return true;
	return false;
}

/* By row: the backend is in such a pool. */
static bool *
backends_of_nat(const struct state_build *b)
{
	const struct conf *c = b->in->conf;
	struct state_backend key;
	const struct state_backend *row;
	const struct conf_pool *p;
	bool *is = arena_calloc(b->a, b->s->nbackend, sizeof(*is));
	size_t i, k;

	for (i = 0; i < c->npool; i++) {
		p = &c->pool[i];
		for (k = 0; pool_is_nat(c, p) && k < p->nbackend; k++) {
			key.addr = p->backend[k].address;
			row = rows_find(&key, b->s->backend, b->s->nbackend,
			    sizeof(*row), state_backend_key_cmp);
			is[row - b->s->backend] = true;
		}
	}
	return is;
}

/* The configured ones of a family; none: what the route uses. */
static const struct addr_list *
sources_of(const struct conf *c, const struct addr *backend)
{
	return addr_is4(backend) ? &c->nat4 : &c->nat6;
}

static void
source_add(struct state_build *b, const struct addr *a)
{
	struct state *s = b->s;
	struct state_source *row;

	if (addr_is_zero(a))
		return;
	row = arena_grow(b->a, &s->source, s->nsource++, sizeof(*row));
	row->addr = *a;
}

/* Those that are wanted, and those that flows still have. */
static void
sources_collect(struct state_build *b, const bool *nat)
{
	const struct state *found = b->in->found;
	const struct addr_list *l;
	struct state *s = b->s;
	size_t i, k;

	for (i = 0; i < s->nbackend; i++) {
		if (!nat[i])
			continue;
		l = sources_of(b->in->conf, &s->backend[i].addr);
		for (k = 0; k < l->n; k++)
			source_add(b, &l->row[k]);
		if (l->n == 0 && b->hop[i].nexthop != NULL)
			source_add(b, &b->hop[i].nexthop->src);
	}
	for (i = 0; i < found->nsource; i++)
		if (found->source[i].number < XLB_NAT_SOURCES &&
		    b->in->named_sources >> found->source[i].number & 1)
			source_add(b, &found->source[i].addr);
	rows_sort(s->source, s->nsource, sizeof(*s->source), state_source_cmp);
	s->nsource = rows_unique(s->source, s->nsource, sizeof(*s->source),
	    state_source_key_cmp);
}

static uint64_t
source_bit(const struct state *s, const struct addr *a)
{
	struct state_source key = { .addr = *a };
	const struct state_source *row;

	row = rows_find(&key, s->source, s->nsource, sizeof(*row),
	    state_source_key_cmp);
	return row == NULL ? 0 : 1ULL << row->number;
}

static void
backends_sources(struct state_build *b, const bool *nat)
{
	const struct addr_list *l;
	struct state_backend *be;
	size_t i, k;

	for (i = 0; i < b->s->nbackend; i++) {
		be = &b->s->backend[i];
		if (!nat[i])
			continue;
		l = sources_of(b->in->conf, &be->addr);
		for (k = 0; k < l->n; k++)
			be->sources |= source_bit(b->s, &l->row[k]);
		if (l->n == 0 && b->hop[i].nexthop != NULL)
			be->sources = source_bit(b->s,
			    &b->hop[i].nexthop->src);
	}
}

int
state_nat(struct state_build *b)
{
	struct state *s = b->s;
	const bool *nat = backends_of_nat(b);

	sources_collect(b, nat);
	if (state_number(b, NUMBER_SOURCE) < 0)
		return -1;
	backends_sources(b, nat);
	if (!conf_uses_nat(b->in->conf) && s->nsource == 0)
		return 0;
	s->door = arena_calloc(b->a, b->in->ndoor, sizeof(*s->door));
	s->ndoor = b->in->ndoor;
	if (s->ndoor > 0)
		memcpy(s->door, b->in->door, s->ndoor * sizeof(*s->door));
	return state_number(b, NUMBER_DOOR);
}

void
state_nat_vips(struct state_build *b)
{
	struct state *s = b->s;
	struct state_vip *vip, key;
	size_t i, n = s->nvip;

	for (i = 0; i < s->nsource; i++) {
		key.addr = s->source[i].addr;
		vip = rows_find(&key, s->vip, n, sizeof(*vip),
		    state_vip_key_cmp);
		if (vip == NULL) {
			vip = &s->vip[s->nvip++];
			vip->addr = key.addr;
			vip->own = true;
		}
		vip->flags |= XLB_VIP_SOURCE;
	}
	rows_sort(s->vip, s->nvip, sizeof(*s->vip), state_vip_cmp);
}
