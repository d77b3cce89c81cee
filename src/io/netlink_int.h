/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the files of io/netlink share. Two sockets: `watch` hears of changes,
 * `query` asks. Events only mark what they touch; netlink_settle() asks the
 * kernel again for just that and makes the hop table from the answers, so a
 * burst of events costs one round.
 */
#ifndef XLB_NETLINK_INT_H
#define XLB_NETLINK_INT_H

#include <libmnl/libmnl.h>
#include <linux/if.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>

#include "core/mono.h"
#include "io/netlink.h"

#define NETLINK_ANSWER_MS	1000	/* a neighbour's time to answer */
#define NETLINK_DOUBT_MS	900	/* between two broadcasts for one neighbour */
#define NETLINK_REFRESH_MS	10000	/* routes are asked for again: expired
					 * path MTUs send no event */
#define NETLINK_SLICE		512	/* of them at a time */
#define NETLINK_PORT_MS	30000	/* an interface that failed is tried again */
#define NETLINK_PORT_MAX_MS	480000	/* after the double time, up to this */
/* NDA_PROTOCOL of the entries that we made, and of those that were there and that
 * we have had managed: found again after a restart. */
#define NETLINK_PROTOCOL	0x58
#define NETLINK_PROTOCOL_MARK	0x59

/* Requests go out in batches; one answer each. */
#define QUERY_BATCH	64
#define QUERY_SIZE	160	/* more than any request of ours */

/* `answer` is NULL where the kernel gave an error, or none but success. */
typedef void query_fn(struct netlink *nl, void *row,
    const struct nlmsghdr *answer, int err);

struct query {
	struct mnl_socket *sock;
	uint32_t seq;		/* of the first request in the batch */
	query_fn *fn;
	size_t n;
	void *row[QUERY_BATCH];
	struct nlmsghdr *last;	/* still being filled in by the caller */
	size_t used;
	_Alignas(16) uint8_t out[QUERY_BATCH * QUERY_SIZE];
	_Alignas(16) uint8_t in[65536];
};

struct nl_link {
	uint32_t ifindex;
	char name[IFNAMSIZ];
	uint32_t mtu;
	uint32_t flags;		/* IFF_* */
	uint16_t type;		/* ARPHRD_* */
	uint8_t mac[6];
	bool vlan;		/* a VLAN device: tag `vid` on `lower` */
	bool foreign;		/* `lower` is in another network namespace */
	uint16_t vid, vlan_proto;	/* host byte order; ETH_P_* */
	uint32_t lower;		/* ifindex */
};

struct nl_addr {
	struct addr addr;
	uint32_t ifindex;
};

/* What the kernel said about the way to an address. */
struct nl_route {
	bool ok;
	const char *why;	/* if not: static text */
	uint32_t ifindex;	/* of the device in the route, VLAN or not */
	struct addr gateway;	/* the address itself if on-link */
	struct addr src;
	uint32_t mtu;		/* of the route; 0: the device's */
};

struct nl_target {
	struct addr addr;
	struct nl_route route;
	bool dirty;		/* to be asked for */
	bool changed;		/* by the last answer */
};

/* A neighbour that routes of targets lead to. */
struct nl_neigh {
	uint32_t ifindex;
	struct addr addr;
	uint16_t nud;		/* NUD_*; NUD_NONE: no entry */
	uint8_t mac[6];
	bool mac_known;		/* and believed: kept for NETLINK_ANSWER_MS
				 * while a lost entry is asked for again */
	bool get;		/* to be read */
	bool ask;		/* to be asked for */
	bool made;		/* the entry is ours, or ours from before */
	bool managed;		/* the kernel keeps it fresh */
	bool marked;		/* because we, or an xlbd before, said so */
	bool foreign;		/* another program has its name on it */
	bool full;		/* the kernel had no room; said once */
	bool paused;		/* its interface does not run: nobody can answer */
	mono_t deadline;	/* of the answer; 0: not waiting */
	mono_t asked;		/* when last */
	mono_t doubted;		/* when all on the link were asked last */
};

/* An interface that did not take frames; see netlink_port.c. */
struct nl_port {
	uint32_t ifindex;
	bool failed;		/* until then: */
	mono_t until;
	int64_t hold_ms;
};

struct netlink {
	sd_event *ev;
	sd_event_source *io, *timer;
	void (*changed)(void *arg);
	void *arg;
	struct mnl_socket *watch;
	struct query query;
	mono_t now;		/* of this round */
	mono_t refresh;		/* when the next slice of routes is due */
	size_t refresh_at;	/* where it begins */

