/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Frames that leave: outer headers, new MAC addresses, and our own answers. */
#include <linux/bpf.h>
#include <string.h>

#include "ref_packet.h"
#include "xlb_abi.h"

static size_t
ip_len(bool v6)
{
	return v6 ? 40 : 20;
}

/* A checksum that makes the whole sum up to nothing. */
static void
check_put(uint8_t *at, uint32_t sum)
{
	ref_put16(at, 0xffff - ref_fold(sum));
}

static void
header4(uint8_t *ip, unsigned tos, size_t total, const uint8_t id[4],
    unsigned proto)
{
	memset(ip, 0, 20);
	ip[0] = 0x45;
	ip[1] = (uint8_t)tos;
	ref_put16(ip + 2, (unsigned)total);
	memcpy(ip + 4, id, 4);
	ip[8] = 64;
	ip[9] = (uint8_t)proto;
}

static void
header6(uint8_t *ip, unsigned tos, uint32_t label, size_t payload,
    unsigned proto)
{
	ref_put32(ip, 6U << 28 | tos << 20 | (label & 0xfffff));
	ref_put16(ip + 4, (unsigned)payload);
	ip[6] = (uint8_t)proto;
	ip[7] = 64;
}

static unsigned
tos_of(const struct ref_packet *p)
{
	return p->v6 ? ref_16(p->ip) >> 4 & 0xff : p->ip[1];
}

/* The link header back to where the packet came from. */
static void
link_back(const struct ref_packet *p, uint8_t *frame)
{
	memcpy(frame, p->frame + 6, 6);
	memcpy(frame + 6, p->frame, 6);
	memcpy(frame + 12, p->frame + 12, p->link - 12);
}

/* RFC 1624, by the remainder: 0 and ffff are the same number. */
unsigned
ref_check_changed(unsigned was_sum, uint32_t was, uint32_t is)
{
	return (was_sum + ref_fold(was) + (0xffff - ref_fold(is))) % 0xffff;
}

static unsigned
check_changed(unsigned was_sum, unsigned was, unsigned is, bool nothing_else)
{
	unsigned v = ref_check_changed(was_sum, was, is);

	return v == 0 && nothing_else ? 0xffff : v;
}

static bool
all_zero(const uint8_t *p, size_t len)
{
	while (len-- > 0)
		if (p[len] != 0)
			return false;
	return true;
}

/* A right checksum becomes a right one, worked out anew; a wrong one stays as
 * wrong as it was. */
static void
echo_check(const struct ref_packet *p, uint8_t *m, size_t len)
{
	const uint8_t *was = p->ip + p->l4;
	uint32_t pseudo = p->v6 ? ref_pseudo(p, len, REF_ICMP6) : 0;
	unsigned kept = ref_16(was + 2), changed;

	changed = check_changed(kept, ref_16(was), ref_16(m),
	    !p->v6 && all_zero(was + 4, len - 4));
	ref_put16(m + 2, 0);
	if (ref_fold(ref_sum(pseudo, was, len)) == 0xffff)
		check_put(m + 2, ref_sum(pseudo, m, len));
	else
		ref_put16(m + 2, changed);
}

unsigned
ref_echo(const struct ref_packet *p, struct ref_result *out)
{
	size_t len = p->total - p->l4, n = ip_len(p->v6), extra;
	uint8_t *ip = out->frame + p->link, *m = ip + n;

	if (p->frame[0] & 1)
		return XLB_REASON_NO_SERVICE;
	link_back(p, out->frame);
	if (p->v6) {
		memcpy(ip, p->ip, 4);
		header6(ip, tos_of(p), ref_32(p->ip), len, REF_ICMP6);
		memcpy(ip + 8, p->dst, 16);
		memcpy(ip + 24, p->src, 16);
	} else {
		header4(ip, tos_of(p), 20 + len, p->ip + 4, REF_ICMP);
		memcpy(ip + 12, p->dst + 12, 4);
		memcpy(ip + 16, p->src + 12, 4);
		check_put(ip + 10, ref_sum(0, ip, 20));
	}
	memcpy(m, p->ip + p->l4, len);
	m[0] = p->v6 ? 129 : 0;
	echo_check(p, m, len);
	out->len = p->link + n + len;
	extra = p->room - p->total;	/* of the smallest frame some may stay */
	if (out->len + extra > 60)
		extra = out->len < 60 ? 60 - out->len : 0;
	memcpy(out->frame + out->len, p->ip + p->total, extra);
	out->len += extra;
	out->action = XDP_TX;
	return XLB_REASON_ECHO;
}

unsigned
ref_too_big(const struct ref_state *s, const struct ref_packet *p, size_t mtu,
    struct ref_result *out)
{
	size_t n = ip_len(p->v6), quote = p->v6 ? 1232 : 548;
	uint8_t *ip = out->frame + p->link, *m = ip + n;
	static const uint8_t df[4] = { [2] = 0x40 };

