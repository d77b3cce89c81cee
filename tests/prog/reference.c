/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What becomes of a frame: policy, fragments, ICMP, and which backend. */
#include "reference.h"

#include <linux/bpf.h>
#include <string.h>

#include "ref_packet.h"
#include "xlb_abi.h"

enum { FIN = 1, SYN = 2, RST = 4, KNOWN = 0x3f };

static unsigned
unserved(const struct ref_config *c, const struct ref_packet *p)
{
	if (p->own)
		return XLB_REASON_NOT_VIP;
	return c->vip[p->vip].local ? XLB_REASON_VIP_LOCAL :
	    XLB_REASON_NO_SERVICE;
}

static bool
inside(const struct ref_prefix *prefix, const uint8_t *addr)
{
	unsigned bit;

	if (prefix->len == 0)
		return false;
	for (bit = 0; bit < prefix->len; bit++)
		if ((addr[bit / 8] ^ prefix->addr[bit / 8]) &
		    0x80 >> bit % 8)
			return false;
	return true;
}

/* 0/8, 127/8, groups, broadcast; ::, ::1, groups, IPv4 as IPv6. */
static bool
martian(const struct ref_config *c, const struct ref_packet *p)
{
	static const uint8_t zero[16];
	const uint8_t *a = p->src;
	unsigned i;

	for (i = 0; i < c->nvip; i++)
		if (memcmp(c->vip[i].addr, a, 16) == 0)
			return true;
	if (!p->v6)
		return a[12] == 0 || a[12] == 127 ||
		    (a[12] >= 224 && a[12] <= 239) ||
		    ref_32(a + 12) == 0xffffffff ||
		    inside(&c->source4, a + 12);
	return (memcmp(a, zero, 15) == 0 && a[15] <= 1) || a[0] == 0xff ||
	    (memcmp(a, zero, 10) == 0 && ref_16(a + 10) == 0xffff) ||
	    inside(&c->source6, a);
}

static const struct ref_service *
service_find(const struct ref_config *c, const struct ref_packet *p)
{
	const struct ref_service *s, *any = NULL;

	for (s = c->service; s < c->service + c->nservice; s++) {
		if (s->vip != p->vip || s->proto != p->flow_proto)
			continue;
		if (s->port == 0)
			any = s;
		else if (s->port == p->vip_port)
			return s;
	}
	return any;
}

static size_t
put_address(uint8_t *at, const uint8_t addr[16], bool v6)
{
	memcpy(at, addr + (v6 ? 0 : 12), v6 ? 16 : 4);
	return v6 ? 16 : 4;
}

/* The backend of the slot that the 5-tuple, or the client, selects; 0: none. */
static unsigned
select(const struct ref_config *c, struct ref_packet *p,
    const struct ref_service *s)
{
	uint8_t message[40] = { 0 };
	size_t n = put_address(message, p->client, p->v6), len = 2 * n + 8;
	uint64_t of_client = ref_hash(&c->hash, message, len), hash;

	n += put_address(message + n, p->dst, p->v6);
	ref_put16(message + n, p->client_port);
	ref_put16(message + n + 2, p->vip_port);
	message[n + 4] = p->flow_proto;
	p->flow = ref_hash(&c->hash, message, len);
	hash = s->by_source ? of_client : p->flow;
	if (s->ring >= REF_RINGS || c->ring[s->ring] == NULL)
		return 0;
	return c->ring[s->ring][(hash >> 32) * c->ring_size >> 32];
}

static bool
same_datagram(const struct ref_fragment *f, const struct ref_packet *p)
{
	return f->v6 == p->v6 && (p->v6 || f->proto == p->proto) &&
	    memcmp(f->id, p->id, 4) == 0 && memcmp(f->src, p->src, 16) == 0 &&
	    memcmp(f->dst, p->dst, 16) == 0;
}

struct ref_fragment *
ref_fragment_find(struct ref_state *s, const struct ref_packet *p)
{
	size_t i;

	for (i = 0; i < s->nfragment; i++)
		if (same_datagram(&s->fragment[i], p))
			return &s->fragment[i];
	return NULL;
}

