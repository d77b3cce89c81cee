/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Frames at random, more than two million, through the reference, the packet
 * program compiled for this machine and the one in the kernel: verdict, reason
 * and bytes must be the same, and in the end the counters. Half of them are of
 * NAT: flows that the programs have made themselves, from both ends.
 *
 *	differ [--packets N] [--seed N] [--round N]
 *
 * A round is one configuration; a difference is reproduced by its seed and
 * round. XLB_DIFFER_PACKETS and XLB_DIFFER_SEED do the same as the flags.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "differ_count.h"
#include "engine_two.h"
#include "reference.h"
#include "rng.h"
#include "world.h"
#include "gen.h"
#include "xlb_abi.h"

#define PACKETS 2600000		/* in all, half of them of NAT alone */
#define FLOW_ENTRIES 1024
#define NAT_ROWS 16384		/* two for each flow of a round, and room */
#define NAT_MOST 90		/* percent: such a load is about NAT alone */
#define ROUND 2500		/* packets with one configuration */
#define STEP 180		/* a change each so many packets */
#define ANSWERS 150		/* less than XLB_ANSWER_BURST */

struct seen {
	int action;
	unsigned reason;
	size_t len;
	uint8_t frame[ENGINE_FRAME_MAX];
};

/* One program under test. */
struct tested {
	const struct engine *engine;
	uint64_t reasons[XLB_REASON_COUNT];
	struct seen seen;
};

struct load {
	const char *name;
	uint32_t ring_size;
	bool frags;
	unsigned share;		/* percent of the packets */
	struct gen_wish wish;	/* what they are like */
	bool split;		/* the first buffer has some of the headers */
};

static const struct load loads[] = {
	{ "one buffer", 251, false, 33, { 3000, 60, 0 }, false },
	{ "many buffers", 1021, true, 10, { 16000, 60, 0 }, false },
	{ "headers in many buffers", 1021, true, 7, { 3000, 60, 0 }, true },
	{ "both directions of NAT", 251, false, 50, { 3000, 98, 60 }, false }
};
#define LOADS (sizeof(loads) / sizeof(loads[0]))

struct differ {
	const struct load *load;
	uint64_t seed;
	unsigned long round;
	struct tested tested[WORLD_ENGINES];
	unsigned ntested;
	size_t head;		/* of the frame in the first buffer; 0: all */
	struct world world;
	struct ref_state state;
	struct ref_result want;
	struct differ_count count;
	unsigned answers;	/* since they were allowed again */
	/* what the counters must say */
	uint64_t service[REF_SERVICES + 1][3], backend[REF_BACKENDS][2];
	uint64_t summed;
};

static _Noreturn void
fail(const char *what)
{
	printf("Bail out! %s: %s\n", what, strerror(errno));
	fflush(stdout);
	_exit(1);
}

/* Runs it, and finds its reason by the counter that went up. */
static void
tested_run(struct tested *t, const uint8_t *frame, size_t len)
{
	uint64_t now[XLB_REASON_COUNT];
	unsigned i, grown = 0;

	t->seen.action = t->engine->run(frame, len, t->seen.frame,
	    &t->seen.len);
	if (t->engine->counters("reasons", 0, now, XLB_REASON_COUNT) != 0)
		fail("counters");
	t->seen.reason = XLB_REASON_COUNT;
	for (i = 0; i < XLB_REASON_COUNT; i++) {
		grown += (unsigned)(now[i] - t->reasons[i]);
		if (now[i] != t->reasons[i])
			t->seen.reason = i;
	}
	if (grown != 1)
		t->seen.reason = XLB_REASON_COUNT;
	memcpy(t->reasons, now, sizeof(now));
}

static bool
same(const struct ref_result *want, const struct seen *seen)
{
	return want->action == seen->action && want->reason == seen->reason &&
	    (want->action == XDP_DROP || (want->len == seen->len &&
	    memcmp(want->frame, seen->frame, want->len) == 0));
}

