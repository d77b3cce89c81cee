/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From bytes to addresses, protocol and ports. Up to the destination address
 * anything odd is not for a VIP and passes; what comes behind it is looked at
 * only after the VIP has matched.
 */
#ifndef XLB_PARSE_H
#define XLB_PARSE_H

#include <linux/if_ether.h>
#include <linux/in.h>

#include "pkt.h"

#define PARSE_V4_MAPPED 0x0000ffffU	/* third word of ::ffff:a.b.c.d, host */
#define PARSE_IP4_LEN 20U
#define PARSE_IP6_LEN 40U
#define PARSE_TCP_LEN 20U
#define PARSE_UDP_LEN 8U
#define PARSE_TAG_LEN 4U
/* Ethernet padding that may stay behind the packet: cutting costs 11 ns. */
#define PARSE_PADDING 6
#define PARSE_IP4_PLAIN 0x45	/* version 4, no options */
#define PARSE_FRAGMENT 0x3fff	/* IPv4: more fragments, or an offset */
#define PARSE_FRAGMENT_OFFSET 0x1fff

enum { PARSE_FIN = 1, PARSE_SYN = 2, PARSE_RST = 4, PARSE_PSH = 8,
    PARSE_ACK = 16, PARSE_FLAGS = 0x3f };

/* The program is marked xdp.frags: a frame may have more than one buffer. */
SYS_RODATA __u8 frags = 0;

/* Bytes of all of it. The helper call is not for those who have one buffer. */
static __always_inline __u32
parse_frame_len(struct sys_ctx *ctx)
{
	return frags ? bpf_xdp_get_buff_len(ctx) :
	    (__u32)(sys_end(ctx) - sys_data(ctx));
}

static __always_inline int
parse_is_tag(__u32 ethertype)
{
	return ethertype == be16(ETH_P_8021Q) || ethertype == be16(ETH_P_8021AD);
}

/* Ethernet and at most one 802.1Q or 802.1ad tag. Most packets have none, and
 * are told so by the first tests; clang would make a search of them all. */
static __always_inline enum xlb_reason
parse_link(struct pkt *p)
{
	const __u8 *eth = pkt_pull(p, ETH_HLEN), *tag;
	__u32 type;

	if (eth == NULL)
		PKT_END(XLB_REASON_NOT_VIP);
	p->link_len = ETH_HLEN;
	p->ethertype = type = get16(eth + 12);
	if (type == be16(ETH_P_IP))
		return PKT_NEXT;
	SYS_OPAQUE(type);
	p->ethertype = type;
	if (type == be16(ETH_P_IPV6))
		return PKT_NEXT;
	SYS_OPAQUE(type);
	p->ethertype = type;
	if (!parse_is_tag(type))
		return PKT_NEXT;
	tag = pkt_pull(p, PARSE_TAG_LEN);
	if (tag == NULL)
		PKT_END(XLB_REASON_NOT_VIP);
	p->link_len = ETH_HLEN + PARSE_TAG_LEN;
	p->ethertype = get16(tag + 2);
	return PKT_NEXT;
}

static __always_inline enum xlb_reason
parse_address4(struct pkt *p)
{
	p->ip = pkt_pull(p, PARSE_IP4_LEN);
	if (p->ip == NULL)
		PKT_END(XLB_REASON_NOT_VIP);
	p->dst[0] = p->dst[1] = 0;
	p->dst[2] = be32(PARSE_V4_MAPPED);
	p->dst[3] = get32(p->ip + 16);
	return PKT_NEXT;
}

static __always_inline int
parse_is_mapped(const __be32 addr[4])
{
	return (addr[0] | addr[1]) == 0 && addr[2] == be32(PARSE_V4_MAPPED);
}

static __always_inline enum xlb_reason
parse_address6(struct pkt *p)
{
	p->ip = pkt_pull(p, PARSE_IP6_LEN);
	if (p->ip == NULL)
		PKT_END(XLB_REASON_NOT_VIP);
	p->dst[0] = get32(p->ip + 24);
	p->dst[1] = get32(p->ip + 28);
	p->dst[2] = get32(p->ip + 32);
	p->dst[3] = get32(p->ip + 36);
	/* on the wire that form is nobody's, least of all an IPv4 VIP's */
	if (parse_is_mapped(p->dst))
		PKT_END(XLB_REASON_NOT_VIP);
	return PKT_NEXT;
}

/* Only of what is for a VIP. */
static __always_inline void
parse_source(struct pkt *p, int v6)
{
	p->src[0] = v6 ? get32(p->ip + 8) : 0;
	p->src[1] = v6 ? get32(p->ip + 12) : 0;
	p->src[2] = v6 ? get32(p->ip + 16) : be32(PARSE_V4_MAPPED);
	p->src[3] = get32(p->ip + (v6 ? 20 : 12));
}

