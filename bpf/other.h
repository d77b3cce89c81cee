/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The last stages once more, for packets that are not ordinary: a function of
 * its own, which the verifier looks at once. It is given numbers, looks the
 * rows up again, and counts. What only these packets have is here: GUE, new MAC
 * addresses alone, and answers to those that are too big.
 */
#ifndef XLB_OTHER_H
#define XLB_OTHER_H

#include "answer.h"
#include "encap.h"
#include "events.h"
#include "rare.h"
#include "select.h"
#include "stats.h"
#include "vip.h"
#include "walk.h"

struct other {
	struct pkt p;
	int v6;
	__u32 flags;		/* OTHER_* */
};

/* The packet as the stages before left it. */
static __always_inline enum xlb_reason
other_again(struct other *o, __u64 packet)
{
	struct pkt *p = &o->p;
	__u32 word;

	if (p->backend == 0)
		PKT_END(XLB_REASON_NO_BACKEND);
	p->len = OTHER_LEN(packet);
	p->link_len = OTHER_LINK_LEN(packet);
	p->ip = sys_data(p->ctx) + p->link_len;
	if (p->ip + PARSE_IP4_LEN > sys_end(p->ctx))
		PKT_END(XLB_REASON_ENCAP_FAILED);
	p->frame_len = parse_frame_len(p->ctx) - p->link_len;
	word = be32(get32(p->ip));
	p->first = PKT_FIRST(word >> (o->v6 ? 20 : 16) & 0xff, p->len);
	p->tables = vip_tables();
	p->to = &p->tables->backend[p->backend & (XLB_BACKENDS - 1)];
	return select_hop(p);
}

/* What an ICMP error quotes, as RFC 1812 and RFC 4443 allow. */
#define OTHER_QUOTE4 (576 - PARSE_IP4_LEN - 8)
#define OTHER_QUOTE6 (1280 - PARSE_IP6_LEN - 8)
#define OTHER_TOS 0xc0		/* RFC 1812: internetwork control */

enum { OTHER_TOO_BIG = -3 };	/* no action: see other_end() */

/* Where a transport header has its checksum; 0: none that we know. */
static __always_inline __u32
other_sum_at(__u8 proto)
{
	return proto == IPPROTO_TCP ? 16 : proto == IPPROTO_UDP ? 6 :
	    proto == IPPROTO_ICMP || proto == IPPROTO_ICMPV6 ? 2 : 0;
}

/*
 * The sum of all the packet from its headers alone: what is behind the IP
 * header sums to nothing together with its pseudo header, if all of it is here,
 * nothing else is, and its checksum is given. -1: it has to be read.
 */
static __always_inline __s64
other_sum_known(const struct other *o, __u64 packet, __u32 ip_len)
{
	const struct pkt *p = &o->p;
	__u32 at = other_sum_at(p->proto), l4_len = p->len - ip_len;
	const __u8 *l4 = p->ip + ip_len;

	if (OTHER_L4(packet) != ip_len || at == 0 ||
	    (OTHER_WALK(packet) & (WALK_FIRST | WALK_LATER)))
		return -1;
	if (l4 + 18 > sys_end(p->ctx)) {
		if (at > 6 || l4 + PARSE_UDP_LEN > sys_end(p->ctx))
			return -1;
	}
	if (p->proto == IPPROTO_UDP && get16(l4 + 4) != be16(l4_len))
		return -1;
	if (at == 16 ? get16(l4 + 16) == 0 : at == 6 ? get16(l4 + 6) == 0 :
	    get16(l4 + 2) == 0)
		return -1;
	return outer_inner_sum(p->ip, o->v6, p->proto, l4_len);
}

static __always_inline __s64
other_sum(const struct other *o, __u64 packet)
{
	const struct pkt *p = &o->p;
	struct xlb_rare *r;
	__s64 sum;

	sum = o->v6 ? other_sum_known(o, packet, PARSE_IP6_LEN) :
	    other_sum_known(o, packet, PARSE_IP4_LEN);
	if (sum >= 0)
		return sum;
	r = rare_get();
	if (r != NULL)
		r->csum_full++;
	return xlb_sum(p->ctx, p->link_len, p->len);
}

