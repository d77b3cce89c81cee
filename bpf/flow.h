/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which backend a flow is with, where the ring alone does not say. A slot that
 * has not changed lately agrees with all its flows, so their packets need no
 * table; some of them keep it true, so that the flows are known when the slot
 * changes.
 */
#ifndef XLB_FLOW_H
#define XLB_FLOW_H

#include <linux/in.h>

#include "parse.h"
#include "select.h"
#include "vip.h"
#include "walk.h"

/* Sets of `flows`, less one; they are a power of two. Userland sets it and the
 * size of the map to match. */
SYS_RODATA __u32 flow_mask = 131071;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 131072);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct xlb_flow_set);
} flows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct xlb_flow_stats);
} flow_stats SEC(".maps");

/* A packet with one of these is looked up. */
#define FLOW_MARKS (PARSE_FIN | PARSE_SYN | PARSE_RST | PARSE_PSH)

/* What the packet is: bits 56-63 of slow_described(). TCP's flags, and */
enum {
	FLOW_UDP = 0x40,
	FLOW_READ = 0x80	/* an ICMP error about the flow: changes nothing */
};
#define FLOW_PACKET(described, flags) ((described) | (__u64)(flags) << 56)

/* What is asked, in two words: the slot's word and the hash that selected it. */
#define FLOW_WHERE(word, select) ((__u64)(select) << 32 | (word))

/*
 * One packet in 16, by flow and time: each flow has its turn in every 16th or so
 * of the clock's ticks (1 to 10 ms), whatever its packets' rhythm. The clock is
 * a word of the kernel's that the verifier puts in the place of this call.
 */
static __always_inline int
flow_sampled(__u64 flow)
{
	__u32 x = (__u32)flow + (__u32)bpf_jiffies64() * 0x9e3779b1U;

	x = (x ^ x >> 15) * 0x85ebca6bU;
	return x >> 28 == 0;
}

/* LOOKUP of the slot, the service, and all the node, each moved to the slot's
 * bit: one test. */
#define FLOW_LOOKUP_BIT 15
#define FLOW_SERVICE_SHIFT (48 + 4 - FLOW_LOOKUP_BIT)

_Static_assert(XLB_SLOT_LOOKUP == 1U << FLOW_LOOKUP_BIT, "slot");
_Static_assert((__u64)XLB_SERVICE_LOOKUP << 48 >> FLOW_SERVICE_SHIFT ==
    XLB_SLOT_LOOKUP, "service");
_Static_assert(XLB_SURGE << FLOW_LOOKUP_BIT == XLB_SLOT_LOOKUP, "surge");

/* True if the ring alone does not say where the packet goes, or it is one of
 * those that keep the table true. Only UDP has no flags at all. */
static __always_inline int
flow_is_looked_up(const struct pkt *p, __u32 word)
{
	__u32 surge = p->tables->settings.flags;

	if ((word | (__u32)(p->service >> FLOW_SERVICE_SHIFT) |
	    surge << FLOW_LOOKUP_BIT) & XLB_SLOT_LOOKUP)
		return 1;
	if (p->tcp_flags & FLOW_MARKS)
		return 1;
	return p->tcp_flags != 0 && flow_sampled(p->flow);
}

/* In a flood the call costs more than all that is left to do: a stable slot does
 * without as soon as the budget is known to be used up. */
static __always_inline int
flow_is_skipped(const struct pkt *p, __u32 word)
{
	struct xlb_flow_stats *s;
	__u32 zero = 0;

	if ((word | (__u32)(p->service >> FLOW_SERVICE_SHIFT)) &
	    XLB_SLOT_LOOKUP)
		return 0;
	s = bpf_map_lookup_elem(&flow_stats, &zero);
	if (s == NULL || s->spent != bpf_jiffies64())
		return 0;
	s->skip_budget++;
	return 1;
}

/* One packet's question to the table. */
struct flow {
	struct xlb_flow_set *set;
	struct xlb_flow_stats *stats;
	__u64 service;
	__u32 select, cur, prev;
	__u32 row, tag, tick;
	__u32 flags;		/* of FLOW_PACKET() */
	int moved;		/* the slot's LOOKUP, or the service's */
	int spent;		/* this window's budget */
};

static __always_inline int
flow_is_syn(const struct flow *f)
{
	return (f->flags & (PARSE_SYN | PARSE_ACK)) == PARSE_SYN;
}

static __always_inline int
flow_is_end(const struct flow *f)
{
	return f->flags & (PARSE_FIN | PARSE_RST);
}

