/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A larger flow table: a new map, the program anew with it, entries carried
 * over before packets use it and once more after. */
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

/*
 * The pin goes first: whoever starts after a crash finds the new table under
 * it and makes the program anew. Until then the links have one that is whole.
 */
static int
grow_switch(struct prog *p, struct load *l, struct xlb_flow_set *to,
    uint32_t sets)
{
	struct maps *m = p->maps;
	int rc;

	flow_copy(m->flows, m->sets, to, sets, maps_tick());
	rc = pin_replace(p->dir, map_name[MAP_FLOWS], l->fd[MAP_FLOWS]);
	if (rc == 0)
		rc = prog_switch(p, l);
	if (rc == 0)
		rc = maps_grace(m);	/* no packet writes the old one */
	if (rc < 0) {
		pin_replace(p->dir, map_name[MAP_FLOWS], m->fd[MAP_FLOWS]);
		return rc;
	}
	flow_copy(m->flows, m->sets, to, sets, maps_tick());
	flows_unmap(m);
	close(m->fd[MAP_FLOWS]);
	m->fd[MAP_FLOWS] = l->fd[MAP_FLOWS];
	l->fd[MAP_FLOWS] = -1;
	m->flows = to;
	m->sets = sets;
	sweep_flows(m->sweep, to, sets);
	return 0;
}

int
prog_grow(struct prog *p, const struct prog_config *c)
{
	uint32_t sets = c->flow_entries / XLB_FLOW_WAYS, was = p->maps->sets;
	struct prog_config own = *c;
	struct xlb_flow_set *to = NULL;
	struct load l;
	int rc;

	if (sets <= was)
		return 0;
	own.frags = p->frags;
	rc = grow_load(&l, &own);
	if (rc == 0) {
		to = maps_map(l.fd[MAP_FLOWS], (size_t)sets * sizeof(*to));
		rc = to == NULL ? -errno : grow_switch(p, &l, to, sets);
	}
	if (rc < 0) {
		maps_unmap(to, (size_t)sets * sizeof(*to));
		log_warnx("flow_table.entries: %u, %zu MB of memory: %s: it "
		    "stays at %u", c->flow_entries,
		    (size_t)sets * sizeof(*to) >> 20, strerror(-rc),
		    was * XLB_FLOW_WAYS);
	} else {
		log_info("flow_table.entries: %u -> %u", was * XLB_FLOW_WAYS,
		    c->flow_entries);
	}
	load_fini(&l);
	return rc;
}
