/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The neighbours that routes lead to. Each is made a managed entry, which the
 * kernel itself keeps fresh (NTF_EXT_MANAGED, Linux 5.16): packets that XDP
 * sends never count as use.
 */
#include "io/netlink_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "io/log.h"

#define NUD_USABLE	(NUD_FIXED | NUD_REACHABLE | NUD_STALE | NUD_DELAY | \
    NUD_PROBE)

static int
neigh_order(const void *a, const void *b)
{
	const struct nl_neigh *x = a, *y = b;

	if (x->ifindex != y->ifindex)
		return x->ifindex < y->ifindex ? -1 : 1;
	return addr_cmp(&x->addr, &y->addr);
}

struct nl_neigh *
neigh_find(const struct netlink *nl, uint32_t ifindex, const struct addr *addr)
{
	struct nl_neigh key = { .ifindex = ifindex, .addr = *addr };

	if (nl->nneigh == 0)
		return NULL;
	return bsearch(&key, nl->neigh, nl->nneigh, sizeof(key), neigh_order);
}

enum hop_status
neigh_status(const struct nl_neigh *e)
{
	if (e->mac_known)
		return HOP_OK;
	return e->deadline.ns != 0 ? HOP_RESOLVING : HOP_NO_NEIGHBOR;
}

/* The entry is lost or unknown: ask, and give it its time to answer. */
static void
neigh_lost(struct netlink *nl, struct nl_neigh *e)
{
	if (e->deadline.ns == 0 && (e->mac_known || e->asked.ns == 0))
		e->deadline = mono_add_ms(nl->now, NETLINK_ANSWER_MS);
	e->nud = NUD_NONE;
	e->made = e->managed = e->marked = e->foreign = false;
	e->ask = true;
}

static void
neigh_dead(struct nl_neigh *e)
{
	e->deadline.ns = 0;
	e->mac_known = false;
}

static void
neigh_valid(struct nl_neigh *e, const uint8_t *mac)
{
	memcpy(e->mac, mac, sizeof(e->mac));
	e->mac_known = true;
	e->deadline.ns = 0;
	e->full = false;
}

/* Before the interface is running, the question is lost in the kernel, which
 * asks again only a second later. That it runs now has an event. */
static bool
can_ask(const struct nl_link *l)
{
	return l != NULL && l->flags & IFF_UP && l->flags & IFF_RUNNING;
}

/* One that was `managed` goes with its interface, else only by somebody's hand. */
static void
neigh_deleted(struct netlink *nl, const struct nl_neigh *e, bool managed)
{
	nl->neigh_deleted += managed && can_ask(link_find(nl, e->ifindex));
}

/*
 * A deleted entry goes through FAILED too, but from states from which silence
 * alone never leads there: that is not a verdict on the neighbour.
 */
static void
neigh_failed(struct netlink *nl, struct nl_neigh *e, bool managed)
{
	if (e->nud & NUD_USABLE & ~NUD_PROBE) {
		neigh_deleted(nl, e, managed);
		neigh_lost(nl, e);
	} else {
		neigh_dead(e);
	}
	e->nud = NUD_FAILED;
}

/* Who made the entry, or has marked it; 0: nobody says. */
static uint8_t
protocol_of(const struct nlattr **tb)
{
	return tb[NDA_PROTOCOL] != NULL ? mnl_attr_get_u8(tb[NDA_PROTOCOL]) : 0;
}

/* What a message about an entry says. */
static void
neigh_take(struct netlink *nl, struct nl_neigh *e, const struct nlmsghdr *nlh)
{
	const struct ndmsg *ndm = mnl_nlmsg_get_payload(nlh);
	const struct nlattr *tb[NDA_MAX + 1];
	uint32_t ext = 0;
	uint8_t proto;
	bool managed = e->managed;	/* a deletion takes the flag off */

	query_attrs(nlh, sizeof(*ndm), tb, NDA_MAX);
	if (tb[NDA_FLAGS_EXT] != NULL)
		ext = mnl_attr_get_u32(tb[NDA_FLAGS_EXT]);
	e->managed = ext & NTF_EXT_MANAGED;
	proto = protocol_of(tb);
	e->made = proto == NETLINK_PROTOCOL;
	e->foreign = proto != 0 && !e->made && proto != NETLINK_PROTOCOL_MARK;
	/* of an earlier xlbd, too */
	e->marked |= e->managed && proto == NETLINK_PROTOCOL_MARK;
	if (ndm->ndm_state & NUD_USABLE && tb[NDA_LLADDR] != NULL &&
	    mnl_attr_get_payload_len(tb[NDA_LLADDR]) == sizeof(e->mac))
		neigh_valid(e, mnl_attr_get_payload(tb[NDA_LLADDR]));
	else if (ndm->ndm_state & NUD_FAILED)
		neigh_failed(nl, e, managed);
	if (!(ndm->ndm_state & NUD_FAILED))
		e->nud = ndm->ndm_state;
	if (!e->managed && !(e->nud & NUD_FIXED))
		e->ask = true;	/* somebody took the flag off, or none yet */
}

