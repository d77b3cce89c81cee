/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the packet program and xlbd agree on: the maps' keys and values. Fixed
 * width, explicit padding, sizes asserted. Numbers are host byte order unless
 * the comment says "wire". A change of any layout here is a new XLB_ABI.
 *
 * Maps, each pinned under this name in the instance's bpffs directory:
 *   tables    ARRAY[1] of struct xlb_tables, mmapable: all that a packet reads
 *             but its ring. The program has its address: it is its .bss
 *   ring_table ARRAY_OF_MAPS[XLB_RINGS], pool number -> ring (pinned in
 *             rings/NUMBER): ARRAY[1] of xlb_ring_bytes(), mmapable
 *   flows     ARRAY[entries / XLB_FLOW_WAYS] of struct xlb_flow_set, mmapable:
 *             the flow table, shared by all CPUs
 *   flow_stats PERCPU_ARRAY[1] of struct xlb_flow_stats
 *   nat       ARRAY[rows] of struct xlb_nat, mmapable: flows of services that
 *             translate addresses, both directions, shared by all CPUs
 *   tx_ports  DEVMAP_HASH, ifindex -> ifindex: where packets may leave
 *   stats     ARRAY[CPUs] of struct xlb_stats, mmapable: the counters, by the
 *             CPU's number. One look-up finds all that a packet counts in
 *   fragments LRU_HASH[XLB_FRAGMENTS], struct xlb_fragment_key -> struct
 *             xlb_fragment: where first fragments went
 *   rare      PERCPU_ARRAY[1] of struct xlb_rare: what packets need that are
 *             not ordinary
 *   events    RINGBUF of XLB_EVENT_BYTES, struct xlb_event: what packets did,
 *             while somebody reads
 *   event_state PERCPU_ARRAY[1] of struct xlb_event_state: what of that was too
 *             much
 *   health    HASH, struct xlb_health_key -> struct xlb_health: verdicts,
 *             written and read by xlbd alone
 *   grace     ARRAY_OF_MAPS[1]: an update of it returns after a grace period
 *             (the call ends in synchronize_rcu), nothing else uses it
 *   saved     HASH[XLB_SAVED], ifindex -> struct xlb_saved: what xlbd changed on
 *             an interface, to be put back; key 0 is about the program
 * The program is pinned as `program`, its links as links/IFINDEX.
 */
#ifndef XLB_ABI_H
#define XLB_ABI_H

#include <linux/types.h>

#define XLB_ABI 5

/* Sizes; each limit of the configuration is one of these. */
#define XLB_RINGS	1024	/* ring numbers 0..1023, one per pool */
#define XLB_SERVICES	16384	/* service numbers 0..16383 */
#define XLB_BACKENDS	16384	/* backend numbers 1..16383; 0: none */
#define XLB_NEXTHOPS	16384	/* next hop numbers 1..16383; 0: unresolved */
#define XLB_PORTS	256	/* egress interfaces */
#define XLB_DOORS	64	/* interfaces that clients' packets come in by */
#define XLB_NAT_SOURCES	64	/* own addresses that NAT sends from */
#define XLB_FRAGMENTS	16384	/* datagrams whose later fragments are known */
#define XLB_FRAGMENT_LIFE 30	/* seconds */
#define XLB_HEALTH	65536
#define XLB_SAVED	256
#define XLB_POOL_NAME	64	/* with the end */

/*
 * VIP and service look-up: two open-address tables with linear probing. They
 * hold at most a quarter of their rows, so a bounded probe of XLB_PROBE rows
 * is never the limit in practice (xlbd refuses a row that does not fit).
 * A row is published by writing its valid word (`id`, `key`) last, with release
 * order, and taken out by writing XLB_ROW_GONE to it (or 0 where the next row
 * is empty). A row that is GONE is used again only after a grace period.
 */
#define XLB_TABLE_ROWS	65536	/* a power of two */
#define XLB_PROBE	32
#define XLB_ROW_EMPTY	0
#define XLB_ROW_GONE	0xffffffffU

