/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which way the kernel would send to each target. */
#include "io/netlink_int.h"

#include <errno.h>
#include <linux/lwtunnel.h>
#include <string.h>

#include "io/log.h"

void
route_dirty_all(struct netlink *nl)
{
	size_t i;

	for (i = 0; i < nl->ntarget; i++)
		nl->target[i].dirty = true;
}

static bool
bits_equal(const struct addr *a, const struct addr *b, unsigned n)
{
	if (memcmp(a->b, b->b, n / 8) != 0)
		return false;
	return n % 8 == 0 ||
	    ((a->b[n / 8] ^ b->b[n / 8]) & 0xff00 >> n % 8 & 0xff) == 0;
}

/* Targets are sorted, so those of a prefix stand together. (An IPv6 default
 * route takes the IPv4 ones along: one question too many, no harm.) */
static void
route_dirty(struct netlink *nl, const struct addr *first, unsigned bits)
{
	size_t low = 0, high = nl->ntarget, mid;

	while (low < high) {
		mid = low + (high - low) / 2;
		if (addr_cmp(&nl->target[mid].addr, first) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	for (; low < nl->ntarget &&
	    bits_equal(&nl->target[low].addr, first, bits); low++)
		nl->target[low].dirty = true;
}

void
route_event(struct netlink *nl, const struct nlmsghdr *nlh)
{
	const struct rtmsg *rtm = mnl_nlmsg_get_payload(nlh);
	const struct nlattr *tb[RTA_DST + 1];
	struct addr dst = { .b = { 0 } };
	unsigned bits = rtm->rtm_dst_len;

	if (rtm->rtm_family != AF_INET && rtm->rtm_family != AF_INET6)
		return;
	if (rtm->rtm_family == AF_INET) {
		dst = addr_from4(0);
		bits += 96;
	}
	query_attrs(nlh, sizeof(*rtm), tb, RTA_DST);
	query_addr(tb[RTA_DST], &dst);
	route_dirty(nl, &dst, bits > 128 ? 128 : bits);
}

static uint32_t
route_mtu(const struct nlattr *metrics)
{
	const struct nlattr *tb[RTAX_MTU + 1];

	query_nested(metrics, tb, RTAX_MTU);
	return tb[RTAX_MTU] == NULL ? 0 : mnl_attr_get_u32(tb[RTAX_MTU]);
}

static const char *
route_type_why(uint8_t type)
{
	switch (type) {
	case RTN_UNICAST:
		return NULL;
	case RTN_LOCAL:
		return "it is an address of this host";
	case RTN_BROADCAST:
	case RTN_ANYCAST:
	case RTN_MULTICAST:
		return "it is no unicast address here";
	default:
		return "the route says unreachable";
	}
}

/* The neighbour on the way; false if the attribute makes no sense. */
static bool
route_gateway(const struct nlattr *const *tb, struct addr *gateway)
{
	const struct rtvia *via;
	struct addr a;

	if (tb[RTA_GATEWAY] != NULL)
		return query_addr(tb[RTA_GATEWAY], gateway);
	if (tb[RTA_VIA] == NULL)
		return true;	/* on-link: stays the target itself */
	if (mnl_attr_get_payload_len(tb[RTA_VIA]) < sizeof(*via) + 16)
		return false;
	via = mnl_attr_get_payload(tb[RTA_VIA]);
	memcpy(a.b, via->rtvia_addr, 16);
	*gateway = a;
	return via->rtvia_family == AF_INET6;
}

static void
route_parse(const struct nlmsghdr *nlh, const struct addr *target,
    struct nl_route *r)
{
	const struct rtmsg *rtm = mnl_nlmsg_get_payload(nlh);
	const struct nlattr *tb[RTA_MAX + 1];

	query_attrs(nlh, sizeof(*rtm), tb, RTA_MAX);
	r->gateway = *target;
	r->why = route_type_why(rtm->rtm_type);
	if (r->why != NULL)
		return;
	if (tb[RTA_OIF] == NULL || !route_gateway(tb, &r->gateway))
		r->why = "the route names no interface or gateway";
	else if (tb[RTA_ENCAP_TYPE] != NULL &&
	    mnl_attr_get_u16(tb[RTA_ENCAP_TYPE]) != LWTUNNEL_ENCAP_NONE)
		r->why = "the route has an encapsulation of its own";
	else if (!query_addr(tb[RTA_PREFSRC], &r->src))
		r->why = "this host has no source address towards it";
	if (r->why != NULL)
		return;
	r->ok = true;
	r->ifindex = mnl_attr_get_u32(tb[RTA_OIF]);
	r->mtu = route_mtu(tb[RTA_METRICS]);
}

static bool
route_same(const struct nl_route *a, const struct nl_route *b)
{
	return a->ok == b->ok && a->why == b->why &&
	    a->ifindex == b->ifindex && a->mtu == b->mtu &&
	    addr_cmp(&a->gateway, &b->gateway) == 0 &&
	    addr_cmp(&a->src, &b->src) == 0;
}

/* An answer that did not come leaves the target dirty and as it was. */
static void
route_answer(struct netlink *nl, void *row, const struct nlmsghdr *nlh, int err)
{
	struct nl_target *t = row;
	struct nl_route r;

	(void)nl;
	if (err == -EAGAIN || err == -ENOBUFS || err == -ENOMEM)
		return;
	memset(&r, 0, sizeof(r));
	if (nlh == NULL)
		r.why = err == -ENETUNREACH ? "no route" :
		    "the route says unreachable";
	else
		route_parse(nlh, &t->addr, &r);
	t->dirty = false;
	t->changed = !route_same(&t->route, &r);
	t->route = r;
}

static void
route_ask(struct netlink *nl, struct nl_target *t)
{
	struct nlmsghdr *nlh;
	struct rtmsg *rtm;

	nlh = query_add(nl, RTM_GETROUTE, 0, sizeof(*rtm), t);
	rtm = mnl_nlmsg_get_payload(nlh);
	rtm->rtm_family = (uint8_t)addr_family(&t->addr);
	rtm->rtm_dst_len = (uint8_t)addr_bits(&t->addr);
	query_put_addr(nlh, RTA_DST, &t->addr);
}

bool
route_settle(struct netlink *nl)
{
	bool changed = false;
	size_t i;

	query_begin(nl, route_answer);
	for (i = 0; i < nl->ntarget; i++) {
		nl->target[i].changed = false;
		if (nl->target[i].dirty)
			route_ask(nl, &nl->target[i]);
	}
	query_end(nl);
	for (i = 0; i < nl->ntarget; i++)
		changed |= nl->target[i].changed;
	return changed;
}
