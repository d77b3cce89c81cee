/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * `xlb restart`: the xlbd that is to come is asked whether it could take over
 * before this one ends. One that can't would be started until the service manager
 * gives up, and xlb0 and each announcement would go with that.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/daemon.h"
#include "io/log.h"

#define ANSWER_MS 60000		/* a slow machine's verifier needs some */
#define SAID_MAX 4096		/* bytes of why not */

extern char **environ;

/* Begun as this one was, but for the question. What it says
 * goes into `r->said`. 0, or -errno. */
static int
child_spawn(struct restart *r, const struct origin *from)
{
	static char question[] = "--preflight=restart";
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	sigset_t none, pipe;
	char **argv;
	size_t n = 0;
	int rc;

	while (from->argv[n] != NULL)
		n++;
	argv = calloc(n + 2, sizeof(*argv));
	if (argv == NULL)
		fatal("restart");
	memcpy(argv, from->argv, n * sizeof(*argv));
	argv[n] = question;
	sigemptyset(&none);
	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, r->said, STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&files, r->said, STDERR_FILENO);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &pipe);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK |
	    POSIX_SPAWN_SETSIGDEF);
	rc = posix_spawn(&r->pid, from->path, &files, &attr, argv, environ);
	if (rc != 0)
		r->pid = 0;
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&files);
	free(argv);
	return -rc;
}

/* Nobody is asked any more. Its exit status, or -1: it did not end by itself. */
static int
child_end(struct restart *r)
{
	int status = -1;

	r->ended = sd_event_source_disable_unref(r->ended);
	r->late = sd_event_source_disable_unref(r->late);
	if (r->pid > 0) {
		kill(r->pid, SIGKILL);	/* one that has ended does not mind */
		while (waitpid(r->pid, &status, 0) < 0 && errno == EINTR)
			;
	}
	r->pid = 0;
	return status >= 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void
answer(struct restart *r, json_t *reply)
{
	if (r->said >= 0)
		close(r->said);
	r->said = -1;
	ctl_reply(r->rq, reply);
	r->rq = NULL;
}

/* Its own words, a line each. */
static void
reasons_add(const struct restart *r, json_t *reply)
{
	char buf[SAID_MAX], *line, *rest;
	ssize_t n = pread(r->said, buf, sizeof(buf) - 1, 0);

	buf[n > 0 ? n : 0] = '\0';
	for (line = strtok_r(buf, "\n", &rest); line != NULL;
	    line = strtok_r(NULL, "\n", &rest)) {
		if (strncmp(line, "xlbd: ", 6) == 0)
			line += 6;
		log_warnx("restart: %s", line);
		ctl_error(reply, "%s", line);
	}
}

static void
refuse(struct daemon *d, int status, const char *what)
{
	struct restart *r = &d->restart;
	json_t *reply = ctl_message(status);

	reasons_add(r, reply);
	log_warnx("restart: refused (%s): %s: %s; this xlbd goes on", r->why,
	    d->origin->path, what);
	ctl_error(reply, "not restarted: %s: %s; the xlbd that runs goes on",
	    d->origin->path, what);
	answer(r, reply);
}

static void
restart(struct daemon *d)
{
	log_change("daemon", "serving", "restarting", d->restart.why);
	d->again = true;
	answer(&d->restart, ctl_message(0));
	sd_event_exit(d->ev, 0);
}

static int
on_ended(sd_event_source *s, int fd, uint32_t events, void *arg)
{
	struct daemon *d = arg;
	int status = child_end(&d->restart);
	json_t *reply;

	(void)s, (void)fd, (void)events;
	if (d->lifecycle.life == LIFE_STOP) {
		reply = ctl_message(EXIT_FAILED);
		ctl_error(reply, "xlbd is stopping");
		answer(&d->restart, reply);
	} else if (status == 0) {
		restart(d);
	} else if (status == EXIT_CONFIG) {
		refuse(d, EXIT_CONFIG, "no configuration to start with");
	} else {
		refuse(d, EXIT_FAILED, "cannot take over");
	}
	return 0;
}

static int
on_late(sd_event_source *s, uint64_t usec, void *arg)
{
	struct daemon *d = arg;

	(void)s, (void)usec;
	child_end(&d->restart);
	refuse(d, EXIT_FAILED, "does not say whether it can take over");
	return 0;
}

/* 0, or -errno. */
static int
child_watch(struct daemon *d)
{
	struct restart *r = &d->restart;
	int fd = pidfd_open(r->pid, 0), rc;

	if (fd < 0)
		return -errno;
	rc = sd_event_add_io(d->ev, &r->ended, fd, EPOLLIN, on_ended, d);
	if (rc < 0) {
		close(fd);
		return rc;
	}
	sd_event_source_set_io_fd_own(r->ended, 1);
	return sd_event_add_time_relative(d->ev, &r->late, CLOCK_MONOTONIC,
	    ANSWER_MS * UINT64_C(1000), 0, on_late, d);
}

void
restart_ask(struct daemon *d, struct ctl_request *rq)
{
	struct restart *r = &d->restart;
	json_t *reply;
	int rc = 0;

	if (r->rq != NULL || d->lifecycle.life == LIFE_STOP) {
		reply = ctl_message(EXIT_FAILED);
		ctl_error(reply, r->rq != NULL ?
		    "xlbd is asked to restart already" : "xlbd is stopping");
		ctl_reply(rq, reply);
		return;
	}
	r->rq = rq;
	ctl_asked(rq, "restart", r->why);
	r->said = memfd_create("xlb-restart", MFD_CLOEXEC);
	if (r->said < 0)
		rc = -errno;
	if (rc == 0)
		rc = child_spawn(r, d->origin);
	if (rc == 0)
		rc = child_watch(d);
	if (rc < 0) {
		child_end(r);
		refuse(d, EXIT_FAILED, strerror(-rc));
	}
}

void
restart_close(struct daemon *d)
{
	json_t *reply;

	if (d->restart.rq == NULL)
		return;
	child_end(&d->restart);
	reply = ctl_message(EXIT_FAILED);
	ctl_error(reply, "xlbd ended before it restarted");
	answer(&d->restart, reply);
}
