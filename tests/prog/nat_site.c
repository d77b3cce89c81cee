/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "nat_site.h"

#include <arpa/inet.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/hash_key.h"
#include "core/nat_sweep.h"
#include "engine.h"
#include "hash.h"

#define RING_SIZE 251
#define VIP	0xcb00710aU	/* 203.0.113.10 */
#define OURS	0x0a000001U
#define BACKEND	0x0a00010bU
#define NUMBER	1		/* of whatever there is one of */

static const struct xlb_nexthop way = { .src_mac = { 2 }, .mtu = 1500,
    .ifindex = 1, .flags = XLB_NEXTHOP_VALID, .mac_vlan = 2 };

static void
mapped(void *to, uint32_t addr)
{
	const uint32_t word[4] = { 0, 0, htonl(0xffff), htonl(addr) };

	memcpy(to, word, sizeof(word));
}

static void
vip_put(struct xlb_tables *t, uint32_t addr, uint32_t id, uint32_t flags)
{
	__be32 word[4];
	uint32_t at;

	mapped(word, addr);
	at = xlb_vip_hash(word);
	memcpy(t->vip[at].addr, word, sizeof(word));
	t->vip[at].flags = flags;
	t->vip[at].id = id;
	t->vip_filter[at / 64] |= 1ULL << at % 64;
}

static void
tables_put(struct xlb_tables *t, struct xlb_ring *ring)
{
	uint64_t key = XLB_SERVICE_KEY(NUMBER, IPPROTO_TCP, 80);
	struct xlb_service *service = &t->service[xlb_service_hash(key)];
	uint32_t i;

	t->settings.abi = XLB_ABI;
	t->settings.flow_budget = UINT32_MAX;
	hash_expand(t->settings.hash_key, &t->settings.hash);
	vip_put(t, VIP, NUMBER, 0);
	service->word = XLB_SERVICE_WORD(NUMBER, 0, 0, XLB_FORWARD_NAT |
	    XLB_SERVICE_NAT);
	service->key = key;
	t->nexthop[NUMBER] = way;
	t->door[0] = way;
	mapped(t->backend[NUMBER].addr, BACKEND);
	t->backend[NUMBER].nexthop = NUMBER;
	ring->member[0] = (XLB_MEMBER | XLB_MEMBER_KEEPS) << NUMBER * 2;
	for (i = 0; i < RING_SIZE; i++)
		ring->slot[i] = XLB_SLOT(NUMBER, 0, 0);
	ring->size = RING_SIZE;
}

int
nat_site_open(struct nat_site *s, uint32_t rows)
{
	const struct engine_config c = { RING_SIZE, 64, rows, false };
	struct xlb_ring *ring;
	char why[256] = "";
	uint32_t insns;
	size_t len;
	int e = engine_open(&c, &insns, why, sizeof(why));

	if (e != 0) {
		printf(e > 0 ? "1..0 # SKIP %s\n" : "Bail out! %s\n", why);
		return e;
	}
	s->tables = engine_map("tables", &len);
	s->row = engine_map("nat", &len);
	s->rows = rows;
	ring = engine_ring(0, &len);
	if (s->tables == NULL || s->row == NULL || ring == NULL) {
		printf("Bail out! a map is missing\n");
		return -1;
	}
	tables_put(s->tables, ring);
	s->addresses = 0;
	nat_site_address(s);
	return 0;
}

void
nat_site_address(struct nat_site *s)
{
	uint32_t n = s->addresses++;

	vip_put(s->tables, OURS + n, XLB_VIP_OWN | (n + 1), XLB_VIP_SOURCE);
	mapped(s->tables->source[n].addr, OURS + n);
	s->tables->backend[NUMBER].sources |= 1ULL << n;
}

