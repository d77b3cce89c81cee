/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Four nodes behind routers, a hundred backends, an hour of connections, and
 * what happens to them when backends drain and nodes are lost: how many reach
 * another backend than the one that accepted them, though it lives. Beside xlb
 * Maglev, rebuilt at each change, and an LRU: of any size, and of xlb's memory.
 *
 *	sim [--full] [--seed N] [--row N]
 *
 * Without --full ten minutes with a tenth of the connections. Never worse than
 * Maglev and LRU is what it checks; with --full also what it was.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/log.h"
#include "lru.h"
#include "node.h"
#include "../prog/rng.h"

#define NODES 4
#define BACKENDS 100
#define SPARE 20		/* to scale out by */
#define SIZE 65537
#define ENTRIES (1U << 20)
#define STEP_MS 50
#define WHEEL 16384		/* steps ahead: 13 minutes */
#define EVENTS 512
#define NIL UINT32_MAX

enum system { XLB, LRU, LRU_SMALL, SYSTEMS };

struct conn {
	struct tuple t;
	uint32_t select, next;	/* in its step of the wheel */
	int64_t end;		/* ms */
	uint8_t order[NODES];	/* of nodes, as routers prefer them */
	uint8_t owner[SYSTEMS], epoch[SYSTEMS], broken[SYSTEMS];
	bool begun, idle;
};

enum what { DOWN, UP, DRAIN, UNDRAIN, ADD, LOSE, BACK };

struct event {
	int64_t at;		/* ms */
	enum what what;
	unsigned arg;
};

struct sim {
	const struct row *row;
	bool full;
	struct rng rng;
	struct site site;
	struct node node[NODES];
	bool lost[NODES];
	struct lru lru[SYSTEMS][NODES];
	uint8_t epoch[BACKENDS + SPARE];	/* deaths so far */
	struct conn *conn;
	uint32_t nconn, room, wheel[WHEEL];
	int64_t now;		/* ms */
	struct event event[EVENTS];
	size_t nevent, done;
	uint64_t packets, broken[SYSTEMS], surge;
};

struct row {
	const char *name;
	void (*plan)(struct sim *);
	bool none;		/* nothing may be broken but one or so */
	uint64_t most;		/* in the hour of FULL_SEED */
};

#define FULL_SEED 1

static int64_t
ms(double minutes)
{
	return (int64_t)(minutes * 60000);
}

static void
at(struct sim *s, double minutes, enum what what, unsigned arg)
{
	if (s->nevent == EVENTS)
		fatalx("too many events");
	s->event[s->nevent++] = (struct event){ ms(minutes), what, arg };
}

/* Minutes of the hour at which `i` of `n` begin; ten minutes come before. */
static double
slot_of(const struct sim *s, unsigned i, unsigned n)
{
	return s->full ? 10 + 60.0 * i / n : 3 + 10.0 * i / n;
}

static unsigned
times(const struct sim *s, unsigned n)
{
	return s->full ? n : n / 6;
}

static void
plan_flaps(struct sim *s)
{
	unsigned i, n = times(s, 30);
	double t;

	for (i = 0; i < n; i++) {
		t = slot_of(s, i, n);
		at(s, t, DOWN, i * 7 % BACKENDS);
		at(s, t + 0.25, UP, i * 7 % BACKENDS);
	}
}

static void
plan_rolling(struct sim *s)
{
	unsigned i;
	double t;

	for (i = 0; i < BACKENDS; i++) {
		t = slot_of(s, i, BACKENDS);
		if (i > 0)
			at(s, t, UNDRAIN, i - 1);
		at(s, t, DRAIN, i);
	}
}

static void
plan_scale(struct sim *s)
{
	unsigned i;

	for (i = 0; i < SPARE; i++)
		at(s, slot_of(s, 1, 6), ADD, BACKENDS + i);
	for (i = 0; i < SPARE; i++)
		at(s, slot_of(s, 4, 6), DRAIN, BACKENDS + i);
}

static void
plan_node_then_drains(struct sim *s)
{
	unsigned i;

	at(s, slot_of(s, 1, 12), LOSE, 1);
	for (i = 0; i < 20; i++)
		at(s, slot_of(s, 20 + i * 2, 60), DRAIN, i * 3);
}

