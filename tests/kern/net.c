/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A host, its peer, and io/netlink between. */
#include "net.h"

struct net t;

const uint8_t net_mac0[6] = { 2, 0, 0, 0, 0, 2 };
const uint8_t net_mac1[6] = { 2, 0, 0, 0, 1, 2 };
const uint8_t net_own0[6] = { 2, 0, 0, 0, 0, 1 };

static void
changed(void *arg)
{
	(void)arg;
	t.calls++;
}

struct addr
net_addr(const char *s)
{
	struct addr a;

	assert_int_equal(addr_parse(s, &a), 0);
	return a;
}

int
net_addr_cmp(const void *a, const void *b)
{
	return addr_cmp(a, b);
}

void
want(const char *s, ...)
{
	struct addr list[16];
	size_t n = 0;
	va_list ap;

	va_start(ap, s);
	for (; s != NULL; s = va_arg(ap, const char *))
		list[n++] = net_addr(s);
	va_end(ap);
	qsort(list, n, sizeof(list[0]), net_addr_cmp);
	assert_int_equal(netlink_want(t.nl, list, n), 0);
}

const struct hop *
hop(const char *s)
{
	const struct hop_table *h = netlink_hops(t.nl);
	struct addr a = net_addr(s);
	size_t i;

	for (i = 0; i < h->n; i++)
		if (addr_cmp(&h->row[i].addr, &a) == 0)
			return &h->row[i];
	fail_msg("%s is not in the table", s);
	return NULL;
}

void
turn(unsigned ms)
{
	assert_true(sd_event_run(t.ev, (uint64_t)ms * 1000) >= 0);
}

void
turn_for(double ms)
{
	double end = now_ms() + ms;

	while (now_ms() < end)
		turn(20);
}

bool
is_ok(const char *s)
{
	return hop(s)->status == HOP_OK;
}

bool
is(const char *s, enum hop_status status)
{
	return hop(s)->status == status;
}

bool
mac_is(const char *s, const uint8_t mac[6])
{
	return is_ok(s) && memcmp(hop(s)->nexthop.mac, mac, 6) == 0;
}

double
time_left(const char *s)
{
	struct addr a = net_addr(s);
	size_t i;

	for (i = 0; i < t.nl->nneigh; i++)
		if (addr_cmp(&t.nl->neigh[i].addr, &a) == 0 &&
		    t.nl->neigh[i].deadline.ns != 0)
			return (double)(t.nl->neigh[i].deadline.ns -
			    netlink_now().ns) / 1e6;
	return 0;
}

static void
links_make(void)
{
	int i;

	for (i = 0; i < 2; i++) {
		run("ip link add e%d address 02:00:00:00:0%d:01 type veth peer "
		    "name p%d address 02:00:00:00:0%d:02 netns %d", i, i, i, i,
		    (int)t.peer);
		run("ip addr add 10.%d.0.1/24 dev e%d", i + 1, i);
		run("ip addr add fd00:%d::1/64 dev e%d nodad", i + 1, i);
		run_in(t.peer, "ip addr add 10.%d.0.2/24 dev p%d", i + 1, i);
		run_in(t.peer, "ip addr add fd00:%d::2/64 dev p%d nodad", i + 1,
		    i);
		run_in(t.peer, "sysctl -qw net.ipv4.conf.p%d.arp_notify=1 "
		    "net.ipv6.conf.p%d.ndisc_notify=1 "
		    "net.ipv6.conf.p%d.accept_dad=0", i, i, i);
		/* no question is sent while the own address is tentative */
		run("sysctl -qw net.ipv6.conf.e%d.accept_dad=0", i);
		run("ip link set e%d up", i);
		run_in(t.peer, "ip link set p%d up", i);
	}
}

/* And no route is asked for again but for an event. */
static void
netlink_begin(void)
{
	assert_int_equal(netlink_open(t.ev, changed, NULL, &t.nl), 0);
	t.nl->refresh = mono_add_ms(netlink_now(), INT64_C(86400000));
}

int
net_setup(void **state)
{
	(void)state;
	memset(&t, 0, sizeof(t));
	t.peer = kern_peer();
	links_make();
	assert_true(sd_event_new(&t.ev) >= 0);
	netlink_begin();
	return 0;
}

int
net_teardown(void **state)
{
	(void)state;
	netlink_close(t.nl);
	sd_event_unref(t.ev);
	kern_peer_end(t.peer);
	run_try("ip link del e0 2>/dev/null; ip link del e1 2>/dev/null; "
	    "ip route flush table all 2>/dev/null; :");
	run("ip link set lo down; ip link set lo up");
	return 0;
}


void
net_reopen(void)
{
	netlink_close(t.nl);
	netlink_begin();
}