static bool
agree(struct differ *d, const uint8_t *frame, size_t len)
{
	bool all = true;
	unsigned i;

	ref_run(&d->world.config, &d->state, frame, len, &d->want);
	for (i = 0; i < d->ntested; i++) {
		if (len < d->tested[i].engine->shortest)
			continue;
		tested_run(&d->tested[i], frame, len);
		all = all && same(&d->want, &d->tested[i].seen);
	}
	return all;
}

static void
say(const char *who, int action, unsigned reason, const uint8_t *frame,
    size_t len)
{
	size_t i;

	printf("#   %s: action %d, %s, %zu bytes ", who, action,
	    reason < XLB_REASON_COUNT ? differ_reason(reason) :
	    "not one reason", len);
	for (i = 0; i < len && action != XDP_DROP; i++)
		printf("%02x", frame[i]);
	printf("\n");
}

static void
report(struct differ *d, const char *title, const uint8_t *frame, size_t len)
{
	unsigned i;

	printf("# %s\n", title);
	say("frame", -1, d->want.reason, frame, len);
	say("reference", d->want.action, d->want.reason, d->want.frame,
	    d->want.len);
	for (i = 0; i < d->ntested; i++)
		if (len >= d->tested[i].engine->shortest)
			say(d->tested[i].engine->name,
			    d->tested[i].seen.action,
			    d->tested[i].seen.reason, d->tested[i].seen.frame,
			    d->tested[i].seen.len);
}

/* Shorter, and then with fewer bytes that are not 0, while they differ. */
static void
minimise(struct differ *d, uint8_t *frame, size_t len)
{
	size_t by, at;
	uint8_t was;

	for (by = len / 2; by > 0; by /= 2)
		while (by < len && !agree(d, frame, len - by))
			len -= by;
	for (at = 0; at < len; at++) {
		was = frame[at];
		frame[at] = 0;
		if (was != 0 && agree(d, frame, len))
			frame[at] = was;
	}
	if (!agree(d, frame, len))
		report(d, "the same, minimised", frame, len);
}

/* What the program can look at: it makes the first buffer larger where that
 * is small, as far as the headroom goes. */
static void
split(struct differ *d, struct rng *r)
{
	unsigned i;

	d->head = rng_range(r, 1, rng_chance(r, 70) ? 90 : 300);
	d->world.config.first_buffer = d->head + (d->head < 256 ? 160 : 0);
	for (i = 0; i < d->ntested; i++)
		d->tested[i].engine->split(d->head);
}

/* Answers are limited by the clock: all are allowed, or none. */
static void
answers_allow(struct differ *d, bool mute)
{
	struct xlb_rare rare;
	unsigned i;
	uint64_t summed;

	for (i = 0; i < d->ntested; i++) {
		if (d->tested[i].engine->counters("rare", 0, &summed, 1) != 0)
			fail("rare");
		if (summed != d->summed) {
			printf("# %s: csum_full %" PRIu64 ", not %" PRIu64 "\n",
			    d->tested[i].engine->name, summed, d->summed);
			_exit(1);
		}
		memset(&rare, 0, sizeof(rare));
		rare.answer_at = mute ? INT64_MAX / 2 : 0;
		if (d->tested[i].engine->row_set("rare", 0, &rare) != 0)
			fail("rare");
	}
	d->summed = 0;
	d->answers = 0;
	d->state.mute = mute;
}

static void
tally(struct differ *d)
{
	const struct ref_result *w = &d->want;
	uint64_t *service;

	differ_count_add(&d->count, w);
	d->summed += w->summed;
	if (w->service != NULL) {
		service = d->service[w->service->number];
		service[0] += w->backend != 0;
		service[1] += w->bytes;
		service[2] += w->backend == 0;
	}
	if (w->backend != 0) {
		d->backend[w->backend][0]++;
		d->backend[w->backend][1] += w->bytes;
	}
}

