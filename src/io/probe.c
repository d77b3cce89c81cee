/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The prober as xlbd sees it: when to probe what, and what came of it. */
#include "io/probe.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/conf.h"
#include "io/log.h"
#include "io/probe_private.h"

/* xorshift64* (Marsaglia 2003; Vigna 2016): jitter needs no more. */
static uint64_t
random_next(struct prober *p)
{
	p->seed ^= p->seed >> 12;
	p->seed ^= p->seed << 25;
	p->seed ^= p->seed >> 27;
	return p->seed * 0x2545f4914f6cdd1dULL;
}

/* The turn after the one at `grid`: half a tenth of the interval early or late,
 * so that nodes started together do not stay together. */
void
target_next(struct prober *p, struct target *t, int64_t now)
{
	int64_t interval = t->interval_ms * MSEC, due;

	t->grid += interval;
	if (t->grid < now - interval)
		t->grid = now;	/* late by more than a turn: start over */
	due = t->grid - interval / 20 +
	    (int64_t)(random_next(p) % (uint64_t)(interval / 10 + 1));
	heap_put(&p->due, &t->node, due > now ? due : now);
}

/* Multiples of the golden ratio fall evenly into the interval, however many
 * targets there are and come later. */
static int64_t
phase_next(struct prober *p, uint32_t interval_ms)
{
	p->phase += 0x9e3779b97f4a7c15ULL;
	return (int64_t)((p->phase >> 32) * (uint64_t)interval_ms >> 32) * MSEC;
}

void
flight_free(struct prober *p, uint32_t id)
{
	p->flight[id].target = NULL;
	p->flight[id].next = p->idle;
	p->idle = id;
}

/* A row for one more request, or NONE. */
uint32_t
flight_new(struct prober *p)
{
	uint32_t id, size;

	if (p->idle == NONE) {
		if (p->nflight == p->flights_max)
			return NONE;
		size = p->nflight == 0 ? 64 : p->nflight * 2;
		if (size > p->flights_max)
			size = p->flights_max;
		p->flight = reallocarray(p->flight, size, sizeof(*p->flight));
		if (p->flight == NULL)
			fatal("prober");
		for (id = size; id-- > p->nflight;) {
			p->flight[id].generation = 0;
			flight_free(p, id);
		}
		p->nflight = size;
	}
	id = p->idle;
	p->idle = p->flight[id].next;
	p->flight[id].generation++;
	return id;
}

static void
target_landed(struct prober *p, struct target *t)
{
	t->flight = NONE;
	if (t->commanded)
		p->commands--;
	t->commanded = false;
}

/* Is in no heap now: tells how it ended, and its next turn. */
void
target_ended(struct prober *p, struct target *t, const struct probe_end *end)
{
	if (t->path || t->fd >= 0) {
		path_ended(p, t, end);
		return;
	}
	target_next(p, t, probe_now().ns);
	p->fn(t->index, end->result, end->detail, end->said, p->arg);
}

/* Nothing that was under way will be heard of any more: all of it is due. */
void
prober_lost(struct prober *p, const char *why)
{
	struct heap_node *min;
	struct target *t;
	uint32_t id;

	if (p->sock < 0)
		return;
	log_warnx("prober: %s, is started again", why);
	p->sock_io = sd_event_source_disable_unref(p->sock_io);
	close(p->sock);
	p->sock = -1;
	p->pid = 0;
	p->full = false;
	probe_checks_forget(&p->checks);
	while ((min = heap_min(&p->overdue)) != NULL) {
		t = HEAP_ITEM(min, struct target, node);
		heap_del(&p->overdue, min);
		target_landed(p, t);
		heap_put(&p->due, &t->node, probe_now().ns);
	}
	p->idle = p->cancel = NONE;
	for (id = p->nflight; id-- > 0;)
		flight_free(p, id);
	p->start_at = p->started + RESTART_MS * MSEC;
}

/* When a target in `overdue` was asked, ns. */
static int64_t
flight_begun(const struct target *t)
{
	return t->node.key - ((int64_t)t->asked_ms + OVERDUE_MS) * MSEC;
}

