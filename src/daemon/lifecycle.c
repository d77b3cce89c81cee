/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Draining the node and stopping: community 65535:0 (RFC 8326) for a while,
 * then withdraw; a stop goes on to forward for `linger` after BIRD has
 * withdrawn, reconciles to the empty state and takes everything away.
 */
#include <errno.h>
#include <string.h>

#include "core/arena.h"
#include "daemon/daemon.h"
#include "daemon/status.h"
#include "io/log.h"
#include "io/notify.h"
#include "io/tun.h"

/* A BIRD that does not answer must not keep a stop from ending. */
#define WITHDRAW_WAIT_MS 5000
#define STOP_SLACK_MS 10000	/* on top of what the phases take */

static int on_phase_end(sd_event_source *s, uint64_t usec, void *arg);

static void
phase_timer(struct daemon *d, uint32_t ms)
{
	struct lifecycle *l = &d->lifecycle;
	int rc = 0;

	if (l->timer == NULL)
		rc = sd_event_add_time_relative(d->ev, &l->timer,
		    CLOCK_MONOTONIC, 0, 1, on_phase_end, d);
	l->until = daemon_realtime() + (int64_t)ms * 1000000;
	if (rc >= 0)
		rc = sd_event_source_set_time_relative(l->timer,
		    (uint64_t)ms * 1000);
	if (rc >= 0)
		rc = sd_event_source_set_enabled(l->timer, SD_EVENT_ONESHOT);
	if (rc < 0) {
		errno = -rc;
		fatal("timer");
	}
}

static void
phase_timer_off(struct daemon *d)
{
	if (d->lifecycle.timer != NULL)
		sd_event_source_set_enabled(d->lifecycle.timer, SD_EVENT_OFF);
}

/* Is there anything that routers could be told to drain? */
static bool
is_announcing(const struct daemon *d)
{
	struct arena *a;
	size_t i, n = 0;

	if (d->announced) {
		for (i = 0; i < d->announce.n; i++)
			n += d->announce.row[i].wanted;
		return n > 0;
	}
	if (d->bird == NULL)
		return false;
	a = arena_new();
	bird_included(d->bird, a, &n);
	arena_free(a);
	return n > 0;
}

static void
withdraw(struct daemon *d)
{
	struct lifecycle *l = &d->lifecycle;

	l->phase = PHASE_WITHDRAW;
	reconcile_now(d);
	if (l->life != LIFE_STOP)
		return;
	l->withdrawing = true;
	phase_timer(d, WITHDRAW_WAIT_MS);
	lifecycle_bird_changed(d);	/* nothing may be under way */
}

/* 65535:0 first where somebody could hear it. */
static void
leave(struct daemon *d)
{
	uint32_t ms = d->config->conf->bgp.graceful_shutdown_ms;

	if (d->lifecycle.phase == PHASE_GSHUT)
		return;		/* a drain has begun it; its timer runs */
	if (d->lifecycle.phase == PHASE_SERVE && ms > 0 && is_announcing(d)) {
		log_info("node: announced with 65535:0 (graceful shutdown) "
		    "for %u s", (ms + 999) / 1000);
		d->lifecycle.phase = PHASE_GSHUT;
		reconcile_now(d);
		phase_timer(d, ms);
		return;
	}
	withdraw(d);
}

void
lifecycle_update(struct daemon *d, const char *why)
{
	struct lifecycle *l = &d->lifecycle;
	bool drained = override_node(d->config->conf, &d->overrides) ==
	    NODE_DRAIN;

	if (l->life == LIFE_SERVE && drained) {
		l->life = LIFE_DRAIN;
		log_change("node", "active", "drain", why);
		leave(d);
	} else if (l->life == LIFE_DRAIN && !drained) {
		l->life = LIFE_SERVE;
		l->phase = PHASE_SERVE;
		phase_timer_off(d);
		log_change("node", "drain", "active", why);
		reconcile_now(d);
	}
}

