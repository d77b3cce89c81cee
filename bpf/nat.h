/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The flows of services that translate addresses, in a table of their own: which
 * backend has a flow, and as which port of ours it sees it. A row is one cache
 * line with all that a packet of its direction needs, so an established flow
 * asks neither the ring nor the flow table.
 */
#ifndef XLB_NAT_H
#define XLB_NAT_H

#include "flow.h"
#include "rare.h"

/* Rows of `nat`, less one; they are a power of two. Userland sets it and the
 * size of the map to match: as small as this where no service needs it. */
SYS_RODATA __u32 nat_mask = XLB_NAT_ROWS_MIN - 1;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, XLB_NAT_ROWS_MIN);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct xlb_nat);
} nat SEC(".maps");

#define NAT_NONE (~0U)		/* no row */
#define NAT_BUSY (~1U)		/* none yet: another CPU is at it */
#define NAT_WAIT 256		/* looks at what that makes: some microseconds */

static __always_inline struct xlb_nat *
nat_row(__u32 at)
{
	return bpf_map_lookup_elem(&nat, &at);
}

/* The same for userland: maps_clock(). */
static __always_inline __u32
nat_tick(void)
{
	struct xlb_flow_stats *s;
	__u32 zero = 0;

	s = bpf_map_lookup_elem(&flow_stats, &zero);
	return s == NULL ? 0 :
	    flow_now(s) >> XLB_FLOW_TICK_SHIFT & XLB_NAT_TICK;
}

/* Two addresses as they are on the wire. */
static __always_inline int
nat_addr_is(const __be32 a[4], const __u8 *b)
{
	return pair64(a[2], a[3]) == get64(b + 8) &&
	    pair64(a[0], a[1]) == get64(b);
}

#define NAT_LATER 1U	/* beside a kind: a later fragment, without ports */

/* What a row is looked for by. Without gaps, since it is told to another function,
 * and small, since it is on the stack of the one that tells. */
struct nat_key {
	__be32 src[4], dst[4];	/* as of the direction's own packets */
	__be32 ports;
	__u32 kind;		/* nat_kind(), its lower half */
	__u64 word;		/* the flow's hash; the row's word, as it was read,
				 * once that is found */
};

/* One packet, and the row of its flow. `p` has addresses and ports as of the
 * direction's own packets, whatever the packet is. */
struct nat {
	struct pkt p;
	struct nat_key *key;
	int v6;
	__u32 flags;		/* OTHER_* */
	__u32 walk;		/* WALK_* */
	__u32 l4;		/* where the transport header is, from `ip` on */
	__u32 tick;
	__u32 at;		/* the row's number */
	struct xlb_nat *row;
};

/* What comes from a client is compared with what the row says; what comes from a
 * backend with what its numbers mean. */
static __always_inline int
nat_is(const struct nat_key *k, const struct xlb_nat *row)
{
	const struct xlb_tables *t = vip_tables();

	if (k->kind & XLB_NAT_REPLY)
		return (row->back == k->ports || (k->kind & NAT_LATER)) &&
		    nat_addr_is(k->src,
		    t->backend[row->backend & (XLB_BACKENDS - 1)].addr) &&
		    nat_addr_is(k->dst,
		    t->source[row->source & (XLB_NAT_SOURCES - 1)].addr);
	return (row->ports == k->ports || (k->kind & NAT_LATER)) &&
	    nat_addr_is(k->src, row->client) && nat_addr_is(k->dst, row->vip);
}

/* A word's upper half and kind: of the direction's rows with this hash. */
static __always_inline __u64
nat_kind(__u64 hash, __u8 proto, int reply)
{
	return (hash & 0xffffffffULL << 32) |
	    (reply ? XLB_NAT_REPLY : XLB_NAT_FORWARD) |
	    (proto == IPPROTO_UDP ? XLB_NAT_UDP : 0);
}

__u32 xlb_nat_find(struct nat_key *k);

/* The row's number, or NAT_NONE. What is written of it is whole once it is not BUSY.
 * A function of its own: the verifier goes through its probes once. */
