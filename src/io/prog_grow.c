/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A larger flow table: a new map, the program anew with it, entries carried
 * over before packets use it and once more after. The verifier takes a second or
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
	struct xlb_flow_set *to;	/* the new table; NULL */
	uint32_t sets;
	int rc;
	struct work *work;
	void (*done)(int rc, void *arg);
	void *arg;
};

/* Every map but the flow table is the one in use. */
static int
grow_load(struct load *l, const struct prog_config *c)
{
	int rc;

	rc = load_init(c, l);
	if (rc == 0)
		rc = load_pins_but(l, MAP_FLOWS);
	if (rc == 0)
		rc = load_run(l);
	if (rc < 0)
		return rc;
	l->fd[MAP_FLOWS] = dup(bpf_map__fd(l->map[MAP_FLOWS]));
	return l->fd[MAP_FLOWS] < 0 ? -errno : 0;
}

/* Changes nothing that is in use, and reads nothing that changes meanwhile but
 * the entries. */
static void
grow_prepare(void *arg)
{
	struct grow *g = arg;
	const struct maps *m = g->p->maps;

	g->rc = grow_load(&g->l, &g->c);
	if (g->rc < 0)
		return;
	g->to = maps_map(g->l.fd[MAP_FLOWS], (size_t)g->sets * sizeof(*g->to));
	if (g->to == NULL)
		g->rc = -errno;
	else
		flow_copy(m->flows, m->sets, g->to, g->sets, maps_tick());
}

/*
 * The pin goes first: whoever starts after a crash finds the new table under
 * it and makes the program anew. Until then the links have one that is whole.
 */
static int
grow_switch(struct grow *g)
{
	struct maps *m = g->p->maps;
	int rc;

	/* what came since the first time is most of what is not there yet */
	flow_copy(m->flows, m->sets, g->to, g->sets, maps_tick());
	rc = pin_replace(g->p->dir, map_name[MAP_FLOWS], g->l.fd[MAP_FLOWS]);
	if (rc == 0)
		rc = prog_switch(g->p, &g->l);
	if (rc == 0)
		rc = maps_grace(m);	/* no packet writes the old one */
	if (rc < 0) {
		pin_replace(g->p->dir, map_name[MAP_FLOWS], m->fd[MAP_FLOWS]);
		return rc;
	}
	flow_copy(m->flows, m->sets, g->to, g->sets, maps_tick());
	flows_unmap(m);
	close(m->fd[MAP_FLOWS]);
	m->fd[MAP_FLOWS] = g->l.fd[MAP_FLOWS];
	g->l.fd[MAP_FLOWS] = -1;
	m->flows = g->to;
	m->sets = g->sets;
	sweep_flows(m->sweep, g->to, g->sets);
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
	g->sets = c->flow_entries / XLB_FLOW_WAYS;
	return g;
}

/* What it has is put into use, or given back. */
static int
grow_finish(struct grow *g)
{
	uint32_t was = g->p->maps->sets;
	int rc = g->rc;

	if (rc == 0)
		rc = grow_switch(g);
	if (rc < 0) {
		maps_unmap(g->to, (size_t)g->sets * sizeof(*g->to));
		log_warnx("flow_table.entries: %u, %zu MB of memory: %s: it "
		    "stays at %u", g->c.flow_entries,
		    (size_t)g->sets * sizeof(*g->to) >> 20, strerror(-rc),
		    was * XLB_FLOW_WAYS);
	} else {
		log_info("flow_table.entries: %u -> %u", was * XLB_FLOW_WAYS,
		    g->c.flow_entries);
	}
	load_fini(&g->l);
	return rc;
}

int
prog_grow(struct prog *p, const struct prog_config *c)
{
	struct grow *g;
	int rc;

	if (c->flow_entries / XLB_FLOW_WAYS <= p->maps->sets)
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

	if (p->grow != NULL || c->flow_entries / XLB_FLOW_WAYS <= p->maps->sets)
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
	maps_unmap(g->to, (size_t)g->sets * sizeof(*g->to));
	load_fini(&g->l);
	free(g);
	p->grow = NULL;
}