/* One VIP address. 32 bytes: two rows a cache line. */
struct xlb_vip {
	__be32 addr[4];		/* wire; IPv4 as ::ffff:a.b.c.d */
	__u32 id;		/* 1.., the valid word; XLB_VIP_OWN is part of it */
	__u32 flags;		/* XLB_VIP_* */
	__u32 pad[2];
};
/* In `id`: no VIP, but an address of the host's own that NAT sends from, so
 * replies come to it. All else that does is the host's. */
#define XLB_VIP_OWN	0x80000000U
#define XLB_VIP_LOCAL	1	/* the host itself has this address */
#define XLB_VIP_ANY_TCP	2	/* a service on tcp/\* exists */
#define XLB_VIP_ANY_UDP	4
#define XLB_VIP_SOURCE	8	/* NAT sends from it: see XLB_VIP_OWN */

/* One service: (address, protocol, port). */
struct xlb_service {
	__u64 key;		/* XLB_SERVICE_KEY(), the valid word */
	__u64 word;		/* XLB_SERVICE_WORD(): one load has it all */
};
#define XLB_SERVICE_VALID	(1ULL << 63)
/* port in host byte order, 0: every port */
#define XLB_SERVICE_KEY(id, proto, port) (XLB_SERVICE_VALID | \
    (__u64)(id) << 24 | (__u64)(proto) << 16 | (__u64)(port))
/* bits 0-15 service number, 16-31 ring, 32-47 ring before the last change of
 * pool (its own ring where there is none), 48-63 flags */
#define XLB_SERVICE_WORD(number, ring, old, flags) ((__u64)(number) | \
    (__u64)(ring) << 16 | (__u64)(old) << 32 | (__u64)(flags) << 48)
#define XLB_WORD_NUMBER(w)	((__u32)((w) & 0xffff))
#define XLB_WORD_RING(w)	((__u32)((w) >> 16 & 0xffff))
#define XLB_WORD_OLD_RING(w)	((__u32)((w) >> 32 & 0xffff))
#define XLB_WORD_FLAGS(w)	((__u32)((w) >> 48))
#define XLB_SERVICE_FORWARD	0x0003	/* mask: one of the four below */
#define XLB_FORWARD_IPIP	0
#define XLB_FORWARD_GUE		1
#define XLB_FORWARD_L2		2
#define XLB_FORWARD_NAT		3
#define XLB_SERVICE_HASH_SOURCE	0x0004	/* slot by client address alone */
#define XLB_SERVICE_DATAGRAM	0x0008	/* UDP, never tracked */
#define XLB_SERVICE_LOOKUP	0x0010	/* changed its pool: look flows up as in a
					 * slot with LOOKUP; misses go to the old
					 * ring's owner while `old` is another ring
					 * and the new pool has it as a member */

#define XLB_SERVICE_NAT		0x0020	/* set with XLB_FORWARD_NAT, so that two
					 * kinds are told from the rest at once */

/* First row to probe. The operator's own addresses are the keys, so these need
 * to spread, not to resist; a packet can make them cost XLB_PROBE rows. Of words
 * as they lie in the memory of most machines, since rows are compared by them. */
static inline __u32
xlb_vip_hash(const __be32 addr[4])
{
	__u64 h = ((__u64)addr[1] << 32 | addr[0]) * 0x9e3779b97f4a7c15ULL;

	h ^= (__u64)addr[3] << 32 | addr[2];
	h *= 0xd6e8feb86659fd93ULL;
	return (__u32)(h >> 48) & (XLB_TABLE_ROWS - 1);
}

/* The first 16 bits of an IPv4 address, as they lie in memory; 16 are enough to
 * tell most clients from what is worth a look, and 8 kB of them stay in cache. */
#define XLB_SOURCES 65536

static inline __u32
xlb_source_at(__be32 addr)
{
	return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? addr & 0xffff :
	    addr >> 16;
}

static inline __u32
xlb_service_hash(__u64 key)
{
	return (__u32)((key * 0x9e3779b97f4a7c15ULL) >> 48) &
	    (XLB_TABLE_ROWS - 1);
}

/*
 * A ring: this header, then slot[2][ring_size], then past[ring_size]. Readers
 * use the half `active`; xlbd fills the other one and publishes it by one
 * store; `prev` and LOOKUP of single slots are changed by 32-bit stores in the
 * active half. The slot for a flow is (hash32 * ring_size) >> 32.
 * `past` is xlbd's own: who owned the slot before, and when it ceased to.
 */
