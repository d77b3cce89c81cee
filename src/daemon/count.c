/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counters of xlbd itself, each in its row of a file that outlives it. */
#include "daemon/count.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "io/counters.h"
#include "io/file.h"
#include "io/log.h"

_Static_assert(sizeof(struct count_check) <=
    COUNTERS_WORDS * sizeof(uint64_t), "the row of a check");
_Static_assert((unsigned)DRIFT_KINDS <= COUNTERS_WORDS, "the row of drift");

const char *
count_reload_text(enum count_reload r)
{
	static const char *const text[COUNT_RELOADS] = {
		[COUNT_SUCCESS] = "success", [COUNT_PARTIAL] = "partial",
		[COUNT_FAILURE] = "failure" };

	return text[r];
}

const char *
count_result_text(enum count_result r)
{
	static const char *const text[COUNT_RESULTS] = {
		[COUNT_PASS] = "pass", [COUNT_FAIL] = "fail",
		[COUNT_DRAIN] = "drain", [COUNT_LOCAL] = "local" };

	return text[r];
}

void
count_follow(struct count *c, const struct conf *conf)
{
	size_t i;

	counters_renew(c->file);
	c->conf = conf;
	c->drift = counters_row(c->file, "drift", "");
	c->reload = counters_row(c->file, "reload", "");
	c->surge = counters_row(c->file, "surge", "");
	c->cpu = counters_row(c->file, "cpu", "");
	free(c->check);
	free(c->moved);
	c->check = calloc(conf->ncheck + 1, sizeof(c->check[0]));
	c->moved = calloc(conf->npool + 1, sizeof(c->moved[0]));
	if (c->check == NULL || c->moved == NULL)
		fatal("counters");
	for (i = 0; i < conf->ncheck; i++)
		c->check[i] = (struct count_check *)counters_row(c->file,
		    "check", conf->check[i].name);
	for (i = 0; i < conf->npool; i++)
		c->moved[i] = counters_row(c->file, "pool",
		    conf->pool[i].name);
}

void
count_open(struct count *c, const char *run_dir)
{
	static const struct conf nothing;

	c->file = counters_open(run_dir);
	count_follow(c, &nothing);
}

void
count_close(struct count *c)
{
	if (c->file == NULL)
		return;
	count_cpu(c);
	counters_close(c->file);
	free(c->check);
	free(c->moved);
	memset(c, 0, sizeof(*c));
}

void
count_drift(struct count *c, const struct drift *now)
{
	int k;

	for (k = 0; k < DRIFT_KINDS; k++)
		c->drift[k] += now->n[k] - c->seen.n[k];
	c->seen = *now;
}

void
count_moved(struct count *c, const struct plan *p, const bool *failed)
{
	uint32_t before[XLB_RINGS];
	const struct conf_pool *pool;
	const struct op_ring *r;
	size_t i;

	memset(before, 0, sizeof(before));
	for (i = 0; i < p->n; i++) {
		if (p->op[i].kind != OP_RING_SLOTS || failed[i])
			continue;
		r = p->op[i].row;
		pool = conf_pool_find(c->conf, r->pool);
		if (pool == NULL || r->number >= XLB_RINGS)
			continue;
		/* the second on one ring counts those of the first too */
		*c->moved[pool - c->conf->pool] += r->moved -
		    before[r->number];
		before[r->number] = r->moved;
	}
}

void
count_probe(struct count *c, const struct conf_check *check,
    enum probe_result r, int64_t ns)
{
	struct count_check *row = c->check[check - c->conf->check];

	row->result[r == PROBE_OK ? COUNT_PASS : r == PROBE_DRAIN ?
	    COUNT_DRAIN : r == PROBE_LOCAL ? COUNT_LOCAL : COUNT_FAIL]++;
	if (r != PROBE_LOCAL)
		metric_histogram_add(&row->took, ns > 0 ? (uint64_t)ns : 0);
}

/* When this process began, in ticks since boot (proc(5)); 0: not known. */
static uint64_t
process_start(void)
{
	unsigned long long start = 0;
	char *text = NULL, *p;
	size_t len;

	if (file_read("/proc/self/stat", 4096, &text, &len) == 0 &&
	    (p = strrchr(text, ')')) != NULL)
		sscanf(p + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u "
		    "%*u %*u %*d %*d %*d %*d %*d %*d %llu", &start);
	free(text);
	return start;
}

/* The row: of processes before, this one's start, what it has used. */
uint64_t
count_cpu(struct count *c)
{
	enum { BEFORE, START, USED };
	uint64_t start = process_start();
	struct rusage ru;

	if (c->cpu[START] != start) {
		c->cpu[BEFORE] += c->cpu[USED];
		c->cpu[USED] = 0;
		c->cpu[START] = start;
	}
	if (getrusage(RUSAGE_SELF, &ru) == 0)
		c->cpu[USED] = (uint64_t)(ru.ru_utime.tv_sec +
		    ru.ru_stime.tv_sec) * 1000000000 + (uint64_t)
		    (ru.ru_utime.tv_usec + ru.ru_stime.tv_usec) * 1000;
	return c->cpu[BEFORE] + c->cpu[USED];
}
