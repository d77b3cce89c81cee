/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A prober on a loop of its own, and targets for it. */
#ifndef XLB_PROBE_TEST_H
#define XLB_PROBE_TEST_H

#include "../unit/unit.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/conf.h"
#include "io/probe.h"
#include "io/probe_wire.h"

#define TARGETS_MAX 1000
#define ENOUGH_NS INT64_C(180000000000)	/* where a busy machine may take long */
#define NEVER_MS 4000000000u	/* an interval that no test sees the end of */
#define ANSWERED_MS 6000	/* a timeout, within which a busy machine answers */

struct bench {
	sd_event *ev;
	struct prober *p;
	size_t got[TARGETS_MAX], total;
	size_t ended[PROBE_RESULTS];	/* of all targets, by how */
	enum probe_result last[TARGETS_MAX];
	uint16_t detail[TARGETS_MAX];
	char said[TARGETS_MAX][HEALTH_SAID_MAX];
	int64_t first_at[TARGETS_MAX];	/* ns */
	int64_t begin;
};

static inline void
result_count(size_t id, enum probe_result r, uint16_t detail, const char *said,
    void *arg)
{
	struct bench *b = arg;

	assert_true(id < TARGETS_MAX);
	if (b->got[id]++ == 0)
		b->first_at[id] = probe_now().ns;
	b->last[id] = r;
	b->ended[r]++;
	b->detail[id] = detail;
	snprintf(b->said[id], sizeof(b->said[id]), "%s", said);
	b->total++;
}

static inline void
bench_reset(struct bench *b)
{
	memset(b->got, 0, sizeof(b->got));
	memset(b->last, 0xff, sizeof(b->last));
	memset(b->ended, 0, sizeof(b->ended));
	b->total = 0;
	b->begin = probe_now().ns;
}

static inline void
bench_open(struct bench *b)
{
	assert_int_equal(prober_fork("_xlb", &b->p), 0);
	assert_true(sd_event_new(&b->ev) >= 0);
	bench_reset(b);
	assert_int_equal(prober_start(b->p, b->ev, result_count, b), 0);
}

static inline void
bench_close(struct bench *b)
{
	prober_close(b->p);
	sd_event_unref(b->ev);
}

/* The loop for so long, or until there are `enough` results in all. */
static inline void
bench_run(struct bench *b, int64_t ms, size_t enough)
{
	int64_t until = probe_now().ns + ms * 1000000, left;

	while ((left = until - probe_now().ns) > 0 && b->total < enough)
		assert_true(sd_event_run(b->ev, (uint64_t)left / 1000 + 1) >=
		    0);
}

/* The loop until that is so; where it never is, the test has failed. */
#define BENCH_AWAIT(b, cond) do { \
	int64_t until_ = probe_now().ns + ENOUGH_NS; \
	while (!(cond) && probe_now().ns < until_) \
		bench_run(b, 10, (b)->total + 1); \
	assert_true(cond); \
} while (0)

/* Until each of the `n` targets has a result, for three minutes at most. */
static inline void
bench_each(struct bench *b, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		while (b->got[i] == 0 && probe_now().ns < b->begin + ENOUGH_NS)
			bench_run(b, 100, b->total + 1);
}

/* Until the prober has found its place: `n` descriptors, and no more. */
#define BENCH_HOLDS(b, n) BENCH_AWAIT(b, prober_pid((b)->p) > 0 && \
	fds_of(prober_pid((b)->p)) == (n))

/* A check of another type, with a name of its own: `name` is written. */
static inline struct conf_check
check_of(enum check_type type, size_t i, char name[8], bool times_out)
{
	struct conf_check c = { .name = name, .type = type,
		.interval_ms = NEVER_MS, .timeout_ms = times_out ? 500 : 120000,
		.rise = 2, .fall = 3 };

	snprintf(name, 8, "c%zu", i % 100000);
	return c;
}

/* One server of a script in tests/io, which tells "NAME PORT" of each. */
struct script {
	pid_t pid;
	FILE *out;
};

static inline struct script
script_start(const char *name, const char *arg)
{
	const char *top = getenv("top_srcdir");
	struct script s;
	char path[512];
	int out[2];

	snprintf(path, sizeof(path), "%s/tests/io/%s", top != NULL ? top : ".",
	    name);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	s.pid = fork();
	if (s.pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(out[1], STDOUT_FILENO);
		execlp("python3", "python3", path, arg, NULL);
		_exit(127);
	}
	close(out[1]);
	s.out = fdopen(out[0], "r");
	return s;
}

