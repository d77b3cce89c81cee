/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * xlb's maps as on a node in use: 200 VIPs with four services each, 100
 * backends for each family, behind four next hops.
 */
#include "bench.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/types.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "../prog/engine.h"
#include "core/hash_key.h"
#include "core/source.h"
#include "hash.h"
#include "xlb_abi.h"

#define RING_SIZE 65537
#define FLOW_ENTRIES 1048576
#define VIPS 100		/* of each family */
#define BACKENDS 100		/* of each family */
#define HOPS 4			/* of each family */

static struct xlb_flow_set *table;
static struct xlb_nat *nat;
static size_t table_len, nat_len;
static struct xlb_ring *rings[2];	/* by family */
static struct xlb_tables *tables;

/* Addresses as the ABI has them. */
static void
address_put(const char *text, uint32_t add, uint8_t to[16])
{
	uint32_t low;

	memset(to, 0, 16);
	if (inet_pton(AF_INET6, text, to) != 1) {
		to[10] = to[11] = 0xff;
		inet_pton(AF_INET, text, to + 12);
	}
	memcpy(&low, to + 12, sizeof(low));
	low = htonl(ntohl(low) + add);
	memcpy(to + 12, &low, sizeof(low));
}

static void
settings_put(struct xlb_settings *s)
{
	s->abi = XLB_ABI;
	s->ring_size = RING_SIZE;
	memcpy(s->hash_key, "the bench's key.", sizeof(s->hash_key));
	hash_expand(s->hash_key, &s->hash);
	s->source4 = htonl(0x0aff0000);
	s->source4_mask = htonl(0x0000ffff);
	inet_pton(AF_INET6, "2001:db8:ff::", s->source6);
	memset(s->source6_mask + 8, 0xff, 8);
}

static void
service_put(struct xlb_tables *t, uint32_t vip, uint16_t port, uint32_t number,
    uint32_t ring, uint32_t flags)
{
	uint64_t key = XLB_SERVICE_KEY(vip, IPPROTO_TCP, port);
	uint32_t at = xlb_service_hash(key);

	while (t->service[at].key != 0)
		at = (at + 1) % XLB_TABLE_ROWS;
	t->service[at].key = key;
	t->service[at].word = XLB_SERVICE_WORD(number, ring, ring, flags);
}

static void
vip_put(struct xlb_tables *t, const char *first, uint32_t add, uint32_t id)
{
	__be32 addr[4];
	uint32_t hash, at;

	address_put(first, add, (uint8_t *)addr);
	hash = at = xlb_vip_hash(addr);
	while (t->vip[at].id != 0)
		at = (at + 1) % XLB_TABLE_ROWS;
	memcpy(t->vip[at].addr, addr, sizeof(addr));
	t->vip[at].id = id;
	t->vip_filter[hash / 64] |= 1ULL << hash % 64;
}

/* As xlbd does, when the VIPs are there. */
static void
sources_put(struct xlb_tables *t)
{
	__be32 word;
	uint32_t at, i;

	for (at = 0; at < XLB_SOURCES; at++)
		if (source_is_plain(at, &t->settings))
			t->plain_source[at / 8] |= (__u8)(1U << at % 8);
	for (i = 0; i < XLB_TABLE_ROWS; i++) {
		memcpy(&word, &t->vip[i].addr[3], sizeof(word));
		at = xlb_source_at(word);
		if (t->vip[i].addr[2] == htonl(0xffff))
			t->plain_source[at / 8] &= (__u8)~(1U << at % 8);
	}
}

static void
services_put(struct xlb_tables *t)
{
	static const uint16_t port[] = { 80, BENCH_PORT, BENCH_PORT_GUE,
	    BENCH_PORT_NAT };
	static const char *const first[] = { BENCH_VIP4, BENCH_VIP6 };
	uint32_t family, i, p, id = 0, number = 0;

	for (family = 0; family < 2; family++)
		for (i = 0; i < VIPS; i++) {
			vip_put(t, first[family], i, ++id);
			for (p = 0; p < sizeof(port) / sizeof(port[0]); p++)
				service_put(t, id, port[p], ++number, family,
				    port[p] == BENCH_PORT_GUE ?
				    XLB_FORWARD_GUE :
				    port[p] == BENCH_PORT_NAT ?
				    XLB_FORWARD_NAT | XLB_SERVICE_NAT :
				    XLB_FORWARD_IPIP);
		}
}

static void
backends_put(struct xlb_backend *b, struct xlb_nexthop *hop)
{
	static const char *const first[] = { "10.0.1.1", "2001:db8:1::1" };
	static const char *const own[] = { "10.0.0.1", "2001:db8:1::ff01" };
	uint32_t family, i, n;

	for (family = 0; family < 2; family++) {
		for (i = 0; i < BACKENDS; i++) {
			n = 1 + family * BACKENDS + i;
			address_put(first[family], i, b[n].addr);
			b[n].nexthop = 1 + family * HOPS + i % HOPS;
		}
		for (i = 0; i < HOPS; i++) {
			n = 1 + family * HOPS + i;
			hop[n] = (struct xlb_nexthop){
				.src_mac = { 2, 0, 0, 0, 0, 1 }, .mtu = 1500,
				.ifindex = 1, .flags = XLB_NEXTHOP_VALID };
			memcpy(&hop[n].mac_vlan,
			    (uint8_t[8]){ 2, 0, 0, 0, 1, (uint8_t)n }, 8);
			address_put(own[family], 0, hop[n].src);
		}
	}
}

