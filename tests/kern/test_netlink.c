/* SPDX-License-Identifier: GPL-2.0-or-later */
/* io/netlink against the real kernel: each change has to be followed within a
 * second; how long it took is printed. */
#include "net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_arp.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>

#include "io/log.h"

static const uint8_t mac_new[6] = { 2, 0, 0, 0, 0, 0x22 };

static bool
local_has(const char *s)
{
	const struct addr *local;
	struct addr a = net_addr(s);
	size_t n;

	local = netlink_local(t.nl, &n);
	return bsearch(&a, local, n, sizeof(a), net_addr_cmp) != NULL;
}

static void
own_addresses_and_links_are_known(void **state)
{
	struct netlink_if nif;

	(void)state;
	assert_true(local_has("127.0.0.1"));
	assert_true(local_has("::1"));
	assert_true(local_has("10.1.0.1"));
	assert_true(local_has("fd00:2::1"));
	assert_false(local_has("10.1.0.2"));
	netlink_if(t.nl, "e0", &nif);
	assert_int_equal(nif.ifindex, if_nametoindex("e0"));
	assert_int_equal(nif.mtu, 1500);
	assert_memory_equal(nif.mac, net_own0, 6);
	FOLLOW(1000, "carrier seen",
	    (netlink_if(t.nl, "e0", &nif), nif.up));
	netlink_if(t.nl, "nosuch", &nif);
	assert_int_equal(nif.ifindex, 0);

	t.calls = 0;
	run("ip addr add 203.0.113.10/32 dev lo");
	FOLLOW(1000, "address added", local_has("203.0.113.10"));
	assert_true(t.calls >= 1);
	run("ip addr del 203.0.113.10/32 dev lo");
	FOLLOW(1000, "address removed", !local_has("203.0.113.10"));

	run("ip link set e0 mtu 1400");
	FOLLOW(1000, "mtu changed",
	    (netlink_if(t.nl, "e0", &nif), nif.mtu == 1400));
	run("ip link add d0 type veth peer d1");
	FOLLOW(1000, "link added",
	    (netlink_if(t.nl, "d0", &nif), nif.ifindex != 0));
	run("ip link del d0");
	FOLLOW(1000, "link removed",
	    (netlink_if(t.nl, "d0", &nif), nif.ifindex == 0));
}

static void
next_hops_are_found_on_link_and_through_gateways(void **state)
{
	const struct state_nexthop *nh;
	struct addr a;

	(void)state;
	run("ip route add 10.9.0.0/24 via 10.2.0.2");
	run("ip route add 10.8.0.0/24 via inet6 fd00:1::2");
	run("ip route add fd00:9::/64 via fd00:2::2 mtu 1400");
	want("10.1.0.2", "fd00:1::2", "10.9.0.7", "10.8.0.7", "fd00:9::7",
	    NULL);
	FOLLOW(1000, "five next hops resolved", is_ok("10.1.0.2") &&
	    is_ok("fd00:1::2") && is_ok("10.9.0.7") && is_ok("10.8.0.7") &&
	    is_ok("fd00:9::7"));

	nh = &hop("10.1.0.2")->nexthop;
	a = net_addr("10.1.0.2");
	assert_memory_equal(&nh->gateway, &a, 16);
	a = net_addr("10.1.0.1");
	assert_memory_equal(&nh->src, &a, 16);
	assert_memory_equal(nh->mac, net_mac0, 6);
	assert_memory_equal(nh->src_mac, net_own0, 6);
	assert_int_equal(nh->ifindex, if_nametoindex("e0"));
	assert_int_equal(nh->mtu, 1500);
	assert_int_equal(nh->vlan, 0);

	nh = &hop("fd00:9::7")->nexthop;
	a = net_addr("fd00:2::2");
	assert_memory_equal(&nh->gateway, &a, 16);
	a = net_addr("fd00:2::1");
	assert_memory_equal(&nh->src, &a, 16);
	assert_memory_equal(nh->mac, net_mac1, 6);
	assert_int_equal(nh->ifindex, if_nametoindex("e1"));
	assert_int_equal(nh->mtu, 1400);

	nh = &hop("10.8.0.7")->nexthop;	/* RFC 5549 */
	a = net_addr("fd00:1::2");
	assert_memory_equal(&nh->gateway, &a, 16);
	assert_memory_equal(nh->mac, net_mac0, 6);
	assert_true(addr_is4(&nh->src));
}