static void
drains_and_nodes(struct sim *s, double later)
{
	unsigned i, n = times(s, 30), b;
	double t;

	for (i = 0; i < n; i++) {
		t = slot_of(s, i, n);
		b = i * 3 % BACKENDS;
		at(s, t, DRAIN, b);
		at(s, t + later, LOSE, i % NODES);
		at(s, t + later + 0.25, BACK, i % NODES);
		at(s, t + 1.5, UNDRAIN, b);
	}
}

static void
plan_45s(struct sim *s)
{
	drains_and_nodes(s, 0.75);
}

static void
plan_5s(struct sim *s)
{
	drains_and_nodes(s, 5 / 60.0);
}

static const struct row rows[] = {
	{ "30 health flaps", plan_flaps, true, 1 },
	{ "rolling drain of all 100", plan_rolling, true, 1 },
	{ "scale out 20, then drain 20", plan_scale, true, 1 },
	{ "node lost for good, later 20 drains", plan_node_then_drains, true, 1 },
	{ "30 x (drain, 45 s later a node lost, back empty)", plan_45s, false,
	    2854 },
	{ "30 x (drain, 5 s later a node lost, back empty)", plan_5s, false,
	    1900 },
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

static int
event_cmp(const void *va, const void *vb)
{
	const struct event *a = va, *b = vb;

	if (a->at != b->at)
		return a->at < b->at ? -1 : 1;
	return (a > b) - (a < b);
}

static void
node_lose(struct sim *s, unsigned n)
{
	s->lost[n] = true;
	node_stop(&s->node[n]);
}

static void
node_return(struct sim *s, unsigned n)
{
	enum system i;

	s->lost[n] = false;
	kernel_reboot(s->node[n].k);
	node_start(&s->node[n]);
	for (i = LRU; i < SYSTEMS; i++)
		lru_empty(&s->lru[i][n]);
}

static void
happens(struct sim *s, const struct event *e)
{
	struct site_member *m = &s->site.pool[0].member[e->arg %
	    SITE_BACKENDS];
	unsigned i;

	switch (e->what) {
	case DOWN:
		s->epoch[e->arg]++;
		/* FALLTHROUGH */
	case UP:
		for (i = 0; i < NODES; i++)
			s->node[i].up[e->arg] = e->what == UP;
		break;
	case DRAIN:
		m->state = BACKEND_DRAIN;
		m->said = (int64_t)kernel_ns();
		break;
	case UNDRAIN:
		m->state = BACKEND_ACTIVE;
		m->said = 0;
		break;
	case ADD:
		*m = (struct site_member){ true, 100, BACKEND_ACTIVE, 0 };
		break;
	case LOSE:
		node_lose(s, e->arg);
		break;
	case BACK:
		node_return(s, e->arg);
		break;
	}
}

/* What falls on the same moment is one change. */
static void
events_due(struct sim *s)
{
	bool any = false;
	enum system y;
	unsigned i;

	for (; s->done < s->nevent && s->event[s->done].at <= s->now; s->done++) {
		happens(s, &s->event[s->done]);
		any = true;
	}
	for (i = 0; any && i < NODES; i++) {
		node_reload(&s->node[i], &s->site);
		for (y = LRU; y < SYSTEMS; y++)
			lru_build(&s->lru[y][i], &s->site, s->node[0].up);
		if (!s->lost[i])
			node_reconcile(&s->node[i]);
	}
}

static void
wheel_put(struct sim *s, uint32_t c, int64_t when)
{
	uint32_t *head;

	/* the step under way has been taken off the wheel */
	if (when < s->now + STEP_MS && s->conn[c].begun)
		when = s->now + STEP_MS;
	if (when >= s->now + (WHEEL - 1) * STEP_MS)
		when = s->now + (WHEEL - 2) * STEP_MS;
	head = &s->wheel[when / STEP_MS % WHEEL];
	s->conn[c].next = *head;
	*head = c;
}

static int64_t
exponential(struct sim *s, double mean_ms)
{
	double u = ((double)(rng_next(&s->rng) >> 11) + 1) / 9007199254740993.0;
	double x = 0;

	/* -ln(u), by halving: no mathematical library */
	while (u < 0.5) {
		u *= 2;
		x += 0.693147180559945;
	}
	u = (1 - u) / (1 + u);
	x += 2 * u * (1 + u * u / 3 + u * u * u * u / 5);
	return (int64_t)(x * mean_ms) + 1;
}

static void
conn_new(struct sim *s)
{
	struct conn *c = &s->conn[s->nconn];
	uint64_t h;
	unsigned i, k;

	if (s->nconn == s->room)
		return;
	c->t.client = 0x64000000 + rng_below(&s->rng, 1 << 20);
	c->t.port = (uint16_t)rng_range(&s->rng, 1024, 65535);
	c->idle = rng_chance(&s->rng, 5);
	c->end = s->now + (c->idle ? ms(2) + exponential(s, 240000) :
	    exponential(s, 150000));
	h = rng_next(&s->rng);
	for (i = 0; i < NODES; i++)
		c->order[i] = (uint8_t)i;
	for (i = NODES - 1; i > 0; i--, h /= 24) {
		k = (unsigned)(h % (i + 1));
		if (k != i) {
			c->order[i] ^= c->order[k];
			c->order[k] ^= c->order[i];
			c->order[i] ^= c->order[k];
		}
	}
	wheel_put(s, s->nconn++, s->now);
}

static void
judge(struct sim *s, struct conn *c, enum system y, int got)
{
	uint8_t to = (uint8_t)(got + 1);

	if (!c->begun) {
		c->owner[y] = to;
		if (got >= 0)
			c->epoch[y] = s->epoch[got];
		return;
	}
	if (c->broken[y] || c->owner[y] == to)
		return;
	c->broken[y] = true;
	if (c->owner[y] != 0 && s->epoch[c->owner[y] - 1] == c->epoch[y])
		s->broken[y]++;
}

static void
conn_send(struct sim *s, uint32_t number, unsigned flags, bool data)
{
	struct conn *c = &s->conn[number];
	unsigned i, n;
	enum system y;

	for (i = 0; i < NODES - 1 && s->lost[c->order[i]]; i++)
		;
	n = c->order[i];
	judge(s, c, XLB, node_packet(&s->node[n], &c->t, flags, data));
	for (y = LRU; y < SYSTEMS; y++)
		judge(s, c, y, lru_packet(&s->lru[y][n], &s->site,
		    s->node[0].up, 0, c->select, number));
	c->begun = true;
	s->packets++;
}

/* A connection's turn; and when the next one is. */
static void
conn_step(struct sim *s, uint32_t number)
{
	struct conn *c = &s->conn[number];
	int64_t next;

	if (!c->begun) {
		node_hash(&s->node[c->order[0]], &c->t, false, &c->select,
		    &(uint64_t){ 0 });
		conn_send(s, number, TCP_SYN, false);
		conn_send(s, number, TCP_ACK, false);
		conn_send(s, number, TCP_ACK | TCP_PSH, true);
	} else if (s->now >= c->end) {
		conn_send(s, number, TCP_ACK | TCP_FIN, false);
		return;
	} else {
		conn_send(s, number, TCP_ACK | TCP_PSH, true);
		conn_send(s, number, TCP_ACK, false);
		if (!c->idle)
			conn_send(s, number, TCP_ACK, false);
	}
	next = s->now + (c->idle ? ms(1) + exponential(s, 60000) :
	    exponential(s, 10000));
	wheel_put(s, number, next > c->end ? c->end > s->now ? c->end :
	    s->now + STEP_MS : next);
}

static void
sim_begin(struct sim *s, const struct row *row, bool full, uint64_t seed)
{
	char why[256];
	struct kernel *k;
	enum system y;
	unsigned i;
	bool skip;

	memset(s, 0, sizeof(*s));
	s->row = row;
	s->full = full;
	s->rng.at = seed;
	s->site.ring_size = SIZE;
	s->site.entries = full ? ENTRIES : ENTRIES / 8;
	s->site.npool = s->site.nservice = 1;
	s->site.nbackend = BACKENDS + SPARE;
	snprintf(s->site.pool[0].name, sizeof(s->site.pool[0].name), "web");
	for (i = 0; i < BACKENDS; i++)
		s->site.pool[0].member[i] =
		    (struct site_member){ true, 100, BACKEND_ACTIVE, 0 };
	s->room = full ? 720000 * 70 / 60 : 20 * 60 * 14;
	s->conn = calloc(s->room, sizeof(*s->conn));
	if (s->conn == NULL)
		fatal("connections");
	memset(s->wheel, 0xff, sizeof(s->wheel));
	kernel_clock(1ULL << 50);
	for (i = 0; i < NODES; i++) {
		k = kernel_new(SIZE, s->site.entries, why, sizeof(why), &skip);
		if (k == NULL)
			fatalx("%s", why);
		node_init(&s->node[i], k, &s->site);
		node_start(&s->node[i]);
		lru_init(&s->lru[LRU][i], SIZE, 0, s->room);
		lru_init(&s->lru[LRU_SMALL][i], SIZE,
		    s->site.entries / LRU_COST, s->room);
		for (y = LRU; y < SYSTEMS; y++)
			lru_build(&s->lru[y][i], &s->site, s->node[0].up);
	}
	row->plan(s);
	qsort(s->event, s->nevent, sizeof(s->event[0]), event_cmp);
}

static void
sim_end(struct sim *s)
{
	enum system y;
	unsigned i;

	for (i = 0; i < NODES; i++) {
		s->surge += s->node[i].surge.seconds;
		node_fini(&s->node[i]);
		for (y = LRU; y < SYSTEMS; y++)
			lru_fini(&s->lru[y][i]);
	}
	free(s->conn);
}

static void
sim_run(struct sim *s)
{
	int64_t end = s->full ? ms(70) : ms(13.5);
	unsigned per_second = s->full ? 200 : 20, i;
	uint32_t c, next, *head;

	for (; s->now < end; s->now += STEP_MS) {
		kernel_clock((1ULL << 50) + (uint64_t)s->now * 1000000);
		events_due(s);
		for (i = 0; i < NODES; i++)
			if (!s->lost[i])
				node_tidy_all(&s->node[i]);
		for (i = 0; i < per_second * STEP_MS / 1000; i++)
			conn_new(s);
		head = &s->wheel[s->now / STEP_MS % WHEEL];
		c = *head;
		*head = NIL;
		for (; c != NIL; c = next) {
			next = s->conn[c].next;
			conn_step(s, c);
		}
	}
}

static bool
row_ok(const struct sim *s, uint64_t seed)
{
	if (s->full && seed == FULL_SEED && s->broken[XLB] > s->row->most)
		return false;
	return s->broken[XLB] <= s->broken[LRU] + s->row->none &&
	    (!s->row->none || s->broken[XLB] <= 1);
}

static int
run_rows(size_t from, size_t to, bool full, uint64_t seed)
{
	static struct sim s;
	size_t i;
	int bad = 0;

	printf("1..%zu\n# seed %" PRIu64 "; %s\n", to - from, seed, full ?
	    "an hour, 720 000 connections" : "ten minutes, 16 000 connections");
	printf("# %-50s %6s %11s %11s %9s %6s\n", "connections broken",
	    "xlb", "maglev+lru", "same memory", "packets", "surge");
	for (i = from; i < to; i++) {
		sim_begin(&s, &rows[i], full, seed);
		sim_run(&s);
		sim_end(&s);
		printf("# %-50s %6" PRIu64 " %11" PRIu64 " %11" PRIu64
		    " %9" PRIu64 " %5" PRIu64 "s\n%sok %zu - %s: no worse than "
		    "Maglev and an LRU\n", rows[i].name, s.broken[XLB],
		    s.broken[LRU], s.broken[LRU_SMALL], s.packets, s.surge,
		    row_ok(&s, seed) ? "" : "not ", i - from + 1, rows[i].name);
		bad |= !row_ok(&s, seed);
	}
	return bad;
}

int
main(int argc, char **argv)
{
	static const struct option long_opt[] = {
		{ "full", no_argument, NULL, 'f' },
		{ "seed", required_argument, NULL, 's' },
		{ "row", required_argument, NULL, 'r' },
		{ NULL, 0, NULL, 0 }
	};
	size_t from = 0, to = ROWS;
	uint64_t seed = FULL_SEED;
	bool full = false;
	int c;

	log_init("sim", false);
	setvbuf(stdout, NULL, _IOLBF, 0);
	while ((c = getopt_long(argc, argv, "", long_opt, NULL)) != -1) {
		if (c == 'f')
			full = true;
		else if (c == 's')
			seed = strtoull(optarg, NULL, 0);
		else if (c == 'r' && strtoul(optarg, NULL, 0) < ROWS)
			to = (from = strtoul(optarg, NULL, 0)) + 1;
		else
			return 2;
	}
	return run_rows(from, to, full, seed);
}