void
lifecycle_foretell(const struct daemon *d, const struct conf *c,
    const struct state *wanted, struct arena *a, struct announce *next)
{
	struct announce_input in = {
		.conf = c, .wanted = wanted,
		.phase = d->lifecycle.life == LIFE_STOP ||
		    override_node(c, &d->overrides) == NODE_DRAIN ?
		    PHASE_WITHDRAW : PHASE_SERVE,
		.datapath = d->datapath,
	};

	announce_step(&d->announce, &in, daemon_now(), daemon_realtime(), a,
	    next);
}

/* The end of a stop: the empty state by the same code, then the pins. */
static void
take_away(struct daemon *d)
{
	struct lifecycle *l = &d->lifecycle;
	json_t *reply;
	int rc;

	l->removed = true;
	reconcile_now(d);
	rc = prog_remove(d->prog);
	/* who waits is to find nothing: it does not end with this process */
	if (!l->flush) {
		daemon_tun_drop(d);
		netlink_want(d->nl, NULL, 0);	/* nor are neighbours kept fresh */
	}
	d->status = rc < 0 ? 1 : 0;
	d->again = l->flush;
	log_change("daemon", "stopping", l->flush ? "flushed" : "stopped",
	    l->flush ? "starts anew" : "");
	if (l->waiting != NULL) {
		reply = ctl_message(d->status);
		/* who waits for the next one knows it by another time */
		json_object_set_new(reply, "started", time_json(d->started_at));
		if (l->flush)
			json_object_set_new(reply, "result", json_pack("{s:b}",
			    "restarted", 1));
		if (rc < 0)
			ctl_error(reply, "pins: %s", strerror(-rc));
		ctl_reply(l->waiting, reply);
		l->waiting = NULL;
	}
	sd_event_exit(d->ev, d->status);
}

static void
linger(struct daemon *d)
{
	const struct conf *c = d->config->conf;
	/* nobody sends what nobody was told of */
	uint32_t ms = c->bgp.present && c->nservice > 0 ?
	    c->bgp.linger_ms : 0;

	d->lifecycle.withdrawing = false;
	d->lifecycle.lingering = true;
	if (ms > 0)
		log_info("node: withdrawn, forwards for %u s more",
		    (ms + 999) / 1000);
	phase_timer(d, ms);
}

static int
on_phase_end(sd_event_source *s, uint64_t usec, void *arg)
{
	struct daemon *d = arg;
	struct lifecycle *l = &d->lifecycle;

	(void)s;
	(void)usec;
	if (l->phase == PHASE_GSHUT) {
		withdraw(d);
	} else if (l->withdrawing) {
		log_warnx("bird: did not confirm the withdrawal (%s): going on",
		    bird_status_text(bird_status(d->bird)));
		linger(d);
	} else if (l->lingering) {
		take_away(d);
	}
	return 0;
}

/* BIRD may have done what a stop waits for. */
void
lifecycle_bird_changed(struct daemon *d)
{
	struct lifecycle *l = &d->lifecycle;

	if (l->withdrawing && (d->bird == NULL || bird_settled(d->bird)))
		linger(d);
}

static void
say_stopping(const struct daemon *d)
{
	const struct conf_bgp *bgp = &d->config->conf->bgp;

	notify_stopping();
	notify_extend((uint64_t)1000 * (STOP_SLACK_MS + WITHDRAW_WAIT_MS +
	    bgp->graceful_shutdown_ms + bgp->linger_ms));
}

void
lifecycle_stop(struct daemon *d, bool flush, struct ctl_request *rq)
{
	struct lifecycle *l = &d->lifecycle;
	char why[CTL_ASKED_MAX] = "its unit is stopped";
	json_t *reply;

	if (l->life == LIFE_STOP) {
		if (rq == NULL && l->flush && !flush) {
			/* the service manager's word: no new start */
			l->flush = false;
			say_stopping(d);
		}
		if (rq == NULL)
			return;
		reply = ctl_message(1);
		ctl_error(reply, "xlbd is stopping already");
		ctl_reply(rq, reply);
		return;
	}
	/* after a flush the unit goes on, so the manager must not hear of it */
	if (!flush)
		say_stopping(d);
	if (rq != NULL)
		ctl_asked(rq, flush ? "restart --flush" : "stop", why);
	log_change("daemon", "serving", "stopping", why);
	l->life = LIFE_STOP;
	l->flush = flush;
	l->waiting = rq;
	leave(d);
}