static void
what_cannot_be_sent_to_says_why(void **state)
{
	(void)state;
	run("ip link add d0 type veth peer d1 && ip link set d0 up && "
	    "ip addr add 10.7.0.1/24 dev d0");
	run("ip route add unreachable 10.6.0.0/24");
	run("ip route add blackhole 10.5.0.0/24");
	run("ip -6 route add unreachable fd00:6::/64");
	run("ip link set d0 down");
	want("10.1.0.1", "127.0.0.2", "::1", "192.0.2.1", "2001:db8::1",
	    "10.6.0.1", "10.5.0.1", "fd00:6::1", "10.1.0.255", "10.7.0.2",
	    NULL);
	assert_true(is("10.1.0.1", HOP_NO_ROUTE));
	assert_string_equal(hop("10.1.0.1")->why,
	    "it is an address of this host");
	assert_true(is("127.0.0.2", HOP_NO_ROUTE));
	assert_true(is("::1", HOP_NO_ROUTE));
	assert_true(is("192.0.2.1", HOP_NO_ROUTE));
	assert_string_equal(hop("192.0.2.1")->why, "no route");
	assert_true(is("2001:db8::1", HOP_NO_ROUTE));
	assert_true(is("10.6.0.1", HOP_NO_ROUTE));
	assert_true(is("10.5.0.1", HOP_NO_ROUTE));
	assert_true(is("fd00:6::1", HOP_NO_ROUTE));
	assert_true(is("10.1.0.255", HOP_NO_ROUTE));
	assert_true(is("10.7.0.2", HOP_NO_ROUTE));
	run("ip link del d0");
}

static void
silence_takes_a_second_and_an_answer_ends_it(void **state)
{
	double begin = now_ms(), took;

	(void)state;
	want("10.1.0.99", "fd00:1::99", NULL);
	assert_true(is("10.1.0.99", HOP_RESOLVING));
	assert_true(is("fd00:1::99", HOP_RESOLVING));
	assert_true(time_left("10.1.0.99") <= NETLINK_ANSWER_MS);
	assert_true(time_left("fd00:1::99") <= NETLINK_ANSWER_MS);
	FOLLOW(1300, "no answer", is("10.1.0.99", HOP_NO_NEIGHBOR) &&
	    is("fd00:1::99", HOP_NO_NEIGHBOR));
	took = now_ms() - begin;
	assert_true(took > 900);
	turn_for(4000);		/* long enough for FAILED */
	assert_true(is("10.1.0.99", HOP_NO_NEIGHBOR));
	run_in(t.peer, "ip addr add 10.1.0.99/24 dev p0");
	run_in(t.peer, "ip addr add fd00:1::99/64 dev p0 nodad");
	FOLLOW(2200, "answers at last", is_ok("10.1.0.99") &&
	    is_ok("fd00:1::99"));
}

static void
a_new_mac_is_followed(void **state)
{
	(void)state;
	want("10.1.0.2", "fd00:1::2", NULL);
	FOLLOW(1000, "resolved", mac_is("10.1.0.2", net_mac0) &&
	    mac_is("fd00:1::2", net_mac0));
	turn_for(1100);		/* the kernel's locktime for ARP */
	run_in(t.peer, "ip link set p0 address 02:00:00:00:00:22");
	FOLLOW(1000, "mac changed", mac_is("10.1.0.2", mac_new) &&
	    mac_is("fd00:1::2", mac_new));
	run("ip neigh replace 10.1.0.2 dev e0 lladdr 02:00:00:00:01:02");
	FOLLOW(1000, "mac set by hand", mac_is("10.1.0.2", net_mac1));
}

