/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two CPUs that begin flows in NAT's table, and xlbd that takes a row out, in
 * every order of their looks at rows that takes two changes from one to another
 * before its end, or XLB_NAT_CHANGES=3. On this machine, one thread at a time.
 * Speaks TAP.
 */
#include <linux/bpf.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "nat_site.h"

#define ROWS	64
#define PATIENT	40		/* looks: who spins longer lets the others on */
#define DEPTH	4096
#define CLIENT	0xc0000207U

enum who { FIRST, SECOND, XLBD, ACTORS };

/* What the two packets are, and on whose way a row lies that goes meanwhile. */
struct story {
	const char *what;
	bool same;		/* flow; else another one that asks for the
				 * same port */
	enum { NOBODY, FORWARD, REPLY } passed;
};

static struct nat_site site;
static const struct story *story;
static uint8_t frame[2][NAT_SITE_LEN];
static uint32_t filler;		/* the row that goes */

/* One order: what was chosen at each place where there was a choice, and out of
 * how many. The next order is the last of these places that has another one. */
static struct {
	uint32_t choice, of;
} place[DEPTH];
static uint32_t depth, at, changes, patience;
static uint32_t most = 2;	/* changes from one that has not ended */

static sem_t turn[ACTORS], over;
static bool ended[ACTORS];
static enum who now;
static int action[2];
static uint16_t port[2];
static uint32_t waited, gave_up;	/* orders in which somebody did */
static bool has_waited;

static uint32_t
choose(uint32_t of)
{
	if (at == depth) {
		if (depth == DEPTH)
			return 0;
		place[depth].choice = 0;
		place[depth++].of = of;
	}
	return place[at++].choice;
}

static bool
next_order(void)
{
	while (depth > 0 && place[depth - 1].choice + 1 == place[depth - 1].of)
		depth--;
	if (depth == 0)
		return false;
	place[depth - 1].choice++;
	return true;
}

/* Of those that have not ended, but for the one that is on, the `n`th. */
static enum who
other(uint32_t n)
{
	enum who w;

	for (w = FIRST; w < ACTORS; w++)
		if (w != now && !ended[w] && n-- == 0)
			return w;
	return ACTORS;
}

static uint32_t
others(void)
{
	uint32_t n = 0;

	while (other(n) != ACTORS)
		n++;
	return n;
}

static void
change(enum who to)
{
	enum who me = now;
	bool stays = !ended[me];	/* later it is of another order */

	now = to;
	patience = 0;
	sem_post(&turn[to]);
	if (stays)
		sem_wait(&turn[me]);
}

/* Before each look at a row. */
static void
look(void)
{
	uint32_t n = others(), chosen;

	if (n == 0)
		return;
	if (++patience > PATIENT) {
		has_waited = true;
		change(other(0));
		return;
	}
	if (changes == most)
		return;
	chosen = choose(n + 1);
	if (chosen == 0)
		return;
	changes++;
	change(other(chosen - 1));
}

static void
act(enum who me)
{
	if (me == XLBD)		/* as core/nat_sweep.c does */
		site.row[filler].word = XLB_NAT_GONE;
	else
		action[me] = nat_site_run(frame[me], &port[me]);
}

static void *
actor(void *arg)
{
	enum who me = *(const enum who *)arg;
	uint32_t n;

	for (;;) {
		sem_wait(&turn[me]);
		if (story == NULL)
			return NULL;
		act(me);
		ended[me] = true;
		n = others();
		if (n == 0)
			sem_post(&over);
		else
			change(other(n == 1 ? 0 : choose(n)));
	}
}

/* A row of somebody else's, where a search begins. */
static void
filler_put(uint64_t hash)
{
	filler = (uint32_t)hash & (ROWS - 1);
	site.row[filler].word = (~hash & 0xffffffffULL << 32) |
	    XLB_NAT_FORWARD;
}

