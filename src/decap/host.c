/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Asks the kernel for the host's addresses and for facts about an interface. */
#include "decap/decap.h"

#include <err.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/ethtool.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define DUMP_TRIES 8	/* addresses that change while we read them */

static void
host_add(struct host *h, const struct prefix *p, uint32_t flags)
{
	struct host_addr *row;

	row = reallocarray(h->addr, h->n + 1, sizeof(*row));
	if (row == NULL)
		err(EXIT_FAILED, "memory");
	h->addr = row;
	row[h->n].p = *p;
	row[h->n++].flags = flags;
}

/* Nobody may send to these from outside. */
static bool
is_loopback(const struct addr *a)
{
	static const struct addr one = { .b = { [15] = 1 } };

	return addr_is4(a) ? a->b[12] == 127 : addr_cmp(a, &one) == 0;
}

static void
prefix_cut(struct prefix *p)
{
	unsigned bit = 128 - addr_bits(&p->addr) + p->len;

	for (; bit < 128; bit++)
		p->addr.b[bit / 8] &= (uint8_t)~(0x80 >> bit % 8);
}

/* A network on lo, 192.0.2.0/24, is local as a whole, but IPv4's only. */
static void
host_add_lo(struct host *h, const struct addr *a, uint8_t len)
{
	struct prefix net = { .addr = *a, .len = len };

	if (!addr_is4(a) || len >= 32)
		return;
	prefix_cut(&net);
	host_add(h, &net, DECAP_LO);
}

static int
address_row(const struct nlmsghdr *nlh, void *arg)
{
	const struct ifaddrmsg *m = mnl_nlmsg_get_payload(nlh);
	struct host *h = arg;
	struct nlattr *attr, *found = NULL;
	struct prefix p;
	uint32_t be;
	bool lo;

	if (m->ifa_family != AF_INET && m->ifa_family != AF_INET6)
		return MNL_CB_OK;
	/* of a point-to-point pair IFA_ADDRESS is the other end */
	mnl_attr_for_each(attr, nlh, sizeof(*m)) {
		if (mnl_attr_get_type(attr) == IFA_LOCAL ||
		    (mnl_attr_get_type(attr) == IFA_ADDRESS && found == NULL))
			found = attr;
	}
	if (found == NULL || mnl_attr_get_payload_len(found) !=
	    (m->ifa_family == AF_INET ? 4 : 16))
		return MNL_CB_OK;
	if (m->ifa_family == AF_INET) {
		memcpy(&be, mnl_attr_get_payload(found), sizeof(be));
		p.addr = addr_from4(be);
	} else {
		memcpy(p.addr.b, mnl_attr_get_payload(found), 16);
	}
	if (is_loopback(&p.addr))
		return MNL_CB_OK;
	lo = m->ifa_index == if_nametoindex("lo");
	if (lo)
		host_add_lo(h, &p.addr, m->ifa_prefixlen);
	p.len = (uint8_t)addr_bits(&p.addr);
	host_add(h, &p, DECAP_HOST | (lo ? DECAP_LO : 0));
	return MNL_CB_OK;
}

static int
host_dump(struct mnl_socket *nl, unsigned seq, struct host *out)
{
	char buf[32768];
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct ifaddrmsg *m;
	ssize_t n;
	int r = MNL_CB_OK;

	nlh->nlmsg_type = RTM_GETADDR;
	nlh->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	nlh->nlmsg_seq = seq;
	m = mnl_nlmsg_put_extra_header(nlh, sizeof(*m));
	m->ifa_family = AF_UNSPEC;
	if (mnl_socket_sendto(nl, nlh, nlh->nlmsg_len) < 0)
		return -errno;
	while (r == MNL_CB_OK) {
		n = mnl_socket_recvfrom(nl, buf, sizeof(buf));
		if (n < 0)
			return -errno;
		r = mnl_cb_run(buf, (size_t)n, seq, mnl_socket_get_portid(nl),
		    address_row, out);
	}
	return r < 0 ? -errno : 0;
}

int
host_read(struct host *out)
{
	struct mnl_socket *nl;
	int r = -EINTR, try;

	memset(out, 0, sizeof(*out));
	/* EINTR: the list changed while it was read. A socket for each try,
	 * since the rest of the old list would still be in it. */
	for (try = 1; r == -EINTR && try <= DUMP_TRIES; try++) {
		host_free(out);
		nl = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC);
		if (nl == NULL)
			return -errno;
		r = mnl_socket_bind(nl, 0, MNL_SOCKET_AUTOPID) < 0 ? -errno :
		    host_dump(nl, (unsigned)try, out);
		mnl_socket_close(nl);
	}
	if (r < 0)
		host_free(out);
	return r;
}

void
host_free(struct host *h)
{
	free(h->addr);
	memset(h, 0, sizeof(*h));
}

static int
interface_ask(const char *name, unsigned long what, struct ifreq *ifr)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), r;

	if (fd < 0)
		return -1;
	strncpy(ifr->ifr_name, name, sizeof(ifr->ifr_name) - 1);
	r = ioctl(fd, what, ifr);
	close(fd);
	return r;
}

int
host_mtu(const char *name)
{
	struct ifreq ifr = { .ifr_ifindex = 0 };

	return interface_ask(name, SIOCGIFMTU, &ifr) < 0 ? -1 : ifr.ifr_mtu;
}

void
host_driver(const char *name, char *buf, size_t len)
{
	struct ethtool_drvinfo info = { .cmd = ETHTOOL_GDRVINFO };
	struct ifreq ifr = { .ifr_data = (char *)&info };

	if (interface_ask(name, SIOCETHTOOL, &ifr) < 0 || info.driver[0] == 0)
		strncpy(info.driver, "-", sizeof(info.driver));
	strncpy(buf, info.driver, len - 1);
	buf[len - 1] = '\0';
}

uint64_t
host_netns(void)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	uint64_t cookie = 0;
	socklen_t len = sizeof(cookie);

	if (fd < 0)
		return 0;
	if (getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &len) < 0)
		cookie = 0;
	close(fd);
	return cookie;
}
