/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a packet costs: a driver program rebuilds a frame for one of many flows
 * and tail-calls the program under test; the kernel repeats that. All
 * programs of a row take turns in slices, so that what else the machine does hits
 * them alike, and each figure is that of the fastest tenth of its slices: on a
 * shared core the rest tells of the neighbours. The median stands beside it.
 */
#include "bench.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wcast-qual"
#include "driver.skel.h"
#pragma GCC diagnostic pop

#include "count.h"

#define SLICES 33
#define SLICE_MIN 5000		/* packets: each call waits for RCU, twice */
#define REPEAT 2000000
/* A flood does not pause: a slice takes as long as a window of the insert budget,
 * which else begins anew in every other slice. */
#define FLOOD 10
#define ROW_SECONDS 20		/* no more for one case and number of flows */
#define FLOWS_MAX 5
#define BEGIN_PACKETS 8		/* of a flow, from SYN to the end */
#define BEGIN_MAX 32000000
#define FLOWS_LIMIT 16777216U	/* as many source addresses there are */

enum { EXIT_DONE, EXIT_FAILED, EXIT_USAGE };

/* A program in a row, with a driver of its own. */
struct side {
	const char *name;
	int fd;			/* -1: the driver alone */
	int action;		/* what has to come back; -1: whatever */
	struct driver_bpf *driver;
	double ns[SLICES], figure, low, median;
	double insns;		/* executed; 0: not counted */
};
enum { SIDE_DRIVER, SIDE_FLOOR, SIDE_XLB, SIDE_OTHER, SIDES };

struct bench {
	bool chosen[32];	/* by number of case */
	uint32_t flows[FLOWS_MAX];
	size_t nflows;
	uint32_t repeat;
	bool frags;
	const char *json, *object, *program, *hook;
	size_t loads;
	double ack[FLOWS_MAX];	/* net, by number of flows; 0: not measured */
};

static double
seconds(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int
by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static int
side_open(struct side *s, const struct bench_case *c, const struct bench *b,
    uint32_t flows)
{
	uint32_t zero = 0, flags = b->frags ? BPF_F_XDP_HAS_FRAGS : 0;
	struct driver_bpf *d = driver_bpf__open();
	struct bench_frame frame = { 0 };
	int fd, e;

	if (d == NULL) {
		fprintf(stderr, "bench: driver: %s\n", strerror(errno));
		return -1;
	}
	s->driver = d;
	c->build(&frame);
	memcpy(&d->rodata->frame, &frame, sizeof(frame));
	d->rodata->flows = flows;
	d->rodata->call = s->fd != -1;
	/* a tail call wants the same flag on both ends */
	bpf_program__set_flags(d->progs.driver, flags);
	bpf_program__set_flags(d->progs.bare, flags);
	e = driver_bpf__load(d);
	if (e == 0 && s->fd != -1) {
		fd = s->fd != 0 ? s->fd : bpf_program__fd(d->progs.bare);
		if (bpf_map_update_elem(bpf_map__fd(d->maps.next), &zero, &fd,
		    BPF_ANY) != 0)
			e = -errno;
	}
	if (e != 0)
		fprintf(stderr, "bench: %s: load: %s\n", s->name,
		    strerror(-e));
	return e;
}

/* ns per packet of one slice; -1 after saying why. The thread's own time: it
 * has the fractions that the kernel's report lacks, and others' share of the
 * machine is not in it. */
static double
side_slice(const struct side *s, uint32_t repeat)
{
	uint8_t frame[BENCH_FRAME];
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = frame,
	    .data_size_in = sizeof(frame), .repeat = (int)repeat);
	double from, ns;
	int e;

	memcpy(frame, (const void *)&s->driver->rodata->frame, sizeof(frame));
	from = seconds(CLOCK_THREAD_CPUTIME_ID);
	e = bpf_prog_test_run_opts(bpf_program__fd(s->driver->progs.driver),
	    &opts);
	ns = (seconds(CLOCK_THREAD_CPUTIME_ID) - from) * 1e9 / repeat;
	if (e != 0) {
		fprintf(stderr, "bench: %s: run: %s\n", s->name, strerror(-e));
		return -1;
	}
	if (s->action != -1 && (int)opts.retval != s->action) {
		fprintf(stderr, "bench: %s: XDP action %u, not %d\n", s->name,
		    opts.retval, s->action);
		return -1;
	}
	return ns;
}

/* Slice after slice, the programs in turn; the first round warms up. */
static int
row_run(struct side *side, size_t n, uint32_t repeat, uint32_t longer)
{
	uint32_t slice = repeat / (SLICES - 1);
	double until = seconds(CLOCK_MONOTONIC) + ROW_SECONDS;
	size_t k, i, have = 0;

	if (slice < SLICE_MIN)
		slice = repeat < SLICE_MIN ? repeat : SLICE_MIN;
	for (k = 0; k <= repeat / slice && k < SLICES; k++) {
		if (k > 2 && seconds(CLOCK_MONOTONIC) > until)
			break;
		for (i = 0; i < n; i++) {
			side[i].ns[have] = side_slice(&side[i],
			    slice * longer);
			if (side[i].ns[have] < 0)
				return -1;
		}
		have += k > 0;
	}
	for (i = 0; i < n; i++) {
		qsort(side[i].ns, have, sizeof(double), by_value);
		side[i].figure = side[i].ns[have / 10];
		side[i].low = side[i].ns[0];
		side[i].median = side[i].ns[have / 2];
	}
	return 0;
}

