/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What time asks for: `prev`, LOOKUP and old rings end, numbers of backends
 * become free, and a surge of unknown flows is seen. Beside the loop's work, in
 * slices of less than a millisecond; nothing of the health path waits for it.
 */
#include <errno.h>
#include <string.h>

#include "core/nat_sweep.h"
#include "core/sweep.h"
#include "daemon/daemon.h"
#include "io/grace.h"
#include "io/log.h"
#include "io/maps.h"

#define SLICE_NS 250000
#define SECOND_US 1000000ULL
#define SOON_US (SECOND_US / 10)

/* Entries that bind a flow to another backend end by the hour: how often the
 * table is read for that, and that no entry's age wraps. */
#define LOOK_S 60
#define HYGIENE_S 3600
#define NAT_S 10			/* between two passes over NAT's table */
#define SCAN_SHARE 20		/* reading takes one part in so many of the time */

static int64_t
ns_since(mono_t then)
{
	return daemon_now().ns - then.ns;
}

static void
timer_set(struct tidy *t, uint64_t usec)
{
	sd_event_source_set_time_relative(t->timer, usec);
	sd_event_source_set_enabled(t->timer, SD_EVENT_ONESHOT);
}

static void
backends_free(struct daemon *d)
{
	struct maps *m = prog_maps(d->prog);
	struct sweep *s = maps_sweep(m);
	uint32_t n, freed = 0;

	for (n = sweep_freed(s, 1); n < XLB_BACKENDS;
	    n = sweep_freed(s, n + 1)) {
		if (!nat_sweep_clean(maps_nat(m), n))
			continue;	/* rows of NAT name it; a later pass */
		maps_backend_free(m, n);
		freed++;
	}
	if (freed > 0)
		log_debug("maps: %u numbers of backends are free again",
		    freed);
}

/* When the next pass is due. */
static uint64_t
next_us(const struct tidy *t, const struct sweep_result *r)
{
	uint64_t gap = (uint64_t)t->scan_ns / 1000 * SCAN_SHARE;

	if (t->again || r->prev > 0)
		return SECOND_US;
	if (t->fresh && (r->waits || r->scrubbed))
		return gap > SOON_US ? gap : SOON_US;
	if (r->lookup > 0 || r->retired > 0)
		return LOOK_S * SECOND_US;
	return HYGIENE_S * SECOND_US;
}

static void
pass_done(struct daemon *d)
{
	struct tidy *t = &d->tidy;
	const struct sweep_result *r =
	    sweep_result(maps_sweep(prog_maps(d->prog)));

	if (r->scanned) {
		t->scan_ns = t->work_ns;
		t->scanned = daemon_now();
		t->flows = r->live;
		t->fresh = r->scrubbed;
		backends_free(d);
	}
	/* what has just become a candidate is looked at at once */
	t->fresh |= r->prev < t->prev;
	t->prev = r->prev;
	t->lookup = r->lookup;
	t->retired = r->retired;
	t->fresh |= t->again;
	timer_set(t, next_us(t, r));
	t->again = false;
}

/* Each turn of the loop that has nothing better to do. */
static int
on_work(sd_event_source *src, void *arg)
{
	struct daemon *d = arg;
	struct tidy *t = &d->tidy;
	struct sweep *s = maps_sweep(prog_maps(d->prog));
	enum sweep_state state;
	mono_t begin = daemon_now();

	do
		state = sweep_step(s, maps_tick());
	while (state == SWEEP_MORE && ns_since(begin) < SLICE_NS);
	t->work_ns += ns_since(begin);
	if (ns_since(begin) > t->slice_ns)
		t->slice_ns = ns_since(begin);
	/* a service has left its old ring: that may go */
	if (sweep_result(s)->old_gone && !t->told) {
		t->told = true;
		reconcile_soon(d);
	}
	if (state == SWEEP_MORE)
		return 0;
	sd_event_source_set_enabled(src, SD_EVENT_OFF);
	if (state == SWEEP_GRACE)
		grace_ask(t->grace);
	else
		pass_done(d);
	return 0;
}

static void
on_grace(void *arg)
{
	struct daemon *d = arg;

	sweep_graced(maps_sweep(prog_maps(d->prog)));
	sd_event_source_set_enabled(d->tidy.work, SD_EVENT_ON);
}

static void
pass_begin(struct daemon *d)
{
	struct tidy *t = &d->tidy;
	int64_t ago = ns_since(t->scanned), second = 1000000000;
	enum sweep_scan scan = SWEEP_SCAN_NEVER;

	if (t->scanned.ns == 0 || ago >= HYGIENE_S * second)
		scan = SWEEP_SCAN_ALWAYS;
	else if (ago >= t->scan_ns * SCAN_SHARE &&
	    (t->fresh || ago >= LOOK_S * second))
		scan = SWEEP_SCAN_ASKED;
	t->work_ns = 0;
	t->told = false;
	sweep_begin(maps_sweep(prog_maps(d->prog)), scan);
	sd_event_source_set_enabled(t->work, SD_EVENT_ON);
}

static int
on_timer(sd_event_source *s, uint64_t usec, void *arg)
{
	struct daemon *d = arg;

	(void)s;
	(void)usec;
	if (!sweep_running(maps_sweep(prog_maps(d->prog))))
		pass_begin(d);
	return 0;
}

