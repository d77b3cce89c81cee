/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Counters, kept per CPU. Every packet ends here, once: one reason, and where a
 * service matched its line, and where a backend got it that one's.
 */
#ifndef XLB_STATS_H
#define XLB_STATS_H

#include "pkt.h"

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct xlb_reasons);
} reasons SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, XLB_SERVICES);
	__type(key, __u32);
	__type(value, struct xlb_service_stats);
} service_stats SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, XLB_BACKENDS);
	__type(key, __u32);
	__type(value, struct xlb_backend_stats);
} backend_stats SEC(".maps");

static __always_inline void
stats_reason(enum xlb_reason reason)
{
	__u32 zero = 0;
	struct xlb_reasons *r = bpf_map_lookup_elem(&reasons, &zero);

	if (r != NULL && reason < XLB_REASON_COUNT)
		r->packets[reason]++;
}

static __always_inline void
stats_drop(const struct pkt *p)
{
	__u32 number = XLB_WORD_NUMBER(p->service);
	struct xlb_service_stats *s;

	s = bpf_map_lookup_elem(&service_stats, &number);
	if (s != NULL)
		s->drops++;
}

static __always_inline void
stats_sent(const struct pkt *p)
{
	__u32 number = XLB_WORD_NUMBER(p->service), backend = p->backend;
	struct xlb_service_stats *s;
	struct xlb_backend_stats *b;

	s = bpf_map_lookup_elem(&service_stats, &number);
	if (s != NULL) {
		s->packets++;
		s->bytes += p->len;
	}
	b = bpf_map_lookup_elem(&backend_stats, &backend);
	if (b != NULL) {
		b->packets++;
		b->bytes += p->len;
	}
}

#endif
