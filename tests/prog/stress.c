/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The flow table under all its writers at once: packets on every CPU, by
 * BPF_PROG_TEST_RUN, and a scanner that swaps entries as xlbd does, while the
 * ring turns. Speaks TAP.
 */
#include <arpa/inet.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/hash_key.h"
#include "engine.h"
#include "hash.h"
#include "xlb_abi.h"

#define RING_SIZE	251
#define ENTRIES		8192
#define SETS		(ENTRIES / XLB_FLOW_WAYS)
#define FLOWS		1500	/* a fifth of the table: hardly a set is full */
#define BACKENDS	4
#define WRITERS		4	/* threads, in turn on all CPUs */
#define ROUNDS		30	/* each begins with an empty table */
#define PACKETS		3	/* of each flow, writer and round */
#define LEN		(ETH_HLEN + 40)

struct flow {
	uint8_t frame[LEN];
	uint32_t tag, row, slot;
	_Atomic uint32_t backend;	/* that its first packet went to; 0 */
};

static struct flow flow[FLOWS];
static struct xlb_flow_set *set;
static struct xlb_ring *ring;
static struct xlb_tables *tables;
static atomic_uint moved, odd, swapped, sent;
static atomic_bool over;
static pthread_barrier_t barrier;
static uint32_t right, wrong, entries;	/* of all rounds */

static void
frame_put(struct flow *f, uint32_t n, uint8_t flags)
{
	struct iphdr ip = { .version = 4, .ihl = 5, .ttl = 9,
	    .protocol = IPPROTO_TCP, .tot_len = htons(40),
	    .saddr = htonl(0xc0000200 + n / 1000),
	    .daddr = htonl(0xcb00710a) };
	struct tcphdr tcp = { .th_sport = htons((uint16_t)(1024 + n % 1000)),
	    .th_dport = htons(80), .th_off = 5, .th_flags = flags };

	memset(f->frame, 2, ETH_ALEN * 2);
	f->frame[12] = 8;
	f->frame[13] = 0;
	memcpy(f->frame + ETH_HLEN, &ip, sizeof(ip));
	memcpy(f->frame + ETH_HLEN + sizeof(ip), &tcp, sizeof(tcp));
}

static void
flow_init(struct flow *f, uint32_t n)
{
	uint32_t a[3];
	uint64_t hash;

	frame_put(f, n, TH_PUSH | TH_ACK);
	memcpy(a, f->frame + ETH_HLEN + 12, sizeof(a));
	hash = hash_flow4(&tables->settings.hash, a[0], a[1], a[2],
	    IPPROTO_TCP);
	f->tag = xlb_flow_tag(hash_select(hash), hash);
	f->row = xlb_flow_row(hash, SETS - 1);
	f->slot = hash_slot(hash_select(hash), RING_SIZE);
}

static void
tables_put(void)
{
	__be32 vip[4] = { 0, 0, htonl(0xffff), htonl(0xcb00710a) };
	uint32_t at = xlb_vip_hash(vip), n;
	uint64_t key = XLB_SERVICE_KEY(1, IPPROTO_TCP, 80);
	struct xlb_nexthop hop = { .src_mac = { 2 }, .mtu = 1500,
	    .ifindex = 1, .flags = XLB_NEXTHOP_VALID, .mac_vlan = 2 };

	tables->settings.abi = XLB_ABI;
	tables->settings.flow_budget = UINT32_MAX;
	hash_expand(tables->settings.hash_key, &tables->settings.hash);
	memcpy(tables->vip[at].addr, vip, sizeof(vip));
	tables->vip[at].id = 1;
	tables->vip_filter[at / 64] |= 1ULL << at % 64;
	tables->service[xlb_service_hash(key)].key = key;
	tables->nexthop[1] = hop;
	for (n = 1; n <= BACKENDS; n++) {
		tables->backend[n].addr[10] = tables->backend[n].addr[11] = 255;
		tables->backend[n].addr[12] = 10;
		tables->backend[n].addr[15] = (uint8_t)n;
		tables->backend[n].nexthop = 1;
		ring->member[n / 16] |= (XLB_MEMBER | XLB_MEMBER_KEEPS) <<
		    n % 16 * 2;
	}
	ring->size = RING_SIZE;
}

/* Every slot LOOKUP and of another backend than before: what a flow's backend is
 * only the table knows. */
static void
ring_turn(uint32_t turn)
{
	uint32_t i;

	for (i = 0; i < RING_SIZE; i++)
		__atomic_store_n(&ring->slot[i], XLB_SLOT(1 + (i + turn) %
		    BACKENDS, 1, 0), __ATOMIC_RELAXED);
}

/* The last byte of the outer destination is the backend's number. */
static void
packet_send(struct flow *f)
{
	uint8_t out[ENGINE_FRAME_MAX];
	uint32_t was = 0, got;
	size_t len;

	if (engine_run(f->frame, LEN, out, &len) != XDP_TX || len != LEN + 20) {
		odd++;
		return;
	}
	sent++;
	got = out[ETH_HLEN + 19];
	if (!atomic_compare_exchange_strong(&f->backend, &was, got) &&
	    was != got)
		moved++;
}

/* Entries of the flow that name the backend it is with, and others. */
static void
entries_count(const struct flow *f)
{
	uint64_t e;
	int way;

	for (way = 0; way < XLB_FLOW_WAYS; way++) {
		e = set[f->row].entry[way];
		if (XLB_FLOW_TAG(e) != f->tag || e == 0)
			continue;
		if (XLB_FLOW_BACKEND(e) == f->backend)
			right++;
		else
			wrong++;
	}
}

