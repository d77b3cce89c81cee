/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Keeps the way to each wanted address known, as the kernel's changes come. */
#include "io/netlink_int.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "io/log.h"

#define EVENTS_PER_CALL	1024	/* then other sources of the loop have a turn */

mono_t
netlink_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (mono_t){ (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec };
}

static void
event_take(struct netlink *nl, const struct nlmsghdr *nlh)
{
	switch (nlh->nlmsg_type) {
	case RTM_NEWLINK:
	case RTM_DELLINK:
		link_event(nl, nlh);
		break;
	case RTM_NEWADDR:
	case RTM_DELADDR:
		addr_event(nl, nlh);
		break;
	case RTM_NEWROUTE:
	case RTM_DELROUTE:
		route_event(nl, nlh);
		break;
	case RTM_NEWNEIGH:
	case RTM_DELNEIGH:
		neigh_event(nl, nlh);
		break;
	case RTM_NEWRULE:
	case RTM_DELRULE:
		nl->rules_changed = true;
		nl->routes_dirty = true;
		break;
	case RTM_NEWNEXTHOP:
	case RTM_DELNEXTHOP:
		nl->routes_dirty = true;
		break;
	}
}

/* Reads what is there. False once there is no more. */
static bool
event_read(struct netlink *nl)
{
	const struct nlmsghdr *nlh = (const void *)nl->in;
	struct sockaddr_nl from;
	socklen_t fromlen = sizeof(from);
	ssize_t n;
	int len;

	n = recvfrom(mnl_socket_get_fd(nl->watch), nl->in, sizeof(nl->in),
	    MSG_DONTWAIT, (struct sockaddr *)&from, &fromlen);
	if (n < 0 && errno == ENOBUFS) {
		log_debug("netlink: events were lost, reading all again");
		nl->resync = true;
		return true;
	}
	if (n < 0)
		return errno == EINTR;
	if (from.nl_pid != 0)	/* not the kernel */
		return true;
	len = (int)n;
	for (; mnl_nlmsg_ok(nlh, len); nlh = mnl_nlmsg_next(nlh, &len))
		event_take(nl, nlh);
	return true;
}

static uint16_t
mtu_least(uint32_t a, uint32_t b, uint32_t c)
{
	uint32_t least = 65535;

	if (a != 0 && a < least)
		least = a;
	if (b != 0 && b < least)
		least = b;
	if (c != 0 && c < least)
		least = c;
	return (uint16_t)least;
}

static void
hop_build(const struct netlink *nl, const struct nl_target *t, struct hop *h)
{
	const struct nl_link *dev, *egress;
	const struct nl_neigh *e;
	struct state_nexthop *nh = &h->nexthop;

	h->addr = t->addr;
	h->status = HOP_NO_ROUTE;
	h->why = t->route.why;
	if (!t->route.ok)
		return;
	dev = link_find(nl, t->route.ifindex);
	if (dev == NULL) {
		h->why = "the interface is gone";
		return;
	}
	egress = link_egress(nl, dev, &h->why);
	if (egress == NULL)
		return;
	if (port_failed(nl, egress->ifindex)) {
		h->status = HOP_NO_PORT;
		h->why = "the interface cannot send XDP frames";
		return;
	}
	nh->gateway = t->route.gateway;
	nh->ifindex = egress->ifindex;
	nh->src = t->route.src;
	memcpy(nh->src_mac, dev->mac, sizeof(nh->src_mac));
	nh->mtu = mtu_least(t->route.mtu, dev->mtu, egress->mtu);
	nh->vlan = dev->vlan ? dev->vid : 0;
	e = neigh_find(nl, t->route.ifindex, &t->route.gateway);
	h->status = e == NULL ? HOP_RESOLVING : neigh_status(e);
	if (h->status == HOP_RESOLVING)
		h->why = "the neighbour is being asked";
	else if (h->status == HOP_NO_NEIGHBOR)
		h->why = "the neighbour does not answer";
	else
		memcpy(nh->mac, e->mac, sizeof(nh->mac));
}

