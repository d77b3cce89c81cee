/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Unwraps on a backend what the balancers wrapped: 4in4, 6in6, 4in6, 6in4 and
 * GUE variant 1, and hands the inner packet to the host's own stack.
 *
 * A packet that does not meet every condition of section "What is unwrapped" of
 * xlb-decap(8) passes untouched. Only what meets them and is broken is dropped.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "decap_abi.h"

#define NEXT DECAP_REASON_COUNT	/* a stage found nothing that ends it */

#define VLAN_LEN	4
#define VLAN_DEPTH	2	/* 802.1ad outside, 802.1Q inside */
#define LINK_MAX	(ETH_HLEN + VLAN_DEPTH * VLAN_LEN)
#define OFFSET_MASK	0x7f	/* no header starts behind 22 + 40 + 8 */
#define IP4_OFFSET	0x1fff
#define IP4_FRAGMENT	0x3fff	/* more fragments, or an offset */

/* The pieces in which a UDP checksum is summed, and how many make 65535. */
#define PIECE		512	/* all that bpf_csum_diff() may take */
#define PIECES		(PIECE_LAST / PIECE)
#define PIECE_LAST	0x3fff	/* no driver's first buffer is larger */
#define PIECE_FAR	128	/* on the stack: 512 bytes for all frames of a call
				 * chain, each rounded up to 32 in Linux 6.1 */
#define PIECES_FAR	512

/* RFC 3168, section 5 */
enum { ECN_NOT_ECT, ECN_ECT1, ECN_ECT0, ECN_CE };

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_RDONLY_PROG);
	__type(key, __u32);
	__type(value, struct decap_settings);
} settings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_NO_PREALLOC | BPF_F_RDONLY_PROG);
	__type(key, struct decap_prefix);
	__type(value, __u32);
} from SEC(".maps"), vips SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_RDONLY_PROG);
	__type(key, struct decap_addr);
	__type(value, __u32);
} locals SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct decap_counters);
} counters SEC(".maps");


/* Offsets count from the first byte of the frame. */
struct packet {
	__u8 link[LINK_MAX] __attribute__((aligned(2)));	/* a copy */
	__u16 type;		/* wire; EtherType behind the tags */
	__u32 outer;		/* outer IP header, where `link` ends */
	__u32 outer_len;	/* of that header */
	__u32 udp;		/* GUE: its UDP header; else 0 */
	__u32 inner;		/* inner IP header */
	__u32 inner_len;	/* by that header's own word */
	__u32 end;		/* of the outer packet, by its own words */
	__u8 proto;		/* outer */
	__u8 version;		/* inner, 4 or 6 */
	__u8 outer_ecn, inner_ecn;
	__u16 udp_len;		/* host byte order */
	__u16 pseudo;		/* sum over its pseudo header, never 0; 0: the
				 * datagram has no checksum */
	struct decap_addr src, dst;	/* outer, later inner */
	union {
		struct iphdr ip4;
		struct ipv6hdr ip6;
	} head;			/* copy of the header just read */
};

/*
 * Not static: the verifier takes each of these as a program of its own, which
 * knows nothing of what the caller knows. So it walks through each once, and not
 * once for every kind of packet that leads there.
 */
int frame_sum_far(struct xdp_md *ctx, __u32 at, __u32 len, __u32 sum);
int frame_sum(struct xdp_md *ctx, __u32 at, __u32 len, __u32 sum);
int packet_step(struct xdp_md *ctx, struct packet *p);
int xlb_decap(struct xdp_md *ctx);

/*
 * Words of the packet are not aligned, but the kernel makes that work, while
 * clang would split a memcpy() into bytes. On the stack the verifier wants
 * alignment: `unit` is 4 for IP headers and 2 for the rest.
 */
static __always_inline void
copy(__u8 *to, const __u8 *buf, __u32 len, __u32 unit)
{
	__u32 i;

#pragma unroll
	for (i = 0; i < len; i += unit) {
		if (unit == 4)
			*(__u32 *)(to + i) = *(const __u32 *)(buf + i);
		else
			*(__u16 *)(to + i) = *(const __u16 *)(buf + i);
	}
}

