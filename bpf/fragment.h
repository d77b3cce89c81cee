/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fragments: the first one has the ports and is balanced; where it went is
 * remembered, for all CPUs, and the later ones follow. One that comes before
 * the first is lost: another backend could not reassemble it.
 */
#ifndef XLB_FRAGMENT_H
#define XLB_FRAGMENT_H

#include "other.h"
#include "rare.h"

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, XLB_FRAGMENTS);
	__type(key, struct xlb_fragment_key);
	__type(value, struct xlb_fragment);
} fragments SEC(".maps");

#define FRAGMENT_LIFE (XLB_FRAGMENT_LIFE * 1000000000ULL)

/* The key, in memory that is no stack's. */
static __always_inline void
fragment_key(const struct slow *s, struct xlb_fragment_key *key)
{
	const struct pkt *p = &s->p;
	__u32 i;

	for (i = 0; i < 4; i++) {
		key->src[i] = p->src[i];
		key->dst[i] = p->dst[i];
	}
	key->id = s->id;
	key->proto = s->v6 ? IPPROTO_FRAGMENT : p->proto;
}

#define FRAGMENT_NAT 1U		/* in xlb_fragment.to: addresses are translated */

/* Where this datagram goes; the key is in place. A full memory forgets the one
 * that was used longest ago. */
static __always_inline void
fragment_remember(struct xlb_rare *r, __u32 backend, __u32 to)
{
	const struct xlb_tables *t = vip_tables();
	const __u8 *addr;

	if (backend == 0)
		return;
	addr = t->backend[backend & (XLB_BACKENDS - 1)].addr;
	r->fragment.service = r->service;
	r->fragment.flow = r->flow;
	r->fragment.at = bpf_ktime_get_coarse_ns();
	r->fragment.backend = backend;
	r->fragment.to = to;
	put64(r->fragment.addr, get64(addr));
	put64(r->fragment.addr + 8, get64(addr + 8));
	bpf_map_update_elem(&fragments, &r->key, &r->fragment, BPF_ANY);
}

/* The backend of that number is still the one that the first went to. */
static __always_inline int
fragment_same(const struct xlb_fragment *f, const struct xlb_tables *t)
{
	const struct xlb_backend *b =
	    &t->backend[f->backend & (XLB_BACKENDS - 1)];

	return get64(b->addr) == get64(f->addr) &&
	    get64(b->addr + 8) == get64(f->addr + 8);
}

static __always_inline enum xlb_reason
fragment_follow(struct slow *s)
{
	struct pkt *p = &s->p;
	struct xlb_rare *r = rare_get();
	const struct xlb_fragment *f = NULL;

	if (r != NULL) {
		fragment_key(s, &r->key);
		f = bpf_map_lookup_elem(&fragments, &r->key);
	}
	if (f == NULL || bpf_ktime_get_coarse_ns() - f->at > FRAGMENT_LIFE ||
	    !fragment_same(f, p->tables)) {
		if (slow_is_local(p))	/* the host's, then */
			PKT_END(XLB_REASON_VIP_LOCAL);
		PKT_END(XLB_REASON_FRAGMENT_UNKNOWN);
	}
	p->service = f->service;
	p->flow = f->flow;
	p->backend = f->backend;
	if (f->to == 0)
		return PKT_NEXT;
	p->proto = f->to >> 16;
	s->flags |= f->to >> 24 & OTHER_REPLY;
	PKT_END(PKT_NAT);
}

#endif