/* The service's own pool has the backend for old flows. */
static __always_inline int
flow_kept(const struct flow *f, __u32 backend)
{
	const struct xlb_ring *ring = select_ring(XLB_WORD_RING(f->service));
	__u32 word;

	if (ring == NULL)
		return 0;
	word = READ_ONCE(ring->member[backend % XLB_BACKENDS / 16]);
	return XLB_MEMBER_BITS(word, backend) & XLB_MEMBER_KEEPS;
}

/* In ticks, counted from XLB_FLOW_AHEAD on: another CPU may have written with a
 * clock that is a little ahead. */
static __always_inline __u32
flow_age(__u32 tick, __u64 entry)
{
	return (tick + XLB_FLOW_AHEAD - XLB_FLOW_USED(entry)) &
	    XLB_FLOW_AGE_MASK;
}

#define FLOW_NEVER (-1 - XLB_FLOW_AHEAD)

/* In ticks, how long the entry binds this packet. One that agrees with the ring
 * is never wrong; and where the slot is stable, packets that are not looked up go
 * by the ring, so only what xlbd waited for before it called the slot stable
 * counts. */
static __always_inline int
flow_life(const struct flow *f, __u64 entry)
{
	__u32 confirmed = (__u32)entry & XLB_FLOW_CONFIRMED;
	__u32 closing = (__u32)entry & XLB_FLOW_CLOSING;

	if (flow_is_syn(f))
		return closing ? FLOW_NEVER :
		    confirmed ? XLB_FLOW_LIVE : XLB_FLOW_OPENING;
	if (XLB_FLOW_BACKEND(entry) == f->cur)
		return XLB_FLOW_KNOWN;
	if (closing)
		return XLB_FLOW_SESSION;
	return f->moved ? XLB_FLOW_KNOWN :
	    confirmed ? XLB_FLOW_LIVE : XLB_FLOW_OPENING;
}

static __always_inline int
flow_binds(const struct flow *f, __u64 entry)
{
	return (int)flow_age(f->tick, entry) <=
	    XLB_FLOW_AHEAD + flow_life(f, entry);
}

/* Where a packet goes whose flow is not known: on a slot that has changed to
 * the owner before, since it most likely began there; a new one to the owner
 * now. After a change of pool the owner before is the old ring's. */
static __always_inline __u32
flow_unknown(const struct flow *f)
{
	__u32 before = f->prev;

	if (flow_is_syn(f))
		return f->cur;
	if ((XLB_WORD_FLAGS(f->service) & XLB_SERVICE_LOOKUP) &&
	    XLB_WORD_OLD_RING(f->service) != XLB_WORD_RING(f->service))
		before = XLB_SLOT_CUR(select_slot(
		    XLB_WORD_OLD_RING(f->service), f->select));
	if (before != 0 && before != f->cur && flow_kept(f, before))
		return before;
	return f->cur;
}

/*
 * Which entry gives way to a new one: that of the highest rank, a kind and among
 * equals the age. Its way is part of it.
 */
#define FLOW_RANK_EMPTY	(1U << 23)
#define FLOW_RANK_DEAD	(1U << 22)	/* binds its flow no more */
#define FLOW_RANK_LOOSE	(1U << 21)	/* unconfirmed, or closing */
#define FLOW_RANK_IDLE	(1U << 20)	/* confirmed, but for long not used */
#define FLOW_RANK_AGE_SHIFT 4
#define FLOW_RANK_WAY(r) ((r) & (XLB_FLOW_WAYS - 1))

/* Lives by the two bits confirmed, closing. */
#define FLOW_LIVES ((__u64)XLB_FLOW_OPENING | (__u64)XLB_FLOW_LIVE << 16 | \
    (__u64)XLB_FLOW_SESSION << 32 | (__u64)XLB_FLOW_SESSION << 48)

/* `rank`, one bit up to the 23rd, if a < b, both below 2^28; else 0. No branch:
 * the verifier would try all in all combinations. */
static __always_inline __u32
flow_less(__u32 a, __u32 b, __u32 rank)
{
	__u32 less = a - b;

	SYS_OPAQUE(less);
	return (__u32)((__s32)less >> 8) & rank;
}

static __always_inline __u32
flow_rank(__u32 tick, __u64 entry, __u32 way)
{
	__u32 kind = (__u32)entry / XLB_FLOW_CONFIRMED & 3;
	__u32 age = flow_age(tick, entry);
	__u32 life = FLOW_LIVES >> kind * 16 & 0xffff;

	return flow_less(XLB_FLOW_BACKEND(entry), 1, FLOW_RANK_EMPTY) |
	    flow_less(XLB_FLOW_AHEAD + life, age, FLOW_RANK_DEAD) |
	    flow_less(0, kind ^ 1, FLOW_RANK_LOOSE) |
	    flow_less(XLB_FLOW_AHEAD + XLB_FLOW_FIRM, age, FLOW_RANK_IDLE) |
	    age << FLOW_RANK_AGE_SHIFT | way;
}

