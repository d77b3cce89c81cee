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

static bool
path_ask(size_t id, struct path_question *q, void *arg)
{
	struct daemon *d = arg;
	struct path_mtu *p = &d->paths.row[id];
	const struct health_target *t = path_target(d, &p->addr);
	const struct hop_table *hops = netlink_hops(d->nl);
	const struct hop *hop = rows_find(&p->addr, hops->row, hops->n,
	    sizeof(*hop), addr_order);
	uint32_t limit = d->config->conf->tunnel_mtu;

	if (t == NULL || hop == NULL || hop->status != HOP_OK)
		return false;
	if (limit == 0 || limit > hop->nexthop.mtu)
		limit = hop->nexthop.mtu;
	path_mtu_limit(p, (uint16_t)limit);
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
	struct path_mtu *p = &d->paths.row[id];
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

/* Those that checks go by, each once; what is known of one is kept. */
void
path_follow(struct daemon *d)
{
	struct path_table old = d->paths, new = { 0 };
	const struct path_mtu *known;
	struct path_mtu *row;
	size_t i;
	int rc;

	new.row = calloc(d->health.n + 1, sizeof(*new.row));
	if (new.row == NULL)
		fatal("paths");
	for (i = 0; i < d->health.n; i++) {
		if (!is_path(&d->health_target[i]) || (new.n > 0 && addr_cmp(
		    &new.row[new.n - 1].addr, &d->health.row[i].addr) == 0))
			continue;
		row = &new.row[new.n++];
		row->addr = d->health.row[i].addr;
		known = path_find(&old, &row->addr);
		if (known != NULL)
			*row = *known;
	}
	free(old.row);
	d->paths = new;
	rc = prober_paths(d->prober, new.n, path_ask, path_said);
	if (rc < 0)
		log_warnx("prober: %s: paths are not asked", strerror(-rc));
}
