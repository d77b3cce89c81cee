/* SPDX-License-Identifier: GPL-2.0-or-later */
/* NAT as it has to be: a list of flows that is looked through from its begin, and
 * checksums that are summed anew wherever they were right. */
#include <linux/bpf.h>
#include <string.h>

#include "ref_packet.h"
#include "xlb_abi.h"

enum { FIN = 1, SYN = 2, RST = 4, PSH = 8, ACK = 16 };
#define TRIES 32
#define FIRST_PORT 16384
#define PORTS 16384

/* Addresses and ports that a packet is to have. */
struct ends {
	const uint8_t *src, *dst;
	unsigned src_port, dst_port;
};

bool
ref_is_source(const struct ref_config *c, const uint8_t addr[16])
{
	unsigned i;

	for (i = 0; i < REF_SOURCES; i++)
		if (memcmp(c->source[i], addr, 16) == 0)
			return true;
	return false;
}

static bool
same(const uint8_t a[16], const uint8_t b[16])
{
	return memcmp(a, b, 16) == 0;
}

static struct ref_flow *
flow_of_client(struct ref_state *s, const struct ref_packet *p)
{
	struct ref_flow *f;

	for (f = s->flow; f < s->flow + s->nflow; f++)
		if (f->v6 == p->v6 && f->proto == p->flow_proto &&
		    f->client_port == p->client_port &&
		    f->vip_port == p->vip_port &&
		    same(f->client, p->client) && same(f->vip, p->dst))
			return f;
	return NULL;
}

/* The packet, or what an error quotes, is between this backend and us. */
static struct ref_flow *
flow_of_backend(const struct ref_config *c, struct ref_state *s,
    const struct ref_packet *p)
{
	struct ref_flow *f;

	for (f = s->flow; f < s->flow + s->nflow; f++)
		if (f->v6 == p->v6 && f->proto == p->flow_proto &&
		    f->back_port == p->client_port &&
		    f->port == p->vip_port && same(f->addr, p->client) &&
		    same(c->source[f->source], p->dst) &&
		    same(c->backend[f->backend].addr, p->client))
			return f;
	return NULL;
}

static bool
port_taken(const struct ref_state *s, const struct ref_flow *wanted)
{
	const struct ref_flow *f;

	for (f = s->flow; f < s->flow + s->nflow; f++)
		if (f->v6 == wanted->v6 && f->proto == wanted->proto &&
		    f->port == wanted->port && f->source == wanted->source &&
		    f->back_port == wanted->back_port &&
		    same(f->addr, wanted->addr))
			return true;
	return false;
}

/* By the flow's hash, and then others in turn. */
static bool
port_choose(const struct ref_config *c, const struct ref_state *s,
    const struct ref_packet *p, struct ref_flow *f)
{
	const bool *may = c->backend[f->backend].source;
	unsigned n = 0, i, at, nth;

	for (i = 0; i < REF_SOURCES; i++)
		n += may[i];
	for (i = 0; n > 0 && i < TRIES; i++) {
		nth = (unsigned)((p->flow >> 48) + i) % n;
		for (at = 0; !may[at] || nth-- > 0; at++)
			;
		f->source = at;
		f->port = FIRST_PORT + (unsigned)((p->flow >> 32) +
		    i * (p->flow | 1)) % PORTS;
		if (!port_taken(s, f))
			return true;
	}
	return false;
}

/* From where it came: false if nothing could be sent back there. */
static bool
way_of(const struct ref_config *c, const struct ref_packet *p,
    struct ref_flow *f)
{
	static const uint8_t nobody[6];
	unsigned i, tci = p->link == 18 ? ref_16(p->frame + 14) : 0;

	if (p->link > 18 || (memcmp(p->frame + 6, nobody, 6) == 0 && tci == 0))
		return false;
	for (i = 0; i < REF_DOORS; i++) {
		if (!c->door[i].there || c->door[i].ifindex != c->ingress)
			continue;
		f->door = i;
		memcpy(f->mac, p->frame + 6, 6);
		f->tci = tci;
		return true;
	}
	return false;
}

static bool
is_ending(const struct ref_packet *p)
{
	return p->flow_proto == REF_TCP && !p->later &&
	    (p->ip[p->l4 + 13] & (FIN | RST));
}

