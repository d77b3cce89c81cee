/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Frames at random. */
#include "gen.h"

#include <string.h>

#include "ref_packet.h"
#include "world.h"

#define LONGEST 16000		/* payload */

struct gen {
	struct rng *r;
	const struct ref_config *c;
	const struct ref_state *s;
	const struct gen_wish *wish;
	bool plain;
	const struct ref_flow *flow;	/* that NAT has, or `fresh`; NULL: any */
	struct ref_flow fresh;	/* one that begins */
	bool reply;		/* from its backend */
	bool v6;
	uint8_t client[16], vip[16];	/* or of the backend, and ours */
	uint8_t proto;		/* of what is in `l4` */
	uint8_t l4[LONGEST + 256];
	size_t l4_len;
	unsigned fragment;	/* offset in units of 8, times 8, and "more" */
	bool cut;		/* it is a fragment */
};

static unsigned
payload_len(struct gen *g)
{
	static const unsigned over[] = { 0, 20, 28, 40, 48 };
	unsigned dice = rng_below(g->r, 100), n;

	if (dice < 65)
		return rng_below(g->r, 80);
	if (dice < 85) {	/* about what a next hop carries */
		n = g->c->hop[rng_range(g->r, 1, REF_HOPS - 1)].mtu;
		n -= RNG_PICK(g->r, over) + (g->v6 ? 60 : 40);
		n += rng_below(g->r, 7);
		n = n > 3 ? n - 3 : 0;
	} else {
		n = rng_below(g->r, dice < 98 ? 1500 : LONGEST);
	}
	return n > g->wish->room - 400 ? rng_below(g->r, 200) : n;
}

static void
payload(struct gen *g, size_t at)
{
	unsigned n = payload_len(g), i;

	if (rng_chance(g->r, 30))
		memset(g->l4 + at, rng_chance(g->r, 70) ? 0 : 0xff, n);
	else
		for (i = 0; i < n; i++)
			g->l4[at + i] = (uint8_t)(i * 7 + at + n);
	g->l4_len = at + n;
}

static void
check(struct gen *g, size_t at, const uint8_t src[16], const uint8_t dst[16])
{
	unsigned from = g->v6 ? 0 : 12, dice = rng_below(g->r, 100);
	uint32_t sum = g->proto + (uint32_t)g->l4_len;

	if (g->proto == REF_ICMP)
		sum = 0;
	else
		sum = ref_sum(ref_sum(sum, src + from, 16 - from),
		    dst + from, 16 - from);
	ref_put16(g->l4 + at, 0);
	ref_put16(g->l4 + at, 0xffff - ref_fold(ref_sum(sum, g->l4,
	    g->l4_len)));
	if (dice < 7)
		ref_put16(g->l4 + at, 0);
	else if (dice < 12)
		ref_put16(g->l4 + at, (unsigned)rng_next(g->r) & 0xffff);
}

static unsigned
vip_port(struct gen *g)
{
	static const unsigned few[] = { 9, 0, 53, 81, 65535 };

	if (g->flow != NULL && rng_chance(g->r, 95))
		return g->reply ? g->flow->port : g->flow->vip_port;
	return rng_chance(g->r, 10) ? RNG_PICK(g->r, few) :
	    rng_chance(g->r, 50) ? 80 : 443;
}

static unsigned
client_port(struct gen *g)
{
	if (g->flow != NULL && rng_chance(g->r, 95))
		return g->reply ? g->flow->back_port : g->flow->client_port;
	return 1024 + rng_below(g->r, 40);
}

static void
tcp(struct gen *g)
{
	static const uint8_t flags[] = { 0x10, 0x10, 0x10, 0x10, 0x18, 0x18,
	    2, 2, 0x12, 0x11, 4, 0x14, 0xc2, 0x38 };
	unsigned words = rng_chance(g->r, 60) ? 5 : rng_range(g->r, 5, 15);

	g->proto = REF_TCP;
	rng_bytes(g->r, g->l4, 60);
	ref_put16(g->l4, client_port(g));
	ref_put16(g->l4 + 2, vip_port(g));
	g->l4[12] = (uint8_t)(words << 4);
	g->l4[13] = rng_chance(g->r, 93) ? RNG_PICK(g->r, flags) :
	    (uint8_t)rng_next(g->r);
	payload(g, words * 4);
	check(g, 16, g->client, g->vip);
}

static void
udp(struct gen *g)
{
	g->proto = REF_UDP;
	ref_put16(g->l4, client_port(g));
	ref_put16(g->l4 + 2, vip_port(g));
	payload(g, 8);
	ref_put16(g->l4 + 4, (unsigned)g->l4_len);
	if (rng_chance(g->r, 4))
		ref_put16(g->l4 + 4, rng_below(g->r, (unsigned)g->l4_len + 9));
	check(g, 6, g->client, g->vip);
}