struct xlb_ring {
	__u32 active;		/* 0 or 1 */
	__u32 size;		/* slots in each half */
	char pool[XLB_POOL_NAME];	/* whose ring this is; for xlbd */
	__u8 pad[56];
	__u32 member[XLB_BACKENDS / 16];	/* XLB_MEMBER_*, two bits each */
	__u32 slot[];
};

/*
 * What a backend is to this pool. Read only after a hit in the flow table and
 * for a slot's `prev`; set before a slot names the backend. 0: a flow of it
 * moves at once.
 */
#define XLB_MEMBER		1	/* of the pool, or was, and its number is not
					 * free yet */
#define XLB_MEMBER_KEEPS	2	/* its flows stay: active or draining, and
					 * alive */
#define XLB_MEMBER_BITS(word, backend) \
    ((word) >> ((backend) % 16 * 2) & 3)

static inline __u64
xlb_ring_bytes(__u32 ring_size)
{
	return sizeof(struct xlb_ring) + 3 * sizeof(__u32) * (__u64)ring_size;
}

/* A word of `past`: bits 0-14 the owner before cur, 15-31 when it ceased to be
 * it: in ticks (XLB_FLOW_TICK_SHIFT) of the coarse monotonic clock, 17 bits of
 * them: 6.5 days. Beside a `prev` it is about that one. */
#define XLB_PAST_NOBODY	0x7fff	/* it had none before its first */
#define XLB_PAST_OWNER(w)	((w) & 0x7fff)
#define XLB_PAST_TICK(w)	((w) >> 15)
#define XLB_PAST_TICK_MASK	0x1ffff
#define XLB_PAST(owner, tick)	((__u32)(owner) | (__u32)(tick) << 15)

/* A slot word: bits 0-14 cur, 15 LOOKUP, 16-30 prev; 0 is no backend. */
#define XLB_SLOT_CUR(w)		((w) & 0x7fff)
#define XLB_SLOT_LOOKUP		0x8000U
#define XLB_SLOT_PREV(w)	((w) >> 16 & 0x7fff)
#define XLB_SLOT(cur, lookup, prev) ((__u32)(cur) | \
    ((lookup) ? XLB_SLOT_LOOKUP : 0) | (__u32)(prev) << 16)

/*
 * The flow table: sets of one cache line. An entry is one word that is only
 * ever changed by compare-and-swap: bits 0-14 backend, 15 confirmed, 16
 * closing, 17-31 when it was last used (XLB_FLOW_TICK units of the coarse
 * monotonic clock, 15 bits of them: 39 h), 32-63 tag. 0: empty.
 * A flow's set is xlb_flow_row(), its tag xlb_flow_tag(): 24 bits of the hash
 * that selects the slot (so a scan knows the slot, or two that lie side by
 * side) above 8 of the 5-tuple's hash.
 */
#define XLB_FLOW_WAYS		8
#define XLB_FLOW_TICK_SHIFT	32	/* a tick is 2^32 ns, 4.3 s */
#define XLB_FLOW_AGE_MASK	0x7fff
#define XLB_FLOW_BACKEND(e)	((__u32)(e) & 0x7fff)
#define XLB_FLOW_CONFIRMED	0x8000U
#define XLB_FLOW_CLOSING	0x10000U
#define XLB_FLOW_USED(e)	((__u32)(e) >> 17)
#define XLB_FLOW_TAG(e)		((__u32)((e) >> 32))
#define XLB_FLOW(tag, backend, flags, tick) ((__u64)(tag) << 32 | \
    ((__u32)(tick) & XLB_FLOW_AGE_MASK) << 17 | (flags) | (__u32)(backend))

/*
 * How long an entry binds its flow, in ticks, by what it is. In a slot with
 * LOOKUP any but SESSION's binds for KNOWN; a slot may be without LOOKUP when
 * no other entry than cur's binds by the three first. Older than KNOWN it has to
 * be taken out before its age wraps. See flow.h.
 */
