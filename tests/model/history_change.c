/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the operator and the backends do, and how xlbd fares with it. */
#include "history.h"

#include <stdio.h>

static void
kill_late(struct history *h, unsigned i, void (*fn)(struct node *))
{
	unsigned writes = rng_below(&h->rng, rng_chance(&h->rng, 50) ? 12 : 600);
	bool killed = node_kill_in(&h->node[i], fn, writes);

	history_log(h, "xlbd of node %u %s after %u pages", i,
	    killed ? "killed" : "ended", writes);
	h->count->kills += killed;
	h->back[i] = (int64_t)kernel_ns() +
	    (int64_t)rng_below(&h->rng, 6000) * 1000000;
}

void
change_start(struct history *h, unsigned i)
{
	node_start(&h->node[i]);
	history_log(h, "xlbd of node %u starts", i);
	h->settled[i] = true;
	h->back[i] = 0;
}

static void
reload_and_reconcile(struct node *n)
{
	node_reconcile(n);
}

void
change_apply(struct history *h, unsigned i)
{
	struct node *n = &h->node[i];

	node_reload(n, &h->site);
	if (h->settled[i])
		h->left[i] = (int64_t)kernel_ns();
	h->settled[i] = false;
	if (n->maps == NULL)
		return;
	if (h->profile->kills && rng_chance(&h->rng, 15)) {
		kill_late(h, i, reload_and_reconcile);
		return;
	}
	node_reconcile(n);
	h->settled[i] = true;
}

/* Health, for all nodes: one hears of it first. */
static void
flap(struct history *h, unsigned b)
{
	bool up = !h->node[0].up[b];
	unsigned i;

	history_log(h, "b%u is %s", b, up ? "up" : "down");
	for (i = 0; i < h->profile->nodes; i++)
		h->node[i].up[b] = up;
}

static unsigned
members(const struct site_pool *p)
{
	unsigned i, n = 0;

	for (i = 0; i < SITE_BACKENDS; i++)
		n += p->member[i].in;
	return n;
}

static void
change_member(struct history *h)
{
	struct rng *r = &h->rng;
	unsigned pool = rng_below(r, h->site.npool);
	unsigned b = rng_below(r, h->site.nbackend);
	struct site_pool *p = &h->site.pool[pool];
	struct site_member *m = &p->member[b];

	if (!m->in || (members(p) > 4 && rng_chance(r, 20))) {
		*m = (struct site_member){ .in = !m->in, .weight = 100,
		    .state = BACKEND_ACTIVE };
		history_log(h, "%s: b%u %s", p->name, b,
		    m->in ? "added" : "removed");
	} else if (rng_chance(r, 20)) {
		m->weight = rng_chance(r, 20) ? 0 : rng_range(r, 40, 200);
		history_log(h, "%s: b%u weighs %u", p->name, b, m->weight);
	} else if (m->state != BACKEND_ACTIVE) {
		m->state = BACKEND_ACTIVE;
		m->said = 0;
		history_log(h, "%s: b%u active", p->name, b);
	} else {
		m->state = rng_chance(r, 85) ? BACKEND_DRAIN : BACKEND_DOWN;
		if (m->state == BACKEND_DRAIN && rng_chance(r, 50))
			m->said = (int64_t)kernel_ns();
		history_log(h, "%s: b%u %s", p->name, b,
		    m->state == BACKEND_DRAIN ? "drains" : "down");
	}
}

static void
change_pool(struct history *h)
{
	struct rng *r = &h->rng;
	unsigned s = rng_below(r, h->site.nservice);
	struct site_pool *p;

	if (rng_chance(r, 25)) {
		p = &h->site.pool[rng_below(r, h->site.npool)];
		snprintf(p->name, sizeof(p->name), "pool-%u", h->renamed++);
		history_log(h, "a pool is called %s", p->name);
		return;
	}
	h->site.service[s].pool = rng_below(r, h->site.npool);
	history_log(h, "service %u uses %s", s,
	    h->site.pool[h->site.service[s].pool].name);
}

void
change_step(struct history *h)
{
	struct rng *r = &h->rng;
	unsigned i, what = rng_below(r, 100);

	h->count->changes++;
	if (h->profile->kills && what < 8) {
		i = rng_below(r, h->profile->nodes);
		if (h->node[i].maps != NULL)
			kill_late(h, i, node_tidy_all);
		return;
	}
	if (what < 45)
		flap(h, rng_below(r, h->site.nbackend));
	else if (what < 90 || !h->profile->pools)
		change_member(h);
	else
		change_pool(h);
	flows_void(h);
	for (i = 0; i < h->profile->nodes; i++) {
		lru_build(&h->lru[i], &h->site, h->node[0].up);
		change_apply(h, i);
	}
}