/* One message: true if there may be more. */
static bool
answer_read(struct prober *p)
{
	struct probe_answer a;
	struct probe_end end;
	struct flight *f;
	struct target *t;
	ssize_t n;

	n = recv(p->sock, &a, sizeof(a), MSG_DONTWAIT | MSG_TRUNC);
	if (n < 0 && errno == EINTR)
		return true;
	if (n < 0 && errno == EAGAIN)
		return false;
	if (n <= 0) {
		prober_lost(p, "ended");
		return false;
	}
	if (n != sizeof(a) || a.result >= PROBE_RESULTS ||
	    a.detail > UINT16_MAX) {
		prober_lost(p, "sent nonsense");
		return false;
	}
	if (a.id >= p->nflight)
		return true;
	f = &p->flight[a.id];
	t = f->target;
	if (t == NULL || f->generation != a.generation)
		return true;
	p->took = probe_now().ns - flight_begun(t);
	heap_del(&p->overdue, &t->node);
	target_landed(p, t);
	flight_free(p, a.id);
	end.result = (enum probe_result)a.result;
	end.detail = (uint16_t)a.detail;
	memcpy(end.said, a.said, sizeof(end.said));
	end.said[sizeof(end.said) - 1] = '\0';
	target_ended(p, t, &end);
	return true;
}

int
prober_heard(sd_event_source *s, int fd, uint32_t events, void *arg)
{
	struct prober *p = arg;
	int i;

	(void)s, (void)fd;
	if (events & EPOLLOUT)
		p->full = false;
	/* bounded: others on the loop have their turn too */
	for (i = 0; i < 256 && p->sock >= 0 && answer_read(p); i++)
		;
	prober_turns(p);
	return 0;
}

static void
timer_set(struct prober *p)
{
	const struct heap_node *min;
	int64_t at = INT64_MAX;

	if (p->sock < 0) {
		at = p->start_at;
	} else {
		min = heap_min(&p->overdue);
		if (min != NULL)
			at = min->key;
		min = heap_min(&p->due);
		if (min != NULL && !p->full &&
		    (p->idle != NONE || p->nflight < p->flights_max)) {
			if (min->key < at)
				at = min->key;
			if (at < p->retry_at)
				at = p->retry_at;
		}
	}
	if (p->launcher.pid == 0 && p->launch_at < at)
		at = p->launch_at;
	sd_event_source_set_time(p->timer, at == INT64_MAX ? UINT64_MAX :
	    (uint64_t)(at + 999) / 1000);
	sd_event_source_set_enabled(p->timer,
	    at == INT64_MAX ? SD_EVENT_OFF : SD_EVENT_ONESHOT);
	if (p->sock_io != NULL)
		sd_event_source_set_io_events(p->sock_io,
		    EPOLLIN | (p->full ? EPOLLOUT : 0));
}

void
prober_turns(struct prober *p)
{
	struct heap_node *min;
	int64_t now = probe_now().ns;

	min = heap_min(&p->overdue);
	if (min != NULL && min->key <= now)
		prober_lost(p, "hangs");
	prober_begin(p, now);
	launcher_begin(p, now);
	cancel_send(p);
	while (p->sock >= 0 && !p->full && now >= p->retry_at &&
	    (min = heap_min(&p->due)) != NULL && min->key <= now)
		if (!target_probe(p, HEAP_ITEM(min, struct target, node), now))
			break;
	timer_set(p);
}

static int
timer_ran(sd_event_source *s, uint64_t usec, void *arg)
{
	(void)s, (void)usec;
	prober_turns(arg);
	return 0;
}

int
prober_fork(const char *user, struct prober **out)
{
	struct prober *p = calloc(1, sizeof(*p));
	uint32_t fds = probe_fds();
	int rc;

	if (p == NULL)
		return -ENOMEM;
	p->sock = -1;
	p->idle = p->cancel = NONE;
	p->flights_max = fds > 2 * PROBE_FDS_SPARE ? fds - PROBE_FDS_SPARE :
	    PROBE_FDS_SPARE;
	if (getrandom(&p->seed, sizeof(p->seed), 0) != sizeof(p->seed))
		p->seed = 0;
	p->seed |= 1;
	p->phase = random_next(p);
	rc = spawner_init(&p->spawner, "prober", probe_child, user);
	p->launcher = p->spawner;
	p->launcher.launches = true;
	if (rc == 0)
		rc = spawner_start(&p->spawner);
	if (rc == 0 && (rc = spawner_start(&p->launcher)) < 0)
		spawner_close(&p->spawner);
	if (rc < 0) {
		free(p);
		return rc;
	}
	*out = p;
	return 0;
}

int
prober_start(struct prober *p, sd_event *ev, probe_fn fn, void *arg)
{
	int rc;

	p->ev = sd_event_ref(ev);
	p->fn = fn;
	p->arg = arg;
	rc = sd_event_add_time(ev, &p->timer, CLOCK_MONOTONIC, 0, 1000,
	    timer_ran, p);
	if (rc >= 0)
		rc = spawner_watch(p);
	if (rc >= 0)
		rc = launcher_watch(p);
	if (rc < 0)
		return rc;
	prober_turns(p);
	return 0;
}

