/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Loaded before xlbd's libraries (LD_PRELOAD) under valgrind 3.19: what it does not
 * have. pidfd_open() (Linux 5.3), without which no helper starts: the reading end
 * of a pipe that a thread closes when the process has ended, which poll() tells
 * alike. And a smaller hard limit of descriptors, which helpers set themselves and
 * valgrind refuses, since it has some of its own above: the soft one is set.
 * Besides, a helper has the time to end by itself before it is killed, so that it
 * says what it has lost.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE_MS 5000

/* Both are in the pointer: memory would be lost in what is forked meanwhile. */
static void *
watch_run(void *arg)
{
	uint64_t both = (uintptr_t)arg;
	siginfo_t si;

	waitid(P_PID, (id_t)(both >> 32), &si, WEXITED | WNOWAIT);
	close((int)(both & 0xffffffff));
	return NULL;
}

int
pidfd_open(pid_t pid, unsigned int flags)
{
	pthread_attr_t attr;
	pthread_t thread;
	int fd[2];

	if (flags != 0 || pipe2(fd, O_CLOEXEC) < 0)
		abort();
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (pthread_create(&thread, &attr, watch_run, (void *)(uintptr_t)
	    ((uint64_t)pid << 32 | (uint32_t)fd[1])) != 0)
		abort();
	pthread_attr_destroy(&attr);
	return fd[0];
}

static int
is_helper(pid_t pid)
{
	char path[64], name[5] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	f = fopen(path, "re");
	if (f == NULL)
		return 0;
	if (fread(name, 1, 4, f) != 4)
		name[0] = '\0';
	fclose(f);
	return strcmp(name, "xlb-") == 0;
}

int
kill(pid_t pid, int sig)
{
	siginfo_t si = { 0 };
	int tries;

	for (tries = 0; sig == SIGKILL && pid > 0 && is_helper(pid) &&
	    tries < PATIENCE_MS / 10; tries++) {
		if (waitid(P_PID, (id_t)pid, &si, WEXITED | WNOHANG | WNOWAIT) <
		    0 || si.si_pid == pid)
			break;
		usleep(10000);
	}
	return (int)syscall(SYS_kill, pid, sig);
}

int
setrlimit(__rlimit_resource_t what, const struct rlimit *limit)
{
	struct rlimit own = *limit, now;

	if (what == RLIMIT_NOFILE && getrlimit(what, &now) == 0)
		own.rlim_max = now.rlim_max;
	return prlimit(0, what, &own, NULL);
}
