/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Makes and keeps the device, the program on it, and the rules. */
#include "io/tunnel.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/fib_rules.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/log.h"
#include "io/tun.h"
#include "probe_abi.h"

/* bpftool 7.1 writes a cast that drops const */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wcast-qual"
#include "probe.skel.h"
#pragma GCC diagnostic pop

#define REQUEST_MAX	512	/* bytes, more than any of ours */
#define DEVICE_MTU	65535
#define PLACE		1	/* of our filter: its handle and its priority */

/* The same in both families. */
enum piece { PIECE_RULE, PIECE_REFUSE, PIECE_ROUTE, PIECES };

static const char *const piece_text[PIECES] = {
	[PIECE_RULE] = "rule", [PIECE_REFUSE] = "unreachable route",
	[PIECE_ROUTE] = "route",
};

struct tunnel {
	int tables;
	struct probe_bpf *skel;	/* NULL: not loaded yet */
	int tun;		/* -1: none */
	unsigned ifindex;
	bool made;		/* all of it was there once */
	bool removed;		/* since then nothing of it was made */
	int err;		/* of the last call */
};

struct tunnel *
tunnel_new(int tables)
{
	struct tunnel *t = calloc(1, sizeof(*t));

	if (t == NULL)
		fatal("tunnel");
	t->tables = tables;
	t->tun = -1;
	t->err = -EAGAIN;
	return t;
}

/* One request and its answer. 0, or -errno. */
static int
ask(struct mnl_socket *s, struct nlmsghdr *nlh)
{
	char in[REQUEST_MAX + 256];
	ssize_t n;

	nlh->nlmsg_flags |= NLM_F_REQUEST | NLM_F_ACK;
	nlh->nlmsg_seq = 1;
	if (mnl_socket_sendto(s, nlh, nlh->nlmsg_len) < 0)
		return -errno;
	do
		n = mnl_socket_recvfrom(s, in, sizeof(in));
	while (n < 0 && errno == EINTR);
	if (n < 0 || mnl_cb_run(in, (size_t)n, 1, mnl_socket_get_portid(s),
	    NULL, NULL) < 0)
		return -errno;
	return 0;
}

static struct mnl_socket *
ask_open(void)
{
	struct mnl_socket *s = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC);

	if (s != NULL && mnl_socket_bind(s, 0, MNL_SOCKET_AUTOPID) < 0) {
		mnl_socket_close(s);
		s = NULL;
	}
	return s;
}

static void
rule_put(struct nlmsghdr *nlh, uint8_t family)
{
	struct fib_rule_hdr *h;

	h = mnl_nlmsg_put_extra_header(nlh, sizeof(*h));
	h->family = family;
	h->action = FR_ACT_TO_TBL;
	mnl_attr_put_u32(nlh, FRA_PRIORITY, TUNNEL_PRIORITY);
	mnl_attr_put_u32(nlh, FRA_FWMARK, PROBE_MARK);
	mnl_attr_put_u32(nlh, FRA_FWMASK, PROBE_MARK_MASK);
	mnl_attr_put_u32(nlh, FRA_TABLE, TUNNEL_TABLE);
}

static void
route_put(struct nlmsghdr *nlh, uint8_t family, unsigned ifindex)
{
	struct nlattr *metrics;
	struct rtmsg *r;

	r = mnl_nlmsg_put_extra_header(nlh, sizeof(*r));
	r->rtm_family = family;
	r->rtm_protocol = RTPROT_STATIC;
	r->rtm_type = ifindex != 0 ? RTN_UNICAST : RTN_UNREACHABLE;
	r->rtm_scope = ifindex != 0 && family == AF_INET ? RT_SCOPE_LINK :
	    RT_SCOPE_UNIVERSE;
	mnl_attr_put_u32(nlh, RTA_TABLE, TUNNEL_TABLE);
	mnl_attr_put_u32(nlh, RTA_PRIORITY, ifindex != 0 ? 1 : UINT32_MAX);
	if (ifindex == 0)
		return;
	mnl_attr_put_u32(nlh, RTA_OIF, ifindex);
	metrics = mnl_attr_nest_start(nlh, RTA_METRICS);
	mnl_attr_put_u32(nlh, RTAX_MTU, TUNNEL_MTU);
	mnl_attr_nest_end(nlh, metrics);
}