/* GUE, variant 1: the packet is what UDP carries. */
static __always_inline enum xlb_reason
other_gue(struct other *o, struct encap *e, __u64 packet, int outer6)
{
	__u32 ip_len = outer6 ? PARSE_IP6_LEN : PARSE_IP4_LEN;
	struct pkt *p = &o->p;
	__s64 sum = 0;
	__u8 *data;

	e->proto = IPPROTO_UDP;
	e->own = 1;
	e->outer_len = ip_len + PARSE_UDP_LEN;
	if (outer6) {
		sum = other_sum(o, packet);
		if (sum < 0)
			PKT_END(XLB_REASON_ENCAP_FAILED);
	}
	PKT_STAGE(encap_write(p, e, outer6));
	data = sys_data(p->ctx);
	if (data + e->link_len + ip_len + PARSE_UDP_LEN > sys_end(p->ctx))
		PKT_END(XLB_REASON_ENCAP_FAILED);
	outer_udp(p, data + e->link_len + ip_len, sum, outer6);
	return PKT_NEXT;
}

/* New MAC addresses and a hop less. Through a gateway it would come back. */
static __always_inline enum xlb_reason
other_l2(struct other *o, struct encap *e)
{
	struct pkt *p = &o->p;
	__u8 *hops = p->ip + (o->v6 ? 7 : 8), *data;
	__u16 was = get16(p->ip + 8);

	if (get64(p->hop->gateway) != get64(p->to->addr) ||
	    get64(p->hop->gateway + 8) != get64(p->to->addr + 8))
		PKT_END(XLB_REASON_NO_NEIGHBOR);
	if (*hops <= 1)
		PKT_END(XLB_REASON_ENCAP_FAILED);
	(*hops)--;
	if (!o->v6)
		put16(p->ip + 10, csum_replace(get16(p->ip + 10), was,
		    get16(p->ip + 8)));
	data = encap_room(p, e);
	if (data == NULL)
		PKT_END(XLB_REASON_ENCAP_FAILED);
	encap_link(p, e, data, be16(o->v6 ? ETH_P_IPV6 : ETH_P_IP));
	return PKT_NEXT;
}

static __always_inline __u32
other_forward(const struct pkt *p)
{
	return XLB_WORD_FLAGS(p->service) & XLB_SERVICE_FORWARD;
}

/* True if it does not fit; then `mtu` is what would. What brings no header of
 * its own has nothing to do with the tunnel's MTU, which xlbd has put in the
 * place of the link's if it is less. */
static __always_inline int
other_too_big(const struct other *o, struct encap *e, __u32 *mtu)
{
	const struct pkt *p = &o->p;
	__u32 kind = other_forward(p);

	e->outer_len = encap_is_outer6(p) ? PARSE_IP6_LEN : PARSE_IP4_LEN;
	if (kind == XLB_FORWARD_GUE)
		e->outer_len += PARSE_UDP_LEN;
	if (kind == XLB_FORWARD_L2) {
		e->outer_len = 0;
		if (p->tables->settings.tunnel_mtu == p->hop->mtu)
			return 0;
	}
	*mtu = p->hop->mtu > e->outer_len ? p->hop->mtu - e->outer_len : 0;
	return p->len > *mtu;
}

static __always_inline enum xlb_reason
other_ipip(struct other *o, struct encap *e, int outer6)
{
	e->proto = o->v6 ? IPPROTO_IPV6 : IPPROTO_IPIP;
	e->outer_len = outer6 ? PARSE_IP6_LEN : PARSE_IP4_LEN;
	return encap_write(&o->p, e, outer6);
}

