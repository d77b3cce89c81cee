/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ICMP and ICMPv6 to a VIP: echo is answered here, errors go to the backend that
 * owns the flow that they quote.
 */
#ifndef XLB_ICMP_H
#define XLB_ICMP_H

#include "answer.h"
#include "other.h"

#define ICMP_LEN 8U
#define ICMP_PORTS_LEN 8U	/* of a quote: what RFC 792 promises */
/* The four kinds of errors, as bits by type. */
#define ICMP_ERRORS (1U << 3 | 1U << 4 | 1U << 11 | 1U << 12)
#define ICMP_ERRORS6 (1U << 1 | 1U << 2 | 1U << 3 | 1U << 4)

enum { ICMP_REPLY = 0, ICMP_ECHO_ = 8, ICMP_ECHO6 = 128, ICMP_REPLY6 = 129 };

#define PKT_ECHO (XLB_REASON_COUNT + 2)	/* see xlb_echo() */

static __always_inline int
icmp_is(const struct slow *s)
{
	return s->p.proto == (s->v6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP) &&
	    !(s->walk & (WALK_FIRST | WALK_LATER));
}

/* The reply's checksum from the request's. All zero bytes are the one message
 * for which that is ambiguous: their checksum is ffff. */
static __always_inline __u16
icmp_echo_sum(const struct pkt *p, const __u8 *icmp, __u32 at, int v6)
{
	__u16 was = get16(icmp), sum;

	if (v6)
		return csum_replace(get16(icmp + 2), was,
		    be16(ICMP_REPLY6 << 8));
	sum = csum_replace(get16(icmp + 2), was, 0);
	if (sum == 0 && xlb_sum(p->ctx, at + 4, p->l4_len - 4) == 0)
		sum = 0xffff;
	return sum;
}

/* What lies behind the packet goes, but for the padding of a small frame. */
static __always_inline int
icmp_echo_trim(struct pkt *p, __u32 ip_len)
{
	__u32 len = p->link_len + ip_len + p->l4_len;
	__u32 extra = p->frame_len - p->len;
	__u32 keep = len < ANSWER_FRAME ? ANSWER_FRAME - len : 0;

	if (extra <= keep)
		return 0;
	return bpf_xdp_adjust_tail(p->ctx, -(int)(extra - keep));
}

/* Options and extension headers are not sent back. */
static __always_inline enum xlb_reason
icmp_echo(struct pkt *p, __u32 l4, int v6)
{
	__u32 ip_len = v6 ? PARSE_IP6_LEN : PARSE_IP4_LEN;
	__be32 first, id;
	struct answer a = { 0 };
	__u8 *icmp, *eth;

	PKT_STAGE(v6 ? parse_address6(p) : parse_address4(p));
	parse_source(p, v6);
	first = get32(p->ip);
	id = get32(p->ip + 4);
	icmp = p->ip + l4;
	if (icmp + ICMP_LEN > p->end)
		PKT_END(XLB_REASON_MALFORMED);
	if (!answer_save(p, &a))
		PKT_END(XLB_REASON_NO_SERVICE);
	put16(icmp + 2, icmp_echo_sum(p, icmp, p->link_len + l4, v6));
	icmp[0] = v6 ? ICMP_REPLY6 : ICMP_REPLY;
	if (icmp_echo_trim(p, ip_len) != 0)
		PKT_END(XLB_REASON_ENCAP_FAILED);
	eth = answer_room(p, l4 - ip_len, ip_len);
	if (eth == NULL)
		PKT_END(XLB_REASON_ENCAP_FAILED);
	answer_link(p, &a, eth);
	if (v6)
		answer_ip6(p, eth + p->link_len, p->l4_len, first);
	else
		answer_ip4(p, eth + p->link_len, PKT_FIRST(be32(first) >> 16 &
		    0xff, p->l4_len + ip_len), id);
	return XLB_REASON_ECHO;
}

int xlb_echo(struct sys_ctx *ctx, __u64 packet, __u32 v6);

/* Answers the echo request that is described so; the action. */
__noinline int
xlb_echo(struct sys_ctx *ctx, __u64 packet, __u32 v6)
{
	struct pkt p = { .ctx = ctx, .end = sys_end(ctx) };
	__u32 l4 = OTHER_L4(packet);
	enum xlb_reason reason;

	p.len = OTHER_LEN(packet);
	p.l4_len = p.len - l4;
	p.link_len = OTHER_LINK_LEN(packet);
	p.frame_len = parse_frame_len(ctx) - p.link_len;
	p.pos = sys_data(ctx) + p.link_len;
	reason = v6 ? icmp_echo(&p, l4, 1) : icmp_echo(&p, l4, 0);
	stats_reason(reason);
	event_note(reason, EVENT_NOBODY, 0);
	return reason == XLB_REASON_ECHO ? XDP_TX : XDP_DROP;
}

