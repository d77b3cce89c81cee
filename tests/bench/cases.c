/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The bench's cases and their frames. */
#include "bench.h"

#include <arpa/inet.h>
#include <assert.h>
#include <linux/bpf.h>
#include <net/ethernet.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <netinet/tcp.h>
#include <string.h>

static size_t
link_put(uint8_t *at, uint16_t type)
{
	static const struct ether_header eth = {
		.ether_dhost = { 2, 0, 0, 0, 0, 1 },
		.ether_shost = { 2, 0, 0, 0, 0, 2 } };

	memcpy(at, &eth, sizeof(eth));
	type = htons(type);
	memcpy(at + 12, &type, sizeof(type));
	return sizeof(eth);
}

static size_t
ip4_put(struct bench_frame *f, uint8_t *frame, size_t at, const char *dst,
    uint8_t proto)
{
	struct iphdr ip = { .version = 4, .ihl = 5, .ttl = 57,
	    .protocol = proto, .frag_off = htons(IP_DF),
	    .tot_len = htons((uint16_t)(BENCH_FRAME - at)) };

	if (inet_pton(AF_INET, dst, &ip.daddr) != 1)
		assert(!"an address");
	memcpy(frame + at, &ip, sizeof(ip));
	f->address = (uint32_t)(at + offsetof(struct iphdr, saddr));
	return at + sizeof(ip);
}

static size_t
ip6_put(struct bench_frame *f, uint8_t *frame, size_t at, const char *dst,
    uint8_t proto)
{
	struct ip6_hdr ip = { .ip6_flow = htonl(6U << 28), .ip6_nxt = proto,
	    .ip6_hlim = 57,
	    .ip6_plen = htons((uint16_t)(BENCH_FRAME - at - sizeof(ip))) };

	if (inet_pton(AF_INET6, "2001:db8:9::", &ip.ip6_src) != 1 ||
	    inet_pton(AF_INET6, dst, &ip.ip6_dst) != 1)
		assert(!"an address");
	memcpy(frame + at, &ip, sizeof(ip));
	f->address =
	    (uint32_t)(at + offsetof(struct ip6_hdr, ip6_src) + 12);
	return at + sizeof(ip);
}

static void
tcp_put(struct bench_frame *f, uint8_t *frame, size_t at, uint8_t flags)
{
	struct tcphdr tcp = { .th_dport = htons(BENCH_PORT), .th_off = 5,
	    .th_seq = htonl(7), .th_ack = htonl(8), .th_flags = flags,
	    .th_win = htons(512) };

	memcpy(frame + at, &tcp, sizeof(tcp));
	f->ports = (uint32_t)at;
	f->flags = (uint32_t)(at + 13);
}

static void
frame_tcp4(struct bench_frame *f, const char *dst, uint8_t flags)
{
	uint8_t frame[BENCH_FRAME] = { 0 };
	size_t at = link_put(frame, ETHERTYPE_IP);

	at = ip4_put(f, frame, at, dst, IPPROTO_TCP);
	tcp_put(f, frame, at, flags);
	memcpy(f->word, frame, sizeof(frame));
}

static void
frame_ack(struct bench_frame *f)
{
	frame_tcp4(f, BENCH_VIP4, TH_ACK);
}

static void
frame_pass(struct bench_frame *f)
{
	frame_tcp4(f, BENCH_ELSE4, TH_ACK);
}

static void
frame_mix(struct bench_frame *f)
{
	frame_tcp4(f, BENCH_VIP4, TH_ACK);
	f->kind = BENCH_MIX;
}

static void
frame_syn(struct bench_frame *f)
{
	frame_tcp4(f, BENCH_VIP4, TH_SYN);
	f->kind = BENCH_FRESH;
}

static void
frame_ack6(struct bench_frame *f)
{
	uint8_t frame[BENCH_FRAME] = { 0 };
	size_t at = link_put(frame, ETHERTYPE_IPV6);

	at = ip6_put(f, frame, at, BENCH_VIP6, IPPROTO_TCP);
	tcp_put(f, frame, at, TH_ACK);
	memcpy(f->word, frame, sizeof(frame));
}

static void
frame_gue(struct bench_frame *f)
{
	uint16_t port = htons(BENCH_PORT_GUE);

	frame_ack(f);
	memcpy((uint8_t *)f->word + f->ports + 2, &port, sizeof(port));
}

/* From a router, about what the VIP sent: there the client is the destination,
 * and the VIP's port the first. */