/* Ends it, or shows that it had not ended. */
static void
flow_goes_on(const struct ref_packet *p, struct ref_flow *f)
{
	if (p->flow_proto != REF_TCP || p->later)
		return;
	if (is_ending(p))
		f->closing = true;
	else if (p->ip[p->l4 + 13] & PSH)
		f->closing = false;
}

static unsigned
flow_begin(const struct ref_config *c, struct ref_state *s,
    const struct ref_packet *p, const struct ref_service *service,
    unsigned backend)
{
	struct ref_flow *f = &s->flow[s->nflow];

	memset(f, 0, sizeof(*f));
	if (p->later || !way_of(c, p, f))
		return XLB_REASON_ENCAP_FAILED;
	f->v6 = p->v6;
	f->proto = p->flow_proto;
	memcpy(f->client, p->src, 16);
	memcpy(f->vip, p->dst, 16);
	f->client_port = p->client_port;
	f->vip_port = p->vip_port;
	f->backend = backend;
	memcpy(f->addr, c->backend[backend].addr, 16);
	f->back_port = service->backend_port != 0 ? service->backend_port :
	    p->vip_port;
	f->closing = is_ending(p);
	if (s->nflow + 1 >= REF_FLOWS || !port_choose(c, s, p, f))
		return XLB_REASON_NAT_EXHAUSTED;
	s->nflow++;
	return REF_NEXT;
}

/* The last one takes its place. */
static void
flow_drop(struct ref_state *s, struct ref_flow *f)
{
	*f = s->flow[--s->nflow];
}

static void
put_addresses(uint8_t *ip, bool v6, const struct ends *e)
{
	memcpy(ip + (v6 ? 8 : 12), e->src + (v6 ? 0 : 12), v6 ? 16 : 4);
	memcpy(ip + (v6 ? 24 : 16), e->dst + (v6 ? 0 : 12), v6 ? 16 : 4);
}

static uint32_t
sum_addresses(const uint8_t *ip, bool v6)
{
	return v6 ? ref_sum(0, ip + 8, 32) : ref_sum(0, ip + 12, 8);
}

static void
put_ports(uint8_t *l4, const struct ends *e)
{
	ref_put16(l4, e->src_port);
	ref_put16(l4 + 2, e->dst_port);
}

/* A header with other addresses, and with a hop less where it was sent on. */
static void
put_header(uint8_t *ip, bool v6, const struct ends *e, bool hop)
{
	uint32_t was = sum_addresses(ip, v6) + (v6 ? 0 : ref_16(ip + 8));

	put_addresses(ip, v6, e);
	ip[v6 ? 7 : 8] = (uint8_t)(ip[v6 ? 7 : 8] - hop);
	if (!v6)
		ref_put16(ip + 10, ref_check_changed(ref_16(ip + 10), was,
		    sum_addresses(ip, v6) + ref_16(ip + 8)));
}

/* Of a transport header whose addresses and ports summed up to `was`. */
static void
put_check(uint8_t *check, bool udp, uint32_t was, uint32_t is)
{
	unsigned v;

	if (udp && ref_16(check) == 0)
		return;
	v = ref_check_changed(ref_16(check), was, is);
	ref_put16(check, udp && v == 0 ? 0xffff : v);
}

/* All of the datagram is here: is its checksum right? */
static bool
check_is_right(const uint8_t *ip, const uint8_t *l4, size_t len, bool v6,
    unsigned proto)
{
	uint32_t sum = sum_addresses(ip, v6) + (uint32_t)len + proto;

	if (proto == REF_UDP && ref_16(l4 + 4) != len)
		return false;
	return ref_fold(ref_sum(sum, l4, len)) == 0xffff;
}

/* The checksum as its sender would have made it. */
static void
check_anew(const uint8_t *ip, uint8_t *l4, size_t len, bool v6, unsigned proto)
{
	uint8_t *check = l4 + (proto == REF_UDP ? 6 : 16);
	unsigned v;

	ref_put16(check, 0);
	v = 0xffff - ref_fold(ref_sum(sum_addresses(ip, v6) + (uint32_t)len +
	    proto, l4, len));
	ref_put16(check, proto == REF_UDP && v == 0 ? 0xffff : v);
}

