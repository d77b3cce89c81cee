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

struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP_HASH);
	__uint(max_entries, XLB_PORTS);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
} tx_ports SEC(".maps");

/* The next hop's tag: as it came if that is of the same VLAN. */
static __always_inline __be32
encap_tag(const struct pkt *p, __be16 tci)
{
	const __u8 *came = sys_data(p->ctx) + ETH_HLEN - 2;

	if (p->link_len != ETH_HLEN + PARSE_TAG_LEN ||
	    came + PARSE_TAG_LEN > sys_end(p->ctx) ||
	    ((get16(came + 2) ^ tci) & be16(ENCAP_VID)) != 0)
		return be32((__u32)ETH_P_8021Q << 16 | be16(tci));
	return get32(came);
}

/* What comes behind the packet is not part of it. */
static __always_inline int
encap_trim(struct pkt *p)
{
	__u32 extra = p->frame_len - p->len;

	if (extra <= PARSE_PADDING)
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
	SYS_NEVER(data == NULL);
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

static __always_inline __be16
encap_tci(const struct encap *e)
{
	return SYS_LITTLE ? e->mac_vlan >> 48 : e->mac_vlan & 0xffff;
}

/* The outer link header, of `mac_vlan`. */
static __always_inline enum xlb_reason
encap_way(const struct pkt *p, struct encap *e)
{
	__be16 tci = encap_tci(e);

	if (e->mac_vlan == 0)
		PKT_END(XLB_REASON_NO_NEIGHBOR);
	e->link_len = ETH_HLEN;
	if (tci != 0) {
		e->link_len += PARSE_TAG_LEN;
		e->tag = encap_tag(p, tci);
	}
	SYS_OPAQUE(e->link_len);	/* it is tested, not what it is made of */
	return PKT_NEXT;
}

static __always_inline enum xlb_reason
encap_begin(const struct pkt *p, struct encap *e)
{
	e->mac_vlan = READ_ONCE(p->hop->mac_vlan);
	return encap_way(p, e);
}

/* The outer header is of the backend's family. */
static __always_inline enum xlb_reason
encap_either(struct pkt *p, struct encap *e)
{
	if (!encap_is_outer6(p))
		return encap_as(p, e, 0);
	return encap_as(p, e, 1);
}

/* With a tag or without, each has code of its own, where the place of every
 * word is a constant. */
static __always_inline enum xlb_reason
encap_push(struct pkt *p, int v6)
{
	struct encap e = { .mac_vlan = READ_ONCE(p->hop->mac_vlan),
	    .proto = v6 ? IPPROTO_IPV6 : IPPROTO_IPIP };
	__be16 tci = encap_tci(&e);

	if (e.mac_vlan == 0)
		PKT_END(XLB_REASON_NO_NEIGHBOR);
	e.link_len = ETH_HLEN;
	if (tci == 0)
		return encap_either(p, &e);
	e.link_len += PARSE_TAG_LEN;
	e.tag = encap_tag(p, tci);
	return encap_either(p, &e);
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
