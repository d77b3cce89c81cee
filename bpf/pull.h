/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Frames of several buffers whose headers do not lie in the first one: a driver
 * that splits headers from data may leave little there. All of the frame moves
 * forward into the headroom, so its first bytes come to lie in one buffer, and
 * what follows is the same for all. Costs a copy of the frame; rare.
 */
#ifndef XLB_PULL_H
#define XLB_PULL_H

#include "csum.h"
#include "parse.h"

#define PULL_BY 160U		/* what it leaves of the headroom, 56 bytes, takes
				 * any outer header */
#define PULL_ENOUGH 256U	/* bytes in the first buffer */
#define PULL_ADDRESSES (ETH_HLEN + PARSE_TAG_LEN + PARSE_IP6_LEN)
#define PULL_PIECES (65536 / XLB_SCRATCH + 1)

int xlb_pull(struct sys_ctx *ctx);

/* -1: the frame is spoiled. */
__noinline int
xlb_pull(struct sys_ctx *ctx)
{
	__u32 left = bpf_xdp_get_buff_len(ctx), at = 0, i, n;
	struct xlb_rare *r = rare_get();

	if (r == NULL || left < ETH_HLEN ||
	    bpf_xdp_adjust_head(ctx, -(int)PULL_BY) != 0)
		return 0;
	for (i = 0; i < PULL_PIECES && left > 0; i++) {
		n = left < XLB_SCRATCH ? left : XLB_SCRATCH;
		SYS_OPAQUE(n);
		if (n < 1 || n > XLB_SCRATCH ||
		    bpf_xdp_load_bytes(ctx, at + PULL_BY, r->bytes, n) != 0 ||
		    bpf_xdp_store_bytes(ctx, at, r->bytes, n) != 0)
			return -1;
		at += n;
		left -= n;
	}
	return left > 0 ? -1 : (int)bpf_xdp_adjust_tail(ctx, -(int)PULL_BY);
}

/* True: there is more of the frame than the first buffer, which has less than
 * `enough`. */
static __always_inline int
pull_has(struct sys_ctx *ctx, __u32 enough)
{
	__u32 have = sys_end(ctx) - sys_data(ctx);

	return have < enough && bpf_xdp_get_buff_len(ctx) > have;
}

/* How the packet ended may be due to that. */
static __always_inline int
pull_helps(struct sys_ctx *ctx, enum xlb_reason reason)
{
	if (!frags)
		return 0;
	return (reason == XLB_REASON_NOT_VIP && pull_has(ctx, PULL_ADDRESSES)) ||
	    (reason == XLB_REASON_MALFORMED && pull_has(ctx, PULL_ENOUGH));
}

#endif