/* The servers are told in the order in which they are asked for. */
static inline uint16_t
script_port(const struct script *s, const char *name)
{
	char line[128];
	size_t len = strlen(name);

	while (fgets(line, sizeof(line), s->out) != NULL)
		if (strncmp(line, name, len) == 0 && line[len] == ' ')
			return (uint16_t)atoi(line + len);
	fail_msg("no server %s", name);
	return 0;
}

static inline void
script_end(const struct script *s)
{
	fclose(s->out);
	kill(s->pid, SIGKILL);
	waitpid(s->pid, NULL, 0);
}

/* A network of our own, where nobody else takes a port, and lo is up. */
static inline bool
net_own(void)
{
	struct ifreq ifr = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	bool up;
	int fd;

	if (geteuid() != 0 || unshare(CLONE_NEWNET) < 0)
		return false;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	up = ioctl(fd, SIOCSIFFLAGS, &ifr) == 0;
	close(fd);
	return up;
}

/* A socket bound to a port of 127.0.0.1; it listens if `backlog` >= 0. */
static inline int
port_open(int backlog, uint16_t *port)
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	socklen_t len = sizeof(in);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(fd, (struct sockaddr *)&in, sizeof(in)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&in, &len), 0);
	if (backlog >= 0)
		assert_int_equal(listen(fd, backlog), 0);
	*port = ntohs(in.sin_port);
	return fd;
}

static inline struct conf_check
check_tcp(uint32_t interval_ms, uint32_t timeout_ms)
{
	return (struct conf_check){ .name = "c", .type = CHECK_TCP,
		.interval_ms = interval_ms, .timeout_ms = timeout_ms,
		.rise = 2, .fall = 3 };
}

static inline struct health_target
target(const char *addr, uint16_t port, const struct conf_check *c)
{
	struct health_target t = { .port = port, .check = c };

	assert_int_equal(addr_parse(addr, &t.addr), 0);
	return t;
}

/* A line of /proc/PID/status, without its tab; NULL: the process is gone. */
static inline const char *
status_find(pid_t pid, const char *key)
{
	static char line[512];
	const char *found = NULL;
	char path[64];
	size_t len = strlen(key);
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "re");
	while (f != NULL && found == NULL &&
	    fgets(line, sizeof(line), f) != NULL)
		if (strncmp(line, key, len) == 0 && line[len] == ':') {
			line[strcspn(line, "\n")] = '\0';
			found = line + len + 1 + strspn(line + len + 1, "\t ");
		}
	if (f != NULL)
		fclose(f);
	return found;
}

/* Is it in one of these states, or gone? */
static inline bool
process_is(pid_t pid, const char *states)
{
	const char *now = status_find(pid, "State");

	return now == NULL || strchr(states, now[0]) != NULL;
}

/* Until it is, and no longer than three minutes: a signal needs a moment. */
static inline void
process_await(pid_t pid, const char *states)
{
	int64_t until = probe_now().ns + ENOUGH_NS;

	while (!process_is(pid, states) && probe_now().ns < until)
		usleep(2000);
	assert_true(process_is(pid, states));
}

static inline size_t
fds_of(pid_t pid)
{
	char path[64];
	struct dirent *e;
	size_t n = 0;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	d = opendir(path);
	if (d == NULL)		/* it has just ended */
		return 0;
	while ((e = readdir(d)) != NULL)
		n += e->d_name[0] != '.';
	closedir(d);
	return n;
}

/* Asks nothing any more, and holds nothing: its three, its socket, its epoll
 * set. */
static inline void
bench_idle(struct bench *b)
{
	assert_int_equal(prober_set(b->p, NULL, 0), 0);
	BENCH_HOLDS(b, 5);
}

/* After the last result: nothing is left, and the server `pid` ends. */
static inline void
bench_end(struct bench *b, pid_t pid)
{
	bench_idle(b);
	bench_close(b);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* As cmocka_run_group_tests_name(). */
#define PROBE_TESTS(name, tests) (geteuid() != 0 ? \
    (puts("1..0 # SKIP needs root: looks at the prober in /proc"), 0) : \
    cmocka_run_group_tests_name(name, tests, NULL, NULL))

#endif