__u32 xlb_flow_weakest(__u32 row, __u32 tick);

/* The highest rank of a set. A function of its own, since few packets need it. */
__noinline __u32
xlb_flow_weakest(__u32 row, __u32 tick)
{
	const struct xlb_flow_set *set = bpf_map_lookup_elem(&flows, &row);
	__u32 best = 0, rank, i;

	if (set == NULL)
		return 0;
	for (i = 0; i < XLB_FLOW_WAYS; i++) {
		rank = flow_rank(tick, READ_ONCE(set->entry[i]), i);
		if (rank > best)
			best = rank;
	}
	return best;
}

/* The way of this flow's entry; XLB_FLOW_WAYS: it has none. Empty places are filled
 * from the last one on. */
static __always_inline __u32
flow_find(const struct flow *f)
{
	const __u32 *half;
	__u32 i;

	for (i = XLB_FLOW_WAYS; i-- > 0;) {
		half = (const __u32 *)&f->set->entry[i];
		if (READ_ONCE(half[SYS_LITTLE]) == f->tag &&
		    XLB_FLOW_BACKEND(READ_ONCE(half[!SYS_LITTLE])) != 0)
			return i;
	}
	return XLB_FLOW_WAYS;
}

/* An answer: bits 0-15 backend, 24-31 how, as OTHER_TO() has them; 0: none. LOST:
 * not written, since another CPU was there first. */
#define FLOW_LOST	(1U << 16)

static __always_inline __u32
flow_answer(const struct flow *f, __u32 to, __u32 how)
{
	return to == f->cur ? to : to | how << 24;
}

static __always_inline __u32
flow_write(const struct flow *f, __u32 way, __u64 was, __u64 now)
{
	__u64 *at = &f->set->entry[way & (XLB_FLOW_WAYS - 1)];

	return __sync_val_compare_and_swap(at, was, now) == was ? 0 : FLOW_LOST;
}

/* A hit: refreshed and confirmed. Data after a FIN or RST say that it was not
 * this connection's end. */
static __always_inline __u32
flow_hit(const struct flow *f, __u32 way, __u64 was, __u32 to)
{
	__u32 flags = XLB_FLOW_CONFIRMED, answer;
	__u64 now;

	answer = flow_answer(f, to, OTHER_PINNED);
	if (to == 0 || (f->flags & FLOW_READ))
		return answer;
	if (f->flags & FLOW_UDP)
		flags |= XLB_FLOW_CLOSING;
	else if (flow_is_end(f))
		flags = XLB_FLOW_CLOSING | ((__u32)was & XLB_FLOW_CONFIRMED);
	else if (!(f->flags & PARSE_PSH))
		flags |= (__u32)was & XLB_FLOW_CLOSING;
	now = XLB_FLOW(f->tag, to, flags, f->tick);
	return now == was ? answer : answer | flow_write(f, way, was, now);
}

/* A new entry, in the place of the flow's own, which binds no more, or of the
 * one that may soonest be missed. */
static __always_inline __u32
flow_new(const struct flow *f, __u32 way, __u64 was)
{
	__u32 to = flow_unknown(f), rank = 0, answer;

	answer = flow_answer(f, to, OTHER_PREV);
	if (to == 0 || (f->flags & FLOW_READ) || flow_is_end(f))
		return answer;
	if (way == XLB_FLOW_WAYS) {
		if (f->spent) {
			f->stats->skip_budget++;
			return answer;
		}
		rank = xlb_flow_weakest(f->row, f->tick);
		if (rank < FLOW_RANK_IDLE) {
			f->stats->full++;
			return answer;
		}
		way = FLOW_RANK_WAY(rank);
		was = READ_ONCE(f->set->entry[way]);
		/* whoever has written this flow since the first look did so
		 * in the place that was the weakest then: in this one, or
		 * before this one was */
		if (flow_rank(f->tick, was, way) != rank ||
		    flow_find(f) != XLB_FLOW_WAYS)
			return answer | FLOW_LOST;
	}
	answer |= flow_write(f, way, was, XLB_FLOW(f->tag, to,
	    f->flags & FLOW_UDP ? XLB_FLOW_CLOSING : 0, f->tick));
	if (answer & FLOW_LOST)
		return answer;
	f->stats->insert++;
	if (rank == 0)
		return answer;
	f->stats->used++;
	if (rank < FLOW_RANK_LOOSE)
		f->stats->evict_confirmed++;
	else if (rank < FLOW_RANK_DEAD)
		f->stats->evict_unconfirmed++;
	return answer;
}

/* Goes by the surge rule if it is sampled and has payload. */
static __always_inline int
flow_counts(const struct flow *f)
{
	return !f->moved && !(f->flags & (PARSE_SYN | PARSE_FIN | PARSE_RST));
}

