/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Health at run time: targets for the prober, verdicts in the pinned map. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/rows.h"
#include "daemon/daemon.h"
#include "io/log.h"
#include "io/maps.h"
#include "probe_abi.h"

/* Verdicts that an earlier xlbd left: a restart does not begin with unknown
 * backends. Names live until health_follow() replaces the table. */
void
health_adopt(struct daemon *d)
{
	struct health_table t;

	if (maps_health_read(prog_maps(d->prog), d->arena, &t) < 0)
		return;
	d->health.row = reallocarray(NULL, t.n + 1, sizeof(*t.row));
	if (d->health.row == NULL)
		fatal("health");
	if (t.n > 0)
		memcpy(d->health.row, t.row, t.n * sizeof(*t.row));
	d->health.n = t.n;
}

/* What is known of a target: a changed check keeps the verdict, and counts
 * anew. */
static void
row_inherit(struct health_row *row, const struct health_table *old,
    const struct health_target *t)
{
	const struct health_row *known = health_find(old, t);

	if (known == NULL)
		known = health_kin(old, t);
	if (known == NULL)
		return;
	row->fsm = known->fsm;
	row->fsm.run = 0;
	row->fsm.anew = true;
	row->passed = known->passed;
	row->since = known->since;
}

/* Verdicts of what is gone are deleted, and what was inherited is kept. */
static void
row_store(const void *want, const void *found, void *arg)
{
	const struct health_row *new = want;

	if (new == NULL)
		maps_health_del(arg, found);
	else if (found == NULL && new->fsm.state != HEALTH_UNKNOWN)
		maps_health_put(arg, new);
}

static void
rows_make(const struct health_target *t, size_t n,
    const struct health_table *old, struct health_row *row)
{
	size_t i;

	for (i = 0; i < n; i++, row++) {
		row->addr = t[i].addr;
		row->vip = t[i].vip;
		row->port = t[i].port;
		row->check = t[i].check->name;
		row_inherit(row, old, &t[i]);
	}
}

void
health_foretell(const struct daemon *d, const struct conf *c, struct arena *a,
    struct health_table *out)
{
	const struct health_target *t = health_targets(c, a, &out->n);

	out->row = arena_calloc(a, out->n + 1, sizeof(*out->row));
	rows_make(t, out->n, &d->health, out->row);
}

/* Follows a new configuration: rows that stay keep their verdict, others start
 * with that of their kin, or unknown. */
void
health_follow(struct daemon *d, const struct conf *c)
{
	struct arena *a = arena_new();
	struct health_table old = d->health, new = { 0 };
	struct health_target *t;
	size_t i;
	int rc;

	t = health_targets(c, a, &new.n);
	new.row = calloc(new.n + 1, sizeof(*new.row));
	free(d->health_target);
	d->health_target = calloc(new.n + 1, sizeof(*d->health_target));
	if (new.row == NULL || d->health_target == NULL)
		fatal("health");
	rows_make(t, new.n, &old, new.row);
	if (new.n > 0)
		memcpy(d->health_target, t, new.n * sizeof(*t));
	rows_walk(new.row, new.n, old.row, old.n, sizeof(*new.row), health_row_cmp,
	    row_store, prog_maps(d->prog));
	d->health = new;
	free(old.row);
	rc = prober_set(d->prober, t, new.n);
	if (rc < 0)
		log_warnx("prober: %s: health is not followed", strerror(-rc));
	arena_free(a);
	d->tunnelled = false;
	for (i = 0; i < new.n; i++)
		d->tunnelled |= !addr_is_zero(&new.row[i].vip);
}

struct mending {
	struct maps *maps;
	size_t n;
};

static void
row_mend(const void *want, const void *found, void *arg)
{
	const struct health_row *w = want, *f = found;
	struct mending *m = arg;
	int rc = 0;

	if (w != NULL && w->fsm.state == HEALTH_UNKNOWN)
		w = NULL;
	if (w == NULL && f == NULL)
		return;
	if (w == NULL)
		rc = maps_health_del(m->maps, f);
	else if (f != NULL && f->fsm.state == w->fsm.state &&
	    f->passed == w->passed && f->since == w->since)
		return;
	else
		rc = maps_health_put(m->maps, w);
	m->n += rc == 0;
}

size_t
health_mend(struct daemon *d)
{
	struct mending m = { .maps = prog_maps(d->prog) };
	struct arena *a = arena_new();
	struct health_table t;

	if (maps_health_read(m.maps, a, &t) == 0)
		rows_walk(d->health.row, d->health.n, t.row, t.n,
		    sizeof(*t.row), health_row_cmp, row_mend, &m);
	arena_free(a);
	return m.n;
}

