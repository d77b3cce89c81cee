/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Asks all on the link who has a neighbour's address (ARP, neighbour
 * solicitation). The kernel asks only the MAC address that it knows, for some
 * 25 s, before it asks all; what is answered it takes at any time. So a machine
 * that was replaced by another is found as soon as its checks time out, and
 * nothing is lost if it was not.
 */
#include "io/netlink_int.h"

#include <errno.h>
#include <linux/if_arp.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/log.h"

/* Ethernet and IPv4 (RFC 826), behind the link header. */
struct arp {
	uint16_t hardware, protocol;
	uint8_t hardware_len, protocol_len;
	uint16_t op;
	uint8_t mac[6], ip[4], their_mac[6], their_ip[4];
} __attribute__((packed));

struct solicitation {
	struct nd_neighbor_solicit ns;
	struct nd_opt_hdr opt;
	uint8_t mac[6];
};

static int
arp_ask(const struct nl_link *dev, const struct addr *own,
    const struct addr *whose)
{
	struct sockaddr_ll to = { .sll_family = AF_PACKET,
	    .sll_protocol = htons(ETH_P_ARP), .sll_halen = ETH_ALEN,
	    .sll_ifindex = (int)dev->ifindex };
	struct arp a = { .hardware = htons(ARPHRD_ETHER),
	    .protocol = htons(ETH_P_IP), .hardware_len = ETH_ALEN,
	    .protocol_len = 4, .op = htons(ARPOP_REQUEST) };
	int fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, 0), e = 0;

	if (fd < 0)
		return -errno;
	memset(to.sll_addr, 0xff, ETH_ALEN);
	memcpy(a.mac, dev->mac, sizeof(a.mac));
	memcpy(a.ip, own->b + 12, sizeof(a.ip));
	memcpy(a.their_ip, whose->b + 12, sizeof(a.their_ip));
	if (sendto(fd, &a, sizeof(a), MSG_DONTWAIT, (struct sockaddr *)&to,
	    sizeof(to)) < 0)
		e = -errno;
	close(fd);
	return e;
}

/* RFC 4861: from an address of this interface, hop limit 255; the kernel does
 * the checksum. */
static int
solicit(const struct nl_link *dev, const struct addr *own,
    const struct addr *whose)
{
	struct solicitation s = { .ns.nd_ns_type = ND_NEIGHBOR_SOLICIT,
	    .opt = { ND_OPT_SOURCE_LINKADDR, 1 } };
	struct sockaddr_in6 to = { .sin6_family = AF_INET6,
	    .sin6_scope_id = dev->ifindex };
	struct sockaddr_in6 from = { .sin6_family = AF_INET6,
	    .sin6_scope_id = dev->ifindex };
	int fd = socket(AF_INET6, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMPV6);
	int hops = 255, index = (int)dev->ifindex, e = 0;
	struct icmp6_filter none;

	if (fd < 0)
		return -errno;
	ICMP6_FILTER_SETBLOCKALL(&none);
	memcpy(&from.sin6_addr, own->b, 16);
	memcpy(&s.ns.nd_ns_target, whose->b, 16);
	memcpy(s.mac, dev->mac, sizeof(s.mac));
	/* the group of those whose addresses end alike */
	memcpy(&to.sin6_addr, "\xff\2\0\0\0\0\0\0\0\0\0\1\xff", 13);
	memcpy(&to.sin6_addr.s6_addr[13], whose->b + 13, 3);
	if (setsockopt(fd, IPPROTO_ICMPV6, ICMP6_FILTER, &none,
	    sizeof(none)) < 0 ||
	    setsockopt(fd, IPPROTO_IPV6, IPV6_MULTICAST_HOPS, &hops,
	    sizeof(hops)) < 0 ||
	    setsockopt(fd, IPPROTO_IPV6, IPV6_MULTICAST_IF, &index,
	    sizeof(index)) < 0 ||
	    bind(fd, (struct sockaddr *)&from, sizeof(from)) < 0 ||
	    sendto(fd, &s, sizeof(s), MSG_DONTWAIT, (struct sockaddr *)&to,
	    sizeof(to)) < 0)
		e = -errno;
	close(fd);
	return e;
}

/* An address of ours to ask from: the route's, or any of the interface. */
static const struct addr *
own_address(const struct netlink *nl, const struct nl_route *r)
{
	bool four = addr_is4(&r->gateway);
	size_t i;

	if (addr_is4(&r->src) == four)
		return &r->src;
	for (i = 0; i < nl->naddr; i++)
		if (nl->addr[i].ifindex == r->ifindex &&
		    addr_is4(&nl->addr[i].addr) == four)
			return &nl->addr[i].addr;
	return NULL;
}

static int
target_order(const void *a, const void *b)
{
	return addr_cmp(a, &((const struct nl_target *)b)->addr);
}

void
netlink_doubt(struct netlink *nl, const struct addr *addr)
{
	const struct nl_target *t = nl->ntarget == 0 ? NULL : bsearch(addr,
	    nl->target, nl->ntarget, sizeof(*t), target_order);
	const struct nl_link *dev;
	const struct addr *own;
	struct nl_neigh *e;
	char buf[ADDR_STR_MAX];
	int rc;

	if (t == NULL || !t->route.ok)
		return;
	nl->now = netlink_now();
	e = neigh_find(nl, t->route.ifindex, &t->route.gateway);
	dev = link_find(nl, t->route.ifindex);
	own = own_address(nl, &t->route);
	if (e == NULL || !e->mac_known || e->nud & NUD_FIXED || dev == NULL ||
	    own == NULL || (e->doubted.ns != 0 &&
	    mono_ms_since(nl->now, e->doubted) < NETLINK_DOUBT_MS))
		return;
	e->doubted = nl->now;
	rc = (addr_is4(&e->addr) ? arp_ask : solicit)(dev, own, &e->addr);
	if (rc < 0)
		log_debug("neighbour %s: asking all: %s",
		    addr_print(&e->addr, buf), strerror(-rc));
}