/* The verifier has to see the bound of an offset that was in memory. */
static __always_inline __u32
bounded(__u32 at)
{
	asm volatile("" : "+r"(at));
	return at & OFFSET_MASK;
}

/* Copies bytes out of the frame. Nearly always they are in the first buffer;
 * where a driver splits earlier, the helper finds them. */
static __always_inline int
frame_get(struct xdp_md *ctx, __u32 at, void *to, __u32 len, __u32 unit)
{
	const __u8 *pos = (const __u8 *)(long)ctx->data + bounded(at);

	if (pos + len <= (const __u8 *)(long)ctx->data_end) {
		copy((__u8 *)to, pos, len, unit);
		return 0;
	}
	return bpf_xdp_load_bytes(ctx, at, to, len);
}

static __always_inline int
frame_put(struct xdp_md *ctx, __u32 at, void *buf, __u32 len, __u32 unit)
{
	__u8 *pos = (__u8 *)(long)ctx->data + bounded(at);

	if (pos + len <= (__u8 *)(long)ctx->data_end) {
		copy(pos, (const __u8 *)buf, len, unit);
		return 0;
	}
	return bpf_xdp_store_bytes(ctx, at, buf, len);
}

static __always_inline __u32
sum_fold(__u64 sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (__u32)sum;
}

static __always_inline void
addr_set4(struct decap_addr *a, __be32 addr)
{
	__builtin_memset(a, 0, sizeof(*a));
	a->family = 4;
	__builtin_memcpy(a->addr, &addr, sizeof(addr));
}

static __always_inline void
addr_set6(struct decap_addr *a, const struct in6_addr *addr)
{
	a->family = 6;
	__builtin_memcpy(a->addr, addr, sizeof(a->addr));
}

static __always_inline int
addr_in(void *trie, const struct decap_addr *a)
{
	struct decap_prefix key = { .bits = 8 * sizeof(*a), .a = *a };

	return bpf_map_lookup_elem(trie, &key) != NULL;
}

/* Linux 6.1 takes no key that is on the stack of a calling function. */
static __always_inline __u32
addr_flags(const struct decap_addr *a)
{
	struct decap_addr key = *a;
	const __u32 *flags = bpf_map_lookup_elem(&locals, &key);

	return flags != NULL ? *flags : 0;
}

/* Up to two tags, in the frame; those that the NIC took out are not seen. */
static __always_inline enum decap_reason
link_parse(struct xdp_md *ctx, struct packet *p)
{
	int i;

	if (frame_get(ctx, 0, p->link, ETH_HLEN, 2) < 0)
		return DECAP_OTHER;
	p->outer = ETH_HLEN;
	__builtin_memcpy(&p->type, p->link + 12, 2);
#pragma unroll
	for (i = 0; i < VLAN_DEPTH; i++) {
		__u32 at = ETH_HLEN + i * VLAN_LEN;

		if (p->type != bpf_htons(ETH_P_8021Q) &&
		    p->type != bpf_htons(ETH_P_8021AD))
			break;
		if (frame_get(ctx, at, p->link + at, VLAN_LEN, 2) < 0)
			return DECAP_OTHER;
		p->outer = at + VLAN_LEN;
		__builtin_memcpy(&p->type, p->link + at + 2, 2);
	}
	return NEXT;
}

/* Any tunnel protocol? A later fragment of UDP has no port to tell by. */
static __always_inline int
proto_wanted(__u8 proto)
{
	return proto == IPPROTO_IPIP || proto == IPPROTO_IPV6 ||
	    proto == IPPROTO_UDP;
}

static __always_inline enum decap_reason
outer_parse4(struct xdp_md *ctx, struct packet *p)
{
	struct iphdr *ip = &p->head.ip4;

	if (frame_get(ctx, p->outer, ip, sizeof(*ip), 4) < 0 ||
	    !proto_wanted(ip->protocol) || ip->version != 4)
		return DECAP_OTHER;
	p->proto = ip->protocol;
	p->outer_len = ip->ihl * 4;
	p->end = p->outer + bpf_ntohs(ip->tot_len);
	p->outer_ecn = ip->tos & 3;
	addr_set4(&p->src, ip->saddr);
	addr_set4(&p->dst, ip->daddr);
	return NEXT;
}

