/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * NAT: a client's packet goes to the backend from an address and port of ours,
 * and the backend's reply to the client from the VIP. Checksums follow the words
 * that change. Replies leave by the interface, to the neighbour and in the VLAN
 * that the client's last packet came by, as answers of our own do: that needs no
 * route look-up, and a router that sent the one takes the other.
 */
#ifndef XLB_NAT_SEND_H
#define XLB_NAT_SEND_H

#include "nat.h"
#include "other.h"

/* Nobody waits for it here: it is the host's, untouched. */
static __always_inline int
nat_pass(void)
{
	stats_reason(XLB_REASON_NOT_VIP);
	event_note(XLB_REASON_NOT_VIP, EVENT_NOBODY, 0);
	return XDP_PASS;
}

static __always_inline void
nat_dropped(const struct pkt *p, enum xlb_reason reason)
{
	stats_drop(p);
	stats_reason(reason);
}

/* The transport header. Kept on the stack, its place is anything to the verifier
 * when it comes back. */
static __always_inline __u8 *
nat_l4(const struct nat *n)
{
	__u32 l4 = n->l4;

	SYS_OPAQUE(l4);
	return n->p.ip + (l4 & WALK_OFFSET);
}

/* The packet as described, and its own addresses and ports. */
static __always_inline enum xlb_reason
nat_again(struct nat *n, struct sys_ctx *ctx, __u64 packet, __u64 to)
{
	struct pkt *p = &n->p;
	const __u8 *l4;

	p->ctx = ctx;
	p->tables = vip_tables();
	p->pos = sys_data(ctx) + OTHER_LINK_LEN(packet);
	p->end = sys_end(ctx);
	p->len = OTHER_LEN(packet);
	p->link_len = OTHER_LINK_LEN(packet);
	p->frame_len = parse_frame_len(ctx) - p->link_len;
	p->proto = to >> 16;
	n->flags = to >> 24;
	n->v6 = n->flags & OTHER_V6;
	n->walk = OTHER_WALK(packet);
	n->l4 = OTHER_L4(packet);
	n->tick = nat_tick();
	PKT_STAGE(n->v6 ? parse_address6(p) : parse_address4(p));
	parse_source(p, n->v6);
	if (n->walk & WALK_LATER)
		return PKT_NEXT;
	l4 = nat_l4(n);
	if (l4 + PARSE_UDP_LEN > p->end)
		PKT_END(XLB_REASON_MALFORMED);
	p->ports = get32(l4);
	if (p->proto == IPPROTO_UDP)
		return PKT_NEXT;
	if (l4 + PARSE_TCP_LEN > p->end)
		PKT_END(XLB_REASON_MALFORMED);
	p->tcp_flags = l4[13] & PARSE_FLAGS;
	return PKT_NEXT;
}

/* What a changed word adds to a sum. */
static __always_inline __u64
nat_changed(__be32 was, __be32 is)
{
	return (__u64)(__u32)~was + is;
}

/* New addresses in an IP header, and its checksum; what they add to others. */
static __always_inline __u64
nat_addresses4(__u8 *ip, __be32 src, __be32 dst)
{
	__u64 sum = nat_changed(get32(ip + 12), src) +
	    nat_changed(get32(ip + 16), dst);

	put32(ip + 12, src);
	put32(ip + 16, dst);
	put16(ip + 10, ~csum_fold((__u16)~get16(ip + 10) + sum));
	return sum;
}

static __always_inline __u64
nat_addresses6(__u8 *ip, const __u8 *src, const __u8 *dst)
{
	__u64 sum = 0;
	__u32 i;

	for (i = 0; i < 16; i += 4) {
		sum += nat_changed(get32(ip + 8 + i), get32(src + i));
		sum += nat_changed(get32(ip + 24 + i), get32(dst + i));
	}
	put64(ip + 8, get64(src));
	put64(ip + 16, get64(src + 8));
	put64(ip + 24, get64(dst));
	put64(ip + 32, get64(dst + 8));
	return sum;
}