static __always_inline enum xlb_reason
other_push(struct other *o, struct encap *e, __u64 packet)
{
	struct pkt *p = &o->p;
	int outer6 = encap_is_outer6(p);

	switch (other_forward(p)) {
	case XLB_FORWARD_IPIP:
		return outer6 ? other_ipip(o, e, 1) : other_ipip(o, e, 0);
	case XLB_FORWARD_GUE:
		return outer6 ? other_gue(o, e, packet, 1) :
		    other_gue(o, e, packet, 0);
	case XLB_FORWARD_L2:
		return other_l2(o, e);
	default:
		PKT_END(XLB_REASON_ENCAP_FAILED);
	}
}

static __always_inline enum xlb_reason
other_send(struct other *o, __u64 packet)
{
	struct encap e = { 0 };
	struct xlb_rare *r;
	__u32 mtu = 0;

	PKT_STAGE(other_again(o, packet));
	PKT_STAGE(encap_begin(&o->p, &e));
	if (other_too_big(o, &e, &mtu)) {
		r = rare_get();
		if (r != NULL)
			r->at = mtu;
		return XLB_REASON_TOO_BIG;
	}
	PKT_STAGE(other_push(o, &e, packet));
	return encap_send(&o->p);
}

/* Of one that was sent. */
static __always_inline enum xlb_reason
other_reason(__u32 flags)
{
	return flags & OTHER_ERROR ? XLB_REASON_ICMP_ERROR :
	    flags & OTHER_PREV ? XLB_REASON_FORWARD_PREV :
	    flags & OTHER_PINNED ? XLB_REASON_FORWARD_PINNED :
	    XLB_REASON_FORWARD;
}

int xlb_other(struct sys_ctx *ctx, __u64 flow, __u64 service, __u64 packet,
    __u64 to);

/* The action, or OTHER_TOO_BIG. */
__noinline int
xlb_other(struct sys_ctx *ctx, __u64 flow, __u64 service, __u64 packet,
    __u64 to)
{
	struct other o = { .p = { .ctx = ctx } };
	enum xlb_reason reason;

	o.p.flow = flow;
	o.p.service = service;
	o.p.backend = to & 0xffff;
	o.p.proto = to >> 16;
	o.flags = to >> 24;
	o.v6 = o.flags & OTHER_V6;
	if (o.flags & OTHER_ERROR)	/* the flow's was another one */
		o.p.proto = o.v6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP;
	reason = other_send(&o, packet);
	if (reason == XLB_REASON_TOO_BIG)
		return OTHER_TOO_BIG;
	if (reason == XLB_REASON_FORWARD)
		reason = other_reason(o.flags);
	event_note(reason, service, o.p.backend);
	if (reason_verdict(reason) != VERDICT_SENT) {
		stats_drop(&o.p);
		stats_reason(reason);
		return XDP_DROP;
	}
	stats_sent(&o.p, reason);
	return o.p.action;
}

/* A bucket per CPU. */
static __always_inline int
too_big_limited(void)
{
	struct xlb_rare *r = rare_get();
	__s64 now = bpf_ktime_get_coarse_ns(), at;

	if (r == NULL)
		return 1;
	at = now - (__s64)XLB_ANSWER_EVERY * XLB_ANSWER_BURST;
	if ((__s64)r->answer_at > at)
		at = r->answer_at;
	if (at > now)
		return 1;
	r->answer_at = at + XLB_ANSWER_EVERY;
	return 0;
}

/* ICMP and its quote, with the checksum over both. `at` is where it is. */
static __always_inline enum xlb_reason
too_big_icmp(const struct pkt *p, __u8 *icmp, __u32 at, __u32 len, __u32 mtu,
    int v6)
{
	__u64 sum;
	int part;

	put32(icmp, be32(v6 ? 2U << 24 : 3U << 24 | 4U << 16));
	put32(icmp + 4, be32(mtu));
	part = xlb_sum(p->ctx, at, len);
	if (part < 0)
		PKT_END(XLB_REASON_ENCAP_FAILED);
	sum = part;
	if (v6)
		sum += csum_pseudo6(p->src, p->dst, len, IPPROTO_ICMPV6);
	put16(icmp + 2, ~csum_fold(sum));
	return XLB_REASON_TOO_BIG;
}

