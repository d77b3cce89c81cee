/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The outer headers, in four mixes of families, and the link header: all is
 * written as words. They are the same for a client's packet and for a probe.
 */
#ifndef XLB_OUTER_H
#define XLB_OUTER_H

#include <linux/if_ether.h>
#include <linux/in.h>

#include "csum.h"
#include "hash.h"
#include "parse.h"

#define ENCAP_TTL 64
#define ENCAP_DF 0x4000
#define OUTER_PORTS 0x8000	/* GUE: the upper half of the source ports */

/* What the outer packet is made of, read before the frame moves. */
struct encap {
	__u64 mac_vlan;
	__u32 link_len;		/* of the outer frame */
	__u32 outer_len;	/* of the outer IP header, and UDP's */
	__be32 tag;		/* type and TCI, as on the wire; 0: none */
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
	word[0] = be32(p->first + e->outer_len);
	word[1] = be32(ENCAP_DF);
	word[2] = be32(ENCAP_TTL << 24 | (__u32)e->proto << 16);
	sum = (__u64)word[0] + (word[1] + word[2]) + src + dst;
	put32(ip, word[0]);
	put64(ip + 4, pair64(word[1], word[2]));
	put16(ip + 10, ~csum_fold(sum));
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
	put32(ip, be32(6U << 28 | PKT_TOS(p->first) << 20 |
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
		put32(eth + 12, e->tag);
		eth += PARSE_TAG_LEN;
	}
	put16(eth + 12, ethertype);
}

static __always_inline int
encap_is_outer6(const struct pkt *p)
{
	return get64(p->to->addr) != 0 ||
	    get32(p->to->addr + 8) != be32(PARSE_V4_MAPPED);
}

/*
 * The sum of a whole packet from its headers alone: what is behind the IP
 * header sums to nothing together with its pseudo header, if its checksum is
 * right, or will be.
 */
static __always_inline __u64
outer_inner_sum(const __u8 *ip, int v6, __u8 proto, __u32 l4_len)
{
	__u64 sum = (__u64)get32(ip) + get32(ip + 4);

	if (!v6)
		sum += get32(ip + 8);
	if (proto == IPPROTO_ICMP)
		return sum + get32(ip + 12) + get32(ip + 16);
	return sum + (__u16)~be16(l4_len) + (__u16)~be16(proto);
}

/* The outer UDP header. Over IPv4 it goes without checksum. */
static __always_inline void
outer_udp(const struct pkt *p, __u8 *udp, __u64 sum, int outer6)
{
	const __u8 *ip = udp - PARSE_IP6_LEN;
	__u32 len = p->len + PARSE_UDP_LEN, i;
	__u32 source = OUTER_PORTS | ((__u32)p->flow & (OUTER_PORTS - 1));
	__be32 ports, rest;
	__u16 check = 0;

	ports = be32(source << 16 | p->tables->settings.gue_port);
	rest = be32(len << 16);
	if (outer6) {
		sum = csum_fold(sum);
		for (i = 8; i < PARSE_IP6_LEN; i += 4)
			sum += get32(ip + i);
		sum += (__u64)ports + rest + be32(len) + be32(IPPROTO_UDP);
		check = ~csum_fold(sum);
		if (check == 0)
			check = 0xffff;
	}
	put32(udp, ports);
	put32(udp + 4, rest);
	put16(udp + 6, check);
}

#endif