/* Extension headers are none of these protocols: they pass. */
static __always_inline enum decap_reason
outer_parse6(struct xdp_md *ctx, struct packet *p)
{
	struct ipv6hdr *ip = &p->head.ip6;

	if (frame_get(ctx, p->outer, ip, sizeof(*ip), 4) < 0 ||
	    !proto_wanted(ip->nexthdr) || ip->version != 6)
		return DECAP_OTHER;
	p->proto = ip->nexthdr;
	p->outer_len = sizeof(*ip);
	p->end = p->outer + sizeof(*ip) + bpf_ntohs(ip->payload_len);
	p->outer_ecn = ip->flow_lbl[0] >> 4 & 3;
	addr_set6(&p->src, &ip->saddr);
	addr_set6(&p->dst, &ip->daddr);
	return NEXT;
}

/* The pseudo header of RFC 768 and RFC 8200, section 8.1. */
static __always_inline __u64
pseudo_sum(const struct packet *p)
{
	const __u32 *src = (const __u32 *)p->src.addr;
	const __u32 *dst = (const __u32 *)p->dst.addr;
	__u64 sum = bpf_htonl(IPPROTO_UDP) + (__u64)bpf_htonl(p->udp_len);
	int i;

#pragma unroll
	for (i = 0; i < 4; i++)
		sum += (__u64)src[i] + dst[i];
	return sum;
}

/* GUE's port, or plain IP in IP. */
static __always_inline enum decap_reason
outer_port(struct xdp_md *ctx, struct packet *p)
{
	const struct decap_settings *s;
	struct udphdr udp;
	__u32 zero = 0;

	p->inner = p->outer + p->outer_len;
	p->udp = 0;
	if (p->proto != IPPROTO_UDP)
		return NEXT;
	s = bpf_map_lookup_elem(&settings, &zero);
	if (p->type == bpf_htons(ETH_P_IP) &&
	    (p->outer_len != sizeof(struct iphdr) ||
	    (p->head.ip4.frag_off & bpf_htons(IP4_OFFSET))))
		return DECAP_OTHER;
	if (s == NULL || frame_get(ctx, p->inner, &udp, sizeof(udp), 2) < 0 ||
	    udp.dest != s->gue_port)
		return DECAP_OTHER;
	p->udp = p->inner;
	p->udp_len = bpf_ntohs(udp.len);
	p->pseudo = udp.check != 0 ? sum_fold(pseudo_sum(p)) : 0;
	p->inner += sizeof(udp);
	return NEXT;
}

static __always_inline enum decap_reason
outer_check4(const struct packet *p)
{
	const struct iphdr *ip = &p->head.ip4;
	const __u32 *word = (const __u32 *)ip;
	__u64 sum = 0;
	int i;

	if (p->type != bpf_htons(ETH_P_IP))
		return NEXT;
	if (ip->frag_off & bpf_htons(IP4_FRAGMENT))
		return DECAP_FRAGMENT;
	if (ip->ihl != 5)
		return DECAP_OPTIONS;
#pragma unroll
	for (i = 0; i < 5; i++)
		sum += word[i];
	return sum_fold(sum) == 0xffff ? NEXT : DECAP_CHECKSUM;
}

/* From a balancer, to this host, whole. */
static __always_inline enum decap_reason
outer_permit(struct xdp_md *ctx, struct packet *p)
{
	enum decap_reason why;
	__u32 udp_end;

	if (!addr_in(&from, &p->src))
		return DECAP_SOURCE;
	if (addr_flags(&p->dst) == 0)
		return DECAP_NOT_LOCAL;
	why = outer_check4(p);
	if (why != NEXT)
		return why;
	if (p->end > bpf_xdp_get_buff_len(ctx))
		return DECAP_MALFORMED;
	if (p->udp == 0)
		return NEXT;
	udp_end = p->udp + p->udp_len;
	if (udp_end > p->end)
		return DECAP_MALFORMED;
	p->end = udp_end;
	return NEXT;
}

/* GUE variant 1 has no header: the first nibble is the inner IP version
 * (draft-ietf-intarea-gue, section 4). */
