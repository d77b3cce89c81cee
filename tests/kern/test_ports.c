/* SPDX-License-Identifier: GPL-2.0-or-later */
/* io/ports against the real kernel: frames that a veth does not take since its
 * peer runs no XDP program, and none once it does. */
#include "unit/unit.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "io/ports.h"
#include "ports_abi.h"

#define FRAMES 256

static struct {
	uint32_t ifindex;
	int err;
	unsigned times;
} told;

static void
failed(uint32_t ifindex, int err, void *arg)
{
	(void)arg;
	told.ifindex = ifindex;
	told.err = err;
	told.times++;
}

static int
program(const struct bpf_insn *insn, size_t n)
{
	int fd = bpf_prog_load(BPF_PROG_TYPE_XDP, "t", "GPL", insn, n, NULL);

	assert_true(fd >= 0);
	return fd;
}

/* Real frames, sent on by the redirect program `fd`; ns for each. */
static double
frames_send(int fd, unsigned n)
{
	uint8_t frame[64] = { 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xb5 };
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = frame,
	    .data_size_in = sizeof(frame), .repeat = (int)n,
	    .flags = BPF_F_TEST_XDP_LIVE_FRAMES);
	struct timespec a, b;

	clock_gettime(CLOCK_MONOTONIC, &a);
	assert_int_equal(bpf_prog_test_run_opts(fd, &opts), 0);
	clock_gettime(CLOCK_MONOTONIC, &b);
	return ((double)(b.tv_sec - a.tv_sec) * 1e9 +
	    (double)(b.tv_nsec - a.tv_nsec)) / n;
}

static void
turns(sd_event *ev, unsigned ms)
{
	while (sd_event_run(ev, ms * 1000) > 0)
		;
}

static void
frames_that_are_not_taken_are_told(void **state)
{
	const struct bpf_insn pass[] = {
		{ .code = 0xb7, .imm = XDP_DROP }, { .code = 0x95 } };
	uint32_t v0, key;
	struct ports *p;
	sd_event *ev;
	double without, with, took;
	int map, fd;

	(void)state;
	assert_int_equal(system("ip link add v0 type veth peer name v1 && "
	    "ip link set v0 up && ip link set v1 up"), 0);
	v0 = key = if_nametoindex("v0");
	map = bpf_map_create(BPF_MAP_TYPE_DEVMAP_HASH, "t", 4, 4, 8, NULL);
	assert_true(map >= 0);
	assert_int_equal(bpf_map_update_elem(map, &key, &v0, 0), 0);
	const struct bpf_insn redirect[] = {
		{ .code = 0x18, .dst_reg = 1, .src_reg = BPF_PSEUDO_MAP_FD,
		    .imm = map }, { 0 },
		{ .code = 0xb7, .dst_reg = 2, .imm = (int)v0 },
		{ .code = 0xb7, .dst_reg = 3 },
		{ .code = 0x85, .imm = BPF_FUNC_redirect_map },
		{ .code = 0x95 } };
	fd = program(redirect, 6);
	assert_true(sd_event_new(&ev) >= 0);
	assert_int_equal(ports_open(ev, map, failed, NULL, &p), 0);

	took = frames_send(fd, FRAMES) * FRAMES;
	turns(ev, 200);
	assert_int_equal(told.ifindex, v0);
	/* by the device's features (Linux 6.3), or by its driver */
	assert_true(told.err == -EOPNOTSUPP || told.err == -ENXIO);
	/* though there were several; another time only if they took so long */
	assert_in_range(told.times, 1, 1 + (unsigned)(took / PORTS_EVERY_NS));

	/* the peer takes them now */
	assert_int_equal(bpf_xdp_attach((int)if_nametoindex("v1"),
	    program(pass, 2), XDP_FLAGS_DRV_MODE, NULL), 0);
	usleep(150000);
	told.times = 0;
	frames_send(fd, FRAMES);
	turns(ev, 100);
	assert_int_equal(told.times, 0);

	with = frames_send(fd, 400000);
	ports_close(p);
	without = frames_send(fd, 400000);
	print_message("# a frame that leaves: %.0f ns watched, %.0f ns not\n",
	    with, without);
	sd_event_unref(ev);
	close(fd);
	close(map);
}

int
main(void)
{
	const struct CMUnitTest test[] = {
		cmocka_unit_test(frames_that_are_not_taken_are_told),
	};

	if (geteuid() != 0 || unshare(CLONE_NEWNET) < 0) {
		printf("1..0 # SKIP needs root for a network namespace\n");
		return 0;
	}
	return cmocka_run_group_tests(test, NULL, NULL);
}
