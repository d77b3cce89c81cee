/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Packets of the model: TCP, to a node's program and out of it. */
#include "node.h"

#include <linux/bpf.h>
#include <string.h>

#define HEADROOM 64
#define ETH 14
#define IP 20
#define IP6 40
#define TCP 20
#define DATA 8

static const uint8_t vip[4] = { 203, 0, 113, 10 };
static const uint8_t vip6[16] = { 0x20, 1, 0x0d, 0xb8, 0, 5, [15] = 0x10 };

static void
put16(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static void
put32(uint8_t *p, uint32_t v)
{
	put16(p, (uint16_t)(v >> 16));
	put16(p + 2, (uint16_t)v);
}

static size_t
ip4_make(uint8_t *ip, const struct tuple *t, size_t len)
{
	ip[0] = 0x45;
	put16(ip + 2, (uint16_t)(IP + len));
	ip[8] = 64;
	ip[9] = 6;
	put32(ip + 12, t->client);
	memcpy(ip + 16, vip, sizeof(vip));
	return IP;
}

/* The upper halves of a network's addresses are equal. */
static size_t
ip6_make(uint8_t *ip, const struct tuple *t, size_t len)
{
	ip[0] = 0x60;
	put16(ip + 4, (uint16_t)len);
	ip[6] = 6;
	ip[7] = 64;
	memcpy(ip + 8, vip6, 4);
	ip[13] = 12;
	put32(ip + 20, t->client);
	memcpy(ip + 24, vip6, sizeof(vip6));
	return IP6;
}

static size_t
frame_make(uint8_t *f, const struct tuple *t, unsigned flags, bool data)
{
	size_t len = TCP + (data ? DATA : 0), ip;
	uint8_t *tcp;

	memset(f, 0, ETH + IP6 + len);
	memcpy(f, "\x02\0\0\0\0\2\x02\0\0\0\0\1\x08", 13);
	if (t->v6)
		put16(f + 12, 0x86dd);
	ip = t->v6 ? ip6_make(f + ETH, t, len) : ip4_make(f + ETH, t, len);
	tcp = f + ETH + ip;
	put16(tcp, t->port);
	put16(tcp + 2, (uint16_t)(SITE_PORT + t->service));
	tcp[12] = TCP / 4 << 4;
	tcp[13] = (uint8_t)flags;
	return ETH + ip + len;
}

int
node_packet(struct node *n, const struct tuple *t, unsigned flags, bool data)
{
	uint8_t buf[KERNEL_FRAME_MAX], *frame = buf + HEADROOM;
	size_t len = frame_make(frame, t, flags, data);

	if (kernel_run(n->k, buf, &frame, &len) != XDP_TX ||
	    len < ETH + IP + IP + TCP || frame[ETH + 9] != (t->v6 ? 41 : 4))
		return NODE_DROPPED;
	return site_backend(frame + ETH + 16);
}

void
node_hash(struct node *n, const struct tuple *t, bool source,
    uint32_t *select, uint64_t *flow)
{
	uint8_t frame[ETH + IP6 + TCP];

	frame_make(frame, t, TCP_SYN, false);
	kernel_hash(n->k, frame, source, select, flow);
}

uint64_t
node_entry(struct node *n, uint32_t select, uint64_t flow)
{
	uint32_t sets, i, tag = xlb_flow_tag(select, flow);
	const struct xlb_flow_set *set = kernel_flows(n->k, &sets);

	set += xlb_flow_row(flow, sets - 1);
	for (i = 0; i < XLB_FLOW_WAYS; i++)
		if (XLB_FLOW_TAG(set->entry[i]) == tag &&
		    XLB_FLOW_BACKEND(set->entry[i]) != 0)
			return set->entry[i];
	return 0;
}

int
node_backend(struct node *n, uint32_t number)
{
	const struct xlb_tables *t = kernel_tables(n->k);

	return site_backend(t->backend[number % XLB_BACKENDS].addr + 12);
}
