/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ICMP errors about flows that are translated: one to a VIP goes to the backend
 * from our own address, one to our address to the client from the VIP, and what
 * they quote becomes what the receiver knows of. They change no state.
 */
#ifndef XLB_NAT_ERROR_H
#define XLB_NAT_ERROR_H

#include "icmp.h"
#include "nat_send.h"

/* The packet as described. */
static __always_inline enum xlb_reason
nat_error_again(struct nat *n, struct sys_ctx *ctx, __u64 packet, __u64 to)
{
	struct pkt *p = &n->p;

	p->ctx = ctx;
	p->tables = vip_tables();
	p->end = sys_end(ctx);
	p->len = OTHER_LEN(packet);
	p->link_len = OTHER_LINK_LEN(packet);
	p->frame_len = parse_frame_len(ctx) - p->link_len;
	p->ip = sys_data(ctx) + p->link_len;
	p->proto = to >> 16;
	n->flags = to >> 24;
	n->v6 = n->flags & OTHER_V6;
	n->l4 = OTHER_L4(packet);
	if (p->ip + (n->v6 ? PARSE_IP6_LEN : PARSE_IP4_LEN) > p->end)
		PKT_END(XLB_REASON_MALFORMED);
	return PKT_NEXT;
}

__u32 xlb_nat_quoted(struct sys_ctx *ctx, __u64 flow, __u64 packet, __u64 to);

/*
 * The row of the flow that is quoted; NAT_NONE: there is none. What is quoted
 * went the other way: who it was for is the source of the row's packets.
 */
__noinline __u32
xlb_nat_quoted(struct sys_ctx *ctx, __u64 flow, __u64 packet, __u64 to)
{
	struct xlb_rare *r = rare_get();
	struct nat_key key = { 0 };
	struct nat n = { .key = &key };
	const __u8 *quote;
	__u32 i;
	int known;

	if (r == NULL || nat_error_again(&n, ctx, packet, to) != PKT_NEXT)
		return NAT_NONE;
	n.p.flow = flow;
	n.p.ports = r->nat.ports;
	n.tick = nat_tick();
	quote = nat_l4(&n) + ICMP_LEN;
	if (quote + (n.v6 ? PARSE_IP6_LEN : PARSE_IP4_LEN) > n.p.end)
		return NAT_NONE;
	n.p.src[2] = n.p.dst[2] = be32(PARSE_V4_MAPPED);
	n.p.src[3] = get32(quote + 16);
	n.p.dst[3] = get32(quote + 12);
	for (i = 0; i < 4 && n.v6; i++) {
		n.p.src[i] = get32(quote + 24 + 4 * i);
		n.p.dst[i] = get32(quote + 8 + 4 * i);
	}
	known = nat_find(&n, n.flags & OTHER_REPLY);
	return known && !nat_is_old(&n) ? n.at : NAT_NONE;
}

/* What is quoted went from `src` to `dst`, with these ports; what that adds to
 * the ICMP checksum. Checksums that were cut off, or are none, stay so. */
static __always_inline __u64
nat_error_quote(const struct nat *n, __u8 *quote, __u8 *l4, __u32 left,
    const __u8 *src, const __u8 *dst, __be32 ports)
{
	__u64 sum, all;
	__u16 was;

	sum = nat_addresses(quote, n->v6, src, dst);
	/* an IPv4 header adds nothing: its own checksum makes up for it */
	all = n->v6 ? sum : 0;
	sum += nat_changed(get32(l4), ports);
	all += nat_changed(get32(l4), ports);
	put32(l4, ports);
	if (n->p.proto == IPPROTO_UDP) {
		was = get16(l4 + 6);
		nat_check(l4 + 6, sum, 1);
		return all + (__u16)~was + get16(l4 + 6);
	}
	if (left < 18 || l4 + 18 > n->p.end)
		return all;
	was = get16(l4 + 16);
	nat_check(l4 + 16, sum, 0);
	return all + (__u16)~was + get16(l4 + 16);
}

/* The error from `src` to `dst`, quoting a packet from `dst` to `src`. `at` is
 * where the quoted ports are, from `ip` on. */
static __always_inline enum xlb_reason
nat_error_rewrite(const struct nat *n, __u32 at, const __u8 *src,
    const __u8 *dst, __be32 ports)
{
	__u8 *ip = n->p.ip, *icmp = nat_l4(n), *l4;
	__u32 need = ICMP_LEN + (n->v6 ? PARSE_IP6_LEN : PARSE_IP4_LEN);
	__u64 sum;

	SYS_OPAQUE(at);
	at &= WALK_OFFSET;
	l4 = ip + at;
	if (icmp + need > n->p.end || l4 + ICMP_PORTS_LEN > n->p.end)
		PKT_END(XLB_REASON_MALFORMED);
	PKT_STAGE(nat_hop(ip, n->v6));
	sum = nat_addresses(ip, n->v6, src, dst);
	if (!n->v6)	/* ICMP's checksum has no addresses in it */
		sum = 0;
	sum += nat_error_quote(n, icmp + ICMP_LEN, l4, n->p.len - at, dst, src,
	    ports);
	nat_check(icmp + 2, sum, 0);
	return PKT_NEXT;
}