static __always_inline enum decap_reason
inner_version(struct xdp_md *ctx, struct packet *p)
{
	__u8 first[2] __attribute__((aligned(2)));

	if (p->inner + sizeof(first) > p->end ||
	    frame_get(ctx, p->inner, first, sizeof(first), 2) < 0)
		return DECAP_MALFORMED;
	p->version = first[0] >> 4;
	if (p->udp != 0)
		return p->version == 4 || p->version == 6 ? NEXT :
		    DECAP_VARIANT;
	return p->version == (p->proto == IPPROTO_IPIP ? 4 : 6) ? NEXT :
	    DECAP_MALFORMED;
}

static __always_inline enum decap_reason
inner_parse4(struct xdp_md *ctx, struct packet *p)
{
	struct iphdr *ip = &p->head.ip4;

	if (p->inner + sizeof(*ip) > p->end ||
	    frame_get(ctx, p->inner, ip, sizeof(*ip), 4) < 0)
		return DECAP_MALFORMED;
	p->inner_len = bpf_ntohs(ip->tot_len);
	if (ip->ihl < 5 || p->inner_len < ip->ihl * 4U)
		p->inner_len = 0;
	p->inner_ecn = ip->tos & 3;
	addr_set4(&p->src, ip->saddr);
	addr_set4(&p->dst, ip->daddr);
	return NEXT;
}

static __always_inline enum decap_reason
inner_parse6(struct xdp_md *ctx, struct packet *p)
{
	struct ipv6hdr *ip = &p->head.ip6;

	if (p->inner + sizeof(*ip) > p->end ||
	    frame_get(ctx, p->inner, ip, sizeof(*ip), 4) < 0)
		return DECAP_MALFORMED;
	p->inner_len = sizeof(*ip) + bpf_ntohs(ip->payload_len);
	p->inner_ecn = ip->flow_lbl[0] >> 4 & 3;
	addr_set6(&p->src, &ip->saddr);
	addr_set6(&p->dst, &ip->daddr);
	return NEXT;
}

static __always_inline int
martian4(const __u8 *a)
{
	return a[0] == 0 || a[0] == 127 || (a[0] & 0xf0) == 224 ||
	    (a[0] & a[1] & a[2] & a[3]) == 0xff;
}

/* ::, ::1 and all of ::/96 (IPv4-compatible); ::ffff:0:0/96, never on a wire;
 * fe80::/10, which no router may have forwarded; ff00::/8. */
static __always_inline int
martian6(const __u8 *a)
{
	__u32 w[3];

	__builtin_memcpy(w, a, sizeof(w));
	if (a[0] == 0xff || (a[0] == 0xfe && (a[1] & 0xc0) == 0x80))
		return 1;
	return (w[0] | w[1]) == 0 &&
	    (w[2] == 0 || w[2] == bpf_htonl(0xffff));
}

/* For a VIP of this host, from somebody who can be a client. */
static __always_inline enum decap_reason
inner_permit(struct packet *p)
{
	const __u8 *src = p->src.addr;

	if (!(addr_flags(&p->dst) & DECAP_LO) && !addr_in(&vips, &p->dst))
		return DECAP_NOT_VIP;
	if (p->version == 4 ? martian4(src) : martian6(src))
		return DECAP_MARTIAN;
	if (addr_flags(&p->src) != 0 || addr_in(&vips, &p->src))
		return DECAP_MARTIAN;
	if (p->inner_len == 0 || p->inner + p->inner_len > p->end)
		return DECAP_MALFORMED;
	return NEXT;
}

/* A piece of the first buffer, where it still is; else NULL. */
static __always_inline __be32 *
frame_piece(struct xdp_md *ctx, __u32 at)
{
	__u8 *pos;

	asm volatile("" : "+r"(at));
	if (at > PIECE_LAST)
		return NULL;
	pos = (__u8 *)(long)ctx->data + at;
	if (pos + PIECE > (__u8 *)(long)ctx->data_end)
		return NULL;
	return (__be32 *)pos;
}