size_t
netlink_deleted(struct netlink *nl)
{
	size_t n = nl->neigh_deleted;

	nl->neigh_deleted = 0;
	return n;
}

void
neigh_event(struct netlink *nl, const struct nlmsghdr *nlh)
{
	const struct ndmsg *ndm = mnl_nlmsg_get_payload(nlh);
	const struct nlattr *tb[NDA_DST + 1];
	struct nl_neigh *e;
	struct addr a;

	if (ndm->ndm_family != AF_INET && ndm->ndm_family != AF_INET6)
		return;		/* bridges' forwarding entries */
	query_attrs(nlh, sizeof(*ndm), tb, NDA_DST);
	if (ndm->ndm_flags & NTF_PROXY || !query_addr(tb[NDA_DST], &a))
		return;
	e = neigh_find(nl, (uint32_t)ndm->ndm_ifindex, &a);
	if (e == NULL)
		return;
	if (nlh->nlmsg_type == RTM_DELNEIGH) {
		neigh_deleted(nl, e, e->managed);
		neigh_lost(nl, e);
	} else {
		neigh_take(nl, e, nlh);
	}
}

static struct nlmsghdr *
neigh_add(struct netlink *nl, uint16_t type, uint16_t flags, uint8_t ndm_flags,
    struct nl_neigh *e)
{
	struct nlmsghdr *nlh;
	struct ndmsg *ndm;

	nlh = query_add(nl, type, flags, sizeof(*ndm), e);
	ndm = mnl_nlmsg_get_payload(nlh);
	ndm->ndm_family = (uint8_t)addr_family(&e->addr);
	ndm->ndm_ifindex = (int)e->ifindex;
	ndm->ndm_flags = ndm_flags;
	query_put_addr(nlh, NDA_DST, &e->addr);
	return nlh;
}

static void
get_answer(struct netlink *nl, void *row, const struct nlmsghdr *nlh, int err)
{
	struct nl_neigh *e = row;

	if (err == -EAGAIN)
		return;
	e->get = false;
	if (nlh == NULL) {
		neigh_lost(nl, e);
		return;
	}
	neigh_take(nl, e, nlh);
	/* half-done, or failed before we cared: it gets its time */
	if (!e->mac_known && e->asked.ns == 0)
		e->deadline = mono_add_ms(nl->now, NETLINK_ANSWER_MS);
}

static void
ask_answer(struct netlink *nl, void *row, const struct nlmsghdr *nlh, int err)
{
	struct nl_neigh *e = row;
	bool six = !addr_is4(&e->addr);
	char buf[ADDR_STR_MAX];

	(void)nl;
	(void)nlh;
	if (err == 0)
		return;
	if (err == -ENOBUFS && !e->full) {
		e->full = true;
		log_warnx("neighbour %s: no room in the kernel's table "
		    "(net.%s.neigh.default.gc_thresh3)",
		    addr_print(&e->addr, buf), six ? "ipv6" : "ipv4");
	} else if (err != -ENOBUFS) {
		errno = -err;
		log_debug("neighbour %s: asking: %s",
		    addr_print(&e->addr, buf), strerror(-err));
	}
}

static void
neigh_ask(struct netlink *nl, struct nl_neigh *e)
{
	struct nlmsghdr *nlh;

	nlh = neigh_add(nl, RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_ACK, NTF_USE,
	    e);
	mnl_attr_put_u32(nlh, NDA_FLAGS_EXT, NTF_EXT_MANAGED);
	if (e->nud == NUD_NONE || e->made)
		mnl_attr_put_u8(nlh, NDA_PROTOCOL, NETLINK_PROTOCOL);
	else if (!e->foreign && !e->managed)
		mnl_attr_put_u8(nlh, NDA_PROTOCOL, NETLINK_PROTOCOL_MARK);
	e->ask = false;
	e->asked = nl->now;
	e->marked |= !e->managed;
}

void
neigh_settle(struct netlink *nl)
{
	size_t i;

	query_begin(nl, get_answer);
	for (i = 0; i < nl->nneigh; i++)
		if (nl->neigh[i].get)
			neigh_add(nl, RTM_GETNEIGH, 0, 0, &nl->neigh[i]);
	query_end(nl);
	query_begin(nl, ask_answer);
	for (i = 0; i < nl->nneigh; i++)
		if (nl->neigh[i].ask &&
		    can_ask(link_find(nl, nl->neigh[i].ifindex)))
			neigh_ask(nl, &nl->neigh[i]);
	query_end(nl);
}

static bool
neigh_waits(const struct nl_neigh *e)
{
	return e->asked.ns != 0 && !e->mac_known;
}

/*
 * While the interface does not run no time passes: the neighbours that were known
 * are, when it runs again, until each has had its time to answer. Else those whose
 * answer comes first would get the flows of all others for a moment.
 */
static bool
neigh_paused(const struct netlink *nl, struct nl_neigh *e)
{
	bool was = e->paused;

	e->paused = !can_ask(link_find(nl, e->ifindex));
	if (was && !e->paused && e->deadline.ns != 0) {
		e->deadline = mono_add_ms(nl->now, NETLINK_ANSWER_MS);
		e->ask = true;
	}
	return e->paused;
}