#define XLB_FLOW_LIVE		838	/* 1 h: established, TCP */
#define XLB_FLOW_SESSION	28	/* 120 s: UDP; after FIN or RST */
#define XLB_FLOW_OPENING	14	/* 60 s: unconfirmed */
#define XLB_FLOW_KNOWN		20117	/* 24 h */
#define XLB_FLOW_AHEAD		16	/* an age within that of the wrap is 0 */
#define XLB_FLOW_FIRM		210	/* 15 min: gives way to no new entry */

struct xlb_flow_set {
	__u64 entry[XLB_FLOW_WAYS];
};

static inline __u32
xlb_flow_tag(__u32 select, __u64 flow)
{
	return (select & 0xffffff00U) | (__u32)(flow >> 32 & 0xff);
}

static inline __u32
xlb_flow_row(__u64 flow, __u32 mask)
{
	return (__u32)flow & mask;
}

struct xlb_backend {
	__u8 addr[16];		/* wire; IPv4 as ::ffff:a.b.c.d; 0: free */
	__u32 nexthop;		/* changed by one store; 0: unresolved */
	__u32 flags;		/* XLB_BACKEND_*, for xlbd */
	__u64 sources;		/* of xlb_tables.source, a bit each: what NAT
				 * sends from to it */
};
#define XLB_BACKEND_RETIRED	1	/* of no pool any more: the number is not
					 * free while a flow may still name it */

/*
 * A next hop, shared by the backends behind it. Its identity is all but
 * `mac_vlan`, which follows the neighbour in place by one aligned store; any
 * other change is a new row.
 */
struct xlb_nexthop {
	__u64 mac_vlan;		/* wire: 6 bytes destination MAC, 2 bytes VLAN
				 * TCI, 0 = untagged; whole word 0: unresolved */
	__u8 src_mac[6];	/* wire */
	__u16 mtu;		/* of the path, bytes from the IP header on */
	__u32 ifindex;		/* where to send; key in tx_ports */
	__u32 flags;		/* XLB_NEXTHOP_* */
	__u8 src[16];		/* wire; this node's own address towards it */
	__u8 gateway[16];	/* wire; the neighbour, for xlbd */
	__u32 pad[2];
};
#define XLB_NEXTHOP_VALID	1

/* What the flow hash takes of hash_key; made by hash_expand(), see hash.h. */
struct xlb_hash {
	__u32 word[10];
	__u64 odd[2];
};

struct xlb_settings {
	__u32 abi;		/* XLB_ABI */
	__u32 ring_size;
	__u64 seed;
	__u8 hash_key[16];	/* key_file's bytes; or 0 */
	__be32 source4;		/* wire; IPIP's outer source prefix; 0: none */
	__be32 source4_mask;	/* wire; its host bits are 1 */
	__u8 source6[16];	/* wire; all 0: none */
	__u8 source6_mask[16];	/* wire; host bits are 1 */
	__u32 tunnel_mtu;	/* 0: the link's */
	__u16 gue_port;		/* host byte order */
	__u16 flags;		/* XLB_SURGE */
	__u32 flow_budget;	/* new entries per CPU and XLB_FLOW_WINDOW */
	__u32 pad2;
	struct xlb_hash hash;
	/* a word of its own: it is not part of what is wanted, and changes
	 * behind the back of who writes the rest */
	__u32 listening;	/* until when somebody reads events, a lease in
				 * XLB_EVENT_TICK_SHIFT; 0: nobody. Ended by
				 * xlbd, or by the first packet after it */
	__u32 pad3[11];
};
/* Flows that other nodes had come here: every packet is looked up. */
#define XLB_SURGE		1
#define XLB_FLOW_WINDOW_SHIFT	26	/* 2^26 ns, 67 ms */

/*
 * What readers of events want, a bit for each reader: of a reason, and of a
 * service. They are tested here, so that a rare drop is seen among many other
 * packets.
 */
#define XLB_EVENT_READERS	8
#define XLB_EVENT_NEW_FLOW	31	/* beside the reasons: it begins a flow */
#define XLB_EVENT_REASONS	32
#define XLB_EVENT_TICK_SHIFT	30	/* 2^30 ns of the monotonic clock, 1.07 s */

