/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The one place where the line comes together: configuration, health and next
 * hops make the state wanted; the maps are read back; the difference becomes a
 * plan; the plan is applied between withdrawals and announcements.
 */
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/plan.h"
#include "core/rows.h"
#include "daemon/daemon.h"
#include "io/log.h"
#include "io/maps.h"

#define TICK_US (5 * 1000000ULL)	/* drift is repaired within 10 s */
#define LOOK_MS 100		/* between two, at least */

/* One reconciliation; lives on the stack of reconcile_now(). */
struct run {
	struct daemon *d;
	struct arena *arena;	/* kept as d->arena if all goes well */
	struct state found, wanted;
	struct plan plan;
	uint64_t *fingerprint;	/* of wanted's pools; NULL: not announced, or
				 * not in the maps yet */
	bool *failed;		/* by operation: failed, or not tried */
	size_t nfailed;
};

/* Interfaces by which clients' packets come in, for the way back of NAT. */
static void
input_doors(const struct daemon *d, const struct conf *c,
    struct state_input *in)
{
	struct state_door *door;
	struct netlink_if nif;
	size_t i;

	for (i = 0; i < c->ninterface && in->ndoor < XLB_DOORS; i++) {
		netlink_if(d->nl, c->interface[i].name, &nif);
		if (nif.ifindex == 0)
			continue;
		door = &in->door[in->ndoor++];
		door->ifindex = nif.ifindex;
		memcpy(door->mac, nif.mac, sizeof(door->mac));
		door->mtu = (uint16_t)(nif.mtu < UINT16_MAX ? nif.mtu :
		    UINT16_MAX);
	}
	rows_sort(in->door, in->ndoor, sizeof(in->door[0]), state_door_cmp);
}

struct state_input
reconcile_input(const struct daemon *d, const struct conf *conf,
    const struct state *found)
{
	struct state_input in = {
		.conf = conf,
		.overrides = &d->overrides,
		.health = &d->health,
		.paths = &d->paths,
		.hops = netlink_hops(d->nl),
		.surge = d->tidy.surge.on,
		.now = daemon_realtime(),
		.found = found,
		.before = d->before.npool > 0 ? &d->before : &d->wanted,
	};

	input_doors(d, conf, &in);
	in.named_sources = maps_nat_sources(prog_maps(d->prog));
	in.local = netlink_local(d->nl, &in.nlocal);
	memcpy(in.hash_key, d->config->hash_key, sizeof(in.hash_key));
	return in;
}

int
reconcile_try(const struct daemon *d, const struct conf *conf,
    struct arena *a, struct state *found, struct state *wanted,
    struct diag *dg)
{
	struct mark nowhere = { 0 };
	struct health_table health;
	struct state_input in;

	if (maps_read(prog_maps(d->prog), a, found) < 0) {
		diag_add(dg, DIAG_ERROR, nowhere, "the maps cannot be read");
		return -1;
	}
	in = reconcile_input(d, conf, found);
	health_foretell(d, conf, a, &health);
	in.health = &health;
	return state_build(&in, a, wanted, dg);
}

static void
log_refusals(const struct diag *dg)
{
	size_t i;

	for (i = 0; i < dg->n; i++)
		log_warnx("%s", dg->row[i].text);
}

/* 0, or -1: nothing can be done now (logged). */
static int
run_plan(struct run *r)
{
	struct daemon *d = r->d;
	struct state_input in;
	struct diag dg;
	int rc = 0;

	if (maps_read(prog_maps(d->prog), r->arena, &r->found) < 0)
		return -1;
	if (d->lifecycle.removed) {
		state_empty(&r->wanted, &r->found);
	} else {
		in = reconcile_input(d, d->config->conf, &r->found);
		diag_init(&dg);
		rc = state_build(&in, r->arena, &r->wanted, &dg);
		log_refusals(&dg);
		diag_fini(&dg);
	}
	if (rc < 0)
		return -1;
	plan_build(&r->wanted, &r->found, d->rings, maps_tick(), r->arena,
	    &r->plan);
	r->failed = arena_calloc(r->arena, r->plan.n + 1, sizeof(*r->failed));
	return 0;
}

/* Applies the operations [from, to). One that fails stops those that depend
 * on it and no other; the next reconciliation reads and plans again. */
static void
run_apply(struct run *r, size_t from, size_t to)
{
	struct maps *m = prog_maps(r->d->prog);
	const struct op *op;
	char name[256], why[256];
	size_t i;
	int rc;

	for (i = from; i < to; i++) {
		op = &r->plan.op[i];
		op_print(op, name, sizeof(name));
		if (plan_blocked(&r->plan, r->failed, i)) {
			log_warnx("op %zu/%zu: %s %s: not tried: an operation "
			    "that it needs failed", i + 1, r->plan.n,
			    op_verb(op), name);
			rc = -ECANCELED;
		} else {
			log_debug("op %zu/%zu: %s %s", i + 1, r->plan.n,
			    op_verb(op), name);
			rc = maps_do(m, op);
			if (rc < 0)
				log_warnx("op %zu/%zu: %s %s: %s", i + 1,
				    r->plan.n, op_verb(op), name,
				    op_why(op, -rc, why, sizeof(why)));
		}
		r->failed[i] = rc < 0;
		r->nfailed += rc < 0;
	}
}

