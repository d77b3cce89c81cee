/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Is it for a VIP, and for which service? Two tables that are addressed
 * directly: no helper call. Only what matches here is ever touched.
 */
#ifndef XLB_VIP_H
#define XLB_VIP_H

#include <linux/in.h>

#include "parse.h"

SYS_VALUE(struct xlb_tables, tables);

enum { VIP_NONE, VIP_IS, VIP_OWN };	/* VIP_OWN: see XLB_VIP_OWN */

/* What the address is, and its row. `at` is xlb_vip_hash(), and then the row's
 * number. */
static __always_inline int
vip_find(const struct xlb_tables *t, __u32 *at, __u64 high, __u64 low,
    const struct xlb_vip **found)
{
	const struct xlb_vip *row;
	__u32 i, id;

	for (i = 0; i < XLB_PROBE; i++) {
		row = &t->vip[*at];
		SYS_OPAQUE(row);
		id = READ_ONCE(row->id);
		if (id == XLB_ROW_EMPTY)
			return VIP_NONE;
		if (get64(&row->addr[2]) == low && get64(row->addr) == high) {
			*found = row;
			if (id < XLB_VIP_OWN)
				return VIP_IS;
			if (id != XLB_ROW_GONE)
				return VIP_OWN;
		}
		*at = (*at + 1) & (XLB_TABLE_ROWS - 1);
	}
	return VIP_NONE;
}

/* All that a packet reads but its ring. */
static __always_inline const struct xlb_tables *
vip_tables(void)
{
	return SYS_VALUE_OF(tables);
}

__u32 xlb_vip_find(__u32 at, __u64 high, __u64 low);

/* The same as a function of its own, for what is out of the common way: the
 * verifier goes through its probes once. VIP_* << 24, and the row's number. */
__noinline __u32
xlb_vip_find(__u32 at, __u64 high, __u64 low)
{
	const struct xlb_vip *row;
	int is;

	at &= XLB_TABLE_ROWS - 1;
	is = vip_find(vip_tables(), &at, high, low, &row);
	return (__u32)is << 24 | at;
}

static __always_inline int
vip_find_rare(const struct xlb_tables *t, __u32 at, __u64 high, __u64 low,
    const struct xlb_vip **found)
{
	__u32 is = xlb_vip_find(at, high, low);

	*found = &t->vip[is & (XLB_TABLE_ROWS - 1)];
	return is >> 24;
}

/* The first probe, the only one for most; the others are the function's. */
static __always_inline int
vip_find_first(const struct xlb_tables *t, __u32 at, __u64 high, __u64 low,
    const struct xlb_vip **found)
{
	const struct xlb_vip *row = &t->vip[at];
	__u32 id;

	SYS_OPAQUE(row);
	*found = row;
	id = READ_ONCE(row->id);
	if (id == XLB_ROW_EMPTY)
		return VIP_NONE;
	if (get64(&row->addr[2]) != low || get64(row->addr) != high ||
	    id >= XLB_VIP_OWN)
		return vip_find_rare(t, at, high, low, found);
	return VIP_IS;
}

/* Is it for a VIP? `rare` is a constant. */
static __always_inline enum xlb_reason
vip_match(struct pkt *p, int rare)
{
	__u64 high = pair64(p->dst[0], p->dst[1]);
	__u64 low = pair64(p->dst[2], p->dst[3]);
	__u32 at = xlb_vip_hash(p->dst);
	int is;

	is = rare ? vip_find_rare(p->tables, at, high, low, &p->vip) :
	    vip_find_first(p->tables, at, high, low, &p->vip);
	if (is == VIP_NONE)
		PKT_END(XLB_REASON_NOT_VIP);
	if (is == VIP_OWN)
		PKT_END(PKT_OWN);
	return PKT_NEXT;
}

/* Sources are as many as there are clients: the filter's 8 kB stay in cache,
 * the table's 2 MB do not. */
static __always_inline int
vip_is_source(const struct pkt *p)
{
	__u32 at = xlb_vip_hash(p->src);

	return xlb_vip_filter_has(p->tables, at) && xlb_vip_find(at,
	    pair64(p->src[0], p->src[1]), pair64(p->src[2], p->src[3])) >>
	    24 == VIP_IS;
}

/* The first byte of a source, by which most are told to be fit. */
static __always_inline __u32
vip_source_top(__be32 word)
{
	return SYS_LITTLE ? word & 0xff : word >> 24;
}