/* The same as frame_sum() for bytes that may be in any buffer. */
__attribute__((noinline)) int
frame_sum_far(struct xdp_md *ctx, __u32 at, __u32 len, __u32 sum)
{
	__u8 piece[PIECE_FAR];
	int i;

	for (i = 0; i < PIECES_FAR && len >= PIECE_FAR; i++) {
		if (bpf_xdp_load_bytes(ctx, at, piece, PIECE_FAR) < 0)
			return -1;
		sum = bpf_csum_diff(NULL, 0, (__be32 *)piece, PIECE_FAR, sum);
		at += PIECE_FAR;
		len -= PIECE_FAR;
	}
	if (len > 0) {
		/* 1 to PIECE_FAR, in a form that Linux 6.1 believes */
		__u32 n = len - 1;

		asm volatile("" : "+r"(n));
		n = (n & (PIECE_FAR - 1)) + 1;
		__builtin_memset(piece, 0, sizeof(piece));
		if (bpf_xdp_load_bytes(ctx, at, piece, n) < 0)
			return -1;
		sum = bpf_csum_diff(NULL, 0, (__be32 *)piece, PIECE_FAR, sum);
	}
	return sum_fold(sum);
}

/*
 * The Internet checksum over `len` bytes of the frame, folded, on top of `sum`;
 * -1 if they are not there. In pieces, since bpf_csum_diff() takes 512 bytes a
 * call before Linux 6.13 and wants whole words in one stretch of memory.
 */
__attribute__((noinline)) int
frame_sum(struct xdp_md *ctx, __u32 at, __u32 len, __u32 sum)
{
	__be32 *piece;
	int i;

	for (i = 0; i < PIECES && len >= PIECE; i++) {
		piece = frame_piece(ctx, at);
		if (piece == NULL)
			break;
		sum = bpf_csum_diff(NULL, 0, piece, PIECE, sum);
		at += PIECE;
		len -= PIECE;
	}
	return frame_sum_far(ctx, at, len, sum);
}

/* A UDP checksum that is there has to be right (RFC 1122, section 4.1.3.4); 0
 * is none, over IPv6 too (RFC 6935, for tunnels). */
static __always_inline enum decap_reason
udp_check(struct xdp_md *ctx, const struct packet *p)
{
	if (p->udp == 0 || p->pseudo == 0)
		return NEXT;
	return frame_sum(ctx, p->udp, p->udp_len, p->pseudo) == 0xffff ? NEXT :
	    DECAP_CHECKSUM;
}

/* RFC 6040, section 4.2. Sets what the inner header shall say. */
static __always_inline enum decap_reason
ecn_combine(struct packet *p, __u8 *ecn)
{
	*ecn = p->inner_ecn;
	if (p->outer_ecn == ECN_CE) {
		if (p->inner_ecn == ECN_NOT_ECT)
			return DECAP_ECN;
		*ecn = ECN_CE;
	} else if (p->outer_ecn == ECN_ECT1 && p->inner_ecn == ECN_ECT0) {
		*ecn = ECN_ECT1;
	}
	return NEXT;
}

static __always_inline enum decap_reason
ecn_apply(struct xdp_md *ctx, struct packet *p, __u8 ecn)
{
	struct iphdr *ip4 = &p->head.ip4;
	struct ipv6hdr *ip6 = &p->head.ip6;
	__u8 diff = ecn ^ p->inner_ecn;
	__u32 sum;
	int r;

	if (diff == 0)
		return NEXT;
	if (p->version == 6) {
		ip6->flow_lbl[0] ^= diff << 4;
		r = frame_put(ctx, p->inner, ip6, 4, 4);
	} else {
		/* RFC 1624, equation 3; the two differ in `tos` alone */
		sum = (__u16)~ip4->check +
		    (__u16)~bpf_htons(ip4->tos) +
		    bpf_htons(ip4->tos ^ diff);
		ip4->tos ^= diff;
		ip4->check = ~sum_fold(sum);
		r = frame_put(ctx, p->inner, ip4, sizeof(*ip4), 4);
	}
	return r < 0 ? DECAP_FAILED : NEXT;
}

static __always_inline int
link_put(struct xdp_md *ctx, struct packet *p, __u32 len)
{
	__u16 type = p->version == 4 ? bpf_htons(ETH_P_IP) :
	    bpf_htons(ETH_P_IPV6);

	__builtin_memcpy(p->link + len - 2, &type, 2);
	return frame_put(ctx, 0, p->link, len, 2);
}

