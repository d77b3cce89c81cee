/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Probes through the tunnel. What xlbd's sockets send to a VIP comes by here,
 * on the egress of a device that has no other end; it is sent on to the backend
 * that its mark names, by the rows and in the form that a client's packet is.
 * What cannot be sent so ends here: no probe goes another way.
 */
#include <linux/pkt_cls.h>

#include "outer.h"
#include "probe_abi.h"
#include "vip.h"

/* The device has no link header: a packet begins with its IP header. */
static __always_inline int
probe_parse4(struct pkt *p)
{
	const __u8 *ip = pkt_pull(p, PARSE_IP4_LEN);

	if (ip == NULL || (get16(ip + 6) & be16(PARSE_FRAGMENT)) != 0)
		return -1;
	p->len = be16(get16(ip + 2));
	p->first = PKT_FIRST(ip[1], p->len);
	p->proto = ip[9];
	p->src[3] = get32(ip + 12);
	p->dst[3] = get32(ip + 16);
	p->l4_len = p->len - PARSE_IP4_LEN;
	return ip[0] == PARSE_IP4_PLAIN ? 0 : -1;
}

static __always_inline int
probe_parse6(struct pkt *p)
{
	const __u8 *ip = pkt_pull(p, PARSE_IP6_LEN);
	int i;

	if (ip == NULL)
		return -1;
	p->l4_len = be16(get16(ip + 4));
	p->len = p->l4_len + PARSE_IP6_LEN;
	p->first = PKT_FIRST(be32(get32(ip)) >> 20 & 0xff, p->len);
	p->proto = ip[6];
	for (i = 0; i < 4; i++) {
		p->src[i] = get32(ip + 8 + i * 4);
		p->dst[i] = get32(ip + 24 + i * 4);
	}
	return 0;
}

static __always_inline int
probe_parse(struct pkt *p, int v6)
{
	const __u8 *ports;

	p->ip = p->pos;
	if ((v6 ? probe_parse6(p) : probe_parse4(p)) != 0)
		return -1;
	if (p->proto != IPPROTO_TCP && p->proto != IPPROTO_UDP)
		return 0;
	ports = pkt_pull(p, 4);
	if (ports == NULL)
		return -1;
	p->ports = get32(ports);
	return 0;
}

/* Where it goes, as the packet program would send it. */
static __always_inline int
probe_route(struct pkt *p, int v6, __u32 number)
{
	const struct xlb_hash *key = &p->tables->settings.hash;
	__u32 hop;

	p->to = &p->tables->backend[number & (XLB_BACKENDS - 1)];
	SYS_OPAQUE(p->to);
	hop = READ_ONCE(p->to->nexthop);
	if (hop == 0)
		return -1;
	p->hop = &p->tables->nexthop[hop & (XLB_NEXTHOPS - 1)];
	SYS_OPAQUE(p->hop);
	p->flow = v6 ? hash_flow6(key, p->src, p->dst, p->ports, p->proto) :
	    hash_flow4(key, p->src[3], p->dst[3], p->ports, p->proto);
	return 0;
}

/* Room for the outer headers, and for the link's in front of them. The kernel
 * has to know what is inside: it may still have a checksum to fill in. */
static __always_inline __u8 *
probe_room(struct __sk_buff *skb, const struct encap *e, int outer6)
{
	__u64 flags = outer6 ? BPF_F_ADJ_ROOM_ENCAP_L3_IPV6 :
	    BPF_F_ADJ_ROOM_ENCAP_L3_IPV4;
	__u8 *data;

	if (e->proto == IPPROTO_UDP)
		flags |= BPF_F_ADJ_ROOM_ENCAP_L4_UDP;
	if (e->outer_len > 0 && bpf_skb_adjust_room(skb, e->outer_len,
	    BPF_ADJ_ROOM_MAC, flags) != 0)
		return NULL;
	if (bpf_skb_change_head(skb, ETH_HLEN, 0) != 0)
		return NULL;
	data = (__u8 *)(long)skb->data;
	if (data + ETH_HLEN + PARSE_IP4_LEN > (__u8 *)(long)skb->data_end)
		return NULL;
	return data;
}