/* The address that NAT sends from, and the way back to the clients. */
static void
own_put(struct xlb_tables *t)
{
	struct xlb_nexthop *door = &t->door[0];
	uint32_t n;

	address_put(BENCH_NODE4, 0, t->source[0].addr);
	vip_put(t, BENCH_NODE4, 0, XLB_VIP_OWN | 60000);
	for (n = 1; n <= BACKENDS; n++)
		t->backend[n].sources = 1;
	*door = (struct xlb_nexthop){ .src_mac = { 2, 0, 0, 0, 0, 1 },
	    .mtu = 1500, .ifindex = 1, .flags = XLB_NEXTHOP_VALID };
	for (n = 0; n < 2; n++)		/* members that keep their flows */
		memset(rings[n]->member, 0xff, sizeof(rings[n]->member));
}

static int
ring_new(uint32_t number)
{
	size_t len;

	rings[number] = engine_ring(number, &len);
	if (rings[number] == NULL)
		return -1;
	rings[number]->size = RING_SIZE;
	return 0;
}

static void
ring_put(uint32_t number, bool lookup)
{
	struct xlb_ring *ring = rings[number];
	uint32_t i;

	/* consecutive slots are different backends, as in a real ring */
	for (i = 0; i < RING_SIZE; i++)
		ring->slot[i] = XLB_SLOT(1 + number * BACKENDS +
		    (i * 2654435761U >> 7) % BACKENDS, lookup, 0);
}

/* The hash of the case's flow number `id`, over its addresses and ports. */
static uint64_t
flow_hash(const struct xlb_hash *hash, struct bench_frame *f, uint32_t id)
{
	uint8_t *frame = (uint8_t *)f->word, *ip = frame + ETH_HLEN;
	uint32_t address = htonl(bench_address(id)), ports;
	uint16_t port = htons(bench_port(id));
	uint32_t a[8];

	memcpy(frame + f->address, &address, sizeof(address));
	memcpy(frame + f->ports, &port, sizeof(port));
	memcpy(&ports, frame + f->ports, sizeof(ports));
	if (ip[0] >> 4 == 6) {
		memcpy(a, ip + 8, 32);
		return hash_flow6(hash, a, a + 4, ports, IPPROTO_TCP);
	}
	memcpy(a, ip + 12, 8);
	return hash_flow4(hash, a[0], a[1], ports, IPPROTO_TCP);
}

/* As the program does: in the last way that is free. Where a set is full the flow
 * has no entry. */
static void
entry_put(__u64 *entry, uint64_t value)
{
	size_t way = XLB_FLOW_WAYS;

	while (way > 0 && entry[way - 1] != 0)
		way--;
	if (way > 0)
		entry[way - 1] = value;
}