static bool
counters_same(struct differ *d, const char *map, uint64_t *want, uint32_t row,
    size_t n)
{
	uint64_t have[3] = { 0 };
	bool all = true;
	unsigned i;

	for (i = 0; i < d->ntested; i++) {
		if (d->tested[i].engine->counters(map, row, have, n) != 0)
			fail(map);
		if (memcmp(have, want, n * sizeof(*want)) == 0)
			continue;
		printf("# %s: %s %u: %" PRIu64 " %" PRIu64 ", not %" PRIu64
		    " %" PRIu64 "\n", d->tested[i].engine->name, map, row,
		    have[0], have[1], want[0], want[1]);
		all = false;
	}
	return all;
}

static bool
counters_agree(struct differ *d)
{
	bool all = true;
	uint32_t i;

	for (i = 1; i <= REF_SERVICES; i++)
		all &= counters_same(d, "service", d->service[i], i, 3);
	for (i = 1; i < REF_BACKENDS; i++)
		all &= counters_same(d, "backend", d->backend[i], i, 2);
	return all;
}

static void
round_begin(struct differ *d, struct rng *r)
{
	unsigned i;

	r->at = d->seed * 0x9e3779b97f4a7c15ULL + d->round;
	rng_next(r);
	for (i = 0; i < d->ntested; i++)
		if (d->tested[i].engine->clear("fragments") != 0)
			fail("fragments");
	d->state.nfragment = d->state.nflow = 0;
	for (i = 0; i < d->ntested; i++)
		memset(d->world.maps[i].nat, 0, NAT_ROWS *
		    sizeof(*d->world.maps[i].nat));
	answers_allow(d, rng_chance(r, 15));
	world_build(&d->world, r, d->load->frags);
}

static bool
round_run(struct differ *d, unsigned long packets)
{
	static uint8_t frame[REF_FRAME_MAX];
	unsigned long n;
	struct rng r;
	size_t len;

	round_begin(d, &r);
	for (n = 0; n < packets; n++) {
		if (n % STEP == STEP - 1)
			world_step(&d->world, &r);
		len = gen_frame(&r, &d->world.config, &d->state,
		    &d->load->wish, frame);
		if (d->load->split)
			split(d, &r);
		if (!agree(d, frame, len)) {
			printf("# --seed %" PRIu64 " --round %lu, %s, packet "
			    "%lu of the round, %zu bytes in the first buffer\n",
			    d->seed, d->round, d->load->name, n, d->head);
			report(d, "they differ", frame, len);
			minimise(d, frame, len);
			return false;
		}
		tally(d);
		d->answers += d->want.reason == XLB_REASON_TOO_BIG;
		if (d->answers >= ANSWERS)
			answers_allow(d, false);
	}
	return counters_agree(d);
}

/* 1: not permitted. */
static int
tested_open(struct differ *d, const struct engine *engine)
{
	struct tested *t = &d->tested[d->ntested];
	struct world_maps *m = &d->world.maps[d->ntested];
	const struct engine_config c = { d->load->ring_size, FLOW_ENTRIES,
	    NAT_ROWS, d->load->frags };
	uint32_t insns = 0, i;
	char why[256] = "";
	size_t len;
	int e = engine->open(&c, &insns, why, sizeof(why));

	if (e == 0 && d->load->split && engine->split(1) != 0) {
		snprintf(why, sizeof(why), "cannot split frames");
		e = 1;
	}
	if (e > 0) {
		printf("# %s: %s\n", engine->name, why);
		return 1;
	}
	t->engine = engine;
	if (e == 0 && engine->counters("reasons", 0, t->reasons,
	    XLB_REASON_COUNT) != 0)
		fail("counters");
	m->tables = engine->map("tables", &len);
	m->nat = engine->map("nat", &len);
	if (e < 0 || m->tables == NULL || m->nat == NULL ||
	    engine->port(2) != 0)
		fail(why);
	for (i = 0; i < REF_RINGS; i++)
		if ((m->ring[i] = engine->ring(i, &len)) == NULL)
			fail("ring");
	d->world.nmaps = ++d->ntested;
	return 0;
}

