/* SPDX-License-Identifier: GPL-2.0-or-later */
/* io/netlink with VLAN devices, where the kernel has them. */
#include "net.h"

#include "io/log.h"

static void
vlans_are_followed(void **state)
{
	(void)state;
	run("ip link add link e0 name e0v type vlan id 10");
	run("ip addr add 10.10.0.1/24 dev e0v && ip link set e0v mtu 1450 up");
	run_in(t.peer, "ip link add link p0 name p0v type vlan id 10");
	run_in(t.peer, "ip addr add 10.10.0.2/24 dev p0v");
	run_in(t.peer, "ip link set p0v up");
	want("10.10.0.2", NULL);
	FOLLOW(1000, "VLAN", is_ok("10.10.0.2"));
	assert_int_equal(hop("10.10.0.2")->nexthop.vlan, 10);
	assert_int_equal(hop("10.10.0.2")->nexthop.ifindex,
	    if_nametoindex("e0"));
	assert_int_equal(hop("10.10.0.2")->nexthop.mtu, 1450);
	assert_true(mac_is("10.10.0.2", net_mac0));
	run("ip link set e0 mtu 1300");
	FOLLOW(1000, "lower mtu", hop("10.10.0.2")->nexthop.mtu == 1300);
	run("ip link set e0 down");
	FOLLOW(1000, "lower down", is("10.10.0.2", HOP_NO_ROUTE));
}

int
main(void)
{
	const struct CMUnitTest test[] = {
		NET_CASE(vlans_are_followed),
	};

	kern_enter();
	log_init("test_vlan", true);
	if (run_try("ip link add v0 type veth peer v1 && "
	    "ip link add link v0 name v0v type vlan id 10") != 0) {
		printf("1..0 # SKIP no VLAN devices in this kernel\n");
		return 0;
	}
	run("ip link del v0");
	return cmocka_run_group_tests_name("vlan", test, NULL, NULL);
}