static __always_inline void
flow_count(const struct flow *f, struct sys_ctx *ctx, __u64 packet, int known)
{
	const __u8 *tcp = sys_data(ctx) + OTHER_LINK_LEN(packet) +
	    OTHER_L4(packet);

	if (tcp + PARSE_TCP_LEN > sys_end(ctx) || OTHER_LEN(packet) <=
	    OTHER_L4(packet) + (tcp[12] >> 4) * 4)
		return;
	f->stats->sampled++;
	if (!known)
		f->stats->unknown++;
}

/* One look at the set, and what is written. */
static __always_inline __u32
flow_look(const struct flow *f, int *known)
{
	__u32 way = flow_find(f), to;
	__u64 was = 0;

	*known = 0;
	if (way == XLB_FLOW_WAYS)
		return flow_new(f, way, 0);
	was = READ_ONCE(f->set->entry[way]);
	to = XLB_FLOW_BACKEND(was);
	if (XLB_FLOW_TAG(was) != f->tag || to == 0)	/* just now */
		return f->cur | FLOW_LOST;
	if (!flow_binds(f, was))
		return flow_new(f, way, was);
	*known = 1;
	if (to != f->cur && !flow_kept(f, to)) {
		if (flow_is_syn(f))
			return flow_new(f, way, was);
		to = f->cur;
	}
	if (flow_is_syn(f))
		return flow_answer(f, to, OTHER_PINNED);
	return flow_hit(f, way, was, to);
}

/* The coarse clock, late by a tick of the kernel's at most: it moves with those,
 * so it is asked once in each. */
static __always_inline __u64
flow_now(struct xlb_flow_stats *s)
{
	__u64 jiffies = bpf_jiffies64();

	if (s->jiffies != jiffies) {
		s->jiffies = jiffies;
		s->now = bpf_ktime_get_coarse_ns();
	}
	return s->now;
}

/* True if there is a table for this packet. Only in slots that have changed do
 * UDP and ICMP errors need one, and only there a used-up budget is no reason
 * to do without. */
static __always_inline int
flow_begin(struct flow *f, __u64 flow)
{
	const struct xlb_tables *t = vip_tables();
	__u32 zero = 0;
	__u64 now, window;

	if (!f->moved && (f->flags & (FLOW_UDP | FLOW_READ)))
		return 0;
	if ((f->flags & FLOW_UDP) &&
	    (XLB_WORD_FLAGS(f->service) & XLB_SERVICE_DATAGRAM))
		return 0;
	f->stats = bpf_map_lookup_elem(&flow_stats, &zero);
	f->row = xlb_flow_row(flow, flow_mask);
	f->set = bpf_map_lookup_elem(&flows, &f->row);
	if (f->stats == NULL || f->set == NULL)
		return 0;
	now = flow_now(f->stats);
	f->tick = now >> XLB_FLOW_TICK_SHIFT;
	window = now >> XLB_FLOW_WINDOW_SHIFT;
	if (f->stats->window != window) {
		f->stats->window = window;
		f->stats->used = 0;
	}
	f->spent = f->stats->used >= t->settings.flow_budget;
	if (!f->spent || f->moved)
		return 1;
	f->stats->spent = bpf_jiffies64();
	f->stats->skip_budget++;
	return 0;
}

__u32 xlb_flow(struct sys_ctx *ctx, __u64 flow, __u64 where, __u64 service,
    __u64 packet);

/*
 * The backend of the packet that is described so, and how it came to it: an
 * answer, see above. `where` is FLOW_WHERE(), `packet` FLOW_PACKET(). The slot's
 * word is read once, by the caller.
 */
__noinline __u32
xlb_flow(struct sys_ctx *ctx, __u64 flow, __u64 where, __u64 service,
    __u64 packet)
{
	struct flow f = { .service = service, .select = where >> 32,
	    .cur = XLB_SLOT_CUR(where), .prev = XLB_SLOT_PREV(where),
	    .flags = packet >> 56 };
	__u32 answer = 0, i;
	int known;

	f.tag = xlb_flow_tag(f.select, flow);
	f.moved = (where & XLB_SLOT_LOOKUP) != 0 ||
	    (XLB_WORD_FLAGS(service) & XLB_SERVICE_LOOKUP) != 0;
	if (!flow_begin(&f, flow))
		return f.cur;
	for (i = 0; i < 2; i++) {
		answer = flow_look(&f, &known);
		if (i == 0 && flow_counts(&f) && flow_sampled(flow))
			flow_count(&f, ctx, packet, known);
		if (!(answer & FLOW_LOST))
			return answer;
	}
	f.stats->cas_lost++;
	return answer & ~FLOW_LOST;
}

#endif
