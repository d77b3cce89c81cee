/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What xlbd counts itself, for metrics: kept over restarts (io/counters). */
#ifndef XLB_COUNT_H
#define XLB_COUNT_H

#include <stdint.h>

#include "core/conf.h"
#include "core/health.h"
#include "core/metric.h"
#include "core/plan.h"
#include "daemon/drift.h"

enum count_reload { COUNT_SUCCESS, COUNT_PARTIAL, COUNT_FAILURE, COUNT_RELOADS };
const char *count_reload_text(enum count_reload r);

enum count_result { COUNT_PASS, COUNT_FAIL, COUNT_DRAIN, COUNT_LOCAL,
	COUNT_RESULTS };
const char *count_result_text(enum count_result r);

/* Of one check; its row of io/counters. */
struct count_check {
	uint64_t result[COUNT_RESULTS];
	struct metric_histogram took;
};

struct counters;

struct count {
	struct counters *file;
	uint64_t *drift;	/* by enum drift_kind */
	struct drift seen;	/* is in `drift` already */
	uint64_t *reload;	/* by enum count_reload */
	uint64_t *surge;	/* seconds */
	uint64_t *cpu;		/* see count_cpu() */
	const struct conf *conf;	/* whose rows these are: */
	struct count_check **check;	/* as conf->check */
	uint64_t **moved;	/* slots, as conf->pool */
};

void count_open(struct count *c, const char *run_dir);
void count_close(struct count *c);
/* Before anything else knows of the new configuration. */
void count_follow(struct count *c, const struct conf *conf);

/* The operations of a plan that was applied, without those that `failed`. */
void count_moved(struct count *c, const struct plan *p, const bool *failed);
/* What has been added since the last call. */
void count_drift(struct count *c, const struct drift *now);
/* A probe ended; `ns`: how long it took. */
void count_probe(struct count *c, const struct conf_check *check,
    enum probe_result r, int64_t ns);
/* Processor time of this process and those before it, ns. */
uint64_t count_cpu(struct count *c);

#endif
