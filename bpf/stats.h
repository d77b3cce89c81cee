/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Counters, kept per CPU. Every packet ends here, once: one reason, and where a
 * service matched its line, and where a backend got it that one's.
 */
#ifndef XLB_STATS_H
#define XLB_STATS_H

#include "pkt.h"

/* Userland sets the number of entries: one for each CPU that may be. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct xlb_stats);
} stats SEC(".maps");

static __always_inline struct xlb_stats *
stats_here(void)
{
	__u32 cpu = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&stats, &cpu);
}

static __always_inline void
stats_reason(enum xlb_reason reason)
{
	struct xlb_stats *s = stats_here();

	if (s != NULL && reason < XLB_REASON_COUNT)
		s->reasons.packets[reason]++;
}

static __always_inline void
stats_drop(const struct pkt *p)
{
	struct xlb_stats *s = stats_here();

	if (s != NULL)
		s->service[XLB_WORD_NUMBER(p->service) &
		    (XLB_SERVICES - 1)].drops++;
}

/* All that is counted of a packet that goes to a backend. */
static __always_inline void
stats_sent(const struct pkt *p, enum xlb_reason reason)
{
	struct xlb_stats *s = stats_here();
	struct xlb_service_stats *service;
	struct xlb_backend_stats *backend;

	if (s == NULL)
		return;
	service = &s->service[XLB_WORD_NUMBER(p->service) & (XLB_SERVICES - 1)];
	backend = &s->backend[p->backend & (XLB_BACKENDS - 1)];
	SYS_OPAQUE(service);
	SYS_OPAQUE(backend);
	s->reasons.packets[reason]++;
	service->packets++;
	service->bytes += p->len;
	backend->packets++;
	backend->bytes += p->len;
}

#endif