/* Adds a piece, or deletes it. */
static int
piece_ask(struct mnl_socket *s, enum piece piece, uint8_t family, bool add,
    unsigned ifindex)
{
	uint8_t buf[REQUEST_MAX];
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);

	if (piece == PIECE_RULE) {
		nlh->nlmsg_type = add ? RTM_NEWRULE : RTM_DELRULE;
		rule_put(nlh, family);
	} else {
		nlh->nlmsg_type = add ? RTM_NEWROUTE : RTM_DELROUTE;
		route_put(nlh, family, piece == PIECE_ROUTE ? ifindex : 0);
	}
	if (add)
		nlh->nlmsg_flags = NLM_F_CREATE | NLM_F_EXCL;
	return ask(s, nlh);
}

/* No address of its own, and no segments that are cut after our program has
 * seen them: what is around them could not be repeated. */
static int
device_set(struct mnl_socket *s, unsigned ifindex)
{
	uint8_t buf[REQUEST_MAX] = { 0 };	/* what pads the last one */
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct nlattr *spec, *inet6;
	struct ifinfomsg *i;

	nlh->nlmsg_type = RTM_NEWLINK;
	i = mnl_nlmsg_put_extra_header(nlh, sizeof(*i));
	i->ifi_index = (int)ifindex;
	i->ifi_flags = i->ifi_change = IFF_UP;
	mnl_attr_put_u32(nlh, IFLA_MTU, DEVICE_MTU);
	mnl_attr_put_u32(nlh, IFLA_GSO_MAX_SEGS, 1);
	spec = mnl_attr_nest_start(nlh, IFLA_AF_SPEC);
	inet6 = mnl_attr_nest_start(nlh, AF_INET6);
	mnl_attr_put_u8(nlh, IFLA_INET6_ADDR_GEN_MODE,
	    IN6_ADDR_GEN_MODE_NONE);
	mnl_attr_nest_end(nlh, inet6);
	mnl_attr_nest_end(nlh, spec);
	return ask(s, nlh);
}

/* 1: it was made, 0: it is there. */
static int
device_mend(struct tunnel *t)
{
	if (t->tun >= 0 && if_nametoindex(TUNNEL_DEVICE) == t->ifindex)
		return 0;
	if (t->tun >= 0)
		close(t->tun);
	t->tun = tun_make(TUNNEL_DEVICE);
	if (t->tun < 0)
		return t->tun;
	t->ifindex = if_nametoindex(TUNNEL_DEVICE);
	if (t->ifindex == 0)
		return -errno;
	return 1;
}

/* IPv6 may be switched off; then no packet of it can go astray either. */
static bool
is_no_ipv6(int family, int rc)
{
	return family == AF_INET6 && (rc == -EAFNOSUPPORT ||
	    rc == -EOPNOTSUPP || rc == -EACCES || rc == -EINVAL);
}

/* How many were missing. */
static int
pieces_mend(struct tunnel *t, struct mnl_socket *s)
{
	static const uint8_t family[] = { AF_INET, AF_INET6 };
	int rc, made = 0;
	enum piece p;
	size_t i;

	for (i = 0; i < sizeof(family); i++)
		for (p = 0; p < PIECES; p++) {
			rc = piece_ask(s, p, family[i], true, t->ifindex);
			if (rc == -EEXIST || is_no_ipv6(family[i], rc))
				continue;
			if (rc < 0) {
				log_warnx("probes: %s, IPv%d: %s",
				    piece_text[p], family[i] == AF_INET ? 4 : 6,
				    strerror(-rc));
				return rc;
			}
			made++;
		}
	return made;
}

static int
program_load(struct tunnel *t)
{
	int rc;

	if (t->skel != NULL)
		return 0;
	t->skel = probe_bpf__open();
	if (t->skel == NULL)
		return -errno;
	/* it has `tables` by address, as its .bss */
	rc = bpf_map__reuse_fd(t->skel->maps.bss, t->tables);
	if (rc == 0)
		rc = probe_bpf__load(t->skel);
	if (rc < 0) {
		probe_bpf__destroy(t->skel);
		t->skel = NULL;
	}
	return rc;
}

