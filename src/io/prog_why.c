/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Why an interface took no XDP program. A failed bpf_link_create() gives errno
 * alone; the driver's words come only to those who ask over netlink. So the
 * same is tried there, for what it says.
 */
#include "io/prog_int.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/ethtool.h>
#include <linux/if_link.h>
#include <linux/if_vlan.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* Above it a frame does not fit a page with XDP's room around it: the usual
 * limit of drivers for programs without frags. */
#define SINGLE_BUFFER_MTU 3498

static struct nlmsghdr *
request(char *buf, uint32_t ifindex, int fd, uint32_t flags)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct ifinfomsg *ifi;
	struct nlattr *xdp;

	nlh->nlmsg_type = RTM_SETLINK;
	nlh->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
	ifi = mnl_nlmsg_put_extra_header(nlh, sizeof(*ifi));
	ifi->ifi_index = (int)ifindex;
	xdp = mnl_attr_nest_start(nlh, IFLA_XDP);
	mnl_attr_put_u32(nlh, IFLA_XDP_FD, (uint32_t)fd);
	mnl_attr_put_u32(nlh, IFLA_XDP_FLAGS, flags);
	mnl_attr_nest_end(nlh, xdp);
	return nlh;
}

static int
take_msg(const struct nlattr *at, void *arg)
{
	const char **msg = arg;

	if (mnl_attr_get_type(at) == NLMSGERR_ATTR_MSG)
		*msg = mnl_attr_get_str(at);
	return MNL_CB_OK;
}

/* One request and its answer. The error; `msg` is in `buf`, or NULL. */
static int
exchange(struct mnl_socket *s, char *buf, size_t size, struct nlmsghdr *req,
    const char **msg)
{
	const struct nlmsghdr *nlh = (const void *)buf;
	const struct nlmsgerr *e;
	ssize_t n;

	*msg = NULL;
	if (mnl_socket_sendto(s, req, req->nlmsg_len) < 0)
		return -errno;
	n = mnl_socket_recvfrom(s, buf, size);
	if (n < 0)
		return -errno;
	if (!mnl_nlmsg_ok(nlh, (int)n) || nlh->nlmsg_type != NLMSG_ERROR)
		return -EPROTO;
	e = mnl_nlmsg_get_payload(nlh);
	if (nlh->nlmsg_flags & NLM_F_ACK_TLVS)
		mnl_attr_parse(nlh, sizeof(*e), take_msg, msg);
	return e->error;
}

/* The kernel's words, or "". An attempt that succeeds is undone. */
static void
ask_kernel(const struct prog *p, uint32_t ifindex, uint32_t flags, char *out,
    size_t size)
{
	char req[256] __attribute__((aligned(16)));
	char buf[8192] __attribute__((aligned(16)));
	struct mnl_socket *s;
	const char *msg;
	int one = 1, fd;

	*out = '\0';
	s = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC);
	if (s == NULL)
		return;
	fd = mnl_socket_get_fd(s);
	setsockopt(fd, SOL_NETLINK, NETLINK_EXT_ACK, &one, sizeof(one));
	setsockopt(fd, SOL_NETLINK, NETLINK_CAP_ACK, &one, sizeof(one));
	if (mnl_socket_bind(s, 0, MNL_SOCKET_AUTOPID) == 0) {
		if (exchange(s, buf, sizeof(buf), request(req, ifindex, p->fd,
		    flags | XDP_FLAGS_UPDATE_IF_NOEXIST), &msg) == 0)
			exchange(s, buf, sizeof(buf),
			    request(req, ifindex, -1, flags), &msg);
		else if (msg != NULL)
			snprintf(out, size, "%s", msg);
	}
	mnl_socket_close(s);
}

static int
if_ioctl(const char *name, unsigned long cmd, struct ifreq *ifr)
{
	int fd, rc;

	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	snprintf(ifr->ifr_name, sizeof(ifr->ifr_name), "%s", name);
	rc = ioctl(fd, cmd, ifr) < 0 ? -errno : 0;
	close(fd);
	return rc;
}