/* Takes out what lies between the link header and the inner packet, and what
 * lies behind it. */
static __always_inline enum decap_reason
unwrap(struct xdp_md *ctx, struct packet *p)
{
	__u32 behind = bpf_xdp_get_buff_len(ctx) - p->inner - p->inner_len;
	int r;

	if (behind > 0 && bpf_xdp_adjust_tail(ctx, -(int)behind) < 0)
		return DECAP_FAILED;
	if (bpf_xdp_adjust_head(ctx, p->inner - p->outer) < 0)
		return DECAP_FAILED;
	if (p->outer == ETH_HLEN)
		r = link_put(ctx, p, ETH_HLEN);
	else if (p->outer == ETH_HLEN + VLAN_LEN)
		r = link_put(ctx, p, ETH_HLEN + VLAN_LEN);
	else
		r = link_put(ctx, p, LINK_MAX);
	return r < 0 ? DECAP_FAILED : DECAP_DECAPSULATED;
}

static __always_inline enum decap_reason
outer_stage(struct xdp_md *ctx, struct packet *p)
{
	enum decap_reason why;

	why = link_parse(ctx, p);
	if (why != NEXT)
		return why;
	if (p->type == bpf_htons(ETH_P_IP))
		why = outer_parse4(ctx, p);
	else if (p->type == bpf_htons(ETH_P_IPV6))
		why = outer_parse6(ctx, p);
	else
		why = DECAP_OTHER;
	if (why == NEXT)
		why = outer_port(ctx, p);
	if (why == NEXT)
		why = outer_permit(ctx, p);
	return why;
}

/* The stages; NULL never happens, but the verifier must know. */
__attribute__((noinline)) int
packet_step(struct xdp_md *ctx, struct packet *p)
{
	enum decap_reason why;
	__u8 ecn;

	if (p == NULL)
		return DECAP_FAILED;
	why = outer_stage(ctx, p);
	if (why != NEXT)
		return why;
	why = inner_version(ctx, p);
	if (why != NEXT)
		return why;
	why = p->version == 4 ? inner_parse4(ctx, p) : inner_parse6(ctx, p);
	if (why == NEXT)
		why = inner_permit(p);
	if (why == NEXT)
		why = udp_check(ctx, p);
	if (why == NEXT)
		why = ecn_combine(p, &ecn);
	if (why == NEXT)
		why = ecn_apply(ctx, p, ecn);
	return why == NEXT ? unwrap(ctx, p) : why;
}

/* Most frames are none of ours: these are told before anything is set up. 0
 * for those that need a closer look. */
static __always_inline int
frame_other(struct xdp_md *ctx)
{
	const __u8 *frame = (const __u8 *)(long)ctx->data;

	if (frame + ETH_HLEN + sizeof(struct iphdr) >
	    (const __u8 *)(long)ctx->data_end)
		return 0;
	switch (*(const __u16 *)(frame + 12)) {
	case bpf_htons(ETH_P_IP):
		return !proto_wanted(frame[ETH_HLEN + 9]);
	case bpf_htons(ETH_P_IPV6):
		return !proto_wanted(frame[ETH_HLEN + 6]);
	case bpf_htons(ETH_P_8021Q):
	case bpf_htons(ETH_P_8021AD):
		return 0;
	default:
		return 1;
	}
}

static __always_inline int
packet_run(struct xdp_md *ctx)
{
	struct packet p = {};

	return packet_step(ctx, &p);
}

#define DROP_BIT(NAME, name, kind, what) \
	| (KIND_##kind == KIND_DROP ? 1U << DECAP_##NAME : 0)
enum { KIND_SENT, KIND_PASS, KIND_DROP };

SEC("xdp")
int
xlb_decap(struct xdp_md *ctx)
{
	__u32 why = frame_other(ctx) ? DECAP_OTHER : packet_run(ctx);
	struct decap_counters *c;
	__u32 zero = 0;

	c = bpf_map_lookup_elem(&counters, &zero);
	if (c != NULL && why < DECAP_REASON_COUNT)
		c->packets[why]++;
	return (0U DECAP_REASONS(DROP_BIT)) >> (why & 31) & 1 ? XDP_DROP : XDP_PASS;
}

char _license[] SEC("license") = "GPL";
