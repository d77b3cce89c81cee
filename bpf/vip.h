/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Is it for a VIP, and for which service? Two tables that are addressed
 * directly: no helper call. Only what matches here is ever touched.
 */
#ifndef XLB_VIP_H
#define XLB_VIP_H

#include <linux/in.h>

#include "parse.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct xlb_tables);
} vips SEC(".maps");

static __always_inline const struct xlb_tables *
vip_tables(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&vips, &zero);
}

/* The VIP's row, or NULL. */
static __always_inline const struct xlb_vip *
vip_find(const struct xlb_tables *t, const __be32 addr[4])
{
	__u32 at = xlb_vip_hash(addr), i, id;
	const struct xlb_vip *row;

	for (i = 0; i < XLB_PROBE; i++) {
		row = &t->vip[(at + i) & (XLB_TABLE_ROWS - 1)];
		id = READ_ONCE(row->id);
		if (id == XLB_ROW_EMPTY)
			return NULL;
		if (((row->addr[0] ^ addr[0]) | (row->addr[1] ^ addr[1]) |
		    (row->addr[2] ^ addr[2]) | (row->addr[3] ^ addr[3])) == 0 &&
		    id != XLB_ROW_GONE)
			return row;
	}
	return NULL;
}

static __always_inline enum xlb_reason
vip_match(struct pkt *p)
{
	const struct xlb_tables *t = vip_tables();
	const struct xlb_vip *row;

	if (t == NULL)
		return XLB_REASON_NOT_VIP;
	row = vip_find(t, p->dst);
	if (row == NULL)
		return XLB_REASON_NOT_VIP;
	p->vip = row->id;
	p->vip_flags = row->flags;
	return PKT_NEXT;
}

/* Nobody sends from there: the answer would go astray, or round in circles. */
static __always_inline enum xlb_reason
vip_source4(const struct pkt *p)
{
	const struct xlb_settings *s = p->settings;
	__u32 src = be32(p->src[3]);
	__u8 top = src >> 24;

	if (top == 0 || top == 127 || (top & 0xf0) == 0xe0 || src == ~0U)
		return XLB_REASON_MARTIAN;
	if (s->source4 != 0 &&
	    ((p->src[3] ^ s->source4) & ~s->source4_mask) == 0)
		return XLB_REASON_MARTIAN;
	return PKT_NEXT;
}

static __always_inline enum xlb_reason
vip_source6(const struct pkt *p)
{
	const __u8 *prefix = p->settings->source6;
	const __u8 *mask = p->settings->source6_mask;
	__u32 outside = 0, set = 0, i;

	if (p->src[0] == 0 && p->src[1] == 0 && (parse_is_mapped(p->src) ||
	    (p->src[2] == 0 && be32(p->src[3]) <= 1)))
		return XLB_REASON_MARTIAN;
	if (be32(p->src[0]) >> 24 == 0xff)
		return XLB_REASON_MARTIAN;
	for (i = 0; i < 4; i++) {
		set |= get32(prefix + 4 * i);
		outside |= (p->src[i] ^ get32(prefix + 4 * i)) &
		    ~get32(mask + 4 * i);
	}
	return set != 0 && outside == 0 ? XLB_REASON_MARTIAN : PKT_NEXT;
}

static __always_inline enum xlb_reason
vip_source(const struct pkt *p, int v6)
{
	const struct xlb_tables *t = vip_tables();

	if (t == NULL || vip_find(t, p->src) != NULL)
		return XLB_REASON_MARTIAN;
	return v6 ? vip_source6(p) : vip_source4(p);
}

/* The word of the row with this key, or 0: the word may be 0 too, so the flag
 * says which. */
static __always_inline int
vip_service_find(const struct xlb_tables *t, __u64 key, __u64 *word)
{
	__u32 at = xlb_service_hash(key), i;
	const struct xlb_service *row;
	__u64 found;

	for (i = 0; i < XLB_PROBE; i++) {
		row = &t->service[(at + i) & (XLB_TABLE_ROWS - 1)];
		found = READ_ONCE(row->key);
		if (found == key) {
			*word = READ_ONCE(row->word);
			return 1;
		}
		if (found == XLB_ROW_EMPTY)
			return 0;
	}
	return 0;
}

/* An exact port beats every port. */
static __always_inline enum xlb_reason
vip_service(struct pkt *p)
{
	const struct xlb_tables *t = vip_tables();
	__u32 any = p->proto == IPPROTO_TCP ? XLB_VIP_ANY_TCP : XLB_VIP_ANY_UDP;

	if (t != NULL && (p->proto == IPPROTO_TCP || p->proto == IPPROTO_UDP)) {
		if (vip_service_find(t, XLB_SERVICE_KEY(p->vip, p->proto,
		    p->dst_port), &p->service))
			return PKT_NEXT;
		if ((p->vip_flags & any) && vip_service_find(t,
		    XLB_SERVICE_KEY(p->vip, p->proto, 0), &p->service))
			return PKT_NEXT;
	}
	return p->vip_flags & XLB_VIP_LOCAL ? XLB_REASON_VIP_LOCAL :
	    XLB_REASON_NO_SERVICE;
}

#endif
