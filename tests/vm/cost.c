/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a packet costs a node, in instructions. The machine's clock counts these
 * (QEMU, -icount), and nothing else runs: the frames are made by an XDP
 * program, come to the node as a driver's would, not as a socket's, and end
 * where they come back.
 *
 * usage: cost loop
 *        cost flood [--syn] [--look] [--node WHAT] FLOWS PACKETS ROUNDS
 *
 * loop prints ticks of the clock for each instruction of a loop. flood sends
 * PACKETS of FLOWS flows in turn out of p0 (guest/lib.sh), once to begin with
 * and then ROUNDS times, and prints: the fewest, median and most instructions
 * for a packet, how many were sent and how many came through, how many of these
 * were wrong (and why, bits) and how many backends had between half and twice
 * their share. --syn: it begins the flows, else all are ACKs. --look: at each
 * packet that comes back. --node: in the node's place, a program that drops by
 * XDP (`drop`), before IP (`skb`), or encapsulates (`bare`).
 */
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#include "../bench/frame.h"
#include "cost.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wcast-qual"
#include "cost.skel.h"
#include "driver.skel.h"
#pragma GCC diagnostic pop

#define LOOPS 100
#define TURNS 100000
#define ROUNDS_MAX 32
#define WAITS 100		/* of 10 ms, for what is still under way */

/* As guest/lib.sh has them. */
#define NODE "10.0.1.1"
#define BACKEND "10.0.2.11"
#define VIP "203.0.113.10"
#define PORT 80

struct options {
	bool syn, look;
	const char *node;	/* NULL: what runs there */
	uint32_t flows, packets, rounds;
};

/* Both ends of the link between router and node. */
struct place {
	int router, node;	/* namespaces */
	int p0, eth0;		/* interfaces of these */
};

static void
enter(int ns)
{
	if (setns(ns, CLONE_NEWNET) < 0)
		err(1, "setns");
}

static int
device_of(int ns, const char *name, uint8_t mac[ETH_ALEN])
{
	struct ifreq r = { 0 };
	int fd;

	enter(ns);
	snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", name);
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || ioctl(fd, SIOCGIFHWADDR, &r) < 0)
		err(1, "%s", name);
	memcpy(mac, r.ifr_hwaddr.sa_data, ETH_ALEN);
	if (ioctl(fd, SIOCGIFINDEX, &r) < 0)
		err(1, "%s", name);
	close(fd);
	return r.ifr_ifindex;
}

static void
place_open(struct place *p, struct cost_frame *f)
{
	p->router = open("/run/netns/router", O_RDONLY | O_CLOEXEC);
	p->node = open("/run/netns/node", O_RDONLY | O_CLOEXEC);
	if (p->router < 0 || p->node < 0)
		err(1, "/run/netns");
	p->eth0 = device_of(p->node, "eth0", f->eth.h_dest);
	p->p0 = device_of(p->router, "p0", f->eth.h_source);
}

static uint32_t
sum_of(const void *data, size_t len)
{
	const uint8_t *b = data;
	uint32_t sum = 0;
	uint16_t word;
	size_t i;

	for (i = 0; i + 1 < len; i += 2) {
		memcpy(&word, b + i, sizeof(word));
		sum += word;
	}
	return sum;
}

static void
template_fill(struct cost_template *t, const struct options *o)
{
	static const uint8_t option[12] = { 1, 1, 8, 10, 0, 0, 0, 7, 0, 0, 0, 5 };
	struct cost_frame *f = &t->frame;
	const size_t segment = sizeof(f->tcp) + sizeof(f->option);

	f->eth.h_proto = htons(ETH_P_IP);
	f->ip = (struct iphdr){ .version = 4, .ihl = 5, .ttl = 60,
	    .protocol = IPPROTO_TCP, .frag_off = htons(0x4000),
	    .tot_len = htons((uint16_t)(sizeof(f->ip) + segment)),
	    .daddr = inet_addr(VIP) };
	f->tcp = (struct tcphdr){ .dest = htons(PORT), .window = htons(500),
	    .doff = segment / 4, .syn = o->syn, .ack = !o->syn };
	memcpy(f->option, option, sizeof(option));
	t->ip_sum = sum_of(&f->ip, sizeof(f->ip));
	t->tcp_sum = sum_of(&f->tcp, segment) + sum_of(&f->ip.daddr, 4) +
	    htons(IPPROTO_TCP) + htons((uint16_t)segment);
	t->flows = o->flows;
	t->node = inet_addr(NODE);
	t->backend = inet_addr(BACKEND);
}

static void
must(int rc, const char *what)
{
	if (rc < 0)
		errx(1, "%s: %s", what, strerror(-rc));
}

static void
attach_xdp(int ns, int device, const struct bpf_program *p, const char *what)
{
	enter(ns);
	must(bpf_xdp_attach(device, bpf_program__fd(p), XDP_FLAGS_DRV_MODE,
	    NULL), what);
}

/* In the node's place; what was made is taken away by node_off(). */
static void
node_on(const struct place *p, const char *how, const struct cost_bpf *cost,
    const struct driver_bpf *driver)
{
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = p->eth0,
	    .attach_point = BPF_TC_INGRESS);
	LIBBPF_OPTS(bpf_tc_opts, tc, .prog_fd =
	    bpf_program__fd(cost->progs.drop_skb));

	if (how == NULL)
		return;
	if (strcmp(how, "drop") == 0) {
		attach_xdp(p->node, p->eth0, cost->progs.drop, how);
	} else if (strcmp(how, "bare") == 0) {
		attach_xdp(p->node, p->eth0, driver->progs.bare, how);
	} else if (strcmp(how, "skb") == 0) {
		enter(p->node);
		must(bpf_tc_hook_create(&hook), how);
		must(bpf_tc_attach(&hook, &tc), how);
	} else {
		errx(2, "--node %s: not drop, skb or bare", how);
	}
}

