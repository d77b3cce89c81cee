/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What packets did, told to those who listen. Nobody does: one word is tested.
 * Somebody does: a function of its own reads the frame as it now is, so that
 * nothing has to be kept for it on the way.
 */
#ifndef XLB_EVENTS_H
#define XLB_EVENTS_H

#include "vip.h"
#include "walk.h"

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, XLB_EVENT_BYTES);
} events SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct xlb_event_state);
} event_state SEC(".maps");

#define EVENT_NOTED	0x80000000U
#define EVENT_WHAT(reason, backend) \
    (EVENT_NOTED | (__u32)(backend) << 8 | (__u32)(reason))
#define EVENT_REASON(what)	((what) & 0x1f)
#define EVENT_BACKEND(what)	((what) >> 8 & 0x7fff)
#define EVENT_NOBODY	~0ULL	/* as a service's word: none */

#define EVENT_BIT(NAME)		(1U << XLB_REASON_##NAME)
/* The rest ends before its service is known. */
#define EVENT_SERVED (EVENT_BIT(FORWARD) | EVENT_BIT(FORWARD_PREV) | \
    EVENT_BIT(FORWARD_PINNED) | EVENT_BIT(ICMP_ERROR) | EVENT_BIT(TOO_BIG) | \
    EVENT_BIT(NO_BACKEND) | EVENT_BIT(TOO_BIG_NO_DF) | \
    EVENT_BIT(TOO_BIG_RATE) | EVENT_BIT(NO_NEIGHBOR) | EVENT_BIT(ENCAP_FAILED) | \
    EVENT_BIT(NAT_EXHAUSTED))
/* Has a header of the tunnel in front of it. */
#define EVENT_WRAPPED (EVENT_BIT(FORWARD) | EVENT_BIT(FORWARD_PREV) | \
    EVENT_BIT(FORWARD_PINNED) | EVENT_BIT(ICMP_ERROR))
/* No news: sampled. */
#define EVENT_SAMPLED (EVENT_BIT(FORWARD) | EVENT_BIT(FORWARD_PREV) | \
    EVENT_BIT(FORWARD_PINNED) | EVENT_BIT(NOT_VIP) | EVENT_BIT(NAT_REPLY))
#define EVENT_TCP_ACK 0x10

/* Where the packet that came has its IP header now, behind the first one. */
static __always_inline __u32
event_inner(__u32 reason, __u64 service, int v6)
{
	__u32 ip_len = v6 ? PARSE_IP6_LEN : PARSE_IP4_LEN;

	if (reason == XLB_REASON_TOO_BIG)	/* quoted */
		return ip_len + 8;
	if (!(EVENT_WRAPPED >> reason & 1))
		return 0;
	switch (XLB_WORD_FLAGS(service) & XLB_SERVICE_FORWARD) {
	case XLB_FORWARD_IPIP:
		return ip_len;
	case XLB_FORWARD_GUE:
		return ip_len + PARSE_UDP_LEN;
	default:
		return 0;
	}
}

/* Of the header at `at`, its addresses; where its transport header is, and
 * WALK_LATER where there is none; 0: cut before. */
static __always_inline __u64
event_addresses4(struct sys_ctx *ctx, struct xlb_event *e, __u32 at)
{
	const __u8 *ip = sys_data(ctx) + at;

	if (ip + PARSE_IP4_LEN > sys_end(ctx))
		return 0;
	e->src[2] = e->dst[2] = be32(PARSE_V4_MAPPED);
	e->src[3] = get32(ip + 12);
	e->dst[3] = get32(ip + 16);
	e->len = be16(get16(ip + 2));
	return WALK(at + (ip[0] & 0xf) * 4, ip[9],
	    get16(ip + 6) & be16(PARSE_FRAGMENT_OFFSET) ? WALK_LATER : 0, 0);
}

static __always_inline __u64
event_addresses6(struct sys_ctx *ctx, struct xlb_event *e, __u32 at)
{
	const __u8 *ip = sys_data(ctx) + at;
	__u32 i;

	if (ip + PARSE_IP6_LEN > sys_end(ctx))
		return 0;
	for (i = 0; i < 4; i++) {
		e->src[i] = get32(ip + 8 + 4 * i);
		e->dst[i] = get32(ip + 24 + 4 * i);
	}
	e->len = PARSE_IP6_LEN + be16(get16(ip + 4));
	return xlb_walk(ctx, at + PARSE_IP6_LEN, ip[6]);
}

