/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads the packet program's ring of events, a slice at a time, and says who
 * wants what. */
#include "io/events.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>

#include "io/log.h"
#include "io/maps_int.h"

#define LEASE_TICKS 4		/* renewed each second */
#define SECOND UINT64_C(1000000)
#define SLICE 64		/* records, then the loop goes round */

struct events {
	struct maps *m;
	struct events_fn fn;
	struct ring_buffer *ring;
	sd_event_source *io, *timer;
	unsigned readers;	/* a bit each */
	unsigned left;		/* of the slice */
};

static void
lease(struct events *e)
{
	uint32_t *word = &e->m->tables->settings.listening, until = 0;
	struct timespec ts;

	if (e->readers != 0) {
		clock_gettime(CLOCK_MONOTONIC, &ts);
		until = (uint32_t)(((uint64_t)ts.tv_sec * 1000000000 +
		    (uint64_t)ts.tv_nsec) >> XLB_EVENT_TICK_SHIFT) +
		    LEASE_TICKS;
	}
	__atomic_store_n(word, until, __ATOMIC_RELEASE);
}

static int
on_second(sd_event_source *s, uint64_t usec, void *arg)
{
	struct events *e = arg;

	(void)usec;
	lease(e);
	if (e->readers == 0)
		return 0;
	sd_event_source_set_time_relative(s, SECOND);
	sd_event_source_set_enabled(s, SD_EVENT_ONESHOT);
	e->fn.second(e->fn.arg);
	return 0;
}

/* Less than 0 ends the reading; this record counts as read. */
static int
on_record(void *arg, void *data, size_t size)
{
	struct events *e = arg;
	struct xlb_event event;

	if (size >= sizeof(event)) {
		memcpy(&event, data, sizeof(event));
		if (event.readers & e->readers)
			e->fn.event(&event, e->fn.arg);
	}
	return --e->left > 0 ? 0 : -EAGAIN;
}

static int
on_ring(sd_event_source *s, int fd, uint32_t what, void *arg)
{
	struct events *e = arg;
	int n;

	(void)s, (void)fd, (void)what;
	e->left = SLICE;
	n = ring_buffer__consume(e->ring);
	if (n < 0 && n != -EAGAIN)
		log_warnx("events: %s", strerror(-n));
	return 0;
}

static int
sources_add(struct events *e, sd_event *ev)
{
	int rc;

	rc = sd_event_add_io(ev, &e->io, ring_buffer__epoll_fd(e->ring),
	    EPOLLIN, on_ring, e);
	/* after all that keeps packets and announcements right */
	if (rc >= 0)
		rc = sd_event_source_set_priority(e->io,
		    SD_EVENT_PRIORITY_IDLE);
	if (rc >= 0)
		rc = sd_event_source_set_enabled(e->io, SD_EVENT_OFF);
	if (rc >= 0)
		rc = sd_event_add_time(ev, &e->timer, CLOCK_MONOTONIC, 0, 0,
		    on_second, e);
	if (rc >= 0)
		rc = sd_event_source_set_enabled(e->timer, SD_EVENT_OFF);
	return rc;
}

int
events_open(sd_event *ev, struct maps *m, const struct events_fn *fn,
    struct events **out)
{
	struct events *e = calloc(1, sizeof(*e));
	unsigned i;
	int rc = 0;

	if (e == NULL)
		fatal("events");
	e->m = m;
	e->fn = *fn;
	lease(e);
	for (i = 0; i < XLB_EVENT_READERS; i++)
		events_want(e, i, NULL);
	e->ring = ring_buffer__new(m->fd[MAP_EVENTS], on_record, e, NULL);
	if (e->ring == NULL)
		rc = -errno;
	if (rc == 0)
		rc = sources_add(e, ev);
	if (rc < 0) {
		log_warnx("events: %s", strerror(-rc));
		events_close(e);
		return rc;
	}
	*out = e;
	return 0;
}

void
events_close(struct events *e)
{
	if (e == NULL)
		return;
	e->readers = 0;
	lease(e);
	sd_event_source_disable_unref(e->io);
	sd_event_source_disable_unref(e->timer);
	ring_buffer__free(e->ring);
	free(e);
}

static void
bit_set(uint8_t *byte, unsigned bit, bool on)
{
	uint8_t v = (uint8_t)((*byte & ~(1U << bit)) | (unsigned)on << bit);

	if (*byte != v)
		__atomic_store_n(byte, v, __ATOMIC_RELEASE);
}

static void
filter_write(struct events *e, unsigned reader, const struct event_want *want)
{
	struct xlb_event_filter *f = &e->m->tables->filter;
	uint8_t *named = calloc(XLB_SERVICES, 1);
	size_t i;

	if (named == NULL)
		fatal("events");
	for (i = 0; !want->any && i < want->nservice; i++)
		if (want->service[i] < XLB_SERVICES)
			named[want->service[i]] = 1;
	for (i = 0; i < XLB_SERVICES; i++)
		bit_set(&f->service[i], reader, named[i]);
	free(named);
	__atomic_store_n(&f->sample[reader],
	    want->one_in > 0 ? want->one_in - 1 : 0, __ATOMIC_RELEASE);
	bit_set(&f->any, reader, want->any);
	for (i = 0; i < XLB_EVENT_REASONS; i++)
		bit_set(&f->reason[i], reader, want->reasons >> i & 1);
}

void
events_want(struct events *e, unsigned reader, const struct event_want *want)
{
	static const struct event_want nothing;
	unsigned before = e->readers;

	e->readers &= ~(1U << reader);
	if (want != NULL)
		e->readers |= 1U << reader;
	filter_write(e, reader, want != NULL ? want : &nothing);
	if (e->io == NULL || (before != 0) == (e->readers != 0))
		return;
	lease(e);
	sd_event_source_set_enabled(e->io,
	    e->readers != 0 ? SD_EVENT_ON : SD_EVENT_OFF);
	sd_event_source_set_time_relative(e->timer, SECOND);
	sd_event_source_set_enabled(e->timer,
	    e->readers != 0 ? SD_EVENT_ONESHOT : SD_EVENT_OFF);
}

int
events_loss(struct events *e, struct event_loss loss[XLB_EVENT_READERS])
{
	size_t n = (size_t)e->m->ncpu, cpu;
	struct xlb_event_state *state = calloc(n, sizeof(*state));
	uint32_t zero = 0;
	int i, rc = 0;

	_Static_assert(sizeof(*state) % 8 == 0, "as the kernel lays it out");
	if (state == NULL)
		fatal("events");
	memset(loss, 0, XLB_EVENT_READERS * sizeof(*loss));
	if (bpf_map_lookup_elem(e->m->fd[MAP_EVENT_STATE], &zero, state) < 0)
		rc = -errno;
	for (cpu = 0; rc == 0 && cpu < n; cpu++)
		for (i = 0; i < XLB_EVENT_READERS; i++) {
			loss[i].limited += state[cpu].limited[i];
			loss[i].unread += state[cpu].unread[i];
		}
	free(state);
	return rc;
}