static void
node_off(const struct place *p, const char *how)
{
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = p->eth0,
	    .attach_point = BPF_TC_INGRESS | BPF_TC_EGRESS);

	if (how == NULL)
		return;
	enter(p->node);
	if (strcmp(how, "skb") == 0)
		must(bpf_tc_hook_destroy(&hook), how);
	else
		must(bpf_xdp_detach(p->eth0, XDP_FLAGS_DRV_MODE, NULL), how);
}

/* Instructions for all of so many packets. */
static uint64_t
send_packets(const struct cost_bpf *cost, uint32_t packets)
{
	struct cost_frame frame = { 0 };
	LIBBPF_OPTS(bpf_test_run_opts, run, .data_in = &frame,
	    .data_size_in = sizeof(frame), .repeat = (int)packets,
	    .flags = BPF_F_TEST_XDP_LIVE_FRAMES);
	uint64_t begin, end;
	int rc;

	begin = __rdtsc();
	rc = bpf_prog_test_run_opts(bpf_program__fd(cost->progs.flood), &run);
	end = __rdtsc();
	must(rc, "test run");
	return end - begin;
}

static void
settle(const volatile struct cost_seen *seen, uint64_t sent)
{
	const struct timespec pause = { 0, 10000000 };
	int i;

	for (i = 0; i < WAITS && seen->dropped + seen->tunnelled < sent; i++)
		nanosleep(&pause, NULL);
}

static int
by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void
seen_print(const struct cost_seen *s, double *cost, uint32_t rounds)
{
	uint64_t all = 0;
	int i, fair = 0;

	for (i = 0; i < COST_BACKENDS; i++)
		all += s->backend[i];
	for (i = 0; i < COST_BACKENDS; i++)
		fair += s->backend[i] * 2 * COST_BACKENDS >= all &&
		    s->backend[i] * COST_BACKENDS <= 2 * all && all > 0;
	qsort(cost, rounds, sizeof(*cost), by_value);
	printf("%.0f %.0f %.0f %llu %llu %llu %llu %d\n", cost[0],
	    cost[rounds / 2], cost[rounds - 1], s->sent,
	    s->dropped + s->tunnelled, s->wrong, s->why, fair);
}

static void
flood(const struct options *o)
{
	struct cost_bpf *cost = cost_bpf__open_and_load();
	struct driver_bpf *driver = driver_bpf__open_and_load();
	double each[ROUNDS_MAX];
	struct place p;
	uint32_t i;

	if (cost == NULL || driver == NULL)
		errx(1, "the programs do not load");
	place_open(&p, &cost->bss->template.frame);
	template_fill(&cost->bss->template, o);
	cost->bss->template.device = (uint32_t)p.p0;
	node_on(&p, o->node, cost, driver);
	attach_xdp(p.router, p.p0, o->look ? cost->progs.look :
	    cost->progs.sink, "p0");
	send_packets(cost, o->packets);
	for (i = 0; i < o->rounds; i++)
		each[i] = (double)send_packets(cost, o->packets) / o->packets;
	settle(&cost->bss->seen, cost->bss->seen.sent);
	seen_print(&cost->bss->seen, each, o->rounds);
	node_off(&p, o->node);
	driver_bpf__destroy(driver);
	cost_bpf__destroy(cost);
}

/* Two instructions a turn. The fewest ticks are those of a loop that nothing
 * interrupted. */
static void
loop(void)
{
	uint64_t begin, ticks, least = UINT64_MAX, n;
	int i;

	for (i = 0; i < LOOPS; i++) {
		n = TURNS;
		begin = __rdtsc();
		__asm__ volatile("1: dec %0; jnz 1b" : "+r"(n) : : "cc");
		ticks = __rdtsc() - begin;
		if (ticks < least)
			least = ticks;
	}
	printf("%.4f\n", (double)least / (2.0 * TURNS));
}

static uint32_t
number(const char *s, uint32_t most)
{
	char *end;
	unsigned long n = s == NULL ? 0 : strtoul(s, &end, 10);

	if (n == 0 || n > most || *end != '\0')
		errx(2, "%s: not a number from 1 to %" PRIu32,
		    s == NULL ? "nothing" : s, most);
	return (uint32_t)n;
}

int
main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "syn", no_argument, NULL, 's' },
		{ "look", no_argument, NULL, 'l' },
		{ "node", required_argument, NULL, 'n' },
		{ NULL, 0, NULL, 0 },
	};
	struct options o = { 0 };
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 's':
			o.syn = true;
			break;
		case 'l':
			o.look = true;
			break;
		case 'n':
			o.node = optarg;
			break;
		default:
			return 2;
		}
	}
	argv += optind;
	if (argv[0] != NULL && strcmp(argv[0], "loop") == 0) {
		loop();
	} else if (argc - optind == 4 && strcmp(argv[0], "flood") == 0) {
		o.flows = number(argv[1], COST_FLOWS);
		o.packets = number(argv[2], 100000000);
		o.rounds = number(argv[3], ROUNDS_MAX);
		flood(&o);
	} else {
		errx(2, "usage: cost loop | flood FLOWS PACKETS ROUNDS");
	}
	return 0;
}