/* The packet between others, at `ip`. */
static void
translate(const struct ref_packet *p, const struct ends *e, uint8_t *ip)
{
	uint8_t *l4 = ip + p->l4;
	bool udp = p->flow_proto == REF_UDP, right;
	size_t len = p->total - p->l4;
	uint32_t was;

	memcpy(ip, p->ip, p->total);
	if (p->later) {
		put_header(ip, p->v6, e, true);
		return;
	}
	was = sum_addresses(ip, p->v6) + ref_sum(0, l4, 4);
	right = !p->first && !(udp && ref_16(l4 + 6) == 0) &&
	    check_is_right(ip, l4, len, p->v6, p->flow_proto);
	put_header(ip, p->v6, e, true);
	put_ports(l4, e);
	if (right)
		check_anew(ip, l4, len, p->v6, p->flow_proto);
	else
		put_check(l4 + (udp ? 6 : 16), udp, was,
		    sum_addresses(ip, p->v6) + ref_sum(0, l4, 4));
}

/* All that ICMP's checksum covers, but for itself. */
static uint32_t
sum_icmp(const uint8_t *ip, const uint8_t *m, size_t len, bool v6)
{
	return ref_sum((v6 ? sum_addresses(ip, v6) : 0) + ref_16(m), m + 4,
	    len - 4);
}

/* An error between others: what it quotes went the other way. */
static void
translate_error(const struct ref_packet *p, const struct ends *e, uint8_t *ip)
{
	struct ends back = { e->dst, e->src, e->dst_port, e->src_port };
	uint8_t *m = ip + p->l4, *quote = m + 8, *l4 = ip + p->quote;
	bool udp = p->flow_proto == REF_UDP;
	size_t len = p->total - p->l4;
	uint32_t all, was;

	memcpy(ip, p->ip, p->total);
	all = sum_icmp(ip, m, len, p->v6);
	put_header(ip, p->v6, e, true);
	was = sum_addresses(quote, p->v6) + ref_sum(0, l4, 4);
	put_header(quote, p->v6, &back, false);
	put_ports(l4, &back);
	if (udp || (p->quote + 18 <= p->total && p->quote + 18 <= p->seen))
		put_check(l4 + (udp ? 6 : 16), udp, was,
		    sum_addresses(quote, p->v6) + ref_sum(0, l4, 4));
	ref_put16(m + 2, ref_check_changed(ref_16(m + 2), all,
	    sum_icmp(ip, m, len, p->v6)));
}

static unsigned
depart(const struct ref_config *c, const struct ref_packet *p,
    const struct ref_hop *hop, const struct ends *e, struct ref_result *out)
{
	size_t at = ref_link_put(p, hop, p->v6, out->frame);

	(p->error ? translate_error : translate)(p, e, out->frame + at);
	return ref_leave(c, p, hop, at + p->total, out);
}

static const struct ref_hop *
way_to(const struct ref_config *c, const struct ref_packet *p,
    unsigned backend, unsigned *reason)
{
	const struct ref_backend *b = &c->backend[backend];
	const struct ref_hop *hop = &c->hop[b->hop];

	*reason = backend == 0 ? XLB_REASON_NO_BACKEND :
	    b->hop == 0 ? XLB_REASON_NO_NEIGHBOR :
	    b->v6 != p->v6 ? XLB_REASON_ENCAP_FAILED :
	    !hop->resolved ? XLB_REASON_NO_NEIGHBOR : REF_NEXT;
	return hop;
}

static bool
last_hop(const struct ref_packet *p)
{
	return p->ip[p->v6 ? 7 : 8] <= 1;
}

static unsigned
to_backend(const struct ref_config *c, const struct ref_packet *p,
    const struct ref_flow *f, struct ref_result *out)
{
	struct ends e = { c->source[f->source], c->backend[f->backend].addr,
	    f->port, f->back_port };
	unsigned reason;

	reason = depart(c, p, &c->hop[c->backend[f->backend].hop], &e, out);
	if (out->action != XDP_DROP)
		out->backend = f->backend;
	return reason;
}