struct xlb_event_filter {
	__u8 reason[XLB_EVENT_REASONS];
	__u8 any;		/* whatever the service, or none */
	__u8 pad[3];
	__u32 sample[XLB_EVENT_READERS];	/* of what is no news, one in so
				 * many: a power of two, minus 1 */
	__u8 service[XLB_SERVICES];	/* by number */
	__u8 pad2[28];
};

/*
 * NAT. A flow has two rows of one open-address table, found by the hash of its
 * 5-tuple as it arrives: client to VIP, and backend to our own address. Both
 * hold all of the flow; a packet touches its direction's alone, but where the
 * flow's state or the way to the client changes.
 *
 * The word: bits 0-18 when it was last used (XLB_FLOW_TICK_SHIFT), 19-23 the
 * probe by which it was placed, 24-31 flags, 32-63 upper half of the hash. 0:
 * empty, a search ends here. A row is claimed by compare-and-swap of one that is
 * empty or GONE, the first on its way, and is BUSY until it is whole; GONE until
 * no row that was placed beyond it is left, see xlb_nat_at().
 */
struct xlb_nat {
	__u64 word;
	__be32 ports;		/* wire; the client's, the VIP's */
	__be32 back;		/* wire; the backend's, ours */
	__u16 backend;		/* number */
	__u8 source;		/* number in xlb_tables.source: our address */
	__u8 door;		/* number in xlb_tables.door: where the client's
				 * packets come in, and replies leave */
	__u32 peer;		/* row of the other direction */
	__u64 mac_vlan;		/* as in struct xlb_nexthop; who sent the client's
				 * last packet here */
	__u8 client[16], vip[16];	/* wire; IPv4 as ::ffff:a.b.c.d */
};
#define XLB_NAT_TICK	0x7ffffU	/* 26 days */
#define XLB_NAT_USED(w)	((__u32)(w) & XLB_NAT_TICK)
#define XLB_NAT_STEP(w)	((__u32)(w) >> 19 & 31)
#define XLB_NAT_STEP_SHIFT 19
#define XLB_NAT_FORWARD	(1U << 24)	/* found by what the client sends */
#define XLB_NAT_REPLY	(1U << 25)	/* by what the backend sends */
#define XLB_NAT_UDP	(1U << 26)
#define XLB_NAT_REPLIED	(1U << 27)	/* the backend has sent something */
#define XLB_NAT_ESTABLISHED (1U << 28)	/* TCP: and the client after it */
#define XLB_NAT_CLOSING	(1U << 29)	/* FIN or RST */
#define XLB_NAT_BUSY	(1U << 30)
#define XLB_NAT_GONE	(1U << 31)
#define XLB_NAT_STATE	(XLB_NAT_REPLIED | XLB_NAT_ESTABLISHED | \
    XLB_NAT_CLOSING)
/* What makes it a row for this hash. */
#define XLB_NAT_SAME	(0xffffffffULL << 32 | XLB_NAT_FORWARD | \
    XLB_NAT_REPLY | XLB_NAT_UDP | XLB_NAT_GONE)

#define XLB_NAT_ROWS_MIN 64	/* of a table that no service needs */
#define XLB_NAT_PROBE	32	/* rows */
#define XLB_NAT_TRIES	32	/* ports for a new flow */
#define XLB_NAT_PORT	16384	/* the first; below what hosts take by default */
#define XLB_NAT_PORTS	16384	/* a power of two */

/* How long a row is kept after its last use, in ticks. */
#define XLB_NAT_OPENING	14	/* 60 s: TCP, UDP that goes one way */
#define XLB_NAT_LIVE	1677	/* 2 h: established TCP */
#define XLB_NAT_ENDED	7	/* 30 s: after FIN or RST */
#define XLB_NAT_SESSION	70	/* 300 s: UDP that goes both ways */

static inline __u32
xlb_nat_life(__u64 word)
{
	if (word & XLB_NAT_CLOSING)
		return XLB_NAT_ENDED;
	if (word & XLB_NAT_UDP)
		return word & XLB_NAT_REPLIED ? XLB_NAT_SESSION :
		    XLB_NAT_OPENING;
	return word & XLB_NAT_ESTABLISHED ? XLB_NAT_LIVE : XLB_NAT_OPENING;
}

