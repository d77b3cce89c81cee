/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which members of a pool take flows, whether that is enough, and what its ring
 * is made from. */
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/maglev.h"
#include "core/ring_words.h"
#include "core/rows.h"
#include "core/state_build.h"

static const char *const why_text[] = {
	[MEMBER_ELIGIBLE] = "eligible",
	[MEMBER_STATE_DOWN] = "state is down",
	[MEMBER_STATE_DRAIN] = "draining",
	[MEMBER_WEIGHT_ZERO] = "weight is 0",
	[MEMBER_UNHEALTHY] = "check fails",
	[MEMBER_UNKNOWN] = "not checked yet",
	[MEMBER_ASKS_DRAIN] = "asks for no new flows",
	[MEMBER_NO_ROUTE] = "no route",
	[MEMBER_NO_NEIGHBOR] = "no neighbour",
	[MEMBER_NO_PORT] = "interface cannot send XDP frames",
};

const char *
member_why_text(enum member_why w)
{
	return why_text[w];
}

bool
member_is_up(const struct state_member *m)
{
	return health_is_alive(m->health) && m->why != MEMBER_STATE_DOWN &&
	    m->why != MEMBER_NO_ROUTE && m->why != MEMBER_NO_NEIGHBOR &&
	    m->why != MEMBER_NO_PORT;
}

/* The member that an override is about, or NULL. */
static const struct conf_backend *
override_member(const struct conf_pool *p, const struct override *o)
{
	size_t i;

	if (o->pool == NULL || strcmp(o->pool, p->name) != 0)
		return NULL;
	for (i = 0; i < p->nbackend; i++)
		if (addr_cmp(&p->backend[i].address, &o->addr) == 0)
			return &p->backend[i];
	return NULL;
}

/* A node's state is active or drain: the first two of a backend's. */
static enum backend_state
node_state_of(const struct conf *c)
{
	return c->node_state == NODE_DRAIN ? BACKEND_DRAIN : BACKEND_ACTIVE;
}

bool
override_live(const struct conf *c, const struct override *o)
{
	const struct conf_backend *b = NULL;
	const struct conf_pool *p;

	if (o->pool == NULL)
		return node_state_of(c) == o->file_state;
	p = conf_pool_find(c, o->pool);
	if (p != NULL)
		b = override_member(p, o);
	return b != NULL && b->state == o->file_state;
}

enum node_state
override_node(const struct conf *c, const struct override_list *l)
{
	size_t i;

	for (i = 0; i < l->n; i++)
		if (l->row[i].pool == NULL && override_live(c, &l->row[i]))
			return l->row[i].state == BACKEND_ACTIVE ?
			    NODE_ACTIVE : NODE_DRAIN;
	return c->node_state;
}

/* Where the member's backend row is. */
static size_t
member_row(const struct state_build *b, const struct conf_backend *c)
{
	struct state_backend key = { .addr = c->address };
	const struct state_backend *row;

	row = rows_find(&key, b->s->backend, b->s->nbackend, sizeof(*row),
	    state_backend_key_cmp);
	return (size_t)(row - b->s->backend);
}

static enum member_why
member_why(const struct conf_backend *c, const struct state_member *m,
    const struct backend_hop *hop)
{
	if (m->state != BACKEND_ACTIVE)
		return m->state == BACKEND_DOWN ? MEMBER_STATE_DOWN :
		    MEMBER_STATE_DRAIN;
	if (c->weight == 0)
		return MEMBER_WEIGHT_ZERO;
	if (m->health != HEALTH_UP)
		return m->health == HEALTH_DOWN ? MEMBER_UNHEALTHY :
		    m->health == HEALTH_DRAIN ? MEMBER_ASKS_DRAIN :
		    MEMBER_UNKNOWN;
	return hop->nexthop != NULL ? MEMBER_ELIGIBLE : hop->why;
}

/* A backend that is not known to be dead keeps the flows it has. */
static bool
member_keeps(const struct state_member *m, const struct backend_hop *hop)
{
	return m->state != BACKEND_DOWN && m->health != HEALTH_DOWN &&
	    hop->nexthop != NULL;
}

/* May take flows if the pool fails open: all is well but its health, and it
 * did not ask for none. */
static bool
member_last_resort(const struct state_build *b, const struct conf_backend *c,
    const struct state_member *m)
{
	return m->state == BACKEND_ACTIVE && c->weight > 0 &&
	    m->health != HEALTH_DRAIN && b->hop[member_row(b, c)].nexthop != NULL;
}

/* In the state that this override asks for. A clock that was set back makes it
 * old, not young. */
static void
member_override(struct state_member *m, const struct override *o, int64_t now)
{
	m->state = o->state;
	m->leaving = o->state == BACKEND_DRAIN && now >= o->since &&
	    now - o->since < STATE_LEAVING;
}

static void
members_build(struct state_build *b, const struct conf_pool *c,
    struct state_pool *p)
{
	const struct override_list *l = b->in->overrides;
	const struct conf_backend *cb;
	struct state_member *m;
	size_t i, row;

	p->member = arena_calloc(b->a, c->nbackend, sizeof(*p->member));
	for (i = 0; i < c->nbackend; i++)
		p->member[i].state = c->backend[i].state;
	for (i = 0; i < l->n; i++) {
		cb = override_member(c, &l->row[i]);
		if (cb != NULL && cb->state == l->row[i].file_state)
			member_override(&p->member[cb - c->backend],
			    &l->row[i], b->in->now);
	}
	health_paths(b->in->conf, c, b->in->health, b->a, &p->paths);
	for (i = 0; i < c->nbackend; i++) {
		cb = &c->backend[i];
		m = &p->member[i];
		row = member_row(b, cb);
		m->number = b->s->backend[row].number;
		m->health = health_verdict(c->check, &p->paths, &cb->address,
		    b->in->health, &m->health_row);
		m->why = member_why(cb, m, &b->hop[row]);
		m->keeps = member_keeps(m, &b->hop[row]);
		m->leaving &= m->keeps;
	}
}