/* `sum`: of the inner packet; only UDP over IPv6 asks for it. */
static __always_inline int
probe_write(struct __sk_buff *skb, const struct pkt *p, const struct encap *e,
    __u64 sum, int outer6)
{
	__u32 ip_len = outer6 ? PARSE_IP6_LEN : PARSE_IP4_LEN;
	__u8 *data = probe_room(skb, e, outer6), *end;

	if (data == NULL)
		return -1;
	end = (__u8 *)(long)skb->data_end;
	encap_link(p, e, data, be16(outer6 ? ETH_P_IPV6 : ETH_P_IP));
	if (e->outer_len == 0)
		return 0;
	if (data + ETH_HLEN + ip_len + PARSE_UDP_LEN > end)
		return -1;
	if (outer6)
		encap_outer6(p, e, data + ETH_HLEN);
	else
		encap_outer4(p, e, data + ETH_HLEN);
	if (e->proto == IPPROTO_UDP)
		outer_udp(p, data + ETH_HLEN + ip_len, sum, outer6);
	return 0;
}

/* With MAC addresses alone it has to be on the link. */
static __always_inline int
probe_on_link(const struct pkt *p)
{
	return get64(p->hop->gateway) == get64(p->to->addr) &&
	    get64(p->hop->gateway + 8) == get64(p->to->addr + 8);
}

/* The device takes it: what the path carries is what some probes are to find
 * out, so the row's MTU, which follows from that, does not count. */
static __always_inline int
probe_fits(struct __sk_buff *skb, const struct pkt *p, const struct encap *e)
{
	__u32 len = p->len + e->outer_len;

	return bpf_check_mtu(skb, p->hop->ifindex, &len, 0, 0) ==
	    BPF_MTU_CHK_RET_SUCCESS;
}

static __always_inline int
probe_wrap(struct __sk_buff *skb, struct pkt *p, int v6, __u32 form)
{
	struct encap e = { .link_len = ETH_HLEN,
	    .mac_vlan = READ_ONCE(p->hop->mac_vlan),
	    .proto = v6 ? IPPROTO_IPV6 : IPPROTO_IPIP };
	int outer6 = encap_is_outer6(p);
	__u64 sum = 0;

	if (e.mac_vlan == 0)
		return -1;
	if (form == XLB_FORWARD_L2) {
		if (!probe_on_link(p))
			return -1;
		return v6 ? probe_write(skb, p, &e, 0, 1) :
		    probe_write(skb, p, &e, 0, 0);
	}
	e.outer_len = outer6 ? PARSE_IP6_LEN : PARSE_IP4_LEN;
	if (form == XLB_FORWARD_GUE) {
		e.proto = IPPROTO_UDP;
		e.own = 1;
		e.outer_len += PARSE_UDP_LEN;
		sum = outer_inner_sum(p->ip, v6, p->proto, p->l4_len);
	}
	if (!probe_fits(skb, p, &e))
		return -1;
	return outer6 ? probe_write(skb, p, &e, sum, 1) :
	    probe_write(skb, p, &e, sum, 0);
}

static __always_inline int
probe_send(struct __sk_buff *skb, struct pkt *p, int v6)
{
	__u32 mark = skb->mark;
	__u16 tag;

	if (probe_parse(p, v6) != 0 ||
	    probe_route(p, v6, PROBE_MARK_NUMBER(mark)) != 0 ||
	    probe_wrap(skb, p, v6, PROBE_MARK_FORM(mark)) != 0)
		return TC_ACT_SHOT;
	tag = be16(SYS_LITTLE ? p->hop->mac_vlan >> 48 :
	    p->hop->mac_vlan & 0xffff);
	if (tag != 0 && bpf_skb_vlan_push(skb, be16(ETH_P_8021Q), tag) != 0)
		return TC_ACT_SHOT;
	skb->mark = 0;
	return bpf_redirect(p->hop->ifindex, 0);
}

int probe(struct __sk_buff *skb);

SEC("tc")
int
probe(struct __sk_buff *skb)
{
	struct pkt p = { .tables = vip_tables() };

	if ((skb->mark & PROBE_MARK_MASK) != PROBE_MARK ||
	    bpf_skb_pull_data(skb, 0) != 0)
		return TC_ACT_SHOT;
	p.pos = (__u8 *)(long)skb->data;
	p.end = (__u8 *)(long)skb->data_end;
	if (skb->protocol == be16(ETH_P_IP))
		return probe_send(skb, &p, 0);
	if (skb->protocol == be16(ETH_P_IPV6))
		return probe_send(skb, &p, 1);
	return TC_ACT_SHOT;
}

char LICENSE[] SEC("license") = "GPL";