	if (p->error || (!p->v6 && (p->later || !(p->ip[6] & 0x40))))
		return XLB_REASON_TOO_BIG_NO_DF;
	if ((p->frame[0] & 1) || s->mute)
		return XLB_REASON_TOO_BIG_RATE;
	if (quote > p->total)
		quote = p->total;
	link_back(p, out->frame);
	memset(m, 0, 8);
	m[0] = p->v6 ? 2 : 3;
	m[1] = p->v6 ? 0 : 4;
	ref_put32(m + 4, (uint32_t)mtu);
	memcpy(m + 8, p->ip, quote);
	check_put(m + 2, ref_sum(p->v6 ? ref_pseudo(p, quote + 8, REF_ICMP6) :
	    0, m, quote + 8));
	if (p->v6) {
		header6(ip, 0xc0, 0, quote + 8, REF_ICMP6);
		memcpy(ip + 8, p->dst, 16);
		memcpy(ip + 24, p->src, 16);
	} else {
		header4(ip, 0xc0, 20 + quote + 8, df, REF_ICMP);
		memcpy(ip + 12, p->dst + 12, 4);
		memcpy(ip + 16, p->src + 12, 4);
		check_put(ip + 10, ref_sum(0, ip, 20));
	}
	out->len = p->link + n + 8 + quote;
	out->action = XDP_TX;
	return XLB_REASON_TOO_BIG;
}

/* The outer source: the prefix, with bytes of the hash in its low bits. */
static void
source_of_flow(const struct ref_prefix *prefix, unsigned bytes, uint64_t flow,
    uint8_t *src)
{
	unsigned bit, at = bytes == 16 ? 8 : 0;
	uint8_t low[8];

	memcpy(low, &flow, 8);		/* as the number lies in memory */
	memcpy(src, prefix->addr, bytes);
	for (bit = prefix->len > at * 8 ? prefix->len : at * 8;
	    bit < bytes * 8; bit++)
		src[bit / 8] |= low[bit / 8 - at] & 0x80 >> bit % 8;
}

/* Where the checksum of a transport header is; -1: it has none that we know. */
static int
check_at(unsigned proto)
{
	switch (proto) {
	case REF_TCP:
		return 16;
	case REF_UDP:
		return 6;
	case REF_ICMP:
	case REF_ICMP6:
		return 2;
	}
	return -1;
}

/* True: the sum of the packet follows from its headers, if its checksum is
 * right: the whole datagram, nothing but it, and a checksum. */
static bool
sum_known(const struct ref_packet *p)
{
	const uint8_t *l4 = p->ip + p->l4;
	int at = check_at(p->proto);

	if (at < 0 || p->first || p->later || p->l4 != ip_len(p->v6))
		return false;
	if (p->proto == REF_UDP && ref_16(l4 + 4) != p->total - p->l4)
		return false;
	return ref_16(l4 + at) != 0;
}

/* The packet as its sender's checksum says that it is. */
static uint32_t
sum_inner(const struct ref_packet *p, struct ref_result *out)
{
	const uint8_t *l4 = p->ip + p->l4;
	size_t len = p->total - p->l4;
	int at = check_at(p->proto);
	uint32_t sum = 0;

	if (!sum_known(p)) {
		out->summed = true;
		return ref_sum(0, p->ip, p->total);
	}
	if (p->proto != REF_ICMP)
		sum = ref_pseudo(p, len, p->proto);
	/* without the one that is there, and with the one that is right */
	sum = ref_sum(ref_sum(sum, l4, (size_t)at), l4 + at + 2,
	    len - (size_t)at - 2);
	sum = 0xffff - ref_fold(sum);
	sum = ref_sum(sum, l4, (size_t)at);
	sum = ref_sum(sum, l4 + at + 2, len - (size_t)at - 2);
	return ref_fold(sum) + ref_sum(0, p->ip, p->l4);
}

static void
udp_put(const struct ref_config *c, const struct ref_packet *p, uint8_t *ip,
    bool six, struct ref_result *out)
{
	uint8_t *udp = ip + ip_len(six);
	size_t len = 8 + p->total;
	uint32_t sum;
	unsigned check;

	ref_put16(udp, 0x8000 | (p->flow & 0x7fff));
	ref_put16(udp + 2, c->gue_port);
	ref_put16(udp + 4, (unsigned)len);
	ref_put16(udp + 6, 0);
	if (!six)
		return;
	sum = ref_sum(REF_UDP + (uint32_t)len, ip + 8, 32);
	sum = ref_sum(sum, udp, 8);
	check = 0xffff - ref_fold(ref_fold(sum) + ref_fold(sum_inner(p, out)));
	ref_put16(udp + 6, check == 0 ? 0xffff : check);
}