static void
run_attach(struct run *r)
{
	struct daemon *d = r->d;
	const struct conf *c = d->config->conf;
	struct netlink_if nif;
	size_t i;
	bool up = false;

	if (d->lifecycle.removed)
		return;
	d->attached = true;
	prog_attach(d->prog, c->interface, c->ninterface, d->link);
	d->refused = false;
	for (i = 0; i < c->ninterface; i++) {
		netlink_if(d->nl, c->interface[i].name, &nif);
		/* no packet comes in by one that is down, or not there, which
		 * it may not have been heard of yet */
		if (nif.up && d->link[i].attached)
			up = true;
		else if (nif.up && d->link[i].ifindex != 0)
			d->refused = true;
		d->drift.n[DRIFT_ATTACHMENT] += d->link[i].again;
	}
	d->datapath = up && !d->refused;
}

static void
bird_apply(struct daemon *d, const struct announce *an)
{
	/* a failure is logged there, seen in status, and tried again */
	if (d->bird != NULL)
		bird_set(d->bird, an, d->config->conf);
}

/* The addresses that the include already announces stand for what an earlier
 * xlbd knew: a restart keeps them without a hold. */
static void
adopt_included(struct daemon *d)
{
	struct prefix *p = NULL;
	size_t n = 0;

	if (d->announced)
		return;
	if (d->bird != NULL)
		p = bird_included(d->bird, d->arena, &n);
	announce_adopted(d->config->conf, p, n, daemon_realtime(), d->arena,
	    &d->announce);
	d->announced = true;
}

/* The rings are as wanted from now on. */
static void
run_fingerprint(struct run *r)
{
	const struct state_ring *ring;
	size_t i;

	if (!r->d->config->conf->bgp.fingerprint || r->fingerprint != NULL)
		return;
	r->fingerprint = arena_calloc(r->arena, r->wanted.npool + 1,
	    sizeof(*r->fingerprint));
	for (i = 0; i < r->wanted.npool; i++) {
		ring = state_ring_find(&r->wanted,
		    r->wanted.pool[i].conf->name);
		if (ring != NULL)
			r->fingerprint[i] = state_ring_fingerprint(r->d->rings,
			    &r->wanted, ring);
	}
}

/* Steps the announcement; `*next` is in the run's arena. */
static void
run_announce(struct run *r, struct announce *next)
{
	struct daemon *d = r->d;
	struct announce_input in = {
		.conf = d->config->conf,
		.wanted = &r->wanted,
		.fingerprint = r->fingerprint,
		.phase = d->lifecycle.phase,
		/* what an earlier xlbd attached is so until we have looked */
		.datapath = (d->datapath || !d->attached) &&
		    !d->lifecycle.removed,
	};
	mono_t hold;

	hold = announce_step(&d->announce, &in, daemon_now(),
	    daemon_realtime(), r->arena, next);
	if (hold.ns == 0) {
		sd_event_source_set_enabled(d->hold, SD_EVENT_OFF);
		return;
	}
	sd_event_source_set_time(d->hold, (uint64_t)hold.ns / 1000 + 1);
	sd_event_source_set_enabled(d->hold, SD_EVENT_ONESHOT);
}

/* What this run leaves becomes what the daemon knows. */
static void
run_keep(struct run *r, const struct announce *next)
{
	struct daemon *d = r->d;

	if (r->plan.n > 0) {
		d->changed = daemon_realtime();
		tidy_soon(d);
	}
	count_moved(&d->count, &r->plan, r->failed);
	count_drift(&d->count, &d->drift);
	story_state(&d->wanted, &r->wanted);
	story_announce(d, next);
	d->failed = r->nfailed;
	d->epoch++;
	d->wanted = r->wanted;
	memset(&d->before, 0, sizeof(d->before));
	d->ring = NULL;
	d->announce = *next;
	arena_free(d->arena);
	d->arena = r->arena;
	ring_cache_trim(d->rings, &d->wanted);
	listeners_follow(d);
	health_mark(d, &d->wanted);
	config_free(d->config->retired);
	d->config->retired = NULL;
}

/* What may no longer be announced is withdrawn. */
static void
run_withdraw(struct run *r, struct announce *stay)
{
	struct announce next;

	run_announce(r, &next);
	announce_keep(&r->d->announce, &next, r->arena, stay);
	bird_apply(r->d, stay);
}

static bool
withdraws(const struct announce *prev, const struct announce *next)
{
	size_t i, n = 0, stay = 0;

	for (i = 0; i < prev->n; i++)
		n += prev->row[i].wanted;
	for (i = 0; i < next->n; i++)
		stay += next->row[i].wanted;
	return stay < n;
}

/*
 * The maps cannot be read, or hold no room for what is wanted. Withdrawals do
 * not depend on them: they go by health alone, with the ways out that were
 * found last, by which the checks still reach the backends.
 */
