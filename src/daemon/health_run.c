/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Health at run time: targets for the prober, verdicts in the pinned map. */
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "daemon/daemon.h"
#include "io/log.h"
#include "io/maps.h"

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

/* Follows a new configuration: rows that stay keep their verdict and count
 * anew, others start unknown, verdicts of what is gone are deleted. */
void
health_follow(struct daemon *d, const struct conf *c)
{
	struct maps *m = prog_maps(d->prog);
	struct arena *a = arena_new();
	struct health_table old = d->health, new = { 0 };
	const struct health_row *known;
	struct health_target *t;
	struct health_row *row;
	size_t i;
	int rc;

	t = health_targets(c, a, &new.n);
	new.row = calloc(new.n + 1, sizeof(*new.row));
	free(d->health_check);
	d->health_check = calloc(new.n + 1, sizeof(*d->health_check));
	if (new.row == NULL || d->health_check == NULL)
		fatal("health");
	for (i = 0; i < new.n; i++) {
		row = &new.row[i];
		row->addr = t[i].addr;
		row->port = t[i].port;
		row->check = t[i].check->name;
		d->health_check[i] = t[i].check;
		known = health_find(&old, &row->addr, row->port, row->check);
		if (known != NULL) {
			row->fsm = known->fsm;
			row->fsm.run = 0;
			row->since = known->since;
		}
	}
	for (i = 0; i < old.n; i++) {
		row = &old.row[i];
		if (health_find(&new, &row->addr, row->port, row->check) ==
		    NULL)
			maps_health_del(m, row);
	}
	d->health = new;
	free(old.row);
	rc = prober_set(d->prober, t, new.n);
	if (rc < 0)
		log_warnx("prober: %s: health is not followed", strerror(-rc));
	arena_free(a);
}

/* Names each pool and backend that has this address, for the log. */
static void
health_log(const struct daemon *d, const struct health_row *row,
    enum health_state from)
{
	const struct conf *c = d->config->conf;
	const struct conf_pool *p;
	char object[256], where[ADDRPORT_STR_MAX], why[HEALTH_WHY_MAX];
	size_t i, k;

	for (i = 0; i < c->npool; i++) {
		p = &c->pool[i];
		if (p->check == NULL || strcmp(p->check->name, row->check) != 0)
			continue;
		for (k = 0; k < p->nbackend; k++) {
			if (addr_cmp(&p->backend[k].address, &row->addr) != 0)
				continue;
			snprintf(object, sizeof(object), "backend %s/%s (%s)",
			    p->name, p->backend[k].name,
			    addrport_print(&row->addr, row->port, where));
			log_change(object, health_state_text(from),
			    health_state_text(row->fsm.state),
			    health_why_print(&row->fsm, p->check, why));
		}
	}
}

void
health_result(size_t id, enum probe_result r, uint16_t detail, void *arg)
{
	struct daemon *d = arg;
	struct health_row *row = &d->health.row[id];
	enum health_state from = row->fsm.state;

	if (r == PROBE_TIMEOUT || r == PROBE_UNREACHABLE)
		netlink_doubt(d->nl, &row->addr);
	if (!health_step(&row->fsm, d->health_check[id], r, detail))
		return;
	row->since = daemon_realtime();
	health_log(d, row, from);
	maps_health_put(prog_maps(d->prog), row);
	reconcile_soon(d);
}
