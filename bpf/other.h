/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The last stages once more, for packets that are not ordinary: a function of
 * its own, which the verifier looks at once. It is given numbers, looks the
 * rows up again, and counts.
 */
#ifndef XLB_OTHER_H
#define XLB_OTHER_H

#include "encap.h"
#include "select.h"
#include "stats.h"
#include "vip.h"
#include "walk.h"

enum {
	OTHER_V6 = 1,
	OTHER_ERROR = 2		/* an ICMP error */
};

/* Bits 0-15 backend, 16-23 transport protocol, 24-31 OTHER_*. */
#define OTHER_TO(backend, proto, flags) ((__u64)(backend) | \
    (__u64)(proto) << 16 | (__u64)(flags) << 24)

struct other {
	struct pkt p;
	int v6;
	__u32 flags;		/* OTHER_* */
};

/* The packet as the stages before left it. */
static __always_inline enum xlb_reason
other_again(struct other *o, __u64 packet)
{
	struct pkt *p = &o->p;
	__u32 word;

	p->len = OTHER_LEN(packet);
	p->link_len = OTHER_LINK_LEN(packet);
	p->ip = sys_data(p->ctx) + p->link_len;
	if (p->ip + PARSE_IP4_LEN > sys_end(p->ctx))
		PKT_END(XLB_REASON_ENCAP_FAILED);
	p->frame_len = bpf_xdp_get_buff_len(p->ctx) - p->link_len;
	word = be32(get32(p->ip));
	p->tos = o->v6 ? word >> 20 : word >> 16;
	p->tables = vip_tables();
	if (p->tables == NULL)
		PKT_END(XLB_REASON_ENCAP_FAILED);
	p->to = &p->tables->backend[p->backend & (XLB_BACKENDS - 1)];
	return select_hop(p);
}

static __always_inline enum xlb_reason
other_send(struct other *o, __u64 packet)
{
	PKT_STAGE(other_again(o, packet));
	PKT_STAGE(encap_push(&o->p, o->v6));
	return encap_send(&o->p);
}

int xlb_other(struct sys_ctx *ctx, __u64 flow, __u64 service, __u64 packet,
    __u64 to);

/* The action. */
__noinline int
xlb_other(struct sys_ctx *ctx, __u64 flow, __u64 service, __u64 packet,
    __u64 to)
{
	struct other o = { .p = { .ctx = ctx } };
	enum xlb_reason reason;

	o.p.flow = flow;
	o.p.service = service;
	o.p.backend = to & 0xffff;
	o.flags = to >> 24;
	o.v6 = o.flags & OTHER_V6;
	reason = other_send(&o, packet);
	if (reason == XLB_REASON_FORWARD && (o.flags & OTHER_ERROR))
		reason = XLB_REASON_ICMP_ERROR;
	stats_reason(reason);
	if (reason_verdict(reason) != VERDICT_SENT) {
		stats_drop(&o.p);
		return XDP_DROP;
	}
	stats_sent(&o.p);
	return o.p.action;
}

#endif