static void
run_fail(struct run *r)
{
	struct daemon *d = r->d;
	struct state known = d->wanted;
	struct announce stay, kept;
	struct state_input in = reconcile_input(d, d->config->conf, &known);

	if (r->found.nbackend > 0)
		known = r->found;
	d->failed = 1;
	if (d->lifecycle.removed)
		return;
	if (known.nbackend > 0)
		health_mark(d, &known);
	state_judge(&in, r->arena, &r->wanted);
	run_withdraw(r, &stay);
	bird_push(d->bird, BIRD_PUSH_MS);
	if (!withdraws(&d->announce, &stay))
		return;
	story_announce(d, &stay);
	announce_keep(&d->announce, &stay, d->arena, &kept);
	d->announce = kept;
	d->epoch++;
}

static void
reconcile(struct daemon *d, bool drift)
{
	struct run r = { .d = d, .arena = arena_new() };
	struct announce next, stay;
	size_t calls, breaks;

	sd_event_source_set_enabled(d->soon, SD_EVENT_OFF);
	routes_tidy(d);
	adopt_included(d);
	if (run_plan(&r) < 0) {
		run_fail(&r);
		arena_free(r.arena);
		return;
	}
	if (drift)
		drift_plan(&d->drift, &r.plan);
	story_plan(&r.plan);

	/* withdrawals, additions, announcements, deletions: in this order;
	 * what an earlier xlbd announced stays as it is */
	if (!d->attached)
		run_fingerprint(&r);
	run_withdraw(&r, &stay);
	calls = plan_first_call(&r.plan);
	breaks = plan_first_delete(&r.plan);
	run_apply(&r, 0, calls);
	/* a call may take its time: not before BIRD has been told */
	bird_push(d->bird, BIRD_PUSH_MS);
	run_apply(&r, calls, breaks);
	run_attach(&r);
	if (r.nfailed == 0)
		run_fingerprint(&r);
	run_announce(&r, &next);
	if (r.nfailed > 0) {
		/* what is not committed is not announced anew */
		announce_keep(&d->announce, &next, r.arena, &stay);
		next = stay;
	}
	bird_apply(d, &next);
	run_apply(&r, breaks, r.plan.n);
	/* last: it takes a while, and nothing else waits for it */
	r.nfailed += !d->lifecycle.removed && daemon_grow(d) < 0;
	run_keep(&r, &next);
}

void
reconcile_now(struct daemon *d)
{
	if (d->started)
		reconcile(d, false);
}

void
reconcile_soon(struct daemon *d)
{
	if (d->started)
		sd_event_source_set_enabled(d->soon, SD_EVENT_ONESHOT);
}

static int
on_soon(sd_event_source *s, void *arg)
{
	(void)s;
	reconcile_now(arg);
	return 0;
}

static int
on_hold(sd_event_source *s, uint64_t usec, void *arg)
{
	(void)s;
	(void)usec;
	reconcile_now(arg);
	return 0;
}

static int
on_tick(sd_event_source *s, uint64_t usec, void *arg)
{
	struct daemon *d = arg;
	int asked = 0;

	(void)usec;
	d->ticked = daemon_now();
	/* what somebody has just asked for is no drift */
	sd_event_source_get_enabled(d->soon, &asked);
	if (d->started && !d->lifecycle.removed) {
		path_tick(d);
		drift_mend(d);
		reconcile(d, d->failed == 0 && asked == SD_EVENT_OFF);
	}
	/* a new configuration took some times the memory that it holds */
	if (d->started && d->applied) {
		malloc_trim(0);
		d->applied = false;
	}
	sd_event_source_set_time_relative(s, TICK_US);
	sd_event_source_set_enabled(s, SD_EVENT_ONESHOT);
	return 0;
}

void
reconcile_look(struct daemon *d)
{
	if (mono_ms_since(daemon_now(), d->ticked) >= LOOK_MS)
		sd_event_source_set_time_relative(d->tick, 0);
}

int
reconcile_init(struct daemon *d)
{
	int rc;

	d->rings = ring_cache_new();
	d->arena = arena_new();
	rc = sd_event_add_defer(d->ev, &d->soon, on_soon, d);
	if (rc >= 0)
		rc = sd_event_source_set_enabled(d->soon, SD_EVENT_OFF);
	/* events that are already there go together into one run */
	if (rc >= 0)
		rc = sd_event_source_set_priority(d->soon,
		    SD_EVENT_PRIORITY_NORMAL + 10);
	if (rc >= 0)
		rc = sd_event_add_time_relative(d->ev, &d->tick,
		    CLOCK_MONOTONIC, TICK_US, 0, on_tick, d);
	if (rc >= 0)
		rc = sd_event_add_time(d->ev, &d->hold, CLOCK_MONOTONIC, 0, 1,
		    on_hold, d);
	if (rc >= 0)
		rc = sd_event_source_set_enabled(d->hold, SD_EVENT_OFF);
	return rc;
}

void
reconcile_close(struct daemon *d)
{
	sd_event_source_disable_unref(d->soon);
	sd_event_source_disable_unref(d->tick);
	sd_event_source_disable_unref(d->hold);
}
