/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The bench's driver, which takes the place of a network card, and the floor:
 * what any program that encapsulates has to do at least.
 */
#include <linux/bpf.h>
#include <linux/types.h>

#include <bpf/bpf_helpers.h>

#include "frame.h"

/* Set before it is loaded. */
const volatile struct bench_frame frame = { 0 };
const volatile __u32 flows = 1;
const volatile __u32 call = 0;

__u64 count;
__u32 rounds, in_round;

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
} next SEC(".maps");

static __always_inline __u32
swap32(__u32 v)
{
	return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ?
	    __builtin_bswap32(v) : v;
}

static __always_inline __u16
swap16(__u16 v)
{
	return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ?
	    __builtin_bswap16(v) : v;
}

/* Successive packets belong to flows far apart. */
static __always_inline __u32
flow_next(void)
{
	return (__u64)((__u32)count * 2654435761U) * flows >> 32;
}

/* A first fragment, then a later one, of one datagram. */
static __always_inline __u32
fragment_next(__u8 *at)
{
	*(__u16 *)at = swap16(count & 1 ? 0x0010 : 0x2000);
	return (__u64)((__u32)(count / 2) * 2654435761U) * flows >> 32;
}

/* SYN, ACK, PSH, 3 ACK, FIN, ACK: a byte each, the first one lowest. */
#define MIX 0x1011101010181002ULL

/*
 * All flows have a packet in each round; each is at another place of its life.
 */
static __always_inline __u32
mix_next(__u8 *flag)
{
	__u32 flow = flow_next(), at;

	if (++in_round >= flows) {
		in_round = 0;
		rounds++;
	}
	at = rounds + (flow * 0x9e3779b1U >> 29);
	*flag = MIX >> (at & 7) * 8;
	return flow + (at >> 3) * flows;
}

int driver(struct xdp_md *ctx);
int bare(struct xdp_md *ctx);

SEC("xdp")
int
driver(struct xdp_md *ctx)
{
	int grown = (int)(ctx->data_end - ctx->data) - BENCH_FRAME;
	__u32 flow, i, address = frame.address, ports = frame.ports;
	__u32 fragment = frame.fragment, flags = frame.flags;
	__u8 *data, *end;

	if (grown != 0 && bpf_xdp_adjust_head(ctx, grown) != 0)
		return XDP_ABORTED;
	data = (__u8 *)(long)ctx->data;
	end = (__u8 *)(long)ctx->data_end;
	if (data + BENCH_FRAME > end || address > BENCH_FRAME - 4 ||
	    ports > BENCH_FRAME - 4 || fragment > BENCH_FRAME - 2 ||
	    flags > BENCH_FRAME - 1)
		return XDP_ABORTED;
#pragma unroll
	for (i = 0; i < BENCH_FRAME / 8; i++)
		((__u64 *)data)[i] = frame.word[i];
	if (frame.kind == BENCH_MIX)
		flow = mix_next(data + flags);
	else if (frame.kind == BENCH_FRESH)
		flow = flows + (__u32)count;
	else if (fragment)
		flow = fragment_next(data + fragment);
	else
		flow = flow_next();
	if (frame.kind == BENCH_REPLY) {
		*(__u32 *)(data + address) = swap32(bench_backend(flow));
		*(__u16 *)(data + ports) = swap16(bench_nat_port(flow));
	} else {
		*(__u32 *)(data + address) = swap32(bench_address(flow));
		*(__u16 *)(data + ports) = swap16(bench_port(flow));
	}
	/* This also empties the store buffer: a frame that came by DMA is in
	 * the cache, and may be read in words of any size at no extra cost. */
	__sync_fetch_and_add(&count, 1);
	if (call)
		bpf_tail_call(ctx, &next, 0);
	return XDP_DROP;
}

SEC("xdp")
int
bare(struct xdp_md *ctx)
{
	__u32 word[5], len, tos;
	__u64 sum;
	__u8 *data = (__u8 *)(long)ctx->data, *end = (__u8 *)(long)ctx->data_end;

	if (data + 34 > end)
		return XDP_DROP;
	len = swap16(*(__u16 *)(data + 16));
	tos = data[15];
	if (bpf_xdp_adjust_head(ctx, -20) != 0)
		return XDP_DROP;
	data = (__u8 *)(long)ctx->data;
	end = (__u8 *)(long)ctx->data_end;
	if (data + 34 > end)
		return XDP_DROP;
	*(__u64 *)data = 0x0002030405060702;
	*(__u32 *)(data + 8) = 0x01020304;
	*(__u16 *)(data + 12) = swap16(0x0800);
	word[0] = swap32(0x45U << 24 | tos << 16 | (len + 20));
	word[1] = swap32(0x4000);
	word[2] = swap32(64U << 24 | 4U << 16);
	word[3] = swap32(0x0a000001);
	word[4] = swap32(0x0a000002);
	sum = (__u64)word[0] + word[1] + word[2] + word[3] + word[4];
	sum = (sum & 0xffff) + (sum >> 16 & 0xffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum += sum >> 16;
	*(__u32 *)(data + 14) = word[0];
	*(__u32 *)(data + 18) = word[1];
	*(__u32 *)(data + 22) = word[2];
	*(__u16 *)(data + 24) = ~sum;
	*(__u32 *)(data + 26) = word[3];
	*(__u32 *)(data + 30) = word[4];
	return XDP_TX;
}

char LICENSE[] SEC("license") = "GPL";