/* In the place of a row's number: there is none, the packet ends so. */
#define NAT_END(reason) (1U << 31 | (reason))
#define NAT_END_REASON(at) ((at) & 0xff)

__u32 xlb_nat_requote(struct sys_ctx *ctx, __u64 packet, __u64 to, __u32 at);

/*
 * The error that is described so and what it quotes become what the receiver of
 * row `at` knows of: to a backend from the address that it knows the client by,
 * to a client from the VIP, since who else there is behind that is not its
 * business. The row's number; or NAT_END(): it may be half done.
 */
__noinline __u32
xlb_nat_requote(struct sys_ctx *ctx, __u64 packet, __u64 to, __u32 at)
{
	const struct xlb_nat *row = nat_row(at);
	struct xlb_rare *r = rare_get();
	struct nat n = { 0 };
	enum xlb_reason reason = nat_error_again(&n, ctx, packet, to);
	const __u8 *src, *dst;
	__be32 ports;

	if (r == NULL || row == NULL)
		return NAT_END(XLB_REASON_NO_BACKEND);
	if (reason != PKT_NEXT)
		return NAT_END(reason);
	if (n.flags & OTHER_REPLY) {
		src = row->vip;
		dst = row->client;
		ports = row->ports;
	} else {
		src = n.p.tables->source[row->source & (XLB_NAT_SOURCES - 1)].addr;
		dst = n.p.tables->backend[row->backend &
		    (XLB_BACKENDS - 1)].addr;
		ports = row->back;
	}
	reason = nat_error_rewrite(&n, r->quote, src, dst, ports);
	return reason == PKT_NEXT ? at : NAT_END(reason);
}

/* Where the receiver is reached. */
static __always_inline enum xlb_reason
nat_error_way(struct nat *n, struct encap *e)
{
	struct pkt *p = &n->p;

	if (!(n->flags & OTHER_REPLY)) {
		PKT_STAGE(nat_backend(n, n->row->backend));
		return encap_begin(p, e);
	}
	return nat_way_back(n, e);
}

static __always_inline enum xlb_reason
nat_error_send(struct nat *n)
{
	struct encap e = { 0 };

	PKT_STAGE(nat_error_way(n, &e));
	if (n->p.len > n->p.hop->mtu)
		PKT_END(XLB_REASON_TOO_BIG_NO_DF);
	return nat_link(n, &e);
}

int xlb_nat_error(struct sys_ctx *ctx, __u64 service, __u64 packet, __u64 to,
    __u32 at);

/* Sends what the one before has made, if that gave a row; the action. */
__noinline int
xlb_nat_error(struct sys_ctx *ctx, __u64 service, __u64 packet, __u64 to,
    __u32 at)
{
	struct nat n = { 0 };
	enum xlb_reason reason;

	n.row = nat_row(at);
	n.p.service = service;
	reason = nat_error_again(&n, ctx, packet, to);
	if (n.row == NULL)
		reason = NAT_END_REASON(at);
	else if (reason == PKT_NEXT)
		reason = nat_error_send(&n);
	if (reason == XLB_REASON_FORWARD)
		reason = XLB_REASON_ICMP_ERROR;
	event_note(reason, n.flags & OTHER_REPLY ? EVENT_NOBODY : service,
	    n.p.backend);
	if (n.flags & OTHER_REPLY)
		stats_reason(reason);
	else if (reason == XLB_REASON_ICMP_ERROR)
		stats_sent(&n.p, reason);
	else
		nat_dropped(&n.p, reason);
	return reason == XLB_REASON_ICMP_ERROR ? n.p.action : XDP_DROP;
}

/* Either direction; the action. An error about a flow that is not known is the
 * host's if it came to an address of ours. */
static __always_inline int
nat_error(struct sys_ctx *ctx, __u64 flow, __u64 service, __u64 packet,
    __u64 to)
{
	__u32 at = xlb_nat_quoted(ctx, flow, packet, to);

	if (at == NAT_NONE && (to >> 24 & OTHER_REPLY))
		return nat_pass();
	at = at == NAT_NONE ? NAT_END(XLB_REASON_NO_BACKEND) :
	    xlb_nat_requote(ctx, packet, to, at);
	return xlb_nat_error(ctx, service, packet, to, at);
}

#endif