void
tidy_soon(struct daemon *d)
{
	struct tidy *t = &d->tidy;

	if (t->timer == NULL)
		return;
	t->again = sweep_running(maps_sweep(prog_maps(d->prog)));
	t->fresh = true;
	if (!t->again)
		timer_set(t, SECOND_US);
}

/* The table of NAT has no other use for time than this, and no grace periods: a
 * pass of its own, where there is one. */
static int
on_nat_work(sd_event_source *src, void *arg)
{
	struct daemon *d = arg;
	struct tidy *t = &d->tidy;
	struct nat_sweep *n = maps_nat(prog_maps(d->prog));
	uint64_t before = maps_nat_sources(prog_maps(d->prog));
	mono_t begin = daemon_now();
	bool more = nat_sweep_running(n);
	uint64_t gap;

	while (more && ns_since(begin) < SLICE_NS)
		more = nat_sweep_step(n);
	t->nat_ns += ns_since(begin);
	if (more)
		return 0;
	sd_event_source_set_enabled(src, SD_EVENT_OFF);
	gap = (uint64_t)t->nat_ns / 1000 * SCAN_SHARE;
	sd_event_source_set_time_relative(t->nat_timer,
	    gap > NAT_S * SECOND_US ? gap : NAT_S * SECOND_US);
	sd_event_source_set_enabled(t->nat_timer, SD_EVENT_ONESHOT);
	/* an address that no flow has any more may go */
	if (before & ~maps_nat_sources(prog_maps(d->prog)))
		reconcile_soon(d);
	return 0;
}

static int
on_nat_timer(sd_event_source *s, uint64_t usec, void *arg)
{
	struct daemon *d = arg;
	struct tidy *t = &d->tidy;

	(void)usec;
	if (maps_nat_rows(prog_maps(d->prog)) <= XLB_NAT_ROWS_MIN) {
		sd_event_source_set_time_relative(s, NAT_S * SECOND_US);
		sd_event_source_set_enabled(s, SD_EVENT_ONESHOT);
		return 0;
	}
	t->nat_ns = 0;
	nat_sweep_begin(maps_nat(prog_maps(d->prog)), maps_tick());
	sd_event_source_set_enabled(t->nat_work, SD_EVENT_ON);
	return 0;
}

static int
on_second(sd_event_source *s, uint64_t usec, void *arg)
{
	struct daemon *d = arg;
	struct surge *g = &d->tidy.surge;
	uint64_t seconds = g->seconds;
	struct xlb_flow_stats now;

	(void)usec;
	if (maps_flow_stats(prog_maps(d->prog), &now) == 0 &&
	    surge_step(g, &now, daemon_now())) {
		d->tidy.surge_since = g->on ? daemon_realtime() : 0;
		if (g->on)
			log_info("flows: %u.%u %% of the sampled ones are "
			    "unknown: every packet is looked up",
			    g->permille / 10, g->permille % 10);
		else
			log_info("flows: packets are looked up as before: %s",
			    g->spent ? "it has not helped" :
			    "the flows are known");
		reconcile_soon(d);
	}
	*d->count.surge += g->seconds - seconds;
	sd_event_source_set_time_relative(s, SECOND_US);
	sd_event_source_set_enabled(s, SD_EVENT_ONESHOT);
	return 0;
}

int
tidy_open(struct daemon *d)
{
	struct tidy *t = &d->tidy;
	int map, inner, rc;

	maps_grace_fds(prog_maps(d->prog), &map, &inner);
	rc = grace_open(d->ev, map, inner, on_grace, d, &t->grace);
	if (rc >= 0)
		rc = sd_event_add_defer(d->ev, &t->work, on_work, d);
	if (rc >= 0)
		rc = sd_event_source_set_priority(t->work,
		    SD_EVENT_PRIORITY_IDLE);
	if (rc >= 0)
		rc = sd_event_source_set_enabled(t->work, SD_EVENT_OFF);
	if (rc >= 0)
		rc = sd_event_add_time_relative(d->ev, &t->timer,
		    CLOCK_MONOTONIC, SECOND_US, 0, on_timer, d);
	if (rc >= 0)
		rc = sd_event_add_defer(d->ev, &t->nat_work, on_nat_work, d);
	if (rc >= 0)
		rc = sd_event_source_set_priority(t->nat_work,
		    SD_EVENT_PRIORITY_IDLE);
	if (rc >= 0)
		rc = sd_event_source_set_enabled(t->nat_work, SD_EVENT_OFF);
	if (rc >= 0)
		rc = sd_event_add_time_relative(d->ev, &t->nat_timer,
		    CLOCK_MONOTONIC, SECOND_US, 0, on_nat_timer, d);
	if (rc >= 0)
		rc = sd_event_add_time_relative(d->ev, &t->second,
		    CLOCK_MONOTONIC, SECOND_US, 0, on_second, d);
	if (rc < 0) {
		errno = -rc;
		log_warn("event loop");
	}
	return rc;
}

void
tidy_close(struct daemon *d)
{
	struct tidy *t = &d->tidy;

	grace_close(t->grace);
	sd_event_source_unref(t->work);
	sd_event_source_unref(t->timer);
	sd_event_source_unref(t->nat_work);
	sd_event_source_unref(t->nat_timer);
	sd_event_source_unref(t->second);
}
