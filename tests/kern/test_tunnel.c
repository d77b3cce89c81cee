/* SPDX-License-Identifier: GPL-2.0-or-later */
/* io/tunnel against the real kernel: what it makes, what it puts back, and what
 * a marked packet becomes. */
#include "kern.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "core/addr.h"
#include "io/log.h"
#include "io/tunnel.h"
#include "probe_abi.h"
#include "unit/unit.h"
#include "xlb_abi.h"

#define RCVMARK 75	/* SO_RCVMARK, Linux 5.19 */
#define VIP "203.0.113.10"

static struct xlb_tables *tables;
static int tables_fd;
static uint32_t left_mark;	/* of the frame taken last */

static bool
has(const char *command, const char *what)
{
	char text[4096];
	FILE *f = popen(command, "r");
	size_t n;

	assert_non_null(f);
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = '\0';
	pclose(f);
	return strstr(text, what) != NULL;
}

static void
take_program(void)
{
	LIBBPF_OPTS(bpf_tc_hook, hook,
	    .ifindex = (int)if_nametoindex(TUNNEL_DEVICE),
	    .attach_point = BPF_TC_INGRESS | BPF_TC_EGRESS);

	assert_int_equal(bpf_tc_hook_destroy(&hook), 0);
}

static void
take_down(void)
{
	run("ip link set " TUNNEL_DEVICE " down");
}

static void
take_device(void)
{
	run("ip link del " TUNNEL_DEVICE);
}

static void
take_rule4(void)
{
	run("ip rule del pref 1");
}

static void
take_rule6(void)
{
	run("ip -6 rule del pref 1");
}

static void
take_routes(void)
{
	run("ip route flush table 30828 && ip -6 route flush table 30828");
}

/* One frame, and its mark. */
static ssize_t
frame_take(int peer, uint8_t *frame, size_t size)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(sizeof(left_mark))];
	} control;
	struct iovec iov = { frame, size };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1,
	    .msg_control = &control, .msg_controllen = sizeof(control) };
	ssize_t n = recvmsg(peer, &msg, 0);
	struct cmsghdr *c = n < 0 ? NULL : CMSG_FIRSTHDR(&msg);

	left_mark = ~0U;
	if (c != NULL && c->cmsg_type == SO_MARK)
		memcpy(&left_mark, CMSG_DATA(c), sizeof(left_mark));
	return n;
}

static void
patience_set(int peer, long ms)
{
	struct timeval limit = { ms / 1000, ms % 1000 * 1000 };

	assert_int_equal(setsockopt(peer, SOL_SOCKET, SO_RCVTIMEO, &limit,
	    sizeof(limit)), 0);
}

/* Sends `len` bytes to the VIP with the backend's mark, in one piece, and takes
 * what leaves. */
static ssize_t
sent_of(int peer, uint32_t mark, size_t len, uint8_t *frame, size_t size)
{
	static const uint8_t text[2048] = "hello";
	struct sockaddr_in to = { .sin_family = AF_INET,
		.sin_port = htons(53) };
	int fd = socket(AF_INET, SOCK_DGRAM, 0), whole = IP_PMTUDISC_PROBE;
	ssize_t n;

	assert_int_equal(inet_pton(AF_INET, VIP, &to.sin_addr), 1);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_MARK, &mark,
	    sizeof(mark)), 0);
	assert_int_equal(setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &whole,
	    sizeof(whole)), 0);
	sendto(fd, text, len, 0, (struct sockaddr *)&to, sizeof(to));
	close(fd);
	do
		n = frame_take(peer, frame, size);
	while (n > 14 && frame[0] != 2);	/* IPv6's own chatter */
	return n;
}

static ssize_t
sent(int peer, uint32_t mark, uint8_t *frame, size_t size)
{
	return sent_of(peer, mark, 5, frame, size);
}

static int
peer_open(void)
{
	struct sockaddr_ll on = { .sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_ALL),
		.sll_ifindex = (int)if_nametoindex("p0") };
	int fd = socket(AF_PACKET, SOCK_RAW, 0), one = 1;

	assert_int_equal(setsockopt(fd, SOL_SOCKET, RCVMARK, &one,
	    sizeof(one)), 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&on, sizeof(on)), 0);
	patience_set(fd, 20000);
	return fd;
}