/* Another machine has the addresses, and does not say so. */
static void
a_silent_change_of_mac_is_found(void **state)
{
	struct addr two = net_addr("10.1.0.2"), six = net_addr("fd00:1::2");
	struct addr far = net_addr("10.9.0.7"), fixed = net_addr("10.1.0.77");

	(void)state;
	run("ip route add 10.9.0.0/24 via 10.1.0.2");
	run("ip neigh add 10.1.0.77 dev e0 lladdr 02:00:00:00:00:77");
	want("10.1.0.2", "10.1.0.77", "10.9.0.7", "fd00:1::2", NULL);
	FOLLOW(1000, "resolved", mac_is("10.1.0.2", net_mac0) &&
	    mac_is("10.9.0.7", net_mac0) && mac_is("fd00:1::2", net_mac0));
	run_in(t.peer, "sysctl -qw net.ipv4.conf.p0.arp_notify=0 "
	    "net.ipv6.conf.p0.ndisc_notify=0");
	run_in(t.peer, "ip link set p0 address 02:00:00:00:00:22");
	turn_for(1200);		/* and the kernel's locktime for ARP */
	assert_true(mac_is("10.1.0.2", net_mac0));
	assert_true(mac_is("fd00:1::2", net_mac0));
	netlink_doubt(t.nl, &two);
	FOLLOW(900, "asked again", mac_is("10.1.0.2", mac_new) &&
	    mac_is("10.9.0.7", mac_new));
	assert_true(mac_is("fd00:1::2", net_mac0));
	netlink_doubt(t.nl, &six);
	FOLLOW(900, "IPv6", mac_is("fd00:1::2", mac_new));

	/* by way of a gateway; a lost question changes nothing */
	run_in(t.peer, "ip link set p0 down");
	FOLLOW(1000, "carrier lost", is("10.9.0.7", HOP_NO_ROUTE));
	netlink_doubt(t.nl, &far);
	netlink_doubt(t.nl, &fixed);
	turn_for(300);
	assert_true(is("10.9.0.7", HOP_NO_ROUTE));
}

static bool
neigh_shows(const char *grep)
{
	char cmd[256];

	snprintf(cmd, sizeof(cmd), "ip neigh show nud all | grep -q '%s'",
	    grep);
	return system(cmd) == 0;
}

static void
a_flushed_neighbour_is_asked_for_again(void **state)
{
	double begin;

	(void)state;
	want("10.1.0.2", "fd00:1::2", NULL);
	FOLLOW(1000, "resolved", is_ok("10.1.0.2") && is_ok("fd00:1::2"));
	run("ip neigh flush dev e0");
	begin = now_ms();
	while (now_ms() - begin < 1500) {
		turn(20);
		assert_true(mac_is("10.1.0.2", net_mac0));
		assert_true(mac_is("fd00:1::2", net_mac0));
	}
	assert_true(neigh_shows("10.1.0.2 .*REACHABLE.*managed\\|"
	    "10.1.0.2 .*managed.*REACHABLE"));

	/* with nobody there, the old MAC is kept for no more than a second */
	run_in(t.peer, "ip addr del 10.1.0.2/24 dev p0");
	begin = now_ms();
	run("ip neigh del 10.1.0.2 dev e0");
	FOLLOW(1300, "flushed and silent", !mac_is("10.1.0.2", net_mac0));
	assert_true(is("10.1.0.2", HOP_NO_NEIGHBOR));
	assert_true(now_ms() - begin > 900);
	run_in(t.peer, "ip addr add 10.1.0.2/24 dev p0");
	FOLLOW(2200, "back", mac_is("10.1.0.2", net_mac0));
}

static void
links_go_down_and_come_up(void **state)
{
	(void)state;
	run("ip route add 10.9.0.0/24 via 10.1.0.2");
	want("10.1.0.2", "10.9.0.1", "10.2.0.2", NULL);
	FOLLOW(1000, "resolved", is_ok("10.1.0.2") && is_ok("10.9.0.1") &&
	    is_ok("10.2.0.2"));
	run("ip link set e0 down");
	FOLLOW(1000, "link down", is("10.1.0.2", HOP_NO_ROUTE) &&
	    is("10.9.0.1", HOP_NO_ROUTE));
	/* the kernel removed the route without a word */
	run("ip link set e0 up");
	/* the kernel may take a second before it sends on a link that is up */
	FOLLOW(2000, "link up", is_ok("10.1.0.2"));
	assert_true(is("10.9.0.1", HOP_NO_ROUTE));
	assert_string_equal(hop("10.9.0.1")->why, "no route");
	run("ip route add 10.9.0.0/24 via 10.1.0.2");
	FOLLOW(1000, "route again", is_ok("10.1.0.2") && is_ok("10.9.0.1"));
	run_in(t.peer, "ip link set p1 down");
	FOLLOW(1000, "carrier lost", is("10.2.0.2", HOP_NO_ROUTE));
	assert_string_equal(hop("10.2.0.2")->why, "the interface is down");
	run_in(t.peer, "ip link set p1 up");
	FOLLOW(2000, "carrier back", is_ok("10.2.0.2"));
	assert_true(is_ok("10.1.0.2"));
}

