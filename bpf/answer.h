/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A packet of our own, from the VIP to the client, back the way one came. */
#ifndef XLB_ANSWER_H
#define XLB_ANSWER_H

#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/in6.h>

#include "encap.h"
#include "rare.h"

#define ANSWER_FRAME 60		/* the smallest on the wire */

/* The link header that came, tags included. */
struct answer {
	__u32 dst, src;		/* first four bytes */
	__u16 dst_rest, src_rest;
	__u16 type;
	__u32 tag[2];
};

/* False: what came to a group gets no answer (RFC 1122). */
static __always_inline int
answer_save(const struct pkt *p, struct answer *a)
{
	const __u8 *eth = sys_data(p->ctx);

	if (eth + p->link_len > sys_end(p->ctx) ||
	    eth + ETH_HLEN > sys_end(p->ctx) || (eth[0] & 1))
		return 0;
	a->dst = get32(eth);
	a->dst_rest = get16(eth + 4);
	a->src = get32(eth + 6);
	a->src_rest = get16(eth + 10);
	a->type = get16(eth + 12);
	if (p->link_len > ETH_HLEN &&
	    eth + ETH_HLEN + PARSE_TAG_LEN <= sys_end(p->ctx))
		a->tag[0] = get32(eth + 14);
	if (p->link_len > ETH_HLEN + PARSE_TAG_LEN &&
	    eth + ETH_HLEN + 2 * PARSE_TAG_LEN <= sys_end(p->ctx))
		a->tag[1] = get32(eth + 18);
	return 1;
}

/* Moves the frame's start by `shift`. Room for the link and IP header and 8
 * bytes more is there, or NULL. */
static __always_inline __u8 *
answer_room(struct pkt *p, int shift, __u32 ip_len)
{
	__u8 *eth;

	if (bpf_xdp_adjust_head(p->ctx, shift) != 0)
		return NULL;
	eth = sys_data(p->ctx);
	if (eth + ETH_HLEN + 2 * PARSE_TAG_LEN > sys_end(p->ctx) ||
	    eth + p->link_len + ip_len + 8 > sys_end(p->ctx))
		return NULL;
	return eth;
}

static __always_inline void
answer_link(const struct pkt *p, const struct answer *a, __u8 *eth)
{
	put32(eth, a->src);
	put16(eth + 4, a->src_rest);
	put32(eth + 6, a->dst);
	put16(eth + 10, a->dst_rest);
	put16(eth + 12, a->type);
	if (p->link_len > ETH_HLEN)
		put32(eth + 14, a->tag[0]);
	if (p->link_len > ETH_HLEN + PARSE_TAG_LEN)
		put32(eth + 18, a->tag[1]);
}

/* `id` is the word of id, flags and offset, as on the wire. */
static __always_inline void
answer_ip4(const struct pkt *p, __u8 *ip, __u32 first, __be32 id)
{
	__be32 word = be32(first);
	__be32 next = be32(ENCAP_TTL << 24 | IPPROTO_ICMP << 16);

	put32(ip, word);
	put32(ip + 4, id);
	put32(ip + 8, next);
	put16(ip + 10, ~csum_fold((__u64)word + id + next + p->src[3] +
	    p->dst[3]));
	put32(ip + 12, p->dst[3]);
	put32(ip + 16, p->src[3]);
}

/* `word` is that of version, class and label, as on the wire. */
static __always_inline void
answer_ip6(const struct pkt *p, __u8 *ip, __u32 len, __be32 word)
{
	__u32 i;

	put32(ip, word);
	put32(ip + 4, be32(len << 16 | IPPROTO_ICMPV6 << 8 | ENCAP_TTL));
	for (i = 0; i < 4; i++) {
		put32(ip + 8 + 4 * i, p->dst[i]);
		put32(ip + 24 + 4 * i, p->src[i]);
	}
}

#endif
