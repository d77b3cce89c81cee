/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Interfaces that did not take frames. Nothing tells when that is over, so
 * after a time one is tried again, later each time; a change of the link is a
 * reason to try at once.
 */
#include "io/netlink_int.h"

#include <stdlib.h>
#include <string.h>

#include "io/log.h"

static struct nl_port *
port_find(const struct netlink *nl, uint32_t ifindex)
{
	size_t i;

	for (i = 0; i < nl->nport; i++)
		if (nl->port[i].ifindex == ifindex)
			return &nl->port[i];
	return NULL;
}

bool
port_failed(const struct netlink *nl, uint32_t ifindex)
{
	const struct nl_port *p = port_find(nl, ifindex);

	return p != NULL && p->failed;
}

static struct nl_port *
port_get(struct netlink *nl, uint32_t ifindex)
{
	struct nl_port *p = port_find(nl, ifindex);

	if (p != NULL)
		return p;
	nl->port = netlink_realloc(nl->port, nl->nport + 1, sizeof(*p));
	p = &nl->port[nl->nport++];
	*p = (struct nl_port){ .ifindex = ifindex };
	return p;
}

void
netlink_port_failed(struct netlink *nl, uint32_t ifindex, int err)
{
	const struct nl_link *l = link_find(nl, ifindex);
	struct nl_port *p;

	if (l == NULL)
		return;
	p = port_get(nl, ifindex);
	if (p->failed)
		return;
	nl->now = netlink_now();
	/* works for longer than it was off: begin anew */
	if (p->until.ns == 0 ||
	    mono_ms_since(nl->now, p->until) > p->hold_ms)
		p->hold_ms = NETLINK_PORT_MS;
	else if (p->hold_ms < NETLINK_PORT_MAX_MS)
		p->hold_ms *= 2;
	p->failed = true;
	p->until = mono_add_ms(nl->now, p->hold_ms);
	log_warnx("interface %s cannot send XDP frames (%s): its backends are "
	    "down, next try in %lld s", l->name, strerror(-err),
	    (long long)p->hold_ms / 1000);
	netlink_settle(nl);
}

void
port_forget(struct netlink *nl, uint32_t ifindex)
{
	struct nl_port *p = port_find(nl, ifindex);

	if (p != NULL)
		*p = nl->port[--nl->nport];
}

void
port_tick(struct netlink *nl)
{
	size_t i;

	for (i = 0; i < nl->nport; i++)
		if (!mono_before(nl->now, nl->port[i].until))
			nl->port[i].failed = false;
}

mono_t
port_next(const struct netlink *nl)
{
	mono_t next = { -1 };
	size_t i;

	for (i = 0; i < nl->nport; i++)
		if (nl->port[i].failed && (next.ns < 0 ||
		    mono_before(nl->port[i].until, next)))
			next = nl->port[i].until;
	return next;
}