/* However long the link is down: what was known is, when it is up again, for as
 * long as an answer may take. So all come back at once, and none of them gets the
 * flows of the others because it was the first to answer. */
static void
neighbours_come_back_with_their_link(void **state)
{
	double begin;

	(void)state;
	run_in(t.peer, "ip addr add 10.1.0.3/24 dev p0");
	want("10.1.0.2", "10.1.0.3", NULL);
	FOLLOW(1000, "resolved", is_ok("10.1.0.2") && is_ok("10.1.0.3"));
	run_in(t.peer, "ip addr del 10.1.0.3/24 dev p0");
	run_in(t.peer, "ip link set p0 down");
	FOLLOW(1000, "carrier lost", is("10.1.0.2", HOP_NO_ROUTE));
	turn_for(2 * NETLINK_ANSWER_MS);
	begin = now_ms();
	run_in(t.peer, "ip link set p0 up");
	FOLLOW(2000, "carrier back", !is("10.1.0.2", HOP_NO_ROUTE));
	assert_true(is_ok("10.1.0.2") && is_ok("10.1.0.3"));
	assert_true(time_left("10.1.0.3") <= NETLINK_ANSWER_MS);
	/* the one that is silent has its time */
	FOLLOW(1300, "silent", !is_ok("10.1.0.3") || !is_ok("10.1.0.2"));
	assert_true(is("10.1.0.3", HOP_NO_NEIGHBOR));
	assert_true(now_ms() - begin > 900);
	turn_for(500);
	assert_true(is_ok("10.1.0.2"));
}

/* For 30 s, then twice as long, until the link changes. */
static void
an_interface_that_takes_no_frames_is_left(void **state)
{
	uint32_t e0 = if_nametoindex("e0");

	(void)state;
	want("10.1.0.2", "10.2.0.2", NULL);
	FOLLOW(1000, "resolved", is_ok("10.1.0.2") && is_ok("10.2.0.2"));
	t.calls = 0;
	netlink_port_failed(t.nl, e0, -ENXIO);
	netlink_port_failed(t.nl, e0, -ENXIO);
	netlink_port_failed(t.nl, 99999, -ENXIO);	/* there is none */
	assert_int_equal(t.calls, 1);
	assert_true(is("10.1.0.2", HOP_NO_PORT));
	assert_true(is_ok("10.2.0.2"));
	turn_for(300);
	assert_true(is("10.1.0.2", HOP_NO_PORT));
	assert_int_equal(t.nl->port[0].hold_ms, NETLINK_PORT_MS);

	t.nl->port[0].until = netlink_now();	/* the time has come */
	run("ip route add 192.0.2.0/24 via 10.2.0.2");
	FOLLOW(1000, "tried again", is_ok("10.1.0.2"));
	netlink_port_failed(t.nl, e0, -ENXIO);
	assert_true(is("10.1.0.2", HOP_NO_PORT));
	assert_int_equal(t.nl->port[0].hold_ms, 2 * NETLINK_PORT_MS);
	run("ip link set e0 mtu 1400");
	FOLLOW(1000, "the link changed", is_ok("10.1.0.2"));
}

static bool
leaves_by(const char *s, const char *dev)
{
	return is_ok(s) && hop(s)->nexthop.ifindex == if_nametoindex(dev);
}

static void
routes_change(void **state)
{
	(void)state;
	want("10.9.0.1", "fd00:9::1", "10.1.0.2", NULL);
	assert_true(is("10.9.0.1", HOP_NO_ROUTE));
	run("ip route add default via 10.1.0.2");
	FOLLOW(1000, "default route", leaves_by("10.9.0.1", "e0"));
	run("ip route add 10.9.0.0/24 via 10.2.0.2");
	FOLLOW(1000, "more specific", leaves_by("10.9.0.1", "e1"));
	run("ip route del 10.9.0.0/24");
	FOLLOW(1000, "and gone", leaves_by("10.9.0.1", "e0"));
	run("ip -6 route add fd00:9::/64 via fd00:1::2");
	FOLLOW(1000, "IPv6", leaves_by("fd00:9::1", "e0"));
	run("ip -6 route replace fd00:9::/64 via fd00:2::2");
	FOLLOW(1000, "IPv6 replaced", leaves_by("fd00:9::1", "e1"));
	run("ip route add table 77 default via 10.2.0.2");
	run("ip rule add to 10.9.0.0/16 table 77");
	FOLLOW(1000, "a rule", leaves_by("10.9.0.1", "e1"));
	run("ip rule del to 10.9.0.0/16 table 77");
	FOLLOW(1000, "no rule", leaves_by("10.9.0.1", "e0"));
	run("ip nexthop add id 5 via 10.1.0.2 dev e0");
	run("ip route replace 10.9.0.0/24 nhid 5");
	FOLLOW(1000, "nexthop object", leaves_by("10.9.0.1", "e0"));
	run("ip nexthop replace id 5 via 10.2.0.2 dev e1");
	FOLLOW(1000, "nexthop replaced", leaves_by("10.9.0.1", "e1"));
	run("ip nexthop del id 5");
	run("ip route del default");
	FOLLOW(1000, "no route", is("10.9.0.1", HOP_NO_ROUTE));
	run("ip addr del 10.1.0.1/24 dev e0");
	FOLLOW(1000, "own address gone", is("10.1.0.2", HOP_NO_ROUTE));
}