static void
frame_put(uint8_t *frame, uint32_t src, uint32_t dst, uint16_t sport,
    uint16_t dport, uint8_t flags)
{
	struct iphdr ip = { .version = 4, .ihl = 5, .ttl = 9,
	    .protocol = IPPROTO_TCP, .tot_len = htons(40),
	    .saddr = htonl(src), .daddr = htonl(dst) };
	struct tcphdr tcp = { .th_sport = htons(sport),
	    .th_dport = htons(dport), .th_off = 5, .th_flags = flags };

	memset(frame, 2, 2 * ETH_ALEN);
	frame[12] = 8;
	frame[13] = 0;
	memcpy(frame + ETH_HLEN, &ip, sizeof(ip));
	memcpy(frame + ETH_HLEN + sizeof(ip), &tcp, sizeof(tcp));
}

void
nat_site_frame(uint8_t *frame, uint32_t client, uint16_t port, uint8_t flags)
{
	frame_put(frame, client, VIP, port, 80, flags);
}

void
nat_site_reply(uint8_t *frame, uint16_t ours, uint8_t flags)
{
	frame_put(frame, BACKEND, OURS, 80, ours, flags);
}

int
nat_site_run(const uint8_t *frame, uint16_t *ours)
{
	uint8_t out[ENGINE_FRAME_MAX] = { 0 };
	size_t len;
	int action = engine_run(frame, NAT_SITE_LEN, out, &len);

	*ours = (uint16_t)(out[34] << 8 | out[35]);
	return action;
}

static uint64_t
hash(const struct nat_site *s, uint32_t src, uint32_t dst, uint16_t sport,
    uint16_t dport)
{
	return hash_flow4(&s->tables->settings.hash, htonl(src), htonl(dst),
	    htonl((uint32_t)sport << 16 | dport), IPPROTO_TCP);
}

uint64_t
nat_site_hash(const struct nat_site *s, uint32_t client, uint16_t port)
{
	return hash(s, client, VIP, port, 80);
}

uint64_t
nat_site_reply_hash(const struct nat_site *s, uint16_t ours)
{
	return hash(s, BACKEND, OURS, 80, ours);
}

uint16_t
nat_site_port(uint64_t h)
{
	return (uint16_t)(XLB_NAT_PORT + (h >> 32) % XLB_NAT_PORTS);
}

uint64_t
nat_site_count(enum xlb_reason reason)
{
	uint64_t count[XLB_REASON_COUNT] = { 0 };

	engine_counters("reasons", 0, count, XLB_REASON_COUNT);
	return count[reason];
}

/* What the other side's packets are told apart by. */
static uint64_t
name_of(const struct xlb_nat *r)
{
	__be32 client;

	if (r->word & XLB_NAT_REPLY)
		return (uint64_t)r->source << 32 | ntohl(r->back);
	memcpy(&client, r->client + 12, sizeof(client));
	return (uint64_t)client << 32 | r->ports;
}

static int
by_name(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* The names of one direction's rows; how many, or -1. */
static int
names(const struct nat_site *s, uint32_t kind, uint64_t *name)
{
	const struct xlb_nat *r;
	uint32_t at;
	int n = 0, i;

	for (at = 0; at < s->rows; at++) {
		r = &s->row[at];
		if (!(r->word & kind) || r->backend == 0)
			continue;
		if ((r->word & XLB_NAT_BUSY) || !nat_pair(s->row, s->rows, at)) {
			printf("# row %u is alone: %llx\n", at,
			    (unsigned long long)r->word);
			return -1;
		}
		name[n++] = name_of(r);
	}
	qsort(name, (size_t)n, sizeof(*name), by_name);
	for (i = 1; i < n; i++)
		if (name[i] == name[i - 1]) {
			printf("# two rows are %llx\n",
			    (unsigned long long)name[i]);
			return -1;
		}
	return n;
}

int
nat_site_flows(const struct nat_site *s)
{
	uint64_t *name = calloc(s->rows, sizeof(*name));
	int a, b;

	if (name == NULL)
		abort();
	a = names(s, XLB_NAT_FORWARD, name);
	b = names(s, XLB_NAT_REPLY, name);
	free(name);
	if (a != b)
		printf("# %d rows of clients, %d of the backend\n", a, b);
	return a == b ? a : -1;
}