/* The frame must hold what the IP header says; it may hold more. */
static __always_inline enum xlb_reason
parse_length(struct pkt *p, __u32 header_len)
{
	p->frame_len = p->end - p->ip;
	if (p->len > p->frame_len || frags)
		p->frame_len = bpf_xdp_get_buff_len(p->ctx) - p->link_len;
	if (p->len < header_len || p->len > p->frame_len)
		PKT_END(XLB_REASON_MALFORMED);
	p->l4_len = p->len - header_len;
	return PKT_NEXT;
}

/*
 * An ordinary frame holds what the IP header says and no more than a short
 * one's padding, which stays: one test for all. A length that is less than the
 * headers does not pass it, since those of TCP and UDP have to be there, too.
 */
static __always_inline enum xlb_reason
parse_whole(struct pkt *p, __u32 header_len)
{
	__u32 have = p->end - p->ip;

	if (frags)
		have = bpf_xdp_get_buff_len(p->ctx) - p->link_len;
	if (have - p->len > PARSE_PADDING)
		PKT_END(PKT_SLOW);
	p->frame_len = p->len;
	p->l4_len = p->len - header_len;
	return PKT_NEXT;
}

/* Options and fragments are not ordinary, and a version that lies is not worth
 * a test of its own here. */
static __always_inline enum xlb_reason
parse_header4(struct pkt *p)
{
	__u32 word = be32(get32(p->ip));

	p->first = word;
	p->len = word & 0xffff;
	p->proto = p->ip[9];
	if (word >> 24 != PARSE_IP4_PLAIN)
		PKT_END(PKT_SLOW);
	if (get16(p->ip + 6) & be16(PARSE_FRAGMENT))
		PKT_END(PKT_SLOW);
	return parse_whole(p, PARSE_IP4_LEN);
}

/* All but its length. */
static __always_inline enum xlb_reason
parse_words6(struct pkt *p)
{
	__u32 word = be32(get32(p->ip));

	p->len = PARSE_IP6_LEN + be16(get16(p->ip + 4));
	p->first = PKT_FIRST(word >> 20 & 0xff, p->len);
	p->proto = p->ip[6];
	if (word >> 28 != 6)
		PKT_END(XLB_REASON_MALFORMED);
	return PKT_NEXT;
}

static __always_inline enum xlb_reason
parse_header6(struct pkt *p)
{
	PKT_STAGE(parse_words6(p));
	return parse_whole(p, PARSE_IP6_LEN);
}

static __always_inline enum xlb_reason
parse_tcp(struct pkt *p)
{
	const __u8 *tcp = pkt_pull(p, PARSE_TCP_LEN);
	__u32 header_len;

	if (tcp == NULL)
		PKT_END(XLB_REASON_MALFORMED);
	header_len = (tcp[12] >> 4) * 4;
	if (header_len < PARSE_TCP_LEN || header_len > p->l4_len)
		PKT_END(XLB_REASON_MALFORMED);
	p->tcp_flags = tcp[13] & PARSE_FLAGS;
	if (p->tcp_flags == 0)
		PKT_END(XLB_REASON_MALFORMED);
	if ((p->tcp_flags & PARSE_SYN) &&
	    (p->tcp_flags & (PARSE_FIN | PARSE_RST)))
		PKT_END(XLB_REASON_MALFORMED);
	p->ports = get32(tcp);
	return PKT_NEXT;
}

/* A first fragment holds less than the datagram's length. */
static __always_inline enum xlb_reason
parse_udp(struct pkt *p, int whole)
{
	const __u8 *udp = pkt_pull(p, PARSE_UDP_LEN);
	__u32 len;

	if (udp == NULL)
		PKT_END(XLB_REASON_MALFORMED);
	len = be16(get16(udp + 4));
	if (len < PARSE_UDP_LEN || (whole ? len : PARSE_UDP_LEN) > p->l4_len)
		PKT_END(XLB_REASON_MALFORMED);
	p->tcp_flags = 0;
	p->ports = get32(udp);
	return PKT_NEXT;
}

/* Other protocols are ICMP, IPv6 extension headers, or have no service. */
static __always_inline enum xlb_reason
parse_ports(struct pkt *p)
{
	if (p->proto == IPPROTO_TCP)
		return parse_tcp(p);
	if (p->proto == IPPROTO_UDP)
		return parse_udp(p, 1);
	PKT_END(PKT_SLOW);
}

#endif
