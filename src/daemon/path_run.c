/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the paths to backends carry, at run time: whom to ask, and what follows. */
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/rows.h"
#include "daemon/daemon.h"
#include "io/log.h"
#include "io/maps.h"

#define PATH_LOCAL_MS 5000	/* until it is tried again where we could not */

/* The next hops that an earlier xlbd left have what it had found: a restart
 * makes no black hole. */
void
path_adopt(struct daemon *d)
{
	struct arena *a = arena_new();
	struct state_nexthop **by_number;
	struct state s;
	size_t i;

	if (maps_read(prog_maps(d->prog), a, &s) < 0) {
		arena_free(a);
		return;
	}
	by_number = arena_calloc(a, XLB_NEXTHOPS, sizeof(*by_number));
	for (i = 0; i < s.nnexthop; i++)
		if (s.nexthop[i].number < XLB_NEXTHOPS)
			by_number[s.nexthop[i].number] = &s.nexthop[i];
	d->paths.row = calloc(s.nbackend + 1, sizeof(*d->paths.row));
	if (d->paths.row == NULL)
		fatal("paths");
	for (i = 0; i < s.nbackend; i++) {
		d->paths.row[i].addr = s.backend[i].addr;
		if (s.backend[i].nexthop < XLB_NEXTHOPS &&
		    by_number[s.backend[i].nexthop] != NULL)
			d->paths.row[i].carries =
			    by_number[s.backend[i].nexthop]->mtu;
	}
	d->paths.n = s.nbackend;
	arena_free(a);
}

static bool
is_path(const struct health_target *t)
{
	return !addr_is_zero(&t->vip) &&
	    (t->form == FORWARD_IPIP || t->form == FORWARD_GUE);
}