static __always_inline __u64
nat_addresses(__u8 *ip, int v6, const __u8 *src, const __u8 *dst)
{
	return v6 ? nat_addresses6(ip, src, dst) :
	    nat_addresses4(ip, get32(src + 12), get32(dst + 12));
}

/* UDP's 0 is none, and stays that; what becomes 0 is written as ffff (RFC 768). */
static __always_inline void
nat_check(__u8 *at, __u64 sum, int udp)
{
	__u16 check = get16(at);

	if (udp && check == 0)
		return;
	check = ~csum_fold((__u16)~check + sum);
	if (udp && check == 0)
		check = 0xffff;
	put16(at, check);
}

/* A hop less. */
static __always_inline enum xlb_reason
nat_hop(__u8 *ip, int v6)
{
	__u8 *hops = ip + (v6 ? 7 : 8);
	__u16 was = get16(ip + 8);

	if (*hops <= 1)
		PKT_END(XLB_REASON_ENCAP_FAILED);
	(*hops)--;
	if (!v6)
		put16(ip + 10, csum_replace(get16(ip + 10), was,
		    get16(ip + 8)));
	return PKT_NEXT;
}

/* The packet from `src` to `dst`, with these ports. */
static __always_inline enum xlb_reason
nat_rewrite(const struct nat *n, const __u8 *src, const __u8 *dst,
    __be32 ports)
{
	__u8 *ip = n->p.ip, *l4 = nat_l4(n);
	int udp = n->p.proto == IPPROTO_UDP;
	__u64 sum;

	PKT_STAGE(nat_hop(ip, n->v6));
	sum = nat_addresses(ip, n->v6, src, dst);
	if (n->walk & WALK_LATER)
		return PKT_NEXT;
	if (l4 + PARSE_UDP_LEN > n->p.end)
		PKT_END(XLB_REASON_MALFORMED);
	sum += nat_changed(get32(l4), ports);
	put32(l4, ports);
	if (udp) {
		nat_check(l4 + 6, sum, 1);
		return PKT_NEXT;
	}
	if (l4 + PARSE_TCP_LEN > n->p.end)
		PKT_END(XLB_REASON_MALFORMED);
	nat_check(l4 + 16, sum, 0);
	return PKT_NEXT;
}

/* The link header: the frame moves only where that has another length. */
static __always_inline enum xlb_reason
nat_link(struct nat *n, struct encap *e)
{
	struct pkt *p = &n->p;
	__u8 *data = sys_data(p->ctx);

	if (e->link_len != p->link_len || p->frame_len - p->len > PARSE_PADDING)
		data = encap_room(p, e);
	if (data == NULL || data + e->link_len > sys_end(p->ctx))
		PKT_END(XLB_REASON_ENCAP_FAILED);
	encap_link(p, e, data, be16(n->v6 ? ETH_P_IPV6 : ETH_P_IP));
	return encap_send(p);
}

/* True if it does not fit; told in `rare`. */
static __always_inline int
nat_too_big(const struct nat *n)
{
	struct xlb_rare *r;

	if (n->p.len <= n->p.hop->mtu)
		return 0;
	r = rare_get();
	if (r != NULL)
		r->at = n->p.hop->mtu;
	return 1;
}

/* Who sent the packet here: bits as in struct xlb_nexthop. Two tags are none that
 * a reply could have; 0. */
static __always_inline __u64
nat_came_from(const struct pkt *p)
{
	const __u8 *eth = sys_data(p->ctx);
	__u64 tag = 0;

	if (p->link_len > ETH_HLEN + PARSE_TAG_LEN ||
	    eth + ETH_HLEN + PARSE_TAG_LEN > sys_end(p->ctx))
		return 0;
	if (p->link_len == ETH_HLEN + PARSE_TAG_LEN)
		tag = get16(eth + ETH_HLEN);
	return SYS_LITTLE ?
	    ((__u64)get16(eth + 10) << 32 | get32(eth + 6)) | tag << 48 :
	    ((__u64)get32(eth + 6) << 32 | (__u64)get16(eth + 10) << 16) | tag;
}