/* Without a prefix both words are 0, and so is only a source that has ended. */
static __always_inline enum xlb_reason
vip_source4(const struct pkt *p)
{
	const struct xlb_settings *s = &p->tables->settings;
	__u32 top = vip_source_top(p->src[3]);

	if (top == 127)
		PKT_END(XLB_REASON_MARTIAN);
	/* 0, and 224 on; of those from 240 on the last */
	if (top - 1 >= 223 && (top < 240 || p->src[3] == ~0U))
		PKT_END(XLB_REASON_MARTIAN);
	if (((p->src[3] ^ s->source4) & ~s->source4_mask) == 0)
		PKT_END(XLB_REASON_MARTIAN);
	return PKT_NEXT;
}

static __always_inline enum xlb_reason
vip_source6(const struct pkt *p)
{
	const __u8 *prefix = p->tables->settings.source6;
	const __u8 *mask = p->tables->settings.source6_mask;
	__u64 high = pair64(p->src[0], p->src[1]);
	__u64 low = pair64(p->src[2], p->src[3]);
	__u32 top = vip_source_top(p->src[0]);

	/* not of 2000::/3, where all are fit */
	if (top >> 5 != 1 && (top == 0xff || (high == 0 &&
	    (parse_is_mapped(p->src) ||
	    (p->src[2] == 0 && be32(p->src[3]) <= 1)))))
		PKT_END(XLB_REASON_MARTIAN);
	high = (high ^ get64(prefix)) & ~get64(mask);
	low = (low ^ get64(prefix + 8)) & ~get64(mask + 8);
	if ((high | low) == 0)
		PKT_END(XLB_REASON_MARTIAN);
	return PKT_NEXT;
}

/* Nobody sends from there: the answer would go astray, or round in circles. */
static __always_inline enum xlb_reason
vip_source(struct pkt *p, int v6)
{
	if (!v6 && xlb_source_is_plain(p->tables, xlb_source_at(p->src[3])))
		return PKT_NEXT;
	if (vip_is_source(p))
		PKT_END(XLB_REASON_MARTIAN);
	return v6 ? vip_source6(p) : vip_source4(p);
}

#define VIP_NO_SERVICE	(~0ULL)		/* no word: flags are fewer */

/* True if there is a row with this key; then its word. */
static __always_inline int
vip_service_find(const struct xlb_tables *t, __u64 key, __u64 *word)
{
	__u32 at = xlb_service_hash(key), i;
	const struct xlb_service *row;
	__u64 found;

	for (i = 0; i < XLB_PROBE; i++) {
		row = &t->service[at];
		SYS_OPAQUE(row);
		found = READ_ONCE(row->key);
		if (found == key) {
			*word = READ_ONCE(row->word);
			return 1;
		}
		if (found == XLB_ROW_EMPTY)
			return 0;
		at = (at + 1) & (XLB_TABLE_ROWS - 1);
	}
	return 0;
}

__u64 xlb_service_find(__u64 key);

/* The same as a function of its own: the word; VIP_NO_SERVICE if there is none. */
__noinline __u64
xlb_service_find(__u64 key)
{
	__u64 word;

	return vip_service_find(vip_tables(), key, &word) ? word :
	    VIP_NO_SERVICE;
}

static __always_inline int
vip_service_find_rare(__u64 key, __u64 *word)
{
	*word = xlb_service_find(key);
	return *word != VIP_NO_SERVICE;
}

/* As vip_find_first(). */
static __always_inline int
vip_service_find_first(const struct xlb_tables *t, __u64 key, __u64 *word)
{
	const struct xlb_service *row = &t->service[xlb_service_hash(key)];

	SYS_OPAQUE(row);
	if (READ_ONCE(row->key) != key)
		return vip_service_find_rare(key, word);
	*word = READ_ONCE(row->word);
	return 1;
}

/* An exact port beats every port. `rare` is a constant. */
static __always_inline enum xlb_reason
vip_service(struct pkt *p, int rare)
{
	__u64 key = XLB_SERVICE_KEY(p->vip->id, p->proto,
	    be32(p->ports) & 0xffff);
	__u32 flags, any;

	if (rare ? vip_service_find_rare(key, &p->service) :
	    vip_service_find_first(p->tables, key, &p->service))
		return PKT_NEXT;
	key &= ~0xffffULL;
	flags = p->vip->flags;
	any = p->proto == IPPROTO_TCP ? XLB_VIP_ANY_TCP : XLB_VIP_ANY_UDP;
	if ((flags & any) && vip_service_find_rare(key, &p->service))
		return PKT_NEXT;
	if (flags & XLB_VIP_SOURCE)
		PKT_END(PKT_OWN);
	if (flags & XLB_VIP_LOCAL)
		PKT_END(XLB_REASON_VIP_LOCAL);
	PKT_END(XLB_REASON_NO_SERVICE);
}

#endif