__noinline __u32
xlb_nat_find(struct nat_key *k)
{
	struct xlb_nat *row;
	__u64 kind, word;
	__u32 i, at;

	if (k == NULL)
		return NAT_NONE;
	kind = (k->word & 0xffffffffULL << 32) | k->kind;
	for (i = 0; i < XLB_NAT_PROBE; i++) {
		at = xlb_nat_at((__u32)k->word, i, nat_mask);
		row = nat_row(at);
		if (row == NULL)
			return NAT_NONE;
		word = READ_ONCE(row->word);
		if (word == 0)
			return NAT_NONE;
		if (((word ^ kind) & (XLB_NAT_SAME | XLB_NAT_BUSY)) != 0 ||
		    !nat_is(k, row))
			continue;
		k->word = word;
		return at;
	}
	return NAT_NONE;
}

/* The flow's row. */
static __always_inline int
nat_find(struct nat *n, int reply)
{
	struct nat_key *k = n->key;
	__u32 i;

	for (i = 0; i < 4; i++) {
		k->src[i] = n->p.src[i];
		k->dst[i] = n->p.dst[i];
	}
	k->ports = n->p.ports;
	k->kind = nat_kind(0, n->p.proto, reply) |
	    (n->walk & WALK_LATER ? NAT_LATER : 0);
	k->word = n->p.flow;
	n->at = xlb_nat_find(k);
	n->row = nat_row(n->at);
	return n->row != NULL;
}

/* The row of the other direction, if it still is that. */
static __always_inline struct xlb_nat *
nat_peer(const struct xlb_nat *row, __u64 word)
{
	struct xlb_nat *peer = nat_row(row->peer);
	__u64 other;

	if (peer == NULL)
		return NULL;
	other = READ_ONCE(peer->word);
	if (((word ^ other) & (XLB_NAT_FORWARD | XLB_NAT_REPLY)) !=
	    (XLB_NAT_FORWARD | XLB_NAT_REPLY) ||
	    (other & (XLB_NAT_BUSY | XLB_NAT_GONE)) != 0 ||
	    peer->back != row->back || peer->ports != row->ports ||
	    peer->backend != row->backend || peer->source != row->source ||
	    get64(peer->client) != get64(row->client) ||
	    get64(peer->client + 8) != get64(row->client + 8))
		return NULL;
	return peer;
}

/* One that lost against another CPU leaves it to the next packet. */
static __always_inline void
nat_write(struct xlb_nat *row, __u64 was, __u64 now)
{
	if (was != now)
		__sync_val_compare_and_swap(&row->word, was, now);
}

/* The row was used, and the flow's state has changed so. */
static __always_inline void
nat_touch(const struct nat *n, __u32 set, __u32 clear)
{
	__u64 now = (n->key->word & ~(__u64)(XLB_NAT_TICK | clear)) | set | n->tick;
	struct xlb_nat *peer;
	__u64 was;

	nat_write(n->row, n->key->word, now);
	if (((n->key->word ^ now) & XLB_NAT_STATE) == 0)
		return;
	peer = nat_peer(n->row, n->key->word);
	if (peer == NULL)
		return;
	was = READ_ONCE(peer->word);
	nat_write(peer, was, (was & ~(__u64)clear) | set);
}

/* Past its life in both directions. */
static __always_inline int
nat_is_old(const struct nat *n)
{
	const struct xlb_nat *peer;

	if (!xlb_nat_old(n->key->word, n->tick))
		return 0;
	peer = nat_peer(n->row, n->key->word);
	return peer == NULL || xlb_nat_old(READ_ONCE(peer->word), n->tick);
}

/* What a TCP packet says of its flow. */
static __always_inline __u32
nat_ends(const struct pkt *p)
{
	return p->tcp_flags & (PARSE_FIN | PARSE_RST) ? XLB_NAT_CLOSING : 0;
}

/* Data after a FIN or RST say that it was not the connection's end. */
static __always_inline __u32
nat_goes_on(const struct pkt *p)
{
	return (p->tcp_flags & (PARSE_FIN | PARSE_RST | PARSE_PSH)) ==
	    PARSE_PSH ? XLB_NAT_CLOSING : 0;
}