/* What a row of xlb is held to, if it is. */
static void
budget_print(struct bench *b, const struct bench_case *c, uint32_t flows,
    double net, double floor)
{
	const struct bench_budget *budget = bench_budget_find(c, flows);
	double of = floor;
	size_t f;

	for (f = 0; f < b->nflows && b->flows[f] != flows; f++)
		;
	if (strcmp(c->name, "ack") == 0)
		b->ack[f] = net;
	if (budget != NULL && budget->of_ack)
		of = b->ack[f];
	if (budget == NULL || of <= 0)
		return;
	printf("  %.2f of %.2f %s%s", net / of, budget->limit,
	    budget->of_ack ? "ack" : "floors",
	    net / of > budget->limit ? ": missed" : "");
}

static void
row_print(struct bench *b, const struct bench_case *c, uint32_t flows,
    const struct side *side, size_t n)
{
	double base = side[SIDE_DRIVER].figure, net, floor;
	size_t i;

	floor = side[SIDE_FLOOR].figure - base;
	for (i = 0; i < n; i++) {
		net = side[i].figure - base;
		printf("%-7s %9u %-8s %7.1f %7.1f   %5.1f-%-5.1f", c->name,
		    flows, side[i].name, side[i].figure, net, side[i].low,
		    side[i].median);
		if (i > SIDE_FLOOR && floor > 0)
			printf(" %5.2f", net / floor);
		if (i == SIDE_XLB) {
			printf("%6.0f", side[i].insns);
			budget_print(b, c, flows, net, floor);
		}
		printf("\n");
		json_row(c->name, flows, side[i].name, side[i].figure, net);
	}
	fflush(stdout);
}

/* Each flow's packets once, unmeasured. */
static int
side_begin(const struct side *s, uint32_t flows)
{
	uint64_t n = (uint64_t)flows * BEGIN_PACKETS;

	return side_slice(s, n < BEGIN_MAX ? (uint32_t)n : BEGIN_MAX) < 0 ? -1 :
	    0;
}

/* A flood takes nobody's place. */
static int
confirmed_check(const struct bench_case *c, uint64_t before)
{
	uint64_t now = tables_confirmed();

	if (now == before)
		return 0;
	fprintf(stderr, "bench: %s: %" PRIu64 " confirmed flows, %" PRIu64
	    " before\n", c->name, now, before);
	return -1;
}

static int
row(struct bench *b, const struct bench_case *c, uint32_t flows, int xlb,
    const struct object *other)
{
	uint64_t confirmed = tables_confirmed();
	struct side side[SIDES] = {
		[SIDE_DRIVER] = { .name = "driver", .fd = -1,
		    .action = XDP_DROP },
		[SIDE_FLOOR] = { .name = "floor", .fd = 0, .action = XDP_TX },
		[SIDE_XLB] = { .name = "xlb", .fd = xlb,
		    .action = c->action },
		[SIDE_OTHER] = { .name = b->program, .fd = other->fd,
		    .action = -1 } };
	size_t i, n = b->object != NULL ? SIDES : SIDE_OTHER;
	int e = 0;

	if (b->object != NULL && b->hook != NULL)
		e = object_hook(other, b->hook, c->name, flows);
	for (i = 0; i < n && e == 0; i++)
		e = side_open(&side[i], c, b, flows);
	for (i = SIDE_XLB; i < n && e == 0 && (c->flags & BENCH_BEGUN); i++)
		e = side_begin(&side[i], flows);
	if (e == 0)
		e = row_run(side, n, b->repeat, c->flags & BENCH_BUDGET ?
		    FLOOD : 1);
	if (e == 0 && (c->flags & BENCH_BUDGET))
		e = confirmed_check(c, confirmed);
	if (e == 0) {
		side[SIDE_XLB].insns = count_insns(side[SIDE_XLB].driver,
		    c->action, c->flags & BENCH_BUDGET ? tables_budget() : 0);
		e = side[SIDE_XLB].insns < 0 ? -1 : 0;
	}
	if (e == 0)
		row_print(b, c, flows, side, n);
	for (i = 0; i < n; i++)
		driver_bpf__destroy(side[i].driver);
	return e;
}

static int
row_open(struct bench *b, const struct bench_case *c, uint32_t flows,
    const struct object *other)
{
	uint32_t insns = 0;
	int xlb;

	if ((c->flags & BENCH_NAT) && flows > BENCH_NAT_FLOWS)
		return 0;	/* more than there are ports */
	xlb = tables_open(c, flows, b->frags, &insns);

	if (xlb < 0)
		return -1;
	if (b->loads++ == 0)
		printf("xlb: %u instructions as loaded%s\n"
		    "case        flows program       ns     net   min-median "
		    "/floor insns  budget\n", insns, b->frags ? ", xdp.frags" : "");
	return row(b, c, flows, xlb, other);
}

