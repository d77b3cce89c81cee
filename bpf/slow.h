/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Packets that are not ordinary, from the first byte on: tags of two kinds,
 * IPv4 options, IPv6 extension headers. A function of its own: none of it is on
 * the way of the others, and the verifier looks at it once.
 */
#ifndef XLB_SLOW_H
#define XLB_SLOW_H

#include "other.h"

struct slow {
	struct pkt p;
	int v6;
	__u32 l4;		/* where the transport header is, from `ip` on */
	__u32 walk;		/* WALK_* */
	__be32 id;		/* of a fragment, wire */
};

/* Ethernet and at most two tags. */
static __always_inline enum xlb_reason
slow_link(struct pkt *p)
{
	const __u8 *tag;

	PKT_STAGE(parse_link(p));
	if (!parse_is_tag(p->ethertype))
		return PKT_NEXT;
	tag = pkt_pull(p, PARSE_TAG_LEN);
	if (tag == NULL)
		PKT_END(XLB_REASON_NOT_VIP);
	p->link_len += PARSE_TAG_LEN;
	p->ethertype = get16(tag + 2);
	return PKT_NEXT;
}

/* Options are skipped over. */
static __always_inline enum xlb_reason
slow_header4(struct slow *s)
{
	struct pkt *p = &s->p;
	__u32 word = be32(get32(p->ip)), fragment;

	p->len = word & 0xffff;
	p->proto = p->ip[9];
	s->l4 = (word >> 24 & 0xf) * 4;
	if (word >> 28 != 4 || s->l4 < PARSE_IP4_LEN)
		PKT_END(XLB_REASON_MALFORMED);
	PKT_STAGE(parse_length(p, s->l4));
	if (p->ip + s->l4 > p->end)
		PKT_END(XLB_REASON_MALFORMED);
	fragment = be16(get16(p->ip + 6));
	s->id = get16(p->ip + 4);
	if (fragment & PARSE_FRAGMENT)
		s->walk = fragment & PARSE_FRAGMENT_OFFSET ? WALK_LATER :
		    WALK_FIRST;
	return PKT_NEXT;
}

static __always_inline enum xlb_reason
slow_header6(struct slow *s)
{
	struct pkt *p = &s->p;
	__u64 walk;

	PKT_STAGE(parse_header6(p));
	walk = xlb_walk(p->ctx, p->link_len + PARSE_IP6_LEN, p->proto);
	s->walk = WALK_FLAGS(walk);
	if (s->walk & WALK_BAD)
		PKT_END(XLB_REASON_MALFORMED);
	s->l4 = (WALK_AT(walk) - p->link_len) & WALK_OFFSET;
	if (s->l4 > p->len)
		PKT_END(XLB_REASON_MALFORMED);
	p->l4_len = p->len - s->l4;
	p->proto = WALK_PROTO(walk);
	s->id = WALK_ID(walk);
	return PKT_NEXT;
}

static __always_inline enum xlb_reason
slow_unserved(const struct pkt *p)
{
	if (p->vip_flags & XLB_VIP_LOCAL)
		PKT_END(XLB_REASON_VIP_LOCAL);
	PKT_END(XLB_REASON_NO_SERVICE);
}

static __always_inline enum xlb_reason
slow_ports(struct slow *s)
{
	struct pkt *p = &s->p;

	if (s->walk & (WALK_FIRST | WALK_LATER))
		PKT_END(XLB_REASON_FRAGMENT_UNKNOWN);
	if (p->proto == IPPROTO_TCP)
		return parse_tcp(p);
	if (p->proto == IPPROTO_UDP)
		return parse_udp(p, !(s->walk & WALK_FIRST));
	return slow_unserved(p);
}

/* To the transport header. */
static __always_inline enum xlb_reason
slow_parse(struct slow *s)
{
	struct pkt *p = &s->p;

	PKT_STAGE(slow_link(p));
	s->v6 = p->ethertype == be16(ETH_P_IPV6);
	if (!s->v6 && p->ethertype != be16(ETH_P_IP))
		PKT_END(XLB_REASON_NOT_VIP);
	PKT_STAGE(s->v6 ? parse_address6(p) : parse_address4(p));
	PKT_STAGE(vip_match(p));
	PKT_STAGE(s->v6 ? slow_header6(s) : slow_header4(s));
	p->pos = p->ip + s->l4;
	return PKT_NEXT;
}

static __always_inline enum xlb_reason
slow_packet(struct slow *s)
{
	struct pkt *p = &s->p;

	PKT_STAGE(slow_parse(s));
	PKT_STAGE(slow_ports(s));
	PKT_STAGE(vip_source(p, s->v6));
	return vip_service(p);
}

static __always_inline enum xlb_reason
slow_select(struct slow *s)
{
	PKT_STAGE(select_hash(&s->p, s->v6));
	return select_backend(&s->p);
}

static __always_inline int
slow_send(struct slow *s)
{
	struct pkt *p = &s->p;

	return xlb_other(p->ctx, p->flow, p->service,
	    OTHER_PACKET(p->len, p->link_len, s->l4, s->walk),
	    OTHER_TO(p->backend, p->proto, s->v6 ? OTHER_V6 : 0));
}

int xlb_slow(struct sys_ctx *ctx);

__noinline int
xlb_slow(struct sys_ctx *ctx)
{
	struct slow s = { .p = { .ctx = ctx, .pos = sys_data(ctx),
	    .end = sys_end(ctx) } };
	enum xlb_reason reason;

	reason = slow_packet(&s);
	if (reason == PKT_NEXT) {
		reason = slow_select(&s);
		if (reason == PKT_NEXT)
			return slow_send(&s);
		stats_drop(&s.p);
	}
	stats_reason(reason);
	return reason_verdict(reason) == VERDICT_PASS ? XDP_PASS : XDP_DROP;
}

#endif