void
ref_fragment_remember(const struct ref_config *c, struct ref_state *s,
    const struct ref_packet *p, const struct ref_service *service,
    unsigned backend, bool nat)
{
	struct ref_fragment *f = ref_fragment_find(s, p);

	if (f == NULL)
		f = &s->fragment[s->nfragment++ % REF_FRAGMENTS];
	memcpy(f->src, p->src, 16);
	memcpy(f->dst, p->dst, 16);
	memcpy(f->id, p->id, 4);
	f->proto = p->proto;
	f->v6 = p->v6;
	f->service = service;
	f->flow = p->flow;
	f->backend = backend;
	memcpy(f->addr, c->backend[backend].addr, 16);
	f->nat = nat;
	f->flow_proto = p->flow_proto;
	f->src_port = p->client_port;
	f->dst_port = p->vip_port;
}

static unsigned
fragment_follow(const struct ref_config *c, struct ref_state *s,
    struct ref_packet *p, struct ref_result *out)
{
	const struct ref_fragment *f = ref_fragment_find(s, p);

	if (f == NULL ||
	    memcmp(c->backend[f->backend].addr, f->addr, 16) != 0)
		return p->own ? XLB_REASON_NOT_VIP : c->vip[p->vip].local ?
		    XLB_REASON_VIP_LOCAL : XLB_REASON_FRAGMENT_UNKNOWN;
	if (!f->nat) {
		p->flow = f->flow;
		out->service = f->service;
		return ref_send(c, s, p, f->service, f->backend, out);
	}
	memcpy(p->client, p->src, 16);
	p->flow_proto = f->flow_proto;
	p->client_port = f->src_port;
	p->vip_port = f->dst_port;
	if (f->service == NULL)
		return ref_nat_own(c, s, p, out);
	out->service = f->service;
	return ref_nat(c, s, p, f->service, select(c, p, f->service), out);
}

/* Ports of a header of which the first 8 bytes are here. */
static void
ports(struct ref_packet *p, const uint8_t *l4, bool from_client)
{
	unsigned first = ref_16(l4), second = ref_16(l4 + 2);

	p->client_port = from_client ? first : second;
	p->vip_port = from_client ? second : first;
}

static unsigned
transport(const struct ref_config *c, struct ref_packet *p)
{
	const uint8_t *l4 = p->ip + p->l4;
	size_t have = p->total - p->l4, need = p->proto == REF_TCP ? 20 : 8;
	unsigned len;

	if (p->proto != REF_TCP && p->proto != REF_UDP)
		return unserved(c, p);
	if (have < need || p->l4 + need > p->seen)
		return XLB_REASON_MALFORMED;
	if (p->proto == REF_TCP) {
		len = (l4[12] >> 4) * 4U;
		if (len < 20 || len > have || (l4[13] & KNOWN) == 0 ||
		    ((l4[13] & SYN) && (l4[13] & (FIN | RST))))
			return XLB_REASON_MALFORMED;
	} else {
		len = ref_16(l4 + 4);
		if (len < 8 || (len > have && !p->first))
			return XLB_REASON_MALFORMED;
	}
	memcpy(p->client, p->src, 16);
	p->flow_proto = p->proto;
	ports(p, l4, true);
	return REF_NEXT;
}

/* Whose packet an error quotes: it was sent by the VIP to the client. */
static unsigned
quote_addresses(struct ref_packet *p, const uint8_t *q, size_t have,
    size_t seen, size_t *l4, bool *other)
{
	size_t need = p->v6 ? 40 : 20;
	enum ref_walk walk;
	uint8_t id[4];

	if (have < need || seen < need || q[0] >> 4 != (p->v6 ? 6 : 4))
		return XLB_REASON_MALFORMED;
	if (!p->v6) {
		*l4 = (q[0] & 15) * 4U;
		if (*l4 < 20)
			return XLB_REASON_MALFORMED;
		if (ref_16(q + 6) & 0x1fff)
			return XLB_REASON_FRAGMENT_UNKNOWN;
		p->flow_proto = q[9];
		*other = memcmp(q + 12, p->dst + 12, 4) != 0;
		memcpy(p->client, p->src, 12);
		memcpy(p->client + 12, q + 16, 4);
		return REF_NEXT;
	}
	*l4 = 40;
	p->flow_proto = q[6];
	*other = memcmp(q + 8, p->dst, 16) != 0;
	memcpy(p->client, q + 24, 16);
	walk = ref_extensions(q, l4, have, seen, &p->flow_proto, id);
	return walk == REF_BAD ? XLB_REASON_MALFORMED :
	    walk == REF_LATER ? XLB_REASON_FRAGMENT_UNKNOWN : REF_NEXT;
}

