/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The load balancer's packet program: a list of stages, read from the top. */
#include "pkt.h"
#include "parse.h"
#include "vip.h"
#include "select.h"
#include "flow.h"
#include "encap.h"
#include "stats.h"
#include "slow.h"
#include "events.h"

/* Not for packets: xlbd's own, loaded and pinned with the rest. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, XLB_HEALTH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct xlb_health_key);
	__type(value, struct xlb_health);
} health SEC(".maps");

struct xlb_grace {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__array(values, struct xlb_grace);
} grace SEC(".maps");

/* Out of the ordinary packet's way: to the backend and by the flags of `to`. */
static __always_inline enum xlb_reason
xlb_send_other(struct pkt *p, int v6, __u32 to)
{
	p->action = other(p->ctx, p->flow, p->service, OTHER_PACKET(p->len,
	    p->link_len, v6 ? PARSE_IP6_LEN : PARSE_IP4_LEN, 0),
	    to | OTHER_TO(0, p->proto, v6 ? OTHER_V6 : 0));
	PKT_END(PKT_DONE);
}

/* The slot's backend is p->backend; where the packet goes is an answer of
 * xlb_flow(), which is the same where the flow is not known to be elsewhere. */
static __always_inline __u32
xlb_where(struct pkt *p, int v6)
{
	__u32 word = select_slot(XLB_WORD_RING(p->service), p->hash);

	p->backend = XLB_SLOT_CUR(word);
	if (!flow_is_looked_up(p, word) || flow_is_skipped(p, word))
		return p->backend;
	return xlb_flow(p->ctx, p->flow, FLOW_WHERE(word, p->hash), p->service,
	    FLOW_PACKET(OTHER_PACKET(p->len, p->link_len,
	    v6 ? PARSE_IP6_LEN : PARSE_IP4_LEN, 0),
	    p->tcp_flags != 0 ? p->tcp_flags : FLOW_UDP));
}

/* Either direction of a flow whose addresses are translated. */
static __always_inline enum xlb_reason
xlb_translate(struct pkt *p, int v6, __u32 flags)
{
	p->action = nat_any(p->ctx, p->flow, p->service, OTHER_PACKET(p->len,
	    p->link_len, v6 ? PARSE_IP6_LEN : PARSE_IP4_LEN, 0),
	    OTHER_TO(0, p->proto, (v6 ? OTHER_V6 : 0) | flags));
	PKT_END(PKT_DONE);
}

/* To an address of our own, where replies are among what the host gets. */
static __always_inline enum xlb_reason
xlb_own(struct pkt *p, int v6)
{
	enum xlb_reason reason;

	parse_source(p, v6);
	reason = v6 ? parse_header6(p) : parse_header4(p);
	if (reason == PKT_NEXT)
		reason = parse_ports(p);
	if (reason != PKT_NEXT)		/* headers may be in the next buffer */
		PKT_END(PKT_SLOW);
	if (((be32(p->ports) - XLB_NAT_PORT) & 0xffff) >= XLB_NAT_PORTS)
		PKT_END(PKT_ELSE);
	select_hash(p, v6);
	return xlb_translate(p, v6, OTHER_REPLY);
}

/* From here on the packet counts for its service. */
static __always_inline enum xlb_reason
xlb_serve(struct pkt *p, int v6)
{
	enum xlb_reason how = select_hash(p, v6);
	__u32 to;

	if (how == PKT_NAT)
		return xlb_translate(p, v6, 0);
	if (how == PKT_OTHER)
		return xlb_send_other(p, v6, xlb_where(p, v6));
	to = xlb_where(p, v6);
	if (to != p->backend)	/* so nothing has to be carried along for it */
		return xlb_send_other(p, v6, to);
	PKT_STAGE(select_backend(p));
	PKT_STAGE(select_hop(p));
	PKT_STAGE(encap_push(p, v6));
	return encap_send(p);
}

static __always_inline enum xlb_reason
xlb_balance(struct pkt *p, int v6)
{
	enum xlb_reason reason;

	PKT_STAGE(v6 ? parse_address6(p) : parse_address4(p));
	reason = vip_match(p, 0);
	if (reason == PKT_OWN)
		return xlb_own(p, v6);
	if (reason != PKT_NEXT)
		PKT_END(PKT_ELSE);
	parse_source(p, v6);
	PKT_STAGE(v6 ? parse_header6(p) : parse_header4(p));
	PKT_STAGE(parse_ports(p));
	PKT_STAGE(vip_source(p, v6));
	reason = vip_service(p, 0);
	if (reason == PKT_OWN)	/* a VIP, too */
		PKT_END(PKT_SLOW);
	PKT_STAGE(reason);
	reason = xlb_serve(p, v6);
	if (reason != XLB_REASON_FORWARD && reason < PKT_NEXT)
		stats_drop(p);
	return reason;
}

static __always_inline enum xlb_reason
xlb_packet(struct pkt *p)
{
	PKT_STAGE(parse_link(p));
	if (p->ethertype == be16(ETH_P_IP))
		return xlb_balance(p, 0);
	if (p->ethertype == be16(ETH_P_IPV6))
		return xlb_balance(p, 1);
	if (parse_is_tag(p->ethertype))
		PKT_END(PKT_SLOW);
	return XLB_REASON_NOT_VIP;
}

int xlb(struct sys_ctx *ctx);	/* the host's tests call it by this name */

SEC("xdp")
int
xlb(struct sys_ctx *ctx)
{
	struct pkt p = { .ctx = ctx, .pos = sys_data(ctx), .end = sys_end(ctx),
	    .tables = vip_tables() };
	enum xlb_reason reason;

	reason = xlb_packet(&p);
	if (reason == XLB_REASON_FORWARD) {
		stats_sent(&p, XLB_REASON_FORWARD);
		event_end(&p, XLB_REASON_FORWARD);
		return p.action;
	}
	if (reason == PKT_ELSE) {
		stats_reason(XLB_REASON_NOT_VIP);
		event_end(&p, XLB_REASON_NOT_VIP);
		return XDP_PASS;
	}
	if (pull_helps(ctx, reason))
		reason = PKT_SLOW;
	if (reason == PKT_SLOW)
		p.action = slow(ctx);
	if (reason == PKT_SLOW || reason == PKT_DONE) {
		event_noted(ctx);
		return p.action;
	}
	stats_reason(reason);
	if (reason != XLB_REASON_NOT_VIP)	/* it is no IP packet */
		event_end(&p, reason);
	return reason_verdict(reason) == VERDICT_PASS ? XDP_PASS : XDP_DROP;
}

char LICENSE[] SEC("license") = "GPL";