/* A VIP that this node has itself would be asked here. */
uint32_t
health_target_mark(const struct daemon *d, const struct state *s,
    const struct health_target *t, struct addr *src)
{
	const struct hop_table *hops = netlink_hops(d->nl);
	const struct state_backend *b;
	const struct state_vip *vip;
	const struct hop *hop;

	memset(src, 0, sizeof(*src));
	b = rows_find(&t->addr, s->backend, s->nbackend, sizeof(*b), addr_order);
	vip = rows_find(&t->vip, s->vip, s->nvip, sizeof(*vip), addr_order);
	hop = rows_find(&t->addr, hops->row, hops->n, sizeof(*hop), addr_order);
	if (b == NULL || b->number == 0 || vip == NULL ||
	    (vip->flags & XLB_VIP_LOCAL) || !tunnel_ready(d->tunnel))
		return 0;
	if (hop != NULL && hop->status == HOP_OK &&
	    addr_is4(&hop->nexthop.src) == addr_is4(&t->vip))
		*src = hop->nexthop.src;
	return PROBE_MARK_OF(b->number, t->form);
}

void
health_mark(struct daemon *d, const struct state *s)
{
	const struct health_target *t;
	struct addr src;
	uint32_t mark;
	int mended;
	size_t i;

	if (d->lifecycle.removed || !d->tunnelled) {
		tunnel_remove(d->tunnel);
		return;
	}
	mended = tunnel_mend(d->tunnel);
	if (mended > 0)
		d->drift.n[DRIFT_PROBES] += (uint64_t)mended;
	for (i = 0; i < d->health.n; i++) {
		t = &d->health_target[i];
		if (addr_is_zero(&t->vip))
			continue;
		mark = health_target_mark(d, s, t, &src);
		prober_mark(d->prober, i, mark, &src);
	}
}

/* Names each pool and backend that has this address, for the log. */
static void
health_log(const struct daemon *d, const struct health_row *row,
    enum health_state from)
{
	const struct conf *c = d->config->conf;
	const struct conf_pool *p;
	char object[256], where[ADDRPORT_STR_MAX], why[HEALTH_WHY_MAX];
	char addr[ADDR_STR_MAX];
	bool tunnel = !addr_is_zero(&row->vip);
	size_t i, k;

	for (i = 0; i < c->npool; i++) {
		p = &c->pool[i];
		if (p->check == NULL || strcmp(p->check->name, row->check) != 0)
			continue;
		for (k = 0; k < p->nbackend; k++) {
			if (addr_cmp(&p->backend[k].address, &row->addr) != 0)
				continue;
			snprintf(object, sizeof(object), "backend %s/%s (%s%s%s)",
			    p->name, p->backend[k].name,
			    tunnel ? addr_print(&row->addr, addr) : "",
			    tunnel ? " for " : "",
			    health_where(tunnel ? &row->vip : &row->addr,
			    row->port, where));
			log_change(object, health_state_text(from),
			    health_state_text(row->fsm.state),
			    health_why_print(&row->fsm, p->check, why));
		}
	}
}

void
health_result(size_t id, enum probe_result r, uint16_t detail,
    const char *said, void *arg)
{
	struct daemon *d = arg;
	struct health_row *row = &d->health.row[id];
	enum health_state from = row->fsm.state;
	enum probe_result why = row->fsm.why;

	count_probe(&d->count, d->health_target[id].check, r,
	    prober_took(d->prober));
	if (r == PROBE_TIMEOUT || r == PROBE_UNREACHABLE)
		netlink_doubt(d->nl, &row->addr);
	if (!health_step(&row->fsm, d->health_target[id].check, r, detail,
	    said)) {
		/* the way through the tunnel is by our own rows: they are put
		 * right before silence becomes a verdict */
		if (r == PROBE_TIMEOUT && health_is_alive(from) &&
		    !addr_is_zero(&row->vip))
			reconcile_look(d);
		/* shown, and kept for the next xlbd; no change of state, so
		 * no line in the log */
		if (row->fsm.why != why)
			maps_health_put(prog_maps(d->prog), row);
		return;
	}
	row->since = daemon_realtime();
	row->passed |= health_is_alive(row->fsm.state);
	health_log(d, row, from);
	maps_health_put(prog_maps(d->prog), row);
	reconcile_soon(d);
}