static __always_inline void
event_ports(struct sys_ctx *ctx, struct xlb_event *e, __u64 walk)
{
	const __u8 *l4 = sys_data(ctx) + WALK_AT(walk);

	e->flags |= XLB_EVENT_IP;
	e->proto = WALK_PROTO(walk);
	if ((WALK_FLAGS(walk) & (WALK_LATER | WALK_BAD)) ||
	    (e->proto != IPPROTO_TCP && e->proto != IPPROTO_UDP) ||
	    l4 + 4 > sys_end(ctx))
		return;
	e->ports = get32(l4);
	if (e->proto == IPPROTO_TCP && l4 + PARSE_TCP_LEN <= sys_end(ctx) &&
	    (l4[13] & (PARSE_SYN | EVENT_TCP_ACK)) == PARSE_SYN &&
	    (EVENT_WRAPPED >> e->reason & 1))
		e->flags |= XLB_EVENT_BEGINS;
}

/* An answer of ours: who asked is its destination. */
static __always_inline void
event_swap(struct xlb_event *e)
{
	__be32 was;
	__u32 i;

	for (i = 0; i < 4; i++) {
		was = e->src[i];
		e->src[i] = e->dst[i];
		e->dst[i] = was;
	}
}

/* It has other addresses by now; those that came were noted. */
static __always_inline void
event_untranslate(struct xlb_event *e)
{
	const struct xlb_rare *r = rare_get();
	__u32 i;

	if (r == NULL)
		return;
	for (i = 0; i < 4; i++) {
		e->src[i] = get32(r->nat.client + 4 * i);
		e->dst[i] = get32(r->nat.vip + 4 * i);
	}
	e->ports = r->nat.ports;
}

static __always_inline void
event_packet(struct sys_ctx *ctx, struct xlb_event *e, __u64 service)
{
	__u32 link = xlb_link(ctx), at = link >> 16 & 0x1f, skip;
	int v6 = (link & 0xffff) == be16(ETH_P_IPV6);
	const __u8 *ip;
	__u64 walk;

	if (link == 0)
		return;
	skip = event_inner(e->reason, service, v6);
	at += skip;
	ip = sys_data(ctx) + at;
	if (ip + 1 > sys_end(ctx))
		return;
	if (skip != 0)
		v6 = ip[0] >> 4 == 6;
	walk = v6 ? event_addresses6(ctx, e, at) : event_addresses4(ctx, e, at);
	if (walk != 0)
		event_ports(ctx, e, walk);
	if (e->reason == XLB_REASON_ECHO)
		event_swap(e);
	if (e->reason == XLB_REASON_FORWARD && service != EVENT_NOBODY &&
	    (XLB_WORD_FLAGS(service) & XLB_SERVICE_NAT))
		event_untranslate(e);
}

/* A bucket for each reader, CPU and kind: many of one do not hide another. */
static __always_inline int
event_limited(struct xlb_event_state *s, __u32 reader, __u32 kind, __s64 now)
{
	__u64 *due = &s->due[(reader * XLB_EVENT_REASONS + kind) &
	    (XLB_EVENT_READERS * XLB_EVENT_REASONS - 1)];
	__s64 at = now - (__s64)XLB_EVENT_EVERY * XLB_EVENT_BURST;

	if ((__s64)*due > at)
		at = *due;
	if (at > now) {
		s->limited[reader]++;
		return 1;
	}
	*due = at + XLB_EVENT_EVERY;
	return 0;
}

/* Who gets this one, a bit each: kept in memory, where the verifier knows nothing
 * of it and does not try all combinations. */
