/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Room for the outer frame, made once in front of the packet.
 */
#ifndef XLB_ENCAP_H
#define XLB_ENCAP_H

#include <linux/if_ether.h>
#include <linux/in.h>

#include "outer.h"

#define ENCAP_VID 0x0fff
/* Ethernet padding that may stay behind the packet: cutting costs 11 ns. */
#define ENCAP_PADDING 6

struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP_HASH);
	__uint(max_entries, XLB_PORTS);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
} tx_ports SEC(".maps");

/* The tag stays as it came if the next hop is on the same VLAN. */
static __always_inline void
encap_tag(const struct pkt *p, struct encap *e, __be16 tag)
{
	const __u8 *came = sys_data(p->ctx) + ETH_HLEN - 2;

	e->link_len = ETH_HLEN + PARSE_TAG_LEN;
	e->tag_type = be16(ETH_P_8021Q);
	e->tag = tag;
	if (p->link_len != e->link_len || came + 4 > sys_end(p->ctx) ||
	    ((get16(came + 2) ^ tag) & be16(ENCAP_VID)) != 0)
		return;
	e->tag_type = get16(came);
	e->tag = get16(came + 2);
}

/* What comes behind the packet is not part of it. */
static __always_inline int
encap_trim(struct pkt *p)
{
	__u32 extra = p->frame_len - p->len;

	if (extra <= ENCAP_PADDING)
		return 0;
	return bpf_xdp_adjust_tail(p->ctx, -(int)extra);
}

/* Room in front for the outer frame; where it begins, or NULL. */
static __always_inline __u8 *
encap_room(struct pkt *p, const struct encap *e)
{
	int grow = e->outer_len + e->link_len - p->link_len;
	__u8 *data;

	if (encap_trim(p) != 0 || bpf_xdp_adjust_head(p->ctx, -grow) != 0)
		return NULL;
	data = sys_data(p->ctx);
	if (data + e->link_len + e->outer_len > sys_end(p->ctx))
		return NULL;
	return data;
}

static __always_inline enum xlb_reason
encap_write(struct pkt *p, const struct encap *e, int outer6)
{
	__u8 *data = encap_room(p, e);

	if (data == NULL)
		PKT_END(XLB_REASON_ENCAP_FAILED);
	encap_link(p, e, data, be16(outer6 ? ETH_P_IPV6 : ETH_P_IP));
	if (outer6)
		encap_outer6(p, e, data + e->link_len);
	else
		encap_outer4(p, e, data + e->link_len);
	return PKT_NEXT;
}

static __always_inline enum xlb_reason
encap_as(struct pkt *p, struct encap *e, int outer6)
{
	e->outer_len = outer6 ? PARSE_IP6_LEN : PARSE_IP4_LEN;
	if (p->len + e->outer_len > p->hop->mtu)
		PKT_END(PKT_SLOW);
	return encap_write(p, e, outer6);
}

/* The outer link header, of `mac_vlan`. */
static __always_inline enum xlb_reason
encap_way(const struct pkt *p, struct encap *e)
{
	__be16 tag;

	if (e->mac_vlan == 0)
		PKT_END(XLB_REASON_NO_NEIGHBOR);
	e->link_len = ETH_HLEN;
	tag = SYS_LITTLE ? e->mac_vlan >> 48 : e->mac_vlan & 0xffff;
	if (tag != 0)
		encap_tag(p, e, tag);
	SYS_OPAQUE(e->link_len);	/* it is tested, not what it is made of */
	return PKT_NEXT;
}

static __always_inline enum xlb_reason
encap_begin(const struct pkt *p, struct encap *e)
{
	e->mac_vlan = READ_ONCE(p->hop->mac_vlan);
	return encap_way(p, e);
}

static __always_inline enum xlb_reason
encap_push(struct pkt *p, int v6)
{
	struct encap e = { 0 };

	PKT_STAGE(encap_begin(p, &e));
	e.proto = v6 ? IPPROTO_IPV6 : IPPROTO_IPIP;
	if (!encap_is_outer6(p))
		return encap_as(p, &e, 0);
	return encap_as(p, &e, 1);
}

/* Back where it came from, or through another interface. */
static __always_inline enum xlb_reason
encap_send(struct pkt *p)
{
	__u32 ifindex = p->hop->ifindex;

	if (ifindex == p->ctx->ingress_ifindex) {
		p->action = XDP_TX;
		return XLB_REASON_FORWARD;
	}
	p->action = bpf_redirect_map(&tx_ports, ifindex, XDP_DROP);
	if (p->action != XDP_REDIRECT)
		PKT_END(XLB_REASON_ENCAP_FAILED);
	return XLB_REASON_FORWARD;
}

#endif