/* 0: it is there now. Needs the module sch_ingress. */
static int
clsact_mend(const struct tunnel *t)
{
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = (int)t->ifindex,
	    .attach_point = BPF_TC_EGRESS);
	libbpf_print_fn_t print = libbpf_set_print(NULL);
	int rc = bpf_tc_hook_create(&hook);

	libbpf_set_print(print);	/* that it is there is no error */
	return rc == -EEXIST ? 0 : rc;
}

/* 1: it was attached, 0: it is there. Whatever else is in our place goes. Needs
 * the module cls_bpf. */
static int
program_mend(struct tunnel *t)
{
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = (int)t->ifindex,
	    .attach_point = BPF_TC_EGRESS);
	LIBBPF_OPTS(bpf_tc_opts, here, .handle = PLACE, .priority = PLACE);
	LIBBPF_OPTS(bpf_tc_opts, ours, .handle = PLACE, .priority = PLACE,
	    .flags = BPF_TC_F_REPLACE);
	struct bpf_prog_info info;
	uint32_t len = sizeof(info);
	libbpf_print_fn_t print;
	int rc;

	rc = program_load(t);
	if (rc < 0)
		return rc;
	memset(&info, 0, sizeof(info));
	ours.prog_fd = bpf_program__fd(t->skel->progs.probe);
	if (bpf_obj_get_info_by_fd(ours.prog_fd, &info, &len) < 0)
		return -errno;
	print = libbpf_set_print(NULL);	/* what is missing is no error */
	rc = bpf_tc_query(&hook, &here);
	libbpf_set_print(print);
	if (rc == 0 && here.prog_id == info.id)
		return 0;
	rc = bpf_tc_attach(&hook, &ours);
	return rc < 0 ? rc : 1;
}

static int
mend(struct tunnel *t, const char **what)
{
	struct mnl_socket *s = ask_open();
	int rc, made = 0;

	*what = "netlink";
	if (s == NULL)
		return -errno;
	*what = "device " TUNNEL_DEVICE;
	rc = device_mend(t);
	if (rc >= 0) {
		made += rc;
		rc = device_set(s, t->ifindex);
	}
	if (rc >= 0) {
		*what = "clsact (sch_ingress)";
		rc = clsact_mend(t);
	}
	if (rc >= 0) {
		*what = "program (cls_bpf)";
		rc = program_mend(t);
	}
	if (rc >= 0) {
		made += rc;
		*what = "rules";
		rc = pieces_mend(t, s);
	}
	mnl_socket_close(s);
	return rc < 0 ? rc : made + rc;
}

int
tunnel_mend(struct tunnel *t)
{
	const char *what;
	int rc;

	t->removed = false;
	rc = mend(t, &what);
	if (rc < 0) {
		if (rc != t->err)
			log_warnx("probes through the tunnel are not possible: "
			    "%s: %s", what, strerror(-rc));
		t->err = rc;
		return rc;
	}
	t->err = 0;
	if (!t->made)
		rc = 0;
	t->made = true;
	if (rc > 0)
		log_warnx("probes: somebody had taken away the tunnel's device, "
		    "program or rules; they are back");
	return rc;
}

bool
tunnel_ready(const struct tunnel *t)
{
	return t->err == 0;
}

void
tunnel_remove_rules(void)
{
	static const uint8_t family[] = { AF_INET, AF_INET6 };
	struct mnl_socket *s = ask_open();
	size_t i;

	if (s == NULL) {
		log_warn("probes: netlink");
		return;
	}
	for (i = 0; i < sizeof(family); i++) {
		piece_ask(s, PIECE_RULE, family[i], false, 0);
		piece_ask(s, PIECE_REFUSE, family[i], false, 0);
	}
	mnl_socket_close(s);
}

void
tunnel_remove(struct tunnel *t)
{
	if (t->removed)
		return;
	if (t->tun >= 0)
		close(t->tun);
	t->tun = -1;
	t->made = false;
	t->removed = true;
	t->err = -EAGAIN;
	tunnel_remove_rules();
}

void
tunnel_free(struct tunnel *t)
{
	if (t == NULL)
		return;
	if (t->tun >= 0)
		close(t->tun);
	probe_bpf__destroy(t->skel);
	free(t);
}
