/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The processes that probes need: started, watched, and started again. */
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "io/log.h"
#include "io/probe_private.h"

static int
spawner_ready(sd_event_source *s, int fd, uint32_t events, void *arg)
{
	struct prober *p = arg;
	struct probe_spawned said;

	(void)events;
	if (recv(fd, &said, sizeof(said), MSG_DONTWAIT) != sizeof(said)) {
		/* its end is heard of through its pidfd */
		sd_event_source_set_enabled(s, SD_EVENT_OFF);
		return 0;
	}
	p->pid = said.pid;
	if (said.err != 0)
		log_warnx("prober: fork: %s", strerror(said.err));
	return 0;
}

static int
spawner_ended(sd_event_source *s, int fd, uint32_t events, void *arg)
{
	struct prober *p = arg;

	(void)s, (void)fd, (void)events;
	p->spawner_io = sd_event_source_disable_unref(p->spawner_io);
	p->spawner_end = sd_event_source_disable_unref(p->spawner_end);
	spawner_reap(&p->spawner);
	prober_lost(p, "its spawner ended");
	prober_turns(p);
	return 0;
}

int
spawner_watch(struct prober *p)
{
	int rc;

	rc = sd_event_add_io(p->ev, &p->spawner_io, p->spawner.fd, EPOLLIN,
	    spawner_ready, p);
	if (rc < 0)
		return rc;
	return sd_event_add_io(p->ev, &p->spawner_end, p->spawner.pidfd,
	    EPOLLIN, spawner_ended, p);
}

/*
 * A prober of one's own, if there is none and it is time. A spawner that is
 * gone is forked again, which needs SETUID where we are root: without it the
 * log says so, once per attempt, until xlbd is started again.
 */
void
prober_begin(struct prober *p, int64_t now)
{
	int fd, rc;

	if (p->sock >= 0 || now < p->start_at)
		return;
	p->started = now;
	p->start_at = now + RESTART_MS * MSEC;
	if (p->spawner.pid == 0) {
		if (spawner_start(&p->spawner) < 0) {
			p->start_at = now + 10 * RESTART_MS * MSEC;
			return;
		}
		rc = spawner_watch(p);
		if (rc < 0)
			fatalx("prober: %s", strerror(-rc));
	}
	fd = spawner_helper(&p->spawner);
	if (fd < 0) {
		log_warnx("prober: %s", strerror(-fd));
		spawner_kill(&p->spawner);	/* hangs: its queue is full */
		return;
	}
	p->sock = fd;
	rc = sd_event_add_io(p->ev, &p->sock_io, fd, EPOLLIN, prober_heard, p);
	if (rc < 0)
		fatalx("prober: %s", strerror(-rc));
}

/* The commands that it ran end with it; the prober hears that of each. */
static int
launcher_ended(sd_event_source *s, int fd, uint32_t events, void *arg)
{
	struct prober *p = arg;

	(void)s, (void)fd, (void)events;
	log_warnx("prober: its launcher ended, is started again");
	p->launcher_end = sd_event_source_disable_unref(p->launcher_end);
	spawner_reap(&p->launcher);
	p->launch_at = probe_now().ns + RESTART_MS * MSEC;
	prober_turns(p);
	return 0;
}

int
launcher_watch(struct prober *p)
{
	return sd_event_add_io(p->ev, &p->launcher_end, p->launcher.pidfd,
	    EPOLLIN, launcher_ended, p);
}

void
launcher_begin(struct prober *p, int64_t now)
{
	int rc;

	if (p->launcher.pid != 0 || now < p->launch_at)
		return;
	p->launch_at = now + 10 * RESTART_MS * MSEC;
	if (spawner_start(&p->launcher) < 0)
		return;
	rc = launcher_watch(p);
	if (rc < 0)
		fatalx("prober: %s", strerror(-rc));
}