void
neigh_tick(struct netlink *nl)
{
	struct nl_neigh *e;
	size_t i;

	for (i = 0; i < nl->nneigh; i++) {
		e = &nl->neigh[i];
		if (neigh_paused(nl, e))
			continue;
		if (e->deadline.ns != 0 && !mono_before(nl->now, e->deadline))
			neigh_dead(e);
		if (neigh_waits(e) && mono_ms_since(nl->now, e->asked) >=
		    NETLINK_ANSWER_MS)
			e->ask = true;
	}
}

mono_t
neigh_next(const struct netlink *nl)
{
	const struct nl_neigh *e;
	mono_t next = { -1 }, t;
	size_t i;

	for (i = 0; i < nl->nneigh; i++) {
		e = &nl->neigh[i];
		if (e->paused)
			continue;
		if (e->deadline.ns != 0)
			t = e->deadline;
		else if (neigh_waits(e))
			t = mono_add_ms(e->asked, NETLINK_ANSWER_MS);
		else
			continue;
		if (next.ns < 0 || mono_before(t, next))
			next = t;
	}
	return next;
}

/* Ours goes; one that was there before us is only let go of. */
static void
neigh_release(struct netlink *nl, struct nl_neigh *e)
{
	if (e->made)
		neigh_add(nl, RTM_DELNEIGH, NLM_F_ACK, 0, e);
	else if (e->marked)
		neigh_add(nl, RTM_NEWNEIGH, NLM_F_ACK, NTF_USE, e);
}

/* What an earlier xlbd made and nobody wants now. */
static int
sweep_row(const struct nlmsghdr *nlh, void *arg)
{
	const struct ndmsg *ndm = mnl_nlmsg_get_payload(nlh);
	const struct nlattr *tb[NDA_MAX + 1];
	struct netlink *nl = arg;
	struct nl_neigh e;

	memset(&e, 0, sizeof(e));
	query_attrs(nlh, sizeof(*ndm), tb, NDA_MAX);
	e.made = protocol_of(tb) == NETLINK_PROTOCOL;
	e.marked = protocol_of(tb) == NETLINK_PROTOCOL_MARK;
	if ((!e.made && !e.marked) || !query_addr(tb[NDA_DST], &e.addr))
		return MNL_CB_OK;
	e.ifindex = (uint32_t)ndm->ndm_ifindex;
	if (neigh_find(nl, e.ifindex, &e.addr) != NULL)
		return MNL_CB_OK;
	nl->stale = netlink_realloc(nl->stale, nl->nstale + 1, sizeof(e));
	nl->stale[nl->nstale++] = e;
	return MNL_CB_OK;
}

static void
sweep_forget(struct netlink *nl)
{
	nl->nstale = 0;
}

static void
release_answer(struct netlink *nl, void *row, const struct nlmsghdr *nlh,
    int err)
{
	(void)nl;
	(void)row;
	(void)nlh;
	(void)err;		/* gone already, or with its interface */
}

static void
neigh_sweep(struct netlink *nl)
{
	size_t i;
	int rc;

	nl->swept = true;
	rc = query_dump(nl, RTM_GETNEIGH, sweep_row, sweep_forget);
	if (rc < 0) {
		log_warnx("netlink: reading the neighbours: %s", strerror(-rc));
		sweep_forget(nl);
	}
	query_begin(nl, release_answer);
	for (i = 0; i < nl->nstale; i++)
		neigh_release(nl, &nl->stale[i]);
	query_end(nl);
	free(nl->stale);
	nl->stale = NULL;
	nl->nstale = 0;
}

/* Neighbours of the targets, sorted and unique. */
static struct nl_neigh *
neigh_wanted(const struct netlink *nl, size_t *np)
{
	struct nl_neigh *want;
	size_t i, n = 0, u = 0;

	want = netlink_realloc(NULL, nl->ntarget, sizeof(*want));
	for (i = 0; i < nl->ntarget; i++)
		if (nl->target[i].route.ok)
			want[n++] = (struct nl_neigh){ .get = true,
			    .ifindex = nl->target[i].route.ifindex,
			    .addr = nl->target[i].route.gateway };
	qsort(want, n, sizeof(*want), neigh_order);
	for (i = 0; i < n; i++)
		if (u == 0 || neigh_order(&want[u - 1], &want[i]) != 0)
			want[u++] = want[i];
	*np = u;
	return want;
}

void
neigh_sync(struct netlink *nl)
{
	struct nl_neigh *want;
	size_t n, w = 0, f = 0;
	int c;

	want = neigh_wanted(nl, &n);
	query_begin(nl, release_answer);
	while (w < n || f < nl->nneigh) {
		c = w == n ? 1 : f == nl->nneigh ? -1 :
		    neigh_order(&want[w], &nl->neigh[f]);
		if (c < 0)
			w++;
		else if (c > 0)
			neigh_release(nl, &nl->neigh[f++]);
		else
			want[w++] = nl->neigh[f++];
	}
	query_end(nl);
	free(nl->neigh);
	nl->neigh = want;
	nl->nneigh = n;
	if (!nl->swept)
		neigh_sweep(nl);
}
