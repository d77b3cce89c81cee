/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One packet on its way through the stages. A stage returns PKT_NEXT, or the
 * reason in which the packet ends.
 */
#ifndef XLB_PKT_H
#define XLB_PKT_H

#include "sys.h"
#include "xlb_abi.h"

#define PKT_NEXT XLB_REASON_COUNT
/* Not an ordinary packet: all that it takes is in slow.h, out of the way. */
#define PKT_SLOW (XLB_REASON_COUNT + 1)
#define PKT_ELSE (XLB_REASON_COUNT + 4)	/* not_vip, as most passes end */
#define PKT_NAT (XLB_REASON_COUNT + 5)	/* of a service that is NAT's */
#define PKT_OWN (XLB_REASON_COUNT + 6)	/* to an address that NAT sends from */
#define PKT_OTHER (XLB_REASON_COUNT + 7)	/* of a service that is not IPIP's */
#define PKT_DONE (XLB_REASON_COUNT + 3)	/* counted; p->action */

enum verdict { VERDICT_SENT, VERDICT_PASS, VERDICT_DROP };

/* All of one kind as bits. */
#define PKT_REASON_PASS_BIT(NAME, name, kind) \
	| (VERDICT_##kind == VERDICT_PASS ? 1U << XLB_REASON_##NAME : 0)
#define PKT_REASON_SENT_BIT(NAME, name, kind) \
	| (VERDICT_##kind == VERDICT_SENT ? 1U << XLB_REASON_##NAME : 0)

static __always_inline enum verdict
reason_verdict(enum xlb_reason reason)
{
	if ((0U XLB_REASONS(PKT_REASON_SENT_BIT)) >> reason & 1)
		return VERDICT_SENT;
	if ((0U XLB_REASONS(PKT_REASON_PASS_BIT)) >> reason & 1)
		return VERDICT_PASS;
	return VERDICT_DROP;
}

/*
 * How a stage ends a packet. The empty statement gives each ending a block of
 * its own: without it clang 14 prepares the reason ahead of every test, two or
 * three instructions each on the common path.
 */
#define PKT_END(reason) \
	do { \
		__asm__ volatile("" : : "i"(reason)); \
		return (reason); \
	} while (0)

#define PKT_STAGE(call) \
	do { \
		enum xlb_reason stage_reason_ = (call); \
\
		if (stage_reason_ != PKT_NEXT) \
			return stage_reason_; \
	} while (0)

/* The first word of an IPv4 header without options, in host order. More length
 * is added to it: what is sent is no longer than an MTU, 16 bits. */
#define PKT_FIRST(tos, len) (0x45U << 24 | (__u32)(tos) << 16 | (len))
#define PKT_TOS(first) ((first) >> 16 & 0xff)	/* DSCP and ECN */

struct pkt {
	struct sys_ctx *ctx;
	__u8 *pos;		/* the cursor: first byte not yet pulled */
	__u8 *end;		/* of the first buffer */

	/* link */
	__u32 link_len;		/* bytes before the IP header */
	__u32 ethertype;	/* wire, 16 bits; of what follows the tag */

	/* network */
	__u8 *ip;
	__u32 len;		/* from the IP header on, by its own word */
	__u32 frame_len;	/* the same by the frame: padding included */
	__be32 src[4], dst[4];	/* wire; IPv4 as ::ffff:a.b.c.d */
	__u32 first;		/* PKT_FIRST(): what IPv4 would begin with */
	__u8 proto;

	/* transport */
	__u32 l4_len;		/* by the IP header's word */
	__be32 ports;		/* both, as on the wire */
	__u8 tcp_flags;		/* 0 for UDP */

	/* what it matched */
	const struct xlb_tables *tables;
	const struct xlb_vip *vip;	/* its row */
	__u64 service;		/* XLB_SERVICE_WORD() */
	__u64 flow;		/* hash of the 5-tuple */
	__u32 hash;		/* selects the slot */
	__u32 backend;		/* number */
	const struct xlb_backend *to;
	const struct xlb_nexthop *hop;
	int action;		/* what a sent packet returns to the driver */
};

/* The next `len` bytes, or NULL if the first buffer ends before. */
static __always_inline __u8 *
pkt_pull(struct pkt *p, __u32 len)
{
	__u8 *at = p->pos;

	if (at + len > p->end)
		return NULL;
	SYS_NEVER(at == NULL);
	p->pos = at + len;
	return at;
}

#endif