/* Ticks since it was used. Another CPU's clock may be a little ahead. */
static inline __u32
xlb_nat_age(__u64 word, __u32 tick)
{
	__u32 age = (tick + XLB_FLOW_AHEAD - XLB_NAT_USED(word)) & XLB_NAT_TICK;

	return age > XLB_FLOW_AHEAD ? age - XLB_FLOW_AHEAD : 0;
}

/* True if it is past its life. */
static inline int
xlb_nat_old(__u64 word, __u32 tick)
{
	return xlb_nat_age(word, tick) > xlb_nat_life(word);
}

/* The row of probe `i`: the four of the block where `home` is, from that one on,
 * then blocks at growing distances. */
static inline __u32
xlb_nat_at(__u32 home, __u32 i, __u32 mask)
{
	__u32 block = i >> 2;

	return ((home ^ (i & 3)) + 2 * block * (block + 1)) & mask;
}

/* And back: where a row's search began. */
static inline __u32
xlb_nat_home(__u32 row, __u32 i, __u32 mask)
{
	__u32 block = i >> 2;

	return ((row - 2 * block * (block + 1)) & mask) ^ (i & 3);
}

/* An address of ours that NAT sends from. */
struct xlb_source {
	__u8 addr[16];		/* wire; IPv4 as ::ffff:a.b.c.d; 0: free */
};

/* Rows of `backend` and `nexthop` are found by number, `source` and `door` too.
 * A door is an interface that the program is on: source MAC, MTU and interface
 * number as in the row of a next hop. */
struct xlb_tables {
	struct xlb_settings settings;
	struct xlb_vip vip[XLB_TABLE_ROWS];
	struct xlb_service service[XLB_TABLE_ROWS];
	/* One bit per xlb_vip_hash(): set before the first VIP with that hash
	 * is published, cleared after the last one is taken out. A bit that is
	 * set for nothing costs time, never truth. Tells sources that are VIPs
	 * from the many that are not without touching the table. */
	__u64 vip_filter[XLB_TABLE_ROWS / 64];
	struct xlb_backend backend[XLB_BACKENDS];
	struct xlb_nexthop nexthop[XLB_NEXTHOPS];
	struct xlb_event_filter filter;
	/* One bit per xlb_source_at(): no IPv4 address with these first 16
	 * bits is a VIP, in the tunnel's source prefix, or of a kind that
	 * nobody sends from. A bit that is not set costs time, never truth. */
	__u8 plain_source[XLB_SOURCES / 8];
	struct xlb_source source[XLB_NAT_SOURCES];
	struct xlb_nexthop door[XLB_DOORS];
	__u16 backend_port[XLB_SERVICES];	/* by service number, host byte
				 * order; 0: the port that the client asks */
};

static inline int
xlb_source_is_plain(const struct xlb_tables *t, __u32 at)
{
	return t->plain_source[at / 8] >> (at & 7) & 1;
}

static inline int
xlb_vip_filter_has(const struct xlb_tables *t, __u32 hash)
{
	return t->vip_filter[hash / 64] >> (hash & 63) & 1;
}

/* Every packet ends in exactly one of these. X(NAME, name, kind) */
#define XLB_REASONS(X) \
	X(FORWARD, forward, SENT) \
	X(FORWARD_PREV, forward_prev, SENT) \
	X(FORWARD_PINNED, forward_pinned, SENT) \
	X(ECHO, echo, SENT) \
	X(ICMP_ERROR, icmp_error, SENT) \
	X(TOO_BIG, too_big, SENT) \
	X(NAT_REPLY, nat_reply, SENT) \
	X(NOT_VIP, not_vip, PASS) \
	X(VIP_LOCAL, vip_local, PASS) \
	X(NO_SERVICE, no_service, DROP) \
	X(NO_BACKEND, no_backend, DROP) \
	X(MALFORMED, malformed, DROP) \
	X(FRAGMENT_UNKNOWN, fragment_unknown, DROP) \
	X(MARTIAN, martian, DROP) \
	X(TOO_BIG_NO_DF, too_big_no_df, DROP) \
	X(TOO_BIG_RATE, too_big_rate, DROP) \
	X(NO_NEIGHBOR, no_neighbor, DROP) \
	X(ENCAP_FAILED, encap_failed, DROP) \
	X(NAT_EXHAUSTED, nat_exhausted, DROP)