/* The first row of a backend's health; targets are the same. */
static size_t
health_first(const struct health_table *t, const struct addr *addr)
{
	size_t lo = 0, hi = t->n, mid;

	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (addr_cmp(&t->row[mid].addr, addr) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* One that answers: so something may be heard of the path. NULL: none. */
static const struct health_target *
path_target(const struct daemon *d, const struct addr *addr)
{
	const struct health_table *h = &d->health;
	size_t i;

	for (i = health_first(h, addr); i < h->n &&
	    addr_cmp(&h->row[i].addr, addr) == 0; i++)
		if (is_path(&d->health_target[i]) &&
		    health_is_alive(h->row[i].fsm.state))
			return &d->health_target[i];
	return NULL;
}

/* False: there is no way to it at the moment. */
static bool
path_limit(const struct daemon *d, struct path_mtu *p)
{
	const struct hop_table *hops = netlink_hops(d->nl);
	const struct hop *hop = rows_find(&p->addr, hops->row, hops->n,
	    sizeof(*hop), addr_order);
	uint32_t limit = d->config->conf->tunnel_mtu;

	if (hop == NULL || hop->status != HOP_OK)
		return false;
	if (limit == 0 || limit > hop->nexthop.mtu)
		limit = hop->nexthop.mtu;
	path_mtu_limit(p, (uint16_t)limit);
	return true;
}

static bool
path_ask(size_t id, struct path_question *q, void *arg)
{
	struct daemon *d = arg;
	struct path_mtu *p = &d->paths.row[d->path_asked[id]];
	const struct health_target *t = path_target(d, &p->addr);

	if (t == NULL || !path_limit(d, p))
		return false;
	q->mark = health_target_mark(d, &d->wanted, t, &q->src);
	q->vip = t->vip;
	q->size = (uint16_t)(path_mtu_ask(p) -
	    path_overhead(t->form, &p->addr));
	return q->mark != 0;
}

static const char *
path_name(const struct conf *c, const struct addr *addr, char buf[256])
{
	char text[ADDR_STR_MAX];
	size_t i, k;

	addr_print(addr, text);
	for (i = 0; i < c->npool; i++)
		for (k = 0; k < c->pool[i].nbackend; k++)
			if (addr_cmp(&c->pool[i].backend[k].address,
			    addr) == 0) {
				snprintf(buf, 256, "%s/%s (%s)",
				    c->pool[i].name,
				    c->pool[i].backend[k].name, text);
				return buf;
			}
	snprintf(buf, 256, "%s", text);
	return buf;
}

static uint32_t
path_said(size_t id, enum probe_result r, void *arg)
{
	struct daemon *d = arg;
	struct path_mtu *p = &d->paths.row[d->path_asked[id]];
	uint16_t before = p->carries;
	bool changed;
	char name[256];
	uint32_t ms;

	if (r == PROBE_LOCAL)
		return PATH_LOCAL_MS;
	ms = path_mtu_step(p, r == PROBE_OK, &changed);
	if (!changed)
		return ms;
	path_name(d->config->conf, &p->addr, name);
	if (p->carries < p->limit)
		log_warnx("path to %s carries %u, of the %u that its link "
		    "takes: what is larger is answered \"too big\"", name,
		    p->carries, p->limit);
	else if (before != 0)
		log_info("path to %s carries %u again", name, p->carries);
	reconcile_soon(d);
	return ms;
}

/* Routers say so of packets of clients, too, long before the next round. */
static void
path_error(const struct addr *to, const struct addr *from, uint16_t mtu,
    void *arg)
{
	struct daemon *d = arg;
	struct path_mtu *p = path_find(&d->paths, to);
	char name[256], by[ADDR_STR_MAX];
	size_t i;

	if (p == NULL || !path_limit(d, p) ||
	    !path_mtu_error(p, mtu, daemon_now()))
		return;
	log_warnx("path to %s carries %u, of the %u that its link takes, says "
	    "%s: what is larger is answered \"too big\"", path_name(
	    d->config->conf, to, name), mtu, p->limit, addr_print(from, by));
	for (i = 0; i < d->npath_asked; i++)
		if (&d->paths.row[d->path_asked[i]] == p)
			prober_path_soon(d->prober, i);
	reconcile_soon(d);
}

void
path_tick(struct daemon *d)
{
	char name[256];
	struct path_mtu *p;
	uint16_t was;
	size_t i;

	for (i = 0; i < d->paths.n; i++) {
		p = &d->paths.row[i];
		was = p->carries;
		path_limit(d, p);
		if (!path_mtu_expire(p, daemon_now()))
			continue;
		log_info("path to %s: that it carries %u was last said ten "
		    "minutes ago: what its link takes is tried again",
		    path_name(d->config->conf, &p->addr, name), was);
		reconcile_soon(d);
	}
}

static bool
is_tunnelled(const struct conf_service *s)
{
	return s->pool != NULL && (s->forward == FORWARD_IPIP ||
	    s->forward == FORWARD_GUE);
}

/* Everybody that packets are tunnelled to, sorted. */
static void
paths_collect(const struct conf *c, struct path_table *t)
{
	const struct conf_service *s;
	size_t i, k, n = 0;

	for (i = 0; i < c->nservice; i++)
		n += is_tunnelled(&c->service[i]) ?
		    c->service[i].pool->nbackend : 0;
	t->row = calloc(n + 1, sizeof(*t->row));
	if (t->row == NULL)
		fatal("paths");
	for (i = n = 0; i < c->nservice; i++) {
		s = &c->service[i];
		for (k = 0; is_tunnelled(s) && k < s->pool->nbackend; k++)
			t->row[n++].addr = s->pool->backend[k].address;
	}
	rows_sort(t->row, n, sizeof(*t->row), addr_order);
	t->n = rows_unique(t->row, n, sizeof(*t->row), addr_order);
}

/* What is known of one is kept. Those that checks reach through the tunnel are
 * asked; of the others is known what routers say. */
void
path_follow(struct daemon *d)
{
	struct path_table old = d->paths;
	const struct path_mtu *known;
	const struct health_target *t;
	struct path_mtu *row;
	size_t i, k;
	int rc;

	paths_collect(d->config->conf, &d->paths);
	free(d->path_asked);
	d->path_asked = calloc(d->paths.n + 1, sizeof(*d->path_asked));
	if (d->path_asked == NULL)
		fatal("paths");
	d->npath_asked = 0;
	for (i = 0; i < d->paths.n; i++) {
		row = &d->paths.row[i];
		known = path_find(&old, &row->addr);
		if (known != NULL)
			*row = *known;
		for (k = health_first(&d->health, &row->addr), t = NULL;
		    t == NULL && k < d->health.n &&
		    addr_cmp(&d->health.row[k].addr, &row->addr) == 0; k++)
			if (is_path(&d->health_target[k]))
				t = &d->health_target[k];
		if (t != NULL)
			d->path_asked[d->npath_asked++] = i;
		else if (row->carries != 0 && row->learned.ns == 0)
			row->learned = daemon_now();	/* by no probe of ours */
	}
	free(old.row);
	rc = prober_paths(d->prober, d->npath_asked, path_ask, path_said);
	if (rc < 0)
		log_warnx("prober: %s: paths are not asked", strerror(-rc));
	rc = prober_errors(d->prober, d->config->conf->gue_port, path_error);
	if (rc < 0)
		log_warnx("prober: %s: what routers say of paths is not heard",
		    strerror(-rc));
}
