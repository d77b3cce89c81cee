/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Connections that go idle, then ten minutes of single SYNs from addresses that
 * nobody has, then a backend drains: none of its connections is lost. And how
 * many are lost by how full the table is, of their own making: from that the
 * manual's rule for flow_table.entries.
 *
 *	flood [--full] [--seed N]
 *
 * Without --full a minute of the greatest. The clock is the model's: a second of
 * the flood is as many packets as it says.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/log.h"
#include "node.h"
#include "../prog/rng.h"

#define BACKENDS 20
#define DRAINED 4		/* of them */
#define SIZE 65537
#define ENTRIES (1U << 18)
#define CONNS 30000
#define SECOND 1000000000ULL

struct conn {
	struct tuple t;
	uint8_t owner;
};

struct flood {
	struct rng rng;
	struct site site;
	struct node node;
	struct conn *conn;
	unsigned nconn;
};

static void
flood_begin(struct flood *f, uint64_t seed, uint32_t entries, unsigned conns)
{
	char why[256];
	struct kernel *k;
	unsigned i;
	bool skip;

	memset(f, 0, sizeof(*f));
	f->rng.at = seed;
	f->site.ring_size = SIZE;
	f->site.entries = entries;
	f->site.npool = f->site.nservice = 1;
	f->site.nbackend = BACKENDS;
	snprintf(f->site.pool[0].name, sizeof(f->site.pool[0].name), "web");
	for (i = 0; i < BACKENDS; i++)
		f->site.pool[0].member[i] = (struct site_member){ true, 100,
		    BACKEND_ACTIVE, 0 };
	kernel_clock(1ULL << 50);
	k = kernel_new(SIZE, entries, why, sizeof(why), &skip);
	if (k == NULL)
		fatalx("%s", why);
	node_init(&f->node, k, &f->site);
	node_start(&f->node);
	f->nconn = conns;
	f->conn = calloc(conns, sizeof(*f->conn));
	if (f->conn == NULL)
		fatal("connections");
}

static void
flood_end(struct flood *f)
{
	node_fini(&f->node);
	free(f->conn);
}

static void
pass_time(struct flood *f, uint64_t ns)
{
	kernel_clock(kernel_ns() + ns);
	node_tidy_all(&f->node);
}

static int
conn_send(struct flood *f, const struct conn *c, unsigned flags)
{
	return node_packet(&f->node, &c->t, flags, flags & TCP_PSH);
}

/* SYN, ACK, data, and up to two more; over `seconds`. */
static void
conns_begin(struct flood *f, unsigned seconds)
{
	unsigned i, k, more;
	struct conn *c;

	for (i = 0; i < f->nconn; i++) {
		c = &f->conn[i];
		c->t.client = 0x64000000 + i / 4;
		c->t.port = (uint16_t)rng_range(&f->rng, 1024, 65535);
		c->owner = (uint8_t)conn_send(f, c, TCP_SYN);
		conn_send(f, c, TCP_ACK);
		conn_send(f, c, TCP_ACK | TCP_PSH);
		for (more = rng_below(&f->rng, 3), k = 0; k < more; k++)
			conn_send(f, c, TCP_ACK);
		pass_time(f, seconds * SECOND / f->nconn);
	}
}

static void
syns(struct flood *f, unsigned seconds, unsigned rate)
{
	struct tuple t = { .service = 0 };
	unsigned s, i, slices = rate / 200 + 1;

	for (s = 0; s < seconds; s++) {
		for (i = 0; i < rate; i++) {
			t.client = 0xc0000000 + rng_below(&f->rng, 1 << 24);
			t.port = (uint16_t)rng_next(&f->rng);
			node_packet(&f->node, &t, TCP_SYN, false);
			if (i % 200 == 0)
				pass_time(f, SECOND / slices);
		}
	}
}

/* Some drain; then, a minute later, each sends again. How many of those that
 * were theirs reach another one. */