static void
backend_set(uint32_t number, const char *addr, const char *src)
{
	struct xlb_nexthop *h = &tables->nexthop[number];
	struct addr a;

	assert_int_equal(addr_parse(addr, &a), 0);
	memcpy(tables->backend[number].addr, a.b, 16);
	assert_int_equal(addr_parse(src, &a), 0);
	memcpy(h->src, a.b, 16);
	memcpy(&h->mac_vlan, "\2\0\0\0\0\1\0", 8);
	memcpy(h->src_mac, "\2\0\0\0\0\2", 6);
	h->mtu = 1500;
	h->ifindex = if_nametoindex("e0");
	tables->backend[number].nexthop = number;
}

static void
packets_go_where_the_mark_says(void **state)
{
	struct tunnel *t = tunnel_new(tables_fd);
	int peer = peer_open();
	uint8_t f[256];

	(void)state;
	tables->settings.gue_port = 6080;
	memcpy(&tables->settings.source4, "\x0a\xff\0\0", 4);
	memcpy(&tables->settings.source4_mask, "\0\0\xff\xff", 4);
	memcpy(tables->settings.source6, "\xfd\xff", 2);
	backend_set(1, "10.0.0.11", "10.0.0.1");
	backend_set(2, "fd00::12", "fd00::1");
	assert_int_equal(tunnel_mend(t), 0);
	assert_true(tunnel_ready(t));

	/* 4in4: Ethernet 14, IPv4 20, IPv4 20, UDP 8 */
	assert_int_equal(sent(peer, PROBE_MARK_OF(1, XLB_FORWARD_IPIP), f,
	    sizeof(f)), 14 + 20 + 20 + 8 + 5);
	assert_memory_equal(f, "\2\0\0\0\0\1\2\0\0\0\0\2\x08\0", 14);
	assert_int_equal(f[14 + 9], IPPROTO_IPIP);
	assert_memory_equal(f + 14 + 12, "\x0a\xff", 2);
	assert_memory_equal(f + 14 + 16, "\x0a\0\0\x0b", 4);
	assert_int_equal(left_mark, 0);
	assert_memory_equal(f + 14 + 20 + 16, "\xcb\0\x71\x0a", 4);
	assert_memory_equal(f + 14 + 20 + 20 + 8, "hello", 5);

	/* 4in6 in GUE: Ethernet 14, IPv6 40, UDP 8, IPv4 20, UDP 8 */
	assert_int_equal(sent(peer, PROBE_MARK_OF(2, XLB_FORWARD_GUE), f,
	    sizeof(f)), 14 + 40 + 8 + 20 + 8 + 5);
	assert_memory_equal(f + 12, "\x86\xdd", 2);
	assert_int_equal(f[14 + 6], IPPROTO_UDP);
	/* GUE has its ports to tell flows apart: the node's own address */
	assert_memory_equal(f + 14 + 8, tables->nexthop[2].src, 16);
	assert_memory_equal(f + 14 + 40 + 2, "\x17\xc0", 2);
	assert_memory_equal(f + 14 + 40 + 6, (f[60] | f[61]) ? f + 60 : f, 2);
	assert_memory_equal(f + 14 + 40 + 8 + 20 + 8, "hello", 5);

	/* of no backend, and not a probe's */
	patience_set(peer, 300);
	assert_int_equal(sent(peer, PROBE_MARK_OF(3, XLB_FORWARD_IPIP), f,
	    sizeof(f)), -1);
	take_program();
	assert_int_equal(sent(peer, PROBE_MARK_OF(1, XLB_FORWARD_IPIP), f,
	    sizeof(f)), -1);
	take_device();
	assert_int_equal(sent(peer, PROBE_MARK_OF(1, XLB_FORWARD_IPIP), f,
	    sizeof(f)), -1);
	assert_true(tunnel_mend(t) > 0);
	patience_set(peer, 20000);
	assert_int_equal(sent(peer, PROBE_MARK_OF(1, XLB_FORWARD_IPIP), f,
	    sizeof(f)), 14 + 20 + 20 + 8 + 5);
	tunnel_remove(t);
	tunnel_free(t);
	close(peer);
}

