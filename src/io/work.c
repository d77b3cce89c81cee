/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A thread for one call, and its end as an event. */
#include "io/work.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "io/log.h"

struct work {
	pthread_t thread;
	int fd;			/* readable when it is over */
	sd_event_source *source;
	void (*fn)(void *arg);
	void (*done)(void *arg);
	void *arg;
};

int
work_thread(pthread_t *thread, void *(*fn)(void *arg), void *arg)
{
	sigset_t all, old;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(thread, NULL, fn, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return -rc;
}

static void *
work_run(void *arg)
{
	struct work *w = arg;

	w->fn(w->arg);
	if (eventfd_write(w->fd, 1) < 0)
		fatal("work");
	return NULL;
}

static int
on_over(sd_event_source *s, int fd, uint32_t revents, void *arg)
{
	struct work *w = arg;

	(void)fd;
	(void)revents;
	sd_event_source_set_enabled(s, SD_EVENT_OFF);
	w->done(w->arg);
	return 0;
}

int
work_open(sd_event *ev, void (*fn)(void *arg), void (*done)(void *arg),
    void *arg, struct work **out)
{
	struct work *w = calloc(1, sizeof(*w));
	int rc;

	if (w == NULL)
		fatal("work");
	*w = (struct work){ .fn = fn, .done = done, .arg = arg };
	w->fd = eventfd(0, EFD_CLOEXEC);
	rc = w->fd < 0 ? -errno :
	    sd_event_add_io(ev, &w->source, w->fd, EPOLLIN, on_over, w);
	if (rc >= 0)
		rc = work_thread(&w->thread, work_run, w);
	if (rc < 0) {
		sd_event_source_unref(w->source);
		if (w->fd >= 0)
			close(w->fd);
		free(w);
		return rc;
	}
	*out = w;
	return 0;
}

void
work_close(struct work *w)
{
	if (w == NULL)
		return;
	pthread_join(w->thread, NULL);
	sd_event_source_disable_unref(w->source);
	close(w->fd);
	free(w);
}