	struct nl_link *link;	/* sorted by ifindex */
	size_t nlink;
	struct nl_addr *addr;	/* sorted by address, ifindex */
	size_t naddr;
	struct addr *local;	/* unique, with loopback's */
	size_t nlocal;
	struct nl_target *target;	/* sorted by address */
	size_t ntarget;
	struct nl_neigh *neigh;	/* sorted by ifindex, address */
	size_t nneigh;
	struct nl_port *port;
	size_t nport;
	struct hop_table hops;

	bool resync;		/* events were lost: read all again */
	bool routes_dirty;	/* all of them are to be asked for */
	/* since the last `changed` */
	bool links_changed, local_changed, rules_changed;
	bool addr_dirty;	/* `local` is older than `addr` */
	bool swept;		/* entries left by an earlier xlbd are gone */
	size_t neigh_deleted;	/* by others, since netlink_deleted() */
	struct nl_neigh *stale;	/* of an earlier xlbd, while they are swept */
	size_t nstale;
	uint8_t in[65536];
};

/* netlink.c */
mono_t netlink_now(void);
/* Asks for all that is marked, and says so if the answers we give changed. */
void netlink_settle(struct netlink *nl);

/* netlink_query.c */
int query_open(struct query *q);
void query_close(struct query *q);
void query_begin(struct netlink *nl, query_fn *fn);
/* The next request, with room for a header of `extra` bytes, zeroed. */
struct nlmsghdr *query_add(struct netlink *nl, uint16_t type, uint16_t flags,
    size_t extra, void *row);
void query_end(struct netlink *nl);
/* 0, or -errno. Begun again if the kernel's table changed meanwhile: `restart`
 * forgets what came before. */
int query_dump(struct netlink *nl, uint16_t type, mnl_cb_t fn,
    void (*restart)(struct netlink *nl));
/* The address in an attribute of 4 or 16 bytes; false for another length. */
bool query_addr(const struct nlattr *at, struct addr *out);
void query_put_addr(struct nlmsghdr *nlh, uint16_t type,
    const struct addr *addr);
/* Attributes by type up to `max`; later ones are skipped. */
void query_attrs(const struct nlmsghdr *nlh, size_t extra,
    const struct nlattr **tb, uint16_t max);
/* The same for those inside `nest`; NULL holds none. */
void query_nested(const struct nlattr *nest, const struct nlattr **tb,
    uint16_t max);
/* reallocarray() or the end of the process. */
void *netlink_realloc(void *p, size_t n, size_t size);

/* netlink_link.c: links and addresses */
int link_dump(struct netlink *nl);
void link_event(struct netlink *nl, const struct nlmsghdr *nlh);
void addr_event(struct netlink *nl, const struct nlmsghdr *nlh);
void addr_settle(struct netlink *nl);	/* `local` from `addr` */
const struct nl_link *link_find(const struct netlink *nl, uint32_t ifindex);
/* Where packets leave if the route names `dev`: the device itself, or a VLAN's
 * lower one. NULL and a reason if XDP can't send there. */
const struct nl_link *link_egress(const struct netlink *nl,
    const struct nl_link *dev, const char **why);

/* netlink_route.c */
void route_event(struct netlink *nl, const struct nlmsghdr *nlh);
void route_dirty_all(struct netlink *nl);
bool route_settle(struct netlink *nl);	/* true: a route changed */

/* netlink_port.c */
bool port_failed(const struct netlink *nl, uint32_t ifindex);
void port_forget(struct netlink *nl, uint32_t ifindex);
void port_tick(struct netlink *nl);	/* those to be tried again */
mono_t port_next(const struct netlink *nl);	/* the next; ns < 0: none */

/* netlink_neigh.c */
#define NUD_FIXED	(NUD_PERMANENT | NUD_NOARP)
struct nl_neigh *neigh_find(const struct netlink *nl, uint32_t ifindex,
    const struct addr *addr);
void neigh_event(struct netlink *nl, const struct nlmsghdr *nlh);
void neigh_sync(struct netlink *nl);	/* the list follows the targets */
void neigh_settle(struct netlink *nl);	/* reads and asks */
void neigh_tick(struct netlink *nl);	/* deadlines that have passed */
mono_t neigh_next(const struct netlink *nl);	/* the next; ns < 0: none */
enum hop_status neigh_status(const struct nl_neigh *e);

#endif