/* The device's MTU counts, and not what is known of the path. */
static void
probes_are_as_large_as_the_device_takes(void **state)
{
	static const struct {
		const char *backend, *src;
		uint32_t form;
		size_t around;	/* outer and inner headers */
	} row[] = {
		{ "10.0.0.11", "10.0.0.1", XLB_FORWARD_IPIP, 20 + 28 },
		{ "10.0.0.11", "10.0.0.1", XLB_FORWARD_GUE, 28 + 28 },
		{ "fd00::12", "fd00::1", XLB_FORWARD_IPIP, 40 + 28 },
		{ "fd00::12", "fd00::1", XLB_FORWARD_GUE, 48 + 28 },
	};
	struct tunnel *t = tunnel_new(tables_fd);
	int peer = peer_open();
	uint8_t f[2048];
	uint32_t mark;
	size_t i;

	(void)state;
	assert_int_equal(tunnel_mend(t), 0);
	for (i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		backend_set(1, row[i].backend, row[i].src);
		tables->nexthop[1].mtu = 1280;
		mark = PROBE_MARK_OF(1, row[i].form);
		assert_int_equal(sent_of(peer, mark, 1500 - row[i].around, f,
		    sizeof(f)), 14 + 1500);
		patience_set(peer, 300);
		assert_int_equal(sent_of(peer, mark, 1501 - row[i].around, f,
		    sizeof(f)), -1);
		patience_set(peer, 20000);
	}
	tunnel_remove(t);
	tunnel_free(t);
	close(peer);
}

static void
what_is_taken_away_is_back(void **state)
{
	static const struct {
		const char *what;
		void (*take)(void);
	} row[] = {
		{ "program", take_program }, { "device", take_device },
		{ "state", take_down }, { "rule, IPv4", take_rule4 },
		{ "rule, IPv6", take_rule6 }, { "routes", take_routes },
	};
	struct tunnel *t = tunnel_new(tables_fd);
	size_t i;

	(void)state;
	assert_int_equal(tunnel_mend(t), 0);
	assert_int_equal(tunnel_mend(t), 0);
	for (i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		row[i].take();
		if (tunnel_mend(t) <= 0)
			fail_msg("%s: not missed", row[i].what);
		if (tunnel_mend(t) != 0)
			fail_msg("%s: missed again", row[i].what);
	}
	assert_true(has("ip rule", "30828") && has("ip -6 rule", "30828"));
	assert_true(has("ip route show table 30828", "unreachable"));

	/* a daemon that is killed leaves what lets nothing through */
	tunnel_free(t);
	assert_int_equal(if_nametoindex(TUNNEL_DEVICE), 0);
	assert_true(has("ip route show table 30828", "unreachable"));
	t = tunnel_new(tables_fd);
	assert_int_equal(tunnel_mend(t), 0);
	tunnel_remove(t);
	assert_false(has("ip rule", "30828") || has("ip -6 rule", "30828"));
	assert_false(has("ip route show table all", "30828"));
	assert_false(has("ip -6 route show table all", "30828"));
	assert_int_equal(if_nametoindex(TUNNEL_DEVICE), 0);
	tunnel_free(t);
}

int
main(void)
{
	const struct CMUnitTest test[] = {
		cmocka_unit_test(packets_go_where_the_mark_says),
		cmocka_unit_test(probes_are_as_large_as_the_device_takes),
		cmocka_unit_test(what_is_taken_away_is_back),
	};

	kern_enter();
	log_init("test_tunnel", true);
	run("ip link add e0 type veth peer name p0");
	run("ip link set e0 up && ip link set p0 up");
	run("ip addr add 10.0.0.1/24 dev e0");
	run("ip route add default via 10.0.0.9 dev e0");
	tables_fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "tables", 4,
	    sizeof(*tables), 1, &(struct bpf_map_create_opts){
	    .sz = sizeof(struct bpf_map_create_opts),
	    .map_flags = BPF_F_MMAPABLE });
	if (tables_fd < 0) {
		perror("tables");
		return 1;
	}
	tables = mmap(NULL, sizeof(*tables), PROT_READ | PROT_WRITE,
	    MAP_SHARED, tables_fd, 0);
	if (tables == MAP_FAILED) {
		perror("mmap");
		return 1;
	}
	return cmocka_run_group_tests_name("tunnel", test, NULL, NULL);
}
