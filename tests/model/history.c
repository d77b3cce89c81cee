/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Histories at random against exact bookkeeping: no connection whose backend
 * lives is ever moved while the flow table holds it. Other moves are counted
 * beside those of Maglev and an LRU of the same memory.
 *
 *	history [--seconds N] [--seed N] [--history N]
 *
 * history_bpf is the same with maps and program in the kernel (kernel_bpf.c).
 * XLB_MODEL_SECONDS and XLB_MODEL_SEED do the same as the flags. A history is
 * repeated by its own seed, which is printed when it fails: --history SEED.
 */
#include "history.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "io/log.h"

#define STEPS 400

static const struct profile profiles[] = {
	{ .name = "room for all", .nodes = 1, .entries = 65536,
	    .roomy = true, .kills = true },
	{ .name = "services change pools", .nodes = 1, .entries = 65536,
	    .roomy = true, .pools = true, .kills = true },
	{ .name = "a small table, and floods", .nodes = 1, .entries = 2048,
	    .floods = true, .kills = true, .pools = true },
	{ .name = "routers move flows", .nodes = 2, .entries = 16384,
	    .kills = true },
};
#define PROFILES (sizeof(profiles) / sizeof(profiles[0]))

void
history_log(struct history *h, const char *fmt, ...)
{
	char *to = h->log[h->logged++ % HISTORY_LOG];
	size_t room = sizeof(h->log[0]);
	va_list ap;
	int n;

	n = snprintf(to, room, "%12.3f ", (double)kernel_ns() / 1e9);
	va_start(ap, fmt);
	vsnprintf(to + n, room - (size_t)n, fmt, ap);
	va_end(ap);
}

static void
site_make(struct history *h)
{
	static const uint32_t sizes[] = { 251, 1021, 4093 };
	struct site *s = &h->site;
	struct rng *r = &h->rng;
	struct site_member *m;
	unsigned p, i;

	memset(s, 0, sizeof(*s));
	s->ring_size = RNG_PICK(r, sizes);
	s->entries = h->profile->entries;
	s->npool = rng_range(r, 2, SITE_POOLS);
	s->nbackend = rng_range(r, 6, 12);
	s->nservice = SITE_SERVICES;
	for (p = 0; p < s->npool; p++) {
		snprintf(s->pool[p].name, sizeof(s->pool[p].name), "p%u", p);
		for (i = 0; i < s->nbackend; i++) {
			m = &s->pool[p].member[i];
			m->in = p == 0 || rng_chance(r, 70) || i < 4;
			m->weight = rng_chance(r, 80) ? 100 :
			    rng_range(r, 40, 200);
		}
	}
	for (i = 0; i < s->nservice; i++) {
		s->service[i].pool = rng_below(r, s->npool);
		s->service[i].source = i == SITE_SERVICES - 1;
	}
}

const char *
history_begin(struct history *h, const struct profile *p, uint64_t seed,
    struct count *count, bool *skip)
{
	static char why[256];
	struct kernel *k;
	unsigned i;

	memset(h, 0, sizeof(*h));
	h->profile = p;
	h->seed = h->rng.at = seed;
	h->count = count;
	site_make(h);
	/* anywhere in the 39 hours of an entry's age */
	kernel_clock((1ULL << 50) + (rng_next(&h->rng) & ((1ULL << 48) - 1)));
	for (i = 0; i < p->nodes; i++) {
		k = kernel_new(h->site.ring_size, p->entries, why,
		    sizeof(why), skip);
		if (k == NULL)
			return why;
		node_init(&h->node[i], k, &h->site);
		change_start(h, i);
		lru_init(&h->lru[i], h->site.ring_size, p->entries / LRU_COST,
		    HISTORY_IDS);
		lru_build(&h->lru[i], &h->site, h->node[0].up);
	}
	count->histories++;
	return NULL;
}

void
history_end(struct history *h)
{
	unsigned i;

	for (i = 0; i < h->profile->nodes; i++) {
		node_fini(&h->node[i]);
		lru_fini(&h->lru[i]);
	}
}

/* Nothing happens for a while but what xlbd does by itself. */
static void
history_wait(struct history *h)
{
	struct rng *r = &h->rng;
	unsigned what = rng_below(r, 1000), i;
	int64_t to = (int64_t)kernel_ns(), next;

	if (what < 700)
		to += (int64_t)rng_below(r, 2000) * 1000000;
	else if (what < 930)
		to += (int64_t)rng_range(r, 2, 60) * SECOND;
	else if (what < 990)
		to += (int64_t)rng_range(r, 60, 600) * SECOND;
	else
		to += (int64_t)rng_range(r, 600, 3400) * SECOND;
	if (to > (int64_t)kernel_ns() + 2 * SECOND)
		history_log(h, "waits until %.3f", (double)to / 1e9);
	for (;;) {
		next = to;
		for (i = 0; i < h->profile->nodes; i++) {
			if (h->node[i].maps != NULL && h->node[i].due < next)
				next = h->node[i].due;
			if (h->back[i] != 0 && h->back[i] < next)
				next = h->back[i];
		}
		if (next > (int64_t)kernel_ns())
			kernel_clock((uint64_t)next);
		if (next == to)
			return;
		for (i = 0; i < h->profile->nodes; i++) {
			if (h->back[i] != 0 && h->back[i] <= next)
				change_start(h, i);
			node_tidy_all(&h->node[i]);
		}
	}
}

