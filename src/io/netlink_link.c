/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The interfaces and the addresses of this host. */
#include "io/netlink_int.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_addr.h>
#include <linux/if_arp.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/log.h"

/* Index of the first link that is not before `ifindex`. */
static size_t
link_lower(const struct netlink *nl, uint32_t ifindex)
{
	size_t low = 0, high = nl->nlink, mid;

	while (low < high) {
		mid = low + (high - low) / 2;
		if (nl->link[mid].ifindex < ifindex)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

const struct nl_link *
link_find(const struct netlink *nl, uint32_t ifindex)
{
	size_t i = link_lower(nl, ifindex);

	if (i == nl->nlink || nl->link[i].ifindex != ifindex)
		return NULL;
	return &nl->link[i];
}

static void
link_parse_vlan(struct nl_link *l, const struct nlattr *info)
{
	const struct nlattr *tb[IFLA_INFO_DATA + 1];
	const struct nlattr *data[IFLA_VLAN_PROTOCOL + 1];

	query_nested(info, tb, IFLA_INFO_DATA);
	if (tb[IFLA_INFO_KIND] == NULL ||
	    strcmp(mnl_attr_get_str(tb[IFLA_INFO_KIND]), "vlan") != 0)
		return;
	l->vlan = true;
	query_nested(tb[IFLA_INFO_DATA], data, IFLA_VLAN_PROTOCOL);
	if (data[IFLA_VLAN_ID] != NULL)
		l->vid = mnl_attr_get_u16(data[IFLA_VLAN_ID]);
	if (data[IFLA_VLAN_PROTOCOL] != NULL)
		l->vlan_proto =
		    ntohs(mnl_attr_get_u16(data[IFLA_VLAN_PROTOCOL]));
}

static void
link_parse(const struct nlmsghdr *nlh, struct nl_link *l)
{
	const struct ifinfomsg *ifi = mnl_nlmsg_get_payload(nlh);
	const struct nlattr *tb[IFLA_MAX + 1];

	memset(l, 0, sizeof(*l));
	query_attrs(nlh, sizeof(*ifi), tb, IFLA_MAX);
	l->ifindex = (uint32_t)ifi->ifi_index;
	l->flags = ifi->ifi_flags;
	l->type = ifi->ifi_type;
	if (tb[IFLA_IFNAME] != NULL)
		snprintf(l->name, sizeof(l->name), "%s",
		    mnl_attr_get_str(tb[IFLA_IFNAME]));
	if (tb[IFLA_MTU] != NULL)
		l->mtu = mnl_attr_get_u32(tb[IFLA_MTU]);
	if (tb[IFLA_ADDRESS] != NULL &&
	    mnl_attr_get_payload_len(tb[IFLA_ADDRESS]) == sizeof(l->mac))
		memcpy(l->mac, mnl_attr_get_payload(tb[IFLA_ADDRESS]),
		    sizeof(l->mac));
	if (tb[IFLA_LINK] != NULL)
		l->lower = mnl_attr_get_u32(tb[IFLA_LINK]);
	l->foreign = tb[IFLA_LINK_NETNSID] != NULL;
	link_parse_vlan(l, tb[IFLA_LINKINFO]);
}

static void
link_put(struct netlink *nl, const struct nl_link *l)
{
	size_t i = link_lower(nl, l->ifindex);

	if (i < nl->nlink && nl->link[i].ifindex == l->ifindex) {
		if (memcmp(&nl->link[i], l, sizeof(*l)) == 0)
			return;
	} else {
		nl->link = netlink_realloc(nl->link, nl->nlink + 1,
		    sizeof(*l));
		memmove(&nl->link[i + 1], &nl->link[i],
		    (nl->nlink - i) * sizeof(*l));
		nl->nlink++;
	}
	nl->link[i] = *l;
	nl->links_changed = true;
	port_forget(nl, l->ifindex);
}

static void
link_remove(struct netlink *nl, uint32_t ifindex)
{
	size_t i = link_lower(nl, ifindex);

	if (i == nl->nlink || nl->link[i].ifindex != ifindex)
		return;
	memmove(&nl->link[i], &nl->link[i + 1],
	    (nl->nlink - i - 1) * sizeof(nl->link[0]));
	nl->nlink--;
	nl->links_changed = true;
	port_forget(nl, ifindex);
}

void
link_event(struct netlink *nl, const struct nlmsghdr *nlh)
{
	const struct ifinfomsg *ifi = mnl_nlmsg_get_payload(nlh);
	struct nl_link l;

	/* AF_BRIDGE messages are about a port's place in its bridge: the end of
	 * that is a DELLINK too, and the device lives on. */
	if (ifi->ifi_family != AF_UNSPEC)
		return;
	if (nlh->nlmsg_type == RTM_DELLINK) {
		link_remove(nl, (uint32_t)ifi->ifi_index);
		return;
	}
	link_parse(nlh, &l);
	link_put(nl, &l);
}

static int
nl_addr_order(const void *a, const void *b)
{
	const struct nl_addr *x = a, *y = b;
	int c = addr_cmp(&x->addr, &y->addr);

	if (c != 0)
		return c;
	return (x->ifindex > y->ifindex) - (x->ifindex < y->ifindex);
}

void
addr_event(struct netlink *nl, const struct nlmsghdr *nlh)
{
	const struct ifaddrmsg *ifa = mnl_nlmsg_get_payload(nlh);
	const struct nlattr *tb[IFA_LOCAL + 1];
	struct nl_addr key, *row;

	query_attrs(nlh, sizeof(*ifa), tb, IFA_LOCAL);
	/* IFA_ADDRESS is the peer's where IFA_LOCAL is given */
	if (!query_addr(tb[IFA_LOCAL], &key.addr) &&
	    !query_addr(tb[IFA_ADDRESS], &key.addr))
		return;
	key.ifindex = ifa->ifa_index;
	row = nl->naddr == 0 ? NULL : bsearch(&key, nl->addr, nl->naddr,
	    sizeof(key), nl_addr_order);
	if (nlh->nlmsg_type == RTM_DELADDR) {
		if (row == NULL)
			return;
		memmove(row, row + 1, (size_t)(nl->addr + nl->naddr - row - 1) *
		    sizeof(*row));
		nl->naddr--;
	} else {
		if (row != NULL)
			return;
		nl->addr = netlink_realloc(nl->addr, nl->naddr + 1,
		    sizeof(*row));
		row = &nl->addr[nl->naddr];
		for (; row > nl->addr && nl_addr_order(&row[-1], &key) > 0; row--)
			*row = row[-1];
		*row = key;
		nl->naddr++;
	}
	nl->addr_dirty = true;
}

/* Loopback's addresses are there whether lo is up or not. */
void
addr_settle(struct netlink *nl)
{
	static const struct addr lo4 = { .b = { [10] = 0xff, 0xff, 127, 0, 0,
	    1 } }, lo6 = { .b = { [15] = 1 } };
	struct nl_addr *all;
	struct addr *local;
	size_t i, n = 0;

	nl->addr_dirty = false;
	all = netlink_realloc(NULL, nl->naddr + 2, sizeof(*all));
	if (nl->naddr > 0)
		memcpy(all, nl->addr, nl->naddr * sizeof(*all));
	all[nl->naddr] = (struct nl_addr){ .addr = lo4 };
	all[nl->naddr + 1] = (struct nl_addr){ .addr = lo6 };
	qsort(all, nl->naddr + 2, sizeof(*all), nl_addr_order);
	local = netlink_realloc(NULL, nl->naddr + 2, sizeof(*local));
	for (i = 0; i < nl->naddr + 2; i++)
		if (n == 0 || addr_cmp(&local[n - 1], &all[i].addr) != 0)
			local[n++] = all[i].addr;
	free(all);
	if (n != nl->nlocal ||
	    memcmp(local, nl->local, n * sizeof(*local)) != 0)
		nl->local_changed = true;
	free(nl->local);
	nl->local = local;
	nl->nlocal = n;
}

static int
link_row(const struct nlmsghdr *nlh, void *arg)
{
	link_event(arg, nlh);
	return MNL_CB_OK;
}

static int
addr_row(const struct nlmsghdr *nlh, void *arg)
{
	addr_event(arg, nlh);
	return MNL_CB_OK;
}

static void
link_forget(struct netlink *nl)
{
	nl->nlink = 0;
}

static void
addr_forget(struct netlink *nl)
{
	nl->naddr = 0;
}

int
link_dump(struct netlink *nl)
{
	int rc;

	rc = query_dump(nl, RTM_GETLINK, link_row, link_forget);
	if (rc < 0) {
		errno = -rc;
		log_warn("netlink: reading the interfaces");
		return rc;
	}
	rc = query_dump(nl, RTM_GETADDR, addr_row, addr_forget);
	if (rc < 0) {
		errno = -rc;
		log_warn("netlink: reading the addresses");
		return rc;
	}
	nl->addr_dirty = true;
	return 0;
}

static bool
link_up(const struct nl_link *l)
{
	return l->flags & IFF_UP && l->flags & IFF_LOWER_UP;
}

const struct nl_link *
link_egress(const struct netlink *nl, const struct nl_link *dev,
    const char **why)
{
	const struct nl_link *lower = dev;

	if (dev->flags & IFF_LOOPBACK) {
		*why = "the route leads to loopback";
		return NULL;
	}
	if (dev->vlan) {
		lower = dev->foreign ? NULL : link_find(nl, dev->lower);
		if (lower == NULL) {
			*why = "the VLAN's lower device is not here";
			return NULL;
		}
		if (lower->vlan || dev->vlan_proto != ETH_P_8021Q) {
			*why = "only one 802.1Q tag can be sent";
			return NULL;
		}
	}
	if (!link_up(dev) || !link_up(lower)) {
		*why = "the interface is down";
		return NULL;
	}
	if (lower->type != ARPHRD_ETHER) {
		*why = "the interface is not Ethernet";
		return NULL;
	}
	return lower;
}

void
netlink_if(const struct netlink *nl, const char *name, struct netlink_if *out)
{
	size_t i;

	memset(out, 0, sizeof(*out));
	for (i = 0; i < nl->nlink; i++) {
		if (strcmp(nl->link[i].name, name) != 0)
			continue;
		out->ifindex = nl->link[i].ifindex;
		out->mtu = nl->link[i].mtu;
		out->up = link_up(&nl->link[i]);
		memcpy(out->mac, nl->link[i].mac, sizeof(out->mac));
		return;
	}
}