static void
echo(struct gen *g)
{
	g->proto = g->v6 ? REF_ICMP6 : REF_ICMP;
	g->l4[0] = g->v6 ? 128 : 8;
	g->l4[1] = rng_chance(g->r, 95) ? 0 : 1;
	if (rng_chance(g->r, 30))
		memset(g->l4 + 2, 0, 6);
	else
		rng_bytes(g->r, g->l4 + 2, 6);
	payload(g, 8);
	check(g, 2, g->client, g->vip);
}

/* A chain of extension headers from `to` on; its length. */
static size_t
chain(struct gen *g, uint8_t *to, uint8_t *first, uint8_t last, bool cut)
{
	static const uint8_t kind[] = { 43, 60, 60, 51, 44, 0 };
	unsigned n = rng_chance(g->r, 12) ? rng_below(g->r, 10) : 0, i, words;
	uint8_t *next = first, now;
	size_t at = 0;

	for (i = 0; i < n + cut; i++) {
		now = i == n ? 44 : i == 0 && rng_chance(g->r, 30) ? 0 :
		    RNG_PICK(g->r, kind);
		if (now == 0 && i > 0 && rng_chance(g->r, 80))
			now = 60;
		if (now == 44 && i < n && rng_chance(g->r, 70))
			now = 60;
		*next = now;
		next = to + at;
		words = now == 44 ? 0 : rng_chance(g->r, 90) ?
		    rng_below(g->r, 3) : rng_below(g->r, 30);
		rng_bytes(g->r, to + at, 8 + 8 * words);
		to[at + 1] = (uint8_t)(now == 51 ? words * 2 : words);
		if (now == 44) {
			ref_put16(to + at + 2, i == n ? g->fragment : 0);
			ref_put32(to + at + 4, rng_below(g->r, 4));
		}
		at += 8 + 8 * words;
	}
	*next = last;
	return at;
}

/* An IP header and what belongs between it and `len` bytes of `proto`. */
static size_t
header4(struct gen *g, uint8_t *ip, const uint8_t src[16],
    const uint8_t dst[16], uint8_t proto, size_t len)
{
	static const uint8_t ttl[] = { 64, 64, 64, 57, 255, 128, 2, 1, 0 };
	unsigned words = rng_chance(g->r, 92) ? 5 : rng_range(g->r, 6, 15);

	rng_bytes(g->r, ip, words * 4);
	ip[0] = (uint8_t)(0x40 | words);
	ref_put16(ip + 2, (unsigned)(words * 4 + len));
	ref_put16(ip + 4, rng_below(g->r, 4));
	ref_put16(ip + 6, g->cut ? g->fragment >> 3 |
	    (g->fragment & 1) << 13 : 0);
	if (rng_chance(g->r, 60))
		ip[6] |= 0x40;
	ip[8] = RNG_PICK(g->r, ttl);
	ip[9] = proto;
	ref_put16(ip + 10, 0);
	memcpy(ip + 12, src + 12, 4);
	memcpy(ip + 16, dst + 12, 4);
	ref_put16(ip + 10, 0xffff - ref_fold(ref_sum(0, ip, words * 4)));
	return words * 4;
}

static size_t
header6(struct gen *g, uint8_t *ip, const uint8_t src[16],
    const uint8_t dst[16], uint8_t proto, size_t len)
{
	size_t more = chain(g, ip + 40, ip + 6, proto, g->cut);

	ref_put32(ip, 6U << 28 | ((uint32_t)rng_next(g->r) & 0xfffffff));
	ref_put16(ip + 4, (unsigned)(more + len));
	ip[7] = (uint8_t)(rng_chance(g->r, 90) ? 64 : rng_below(g->r, 3));
	memcpy(ip + 8, src, 16);
	memcpy(ip + 24, dst, 16);
	return 40 + more;
}

static size_t
header(struct gen *g, uint8_t *ip, const uint8_t src[16],
    const uint8_t dst[16], uint8_t proto, size_t len)
{
	return (g->v6 ? header6 : header4)(g, ip, src, dst, proto, len);
}