static int
bench_run(struct bench *b, const struct object *other)
{
	const struct bench_case *c;
	size_t i, f;
	double ns;

	for (i = 0; i < bench_cases; i++) {
		c = &bench_case[i];
		if (!b->chosen[i])
			continue;
		if (c->run != NULL) {
			ns = ring_row(c);
			json_row(c->name, 0, "xlb", ns, ns);
			continue;
		}
		for (f = 0; f < b->nflows; f++)
			if (row_open(b, c, b->flows[f], other) != 0)
				return -1;
	}
	return 0;
}

static int
quiet(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	return level == LIBBPF_WARN ? vfprintf(stderr, fmt, ap) : 0;
}

static int
bench(struct bench *b)
{
	struct object other = { .fd = -1 };
	int e = 0;

	libbpf_set_print(quiet);
	if (b->json != NULL && json_open(b->json) != 0)
		return EXIT_FAILED;
	if (b->object != NULL)
		e = object_open(&other, b->object, b->program, b->frags);
	if (e == 0)
		e = bench_run(b, &other);
	object_close(&other);
	if (json_close(b->json) != 0)
		e = -1;
	return e == 0 ? EXIT_DONE : EXIT_FAILED;
}

static _Noreturn void
usage(int code)
{
	FILE *to = code == EXIT_DONE ? stdout : stderr;
	size_t i;

	fprintf(to, "usage: bench [--case NAME[,...]] [--flows N[,...]] "
	    "[--repeat N] [--frags]\n"
	    "    [--json FILE] [--object FILE:PROGRAM [--hook SCRIPT]]\n"
	    "SCRIPT is called with the directory where FILE's maps are "
	    "pinned, the case and\nthe number of flows, before each row.\n");
	for (i = 0; i < bench_cases; i++)
		fprintf(to, "  %-7s %s\n", bench_case[i].name,
		    bench_case[i].what);
	exit(code);
}

static void
chosen_read(struct bench *b, char *list)
{
	char *name;
	size_t i;

	memset(b->chosen, 0, sizeof(b->chosen));
	while ((name = strsep(&list, ",")) != NULL) {
		for (i = 0; i < bench_cases; i++)
			if (strcmp(bench_case[i].name, name) == 0)
				break;
		if (i == bench_cases) {
			fprintf(stderr, "bench: no case '%s'\n", name);
			usage(EXIT_USAGE);
		}
		b->chosen[i] = true;
	}
}

static uint32_t
number_read(const char *text, uint32_t limit)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (end == text || *end != '\0' || text[0] == '-' || n < 1 ||
	    n > limit) {
		fprintf(stderr, "bench: '%s' is not in 1..%u\n", text, limit);
		usage(EXIT_USAGE);
	}
	return (uint32_t)n;
}

static void
flows_read(struct bench *b, char *list)
{
	char *text;

	b->nflows = 0;
	while ((text = strsep(&list, ",")) != NULL) {
		if (b->nflows == FLOWS_MAX) {
			fprintf(stderr, "bench: more than %d numbers of "
			    "flows\n", FLOWS_MAX);
			usage(EXIT_USAGE);
		}
		b->flows[b->nflows++] = number_read(text, FLOWS_LIMIT);
	}
}

static void
object_read(struct bench *b, char *text)
{
	char *colon = strrchr(text, ':');

	if (colon == NULL || colon == text || colon[1] == '\0')
		usage(EXIT_USAGE);
	*colon = '\0';
	b->object = text;
	b->program = colon + 1;
}

int
main(int argc, char **argv)
{
	static const struct option option[] = {
		{ "case", required_argument, NULL, 'c' },
		{ "flows", required_argument, NULL, 'f' },
		{ "repeat", required_argument, NULL, 'r' },
		{ "frags", no_argument, NULL, 'm' },
		{ "json", required_argument, NULL, 'j' },
		{ "object", required_argument, NULL, 'o' },
		{ "hook", required_argument, NULL, 'k' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 } };
	struct bench b = { .flows = { 1, 10000, 100000, 1000000, 10000000 },
	    .nflows = 5, .repeat = REPEAT };
	int o;

	memset(b.chosen, 1, sizeof(b.chosen));
	while ((o = getopt_long(argc, argv, "", option, NULL)) != -1)
		switch (o) {
		case 'c':
			chosen_read(&b, optarg);
			break;
		case 'f':
			flows_read(&b, optarg);
			break;
		case 'r':
			b.repeat = number_read(optarg, 1000000000);
			break;
		case 'm':
			b.frags = true;
			break;
		case 'j':
			b.json = optarg;
			break;
		case 'o':
			object_read(&b, optarg);
			break;
		case 'k':
			b.hook = optarg;
			break;
		case 'h':
			usage(EXIT_DONE);
		default:
			usage(EXIT_USAGE);
		}
	if (optind != argc || (b.hook != NULL && b.object == NULL))
		usage(EXIT_USAGE);
	return bench(&b);
}
