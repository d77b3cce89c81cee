/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A thread that waits for grace periods. */
#include "io/grace.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "io/log.h"
#include "io/work.h"

struct grace {
	pthread_t thread;
	int map, inner;
	int ours, its;		/* a socket pair: a byte asks, one answers: errno */
	sd_event_source *source, *again;
	bool failed;		/* the last one; it was said */
	void (*done)(void *arg);
	void *arg;
};

#define AGAIN_US 1000000	/* after one that failed */

/* No memory is shared that changes: two descriptors and a byte. Where the
 * system call fails, no answer is better than a wrong one. */
static void *
grace_run(void *arg)
{
	const struct grace *g = arg;
	uint32_t zero = 0;
	char byte;

	while (read(g->its, &byte, 1) == 1) {
		byte = 0;
		if (bpf_map_update_elem(g->map, &zero, &g->inner,
		    BPF_ANY) < 0)
			byte = (char)errno;
		if (write(g->its, &byte, 1) != 1)
			break;
	}
	return NULL;
}

static int
on_answer(sd_event_source *s, int fd, uint32_t revents, void *arg)
{
	struct grace *g = arg;
	char byte = 0;

	(void)s;
	(void)revents;
	if (read(fd, &byte, 1) != 1)
		return 0;
	if (byte != 0) {
		if (!g->failed)
			log_warnx("maps: no grace period: %s: rings and "
			    "numbers are not tidied up; it is tried again",
			    strerror(byte));
		g->failed = true;
		sd_event_source_set_time_relative(g->again, AGAIN_US);
		sd_event_source_set_enabled(g->again, SD_EVENT_ONESHOT);
		return 0;
	}
	g->failed = false;
	g->done(g->arg);
	return 0;
}

static int
on_again(sd_event_source *s, uint64_t usec, void *arg)
{
	(void)s;
	(void)usec;
	grace_ask(arg);
	return 0;
}

int
grace_open(sd_event *ev, int map, int inner, void (*done)(void *arg),
    void *arg, struct grace **out)
{
	struct grace *g = calloc(1, sizeof(*g));
	int rc, fd[2];

	if (g == NULL)
		fatal("grace");
	*g = (struct grace){ .map = map, .inner = inner, .done = done,
	    .arg = arg };
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd) < 0) {
		rc = -errno;
		free(g);
		return rc;
	}
	g->ours = fd[0];
	g->its = fd[1];
	rc = sd_event_add_io(ev, &g->source, g->ours, EPOLLIN, on_answer, g);
	if (rc >= 0)
		rc = sd_event_add_time(ev, &g->again, CLOCK_MONOTONIC, 0, 0,
		    on_again, g);
	if (rc >= 0)
		rc = sd_event_source_set_enabled(g->again, SD_EVENT_OFF);
	if (rc >= 0)
		rc = work_thread(&g->thread, grace_run, g);
	if (rc < 0) {
		sd_event_source_unref(g->source);
		sd_event_source_unref(g->again);
		close(fd[0]);
		close(fd[1]);
		free(g);
		return rc;
	}
	*out = g;
	return 0;
}

void
grace_close(struct grace *g)
{
	if (g == NULL)
		return;
	sd_event_source_unref(g->source);
	sd_event_source_unref(g->again);
	shutdown(g->ours, SHUT_RDWR);
	pthread_join(g->thread, NULL);
	close(g->ours);
	close(g->its);
	free(g);
}

void
grace_ask(struct grace *g)
{
	char byte = 1;

	if (write(g->ours, &byte, 1) != 1)
		log_warn("grace");
}