static __always_inline enum xlb_reason
too_big_answer(struct pkt *p, __u32 flags, __u32 mtu, int v6)
{
	__u32 ip_len = v6 ? PARSE_IP6_LEN : PARSE_IP4_LEN;
	__u32 quote = v6 ? OTHER_QUOTE6 : OTHER_QUOTE4, word;
	struct answer a = { 0 };
	__u8 *eth;

	PKT_STAGE(v6 ? parse_address6(p) : parse_address4(p));
	parse_source(p, v6);
	word = be32(get32(p->ip + 4));
	if ((flags & OTHER_ERROR) || (!v6 && (!(word & ENCAP_DF) ||
	    (word & PARSE_FRAGMENT_OFFSET))))
		PKT_END(XLB_REASON_TOO_BIG_NO_DF);
	if (!answer_save(p, &a) || too_big_limited())
		PKT_END(XLB_REASON_TOO_BIG_RATE);
	if (quote > p->len)
		quote = p->len;
	if (bpf_xdp_adjust_tail(p->ctx, -(int)(p->frame_len - quote)) != 0)
		PKT_END(XLB_REASON_ENCAP_FAILED);
	eth = answer_room(p, -(int)(ip_len + 8), ip_len);
	if (eth == NULL)
		PKT_END(XLB_REASON_ENCAP_FAILED);
	answer_link(p, &a, eth);
	if (v6)
		answer_ip6(p, eth + p->link_len, quote + 8,
		    be32(6U << 28 | (__u32)OTHER_TOS << 20));
	else
		answer_ip4(p, eth + p->link_len, PKT_FIRST(OTHER_TOS,
		    quote + 8 + ip_len), be32(ENCAP_DF));
	return too_big_icmp(p, eth + p->link_len + ip_len,
	    p->link_len + ip_len, quote + 8, mtu, v6);
}

int xlb_too_big(struct sys_ctx *ctx, __u64 packet, __u64 service, __u32 flags,
    __u32 mtu);

/* Tells the client; the action. */
__noinline int
xlb_too_big(struct sys_ctx *ctx, __u64 packet, __u64 service, __u32 flags,
    __u32 mtu)
{
	struct pkt p = { .ctx = ctx, .end = sys_end(ctx) };
	enum xlb_reason reason;

	p.service = service;
	p.len = OTHER_LEN(packet);
	p.link_len = OTHER_LINK_LEN(packet);
	p.frame_len = parse_frame_len(ctx) - p.link_len;
	p.pos = sys_data(ctx) + p.link_len;
	reason = flags & OTHER_V6 ? too_big_answer(&p, flags, mtu, 1) :
	    too_big_answer(&p, flags, mtu, 0);
	stats_reason(reason);
	if (!(flags & OTHER_REPLY))
		stats_drop(&p);
	event_note(reason, flags & OTHER_REPLY ? EVENT_NOBODY : service, 0);
	return reason == XLB_REASON_TOO_BIG ? XDP_TX : XDP_DROP;
}

/* What sends has said. Of OTHER_TOO_BIG the client is told; the action. */
static __always_inline int
other_end(struct sys_ctx *ctx, __u64 service, __u64 packet, __u64 to,
    int action)
{
	const struct xlb_rare *r;

	if (action != OTHER_TOO_BIG)
		return action;
	r = rare_get();
	return r == NULL ? XDP_DROP :
	    xlb_too_big(ctx, packet, service, to >> 24, r->at);
}

/* Sends, or says why not; the action. */
static __always_inline int
other(struct sys_ctx *ctx, __u64 flow, __u64 service, __u64 packet, __u64 to)
{
	return other_end(ctx, service, packet, to,
	    xlb_other(ctx, flow, service, packet, to));
}

#endif
