/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Namespaces and commands for tests against the real kernel. */
#include "io/prog.h"
#include "kern.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "io/log.h"

static char log_text[1 << 16];

void
kern_enter(void)
{
	if (unshare(CLONE_NEWNET | CLONE_NEWNS) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) {
		printf("1..0 # SKIP needs root: %s\n", strerror(errno));
		exit(0);
	}
	run("ip link set lo up");
}

pid_t
kern_peer(void)
{
	int ready[2];
	char c;
	pid_t pid;

	if (pipe(ready) < 0 || (pid = fork()) < 0) {
		perror("kern_peer");
		exit(1);
	}
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (unshare(CLONE_NEWNET) < 0)
			_exit(1);
		close(ready[0]);
		if (write(ready[1], "", 1) != 1)
			_exit(1);
		close(ready[1]);
		for (;;)
			pause();
	}
	close(ready[1]);
	if (read(ready[0], &c, 1) != 1) {
		fprintf(stderr, "kern_peer: no namespace\n");
		exit(1);
	}
	close(ready[0]);
	run_in(pid, "ip link set lo up");
	return pid;
}

void
kern_peer_end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static int
command(const char *before, const char *fmt, va_list ap)
{
	char cmd[1024];
	int n, status;

	n = snprintf(cmd, sizeof(cmd), "%s", before);
	vsnprintf(cmd + n, sizeof(cmd) - (size_t)n, fmt, ap);
	status = system(cmd);
	if (status != 0)
		fprintf(stderr, "`%s` ended with %d\n", cmd, status);
	return status;
}

void
run(const char *fmt, ...)
{
	va_list ap;
	int rc;

	va_start(ap, fmt);
	rc = command("", fmt, ap);
	va_end(ap);
	if (rc != 0)
		exit(1);
}

int
run_try(const char *fmt, ...)
{
	va_list ap;
	int rc;

	va_start(ap, fmt);
	rc = command("", fmt, ap);
	va_end(ap);
	return rc;
}

void
run_in(pid_t pid, const char *fmt, ...)
{
	char before[64];
	va_list ap;
	int rc;

	snprintf(before, sizeof(before), "nsenter --net=/proc/%d/ns/net ",
	    (int)pid);
	va_start(ap, fmt);
	rc = command(before, fmt, ap);
	va_end(ap);
	if (rc != 0)
		exit(1);
}

double
now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

void
kern_bpffs(void)
{
	if (mount("bpf", "/sys/fs/bpf", "bpf", 0, NULL) < 0) {
		printf("1..0 # SKIP no bpffs: %s\n", strerror(errno));
		exit(0);
	}
}

static void
log_take(int level, const char *line, void *arg)
{
	size_t n = strlen(log_text);

	(void)level;
	(void)arg;
	snprintf(log_text + n, sizeof(log_text) - n, "%s\n", line);
}

void
kern_log_clear(void)
{
	log_text[0] = '\0';
	log_capture(log_take, NULL);
}

bool
kern_log_has(const char *text)
{
	return strstr(log_text, text) != NULL;
}

const char *
kern_log(void)
{
	return log_text;
}

int
kern_prog_end(struct prog *p)
{
	int rc = prog_remove(p);

	prog_close(p);
	return rc;
}