enum xlb_reason {
#define X(NAME, name, kind) XLB_REASON_##NAME,
	XLB_REASONS(X)
#undef X
	XLB_REASON_COUNT
};
#define XLB_REASON_PAD	(512 - XLB_REASON_COUNT)	/* to the end of the page */

struct xlb_reasons {
	__u64 packets[XLB_REASON_COUNT];
};

/* One cache line per service and CPU: a packet touches one. */
struct xlb_service_stats {
	__u64 packets, bytes;	/* sent on; from the IP header on, as received */
	__u64 drops;		/* that matched the service; not in `packets` */
	__u64 pad[5];
};

struct xlb_backend_stats {
	__u64 packets, bytes;
};

/* One CPU's, on pages of its own. */
struct xlb_stats {
	struct xlb_service_stats service[XLB_SERVICES];
	struct xlb_backend_stats backend[XLB_BACKENDS];
	struct xlb_reasons reasons;
	__u64 pad[XLB_REASON_PAD];
};

/* One of the events of the flow table, each counted once. */
struct xlb_flow_stats {
	__u64 insert;
	__u64 evict_unconfirmed, evict_confirmed;	/* live ones, for a new one */
	__u64 skip_budget;	/* not written: the window's budget was used up */
	__u64 cas_lost;		/* given up after the second attempt */
	__u64 full;		/* not written: all of the set is in use */
	/* sampled TCP packets with payload in stable slots, and those of them
	 * whose flow was not in the table: what the surge rule goes by */
	__u64 sampled, unknown;
	__u64 window;		/* of XLB_FLOW_WINDOW_SHIFT, that `used` is of */
	__u64 used;
	__u64 spent;		/* the kernel's tick in which `used` was last seen
				 * to be all: until it is over, nobody asks */
	__u64 jiffies, now;	/* a tick, and the coarse clock in it, ns */
};

struct xlb_fragment_key {
	__be32 src[4], dst[4];	/* wire; IPv4 as ::ffff:a.b.c.d */
	__be32 id;		/* wire; IPv4: 16 bits of it */
	__u8 proto;		/* IPv6: that of the fragment header, since its
				 * next header is the first fragment's alone */
	__u8 pad[3];
};

struct xlb_fragment {
	__u64 service;		/* XLB_SERVICE_WORD() */
	__u64 flow;		/* hash of the 5-tuple */
	__u64 at;		/* coarse monotonic clock, ns */
	__u8 addr[16];		/* of the backend: a number may be used again */
	__u32 backend;
	__u32 to;		/* NAT: OTHER_TO(), with FRAGMENT_NAT in the
				 * backend's place; else 0 */
};

/* Answers "too big" per CPU: one in a millisecond, 200 at once. */
#define XLB_ANSWER_EVERY 1000000	/* ns */
#define XLB_ANSWER_BURST 200

#define XLB_SCRATCH	512	/* bytes that a checksum takes at once */

struct xlb_rare {
	__u64 csum_full;	/* outer checksums that took all the payload */
	__u64 answer_at;	/* "too big": when the next one is due, ns */
	__u64 event_service;	/* of the packet that ended last, for events: */
	__u32 event;		/* EVENT_WHAT(); 0: none */
	__u32 pad;
	/* scratch: of one packet */
	__u32 at;
	__be32 id;
	__u32 select;
	__u32 quote;		/* of an ICMP error: the quoted transport header,
				 * from the IP header on */
	/* arguments of xlb_flow() and xlb_other() */
	__u64 flow, service, packet, to;
	struct xlb_fragment_key key;
	struct xlb_fragment fragment;
	struct xlb_nat nat;	/* a flow to be made; for events: what came */
	__u8 bytes[XLB_SCRATCH + 8];
};

