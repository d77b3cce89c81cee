/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Over the IPv6 extension headers: a bounded walk, of a packet and of what an
 * ICMPv6 error quotes. A function of its own, which the verifier looks at once,
 * so all that goes in and out is numbers.
 */
#ifndef XLB_WALK_H
#define XLB_WALK_H

#include <linux/in.h>
#include <linux/in6.h>

#include "parse.h"
#include "rare.h"

#define WALK_MAX 8		/* headers */
#define WALK_LEN 8U		/* the shortest one */
/* Bounds an offset: two of them are a packet's, to the verifier. A first buffer
 * is never that long. */
#define WALK_OFFSET 0x3fff
#define WALK_FRAGMENT_OFFSET 0xfff8	/* IPv6 */
#define WALK_FRAGMENT_MORE 1

/* What the walk met. */
enum {
	WALK_BAD = 1,		/* malformed */
	WALK_FIRST = 2,		/* first fragment of several */
	WALK_LATER = 4,		/* a later one: no transport header in it */
	WALK_DF = 8		/* IPv4: not to be cut */
};

/* Where it ended: bits 0-15 offset, 16-23 protocol, 24-31 WALK_*, 32-63 the
 * fragment's id as on the wire. */
#define WALK(offset, proto, flags, id) ((__u64)(offset) | \
    (__u64)(proto) << 16 | (__u64)(flags) << 24 | (__u64)(id) << 32)
#define WALK_AT(w)	((__u32)(w) & WALK_OFFSET)
#define WALK_PROTO(w)	((__u8)((w) >> 16))
#define WALK_FLAGS(w)	((__u32)((w) >> 24 & 0xff))
#define WALK_ID(w)	((__be32)((w) >> 32))

/* A packet that is not ordinary. */
struct slow {
	struct pkt p;
	int v6;
	__u32 l4;		/* where the transport header is, from `ip` on */
	__u32 walk;		/* WALK_* */
	__be32 id;		/* of a fragment, wire */
	__u32 flags;		/* OTHER_* */
	__u32 quote;		/* of an ICMP error: the quoted transport
				 * header, from `ip` on */
};

#define SLOW_LINK(len, ethertype) ((__u32)(len) << 16 | (ethertype))

__u32 xlb_link(struct sys_ctx *ctx);

/* Ethernet and at most two tags: their length, and the ethertype as on the
 * wire; 0: neither IP nor IPv6. A function, so that the verifier goes through
 * the rest once and not for each length. */
__noinline __u32
xlb_link(struct sys_ctx *ctx)
{
	const __u8 *end = sys_end(ctx), *at = sys_data(ctx);
	__u32 i, len = ETH_HLEN;
	__be16 type;

	for (i = 0; i < 3; i++, len += PARSE_TAG_LEN) {
		if (at + len > end)
			return 0;
		type = get16(at + len - 2);
		if (type == be16(ETH_P_IP) || type == be16(ETH_P_IPV6))
			return SLOW_LINK(len, type);
		if (!parse_is_tag(type))
			return 0;
	}
	return 0;
}

static __always_inline int
walk_is_extension(__u32 proto)
{
	return proto == IPPROTO_HOPOPTS || proto == IPPROTO_ROUTING ||
	    proto == IPPROTO_FRAGMENT || proto == IPPROTO_DSTOPTS ||
	    proto == IPPROTO_AH;
}

/* Bytes of this header; the fragment header is dealt with elsewhere. */
static __always_inline __u32
walk_len(const __u8 *header, __u32 proto)
{
	__u32 n = header[1];

	if (proto == IPPROTO_AH)
		return (n + 2) * 4;	/* RFC 4302 */
	return (n + 1) * 8;
}

__u64 xlb_walk(struct sys_ctx *ctx, __u32 at, __u32 proto);

/*
 * From the header of type `proto` at `at`, counted from the frame's start, to
 * the first that is no extension header. RFC 8200: hop-by-hop options only come
 * first, a fragment header only once.
 */