static void
pool_judge(struct state_build *b, const struct conf_pool *c,
    struct state_pool *p)
{
	size_t i;

	p->conf = c;
	p->needed = health_needed(c);
	for (i = 0; i < c->nbackend; i++)
		p->eligible += p->member[i].why == MEMBER_ELIGIBLE;
	/* Not before anything is known: a node that has just started would
	 * announce backends that nobody has looked at. */
	for (i = 0; c->fail_open && p->eligible == 0 && i < c->nbackend; i++)
		if (p->member[i].health == HEALTH_DOWN &&
		    member_last_resort(b, &c->backend[i], &p->member[i]))
			p->failed_open = true;
	p->ready = p->eligible >= p->needed || p->failed_open;
	for (i = 0; p->failed_open && i < c->nbackend; i++)
		p->member[i].keeps |=
		    member_last_resort(b, &c->backend[i], &p->member[i]);
}

/* A member on its way into the ring's arrays. */
struct seat {
	struct maglev_member member;
	uint32_t number;
	bool eligible, leaving;
};

static int
seat_cmp(const void *va, const void *vb)
{
	const struct seat *a = va, *b = vb;

	return addr_cmp(&a->member.addr, &b->member.addr);
}

static int
pool_cmp(const void *name, const void *pool)
{
	return strcmp(name, ((const struct state_pool *)pool)->conf->name);
}

const struct state_pool *
state_pool_find(const struct state *s, const char *name)
{
	return s->npool == 0 ? NULL : bsearch(name, s->pool, s->npool,
	    sizeof(*s->pool), pool_cmp);
}

static const bool *
held_build(const struct state_build *b, const char *pool)
{
	const struct state_pool *was = b->in->before == NULL ? NULL :
	    state_pool_find(b->in->before, pool);
	enum member_why why;
	bool *held = NULL;
	size_t i;

	for (i = 0; was != NULL && i < was->conf->nbackend; i++) {
		why = was->member[i].why;
		if (why != MEMBER_STATE_DOWN && why != MEMBER_STATE_DRAIN &&
		    why != MEMBER_WEIGHT_ZERO)
			continue;
		if (held == NULL)
			held = arena_calloc(b->a, XLB_BACKENDS, sizeof(*held));
		held[was->member[i].number] = true;
	}
	return held;
}

static void
ring_build(struct state_build *b, const struct conf_pool *c,
    const struct state_pool *p, struct state_ring *r)
{
	struct seat *seat = arena_calloc(b->a, c->nbackend, sizeof(*seat));
	struct maglev_member *member;
	uint16_t *number_of;
	uint32_t *roles;
	bool *eligible, *leaving, any = false;
	size_t i, n = 0;

	roles = arena_calloc(b->a, RING_MEMBER_WORDS, sizeof(*roles));
	for (i = 0; i < c->nbackend; i++) {
		ring_member_set(roles, p->member[i].number, XLB_MEMBER |
		    (p->member[i].keeps ? XLB_MEMBER_KEEPS : 0));
		if (c->backend[i].weight == 0)
			continue;
		seat[n].member.addr = c->backend[i].address;
		seat[n].member.weight = c->backend[i].weight;
		seat[n].number = p->member[i].number;
		seat[n].leaving = p->member[i].leaving;
		seat[n++].eligible = p->failed_open ?
		    member_last_resort(b, &c->backend[i], &p->member[i]) :
		    p->member[i].why == MEMBER_ELIGIBLE;
	}
	rows_sort(seat, n, sizeof(*seat), seat_cmp);
	member = arena_calloc(b->a, n, sizeof(*member));
	number_of = arena_calloc(b->a, n, sizeof(*number_of));
	eligible = arena_calloc(b->a, n, sizeof(*eligible));
	leaving = arena_calloc(b->a, n, sizeof(*leaving));
	for (i = 0; i < n; i++) {
		member[i] = seat[i].member;
		number_of[i] = (uint16_t)seat[i].number;
		eligible[i] = seat[i].eligible;
		any |= leaving[i] = seat[i].leaving;
	}
	r->roles = roles;
	r->member = member;
	r->number_of = number_of;
	r->eligible = eligible;
	r->leaving = any ? leaving : NULL;
	r->held = held_build(b, c->name);
	r->nmember = n;
}

void
state_pools_judge(struct state_build *b)
{
	const struct conf *c = b->in->conf;
	struct state *s = b->s;
	size_t i;

	s->npool = c->npool;
	s->pool = arena_calloc(b->a, s->npool, sizeof(*s->pool));
	for (i = 0; i < c->npool; i++) {
		members_build(b, &c->pool[i], &s->pool[i]);
		pool_judge(b, &c->pool[i], &s->pool[i]);
	}
}

int
state_pools(struct state_build *b)
{
	const struct conf *c = b->in->conf;
	struct state *s = b->s;
	size_t i;

	state_pools_judge(b);
	s->nring = c->npool;
	s->ring = arena_calloc(b->a, s->nring, sizeof(*s->ring));
	for (i = 0; i < c->npool; i++) {
		s->ring[i].pool = c->pool[i].name;
		ring_build(b, &c->pool[i], &s->pool[i], &s->ring[i]);
	}
	return state_number(b, NUMBER_RING);
}
