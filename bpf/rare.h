/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What packets need that are not ordinary: a CPU's scratch, and sums of whole
 * frames. */
#ifndef XLB_RARE_H
#define XLB_RARE_H

#include "csum.h"

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
