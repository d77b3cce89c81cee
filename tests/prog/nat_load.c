/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A pass over NAT's table while packets use it, in the kernel: how long one step
 * of it and one packet take, by the time that their own threads were on a
 * processor, which neighbours do not change. XLB_NAT_FLOWS=1000000 for a table
 * of that many. Speaks TAP.
 */
#include <linux/bpf.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/nat_sweep.h"
#include "engine.h"
#include "nat_site.h"

#define PAUSE	10000000	/* ns: more is one */
#define OURS	1000		/* flows whose packets go on */
#define CLIENT	0xc0000207U

static struct nat_site site;
static uint32_t live, over;	/* flows in the table, but for ours */
static uint32_t tick;
static atomic_bool ended;
static uint16_t port_of[OURS];
static uint64_t sent, lost, longest;	/* packets; ns */

static uint64_t
spent(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* SplitMix64. */
static uint64_t
next(uint64_t *state)
{
	uint64_t x = *state += 0x9e3779b97f4a7c15ULL;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
	return x ^ x >> 31;
}

/* Where a row by this hash is placed. */
static uint32_t
place(uint64_t hash, uint64_t word)
{
	uint32_t i, at;

	for (i = 0; i < XLB_NAT_PROBE; i++) {
		at = xlb_nat_at((uint32_t)hash, i, site.rows - 1);
		if (site.row[at].word != 0)
			continue;
		site.row[at].word = (hash & 0xffffffffULL << 32) | word |
		    i << XLB_NAT_STEP_SHIFT;
		return at;
	}
	abort();
}

/* Every other one past its life. */
static void
flows_put(uint32_t n)
{
	uint64_t state = 7, word;
	uint32_t i, a, b;

	for (i = 0; i < n; i++) {
		word = XLB_NAT_ESTABLISHED | ((tick - (i % 2 ? 1 :
		    XLB_NAT_LIVE + 10)) & XLB_NAT_TICK);
		a = place(next(&state), word | XLB_NAT_FORWARD);
		b = place(next(&state), word | XLB_NAT_REPLY);
		site.row[a].peer = b;
		site.row[b].peer = a;
		site.row[a].ports = site.row[b].ports = i;
		site.row[a].backend = site.row[b].backend = 2;
	}
	live = n / 2;
	over = n - live;
}

static int
send(uint32_t flow, uint8_t flags, uint16_t *port)
{
	uint8_t frame[NAT_SITE_LEN];

	nat_site_frame(frame, CLIENT, (uint16_t)(1024 + flow), flags);
	return nat_site_run(frame, port);
}

/* Until the pass has ended, and each flow once at least. */
static void *
packets(void *arg)
{
	uint64_t before, took;
	uint16_t port;
	uint32_t i;

	(void)arg;
	for (i = 0; !ended || i < OURS; i++) {
		before = spent();
		lost += send(i % OURS, NAT_SITE_ACK, &port) != XDP_TX ||
		    port != port_of[i % OURS];
		took = spent() - before;
		if (took > longest)
			longest = took;
		sent++;
	}
	return NULL;
}

static int
result(int n, bool good, const char *what)
{
	printf("%sok %d - %s\n", good ? "" : "not ", n, what);
	return good ? 0 : 1;
}

/* The longest step of a pass, ns of its own; `*all`: of the whole. */
static uint64_t
sweep_run(struct nat_sweep *sweep, uint64_t *all)
{
	uint64_t most = 0, begin = spent(), before = begin, now;
	bool more;

	nat_sweep_begin(sweep, tick);
	do {
		more = nat_sweep_step(sweep);
		now = spent();
		if (now - before > most)
			most = now - before;
		before = now;
	} while (more);
	*all = before - begin;
	return most;
}

static int
judge(struct nat_sweep *sweep)
{
	const struct nat_sweep_result *r = nat_sweep_result(sweep);
	pthread_t thread;
	uint64_t step, all;
	int bad;

	pthread_create(&thread, NULL, packets, NULL);
	step = sweep_run(sweep, &all);
	ended = true;
	pthread_join(thread, NULL);
	printf("# %u flows, %u rows: the pass took %.1f ms, its longest step "
	    "%.2f; the longest of %llu packets %.2f ms\n", live + over,
	    site.rows, (double)all / 1e6, (double)step / 1e6,
	    (unsigned long long)sent, (double)longest / 1e6);
	bad = result(1, r->expired == over && r->flows == live + OURS,
	    "what is over has ended, and nothing else");
	bad += result(2, lost == 0 && sent >= OURS,
	    "packets go on meanwhile, by their ports");
	bad += result(3, step < PAUSE, "no step of the pass is a pause");
	bad += result(4, longest < PAUSE, "nor is a packet that meets it");
	return bad;
}

int
main(void)
{
	const char *more = getenv("XLB_NAT_FLOWS");
	uint32_t n = more == NULL ? 100000 : (uint32_t)atoi(more), rows = 1024, i;
	struct nat_sweep *sweep;
	int bad;

	while (rows < 4 * n)	/* half empty */
		rows *= 2;
	bad = nat_site_open(&site, rows);
	if (bad != 0)
		return bad > 0 ? 0 : 1;
	printf("1..4\n");
	for (i = 0; i < OURS; i++)
		if (send(i, NAT_SITE_SYN, &port_of[i]) != XDP_TX)
			printf("# flow %u was not sent\n", i);
	for (i = 0; tick == 0 && i < rows; i++)
		tick = XLB_NAT_USED(site.row[i].word);
	flows_put(n);
	sweep = nat_sweep_new(site.tables);
	nat_sweep_table(sweep, site.row, rows);
	bad = judge(sweep);
	nat_sweep_free(sweep);
	engine_close();
	return bad == 0 ? 0 : 1;
}