static void
multipath_is_stable(void **state)
{
	static const char *const s[] = { "10.9.0.1", "10.9.0.2", "10.9.0.3",
	    "10.9.0.4", "10.9.0.5", "10.9.0.6", "10.9.0.7", "10.9.0.8" };
	uint32_t ifindex[8];
	size_t i, e0 = 0;

	(void)state;
	run("ip route add 10.9.0.0/24 nexthop via 10.1.0.2 "
	    "nexthop via 10.2.0.2");
	want(s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7], NULL);
	FOLLOW(1000, "multipath", is_ok(s[0]) && is_ok(s[1]) && is_ok(s[2]) &&
	    is_ok(s[3]) && is_ok(s[4]) && is_ok(s[5]) && is_ok(s[6]) &&
	    is_ok(s[7]));
	for (i = 0; i < 8; i++) {
		ifindex[i] = hop(s[i])->nexthop.ifindex;
		e0 += ifindex[i] == if_nametoindex("e0");
	}
	print_message("# %zu of 8 leave by the first\n", e0);
	run("ip route add 192.0.2.0/24 via 10.1.0.2");
	run("ip link set e0 mtu 1400; ip link set e0 mtu 1500");
	turn_for(300);
	for (i = 0; i < 8; i++)
		assert_int_equal(ifindex[i], hop(s[i])->nexthop.ifindex);
}

/* This kernel may have no VLAN devices, so the message is made here. */
static struct nl_link
vlan_link(uint32_t ifindex, uint32_t lower, uint16_t vid, uint16_t proto)
{
	uint8_t buf[512] __attribute__((aligned(16)));
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct nlattr *info, *data;
	struct ifinfomsg *ifi;

	nlh->nlmsg_type = RTM_NEWLINK;
	ifi = mnl_nlmsg_put_extra_header(nlh, sizeof(*ifi));
	ifi->ifi_index = (int)ifindex;
	ifi->ifi_type = ARPHRD_ETHER;
	ifi->ifi_flags = IFF_UP | (1 << 16);	/* IFF_LOWER_UP */
	mnl_attr_put_strz(nlh, IFLA_IFNAME, "e0v");
	mnl_attr_put_u32(nlh, IFLA_MTU, 1450);
	mnl_attr_put_u32(nlh, IFLA_LINK, lower);
	info = mnl_attr_nest_start(nlh, IFLA_LINKINFO);
	mnl_attr_put_strz(nlh, IFLA_INFO_KIND, "vlan");
	data = mnl_attr_nest_start(nlh, IFLA_INFO_DATA);
	mnl_attr_put_u16(nlh, IFLA_VLAN_ID, vid);
	mnl_attr_put_u16(nlh, IFLA_VLAN_PROTOCOL, htons(proto));
	mnl_attr_nest_end(nlh, data);
	mnl_attr_nest_end(nlh, info);
	link_event(t.nl, nlh);
	return *link_find(t.nl, ifindex);
}