/* True if the table is another one than before. */
static bool
hops_build(struct netlink *nl)
{
	struct hop *row;
	bool changed;
	size_t i;

	row = netlink_realloc(NULL, nl->ntarget, sizeof(*row));
	memset(row, 0, nl->ntarget * sizeof(*row));
	for (i = 0; i < nl->ntarget; i++)
		hop_build(nl, &nl->target[i], &row[i]);
	changed = nl->hops.n != nl->ntarget || (nl->ntarget > 0 &&
	    memcmp(nl->hops.row, row, nl->ntarget * sizeof(*row)) != 0);
	free(nl->hops.row);
	nl->hops.row = row;
	nl->hops.n = nl->ntarget;
	return changed;
}

static void
timer_set(struct netlink *nl)
{
	mono_t next = nl->refresh, t = neigh_next(nl);

	if (t.ns >= 0 && mono_before(t, next))
		next = t;
	t = port_next(nl);
	if (t.ns >= 0 && mono_before(t, next))
		next = t;
	sd_event_source_set_time(nl->timer, (uint64_t)next.ns / 1000 + 1);
	sd_event_source_set_enabled(nl->timer, SD_EVENT_ONESHOT);
}

/* Events were lost: nothing that we know is certain. */
static void
resync(struct netlink *nl)
{
	size_t i;

	if (link_dump(nl) < 0)
		return;		/* again at the next turn */
	nl->resync = false;
	nl->routes_dirty = true;
	for (i = 0; i < nl->nneigh; i++)
		nl->neigh[i].get = true;
}

/* Thousands of routes are not asked for in one go while a health event waits
 * its turn. */
static void
refresh_slice(struct netlink *nl)
{
	size_t i, n = nl->ntarget, end = nl->refresh_at + NETLINK_SLICE;

	for (i = nl->refresh_at; i < end && i < n; i++)
		nl->target[i].dirty = true;
	nl->refresh_at = end < n ? end : 0;
	nl->refresh = mono_add_ms(nl->now, n > NETLINK_SLICE ?
	    NETLINK_REFRESH_MS * NETLINK_SLICE / (int64_t)n :
	    NETLINK_REFRESH_MS);
}

/* Asks for all that is marked. True if the answers we give have changed. */
static bool
settle(struct netlink *nl)
{
	bool changed;

	if (nl->resync)
		resync(nl);
	if (nl->addr_dirty || nl->links_changed)
		nl->routes_dirty = true;
	if (nl->addr_dirty)
		addr_settle(nl);
	if (nl->routes_dirty)
		route_dirty_all(nl);
	nl->routes_dirty = false;
	if (!mono_before(nl->now, nl->refresh))
		refresh_slice(nl);
	if (route_settle(nl))
		neigh_sync(nl);
	neigh_tick(nl);
	port_tick(nl);
	neigh_settle(nl);
	changed = hops_build(nl);
	changed |= nl->links_changed || nl->local_changed ||
	    nl->rules_changed;
	nl->links_changed = nl->local_changed = nl->rules_changed = false;
	timer_set(nl);
	return changed;
}

void
netlink_settle(struct netlink *nl)
{
	if (settle(nl))
		nl->changed(nl->arg);
}

/* False: there are more. */
static bool
events_read(struct netlink *nl)
{
	int i;

	for (i = 0; i < EVENTS_PER_CALL; i++)
		if (!event_read(nl))
			return true;
	return false;
}

static int
watch_ready(sd_event_source *s, int fd, uint32_t revents, void *arg)
{
	struct netlink *nl = arg;

	(void)s;
	(void)fd;
	(void)revents;
	nl->now = netlink_now();
	events_read(nl);
	netlink_settle(nl);
	return 0;
}

static int
timer_due(sd_event_source *s, uint64_t usec, void *arg)
{
	struct netlink *nl = arg;

	(void)usec;
	nl->now = netlink_now();
	/* an answer that came while this process did not run is no silence */
	if (events_read(nl)) {
		netlink_settle(nl);
		return 0;
	}
	sd_event_source_set_time_relative(s, 1000);
	sd_event_source_set_enabled(s, SD_EVENT_ONESHOT);
	return 0;
}