static unsigned
drain_and_count(struct flood *f, unsigned *theirs)
{
	unsigned i, lost = 0;

	for (i = 0; i < DRAINED; i++)
		f->site.pool[0].member[i * 3].state = BACKEND_DRAIN;
	node_reload(&f->node, &f->site);
	node_reconcile(&f->node);
	for (i = 0; i < 60; i++)
		pass_time(f, SECOND);
	for (*theirs = i = 0; i < f->nconn; i++) {
		*theirs += f->conn[i].owner % 3 == 0 &&
		    f->conn[i].owner < DRAINED * 3;
		lost += conn_send(f, &f->conn[i], TCP_ACK | TCP_PSH) !=
		    f->conn[i].owner;
	}
	return lost;
}

static bool
run_flood(unsigned rate, unsigned seconds, uint64_t seed)
{
	struct xlb_flow_stats st;
	struct flood f;
	unsigned theirs, lost;

	flood_begin(&f, seed, ENTRIES, CONNS);
	conns_begin(&f, 60);
	syns(&f, seconds, rate);
	lost = drain_and_count(&f, &theirs);
	kernel_flow_stats(f.node.k, &st);
	printf("# %8u %8u %8u %6u %9" PRIu64 " %9" PRIu64 " %9" PRIu64
	    " %9" PRIu64 " %7" PRIu64 "\n", rate, seconds, theirs, lost,
	    (uint64_t)st.insert, (uint64_t)st.evict_unconfirmed,
	    (uint64_t)st.evict_confirmed, (uint64_t)st.skip_budget,
	    (uint64_t)st.full);
	flood_end(&f);
	return lost == 0 && theirs > CONNS / 8;
}

static double
run_occupancy(unsigned percent, uint32_t entries, uint64_t seed)
{
	unsigned conns = (unsigned)((uint64_t)entries * percent / 100);
	struct flood f;
	unsigned theirs, lost;

	flood_begin(&f, seed, entries, conns);
	/* slowly enough for the budget, and within what is firm */
	conns_begin(&f, 600);
	lost = drain_and_count(&f, &theirs);
	flood_end(&f);
	printf("# %7u %% %10u %12u %8u %10.3f %%\n", percent, conns, theirs,
	    lost, 100.0 * lost / theirs);
	return 100.0 * lost / theirs;
}

int
main(int argc, char **argv)
{
	static const struct option long_opt[] = {
		{ "full", no_argument, NULL, 'f' },
		{ "seed", required_argument, NULL, 's' },
		{ NULL, 0, NULL, 0 }
	};
	static const unsigned rate[] = { 1000, 10000, 100000 };
	static const unsigned occupancy[] = { 12, 25, 50, 75, 90 };
	/* what the manual says at most, in percent */
	static const double limit[] = { 0.01, 0.05, 1.5, 8, 16 };
	uint64_t seed = 1;
	bool full = false, ok;
	size_t i;
	int c, bad = 0;

	log_init("flood", false);
	setvbuf(stdout, NULL, _IOLBF, 0);
	while ((c = getopt_long(argc, argv, "", long_opt, NULL)) != -1) {
		if (c == 'f')
			full = true;
		else if (c == 's')
			seed = strtoull(optarg, NULL, 0);
		else
			return 2;
	}
	printf("1..8\n# seed %" PRIu64 "; %u idle connections, %u entries\n"
	    "# SYNs/s   seconds drained   lost  inserted  ev.unconf  ev.conf"
	    "    skipped    full\n", seed, CONNS, ENTRIES);
	for (i = 0; i < 3; i++) {
		ok = run_flood(rate[i], !full && i == 2 ? 60 : 600, seed);
		bad |= !ok;
		printf("%sok %zu - none lost at %u SYNs per second\n",
		    ok ? "" : "not ", i + 1, rate[i]);
	}
	printf("# occupied connections      drained     lost       share\n");
	for (i = 0; i < 5; i++) {
		ok = run_occupancy(occupancy[i], ENTRIES, seed) <= limit[i];
		bad |= !ok;
		printf("%sok %zu - at %u %% no more are lost than the manual "
		    "says\n", ok ? "" : "not ", i + 4, occupancy[i]);
	}
	return bad;
}