static int
verdict(unsigned n, bool ok, const struct load *load, const char *what)
{
	printf("%sok %u - %s: %s\n", ok ? "" : "not ", n, load->name, what);
	fflush(stdout);
	return ok ? 0 : 1;
}

/* In a process of its own: a program is loaded once in each. */
static int
load_run(const struct load *load, unsigned n, uint64_t seed, long only,
    unsigned long packets)
{
	static struct differ d;
	clock_t began = clock();
	char what[160];
	bool ok = true, kernel;
	uint32_t i;

	d.load = load;
	d.seed = seed;
	d.world.image = calloc(1, sizeof(*d.world.image));
	d.world.config.ring_size = load->ring_size;
	for (i = 0; i < REF_RINGS; i++)
		d.world.config.ring[i] = calloc(load->ring_size,
		    sizeof(*d.world.config.ring[i]));
	tested_open(&d, &engine_two_host);
	kernel = tested_open(&d, &engine_two_bpf) == 0;
	for (d.round = only < 0 ? 0 : (unsigned long)only;
	    ok && d.count.packets < packets; d.round++)
		ok = round_run(&d, packets - d.count.packets < ROUND ?
		    packets - d.count.packets : ROUND);
	snprintf(what, sizeof(what), "%lu packets end alike in the reference, "
	    "on this machine%s, %.0f s", d.count.packets,
	    kernel ? " and in the kernel" : "",
	    (double)(clock() - began) / CLOCKS_PER_SEC);
	i = (uint32_t)verdict(n, ok, load, what);
	i |= (uint32_t)verdict(n + 1, load->wish.nat > NAT_MOST ?
	    differ_count_nat(&d.count) : differ_count_reasons(&d.count), load,
	    load->wish.nat > NAT_MOST ? "two in five are translated, in both "
	    "directions" : "each reason was reached many times");
	printf("ok %u - %s: the kernel takes part%s\n", n + 2, load->name,
	    kernel ? "" : " # SKIP not permitted, or not able");
	fflush(stdout);
	return (int)i;
}

static uint64_t
number(const char *s, const char *what)
{
	char *end;
	uint64_t v;

	errno = 0;
	v = strtoull(s, &end, 0);
	if (errno != 0 || *s < '0' || *s > '9' || *end != '\0') {
		fprintf(stderr, "differ: %s: not a number: %s\n", what, s);
		exit(2);
	}
	return v;
}

static uint64_t
environment(const char *name, uint64_t otherwise)
{
	const char *s = getenv(name);

	return s == NULL ? otherwise : number(s, name);
}

int
main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "packets", required_argument, NULL, 'p' },
		{ "seed", required_argument, NULL, 's' },
		{ "round", required_argument, NULL, 'r' }, { 0 }
	};
	uint64_t packets = environment("XLB_DIFFER_PACKETS", PACKETS);
	uint64_t seed = environment("XLB_DIFFER_SEED", 1);
	long only = -1;
	int c, status, bad = 0;
	unsigned i;
	pid_t pid;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'p')
			packets = number(optarg, "--packets");
		else if (c == 's')
			seed = number(optarg, "--seed");
		else if (c == 'r')
			only = (long)number(optarg, "--round");
		else
			return 2;
	}
	printf("1..%zu\n# seed %" PRIu64 "\n", 3 * LOADS, seed);
	for (i = 0; i < LOADS; i++) {
		fflush(stdout);
		pid = fork();
		if (pid == 0)
			_exit(load_run(&loads[i], 3 * i + 1, seed, only,
			    packets * loads[i].share / 100));
		if (pid < 0 || waitpid(pid, &status, 0) != pid)
			fail("fork");
		bad |= !WIFEXITED(status) || WEXITSTATUS(status) != 0;
	}
	return bad;
}