void
history_step(struct history *h)
{
	struct rng *r = &h->rng;
	unsigned what = rng_below(r, 100), i, n;

	if (what < 12)
		change_step(h);
	if (what >= 90)
		history_wait(h);
	if (h->profile->floods && rng_chance(r, 5)) {
		n = rng_below(r, 3000);
		history_log(h, "%u packets of a flood", n);
		flow_flood(h, n);
	}
	for (n = rng_below(r, 60); n > 0 && h->wrong == NULL; n--)
		flow_step(h, &h->flow[rng_below(r, HISTORY_FLOWS)]);
	for (i = 0; i < h->profile->nodes; i++) {
		/* packets come between the pieces of xlbd's work */
		for (n = rng_below(r, 4); n > 0; n--)
			node_tidy(&h->node[i]);
	}
	kernel_clock(kernel_ns() + rng_below(r, 300) * 1000000ULL);
	for (i = 0; i < h->profile->nodes; i++)
		if (h->back[i] != 0 && h->back[i] <= (int64_t)kernel_ns())
			change_start(h, i);
}

static void
history_print(const struct history *h)
{
	unsigned i = h->logged > HISTORY_LOG ? h->logged - HISTORY_LOG : 0;

	printf("# %s: %s\n# repeat it with --history %" PRIu64 "\n",
	    h->profile->name, h->wrong, h->seed);
	for (; i < h->logged; i++)
		printf("# %s\n", h->log[i % HISTORY_LOG]);
}

/* 0; 1: it cannot be run here; -1: what must not be has been. */
static int
history_run(const struct profile *p, uint64_t seed, struct count *count)
{
	static struct history h;
	const char *why;
	bool skip;
	unsigned i;

	why = history_begin(&h, p, seed, count, &skip);
	if (why != NULL) {
		printf("1..0 # SKIP %s\n", why);
		exit(skip ? 0 : 1);
	}
	for (i = 0; i < STEPS && h.wrong == NULL; i++) {
		history_step(&h);
		if (h.wrong == NULL)
			h.wrong = kernel_differs();
	}
	if (h.wrong != NULL)
		history_print(&h);
	history_end(&h);
	return h.wrong == NULL ? 0 : -1;
}

static double
cpu_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void
count_print(const struct profile *p, const struct count *c)
{
	printf("# %-26s %5" PRIu64 " %8" PRIu64 " %8" PRIu64 " %7" PRIu64
	    " %6" PRIu64 " %6" PRIu64 " %6" PRIu64 " %6" PRIu64 " %6" PRIu64
	    " %9" PRIu64 "\n", p->name, c->histories, c->packets, c->flows, c->changes,
	    c->kills, c->moved_mute, c->moved_idle, c->moved_room, c->moved_node,
	    c->lru_moved);
}

/* The seed of history `i` says which profile it has. */
static uint64_t
seed_of(uint64_t seed, uint64_t i)
{
	struct rng r = { seed };
	uint64_t s;

	while (i-- > 0)
		rng_next(&r);
	s = rng_next(&r) >> 12;
	return s;
}

static uint64_t
option(const char *name, uint64_t otherwise)
{
	const char *v = getenv(name);

	return v != NULL && *v != '\0' ? strtoull(v, NULL, 0) : otherwise;
}

static int
run_all(uint64_t seed, double seconds)
{
	struct count count[PROFILES] = { { 0 } };
	double until = cpu_seconds() + seconds;
	bool failed[PROFILES] = { false };
	uint64_t i, s;
	size_t p;
	int bad = 0;

	printf("# seed %" PRIu64 "\n", seed);
	for (i = 0; i < PROFILES || cpu_seconds() < until; i++) {
		s = seed_of(seed, i);
		s = s / PROFILES * PROFILES + i % PROFILES;
		p = s % PROFILES;
		if (!failed[p] && history_run(&profiles[p], s, &count[p]) < 0)
			failed[p] = true;
	}
	printf("# %-26s %5s %8s %8s %7s %6s %6s %6s %6s %6s %9s\n",
	    "connections moved", "hist.", "packets", "conns", "changes",
	    "kills", "mute", "idle", "room", "node", "maglev+lru");
	for (p = 0; p < PROFILES; p++)
		count_print(&profiles[p], &count[p]);
	/* now that it is known that it can be run here */
	printf("1..%zu\n", PROFILES);
	for (p = 0; p < PROFILES; p++) {
		printf("%sok %zu - %s: what the table holds is not moved\n",
		    failed[p] ? "not " : "", p + 1, profiles[p].name);
		bad |= failed[p];
	}
	return bad;
}

int
main(int argc, char **argv)
{
	static const struct option long_opt[] = {
		{ "seconds", required_argument, NULL, 't' },
		{ "seed", required_argument, NULL, 's' },
		{ "history", required_argument, NULL, 'i' },
		{ NULL, 0, NULL, 0 }
	};
	double seconds = (double)option("XLB_MODEL_SECONDS", 6);
	uint64_t seed = option("XLB_MODEL_SEED", (uint64_t)time(NULL)), one = 0;
	struct count count = { 0 };
	int c;

	setvbuf(stdout, NULL, _IOLBF, 0);
	log_init("history", false);
	while ((c = getopt_long(argc, argv, "", long_opt, NULL)) != -1) {
		if (c == 't')
			seconds = atof(optarg);
		else if (c == 's')
			seed = strtoull(optarg, NULL, 0);
		else if (c == 'i')
			one = strtoull(optarg, NULL, 0);
		else
			return 2;
	}
	if (one == 0)
		return run_all(seed, seconds);
	return history_run(&profiles[one % PROFILES], one, &count) < 0;
}