#define XLB_EVENT_BYTES	(1 << 18)
/* Of one kind, for one reader, on one CPU: one in 4 ms, 250 at once. */
#define XLB_EVENT_EVERY	4000000	/* ns */
#define XLB_EVENT_BURST	250
#define XLB_EVENT_NO_SERVICE 0xffff

/* One packet. 0 where it has none of that, or is cut before it. */
struct xlb_event {
	__u64 at;		/* CLOCK_MONOTONIC, ns */
	__be32 src[4], dst[4];	/* wire; IPv4 as ::ffff:a.b.c.d */
	__be32 ports;		/* both, as on the wire */
	__u32 ifindex;		/* where it came in */
	__u32 len;		/* from the IP header on, by its own word */
	__u32 cpu;
	__u16 service;		/* number, or XLB_EVENT_NO_SERVICE */
	__u16 backend;		/* number; 0: none */
	__u8 reason;
	__u8 readers;		/* a bit for each that gets it */
	__u8 proto;
	__u8 flags;		/* XLB_EVENT_* */
	__u64 pad;
};
#define XLB_EVENT_IP	1	/* it has addresses */
#define XLB_EVENT_BEGINS 2	/* a new flow */

struct xlb_event_state {
	__u64 limited[XLB_EVENT_READERS];	/* more than the rate */
	__u64 unread[XLB_EVENT_READERS];	/* the ring was full */
	__u64 due[XLB_EVENT_READERS * XLB_EVENT_REASONS];	/* coarse, ns */
	__u32 seen[XLB_EVENT_READERS];	/* of those that are sampled */
	struct xlb_event event;	/* scratch */
};

struct xlb_health_key {
	__u8 addr[16];		/* backend, wire */
	__u8 vip[16];		/* asked through the tunnel; 0: directly */
	__u16 port;		/* host byte order */
	__u8 pad[6];
	char check[XLB_POOL_NAME];	/* name of the check, zero-filled */
};

struct xlb_health {
	__u16 state;		/* enum health_state */
	__u16 passed;		/* 1: it was up once; 0 before this was kept */
	__u32 why;		/* enum probe_result that led to it; << 16: its
				 * detail */
	__s64 since;		/* CLOCK_REALTIME, ns */
};

/* 0 or 1 each. */
struct xlb_saved {
	__u32 gro, lro;		/* of an interface, before it was generic */
	__u32 frags;		/* the pinned program was loaded with xdp.frags */
	__u32 pad;
};

_Static_assert(sizeof(struct xlb_vip) == 32, "xlb_vip");
_Static_assert(sizeof(struct xlb_service) == 16, "xlb_service");
_Static_assert(sizeof(struct xlb_tables) == 4789536, "xlb_tables");
_Static_assert(sizeof(struct xlb_ring) == 4224, "xlb_ring");
_Static_assert(sizeof(struct xlb_flow_set) == 64, "xlb_flow_set");
_Static_assert(sizeof(struct xlb_flow_stats) == 104, "xlb_flow_stats");
_Static_assert(sizeof(struct xlb_backend) == 32, "xlb_backend");
_Static_assert(sizeof(struct xlb_nexthop) == 64, "xlb_nexthop");
_Static_assert(sizeof(struct xlb_settings) == 192, "xlb_settings");
_Static_assert(sizeof(struct xlb_service_stats) == 64, "xlb_service_stats");
_Static_assert(sizeof(struct xlb_fragment_key) == 40, "xlb_fragment_key");
_Static_assert(sizeof(struct xlb_fragment) == 48, "xlb_fragment");
_Static_assert(sizeof(struct xlb_nat) == 64, "xlb_nat");
_Static_assert(sizeof(struct xlb_rare) == 752, "xlb_rare");
_Static_assert(sizeof(struct xlb_event_filter) == 16480, "xlb_event_filter");
_Static_assert(sizeof(struct xlb_event) == 72, "xlb_event");
_Static_assert(sizeof(struct xlb_event_state) == 2280, "xlb_event_state");
_Static_assert(sizeof(struct xlb_health_key) == 104, "xlb_health_key");
_Static_assert(sizeof(struct xlb_health) == 16, "xlb_health");
_Static_assert(sizeof(struct xlb_saved) == 16, "xlb_saved");

#endif
