/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * xlb's maps as on a node in use: 200 VIPs with four services each, 100
 * backends for each family, behind four next hops.
 */
#include "bench.h"

#include <arpa/inet.h>
#include <linux/types.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "../prog/engine.h"
#include "core/hash_key.h"
#include "xlb_abi.h"

#define RING_SIZE 65537
#define FLOW_ENTRIES 1048576
#define VIPS 100		/* of each family */
#define BACKENDS 100		/* of each family */
#define HOPS 4			/* of each family */

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
	s->flow_budget = UINT32_MAX;
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

static void
services_put(struct xlb_tables *t)
{
	static const uint16_t port[] = { 80, BENCH_PORT, BENCH_PORT_GUE,
	    8443 };
	static const char *const first[] = { BENCH_VIP4, BENCH_VIP6 };
	uint32_t family, i, p, id = 0, number = 0;

	for (family = 0; family < 2; family++)
		for (i = 0; i < VIPS; i++) {
			vip_put(t, first[family], i, ++id);
			for (p = 0; p < sizeof(port) / sizeof(port[0]); p++)
				service_put(t, id, port[p], ++number, family,
				    port[p] == BENCH_PORT_GUE ?
				    XLB_FORWARD_GUE : XLB_FORWARD_IPIP);
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

static int
ring_put(uint32_t number)
{
	size_t len, i;
	struct xlb_ring *ring = engine_ring(number, &len);

	if (ring == NULL)
		return -1;
	ring->size = RING_SIZE;
	/* consecutive slots are different backends, as in a real ring */
	for (i = 0; i < RING_SIZE; i++)
		ring->slot[i] = XLB_SLOT(1 + number * BACKENDS +
		    (uint32_t)(i * 2654435761U >> 7) % BACKENDS, 0, 0);
	return 0;
}

int
tables_open(bool frags, uint32_t *insns)
{
	const struct engine_config c = { RING_SIZE, FLOW_ENTRIES, frags };
	char why[256] = "";
	struct xlb_tables *tables;
	size_t len;

	if (engine_open(&c, insns, why, sizeof(why)) != 0) {
		fprintf(stderr, "bench: xlb: %s\n", why);
		return -1;
	}
	tables = engine_map("tables", &len);
	if (tables == NULL || ring_put(0) != 0 || ring_put(1) != 0) {
		fprintf(stderr, "bench: xlb: a map is missing\n");
		return -1;
	}
	settings_put(&tables->settings);
	services_put(tables);
	backends_put(tables->backend, tables->nexthop);
	return engine_program();
}