static __always_inline __u32
event_readers(const struct xlb_event_filter *f, struct xlb_event_state *s,
    __s64 now)
{
	__u32 begins = 0, wanted, i, kind;
	__u32 reason = s->event.reason & (XLB_EVENT_REASONS - 1);
	__u32 who = f->any, number = s->event.service;

	if (number < XLB_SERVICES)
		who |= f->service[number];
	if (s->event.flags & XLB_EVENT_BEGINS)
		begins = f->reason[XLB_EVENT_NEW_FLOW] & who;
	wanted = f->reason[reason] & who;
	for (i = 0; i < XLB_EVENT_READERS; i++) {
		if (!((wanted | begins) >> i & 1))
			continue;
		kind = begins >> i & 1 ? XLB_EVENT_NEW_FLOW : reason;
		if (kind == reason && (EVENT_SAMPLED >> reason & 1) &&
		    (s->seen[i]++ & f->sample[i]) != 0)
			continue;
		if (!event_limited(s, i, kind, now))
			s->event.readers |= 1U << i;
	}
	return READ_ONCE(s->event.readers);
}

/* Nobody has asked for more in time: xlbd was killed. */
static __always_inline void
event_expire(const struct xlb_tables *t, __u32 until)
{
	__sync_val_compare_and_swap((__u32 *)(long)&t->settings.listening,
	    until, 0);
}

static __always_inline void
event_say(struct sys_ctx *ctx, const struct xlb_tables *t,
    struct xlb_event_state *s, __u64 service)
{
	struct xlb_event *e = &s->event;
	__u32 readers, i;

	e->ifindex = ctx->ingress_ifindex;
	e->cpu = bpf_get_smp_processor_id();
	if ((EVENT_SERVED >> e->reason & 1) && service != EVENT_NOBODY)
		e->service = XLB_WORD_NUMBER(service);
	event_packet(ctx, e, service);
	readers = event_readers(&t->filter, s, bpf_ktime_get_coarse_ns());
	if (readers == 0)
		return;
	e->at = bpf_ktime_get_ns();
	if (bpf_ringbuf_output(&events, e, sizeof(*e), 0) == 0)
		return;
	for (i = 0; i < XLB_EVENT_READERS; i++)
		s->unread[i] += readers >> i & 1;
}

int xlb_event(struct sys_ctx *ctx, __u32 what, __u64 service);

/* `what` is EVENT_WHAT() of a packet that has ended, and `service` the word of
 * the service that it matched. */
__noinline int
xlb_event(struct sys_ctx *ctx, __u32 what, __u64 service)
{
	const struct xlb_tables *t = vip_tables();
	__u32 zero = 0, until, i;
	struct xlb_event_state *s;

	s = bpf_map_lookup_elem(&event_state, &zero);
	if (s == NULL)
		return 0;
	until = READ_ONCE(t->settings.listening);
	if (bpf_ktime_get_coarse_ns() >> XLB_EVENT_TICK_SHIFT > until) {
		event_expire(t, until);
		return 0;
	}
	for (i = 0; i < 4; i++)
		s->event.src[i] = s->event.dst[i] = 0;
	s->event.ports = s->event.len = 0;
	s->event.service = XLB_EVENT_NO_SERVICE;
	s->event.backend = EVENT_BACKEND(what);
	s->event.reason = EVENT_REASON(what);
	s->event.readers = s->event.proto = s->event.flags = 0;
	event_say(ctx, t, s, service);
	return 0;
}

static __always_inline int
event_wanted(const struct xlb_tables *t)
{
	return READ_ONCE(t->settings.listening) != 0;
}

static __always_inline void
event_end(const struct pkt *p, enum xlb_reason reason)
{
	if (READ_ONCE(p->tables->settings.listening) != 0)
		xlb_event(p->ctx, EVENT_WHAT(reason, p->backend), p->service);
}

/* The end of a packet that is not ordinary; xlb() says it, whose stack does not
 * lie on top of others. */
static __always_inline void
event_note(enum xlb_reason reason, __u64 service, __u32 backend)
{
	struct xlb_rare *r;

	if (!event_wanted(vip_tables()))
		return;
	r = rare_get();
	if (r == NULL)
		return;
	r->event_service = service;
	r->event = EVENT_WHAT(reason, backend);
}

static __always_inline void
event_noted(struct sys_ctx *ctx)
{
	struct xlb_rare *r;
	__u32 what;

	if (!event_wanted(vip_tables()))
		return;
	r = rare_get();
	if (r == NULL)
		return;
	what = r->event;
	r->event = 0;
	if (what != 0)
		xlb_event(ctx, what, r->event_service);
}

#endif