static int
target_cmp(const struct target *t, const struct health_target *h)
{
	int c = addr_cmp(&t->addr, &h->addr);

	if (c == 0)
		c = addr_cmp(&t->vip, &h->vip);
	if (c != 0)
		return c;
	if (t->port != h->port)
		return t->port < h->port ? -1 : 1;
	return strcmp(t->check, h->check->name);
}

void
target_free(struct prober *p, struct target *t)
{
	if (t == NULL)
		return;
	heap_del(t->flight == NONE ? &p->due : &p->overdue, &t->node);
	if (t->flight != NONE) {
		p->commands -= t->commanded;
		p->flight[t->flight].target = NULL;
		p->flight[t->flight].next = p->cancel;
		p->cancel = t->flight;
	}
	if (t->fd >= 0)
		close(t->fd);
	free(t->check);
	free(t);
}

static struct target *
target_new(struct prober *p, const struct health_target *h, int64_t now)
{
	struct target *t = calloc(1, sizeof(*t));

	if (t == NULL || (t->check = strdup(h->check->name)) == NULL)
		fatal("prober");
	t->addr = h->addr;
	t->vip = h->vip;
	t->port = h->port;
	t->fd = -1;
	t->flight = NONE;
	t->grid = now + phase_next(p, h->check->interval_ms) -
	    h->check->interval_ms * MSEC;
	heap_put(&p->due, &t->node, now);
	return t;
}

/* What it was given may have changed for one that stays. */
static void
target_set(struct prober *p, struct target *t, const struct conf_check *c,
    size_t index, int64_t now)
{
	bool other = t->interval_ms != 0 && t->interval_ms != c->interval_ms;

	t->index = index;
	t->kind = probe_check_kind(c);
	t->slot = probe_checks_slot(&p->checks, c);
	t->interval_ms = c->interval_ms;
	t->timeout_ms = c->timeout_ms;
	if (other && t->flight == NONE) {
		t->grid = now + phase_next(p, c->interval_ms) -
		    c->interval_ms * MSEC;
		target_next(p, t, now);
	}
}

int
prober_set(struct prober *p, const struct health_target *t, size_t n)
{
	struct target **next;
	int64_t now = probe_now().ns;
	size_t i, old = 0;
	int c, rc;

	assert(p->ev != NULL);
	next = calloc(n + 1, sizeof(next[0]));
	if (next == NULL)
		return -ENOMEM;
	rc = probe_checks_set(&p->checks, t, n);
	if (rc < 0) {
		free(next);
		return rc;
	}
	for (i = 0; i < n; i++) {
		c = 1;
		while (old < p->n && (c = target_cmp(p->target[old], &t[i])) < 0)
			target_free(p, p->target[old++]);
		next[i] = old < p->n && c == 0 ? p->target[old++] :
		    target_new(p, &t[i], now);
		target_set(p, next[i], t[i].check, i, now);
	}
	while (old < p->n)
		target_free(p, p->target[old++]);
	probe_checks_settled(&p->checks);
	free(p->target);
	p->target = next;
	p->n = n;
	prober_turns(p);
	return 0;
}

void
prober_mark(struct prober *p, size_t id, uint32_t mark, const struct addr *src)
{
	struct target *t = p->target[id];
	bool waited = t->mark == 0 && mark != 0;

	assert(id < p->n);
	t->mark = mark;
	t->src = *src;
	if (waited && t->flight == NONE) {
		t->grid = probe_now().ns;
		heap_put(&p->due, &t->node, t->grid);
		timer_set(p);
	}
}

void
prober_close(struct prober *p)
{
	size_t i;

	if (p == NULL)
		return;
	sd_event_source_disable_unref(p->timer);
	sd_event_source_disable_unref(p->spawner_io);
	sd_event_source_disable_unref(p->spawner_end);
	sd_event_source_disable_unref(p->sock_io);
	sd_event_source_disable_unref(p->launcher_end);
	sd_event_unref(p->ev);
	if (p->sock >= 0)
		close(p->sock);
	spawner_close(&p->launcher);
	spawner_close(&p->spawner);
	for (i = 0; i < p->n; i++) {
		free(p->target[i]->check);
		free(p->target[i]);
	}
	free(p->target);
	paths_free(p);
	probe_checks_free(&p->checks);
	free(p->flight);
	heap_fini(&p->due);
	heap_fini(&p->overdue);
	free(p);
}

int64_t
prober_took(const struct prober *p)
{
	return p->took;
}

pid_t
prober_launcher_pid(const struct prober *p)
{
	return p->launcher.pid;
}

pid_t
prober_pid(const struct prober *p)
{
	return p->pid;
}
