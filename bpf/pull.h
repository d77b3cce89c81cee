/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Frames of several buffers whose headers do not lie in the first one: a driver
 * that splits headers from data may leave little there. All of the frame moves
 * forward into the headroom, so its first bytes come to lie in one buffer, and
 * what follows is the same for all. Costs a copy of the frame; rare.
 */
#ifndef XLB_PULL_H
#define XLB_PULL_H

#include "parse.h"
#include "rare.h"

#define PULL_BY 160U		/* what it leaves of the headroom, 56 bytes, takes
				 * any outer header */
#define PULL_ENOUGH 256U	/* bytes in the first buffer */
#define PULL_ADDRESSES (ETH_HLEN + PARSE_TAG_LEN + PARSE_IP6_LEN)
#define PULL_PIECES (65536 / XLB_SCRATCH + 1)

/* So many bytes of the frame from `at + PULL_BY` on move to `at`. */
#define PULL_MOVE(ctx, r, at, len) \
	(bpf_xdp_load_bytes(ctx, (at) + PULL_BY, (r)->bytes, len) != 0 || \
	    bpf_xdp_store_bytes(ctx, at, (r)->bytes, len) != 0)

int xlb_pull(struct sys_ctx *ctx);

/* -1: the frame is spoiled. */
__noinline int
xlb_pull(struct sys_ctx *ctx)
{
	__u32 left = bpf_xdp_get_buff_len(ctx), at = 0, i;
	struct xlb_rare *r = rare_get();

	if (r == NULL || left < ETH_HLEN ||
	    bpf_xdp_adjust_head(ctx, -(int)PULL_BY) != 0)
		return 0;
	for (i = 0; i < PULL_PIECES && left >= XLB_SCRATCH; i++) {
		if (PULL_MOVE(ctx, r, at, XLB_SCRATCH))
			return -1;
		at += XLB_SCRATCH;
		left -= XLB_SCRATCH;
	}
	if (left > 0) {
		left--;
		SYS_OPAQUE(left);
		left = (left & (XLB_SCRATCH - 1)) + 1;
		if (PULL_MOVE(ctx, r, at, left))
			return -1;
	}
	return bpf_xdp_adjust_tail(ctx, -(int)PULL_BY);
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