static void
vlan_messages_name_their_lower_device(void **state)
{
	uint32_t e0 = if_nametoindex("e0");
	const struct nl_link *egress;
	const char *why = NULL;
	struct nl_link l;

	(void)state;
	l = vlan_link(1000, e0, 10, ETH_P_8021Q);
	assert_true(l.vlan);
	assert_int_equal(l.vid, 10);
	assert_int_equal(l.lower, e0);
	egress = link_egress(t.nl, &l, &why);
	assert_non_null(egress);
	assert_int_equal(egress->ifindex, e0);
	l = vlan_link(1001, 1000, 11, ETH_P_8021Q);
	assert_null(link_egress(t.nl, &l, &why));
	assert_string_equal(why, "only one 802.1Q tag can be sent");
	l = vlan_link(1002, e0, 12, ETH_P_8021AD);
	assert_null(link_egress(t.nl, &l, &why));
	l = vlan_link(1003, 999, 13, ETH_P_8021Q);
	assert_null(link_egress(t.nl, &l, &why));
	assert_string_equal(why, "the VLAN's lower device is not here");
}

/* A port that leaves its bridge is a DELLINK message too. */
static void
a_bridge_is_left_and_the_link_lives_on(void **state)
{
	uint8_t buf[512] __attribute__((aligned(16)));
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct ifinfomsg *ifi;
	struct netlink_if nif;

	(void)state;
	nlh->nlmsg_type = RTM_DELLINK;
	ifi = mnl_nlmsg_put_extra_header(nlh, sizeof(*ifi));
	ifi->ifi_family = AF_BRIDGE;
	ifi->ifi_index = (int)if_nametoindex("e1");
	link_event(t.nl, nlh);
	netlink_if(t.nl, "e1", &nif);
	assert_int_equal(nif.ifindex, if_nametoindex("e1"));
}

static void
managed_entries_go_when_nobody_wants_them(void **state)
{
	(void)state;
	run("ip neigh add 10.1.0.50 dev e0 lladdr 02:00:00:00:00:50 "
	    "nud permanent");
	run("ip neigh add 10.1.0.51 dev e0 lladdr 02:00:00:00:00:51 "
	    "nud stale");
	want("10.1.0.2", "10.1.0.50", "10.1.0.51", NULL);
	assert_true(is_ok("10.1.0.50"));	/* used at once */
	assert_true(is_ok("10.1.0.51"));
	FOLLOW(1000, "resolved", is_ok("10.1.0.2"));
	assert_true(neigh_shows("10.1.0.2 .*managed"));
	assert_true(neigh_shows("10.1.0.51 .*managed"));
	assert_true(neigh_shows("10.1.0.50 .*PERMANENT"));
	want("10.1.0.51", NULL);
	assert_false(neigh_shows("10.1.0.2 "));
	assert_true(neigh_shows("10.1.0.50 .*PERMANENT"));
	want(NULL);
	assert_false(neigh_shows("managed"));
	assert_true(neigh_shows("10.1.0.51"));	/* not ours to delete */

	/* those of an earlier life are known by their protocol */
	want("10.1.0.2", "10.2.0.2", NULL);
	FOLLOW(1000, "resolved", is_ok("10.1.0.2") && is_ok("10.2.0.2"));
	net_reopen();
	want("10.1.0.2", NULL);
	assert_true(is_ok("10.1.0.2"));		/* at once: it was there */
	assert_false(neigh_shows("10.2.0.2"));
	want(NULL);
	assert_false(neigh_shows("10.1.0.2 "));
}

/* Neither made nor marked by this one, but by one whose work it goes on with. */
static void
entries_that_an_earlier_xlbd_marked_are_let_go_of(void **state)
{
	(void)state;
	run("ip neigh add 10.1.0.51 dev e0 lladdr 02:00:00:00:00:51 "
	    "nud stale");
	run("ip neigh add 10.1.0.52 dev e0 lladdr 02:00:00:00:00:52 "
	    "nud stale");
	run("ip neigh add 10.1.0.53 dev e0 lladdr 02:00:00:00:00:53 "
	    "nud stale protocol zebra");
	want("10.1.0.51", "10.1.0.52", "10.1.0.53", NULL);
	assert_true(neigh_shows("10.1.0.51 .*managed"));
	assert_true(neigh_shows("10.1.0.52 .*managed"));
	assert_true(neigh_shows("10.1.0.53 .*proto zebra"));
	net_reopen();
	want("10.1.0.51", "10.1.0.53", NULL);
	assert_true(neigh_shows("10.1.0.51 .*managed"));
	assert_false(neigh_shows("10.1.0.52 .*managed"));
	want(NULL);
	assert_false(neigh_shows("10.1.0.51 .*managed"));
	assert_true(neigh_shows("10.1.0.51 "));
	assert_true(neigh_shows("10.1.0.52 "));
	assert_true(neigh_shows("10.1.0.53 .*proto zebra"));
}