/* What the VIP sent, as a router quotes it; at times in its tunnel. */
static void
error(struct gen *g)
{
	static const uint8_t type4[] = { 3, 4, 11, 12 }, proto[] = { 6, 6, 6,
	    17, 17, 17, 4, 47 };
	uint8_t *q = g->l4 + 8, other[16], inner = RNG_PICK(g->r, proto);
	size_t n;

	if (g->flow != NULL && rng_chance(g->r, 90))
		inner = g->flow->proto;
	rng_bytes(g->r, g->l4, 8);
	g->l4[0] = g->v6 ? (uint8_t)rng_range(g->r, 1, 4) :
	    RNG_PICK(g->r, type4);
	world_address(other, g->v6, g->v6 ? 5 : 0xcb00, rng_below(g->r, 9));
	g->cut = rng_chance(g->r, 6);
	g->fragment = rng_chance(g->r, 50) ? 1 : rng_below(g->r, 900) << 3;
	n = header(g, q, rng_chance(g->r, 93) ? g->vip : other, g->client,
	    inner, 1000);
	g->cut = false;
	ref_put16(q + n, vip_port(g));
	ref_put16(q + n + 2, client_port(g));
	rng_bytes(g->r, q + n + 4, 60);
	n += rng_chance(g->r, 80) ? 8 : rng_below(g->r, 60);
	g->l4_len = 8 + n;
	if (rng_chance(g->r, 6)) {	/* to the MTU */
		memset(q + n, 0, 1300);
		g->l4_len += rng_below(g->r, 1300);
	}
	g->proto = g->v6 ? REF_ICMP6 : REF_ICMP;
	check(g, 2, g->client, g->vip);
}

static void
other(struct gen *g)
{
	static const uint8_t proto[] = { 1, 58, 47, 59, 132, 4, 41, 2 };

	g->proto = RNG_PICK(g->r, proto);
	rng_bytes(g->r, g->l4, 40);
	payload(g, rng_below(g->r, 40));
}

static void
transport(struct gen *g)
{
	unsigned dice = rng_below(g->r, g->plain ? 75 : 100);
	bool is_tcp = g->flow != NULL && rng_chance(g->r, 90) ?
	    g->flow->proto == REF_TCP : dice < 50;

	g->cut = false;
	if (dice < 75 && is_tcp)
		tcp(g);
	else if (dice < 75)
		udp(g);
	else if (dice < 83)
		echo(g);
	else if (dice < 96)
		error(g);
	else
		other(g);
	if (!rng_chance(g->r, 12))
		return;
	g->cut = true;
	g->fragment = rng_chance(g->r, 50) ? 1 :
	    rng_below(g->r, 8000) << 3 | rng_below(g->r, 2);
	if (rng_chance(g->r, 40))
		g->l4_len = rng_below(g->r, (unsigned)g->l4_len + 1);
}

/* Of a client that asks a service with NAT, where there is one. */
static bool
fresh_make(struct gen *g)
{
	struct ref_flow *f = &g->fresh;
	const struct ref_service *s;
	unsigned tries = 20;

	do
		s = &g->c->service[rng_below(g->r, g->c->nservice)];
	while (s->forward != REF_NAT && --tries > 0);
	f->v6 = g->c->vip[s->vip].v6;
	f->proto = s->proto;
	memcpy(f->vip, g->c->vip[s->vip].addr, 16);
	f->vip_port = s->port != 0 ? s->port : rng_range(g->r, 1, 65535);
	world_address(f->client, f->v6, f->v6 ? 9 : 0xc000,
	    rng_below(g->r, 200));
	f->client_port = 1024 + rng_below(g->r, 40);
	return tries > 0;
}

/* Of a flow of NAT, or to an address of ours without one. */
static bool
addresses_of_nat(struct gen *g)
{
	unsigned i = rng_below(g->r, REF_SOURCES);

	g->flow = NULL;
	if (rng_chance(g->r, 2)) {
		g->v6 = i % 2;
		memcpy(g->client, g->c->backend[rng_range(g->r, 1,
		    REF_BACKENDS - 1)].addr, 16);
		memcpy(g->vip, g->c->source[i], 16);
		return true;
	}
	if (!rng_chance(g->r, g->wish->nat))
		return false;
	g->reply = false;
	if (g->s->nflow == 0 || rng_chance(g->r, 10)) {
		if (!fresh_make(g))
			return false;
		g->flow = &g->fresh;
	} else {
		g->flow = &g->s->flow[rng_below(g->r, (unsigned)g->s->nflow)];
		g->reply = rng_chance(g->r, 60);
	}
	g->v6 = g->flow->v6;
	memcpy(g->client, g->reply ? g->flow->addr : g->flow->client, 16);
	memcpy(g->vip, g->reply ? g->c->source[g->flow->source] :
	    g->flow->vip, 16);
	return true;
}