static int
watch_open(struct netlink *nl)
{
	static const int group[] = { RTNLGRP_LINK, RTNLGRP_NEIGH,
	    RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR, RTNLGRP_IPV4_ROUTE,
	    RTNLGRP_IPV6_ROUTE, RTNLGRP_IPV4_RULE, RTNLGRP_IPV6_RULE,
	    RTNLGRP_NEXTHOP };
	int size = 4 << 20, fd;
	size_t i;

	nl->watch = mnl_socket_open2(NETLINK_ROUTE,
	    SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (nl->watch == NULL)
		return -errno;
	if (mnl_socket_bind(nl->watch, 0, MNL_SOCKET_AUTOPID) < 0)
		return -errno;
	fd = mnl_socket_get_fd(nl->watch);
	/* without it, lost events come sooner, and are made up for */
	setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size));
	for (i = 0; i < sizeof(group) / sizeof(group[0]); i++)
		if (setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP,
		    &group[i], sizeof(group[i])) < 0)
			return -errno;
	return sd_event_add_io(nl->ev, &nl->io, fd, EPOLLIN, watch_ready, nl);
}

int
netlink_open(sd_event *ev, void (*changed)(void *arg), void *arg,
    struct netlink **out)
{
	struct netlink *nl = netlink_realloc(NULL, 1, sizeof(*nl));
	int rc;

	memset(nl, 0, sizeof(*nl));
	nl->ev = sd_event_ref(ev);
	nl->changed = changed;
	nl->arg = arg;
	/* watch first, so that nothing is missed between */
	rc = watch_open(nl);
	if (rc >= 0)
		rc = query_open(&nl->query);
	if (rc >= 0)
		rc = sd_event_add_time(ev, &nl->timer, CLOCK_MONOTONIC, 0, 1000,
		    timer_due, nl);
	if (rc >= 0)
		rc = link_dump(nl);
	if (rc < 0) {
		errno = -rc;
		log_warn("netlink");
		netlink_close(nl);
		return rc;
	}
	nl->now = netlink_now();
	settle(nl);
	*out = nl;
	return 0;
}

void
netlink_close(struct netlink *nl)
{
	if (nl == NULL)
		return;
	sd_event_source_disable_unref(nl->io);
	sd_event_source_disable_unref(nl->timer);
	sd_event_unref(nl->ev);
	if (nl->watch != NULL)
		mnl_socket_close(nl->watch);
	query_close(&nl->query);
	free(nl->link);
	free(nl->addr);
	free(nl->local);
	free(nl->target);
	free(nl->neigh);
	free(nl->port);
	free(nl->hops.row);
	free(nl);
}

int
netlink_want(struct netlink *nl, const struct addr *addr, size_t n)
{
	struct nl_target *next;
	size_t w, f = 0;

	next = netlink_realloc(NULL, n, sizeof(*next));
	memset(next, 0, n * sizeof(*next));
	for (w = 0; w < n; w++) {
		while (f < nl->ntarget &&
		    addr_cmp(&nl->target[f].addr, &addr[w]) < 0)
			f++;
		next[w].addr = addr[w];
		next[w].dirty = true;
		if (f < nl->ntarget &&
		    addr_cmp(&nl->target[f].addr, &addr[w]) == 0)
			next[w] = nl->target[f];
	}
	free(nl->target);
	nl->target = next;
	nl->ntarget = n;
	nl->now = netlink_now();
	route_settle(nl);
	neigh_sync(nl);
	neigh_settle(nl);
	hops_build(nl);
	timer_set(nl);
	return 0;
}

static void
nobody_cares(void *arg)
{
	(void)arg;
}

void
netlink_forget(void)
{
	struct netlink *nl;
	sd_event *ev;

	if (sd_event_new(&ev) < 0)
		return;
	if (netlink_open(ev, nobody_cares, NULL, &nl) == 0) {
		netlink_want(nl, NULL, 0);
		netlink_close(nl);
	}
	sd_event_unref(ev);
}

const struct hop_table *
netlink_hops(const struct netlink *nl)
{
	return &nl->hops;
}

const struct addr *
netlink_local(const struct netlink *nl, size_t *n)
{
	*n = nl->nlocal;
	return nl->local;
}