static void
routes_many(const char *verb, int n)
{
	FILE *f = popen("ip -batch -", "w");
	int i;

	assert_non_null(f);
	for (i = 0; i < n; i++)
		fprintf(f, "route %s 172.%d.%d.%d/32 via 10.1.0.2\n", verb,
		    16 + (i >> 16), i >> 8 & 255, i & 255);
	assert_int_equal(pclose(f), 0);
}

static void
a_burst_is_one_change_and_lost_events_are_made_up_for(void **state)
{
	struct netlink_if nif;

	(void)state;
	want("10.1.0.2", "172.16.0.7", "172.17.0.7", NULL);
	FOLLOW(1000, "resolved", is_ok("10.1.0.2"));
	turn_for(100);
	t.calls = 0;
	routes_many("add", 500);
	FOLLOW(1000, "500 routes", is_ok("172.16.0.7"));
	turn_for(200);
	print_message("# %u calls\n", t.calls);
	/* and what the kernel tells late of the links */
	assert_in_range(t.calls, 1, 5);

	/* more than the socket holds; what counts is at the end, and lost */
	routes_many("replace", 65536 + 100);
	run("ip link set e1 down");
	run("ip addr add 203.0.113.1/32 dev lo");
	FOLLOW(1000, "66 thousand routes", is_ok("172.17.0.7"));
	netlink_if(t.nl, "e1", &nif);
	assert_false(nif.up);
	assert_true(local_has("203.0.113.1"));
}

static void
thousands_are_asked_for_at_once(void **state)
{
	size_t n = 8000, i, ok = 0;
	struct addr *list = calloc(n, sizeof(*list));
	double begin;

	(void)state;
	for (i = 0; i < n; i++)
		list[i] = addr_from4(htonl(0x0a090000 + (uint32_t)i));
	run("ip route add default via 10.1.0.2");
	begin = now_ms();
	assert_int_equal(netlink_want(t.nl, list, n), 0);
	print_message("# %zu wanted: %.1f ms\n", n, now_ms() - begin);
	FOLLOW(1000, "all resolved", (turn(1),
	    netlink_hops(t.nl)->row[n - 1].status == HOP_OK));
	for (i = 0; i < n; i++)
		ok += netlink_hops(t.nl)->row[i].status == HOP_OK;
	assert_int_equal(ok, n);
	t.calls = 0;
	run("ip route replace default via 10.2.0.2");
	FOLLOW(1000, "default route moved", netlink_hops(t.nl)->row[0]
	    .nexthop.ifindex == if_nametoindex("e1") &&
	    netlink_hops(t.nl)->row[0].status == HOP_OK);
	assert_in_range(t.calls, 1, 5);
	/* an event about one route asks for no more than that one */
	run("ip route add 10.9.0.9/32 via 10.1.0.2");
	FOLLOW(1000, "one of them moved", netlink_hops(t.nl)->row[9]
	    .nexthop.ifindex == if_nametoindex("e0"));
	free(list);
}

int
main(void)
{
	const struct CMUnitTest test[] = {
		NET_CASE(own_addresses_and_links_are_known),
		NET_CASE(next_hops_are_found_on_link_and_through_gateways),
		NET_CASE(what_cannot_be_sent_to_says_why),
		NET_CASE(silence_takes_a_second_and_an_answer_ends_it),
		NET_CASE(a_new_mac_is_followed),
		NET_CASE(a_silent_change_of_mac_is_found),
		NET_CASE(a_flushed_neighbour_is_asked_for_again),
		NET_CASE(links_go_down_and_come_up),
		NET_CASE(neighbours_come_back_with_their_link),
		NET_CASE(an_interface_that_takes_no_frames_is_left),
		NET_CASE(routes_change),
		NET_CASE(multipath_is_stable),
		NET_CASE(vlan_messages_name_their_lower_device),
		NET_CASE(a_bridge_is_left_and_the_link_lives_on),
		NET_CASE(managed_entries_go_when_nobody_wants_them),
		NET_CASE(entries_that_an_earlier_xlbd_marked_are_let_go_of),
		NET_CASE(a_burst_is_one_change_and_lost_events_are_made_up_for),
		NET_CASE(thousands_are_asked_for_at_once),
	};

	kern_enter();
	log_init("test_netlink", true);
	return cmocka_run_group_tests_name("netlink", test, NULL, NULL);
}