static void
frame_icmp(struct bench_frame *f)
{
	static const uint8_t router[4] = { 198, 51, 100, 1 };
	uint8_t frame[BENCH_FRAME] = { 0 };
	size_t at = link_put(frame, ETHERTYPE_IP), quote;
	uint16_t port = htons(BENCH_PORT);

	at = ip4_put(f, frame, at, BENCH_VIP4, IPPROTO_ICMP);
	memcpy(frame + f->address, router, sizeof(router));
	frame[at] = 3;		/* unreachable: fragmentation needed */
	frame[at + 1] = 4;
	quote = at + 8;
	at = ip4_put(f, frame, quote, BENCH_VIP4, IPPROTO_TCP);
	memcpy(frame + quote + offsetof(struct iphdr, saddr),
	    frame + quote + offsetof(struct iphdr, daddr), 4);
	f->address = (uint32_t)(quote + offsetof(struct iphdr, daddr));
	memcpy(frame + at, &port, sizeof(port));
	f->ports = (uint32_t)at + 2;
	memcpy(f->word, frame, sizeof(frame));
}

static void
frame_frag(struct bench_frame *f)
{
	frame_ack(f);
	f->fragment = (uint32_t)(sizeof(struct ether_header) +
	    offsetof(struct iphdr, frag_off));
}

static void
frame_nat(struct bench_frame *f)
{
	uint16_t port = htons(BENCH_PORT_NAT);

	frame_ack(f);
	memcpy((uint8_t *)f->word + f->ports + 2, &port, sizeof(port));
}

/* From the backend: there our port is the destination's. */
static void
frame_nat_reply(struct bench_frame *f)
{
	uint16_t port = htons(BENCH_PORT_NAT);

	frame_tcp4(f, BENCH_NODE4, TH_ACK);
	memcpy((uint8_t *)f->word + f->ports, &port, sizeof(port));
	f->ports += 2;
	f->kind = BENCH_REPLY;
}

const struct bench_case bench_case[] = {
	{ "ack", frame_ack, XDP_TX,
	    "established TCP over IPv4, IPIP, stable ring", 0, NULL, 0 },
	{ "ack6", frame_ack6, XDP_TX,
	    "the same over IPv6, IPv6 backends", 0, NULL, 0 },
	{ "mix", frame_mix, XDP_TX,
	    "SYN, ACK, PSH, 3 ACK, FIN, ACK per flow", BENCH_BEGUN, NULL, 0 },
	{ "gue", frame_gue, XDP_TX, "ack in GUE", 0, NULL, 0 },
	{ "syn", frame_syn, XDP_TX,
	    "distinct SYNs above the insert budget, beside so many flows",
	    BENCH_BUDGET, NULL, 0 },
	{ "lookup", frame_ack, XDP_TX, "ack, every slot LOOKUP",
	    BENCH_LOOKUP, NULL, 0 },
	{ "nat", frame_nat, XDP_TX, "ack, addresses translated", BENCH_NAT,
	    NULL, 0 },
	{ "nat_reply", frame_nat_reply, XDP_TX, "what the backend sends back",
	    BENCH_NAT, NULL, 0 },
	{ "pass", frame_pass, XDP_PASS, "not for a VIP", 0, NULL, 0 },
	{ "icmp", frame_icmp, XDP_TX, "errors that quote a flow", 0, NULL, 0 },
	{ "frag", frame_frag, XDP_TX,
	    "fragments of ack, the first and a later one by turns", 0, NULL,
	    0 },
	{ "ring", .what = "xlbd builds a ring of 65537 slots, 1000 backends",
	    .run = ring_build, .most_ms = 1.5 },
	{ "health", .what = "and finds owners when 300 of them are down",
	    .run = ring_health, .most_ms = 1.0 },
};
const size_t bench_cases = sizeof(bench_case) / sizeof(bench_case[0]);

static const struct bench_budget budget[] = {
	{ "ack", 1, 2.0, false },
	{ "ack", 10000000, 2.5, false },
	{ "ack6", 0, 1.25, true },
	{ "mix", 1000000, 5.0, false },
	{ "lookup", 1000000, 8.5, false },
	{ "syn", 0, 3.0, false },
	{ "nat", 1000000, 8.0, false },
	{ "nat_reply", 1000000, 8.0, false },
	{ "pass", 0, 0.3, false },
	{ "gue", 0, 1.5, true },
	{ "icmp", 0, 3.0, true },
	{ "frag", 0, 8.0, true },
};

const struct bench_budget *
bench_budget_find(const struct bench_case *c, uint32_t flows)
{
	size_t i;

	for (i = 0; i < sizeof(budget) / sizeof(budget[0]); i++)
		if (strcmp(budget[i].name, c->name) == 0 &&
		    (budget[i].flows == 0 || budget[i].flows == flows))
			return &budget[i];
	return NULL;
}
