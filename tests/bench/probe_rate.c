/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What tcp checks cost: probe_rate [CHECKS-PER-SECOND [SECONDS]] prints the
 * share of one core that xlbd's side and the prober take. */
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "core/conf.h"
#include "io/log.h"
#include "io/probe.h"

#define INTERVAL_MS 2000
#define PORTS 20

static size_t result[PROBE_RESULTS];

static void
result_count(size_t id, enum probe_result r, uint16_t detail, const char *said,
    void *arg)
{
	(void)id, (void)detail, (void)said, (void)arg;
	result[r]++;
}

/* Seconds of CPU that a process has used. */
static double
cpu_of(pid_t pid)
{
	struct timespec ts = { 0 };
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) != 0 ||
	    clock_gettime(clock, &ts) < 0)
		return 0;
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static double
now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* Half of the ports accept in a process of their own, half refuse. */
static pid_t
backend_start(uint16_t port[PORTS])
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	socklen_t len = sizeof(in);
	int fd[PORTS], i, on = 1;
	pid_t pid;

	for (i = 0; i < PORTS; i++) {
		fd[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		setsockopt(fd[i], SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
		in.sin_port = 0;
		if (bind(fd[i], (struct sockaddr *)&in, sizeof(in)) < 0 ||
		    getsockname(fd[i], (struct sockaddr *)&in, &len) < 0 ||
		    (i % 2 == 0 && listen(fd[i], 4096) < 0))
			fatal("listen");
		port[i] = ntohs(in.sin_port);
	}
	pid = fork();
	if (pid != 0) {
		for (i = 0; i < PORTS; i++)
			if (i % 2 == 0)
				close(fd[i]);
		return pid;
	}
	for (;;) {
		int client, none = 1;

		for (i = 0; i < PORTS; i += 2)
			while ((client = accept(fd[i], NULL, NULL)) >= 0) {
				close(client);
				none = 0;
			}
		if (none)
			usleep(1000);
	}
}

static int
target_order(const void *a, const void *b)
{
	const struct health_target *x = a, *y = b;
	int c = addr_cmp(&x->addr, &y->addr);

	return c != 0 ? c : (x->port > y->port) - (x->port < y->port);
}

int
main(int argc, char *argv[])
{
	size_t rate = argc > 1 ? strtoul(argv[1], NULL, 10) : 10000, i, n;
	double seconds = argc > 2 ? atof(argv[2]) : 10, begin, mine, its, t;
	struct conf_check c = { .name = "c", .type = CHECK_TCP,
		.interval_ms = INTERVAL_MS, .timeout_ms = 1000 };
	struct health_target *target;
	struct prober *p;
	uint16_t port[PORTS];
	sd_event *ev;
	pid_t backend;

	log_init("probe_rate", false);
	if (prober_fork("_xlb", &p) < 0 || sd_event_new(&ev) < 0)
		return 1;
	backend = backend_start(port);
	n = rate * INTERVAL_MS / 1000;
	target = calloc(n, sizeof(*target));
	for (i = 0; i < n; i++) {
		target[i].addr = addr_from4(htonl((uint32_t)(0x7f010000 +
		    i / PORTS)));
		target[i].port = port[i % PORTS];
		target[i].check = &c;
	}
	qsort(target, n, sizeof(*target), target_order);
	prober_start(p, ev, result_count, NULL);
	prober_set(p, target, n);
	for (t = now(); now() < t + 2 * INTERVAL_MS / 1000.0;)
		sd_event_run(ev, 100000);
	memset(result, 0, sizeof(result));
	begin = now();
	mine = cpu_of(getpid());
	its = cpu_of(prober_pid(p));
	while (now() < begin + seconds)
		sd_event_run(ev, 100000);
	t = now() - begin;
	mine = cpu_of(getpid()) - mine;
	its = cpu_of(prober_pid(p)) - its;
	for (i = n = 0; i < PROBE_RESULTS; i++)
		n += result[i];
	printf("%.0f checks/s (ok %zu, refused %zu, timeout %zu, local %zu): "
	    "xlbd %.1f %%, prober %.1f %% of a core\n", (double)n / t,
	    result[PROBE_OK], result[PROBE_REFUSED], result[PROBE_TIMEOUT],
	    result[PROBE_LOCAL], 100 * mine / t, 100 * its / t);
	kill(backend, SIGKILL);
	prober_close(p);
	sd_event_unref(ev);
	free(target);
	return 0;
}
