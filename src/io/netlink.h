/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Routes, neighbours, links and addresses of the kernel: asked for and watched
 * over rtnetlink (libmnl). Finds for each backend the interface, the source
 * address, the gateway and its MAC address.
 */
#ifndef XLB_NETLINK_H
#define XLB_NETLINK_H

#include <systemd/sd-event.h>

#include "core/state.h"

struct netlink;

/* `changed` is called from the event loop after something that netlink_hops()
 * or netlink_local() answers has changed, or a rule came or went: ours lead
 * probes. Calls for events that arrive together are one. 0, or -errno. */
int netlink_open(sd_event *ev, void (*changed)(void *arg), void *arg,
    struct netlink **out);
void netlink_close(struct netlink *nl);

/* The addresses to find next hops for (sorted, unique); those not in the list
 * any more are forgotten. New ones are asked for at once: after this call a
 * hop may be HOP_RESOLVING for at most 1 s, then HOP_NO_NEIGHBOR. Neighbours
 * are asked for as managed entries (NTF_EXT_MANAGED, Linux 5.16), so the kernel
 * keeps them fresh. 0, or -errno. */
int netlink_want(struct netlink *nl, const struct addr *addr, size_t n);

/* The kernel no longer keeps fresh what a daemon that is gone had asked for. */
void netlink_forget(void);

/* Checks of this wanted address time out: the neighbour on the way is asked for
 * again, by broadcast, since another machine may have its address now. */
void netlink_doubt(struct netlink *nl, const struct addr *addr);

/* The kernel could not hand frames to this interface (-ENXIO: no queue for
 * them, -EOPNOTSUPP): next hops through it are HOP_NO_PORT for a while. */
void netlink_port_failed(struct netlink *nl, uint32_t ifindex, int err);

/* How many neighbours in use somebody has deleted since the last call. They were
 * asked for again at once. */
size_t netlink_deleted(struct netlink *nl);

/* One row per wanted address, sorted; valid until the next call of the loop. */
const struct hop_table *netlink_hops(const struct netlink *nl);

/* The host's own addresses, sorted; loopback's 127/8 and ::1 included. */
const struct addr *netlink_local(const struct netlink *nl, size_t *n);

/* An interface by name. 0 if there is none. */
struct netlink_if {
	uint32_t ifindex;	/* 0: no such interface */
	uint32_t mtu;
	bool up;		/* IFF_UP and lower layer up */
	uint8_t mac[6];
};
void netlink_if(const struct netlink *nl, const char *name,
    struct netlink_if *out);

#endif