/* Where the quoted transport header is, from the quote's start on; the client
 * becomes the source. 0: not a packet from this VIP. */
static __always_inline enum xlb_reason
icmp_quote4(struct slow *s, const __u8 *quote, __u32 *l4)
{
	struct pkt *p = &s->p;

	*l4 = (quote[0] & 0xf) * 4;
	if (quote[0] >> 4 != 4 || *l4 < PARSE_IP4_LEN)
		PKT_END(XLB_REASON_MALFORMED);
	if (get16(quote + 6) & be16(PARSE_FRAGMENT_OFFSET))
		PKT_END(XLB_REASON_FRAGMENT_UNKNOWN);
	p->proto = quote[9];
	if (get32(quote + 12) != p->dst[3])
		p->proto = 0;
	p->src[3] = get32(quote + 16);
	return PKT_NEXT;
}

static __always_inline enum xlb_reason
icmp_quote6(struct slow *s, const __u8 *quote, __u32 *l4)
{
	struct pkt *p = &s->p;
	__u32 at = p->link_len + s->l4 + ICMP_LEN;
	__u64 walk;
	int other;

	if (quote + PARSE_IP6_LEN > p->end || quote[0] >> 4 != 6 ||
	    p->l4_len < ICMP_LEN + PARSE_IP6_LEN)
		PKT_END(XLB_REASON_MALFORMED);
	other = get32(quote + 8) != p->dst[0] ||
	    get32(quote + 12) != p->dst[1] ||
	    get32(quote + 16) != p->dst[2] || get32(quote + 20) != p->dst[3];
	p->src[0] = get32(quote + 24);
	p->src[1] = get32(quote + 28);
	p->src[2] = get32(quote + 32);
	p->src[3] = get32(quote + 36);
	walk = xlb_walk(p->ctx, at + PARSE_IP6_LEN, quote[6]);
	*l4 = (WALK_AT(walk) - at) & WALK_OFFSET;
	if ((WALK_FLAGS(walk) & WALK_BAD) || ICMP_LEN + *l4 > p->l4_len)
		PKT_END(XLB_REASON_MALFORMED);
	if (WALK_FLAGS(walk) & WALK_LATER)
		PKT_END(XLB_REASON_FRAGMENT_UNKNOWN);
	p->proto = other ? 0 : WALK_PROTO(walk);
	return PKT_NEXT;
}

/* The packet becomes one of the flow that it quotes, client to VIP. */
static __always_inline enum xlb_reason
icmp_error(struct slow *s)
{
	struct pkt *p = &s->p;
	const __u8 *quote = p->pos;
	__u32 l4;

	if (quote + PARSE_IP4_LEN > p->end ||
	    p->l4_len < ICMP_LEN + PARSE_IP4_LEN)
		PKT_END(XLB_REASON_MALFORMED);
	PKT_STAGE(s->v6 ? icmp_quote6(s, quote, &l4) :
	    icmp_quote4(s, quote, &l4));
	l4 &= WALK_OFFSET;
	quote = p->ip + s->l4 + ICMP_LEN + l4;
	if (ICMP_LEN + l4 + ICMP_PORTS_LEN > p->l4_len ||
	    quote + ICMP_PORTS_LEN > p->end)
		PKT_END(XLB_REASON_MALFORMED);
	if (p->proto != IPPROTO_TCP && p->proto != IPPROTO_UDP)
		return slow_unserved(p);
	p->ports = get32(quote) << 16 | get32(quote) >> 16;
	s->quote = s->l4 + ICMP_LEN + l4;
	s->flags |= OTHER_ERROR;
	return PKT_NEXT;
}

static __always_inline enum xlb_reason
icmp_packet(struct slow *s)
{
	struct pkt *p = &s->p;
	__u8 *icmp = pkt_pull(p, ICMP_LEN), type;

	if (icmp == NULL || p->l4_len < ICMP_LEN)
		PKT_END(XLB_REASON_MALFORMED);
	type = icmp[0];
	if (get16(icmp) == be16((s->v6 ? ICMP_ECHO6 : ICMP_ECHO_) << 8))
		PKT_END(PKT_ECHO);
	if (type < 32 && ((s->v6 ? ICMP_ERRORS6 : ICMP_ERRORS) >> type & 1))
		return icmp_error(s);
	return slow_unserved(p);
}

#endif