static __always_inline const struct xlb_nexthop *
nat_door(const struct pkt *p, __u32 number)
{
	const struct xlb_nexthop *door =
	    &p->tables->door[number & (XLB_DOORS - 1)];

	SYS_OPAQUE(door);
	return door;
}

/* To the client. */
static __always_inline enum xlb_reason
nat_way_back(struct nat *n, struct encap *e)
{
	struct pkt *p = &n->p;

	p->backend = n->row->backend;
	p->hop = nat_door(p, n->row->door);
	if (!(READ_ONCE(p->hop->flags) & XLB_NEXTHOP_VALID))
		PKT_END(XLB_REASON_NO_NEIGHBOR);
	e->mac_vlan = READ_ONCE(n->row->mac_vlan);
	return encap_way(p, e);
}

__u32 xlb_nat_door(__u32 ifindex);

/* The number of the interface that clients' packets come by; XLB_DOORS: none that
 * is known. */
__noinline __u32
xlb_nat_door(__u32 ifindex)
{
	const struct xlb_tables *t = vip_tables();
	__u32 i;

	for (i = 0; i < XLB_DOORS; i++)
		if (t->door[i].ifindex == ifindex)
			return i;
	return XLB_DOORS;
}

/* The way to the client is another one now, for both directions. */
static __always_inline void
nat_moved(const struct nat *n, __u64 mac_vlan)
{
	__u32 door = xlb_nat_door(n->p.ctx->ingress_ifindex);
	struct xlb_nat *peer;

	if (mac_vlan == 0 || door == XLB_DOORS)
		return;
	n->row->mac_vlan = mac_vlan;
	n->row->door = door;
	peer = nat_peer(n->row, READ_ONCE(n->row->word));
	if (peer == NULL)
		return;
	peer->mac_vlan = mac_vlan;
	peer->door = door;
}

static __always_inline void
nat_follow(const struct nat *n)
{
	__u64 from = nat_came_from(&n->p);

	if (n->row->mac_vlan != from || nat_door(&n->p, n->row->door)->ifindex
	    != n->p.ctx->ingress_ifindex)
		nat_moved(n, from);
}

/* The service's own pool has the backend for old flows. */
static __always_inline int
nat_kept(__u64 service, __u32 backend)
{
	const struct flow f = { .service = service };

	return flow_kept(&f, backend);
}

static __always_inline enum xlb_reason
nat_backend(struct nat *n, __u32 backend)
{
	n->p.backend = backend;
	PKT_STAGE(select_backend(&n->p));
	PKT_STAGE(select_hop(&n->p));
	if (encap_is_outer6(&n->p) != !!n->v6)	/* no way from IPv4 to IPv6 */
		PKT_END(XLB_REASON_ENCAP_FAILED);
	return PKT_NEXT;
}

/* The slot's owner, for a flow that has no row, or none that counts. */
static __always_inline __u32
nat_owner(const struct nat *n)
{
	const struct xlb_hash *key = &n->p.tables->settings.hash;
	__u32 select = hash_select(n->p.flow);

	if (XLB_WORD_FLAGS(n->p.service) & XLB_SERVICE_HASH_SOURCE)
		select = hash_select(n->v6 ? hash_source6(key, n->p.src) :
		    hash_source4(key, n->p.src[3]));
	return XLB_SLOT_CUR(select_slot(XLB_WORD_RING(n->p.service), select));
}

/* What new rows of the flow are to say, to the backend that is chosen. They are
 * made by another function, side by side with this one: its stack would have to
 * fit on top of this one's. */