static const char *
driver_name(const char *name, struct ethtool_drvinfo *info)
{
	struct ifreq ifr;

	memset(&ifr, 0, sizeof(ifr));
	memset(info, 0, sizeof(*info));
	info->cmd = ETHTOOL_GDRVINFO;
	ifr.ifr_data = (char *)info;
	if (if_ioctl(name, SIOCETHTOOL, &ifr) < 0 || info->driver[0] == '\0')
		return "unknown driver";
	return info->driver;
}

static uint32_t
mtu_of(const char *name)
{
	struct ifreq ifr;

	memset(&ifr, 0, sizeof(ifr));
	if (if_ioctl(name, SIOCGIFMTU, &ifr) < 0)
		return 0;
	return (uint32_t)ifr.ifr_mtu;
}

/* The device below a VLAN device. */
static bool
vlan_lower(const char *name, char lower[24])
{
	struct vlan_ioctl_args args;
	int fd, rc;

	memset(&args, 0, sizeof(args));
	args.cmd = GET_VLAN_REALDEV_NAME_CMD;
	snprintf(args.device1, sizeof(args.device1), "%s", name);
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return false;
	rc = ioctl(fd, SIOCGIFVLAN, &args);
	close(fd);
	if (rc < 0)
		return false;
	snprintf(lower, 24, "%s", args.u.device2);
	return true;
}

/* Another program that sits there. */
static bool
hint_foreign(uint32_t ifindex, char *buf, size_t size)
{
	LIBBPF_OPTS(bpf_xdp_query_opts, q);
	uint32_t id;
	const char *mode;

	if (bpf_xdp_query((int)ifindex, 0, &q) < 0)
		return false;
	id = q.drv_prog_id != 0 ? q.drv_prog_id :
	    q.skb_prog_id != 0 ? q.skb_prog_id : q.hw_prog_id;
	mode = q.drv_prog_id != 0 ? "native" :
	    q.skb_prog_id != 0 ? "generic" : "offloaded";
	if (id == 0)
		return false;
	snprintf(buf, size, "program %u is attached there (%s) and is left "
	    "alone", id, mode);
	return true;
}

static bool
says(const char *kernel, const char *word)
{
	return strcasestr(kernel, word) != NULL;
}

void
prog_hint(const struct prog *p, const char *name, uint32_t ifindex, uint32_t flags,
    int err, const char *kernel, char *buf, size_t size)
{
	uint32_t mtu = mtu_of(name);
	char lower[24];

	*buf = '\0';
	if ((err == EBUSY || err == EEXIST) &&
	    hint_foreign(ifindex, buf, size))
		return;
	if (vlan_lower(name, lower))
		snprintf(buf, size, "it is a VLAN device: attach to %s "
		    "instead, tags are handled", lower);
	else if (says(kernel, "mtu") ||
	    (mtu > SINGLE_BUFFER_MTU && !p->frags && err != EOPNOTSUPP))
		snprintf(buf, size, "the MTU is %u, and at most about %u fits "
		    "one buffer", mtu, SINGLE_BUFFER_MTU);
	else if (says(kernel, "lro") || says(kernel, "gro_hw"))
		snprintf(buf, size, "frames are put together before XDP sees "
		    "them: ethtool -K %s lro off gro_hw off", name);
	else if (says(kernel, "queue") || says(kernel, "ring") ||
	    says(kernel, "channel"))
		snprintf(buf, size, "XDP needs queues of its own: see "
		    "ethtool -l %s", name);
	else if (err == EOPNOTSUPP && flags == XDP_FLAGS_DRV_MODE)
		snprintf(buf, size, "the driver has no XDP of its own: "
		    "`xdp: generic` works, slowly");
}

void
prog_why(const struct prog *p, const char *name, uint32_t ifindex,
    uint32_t flags, int err, char *buf, size_t size)
{
	struct ethtool_drvinfo info;
	char kernel[160], tip[160];

	ask_kernel(p, ifindex, flags, kernel, sizeof(kernel));
	prog_hint(p, name, ifindex, flags, err, kernel, tip, sizeof(tip));
	snprintf(buf, size, "%s, %s: %s%s%s%s%s%s", driver_name(name, &info),
	    flags == XDP_FLAGS_DRV_MODE ? "native" : "generic", strerror(err),
	    *kernel != '\0' ? ": " : "", kernel, *tip != '\0' ? " (" : "", tip,
	    *tip != '\0' ? ")" : "");
}
