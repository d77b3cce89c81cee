/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Larger tables of flows: new maps, the program anew with them, entries carried
 * over before packets use them and once more after. The verifier takes a second or
 * two, and memory its time: that is done beside the loop. */
#include "io/prog_load.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/flow_copy.h"
#include "core/sweep.h"
#include "io/log.h"
#include "io/work.h"

struct grow {
	struct prog *p;
	struct prog_config c;
	struct load l;
	uint32_t maps;		/* bits: those that are to be larger */
	struct xlb_flow_set *flows;	/* the new tables; NULL */
	uint32_t sets;
	struct xlb_nat *nat;
	uint32_t rows;
	bool copied;		/* and when last: a tick */
	uint32_t at;
	int rc;
	struct work *work;
	void (*done)(int rc, void *arg);
	void *arg;
};

static bool
grows(const struct grow *g, enum map_id i)
{
	return g->maps >> i & 1;
}

/* Which tables are less than what is asked for. */
static uint32_t
grow_maps(const struct prog *p, const struct prog_config *c)
{
	uint32_t maps = 0;

	if (c->flow_entries / XLB_FLOW_WAYS > p->maps->sets)
		maps |= 1U << MAP_FLOWS;
	if (c->nat && c->flow_entries > p->maps->nat_rows)
		maps |= 1U << MAP_NAT;
	return maps;
}

/* Every map but those tables is the one in use. */
static int
grow_load(struct grow *g)
{
	struct load *l = &g->l;
	int i, rc;

	rc = load_init(&g->c, l);
	if (rc == 0)
		rc = load_pins_but(l, g->maps);
	if (rc == 0)
		rc = load_run(l);
	for (i = 0; rc == 0 && i < MAP_IDS; i++) {
		if (!grows(g, (enum map_id)i))
			continue;
		l->fd[i] = dup(bpf_map__fd(l->map[i]));
		if (l->fd[i] < 0)
			rc = -errno;
	}
	return rc;
}

static int
grow_map(struct grow *g)
{
	if (grows(g, MAP_FLOWS)) {
		g->flows = maps_map(g->l.fd[MAP_FLOWS],
		    (size_t)g->sets * sizeof(*g->flows));
		if (g->flows == NULL)
			return -errno;
	}
	if (grows(g, MAP_NAT)) {
		g->nat = maps_map(g->l.fd[MAP_NAT],
		    (size_t)g->rows * sizeof(*g->nat));
		if (g->nat == NULL)
			return -errno;
	}
	return 0;
}

static void
grow_unmap(struct grow *g)
{
	maps_unmap(g->flows, (size_t)g->sets * sizeof(*g->flows));
	maps_unmap(g->nat, (size_t)g->rows * sizeof(*g->nat));
}

/* `used`: packets use the new ones already. */
static void
grow_copy(struct grow *g, bool used)
{
	struct nat_copy c = { .to = g->nat, .rows = g->rows,
	    .all = !g->copied, .since = g->at, .used = used };
	const struct maps *m = g->p->maps;
	uint32_t tick = maps_tick();

	if (g->flows != NULL)
		flow_copy(m->flows, m->sets, g->flows, g->sets, tick);
	if (g->nat != NULL)
		nat_copy(m, &c);
	g->copied = true;
	g->at = tick;
}

/* Changes nothing that is in use, and reads nothing that changes meanwhile but
 * the entries. */
static void
grow_prepare(void *arg)
{
	struct grow *g = arg;

	g->rc = grow_load(g);
	if (g->rc == 0)
		g->rc = grow_map(g);
	if (g->rc == 0)
		grow_copy(g, false);
}

static int
grow_pin(const struct grow *g, const int fd[MAP_IDS])
{
	int i, rc = 0;

	for (i = 0; rc == 0 && i < MAP_IDS; i++)
		if (grows(g, (enum map_id)i))
			rc = pin_replace(g->p->dir, map_name[i], fd[i]);
	return rc;
}

/* The new ones are the maps' own from now on. */
static void
grow_take(struct grow *g)
{
	struct maps *m = g->p->maps;
	int i;

	for (i = 0; i < MAP_IDS; i++) {
		if (!grows(g, (enum map_id)i))
			continue;
		close(m->fd[i]);
		m->fd[i] = g->l.fd[i];
		g->l.fd[i] = -1;
	}
	if (g->flows != NULL) {
		flows_unmap(m);
		m->flows = g->flows;
		m->sets = g->sets;
		sweep_flows(m->sweep, m->flows, m->sets);
	}
	if (g->nat != NULL)
		nat_take(m, g->nat, g->rows);
}

