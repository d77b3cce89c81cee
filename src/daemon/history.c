/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Samples the counters every few seconds, in slices, while somebody may look at
 * them. */
#include "daemon/history.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "daemon/daemon.h"
#include "io/log.h"
#include "io/maps.h"

#define AT_ONCE 256		/* rows in a turn of the loop */
#define EVERY_US (HISTORY_EVERY_S * 1000000ULL)

/* A counter and what it was. */
struct track {
	uint64_t packets;
	int64_t at;		/* ns, of `packets`; 0: there is none yet */
};

struct backend_track {
	struct addr addr;	/* the number was another's: begins anew */
	struct track last;
	uint32_t rate[HISTORY_SAMPLES];	/* a ring */
	uint32_t n;		/* samples so far */
	bool seen;		/* in this round */
};

struct service_track {
	struct track last;
	uint32_t rate;
};

struct history {
	struct daemon *d;
	sd_event_source *timer, *work;
	size_t at;		/* of this round: backends, then services */
	uint64_t epoch;		/* of the daemon, in this round */
	struct backend_track *backend[XLB_BACKENDS];	/* NULL: none */
	struct service_track service[XLB_SERVICES];
};

/* Packets per second since the last time; one that went back is another's. */
static uint32_t
track_step(struct track *t, uint64_t packets)
{
	int64_t now = daemon_now().ns, past = now - t->at;
	double rate = 0;

	if (t->at != 0 && past > 0 && packets >= t->packets)
		rate = (double)(packets - t->packets) * 1e9 / (double)past;
	t->packets = packets;
	t->at = now;
	return rate > UINT32_MAX ? UINT32_MAX : (uint32_t)(rate + 0.5);
}

static void
backend_sample(struct history *h, const struct state_backend *b)
{
	struct backend_track *t = h->backend[b->number];
	struct xlb_backend_stats n;
	bool first;
	uint32_t rate;

	if (maps_backend_stats(prog_maps(h->d->prog), b->number, &n) < 0)
		return;
	if (t == NULL)
		t = h->backend[b->number] = must_calloc(1, sizeof(*t));
	if (addr_cmp(&t->addr, &b->addr) != 0 || n.packets < t->last.packets) {
		memset(t, 0, sizeof(*t));
		t->addr = b->addr;
	}
	t->seen = true;
	first = t->last.at == 0;
	rate = track_step(&t->last, n.packets);
	if (!first)
		t->rate[t->n++ % HISTORY_SAMPLES] = rate;
}

static void
service_sample(struct history *h, uint32_t number)
{
	struct service_track *t = &h->service[number];
	struct xlb_service_stats n;

	if (maps_service_stats(prog_maps(h->d->prog), number, &n) == 0)
		t->rate = track_step(&t->last, n.packets);
}

static void
round_end(struct history *h)
{
	size_t i;

	for (i = 0; i < XLB_BACKENDS; i++) {
		if (h->backend[i] == NULL)
			continue;
		if (!h->backend[i]->seen) {
			free(h->backend[i]);
			h->backend[i] = NULL;
		} else {
			h->backend[i]->seen = false;
		}
	}
}

/* A slice of a round. One whose rows have changed is left where it is: there is
 * another soon. */
static int
on_work(sd_event_source *s, void *arg)
{
	struct history *h = arg;
	const struct state *w = &h->d->wanted;
	size_t i;

	for (i = 0; h->epoch == h->d->epoch && i < AT_ONCE &&
	    h->at < w->nbackend + w->nservice; i++, h->at++)
		if (h->at < w->nbackend)
			backend_sample(h, &w->backend[h->at]);
		else
			service_sample(h,
			    w->service[h->at - w->nbackend].number);
	if (h->epoch == h->d->epoch && h->at < w->nbackend + w->nservice)
		return 0;
	if (h->epoch == h->d->epoch)
		round_end(h);
	sd_event_source_set_enabled(s, SD_EVENT_OFF);
	return 0;
}

static int
on_timer(sd_event_source *s, uint64_t usec, void *arg)
{
	struct history *h = arg;

	(void)usec;
	sd_event_source_set_time_relative(s, EVERY_US);
	sd_event_source_set_enabled(s, SD_EVENT_ONESHOT);
	if (!h->d->started || !h->d->config->conf->metrics_on)
		return 0;
	h->at = 0;
	h->epoch = h->d->epoch;
	sd_event_source_set_enabled(h->work, SD_EVENT_ON);
	return 0;
}

bool
history_backend(const struct daemon *d, uint32_t number,
    struct history_rate *out)
{
	const struct backend_track *t;
	size_t i, n;

	memset(out, 0, sizeof(*out));
	if (number == 0 || number >= XLB_BACKENDS)
		return false;
	t = d->history->backend[number];
	if (t == NULL || t->n == 0)
		return false;
	n = t->n < HISTORY_SAMPLES ? t->n : HISTORY_SAMPLES;
	for (i = 0; i < n; i++)
		out->value[i] = t->rate[(t->n - n + i) % HISTORY_SAMPLES];
	out->n = n;
	return true;
}

uint32_t
history_service(const struct daemon *d, uint32_t number)
{
	return number < XLB_SERVICES ? d->history->service[number].rate : 0;
}

int
history_open(struct daemon *d)
{
	struct history *h = must_calloc(1, sizeof(*h));
	int rc;

	h->d = d;
	d->history = h;
	rc = sd_event_add_defer(d->ev, &h->work, on_work, h);
	if (rc >= 0)
		rc = sd_event_source_set_priority(h->work,
		    SD_EVENT_PRIORITY_IDLE);
	if (rc >= 0)
		rc = sd_event_source_set_enabled(h->work, SD_EVENT_OFF);
	if (rc >= 0)
		rc = sd_event_add_time_relative(d->ev, &h->timer,
		    CLOCK_MONOTONIC, 0, 1, on_timer, h);
	return rc;
}

void
history_close(struct daemon *d)
{
	struct history *h = d->history;
	size_t i;

	if (h == NULL)
		return;
	sd_event_source_disable_unref(h->work);
	sd_event_source_disable_unref(h->timer);
	for (i = 0; i < XLB_BACKENDS; i++)
		free(h->backend[i]);
	free(h);
	d->history = NULL;
}
