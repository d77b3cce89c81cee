/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which backend takes the packet, and where it is reached. */
#ifndef XLB_SELECT_H
#define XLB_SELECT_H

#include "hash.h"
#include "pkt.h"

/* Slots in half a ring. Userland sets it and the value size of the inner map
 * of `ring_table` to match. */
SYS_RODATA __u32 ring_size = 65537;

#define RING_VALUE_SIZE (sizeof(struct xlb_ring) + 3 * 65537 * sizeof(__u32))

struct select_ring {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, RING_VALUE_SIZE);
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, XLB_RINGS);
	__uint(key_size, sizeof(__u32));
	__array(values, struct select_ring);
} ring_table SEC(".maps");

/* PKT_NAT and PKT_OTHER are told here, all that is not plain by one test. */
static __always_inline enum xlb_reason
select_hash(struct pkt *p, int v6)
{
	const struct xlb_hash *key = &p->tables->settings.hash;

	p->flow = v6 ? hash_flow6(key, p->src, p->dst, p->ports, p->proto) :
	    hash_flow4(key, p->src[3], p->dst[3], p->ports, p->proto);
	p->hash = hash_select(p->flow);
	if (!(XLB_WORD_FLAGS(p->service) &
	    (XLB_SERVICE_FORWARD | XLB_SERVICE_HASH_SOURCE)))
		return PKT_NEXT;
	if (XLB_WORD_FLAGS(p->service) & XLB_SERVICE_NAT)
		PKT_END(PKT_NAT);
	if (XLB_WORD_FLAGS(p->service) & XLB_SERVICE_HASH_SOURCE)
		p->hash = hash_select(v6 ? hash_source6(key, p->src) :
		    hash_source4(key, p->src[3]));
	if ((XLB_WORD_FLAGS(p->service) & XLB_SERVICE_FORWARD) !=
	    XLB_FORWARD_IPIP)
		PKT_END(PKT_OTHER);
	return PKT_NEXT;
}

/* NULL: there is none of that number. */
static __always_inline const struct xlb_ring *
select_ring(__u32 number)
{
	void *inner = bpf_map_lookup_elem(&ring_table, &number);
	__u32 zero = 0;

	return inner == NULL ? NULL : bpf_map_lookup_elem(inner, &zero);
}

/* The slot word of ring `number` for this hash; 0: no ring, no backend. */
static __always_inline __u32
select_slot(__u32 number, __u32 hash)
{
	const struct xlb_ring *ring = select_ring(number);
	__u32 size = ring_size;
	__u64 at;	/* 6.1 keeps track of 64 bits better than of 32 */

	if (ring == NULL)
		return 0;
	at = hash_slot(hash, size);
	if (READ_ONCE(ring->active) & 1)
		at += size;
	return READ_ONCE(ring->slot[at]);
}

static __always_inline enum xlb_reason
select_backend(struct pkt *p)
{
	if (p->backend == 0)
		PKT_END(XLB_REASON_NO_BACKEND);
	p->to = &p->tables->backend[p->backend & (XLB_BACKENDS - 1)];
	SYS_OPAQUE(p->to);
	return PKT_NEXT;
}

static __always_inline enum xlb_reason
select_hop(struct pkt *p)
{
	__u32 number = READ_ONCE(p->to->nexthop);

	if (number == 0)
		PKT_END(XLB_REASON_NO_NEIGHBOR);
	p->hop = &p->tables->nexthop[number & (XLB_NEXTHOPS - 1)];
	SYS_OPAQUE(p->hop);
	return PKT_NEXT;
}

#endif
