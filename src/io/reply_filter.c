/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whether this host's rp_filter drops the replies to checks through the tunnel,
 * which come from the service's address. */
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

#include "core/health.h"
#include "io/conf_world.h"

#define STRICT 1		/* RFC 3704: only from where one would send to */

/* What the kernel goes by: the larger of the two. */
static int
filter_read(const char *interface)
{
	const char *name[] = { "all", interface };
	char path[128];
	int max = 0, n;
	size_t i;
	FILE *f;

	for (i = 0; i < 2; i++) {
		snprintf(path, sizeof(path),
		    "/proc/sys/net/ipv4/conf/%s/rp_filter", name[i]);
		f = fopen(path, "re");
		if (f == NULL)
			return 0;	/* no such interface here */
		if (fscanf(f, "%d", &n) == 1 && n > max)
			max = n;
		fclose(f);
	}
	return max;
}

static int
oif_take(const struct nlattr *attr, void *arg)
{
	unsigned *oif = arg;

	if (mnl_attr_get_type(attr) == RTA_OIF &&
	    mnl_attr_validate(attr, MNL_TYPE_U32) == 0)
		*oif = mnl_attr_get_u32(attr);
	return MNL_CB_OK;
}

static int
route_take(const struct nlmsghdr *nlh, void *arg)
{
	return mnl_attr_parse(nlh, sizeof(struct rtmsg), oif_take, arg);
}

/* The interface by which the host would send to an IPv4 address; 0: none. */
static unsigned
route_out(struct mnl_socket *s, const struct addr *to)
{
	char buf[8192];		/* a page at least, as libmnl asks */
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct rtmsg *r;
	unsigned oif = 0;
	ssize_t n;

	nlh->nlmsg_type = RTM_GETROUTE;
	nlh->nlmsg_flags = NLM_F_REQUEST;
	nlh->nlmsg_seq = 1;
	r = mnl_nlmsg_put_extra_header(nlh, sizeof(*r));
	r->rtm_family = AF_INET;
	r->rtm_dst_len = 32;
	mnl_attr_put_u32(nlh, RTA_DST, addr_to4(to));
	if (mnl_socket_sendto(s, nlh, nlh->nlmsg_len) < 0)
		return 0;
	n = mnl_socket_recvfrom(s, buf, sizeof(buf));
	if (n < 0 || mnl_cb_run(buf, (size_t)n, 1, mnl_socket_get_portid(s),
	    route_take, &oif) < 0)
		return 0;	/* unreachable: from there nothing is taken */
	return oif;
}

/* The first address that is asked through the tunnel, and whose replies this
 * interface drops; NULL: none. */
static const struct addr *
dropped_find(const struct conf *c, struct mnl_socket *s, unsigned interface)
{
	const struct conf_service *v;
	const struct addr *a;
	size_t i, k;

	for (i = 0; i < c->nservice; i++) {
		v = &c->service[i];
		if (v->pool->check == NULL ||
		    !health_is_tunnelled(v->pool->check, v))
			continue;
		for (k = 0; k < v->naddress; k++) {
			a = &v->address[k].address;
			if (addr_is4(a) && route_out(s, a) != interface)
				return a;
		}
	}
	return NULL;
}

void
reply_filter_check(const struct conf *c, struct diag *dg)
{
	struct mnl_socket *s = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC);
	const struct addr *vip;
	char addr[ADDR_STR_MAX];
	size_t i;

	if (s == NULL)
		return;
	for (i = 0; i < c->ninterface; i++) {
		if (filter_read(c->interface[i].name) != STRICT)
			continue;
		vip = dropped_find(c, s, if_nametoindex(c->interface[i].name));
		if (vip != NULL)
			diag_add(dg, DIAG_WARNING, c->interface[i].mark,
			    "interfaces[%zu].name: rp_filter of %s is 1, and "
			    "the way to %s is another one: replies to checks "
			    "through the tunnel are dropped; set "
			    "net.ipv4.conf.{all,%s}.rp_filter to 2 or 0", i,
			    c->interface[i].name, addr_print(vip, addr),
			    c->interface[i].name);
	}
	mnl_socket_close(s);
}