static __always_inline enum xlb_reason
nat_begin(struct nat *n)
{
	const struct nat_key *k = n->key;
	struct xlb_rare *r = rare_get();
	struct pkt *p = &n->p;
	__u32 door = xlb_nat_door(p->ctx->ingress_ifindex), port, i;
	__u64 from = nat_came_from(p);

	if (n->flags & OTHER_AGAIN)
		PKT_END(XLB_REASON_NAT_EXHAUSTED);
	if (r == NULL || door == XLB_DOORS || from == 0 ||
	    (n->walk & WALK_LATER))
		PKT_END(XLB_REASON_ENCAP_FAILED);
	port = p->tables->backend_port[XLB_WORD_NUMBER(p->service) &
	    (XLB_SERVICES - 1)];
	if (port == 0)
		port = be32(p->ports) & 0xffff;
	r->nat.word = (__u32)nat_kind(0, p->proto, 0) | n->tick | nat_ends(p);
	r->nat.ports = k->ports;
	r->nat.back = be32(port << 16);
	r->nat.backend = p->backend;
	r->nat.door = door;
	r->nat.mac_vlan = from;
	for (i = 0; i < 4; i++) {
		put32(r->nat.client + 4 * i, k->src[i]);
		put32(r->nat.vip + 4 * i, k->dst[i]);
	}
	PKT_END(PKT_NAT);
}

/* The flow begins anew in the rows that it has, or in others if its backend is
 * another one now. */
static __always_inline enum xlb_reason
nat_anew(struct nat *n)
{
	struct xlb_nat *peer;

	if (n->p.backend == n->row->backend) {
		nat_touch(n, nat_ends(&n->p), XLB_NAT_STATE);
		nat_follow(n);
		return PKT_NEXT;
	}
	peer = nat_peer(n->row, n->key->word);
	if (peer != NULL)
		nat_drop(peer, READ_ONCE(peer->word), n->tick);
	nat_drop(n->row, n->key->word, n->tick);
	return nat_begin(n);
}

/* A packet of a flow that is known, and goes on. */
static __always_inline void
nat_go_on(const struct nat *n)
{
	const struct pkt *p = &n->p;
	__u32 set = 0;

	if (p->proto == IPPROTO_TCP && !(n->walk & WALK_LATER)) {
		set = nat_ends(p);
		if (!(p->tcp_flags & (PARSE_SYN | PARSE_RST)) &&
		    (n->key->word & XLB_NAT_REPLIED))
			set |= XLB_NAT_ESTABLISHED;
	}
	nat_touch(n, set, nat_goes_on(p));
	nat_follow(n);
}

/* For readers of events, since the packet then has other addresses. */
static __always_inline void
nat_note(const struct nat *n)
{
	const struct nat_key *k = n->key;
	struct xlb_rare *r;
	__u32 i;

	if (!event_wanted(n->p.tables))
		return;
	r = rare_get();
	if (r == NULL)
		return;
	r->nat.ports = k->ports;
	for (i = 0; i < 4; i++) {
		put32(r->nat.client + 4 * i, k->src[i]);
		put32(r->nat.vip + 4 * i, k->dst[i]);
	}
}

static __always_inline enum xlb_reason
nat_forward(struct nat *n)
{
	struct pkt *p = &n->p;
	struct encap e = { 0 };
	int known = nat_find(n, 0), anew;

	anew = known && !(n->flags & OTHER_AGAIN) && (nat_is_old(n) ||
	    !nat_kept(p->service, n->row->backend) ||
	    ((n->key->word & XLB_NAT_CLOSING) && p->proto == IPPROTO_TCP &&
	    (p->tcp_flags & (PARSE_SYN | PARSE_ACK)) == PARSE_SYN));
	PKT_STAGE(nat_backend(n, known && !anew ? n->row->backend :
	    nat_owner(n)));
	PKT_STAGE(encap_begin(p, &e));
	if (p->ip[n->v6 ? 7 : 8] <= 1)	/* begins no flow */
		PKT_END(XLB_REASON_ENCAP_FAILED);
	if (nat_too_big(n))
		return XLB_REASON_TOO_BIG;
	if (!known)
		PKT_STAGE(nat_begin(n));
	else if (anew)
		PKT_STAGE(nat_anew(n));
	else
		nat_go_on(n);
	nat_note(n);
	PKT_STAGE(nat_rewrite(n,
	    p->tables->source[n->row->source & (XLB_NAT_SOURCES - 1)].addr,
	    p->to->addr, n->row->back << 16 | n->row->back >> 16));
	return nat_link(n, &e);
}