static void
flows_put(const struct xlb_settings *s, const struct bench_case *c,
    uint32_t flows)
{
	uint32_t id, select, word, mask = (uint32_t)(table_len /
	    sizeof(*table)) - 1;
	struct bench_frame f = { 0 };
	struct timespec now;
	uint64_t hash, tick;
	size_t ring;

	c->build(&f);
	ring = ((const uint8_t *)f.word)[ETH_HLEN] >> 4 == 6;
	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	tick = ((uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec) >>
	    XLB_FLOW_TICK_SHIFT;
	for (id = 0; id < flows; id++) {
		hash = flow_hash(&s->hash, &f, id);
		select = hash_select(hash);
		word = rings[ring]->slot[hash_slot(select, RING_SIZE)];
		entry_put(table[xlb_flow_row(hash, mask)].entry,
		    XLB_FLOW(xlb_flow_tag(select, hash), XLB_SLOT_CUR(word),
		    XLB_FLOW_CONFIRMED, tick));
	}
}

/* The first free place for a row with this hash; NULL: it has none. */
static struct xlb_nat *
nat_place(uint64_t hash, uint32_t *step)
{
	uint32_t mask = (uint32_t)(nat_len / sizeof(*nat)) - 1, at;

	for (*step = 0; *step < XLB_NAT_PROBE; ++*step) {
		at = xlb_nat_at((uint32_t)hash, *step, mask);
		if (nat[at].word == 0)
			return &nat[at];
	}
	return NULL;
}

static void
nat_row_put(const struct xlb_nat *from, uint64_t hash, uint32_t kind,
    uint64_t tick, struct xlb_nat **out)
{
	uint32_t step;
	struct xlb_nat *row = nat_place(hash, &step);

	if (row != NULL) {
		*row = *from;
		row->word = (hash & 0xffffffff00000000ULL) | kind |
		    XLB_NAT_REPLIED | XLB_NAT_ESTABLISHED |
		    step << XLB_NAT_STEP_SHIFT | (tick & XLB_NAT_TICK);
	}
	*out = row;
}

/* Both rows of each flow, established. */
static void
nat_put(const struct xlb_tables *t, uint32_t flows)
{
	const struct xlb_hash *hash = &t->settings.hash;
	struct xlb_nat from = { .door = 0 }, *row, *back;
	struct timespec now;
	uint32_t id, ip[2], vip;
	uint64_t tick;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	tick = ((uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec) >>
	    XLB_FLOW_TICK_SHIFT;
	address_put(BENCH_VIP4, 0, from.vip);
	memcpy(&vip, from.vip + 12, sizeof(vip));
	memcpy(&from.mac_vlan, (uint8_t[8]){ 2, 0, 0, 0, 0, 2 }, 8);
	for (id = 0; id < flows; id++) {
		address_put("0.0.0.0", bench_address(id), from.client);
		from.backend = (uint16_t)(1 + id % BENCH_NAT_BACKENDS);
		from.ports = htonl((uint32_t)bench_port(id) << 16 |
		    BENCH_PORT_NAT);
		from.back = htonl((uint32_t)BENCH_PORT_NAT << 16 |
		    bench_nat_port(id));
		memcpy(&ip[0], from.client + 12, 4);
		nat_row_put(&from, hash_flow4(hash, ip[0], vip, from.ports,
		    IPPROTO_TCP), XLB_NAT_FORWARD, tick, &row);
		memcpy(&ip[0], t->backend[from.backend].addr + 12, 4);
		memcpy(&ip[1], t->source[0].addr + 12, 4);
		nat_row_put(&from, hash_flow4(hash, ip[0], ip[1], from.back,
		    IPPROTO_TCP), XLB_NAT_REPLY, tick, &back);
		if (row == NULL || back == NULL)
			continue;
		row->peer = (uint32_t)(back - nat);
		back->peer = (uint32_t)(row - nat);
	}
}

uint32_t
tables_budget(void)
{
	return tables->settings.flow_budget;
}

uint64_t
tables_confirmed(void)
{
	size_t i, way, n = 0;
	uint64_t entry;

	for (i = 0; i < table_len / sizeof(*table); i++)
		for (way = 0; way < XLB_FLOW_WAYS; way++) {
			entry = table[i].entry[way];
			n += (entry & XLB_FLOW_CONFIRMED) != 0 &&
			    (entry & XLB_FLOW_CLOSING) == 0;
		}
	return n;
}

/* Four entries for a flow, as the manual says. */
static uint32_t
entries_for(uint32_t flows)
{
	uint32_t n = FLOW_ENTRIES;

	while (n / 4 < flows)
		n *= 2;
	return n;
}

static int
tables_load(const struct engine_config *ec, uint32_t *insns)
{
	char why[256] = "";
	size_t len;

	if (engine_open(ec, insns, why, sizeof(why)) != 0) {
		fprintf(stderr, "bench: xlb: %s\n", why);
		return -1;
	}
	tables = engine_map("tables", &len);
	table = engine_map("flows", &table_len);
	nat = engine_map("nat", &nat_len);
	if (tables == NULL || table == NULL || nat == NULL || ring_new(0) != 0 ||
	    ring_new(1) != 0) {
		fprintf(stderr, "bench: xlb: a map is missing\n");
		return -1;
	}
	settings_put(&tables->settings);
	services_put(tables);
	backends_put(tables->backend, tables->nexthop);
	own_put(tables);
	sources_put(tables);
	return 0;
}

int
tables_open(const struct bench_case *c, uint32_t flows, bool frags,
    uint32_t *insns)
{
	const struct engine_config ec = { RING_SIZE, entries_for(flows),
	    c->flags & BENCH_NAT ? entries_for(flows) : 0, frags };
	size_t rows = c->flags & BENCH_NAT ? ec.nat_rows : XLB_NAT_ROWS_MIN;
	size_t bytes = (size_t)ec.flow_entries * sizeof(table->entry[0]);
	uint32_t family;

	if (table != NULL && (table_len != bytes ||
	    nat_len != rows * sizeof(*nat))) {
		engine_close();
		table = NULL;
	}
	if (table == NULL && tables_load(&ec, insns) != 0)
		return -1;
	memset(table, 0, table_len);
	memset(nat, 0, nat_len);
	for (family = 0; family < 2; family++)
		ring_put(family, c->flags & BENCH_LOOKUP);
	tables->settings.flow_budget = c->flags & BENCH_BUDGET ?
	    ec.flow_entries / 256 : UINT32_MAX;
	if (c->flags & BENCH_NAT)
		nat_put(tables, flows);
	else if (!(c->flags & BENCH_BEGUN))
		flows_put(&tables->settings, c, flows);
	return engine_program();
}