/* A row goes; those that were placed beyond it are still found. */
static __always_inline void
nat_drop(struct xlb_nat *row, __u64 was, __u32 tick)
{
	nat_write(row, was, XLB_NAT_GONE | tick);
}

__u32 xlb_nat_other(__u64 hash, __u64 word, __u32 mine);

/* Another row than `mine` with this hash: NAT_NONE if there is none, NAT_BUSY if
 * it is not whole, else its number. */
__noinline __u32
xlb_nat_other(__u64 hash, __u64 word, __u32 mine)
{
	const struct xlb_nat *row;
	__u32 i, at;
	__u64 w;

	for (i = 0; i < XLB_NAT_PROBE; i++) {
		at = xlb_nat_at((__u32)hash, i, nat_mask);
		row = nat_row(at);
		if (row == NULL)
			break;
		w = READ_ONCE(row->word);
		if (w == 0)
			break;
		if (at != mine && ((w ^ word) & XLB_NAT_SAME) == 0)
			return w & XLB_NAT_BUSY ? NAT_BUSY : at;
	}
	return NAT_NONE;
}

static __always_inline int
nat_is_free(__u64 word)
{
	return word == 0 || (word & XLB_NAT_GONE);
}

__u32 xlb_nat_free(__u64 hash);

/* The first step of its way where there is room; XLB_NAT_PROBE: nowhere. */
__noinline __u32
xlb_nat_free(__u64 hash)
{
	const struct xlb_nat *row;
	__u32 i;

	for (i = 0; i < XLB_NAT_PROBE; i++) {
		row = nat_row(xlb_nat_at((__u32)hash, i, nat_mask));
		if (row != NULL && nat_is_free(READ_ONCE(row->word)))
			return i;
	}
	return XLB_NAT_PROBE;
}

__u32 xlb_nat_claim(__u64 hash, __u64 word);

/*
 * A place for a row with this hash: BUSY, its number. NAT_NONE: there is one
 * already, or no room on its way. Two CPUs that claim for the same hash both see
 * the other's, so at least one gives up: NAT_BUSY, as for one that came too late
 * for the place.
 */
__noinline __u32
xlb_nat_claim(__u64 hash, __u64 word)
{
	struct xlb_nat *row;
	__u32 step, at;
	__u64 was;

	at = xlb_nat_other(hash, word, NAT_NONE);
	if (at != NAT_NONE)
		return at == NAT_BUSY ? NAT_BUSY : NAT_NONE;
	step = xlb_nat_free(hash);
	if (step >= XLB_NAT_PROBE)
		return NAT_NONE;
	at = xlb_nat_at((__u32)hash, step, nat_mask);
	row = nat_row(at);
	if (row == NULL)
		return NAT_NONE;
	was = READ_ONCE(row->word);
	word |= XLB_NAT_BUSY | step << XLB_NAT_STEP_SHIFT;
	if (!nat_is_free(was) ||
	    __sync_val_compare_and_swap(&row->word, was, word) != was)
		return NAT_BUSY;
	if (xlb_nat_other(hash, word, at) == NAT_NONE)
		return at;
	nat_drop(row, word, XLB_NAT_USED(word));
	return NAT_BUSY;
}

/* One of several addresses, another one with each turn. */
static __always_inline __u32
nat_source(__u64 sources, __u32 turn)
{
	__u32 n = __builtin_popcountll(sources), i;

	if (n == 0)
		return 0;
	turn %= n;
	for (i = 0; i < XLB_NAT_SOURCES - 1 && i < turn; i++)
		sources &= sources - 1;
	return __builtin_popcountll((sources & -sources) - 1) &
	    (XLB_NAT_SOURCES - 1);
}

/* What the backend's packets of the flow are found by. */
static __always_inline __u64
nat_reply_hash(const struct xlb_tables *t, const __u8 *backend,
    const __u8 *source, __be32 ports, __u8 proto)
{
	const struct xlb_hash *key = &t->settings.hash;
	__be32 a[4], b[4];
	__u32 i;

	for (i = 0; i < 4; i++) {
		a[i] = get32(backend + 4 * i);
		b[i] = get32(source + 4 * i);
	}
	return parse_is_mapped(a) ? hash_flow4(key, a[3], b[3], ports, proto) :
	    hash_flow6(key, a, b, ports, proto);
}

