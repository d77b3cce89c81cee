/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A prober on a loop of its own, and targets for it. */
#ifndef XLB_PROBE_TEST_H
#define XLB_PROBE_TEST_H

#include "../unit/unit.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/conf.h"
#include "io/probe.h"
#include "io/probe_wire.h"

#define TARGETS_MAX 1000

struct bench {
	sd_event *ev;
	struct prober *p;
	size_t got[TARGETS_MAX], total;
	enum probe_result last[TARGETS_MAX];
	uint16_t detail[TARGETS_MAX];
	int64_t first_at[TARGETS_MAX];	/* ns */
	int64_t begin;
};

static inline void
result_count(size_t id, enum probe_result r, uint16_t detail, void *arg)
{
	struct bench *b = arg;

	assert_true(id < TARGETS_MAX);
	if (b->got[id]++ == 0)
		b->first_at[id] = probe_now().ns;
	b->last[id] = r;
	b->detail[id] = detail;
	b->total++;
}

static inline void
bench_reset(struct bench *b)
{
	memset(b->got, 0, sizeof(b->got));
	memset(b->last, 0xff, sizeof(b->last));
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

static inline size_t
fds_of(pid_t pid)
{
	char path[64];
	struct dirent *e;
	size_t n = 0;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	d = opendir(path);
	assert_non_null(d);
	while ((e = readdir(d)) != NULL)
		n += e->d_name[0] != '.';
	closedir(d);
	return n;
}

#endif