static void
order_run(void)
{
	uint64_t hash = nat_site_hash(&site, CLIENT, 1024);

	memset(site.row, 0, ROWS * sizeof(*site.row));
	memset(ended, 0, sizeof(ended));
	at = changes = patience = 0;
	has_waited = false;
	if (story->passed == FORWARD)
		filler_put(hash);
	else if (story->passed == REPLY)
		filler_put(nat_site_reply_hash(&site, nat_site_port(hash)));
	else
		ended[XLBD] = true;
	now = ACTORS;
	now = other(choose(others()));
	sem_post(&turn[now]);
	sem_wait(&over);
}

static uint32_t
rows_gone(void)
{
	uint32_t i, n = 0;

	for (i = 0; i < ROWS; i++)
		n += (site.row[i].word & XLB_NAT_GONE) && i != filler;
	return n;
}

/* Both were sent, each flow by one port of its own. */
static bool
is_right(void)
{
	int flows = nat_site_flows(&site);

	waited += has_waited;
	gave_up += rows_gone() > 0;
	if (action[0] == XDP_TX && action[1] == XDP_TX &&
	    (port[0] == port[1]) == story->same &&
	    flows == (story->same ? 1 : 2))
		return true;
	printf("# %s: actions %d %d, ports %u %u, %d flows\n", story->what,
	    action[0], action[1], port[0], port[1], flows);
	return false;
}

static bool
every_order(void)
{
	uint32_t n = 0, bad = 0;

	depth = 0;
	do {
		order_run();
		n++;
		bad += !is_right();
	} while (bad < 5 && next_order());
	printf("# %u orders of: %s\n", n, story->what);
	return bad == 0 && n > 100;
}

/* The first one's flow, and one more by the same port. */
static void
frames_make(void)
{
	uint16_t want = nat_site_port(nat_site_hash(&site, CLIENT, 1024));
	uint32_t n = 0;

	nat_site_frame(frame[0], CLIENT, 1024, NAT_SITE_SYN);
	memcpy(frame[1], frame[0], sizeof(frame[1]));
	while (!story->same && nat_site_port(nat_site_hash(&site,
	    CLIENT + 1 + n / 60000, (uint16_t)(n % 60000))) != want)
		n++;
	if (!story->same)
		nat_site_frame(frame[1], CLIENT + 1 + n / 60000,
		    (uint16_t)(n % 60000), NAT_SITE_SYN);
}

static const struct story stories[] = {
	{ "one flow begins twice", true, NOBODY },
	{ "one flow, and a row on its way goes", true, FORWARD },
	{ "one flow, and a row on its replies' way goes", true, REPLY },
	{ "two flows ask for one port", false, NOBODY },
	{ "two flows, one port, and a row on its way goes", false, REPLY },
};
#define STORIES (sizeof(stories) / sizeof(stories[0]))

static void
actors_end(pthread_t *thread)
{
	enum who w;

	story = NULL;
	for (w = FIRST; w < ACTORS; w++)
		sem_post(&turn[w]);
	for (w = FIRST; w < ACTORS; w++)
		pthread_join(thread[w], NULL);
}

int
main(void)
{
	static enum who who[ACTORS] = { FIRST, SECOND, XLBD };
	pthread_t thread[ACTORS];
	const char *more = getenv("XLB_NAT_CHANGES");
	bool ok, all = true;
	size_t i;

	if (more != NULL)
		most = (uint32_t)atoi(more);

	if (nat_site_open(&site, ROWS) != 0)
		return 1;
	printf("1..%zu\n", STORIES + 1);
	sem_init(&over, 0, 0);
	for (i = 0; i < ACTORS; i++) {
		sem_init(&turn[i], 0, 0);
		pthread_create(&thread[i], NULL, actor, &who[i]);
	}
	engine_nat_look = look;
	for (i = 0; i < STORIES; i++) {
		story = &stories[i];
		frames_make();
		ok = every_order();
		all = all && ok;
		printf("%sok %zu - %s\n", ok ? "" : "not ", i + 1, story->what);
	}
	actors_end(thread);
	/* else these orders were no race */
	ok = waited > 0 && gave_up > 0;
	printf("# %u orders in which one waited, %u in which one gave up\n",
	    waited, gave_up);
	printf("%sok %zu - they met\n", ok ? "" : "not ", STORIES + 1);
	engine_close();
	return ok && all ? 0 : 1;
}