static unsigned
quoted(const struct ref_config *c, struct ref_packet *p)
{
	const uint8_t *q = p->ip + p->l4 + 8;
	size_t have = p->total - p->l4 - 8, seen = p->seen - p->l4 - 8, l4;
	unsigned reason;
	bool other;

	reason = quote_addresses(p, q, have, seen, &l4, &other);
	if (reason != REF_NEXT)
		return reason;
	if (l4 + 8 > have || l4 + 8 > seen)
		return XLB_REASON_MALFORMED;
	if (other || (p->flow_proto != REF_TCP && p->flow_proto != REF_UDP))
		return unserved(c, p);
	ports(p, q + l4, false);
	p->error = true;
	p->quote = p->l4 + 8 + l4;
	return REF_NEXT;
}

static unsigned
icmp(const struct ref_config *c, struct ref_packet *p, struct ref_result *out)
{
	const uint8_t *m = p->ip + p->l4;
	unsigned type;

	if (p->total - p->l4 < 8 || p->l4 + 8 > p->seen)
		return XLB_REASON_MALFORMED;
	type = m[0];
	if (type == (p->v6 ? 128 : 8) && m[1] == 0)
		return p->own ? XLB_REASON_NOT_VIP : ref_echo(p, out);
	if (p->v6 ? type >= 1 && type <= 4 :
	    type == 3 || type == 4 || type == 11 || type == 12)
		return quoted(c, p);
	return unserved(c, p);
}

static unsigned
serve(const struct ref_config *c, struct ref_state *s, struct ref_packet *p,
    struct ref_result *out)
{
	unsigned backend;

	out->service = service_find(c, p);
	if (out->service == NULL && ref_is_source(c, p->dst))
		return ref_nat_own(c, s, p, out);
	if (out->service == NULL)
		return unserved(c, p);
	backend = select(c, p, out->service);
	if (out->service->forward == REF_NAT)
		return ref_nat(c, s, p, out->service, backend, out);
	if (backend == 0)
		return XLB_REASON_NO_BACKEND;
	if (p->first)
		ref_fragment_remember(c, s, p, out->service, backend, false);
	return ref_send(c, s, p, out->service, backend, out);
}

static bool
is_icmp(const struct ref_packet *p)
{
	return p->proto == (p->v6 ? REF_ICMP6 : REF_ICMP) && !p->first &&
	    !p->later;
}

/* What is no reply that somebody waits for is untouched, whatever is wrong with
 * it. */
static unsigned
decide_own(const struct ref_config *c, struct ref_state *s,
    struct ref_packet *p, struct ref_result *out)
{
	if (p->later)
		return fragment_follow(c, s, p, out);
	if ((is_icmp(p) ? icmp(c, p, out) : transport(c, p)) != REF_NEXT)
		return XLB_REASON_NOT_VIP;
	return ref_nat_own(c, s, p, out);
}

static unsigned
decide(const struct ref_config *c, struct ref_state *s, struct ref_packet *p,
    struct ref_result *out)
{
	unsigned reason = REF_NEXT;

	if (p->own)
		return decide_own(c, s, p, out);
	if (!p->later && !is_icmp(p))
		reason = transport(c, p);
	if (reason != REF_NEXT)
		return reason;
	if (martian(c, p))
		return XLB_REASON_MARTIAN;
	if (p->later)
		return fragment_follow(c, s, p, out);
	if (is_icmp(p))
		reason = icmp(c, p, out);
	return reason != REF_NEXT ? reason : serve(c, s, p, out);
}

void
ref_run(const struct ref_config *c, struct ref_state *s, const uint8_t *frame,
    size_t len, struct ref_result *out)
{
	struct ref_packet p;

	out->service = NULL;
	out->backend = 0;
	out->bytes = 0;
	out->summed = out->nat = false;
	out->action = XDP_DROP;
	out->len = 0;
	out->reason = ref_take_apart(c, frame, len, &p);
	if (out->reason == REF_NEXT)
		out->reason = decide(c, s, &p, out);
	if (out->reason == XLB_REASON_NOT_VIP ||
	    out->reason == XLB_REASON_VIP_LOCAL) {
		out->action = XDP_PASS;
		memcpy(out->frame, frame, len);
		out->len = len;
	}
}