/*
 * The pins go first: whoever starts after a crash finds the new tables under
 * them and makes the program anew. Until then the links have one that is whole.
 */
static int
grow_switch(struct grow *g)
{
	struct maps *m = g->p->maps;
	int rc;

	/* what came since the first time is most of what is not there yet */
	grow_copy(g, false);
	rc = grow_pin(g, g->l.fd);
	if (rc == 0)
		rc = prog_switch(g->p, &g->l);
	if (rc < 0) {
		grow_pin(g, m->fd);
		return rc;
	}
	/* no packet writes the old ones; without it some of the last entries are
	 * not copied, and there is no way back */
	rc = maps_grace(m);
	if (rc < 0)
		log_warnx("maps: no grace period: %s", strerror(-rc));
	grow_copy(g, true);
	grow_take(g);
	return 0;
}

static struct grow *
grow_new(struct prog *p, const struct prog_config *c)
{
	struct grow *g = calloc(1, sizeof(*g));

	if (g == NULL)
		fatal("prog");
	g->p = p;
	g->c = *c;
	g->c.bpf_dir = p->dir;
	g->c.frags = p->frags;
	g->maps = grow_maps(p, c);
	g->sets = c->flow_entries / XLB_FLOW_WAYS;
	g->rows = c->flow_entries;
	return g;
}

static void
grow_say(const struct grow *g, uint32_t was, uint32_t rows, int rc)
{
	if (rc < 0 && grows(g, MAP_FLOWS))
		log_warnx("flow_table.entries: %u, %zu MB of memory: %s: it "
		    "stays at %u", g->c.flow_entries,
		    (size_t)g->sets * sizeof(*g->flows) >> 20, strerror(-rc),
		    was);
	else if (grows(g, MAP_FLOWS))
		log_info("flow_table.entries: %u -> %u", was,
		    g->c.flow_entries);
	if (rc < 0 && grows(g, MAP_NAT))
		log_warnx("nat: a table of %u rows, %zu MB of memory: %s: it "
		    "stays at %u", g->rows,
		    (size_t)g->rows * sizeof(*g->nat) >> 20, strerror(-rc),
		    rows);
	else if (grows(g, MAP_NAT))
		log_info("nat: a table of %u rows", g->rows);
}

/* What it has is put into use, or given back. */
static int
grow_finish(struct grow *g)
{
	uint32_t was = maps_flow_entries(g->p->maps);
	uint32_t rows = maps_nat_rows(g->p->maps);
	int rc = g->rc;

	if (rc == 0)
		rc = grow_switch(g);
	if (rc < 0)
		grow_unmap(g);
	grow_say(g, was, rows, rc);
	load_fini(&g->l);
	return rc;
}

int
prog_grow(struct prog *p, const struct prog_config *c)
{
	struct grow *g;
	int rc;

	if (grow_maps(p, c) == 0)
		return 0;
	g = grow_new(p, c);
	grow_prepare(g);
	rc = grow_finish(g);
	free(g);
	return rc;
}

static void
grow_over(void *arg)
{
	struct grow *g = arg;
	int rc;

	g->p->grow = NULL;
	work_close(g->work);
	rc = grow_finish(g);
	g->done(rc, g->arg);
	free(g);
}

int
prog_grow_begin(struct prog *p, const struct prog_config *c, sd_event *ev,
    void (*done)(int rc, void *arg), void *arg)
{
	struct grow *g;
	int rc;

	if (p->grow != NULL || grow_maps(p, c) == 0)
		return 0;
	g = grow_new(p, c);
	g->done = done;
	g->arg = arg;
	rc = work_open(ev, grow_prepare, grow_over, g, &g->work);
	if (rc < 0) {
		log_warnx("flow_table.entries: %s", strerror(-rc));
		free(g);
		return rc;
	}
	p->grow = g;
	return 0;
}

bool
prog_growing(const struct prog *p)
{
	return p->grow != NULL;
}

/* Waits for what is under way, and forgets it. */
void
grow_close(struct prog *p)
{
	struct grow *g = p->grow;

	if (g == NULL)
		return;
	work_close(g->work);
	grow_unmap(g);
	load_fini(&g->l);
	free(g);
	p->grow = NULL;
}