/* What the round has left, and away with it. */
static void
round_end(void)
{
	__u64 *e;
	uint32_t i;

	for (i = 0; i < FLOWS; i++) {
		entries_count(&flow[i]);
		flow[i].backend = 0;
	}
	for (i = 0; i < ENTRIES; i++) {
		e = &set[i / XLB_FLOW_WAYS].entry[i % XLB_FLOW_WAYS];
		entries += __atomic_exchange_n(e, 0, __ATOMIC_RELAXED) != 0;
	}
}

static void *
writer(void *arg)
{
	uint32_t n = (uint32_t)(uintptr_t)arg, i, k, round;
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	cpu_set_t cpu;

	CPU_ZERO(&cpu);
	CPU_SET(n % (uint32_t)cpus, &cpu);
	sched_setaffinity(0, sizeof(cpu), &cpu);
	for (round = 0; round < ROUNDS; round++) {
		/* all on the same flows at about the same time */
		pthread_barrier_wait(&barrier);
		for (k = 0; k < PACKETS; k++)
			for (i = 0; i < FLOWS; i++)
				packet_send(&flow[i]);
		if (pthread_barrier_wait(&barrier) ==
		    PTHREAD_BARRIER_SERIAL_THREAD)
			round_end();
	}
	return NULL;
}

static uint32_t
tick(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	return (uint32_t)(((uint64_t)t.tv_sec * 1000000000 +
	    (uint64_t)t.tv_nsec) >> XLB_FLOW_TICK_SHIFT);
}

/* As xlbd: an entry is read, thought about, and swapped if it is still the
 * same: here it becomes two ticks older, a hundred at most. */
static void *
scanner(void *arg)
{
	__u64 *e, was, now;
	uint32_t age;
	size_t i;

	(void)arg;
	while (!over) {
		for (i = 0; i < ENTRIES && !over; i++) {
			e = &set[i / XLB_FLOW_WAYS].entry[
			    i % XLB_FLOW_WAYS];
			was = __atomic_load_n(e, __ATOMIC_RELAXED);
			age = (tick() - XLB_FLOW_USED(was)) &
			    XLB_FLOW_AGE_MASK;
			if (was == 0)
				continue;
			age = age < 100 ? age + 2 : 0;
			now = XLB_FLOW(XLB_FLOW_TAG(was),
			    XLB_FLOW_BACKEND(was), was & (XLB_FLOW_CONFIRMED |
			    XLB_FLOW_CLOSING), tick() - age);
			swapped += __atomic_compare_exchange_n(e, &was, now,
			    false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
		}
		usleep(500);
	}
	return NULL;
}

static void *
turner(void *arg)
{
	uint32_t turn = 1;

	(void)arg;
	while (!over) {
		ring_turn(turn++);
		usleep(300);
	}
	return NULL;
}

static int
result(int n, bool good, const char *what)
{
	printf("%sok %d - %s\n", good ? "" : "not ", n, what);
	return good ? 0 : 1;
}

static int
judge(void)
{
	uint64_t count[8] = { 0 };
	int bad = 0;

	engine_counters("flow_stats", 0, count, 8);
	printf("# %u packets, %u swaps by the scanner; %u entries, insert %llu "
	    "evict %llu+%llu cas_lost %llu full %llu\n", sent, swapped, right,
	    (unsigned long long)count[0], (unsigned long long)count[1],
	    (unsigned long long)count[2], (unsigned long long)count[4],
	    (unsigned long long)count[5]);
	bad += result(1, odd == 0 && sent == WRITERS * ROUNDS * PACKETS * FLOWS,
	    "every packet is sent");
	bad += result(2, moved == 0 && wrong == 0, "no flow moves");
	bad += result(3, right == ROUNDS * FLOWS && entries == right,
	    "each flow has one entry");
	bad += result(4, count[0] == ROUNDS * FLOWS && count[1] + count[2] == 0 &&
	    count[5] == 0, "inserts are counted");
	bad += result(5, swapped > 0, "the scanner swapped entries meanwhile");
	return bad;
}

int
main(void)
{
	const struct engine_config c = { RING_SIZE, ENTRIES, 0, false };
	pthread_t thread[WRITERS + 2];
	char why[256] = "";
	uint32_t insns, i;
	size_t len;
	int e = engine_open(&c, &insns, why, sizeof(why));

	if (e != 0) {
		printf(e > 0 ? "1..0 # SKIP %s\n" : "Bail out! %s\n", why);
		return e > 0 ? 0 : 1;
	}
	tables = engine_map("tables", &len);
	set = engine_map("flows", &len);
	ring = engine_ring(0, &len);
	if (tables == NULL || set == NULL || ring == NULL) {
		printf("Bail out! a map is missing\n");
		return 1;
	}
	tables_put();
	ring_turn(0);
	for (i = 0; i < FLOWS; i++)
		flow_init(&flow[i], i);
	printf("1..5\n");
	pthread_barrier_init(&barrier, NULL, WRITERS);
	pthread_create(&thread[WRITERS], NULL, scanner, NULL);
	pthread_create(&thread[WRITERS + 1], NULL, turner, NULL);
	for (i = 0; i < WRITERS; i++)
		pthread_create(&thread[i], NULL, writer,
		    (void *)(uintptr_t)i);
	for (i = 0; i < WRITERS; i++)
		pthread_join(thread[i], NULL);
	over = true;
	pthread_join(thread[WRITERS], NULL);
	pthread_join(thread[WRITERS + 1], NULL);
	return judge() == 0 ? 0 : 1;
}