/* `row` becomes what `from` is, found by `hash`, and others see it. */
static __always_inline void
nat_publish(struct xlb_nat *row, const struct xlb_nat *from, __u32 peer)
{
	__u64 word = READ_ONCE(row->word);
	__u32 i;

	row->ports = from->ports;
	row->back = from->back;
	row->backend = from->backend;
	row->source = from->source;
	row->door = from->door;
	row->peer = peer;
	row->mac_vlan = from->mac_vlan;
	for (i = 0; i < 16; i += 8) {
		put64(row->client + i, get64(from->client + i));
		put64(row->vip + i, get64(from->vip + i));
	}
	__sync_val_compare_and_swap(&row->word, word,
	    word & ~(__u64)XLB_NAT_BUSY);
}

__u32 xlb_nat_port(__u64 flow, __u32 turn);

/* A row for replies to the flow in `rare`, by an address and port that no other
 * has to this backend; BUSY. NAT_NONE, NAT_BUSY: try the next turn. */
__noinline __u32
xlb_nat_port(__u64 flow, __u32 turn)
{
	const struct xlb_tables *t = vip_tables();
	struct xlb_rare *r = rare_get();
	const struct xlb_backend *b;
	__u32 port, source;
	__u64 hash;
	__u8 proto;

	if (r == NULL)
		return NAT_NONE;
	b = &t->backend[r->nat.backend & (XLB_BACKENDS - 1)];
	source = nat_source(b->sources, (__u32)(flow >> 48) + turn);
	if (!(b->sources >> source & 1))
		return NAT_NONE;
	/* The same flow has the same port whenever that is free. Others come in
	 * steps of the flow's own: with one step for all, ports that are taken
	 * grow together, and flows find none from six tenths of the room on
	 * instead of eight. */
	port = XLB_NAT_PORT + (((__u32)(flow >> 32) +
	    turn * ((__u32)flow | 1)) & (XLB_NAT_PORTS - 1));
	r->nat.source = source;
	r->nat.back = be32((be32(r->nat.back) & 0xffff0000) | port);
	proto = r->nat.word & XLB_NAT_UDP ? IPPROTO_UDP : IPPROTO_TCP;
	hash = nat_reply_hash(t, b->addr, t->source[source].addr, r->nat.back,
	    proto);
	return xlb_nat_claim(hash, nat_kind(hash, proto, 1) |
	    XLB_NAT_USED(r->nat.word) | (r->nat.word & XLB_NAT_STATE));
}

__u32 xlb_nat_new(__u64 flow);

/*
 * Both rows of the flow in `rare`, of which the address and port of ours and the
 * upper half of the word are missing. Where another CPU began the same flow a
 * moment ago, its rows are waited for: the packet goes on by those. 0: there was
 * no room, or no port, or there are rows.
 */
__noinline __u32
xlb_nat_new(__u64 flow)
{
	struct xlb_rare *r = rare_get();
	struct xlb_nat *row, *back;
	__u32 at = NAT_BUSY, other = NAT_NONE, i;
	__u64 word;

	if (r == NULL)
		return 0;
	word = (flow & 0xffffffffULL << 32) | r->nat.word;
	for (i = 0; i < NAT_WAIT && at == NAT_BUSY; i++)
		at = xlb_nat_claim(flow, word);
	if (at >= NAT_BUSY)
		return 0;
	for (i = 0; i < XLB_NAT_TRIES && other >= NAT_BUSY; i++)
		other = xlb_nat_port(flow, i);
	row = nat_row(at);
	if (row == NULL)
		return 0;
	back = nat_row(other);
	if (back == NULL) {
		nat_drop(row, READ_ONCE(row->word), XLB_NAT_USED(r->nat.word));
		return 0;
	}
	nat_publish(back, &r->nat, at);
	nat_publish(row, &r->nat, other);
	return 1;
}

#endif
