/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Internet checksums (RFC 1071): sums of 16-bit words as they lie in memory. */
#ifndef XLB_CSUM_H
#define XLB_CSUM_H

#include "pkt.h"

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct xlb_rare);
} rare SEC(".maps");

#define CSUM_PIECES (65536 / XLB_SCRATCH + 1)

static __always_inline struct xlb_rare *
rare_get(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&rare, &zero);
}

/* 0 stays 0, nothing else becomes 0. */
static __always_inline __u32
csum_fold(__u64 sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xffff) + (sum >> 16);
}

/* RFC 1624: a checksum after one of its words has become another. */
static __always_inline __u16
csum_replace(__u16 sum, __u16 was, __u16 is)
{
	return ~csum_fold((__u64)(__u16)~sum + (__u16)~was + is);
}

/* The sum of addresses, length and protocol that TCP, UDP and ICMPv6 add. */
static __always_inline __u64
csum_pseudo6(const __be32 src[4], const __be32 dst[4], __u32 len, __u8 proto)
{
	return (__u64)src[0] + src[1] + src[2] + src[3] + dst[0] + dst[1] +
	    dst[2] + dst[3] + be32(len) + be32(proto);
}

int xlb_sum(struct sys_ctx *ctx, __u32 at, __u32 len);

/* Of `len` bytes of the frame from `at` on, folded; -1: they are not there. A
 * piece at a time, by copying: they may lie in several buffers, and kernels
 * before 6.13 take no more at once. */
__noinline int
xlb_sum(struct sys_ctx *ctx, __u32 at, __u32 len)
{
	struct xlb_rare *r = rare_get();
	__u32 i, sum = 0;

	if (r == NULL)
		return -1;
	for (i = 0; i < CSUM_PIECES && len >= XLB_SCRATCH; i++) {
		if (bpf_xdp_load_bytes(ctx, at, r->bytes, XLB_SCRATCH) != 0)
			return -1;
		sum = bpf_csum_diff(NULL, 0, (__be32 *)r->bytes, XLB_SCRATCH,
		    sum);
		at += XLB_SCRATCH;
		len -= XLB_SCRATCH;
	}
	if (len == 0)
		return csum_fold(sum);
	len--;
	SYS_OPAQUE(len);
	len = (len & (XLB_SCRATCH - 1)) + 1;
	if (bpf_xdp_load_bytes(ctx, at, r->bytes, len) != 0)
		return -1;
	put32(r->bytes + len, 0);
	return csum_fold((__u32)bpf_csum_diff(NULL, 0, (__be32 *)r->bytes,
	    (len + 3) & ~3U, sum));
}

#endif