__noinline __u64
xlb_walk(struct sys_ctx *ctx, __u32 at, __u32 proto)
{
	const __u8 *end = sys_end(ctx), *header;
	struct xlb_rare *r = rare_get();
	__u32 i, word, flags = 0, fragment = 0;

	if (r == NULL)
		return WALK(0, 0, WALK_BAD, 0);
	r->id = 0;
	r->at = at;
	for (i = 0; i < WALK_MAX && walk_is_extension(proto); i++) {
		/* in memory, where the verifier knows nothing of it: what it
		 * remembers it tries in all combinations */
		at = READ_ONCE(r->at);
		if (at > WALK_OFFSET)
			return WALK(0, 0, WALK_BAD, 0);
		header = sys_data(ctx) + at;
		if (header + WALK_LEN > end)
			return WALK(0, 0, WALK_BAD, 0);
		if (proto == IPPROTO_HOPOPTS && i > 0)
			return WALK(0, 0, WALK_BAD, 0);
		if (proto != IPPROTO_FRAGMENT) {
			r->at = at + walk_len(header, proto);
			proto = header[0];
			continue;
		}
		if (fragment)
			return WALK(0, 0, WALK_BAD, 0);
		fragment = 1;
		word = be16(get16(header + 2));
		r->id = get32(header + 4);
		r->at = at + WALK_LEN;
		proto = header[0];
		if (word & WALK_FRAGMENT_OFFSET)
			return WALK(r->at, proto, WALK_LATER, r->id);
		if (word & WALK_FRAGMENT_MORE)
			flags = WALK_FIRST;
	}
	if (walk_is_extension(proto) || r->at > WALK_OFFSET)
		return WALK(0, 0, WALK_BAD, 0);
	return WALK(r->at, proto, flags, r->id);
}

/* The host has the VIP's address, too. What is to one of our own has no VIP. */
static __always_inline int
slow_is_local(const struct pkt *p)
{
	return p->vip != NULL && (p->vip->flags & XLB_VIP_LOCAL);
}

static __always_inline enum xlb_reason
slow_unserved(const struct pkt *p)
{
	if (slow_is_local(p))
		PKT_END(XLB_REASON_VIP_LOCAL);
	PKT_END(XLB_REASON_NO_SERVICE);
}

/* Bits 0-23 length, 24-31 link header, 32-47 the transport header's place
 * behind the IP header, 48-55 WALK_*. */
#define OTHER_PACKET(len, link_len, l4, walk) ((__u64)(len) | \
    (__u64)(link_len) << 24 | (__u64)(l4) << 32 | (__u64)(walk) << 48)
#define OTHER_LEN(w)		((__u32)(w) & 0xffffff)
#define OTHER_LINK_LEN(w)	((__u32)((w) >> 24 & 0x1f))
#define OTHER_L4(w)		((__u32)((w) >> 32 & WALK_OFFSET))
#define OTHER_WALK(w)		((__u32)((w) >> 48 & 0xff))

/* How a packet goes to its backend. */
enum {
	OTHER_V6 = 1,
	OTHER_ERROR = 2,	/* an ICMP error */
	OTHER_PREV = 4,		/* to the slot's owner before */
	OTHER_PINNED = 8,	/* to the flow's, which is not the slot's */
	OTHER_REPLY = 16,	/* NAT: not from a client, but to one */
	OTHER_AGAIN = 32	/* NAT: its flow was unknown a moment ago */
};

/* Bits 0-15 backend, 16-23 transport protocol, 24-31 OTHER_*. */
#define OTHER_TO(backend, proto, flags) ((__u64)(backend) | \
    (__u64)(proto) << 16 | (__u64)(flags) << 24)

static __always_inline __u64
slow_described(const struct slow *s)
{
	return OTHER_PACKET(s->p.len, s->p.link_len, s->l4, s->walk);
}

#endif
