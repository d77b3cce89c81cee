/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where packets come from and where they end, while cost.c counts instructions:
 * one that makes them, one for the other end of the link that drops what a node
 * sent on, and those that drop in a node's place.
 */
#include <linux/bpf.h>
#include <linux/in.h>
#include <linux/pkt_cls.h>
#include <stdbool.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "../bench/frame.h"
#include "cost.h"

struct cost_template template;
struct cost_seen seen;
__u8 home[COST_FLOWS];	/* backend of each flow, from 1 */

struct tunnelled {
	struct ethhdr eth;
	struct iphdr outer, inner;
	struct tcphdr tcp;
	__u8 option[12];
} __attribute__((packed));

int flood(struct xdp_md *ctx);
int drop(struct xdp_md *ctx);
int drop_skb(struct __sk_buff *skb);
int sink(struct xdp_md *ctx);
int look(struct xdp_md *ctx);

static __u16
fold(__u32 sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	return (__u16)(sum + (sum >> 16));
}

static __u32
halves(__u32 v)
{
	return (v & 0xffff) + (v >> 16);
}

static __u16
header_sum(const void *ip)
{
	const __u16 *word = ip;
	__u32 sum = 0, i;

#pragma unroll
	for (i = 0; i < sizeof(struct iphdr) / 2; i++)
		sum += word[i];
	return fold(sum);
}

static bool
same_mac(const __u8 *a, const __u8 *b)
{
	__u8 differ = 0;
	int i;

#pragma unroll
	for (i = 0; i < ETH_ALEN; i++)
		differ |= a[i] ^ b[i];
	return differ == 0;
}

SEC("xdp")
int
flood(struct xdp_md *ctx)
{
	struct cost_frame *f = (void *)(long)ctx->data;
	__u32 flow = (__u32)seen.sent % template.flows;
	__u32 address = bpf_htonl(bench_address(flow));
	__u32 seq = bpf_htonl(flow);
	__u16 port = bpf_htons(bench_port(flow));

	if ((void *)(f + 1) > (void *)(long)ctx->data_end)
		return XDP_ABORTED;
	__builtin_memcpy(f, &template.frame, sizeof(*f));
	f->ip.saddr = address;
	f->tcp.source = port;
	f->tcp.seq = seq;
	f->ip.check = ~fold(template.ip_sum + halves(address));
	f->tcp.check = ~fold(template.tcp_sum + halves(address) +
	    halves(seq) + port);
	seen.sent++;
	return (int)bpf_redirect(template.device, 0);
}

SEC("xdp")
int
drop(struct xdp_md *ctx)
{
	(void)ctx;
	seen.dropped++;
	return XDP_DROP;
}

SEC("tc")
int
drop_skb(struct __sk_buff *skb)
{
	(void)skb;
	seen.dropped++;
	return TC_ACT_SHOT;
}

SEC("xdp")
int
sink(struct xdp_md *ctx)
{
	struct tunnelled *t = (void *)(long)ctx->data;

	if ((void *)(t + 1) > (void *)(long)ctx->data_end ||
	    t->eth.h_proto != bpf_htons(ETH_P_IP) ||
	    t->outer.protocol != IPPROTO_IPIP)
		return XDP_PASS;
	seen.tunnelled++;
	return XDP_DROP;
}

/* What is wrong with a packet that has to be one of ours in a tunnel: bits. */
static __u64
faults(const struct tunnelled *t, __u32 size)
{
	const struct cost_frame *f = &template.frame;
	__u32 flow = bpf_ntohl(t->tcp.seq) & (COST_FLOWS - 1);
	__u32 backend = bpf_ntohl(t->outer.daddr) - bpf_ntohl(template.backend);
	__u64 why = 0;

	if (size != sizeof(*t) ||
	    bpf_ntohs(t->outer.tot_len) != sizeof(*t) - sizeof(t->eth))
		why |= COST_SHORT;
	if (t->outer.ihl != 5 || t->outer.saddr != template.node ||
	    t->outer.ttl == 0 || header_sum(&t->outer) != 0xffff)
		why |= COST_OUTER;
	if (t->inner.daddr != f->ip.daddr || t->inner.ihl != 5 ||
	    t->inner.protocol != IPPROTO_TCP ||
	    t->inner.tot_len != f->ip.tot_len ||
	    header_sum(&t->inner) != 0xffff || t->tcp.dest != f->tcp.dest)
		why |= COST_INNER;
	if (bpf_ntohl(t->tcp.seq) >= template.flows ||
	    t->inner.saddr != bpf_htonl(bench_address(flow)) ||
	    t->tcp.source != bpf_htons(bench_port(flow)))
		why |= COST_FLOW;
	if (!same_mac(t->eth.h_dest, f->eth.h_source))
		why |= COST_MAC;
	if (backend >= COST_BACKENDS)
		return why | COST_BACKEND;
	if (home[flow] != 0 && home[flow] != backend + 1)
		why |= COST_MOVED;
	home[flow] = (__u8)(backend + 1);
	seen.backend[backend]++;
	return why;
}

SEC("xdp")
int
look(struct xdp_md *ctx)
{
	struct tunnelled *t = (void *)(long)ctx->data;
	__u64 why;
	int verdict = sink(ctx);

	if (verdict != XDP_DROP || (void *)(t + 1) > (void *)(long)ctx->data_end)
		return verdict;
	why = faults(t, (__u32)(ctx->data_end - ctx->data));
	seen.why |= why;
	seen.wrong += why != 0;
	return verdict;
}

char LICENSE[] SEC("license") = "GPL";
