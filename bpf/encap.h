/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The outer header, in four mixes of families, and the link header: room is
 * made once, then all is written as words.
 */
#ifndef XLB_ENCAP_H
#define XLB_ENCAP_H

#include <linux/if_ether.h>
#include <linux/in.h>

#include "hash.h"
#include "parse.h"

#define ENCAP_TTL 64
#define ENCAP_DF 0x4000
#define ENCAP_VID 0x0fff
/* Ethernet padding that may stay behind the packet: cutting costs 11 ns. */
#define ENCAP_PADDING 6

struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP_HASH);
	__uint(max_entries, XLB_PORTS);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
} tx_ports SEC(".maps");

/* What the outer packet is made of, read before the frame moves. */
struct encap {
	__u64 mac_vlan;
	__u32 link_len;		/* of the outer frame */
	__u32 outer_len;	/* of the outer IP header, and UDP's */
	__u16 tag_type, tag;	/* wire */
	__u8 proto;		/* of the inner packet, or UDP */
	__u8 own;		/* outer source: this node's address */
};

/* RFC 2003, with DF set and so without an id (RFC 6864). */
static __always_inline void
encap_outer4(const struct pkt *p, const struct encap *e, __u8 *ip)
{
	const struct xlb_settings *s = &p->tables->settings;
	__be32 src = s->source4, dst = get32(p->to->addr + 12), word[3];
	__u64 sum;

	if (src != 0 && !e->own)
		src |= (__u32)p->flow & s->source4_mask;
	else
		src = get32(p->hop->src + 12);
	word[0] = be32(0x45U << 24 | (__u32)p->tos << 16 |
	    (p->len + e->outer_len));
	word[1] = be32(ENCAP_DF);
	word[2] = be32(ENCAP_TTL << 24 | (__u32)e->proto << 16);
	sum = (__u64)word[0] + (word[1] + word[2]) + src + dst;
	sum = (sum >> 32) + (__u32)sum;
	sum = (sum >> 16) + (sum & 0xffff);
	sum = (sum >> 16) + sum;
	put32(ip, word[0]);
	put32(ip + 4, word[1]);
	put32(ip + 8, word[2]);
	put16(ip + 10, ~sum);
	put32(ip + 12, src);
	put32(ip + 16, dst);
}

static __always_inline void
encap_source6(const struct pkt *p, const struct encap *e, __u8 *at)
{
	const struct xlb_settings *s = &p->tables->settings;
	__u64 high = get64(s->source6), low = get64(s->source6 + 8);

	if ((high | low) != 0 && !e->own) {
		low |= p->flow & get64(s->source6_mask + 8);
	} else {
		high = get64(p->hop->src);
		low = get64(p->hop->src + 8);
	}
	put64(at, high);
	put64(at + 8, low);
}

/* RFC 2473, the flow label after RFC 6438. */
static __always_inline void
encap_outer6(const struct pkt *p, const struct encap *e, __u8 *ip)
{
	put32(ip, be32(6U << 28 | (__u32)p->tos << 20 |
	    ((__u32)p->flow & 0xfffff)));
	put32(ip + 4, be32((p->len + e->outer_len - PARSE_IP6_LEN) << 16 |
	    (__u32)e->proto << 8 | ENCAP_TTL));
	encap_source6(p, e, ip + 8);
	put64(ip + 24, get64(p->to->addr));
	put64(ip + 32, get64(p->to->addr + 8));
}

/* Two words as they lie in the row, destination and tag, source and MTU; each
 * is followed by what belongs in the place of its last two bytes. */
static __always_inline void
encap_link(const struct pkt *p, const struct encap *e, __u8 *eth,
    __u16 ethertype)
{
	put64(eth, e->mac_vlan);
	put64(eth + 6, get64(p->hop->src_mac));
	if (e->link_len > ETH_HLEN) {
		put16(eth + 12, e->tag_type);
		put16(eth + 14, e->tag);
		eth += PARSE_TAG_LEN;
	}
	put16(eth + 12, ethertype);
}

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

/* The outer link header. */
static __always_inline enum xlb_reason
encap_begin(const struct pkt *p, struct encap *e)
{
	__be16 tag;

	e->mac_vlan = READ_ONCE(p->hop->mac_vlan);
	if (e->mac_vlan == 0)
		PKT_END(XLB_REASON_NO_NEIGHBOR);
	e->link_len = ETH_HLEN;
	tag = SYS_LITTLE ? e->mac_vlan >> 48 : e->mac_vlan & 0xffff;
	if (tag != 0)
		encap_tag(p, e, tag);
	SYS_OPAQUE(e->link_len);	/* it is tested, not what it is made of */
	return PKT_NEXT;
}

static __always_inline int
encap_is_outer6(const struct pkt *p)
{
	return get64(p->to->addr) != 0 ||
	    get32(p->to->addr + 8) != be32(PARSE_V4_MAPPED);
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
