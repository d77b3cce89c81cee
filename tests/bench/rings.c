/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What rings cost xlbd: one that is built, and its owners when some are down. */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "core/maglev.h"

#define SIZE 65537
#define MEMBERS 1000
#define TIMES 41

static struct maglev_member member[MEMBERS];
static bool eligible[MEMBERS];
static uint16_t primary[SIZE], owner[SIZE];

void
ring_build(void)
{
	maglev_build(member, MEMBERS, 0, SIZE, primary);
}

/* Of what is built already: three of ten are down. */
void
ring_health(void)
{
	maglev_eligible(member, MEMBERS, 0, SIZE, primary, eligible, owner);
}

static void
members_put(void)
{
	size_t i;

	for (i = 0; i < MEMBERS; i++) {
		member[i].addr.b[10] = member[i].addr.b[11] = 0xff;
		member[i].addr.b[12] = 10;
		member[i].addr.b[14] = (uint8_t)(i >> 8);
		member[i].addr.b[15] = (uint8_t)i;
		member[i].weight = 100;
		eligible[i] = i % 10 >= 3;
	}
	ring_build();
}

/* This thread's. */
static double
now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int
by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double
ring_row(const struct bench_case *c)
{
	double ns[TIMES], from, figure;
	size_t i;

	members_put();
	for (i = 0; i < TIMES; i++) {
		from = now_ns();
		c->run();
		ns[i] = now_ns() - from;
	}
	qsort(ns, TIMES, sizeof(ns[0]), by_value);
	figure = ns[TIMES / 10];
	printf("%-7s %.3f ms, %.3f-%.3f; of %.1f ms%s\n", c->name, figure / 1e6,
	    ns[0] / 1e6, ns[TIMES / 2] / 1e6, c->most_ms,
	    figure / 1e6 > c->most_ms ? ": missed" : "");
	return figure;
}
