/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Packets that are not ordinary, from the first byte on: tags of two kinds,
 * IPv4 options, IPv6 extension headers, fragments, ICMP. A function of its own:
 * none of it is on the way of the others, and the verifier looks at it once.
 */
#ifndef XLB_SLOW_H
#define XLB_SLOW_H

#include "flow.h"
#include "fragment.h"
#include "icmp.h"
#include "nat_error.h"
#include "nat_send.h"
#include "other.h"
#include "pull.h"

static __always_inline enum xlb_reason
slow_link(struct slow *s)
{
	struct pkt *p = &s->p;
	__u32 link = xlb_link(p->ctx);

	if (link == 0)
		PKT_END(XLB_REASON_NOT_VIP);
	p->link_len = link >> 16 & 0x1f;
	s->v6 = (link & 0xffff) == be16(ETH_P_IPV6);
	p->pos = sys_data(p->ctx) + p->link_len;
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

	PKT_STAGE(parse_words6(p));
	PKT_STAGE(parse_length(p, PARSE_IP6_LEN));
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

/* What is not IPIP's is told later. */
static __always_inline enum xlb_reason
slow_hash(struct slow *s)
{
	return select_hash(&s->p, s->v6) == PKT_NAT ? PKT_NAT : PKT_NEXT;
}

static __always_inline enum xlb_reason
slow_ports(struct slow *s)
{
	struct pkt *p = &s->p;

	if (p->proto == IPPROTO_TCP)
		return parse_tcp(p);
	if (p->proto == IPPROTO_UDP)
		return parse_udp(p, !(s->walk & WALK_FIRST));
	return slow_unserved(p);
}

static __always_inline enum xlb_reason
slow_addresses(struct pkt *p, int v6)
{
	PKT_STAGE(v6 ? parse_address6(p) : parse_address4(p));
	parse_source(p, v6);
	return PKT_NEXT;
}

/* To the transport header. */
static __always_inline enum xlb_reason
slow_parse(struct slow *s)
{
	struct pkt *p = &s->p;

	PKT_STAGE(slow_link(s));
	PKT_STAGE(s->v6 ? slow_addresses(p, 1) : slow_addresses(p, 0));
	PKT_STAGE(vip_match(p, 1));
	PKT_STAGE(s->v6 ? slow_header6(s) : slow_header4(s));
	p->pos = p->ip + s->l4;
	return PKT_NEXT;
}

/* The service and the hashes, or a later fragment's backend; or the end. */
static __always_inline enum xlb_reason
slow_packet(struct slow *s)
{
	struct pkt *p = &s->p;
	int icmp;

	PKT_STAGE(slow_parse(s));
	icmp = icmp_is(s);
	if (!icmp && !(s->walk & WALK_LATER))
		PKT_STAGE(slow_ports(s));
	PKT_STAGE(vip_source(p, s->v6));
	if (s->walk & WALK_LATER)
		return fragment_follow(s);
	if (icmp)
		PKT_STAGE(icmp_packet(s));
	PKT_STAGE(vip_service(p, 1));
	return slow_hash(s);
}

/*
 * The flow table, sending and answering are other functions'. Called from in
 * here their stacks would have to fit beside this one; so the caller does it,
 * and the arguments wait in a map.
 */
enum { SLOW_SEND = -1, SLOW_ECHO = -2, SLOW_FOLLOW = -4, SLOW_OWN = -6,
    SLOW_NAT = -7 };

/* An ICMP error is a packet of its flow, but changes nothing. */
static __always_inline __u32
slow_flow_flags(const struct slow *s)
{
	__u32 flags = s->p.proto == IPPROTO_UDP ? FLOW_UDP : s->p.tcp_flags;

	return s->flags & OTHER_ERROR ? flags | FLOW_READ : flags;
}

static __always_inline int
slow_later(const struct slow *s, int what)
{
	const struct pkt *p = &s->p;
	struct xlb_rare *r = rare_get();

	if (r == NULL)
		return XDP_DROP;
	r->flow = p->flow;
	r->select = p->hash;
	r->service = p->service;
	r->packet = FLOW_PACKET(slow_described(s), slow_flow_flags(s));
	r->to = OTHER_TO(p->backend, p->proto,
	    s->flags | (s->v6 ? OTHER_V6 : 0));
	if (s->walk & WALK_FIRST)
		fragment_key(s, &r->key);
	return what;
}

static __always_inline int
slow_later_nat(const struct slow *s)
{
	struct xlb_rare *r = rare_get();

	if (r == NULL)
		return XDP_DROP;
	r->quote = s->quote;
	r->nat.ports = s->p.ports;
	r->nat.backend = 0;
	return slow_later(s, SLOW_NAT);
}

int xlb_slow(struct sys_ctx *ctx);

/* The action, or SLOW_*. */
__noinline int
xlb_slow(struct sys_ctx *ctx)
{
	struct slow s = { .p = { .ctx = ctx, .pos = sys_data(ctx),
	    .end = sys_end(ctx), .tables = vip_tables() } };
	enum xlb_reason reason = slow_packet(&s);

	if (reason == PKT_NEXT)
		return slow_later(&s, s.walk & WALK_LATER ? SLOW_FOLLOW :
		    SLOW_SEND);
	if (reason == PKT_ECHO)
		return slow_later(&s, SLOW_ECHO);
	if (reason == PKT_OWN)
		return SLOW_OWN;
	if (reason == PKT_NAT)
		return slow_later_nat(&s);
	stats_reason(reason);
	event_note(reason, s.p.service, 0);
	return reason_verdict(reason) == VERDICT_PASS ? XDP_PASS : XDP_DROP;
}

/* The same to an address of our own: its flow's hash, or a later fragment's. */
static __always_inline enum xlb_reason
slow_own(struct slow *s)
{
	struct pkt *p = &s->p;
	int icmp;

	PKT_STAGE(slow_link(s));
	PKT_STAGE(s->v6 ? slow_addresses(p, 1) : slow_addresses(p, 0));
	PKT_STAGE(s->v6 ? slow_header6(s) : slow_header4(s));
	p->pos = p->ip + s->l4;
	if (s->walk & WALK_LATER)
		return fragment_follow(s);
	icmp = icmp_is(s);
	PKT_STAGE(icmp ? icmp_packet(s) : slow_ports(s));
	return slow_hash(s);
}

int xlb_slow_own(struct sys_ctx *ctx);

/* The action, or SLOW_NAT. What cannot be a reply is the host's. */
__noinline int
xlb_slow_own(struct sys_ctx *ctx)
{
	struct slow s = { .p = { .ctx = ctx, .pos = sys_data(ctx),
	    .end = sys_end(ctx), .tables = vip_tables() },
	    .flags = OTHER_REPLY };

	enum xlb_reason reason = slow_own(&s);

	if (reason != PKT_NEXT && reason != PKT_NAT)
		return nat_pass();
	return slow_later_nat(&s);
}

/* As for an ordinary packet; see xlb_select(). */
static __always_inline __u64
slow_select(struct sys_ctx *ctx, struct xlb_rare *r)
{
	struct pkt p = { .tables = vip_tables(), .service = r->service,
	    .flow = r->flow, .tcp_flags = r->packet >> 56 & PARSE_FLAGS };
	__u32 word = select_slot(XLB_WORD_RING(p.service), r->select);
	__u32 to = XLB_SLOT_CUR(word);

	if (flow_is_looked_up(&p, word) && !flow_is_skipped(&p, word))
		to = xlb_flow(ctx, r->flow, FLOW_WHERE(word, r->select),
		    r->service, r->packet);
	return r->to | to;
}

static __always_inline int
slow_nat(struct sys_ctx *ctx, struct xlb_rare *r)
{
	__u64 to = r->to;
	int action;

	if (to >> 24 & OTHER_ERROR)
		action = nat_error(ctx, r->flow, r->service, r->packet, to);
	else
		action = nat_any(ctx, r->flow, r->service, r->packet, to);
	if (OTHER_WALK(r->packet) & WALK_FIRST)
		fragment_remember(r, r->nat.backend, to | FRAGMENT_NAT);
	return action;
}

static __always_inline int
slow(struct sys_ctx *ctx)
{
	struct xlb_rare *r;
	int action;
	__u64 to;

	if (frags && pull_has(ctx, PULL_ENOUGH) && xlb_pull(ctx) != 0) {
		stats_reason(XLB_REASON_MALFORMED);
		event_note(XLB_REASON_MALFORMED, 0, 0);
		return XDP_DROP;
	}
	action = xlb_slow(ctx);
	if (action == SLOW_OWN)
		action = xlb_slow_own(ctx);
	if (action >= 0)
		return action;
	r = rare_get();
	if (r == NULL)
		return XDP_DROP;
	if (action == SLOW_ECHO)
		return xlb_echo(ctx, r->packet, r->to >> 24 & OTHER_V6);
	if (action == SLOW_NAT)
		return slow_nat(ctx, r);
	to = r->to;
	if (action == SLOW_SEND) {
		to = slow_select(ctx, r);
		if (OTHER_WALK(r->packet) & WALK_FIRST)
			fragment_remember(r, to & 0xffff, 0);
	}
	return other(ctx, r->flow, r->service, r->packet, to);
}

#endif