/* An error changes nothing, and goes where its flow is. */
static unsigned
error_to_backend(const struct ref_config *c, struct ref_state *s,
    const struct ref_packet *p, struct ref_result *out)
{
	const struct ref_flow *f = flow_of_client(s, p);
	const struct ref_hop *hop;
	unsigned reason;

	if (f == NULL)
		return XLB_REASON_NO_BACKEND;
	if (last_hop(p))
		return XLB_REASON_ENCAP_FAILED;
	hop = way_to(c, p, f->backend, &reason);
	if (reason != REF_NEXT)
		return reason;
	if (p->total > hop->mtu)
		return XLB_REASON_TOO_BIG_NO_DF;
	return to_backend(c, p, f, out);
}

static bool
is_new_syn(const struct ref_packet *p)
{
	return p->flow_proto == REF_TCP && !p->later &&
	    (p->ip[p->l4 + 13] & (SYN | ACK)) == SYN;
}

/* `*chosen`: where it goes, or was to go. */
static unsigned
client_packet(const struct ref_config *c, struct ref_state *s,
    const struct ref_packet *p, const struct ref_service *service,
    unsigned owner, unsigned *chosen, struct ref_result *out)
{
	struct ref_flow *f = flow_of_client(s, p);
	bool kept = f != NULL && service->ring < REF_RINGS &&
	    c->keeps[service->ring][f->backend] &&
	    !(f->closing && is_new_syn(p));
	const struct ref_hop *hop;
	unsigned reason;

	*chosen = kept ? f->backend : owner;
	hop = way_to(c, p, *chosen, &reason);
	if (reason != REF_NEXT)
		return reason;
	if (last_hop(p))
		return XLB_REASON_ENCAP_FAILED;
	if (p->total > hop->mtu) {
		*chosen = 0;
		return ref_too_big(s, p, hop->mtu, out);
	}
	if (f != NULL && !kept && f->backend != owner) {
		flow_drop(s, f);
		f = NULL;
	}
	if (f == NULL) {
		reason = flow_begin(c, s, p, service, owner);
		if (reason != REF_NEXT)
			return reason;
		f = &s->flow[s->nflow - 1];
	} else if (!kept) {
		f->closing = is_ending(p);
	}
	flow_goes_on(p, f);
	way_of(c, p, f);
	return to_backend(c, p, f, out);
}

unsigned
ref_nat(const struct ref_config *c, struct ref_state *s,
    const struct ref_packet *p, const struct ref_service *service,
    unsigned owner, struct ref_result *out)
{
	unsigned reason, chosen;

	out->nat = true;
	if (p->error)
		return error_to_backend(c, s, p, out);
	reason = client_packet(c, s, p, service, owner, &chosen, out);
	if (p->first && chosen != 0)
		ref_fragment_remember(c, s, p, service, chosen, true);
	return reason;
}

static unsigned
to_client(const struct ref_config *c, const struct ref_state *s,
    const struct ref_packet *p, struct ref_flow *f, unsigned *chosen,
    struct ref_result *out)
{
	const struct ref_door *door = &c->door[f->door];
	struct ends e = { f->vip, f->client, f->vip_port, f->client_port };
	struct ref_hop hop = { .resolved = true, .tci = (uint16_t)f->tci,
	    .mtu = door->mtu, .ifindex = door->ifindex };
	unsigned reason;

	memcpy(hop.mac, f->mac, 6);
	memcpy(hop.own_mac, door->own_mac, 6);
	if (p->error && last_hop(p))
		return XLB_REASON_ENCAP_FAILED;
	if (p->total > hop.mtu)
		return p->error ? XLB_REASON_TOO_BIG_NO_DF :
		    ref_too_big(s, p, hop.mtu, out);
	*chosen = f->backend;
	if (!p->error)
		flow_goes_on(p, f);
	if (last_hop(p))
		return XLB_REASON_ENCAP_FAILED;
	reason = depart(c, p, &hop, &e, out);
	return reason == XLB_REASON_FORWARD ? XLB_REASON_NAT_REPLY : reason;
}

/* What nobody waits for is the host's. */
unsigned
ref_nat_own(const struct ref_config *c, struct ref_state *s,
    struct ref_packet *p, struct ref_result *out)
{
	unsigned reason = XLB_REASON_NOT_VIP, chosen = 0;
	struct ref_flow *f = flow_of_backend(c, s, p);

	out->nat = true;
	if (f != NULL)
		reason = to_client(c, s, p, f, &chosen, out);
	if (p->first && chosen != 0)
		ref_fragment_remember(c, s, p, NULL, chosen, true);
	out->bytes = 0;
	return reason;
}