static void
outer_put(const struct ref_config *c, const struct ref_packet *p,
    const struct ref_backend *b, bool gue, uint8_t *ip, struct ref_result *out)
{
	const struct ref_hop *hop = &c->hop[b->hop];
	const struct ref_prefix *prefix = b->v6 ? &c->source6 : &c->source4;
	unsigned proto = gue ? REF_UDP : p->v6 ? REF_IN6 : REF_IN4;
	static const uint8_t df[4] = { [2] = 0x40 };
	unsigned n = b->v6 ? 16 : 4, from = 16 - n;
	size_t payload = p->total + (gue ? 8 : 0);
	uint8_t *src = ip + (b->v6 ? 8 : 12);

	if (b->v6)
		header6(ip, tos_of(p), (uint32_t)p->flow, payload, proto);
	else
		header4(ip, tos_of(p), 20 + payload, df, proto);
	memcpy(src, hop->src + from, n);
	if (!gue && prefix->len != 0)
		source_of_flow(prefix, n, p->flow, src);
	memcpy(src + n, b->addr + from, n);
	if (!b->v6)
		check_put(ip + 10, ref_sum(0, ip, 20));
	if (gue)
		udp_put(c, p, ip, b->v6, out);
}

/* The next hop's link header; a tag of its VLAN stays as it came. */
size_t
ref_link_put(const struct ref_packet *p, const struct ref_hop *hop, bool six,
    uint8_t *frame)
{
	size_t at = 12;

	memcpy(frame, hop->mac, 6);
	memcpy(frame + 6, hop->own_mac, 6);
	if (hop->tci != 0) {
		ref_put16(frame + 12, 0x8100);
		ref_put16(frame + 14, hop->tci);
		if (p->link == 18 &&
		    ((ref_16(p->frame + 14) ^ hop->tci) & 0xfff) == 0)
			memcpy(frame + 12, p->frame + 12, 4);
		at = 16;
	}
	ref_put16(frame + at, six ? 0x86dd : 0x0800);
	return at + 2;
}

/* Through a gateway it would come back; the last hop is none. */
static unsigned
plain(const struct ref_packet *p, const struct ref_backend *b,
    const struct ref_hop *hop, uint8_t *ip)
{
	unsigned at = p->v6 ? 7 : 8, was;

	if (memcmp(hop->gateway, b->addr, 16) != 0)
		return XLB_REASON_NO_NEIGHBOR;
	if (p->ip[at] <= 1)
		return XLB_REASON_ENCAP_FAILED;
	memcpy(ip, p->ip, p->total);
	was = ref_16(ip + 8);
	ip[at]--;
	if (!p->v6)
		ref_put16(ip + 10, check_changed(ref_16(ip + 10), was,
		    ref_16(ip + 8), false));
	return REF_NEXT;
}

static bool
port_find(const struct ref_config *c, unsigned ifindex)
{
	unsigned i;

	for (i = 0; i < c->nport; i++)
		if (c->port[i] == ifindex)
			return true;
	return false;
}

/* Back, or by another interface. Up to 6 bytes of padding stay. */
unsigned
ref_leave(const struct ref_config *c, const struct ref_packet *p,
    const struct ref_hop *hop, size_t len, struct ref_result *out)
{
	size_t extra = p->room - p->total;

	if (extra <= 6) {
		memcpy(out->frame + len, p->ip + p->total, extra);
		len += extra;
	}
	out->len = len;
	if (hop->ifindex != c->ingress && !port_find(c, hop->ifindex))
		return XLB_REASON_ENCAP_FAILED;
	out->action = hop->ifindex == c->ingress ? XDP_TX : XDP_REDIRECT;
	out->bytes = (unsigned)p->total;
	return p->error ? XLB_REASON_ICMP_ERROR : XLB_REASON_FORWARD;
}

unsigned
ref_send(const struct ref_config *c, const struct ref_state *s,
    const struct ref_packet *p, const struct ref_service *service,
    unsigned backend, struct ref_result *out)
{
	const struct ref_backend *b = &c->backend[backend];
	const struct ref_hop *hop = &c->hop[b->hop];
	bool l2 = service->forward == REF_L2, gue = service->forward == REF_GUE;
	size_t more = l2 ? 0 : ip_len(b->v6) + (gue ? 8 : 0), at, mtu;
	unsigned reason;

	if (b->hop == 0 || !hop->resolved)
		return XLB_REASON_NO_NEIGHBOR;
	/* what the path carries; the tunnel's is no limit without a tunnel */
	mtu = hop->mtu > more ? hop->mtu - more : 0;
	if (p->total > mtu && !(l2 && c->tunnel_mtu == hop->mtu))
		return ref_too_big(s, p, mtu, out);
	at = ref_link_put(p, hop, l2 ? p->v6 : b->v6, out->frame);
	if (l2) {
		reason = plain(p, b, hop, out->frame + at);
		if (reason != REF_NEXT)
			return reason;
		at += p->total;
	} else {
		outer_put(c, p, b, gue, out->frame + at, out);
		at += more;
		memcpy(out->frame + at, p->ip, p->total);
		at += p->total;
	}
	reason = ref_leave(c, p, hop, at, out);
	if (out->action != XDP_DROP)
		out->backend = backend;
	return reason;
}