static void
addresses(struct gen *g)
{
	static const uint8_t top[] = { 0, 1, 126, 127, 128, 223, 224, 239, 240,
	    255 };
	const struct ref_vip *v = &g->c->vip[rng_below(g->r, g->c->nvip)];

	if (addresses_of_nat(g))
		return;
	g->v6 = v->v6;
	memcpy(g->vip, v->addr, 16);
	if (rng_chance(g->r, 5))
		g->vip[rng_range(g->r, g->v6 ? 8 : 12, 15)] ^= 1;
	world_address(g->client, g->v6, g->v6 ? 9 : 0xc000,
	    rng_below(g->r, 8));
	if (!rng_chance(g->r, 6))
		return;
	switch (rng_below(g->r, 4)) {
	case 0:
		memcpy(g->client, v->addr, 16);
		break;
	case 1:			/* the tunnel's, or beside it */
		world_address(g->client, g->v6, g->v6 ? 0xff : 0x0aff,
		    0x0101);
		break;
	case 2:			/* a group, ::1, 0/8, 127/8 */
		g->client[g->v6 ? 0 : 12] = g->v6 ?
		    (uint8_t)(rng_next(g->r) | 0xfe) : RNG_PICK(g->r, top);
		break;
	case 3:
		memset(g->client, rng_chance(g->r, 50) ? 0 : 0xff, 16);
		g->client[15] = (uint8_t)rng_below(g->r, 3);
		break;
	}
}

static size_t
link_make(struct gen *g, uint8_t *frame)
{
	unsigned tags = rng_chance(g->r, 65) ? 0 :
	    rng_range(g->r, 1, g->plain ? 1 : 2), i;
	size_t at = 12;

	if (tags == 2 && rng_chance(g->r, 10))
		tags = 3;
	rng_bytes(g->r, frame, 12);
	frame[0] = rng_chance(g->r, 97) ? 2 : 0x33;
	for (i = 0; i < tags; i++, at += 4) {
		ref_put16(frame + at, rng_chance(g->r, 70) ? 0x8100 : 0x88a8);
		ref_put16(frame + at + 2, rng_range(g->r, 5, 7) |
		    rng_below(g->r, 16) << 12);
	}
	ref_put16(frame + at, g->v6 ? 0x86dd : 0x0800);
	return at + 2;
}

static size_t
trailing(struct gen *g, uint8_t *frame, size_t len)
{
	size_t n = 0;

	if (rng_chance(g->r, 20) && len < 60)
		n = 60 - len;
	else if (rng_chance(g->r, 15))
		n = rng_below(g->r, 14);
	else if (rng_chance(g->r, 3))
		n = rng_below(g->r, 300);
	if (rng_chance(g->r, 50))
		memset(frame + len, 0, n);
	else
		rng_bytes(g->r, frame + len, n);
	return len + n;
}

/* Breaks one thing, mostly in the headers. */
static size_t
mutate(struct gen *g, uint8_t *f, size_t len, size_t room)
{
	static const uint8_t odd[] = { 0, 1, 2, 4, 5, 6, 8, 17, 20, 40, 43, 44,
	    51, 58, 60, 0x45, 0x60, 0x7f, 0x80, 0x81, 0xff };
	size_t head = len < 150 ? len : 150, at, from, n;

	if (len == 0)
		return 0;
	at = rng_below(g->r, (unsigned)head);
	from = rng_below(g->r, (unsigned)head);
	switch (rng_below(g->r, 8)) {
	case 0:
		f[at] = (uint8_t)rng_next(g->r);
		break;
	case 1:
		f[at] = RNG_PICK(g->r, odd);
		break;
	case 2:
		f[at] ^= (uint8_t)(1 << rng_below(g->r, 8));
		break;
	case 3:
		f[at] += rng_chance(g->r, 50) ? 1 : 0xff;
		break;
	case 4:
		return rng_below(g->r, (unsigned)len + 1);
	case 5:			/* bytes go */
		n = rng_range(g->r, 1, 8);
		n = n > len - at ? len - at : n;
		memmove(f + at, f + at + n, len - at - n);
		return len - n;
	case 6:			/* or come */
		n = rng_range(g->r, 1, 8);
		if (len + n > room)
			break;
		memmove(f + at + n, f + at, len - at);
		return len + n;
	case 7:			/* one part over another */
		n = rng_range(g->r, 1, 24);
		n = n > head - (at > from ? at : from) ?
		    head - (at > from ? at : from) : n;
		memmove(f + at, f + from, n);
		break;
	}
	return len;
}

size_t
gen_frame(struct rng *r, const struct ref_config *c,
    const struct ref_state *s, const struct gen_wish *w, uint8_t *frame)
{
	static struct gen g;
	unsigned times;
	size_t len;

	g.r = r;
	g.c = c;
	g.s = s;
	g.wish = w;
	g.plain = rng_chance(r, w->plain);
	addresses(&g);
	transport(&g);
	len = link_make(&g, frame);
	len += header(&g, frame + len, g.client, g.vip, g.proto, g.l4_len);
	if (len + g.l4_len + 400 > w->room)
		g.l4_len = w->room > len + 400 ? w->room - len - 400 : 0;
	memcpy(frame + len, g.l4, g.l4_len);
	len = trailing(&g, frame, len + g.l4_len);
	for (times = !g.plain && rng_chance(r, 30) ? rng_range(r, 1, 3) : 0;
	    times > 0; times--)
		len = mutate(&g, frame, len, w->room);
	return len;
}