static __always_inline void
nat_remember(const struct nat *n)
{
	struct xlb_rare *r;

	if (!(n->walk & WALK_FIRST))
		return;
	r = rare_get();
	if (r != NULL)
		r->nat.backend = n->p.backend;
}

enum { NAT_BEGIN = -5 };	/* no action: a new flow, see nat_any() */

int xlb_nat(struct sys_ctx *ctx, __u64 flow, __u64 service, __u64 packet,
    __u64 to);

/* A client's packet. The action, OTHER_TOO_BIG or NAT_BEGIN. */
__noinline int
xlb_nat(struct sys_ctx *ctx, __u64 flow, __u64 service, __u64 packet, __u64 to)
{
	struct nat_key key = { 0 };
	struct nat n = { .key = &key };
	enum xlb_reason reason;

	n.p.flow = flow;
	n.p.service = service;
	reason = nat_again(&n, ctx, packet, to);
	if (reason == PKT_NEXT)
		reason = nat_forward(&n);
	if (reason == XLB_REASON_TOO_BIG)
		return OTHER_TOO_BIG;
	if (reason == PKT_NAT)
		return NAT_BEGIN;
	nat_remember(&n);
	event_note(reason, service, n.p.backend);
	if (reason != XLB_REASON_FORWARD) {
		nat_dropped(&n.p, reason);
		return XDP_DROP;
	}
	stats_sent(&n.p, reason);
	return n.p.action;
}

static __always_inline enum xlb_reason
nat_reply(struct nat *n)
{
	struct pkt *p = &n->p;
	struct encap e = { 0 };

	if (!nat_find(n, 1) || nat_is_old(n))
		PKT_END(XLB_REASON_NOT_VIP);
	PKT_STAGE(nat_way_back(n, &e));
	if (nat_too_big(n))
		return XLB_REASON_TOO_BIG;
	nat_touch(n, XLB_NAT_REPLIED | (p->proto == IPPROTO_TCP &&
	    !(n->walk & WALK_LATER) ? nat_ends(p) : 0), nat_goes_on(p));
	PKT_STAGE(nat_rewrite(n, n->row->vip, n->row->client,
	    n->row->ports << 16 | n->row->ports >> 16));
	return nat_link(n, &e);
}

int xlb_nat_reply(struct sys_ctx *ctx, __u64 flow, __u64 packet, __u64 to);

/* A packet to an address of ours. The action, or OTHER_TOO_BIG. */
__noinline int
xlb_nat_reply(struct sys_ctx *ctx, __u64 flow, __u64 packet, __u64 to)
{
	struct nat_key key = { 0 };
	struct nat n = { .key = &key };
	enum xlb_reason reason;

	n.p.flow = flow;
	reason = nat_again(&n, ctx, packet, to);
	reason = reason == PKT_NEXT ? nat_reply(&n) : XLB_REASON_NOT_VIP;
	if (reason == XLB_REASON_NOT_VIP)
		return nat_pass();
	if (reason == XLB_REASON_TOO_BIG)
		return OTHER_TOO_BIG;
	nat_remember(&n);
	if (reason == XLB_REASON_FORWARD)
		reason = XLB_REASON_NAT_REPLY;
	event_note(reason, EVENT_NOBODY, n.p.backend);
	stats_reason(reason);
	return reason == XLB_REASON_NAT_REPLY ? n.p.action : XDP_DROP;
}

/* Either direction: sends, or says why not; the action. */
static __always_inline int
nat_any(struct sys_ctx *ctx, __u64 flow, __u64 service, __u64 packet, __u64 to)
{
	int action;

	action = to >> 24 & OTHER_REPLY ? xlb_nat_reply(ctx, flow, packet, to) :
	    xlb_nat(ctx, flow, service, packet, to);
	if (action == NAT_BEGIN) {
		xlb_nat_new(flow);
		to |= OTHER_TO(0, 0, OTHER_AGAIN);
		action = xlb_nat(ctx, flow, service, packet, to);
	}
	return other_end(ctx, service, packet, to, action);
}

#endif
