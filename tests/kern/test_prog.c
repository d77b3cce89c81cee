/* SPDX-License-Identifier: GPL-2.0-or-later */
/* io/prog against the real kernel: pins, adoption, replacement, attaching. */
#include "unit/unit.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/capability.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/arena.h"
#include "io/log.h"
#include "io/ports.h"
#include "io/prog_int.h"
#include "kern.h"

static pid_t peer;

static struct prog_config
config(void)
{
	return (struct prog_config){ .bpf_dir = KERN_DIR, .ring_size = 251,
	    .flow_entries = 2048, .seed = 7,
	    .hash_key = "0123456789abcde" };
}

static struct prog *
open_with(const struct prog_config *c)
{
	struct prog *p = NULL;
	int rc = prog_open(c, &p);

	if (rc != 0)
		fail_msg("prog_open: %s: %s", strerror(-rc), kern_log());
	return p;
}

static struct prog *
open_again(struct prog *p)
{
	struct prog_config c = config();

	prog_close(p);
	return open_with(&c);
}

static int
attach(struct prog *p, const char *name, enum xdp_mode mode,
    struct prog_link *row)
{
	struct conf_interface want = { .name = name, .xdp = mode };

	return prog_attach(p, &want, 1, row);
}

/* The program on an interface, 0: none. */
static uint32_t
xdp_id(const char *name, bool generic)
{
	LIBBPF_OPTS(bpf_xdp_query_opts, q);

	assert_int_equal(bpf_xdp_query((int)if_nametoindex(name), 0, &q), 0);
	return generic ? q.skb_prog_id : q.drv_prog_id;
}

static bool
is_there(const char *fmt, unsigned n)
{
	char path[256], name[64];

	snprintf(name, sizeof(name), fmt, n);
	snprintf(path, sizeof(path), "%s/%s", KERN_DIR, name);
	return access(path, F_OK) == 0;
}

static int
setup(void **state)
{
	(void)state;
	kern_log_clear();
	peer = kern_peer();
	run("ip link add e0 type veth peer name p0 netns %d", (int)peer);
	run("ip link add e1.5 type veth peer name p1 netns %d", (int)peer);
	run("ip link set e0 up; ip link set e1.5 up");
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	kern_peer_end(peer);
	run_try("ip link del e0 2>/dev/null; ip link del e1.5 2>/dev/null; :");
	chmod(KERN_DIR, 0700);
	if (chown(KERN_DIR, 0, 0) < 0 && errno != ENOENT)
		return -1;
	return prog_remove_dir(KERN_DIR);
}

static void
directories_that_do_not_fit_are_refused(void **state)
{
	struct prog_config c = config();
	struct stat st;
	struct prog *p;

	(void)state;
	c.bpf_dir = "/sys/fs/bpf/xlb.d";
	assert_int_equal(prog_open(&c, &p), -EINVAL);
	assert_true(kern_log_has("may hold a dot"));
	c.bpf_dir = "/sys/fs/bpf/../bpf/xlb";
	assert_int_equal(prog_open(&c, &p), -EINVAL);
	c.bpf_dir = "/run/xlb-no-bpffs";
	kern_log_clear();
	assert_int_equal(prog_open(&c, &p), -ENOTDIR);
	assert_true(kern_log_has("/run/xlb-no-bpffs is not on a bpffs: "
	    "mount -t bpf bpf /sys/fs/bpf"));
	assert_int_not_equal(access(c.bpf_dir, F_OK), 0);
	assert_int_equal(prog_remove_dir("/run"), -ENOTDIR);

	c = config();
	assert_int_equal(mkdir(KERN_DIR, 0755), 0);
	assert_int_equal(chown(KERN_DIR, 1000, 1000), 0);
	kern_log_clear();
	assert_int_equal(prog_open(&c, &p), -EPERM);
	assert_true(kern_log_has("was made by user 1000"));
	assert_int_equal(prog_check(&c), -EPERM);
	assert_int_equal(prog_remove_dir(KERN_DIR), -EPERM);

	assert_int_equal(chown(KERN_DIR, 0, 0), 0);
	p = open_with(&c);
	assert_int_equal(stat(KERN_DIR, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	prog_close(p);
}

static void
an_interface_is_attached_and_adopted(void **state)
{
	struct prog_config c = config();
	struct prog_link row;
	struct prog *p;
	uint32_t id;

	(void)state;
	assert_int_equal(prog_check(&c), 0);
	p = open_with(&c);
	assert_false(prog_adopted(p));
	assert_int_equal(attach(p, "e1.5", XDP_MODE_NATIVE, &row), 0);
	assert_string_equal(row.mode, "native");
	assert_true(row.attached);
	assert_string_equal(row.why, "");
	assert_int_equal(row.ifindex, if_nametoindex("e1.5"));
	assert_true(is_there("links/%u", row.ifindex));
	id = xdp_id("e1.5", false);
	assert_int_not_equal(id, 0);
	assert_true(kern_log_has("interface e1.5: detached -> native"));

	kern_log_clear();
	assert_int_equal(attach(p, "e1.5", XDP_MODE_NATIVE, &row), 0);
	assert_string_equal(kern_log(), "");
	p = open_again(p);
	assert_true(prog_adopted(p));
	assert_int_equal(xdp_id("e1.5", false), id);
	assert_int_equal(p->id, id);
	assert_int_equal(prog_check(&c), 0);
	assert_int_equal(attach(p, "e1.5", XDP_MODE_AUTO, &row), 0);
	assert_string_equal(row.mode, "native");
	assert_int_equal(attach(p, "nosuch", XDP_MODE_AUTO, &row), -1);
	assert_string_equal(row.why, "no such interface");
	assert_int_equal(xdp_id("e1.5", false), 0);	/* not wanted now */
	prog_close(p);
}

static bool
gro(const char *name)
{
	char cmd[128];

	snprintf(cmd, sizeof(cmd), "ethtool -k %s | "
	    "grep -q '^generic-receive-offload: on'", name);
	return system(cmd) == 0;
}

static void
modes_change_and_gro_comes_back(void **state)
{
	struct prog_config c = config();
	struct prog_link row;
	struct prog *p;

	(void)state;
	run("ethtool -K e0 gro on");
	p = open_with(&c);
	assert_int_equal(attach(p, "e0", XDP_MODE_GENERIC, &row), 0);
	assert_string_equal(row.mode, "generic");
	assert_int_not_equal(xdp_id("e0", true), 0);
	assert_false(gro("e0"));
	p = open_again(p);
	assert_int_equal(attach(p, "e0", XDP_MODE_AUTO, &row), 0);
	assert_string_equal(row.mode, "generic");	/* it does not flap */
	assert_false(gro("e0"));
	assert_int_equal(attach(p, "e0", XDP_MODE_NATIVE, &row), 0);
	assert_string_equal(row.mode, "native");
	assert_int_equal(xdp_id("e0", true), 0);
	assert_true(gro("e0"));
	kern_log_clear();
	assert_int_equal(attach(p, "e0", XDP_MODE_GENERIC, &row), 0);
	assert_false(row.again);	/* a change that was asked for */
	assert_true(kern_log_has("interface e0: native -> generic\n"));
	assert_false(gro("e0"));
	assert_int_equal(prog_remove(p), 0);
	assert_true(gro("e0"));
	prog_close(p);

	/* what was off stays off */
	run("ethtool -K e0 gro off");
	p = open_with(&c);
	assert_int_equal(attach(p, "e0", XDP_MODE_GENERIC, &row), 0);
	assert_int_equal(prog_attach(p, NULL, 0, NULL), 0);
	assert_false(gro("e0"));
	prog_close(p);
}

static void
a_driver_that_refuses_is_quoted(void **state)
{
	struct prog_config c = config();
	struct prog_link row;
	struct prog *p;

	(void)state;
	run("ip link set e0 mtu 9000");
	run_in(peer, "ip link set p0 mtu 9000");
	p = open_with(&c);
	assert_int_equal(attach(p, "e0", XDP_MODE_NATIVE, &row), -1);
	assert_false(row.attached);
	assert_string_equal(row.mode, "-");
	print_message("# %s\n", row.why);
	assert_non_null(strstr(row.why, "veth, native: "));
	assert_non_null(strstr(row.why, "MTU is too large"));
	assert_non_null(strstr(row.why, "the MTU is 9000"));
	assert_true(kern_log_has("interface e0: no XDP: veth, native"));
	assert_int_equal(xdp_id("e0", true), 0);	/* never in silence */
	kern_log_clear();
	assert_int_equal(attach(p, "e0", XDP_MODE_NATIVE, &row), -1);
	assert_string_equal(kern_log(), "");

	assert_int_equal(attach(p, "e0", XDP_MODE_AUTO, &row), 0);
	assert_string_equal(row.mode, "generic");
	assert_true(kern_log_has("generic, because native was refused: veth"));
	kern_log_clear();
	assert_int_equal(attach(p, "e0", XDP_MODE_AUTO, &row), 0);
	assert_string_equal(kern_log(), "");
	assert_non_null(strstr(row.why, "MTU is too large"));
	prog_close(p);

	c.frags = true;
	p = open_with(&c);
	assert_int_equal(attach(p, "e0", XDP_MODE_NATIVE, &row), 0);
	assert_string_equal(row.mode, "native");
	prog_close(p);
	run("ip link add br0 type bridge");
	kern_log_clear();
	p = open_with(&c);
	assert_int_equal(attach(p, "br0", XDP_MODE_NATIVE, &row), -1);
	print_message("# %s\n", row.why);
	assert_non_null(strstr(row.why, "bridge, native: Operation not "
	    "supported"));
	assert_non_null(strstr(row.why, "xdp: generic"));
	run("ip link del br0");
	prog_close(p);
}

/* What drivers say, and what is said to do about it. */
static void
each_refusal_has_its_remedy(void **state)
{
	static const struct {
		const char *kernel, *remedy;
		int err;
	} row[] = {
		{ "veth: XDP expects number of rx queues not less than peer "
		    "tx queues", "see ethtool -l e0", ENOSPC },
		{ "Not enough XDP rings available", "see ethtool -l e0",
		    ENOMEM },
		{ "MTU too large w/ XDP enabled", "the MTU is 1500", EINVAL },
		{ "XDP is not allowed with LRO", "ethtool -K e0 lro off",
		    EINVAL },
		{ "Can't set XDP while host is implementing GRO_HW/CSUM, "
		    "disable GRO_HW/CSUM first", "gro_hw off", EOPNOTSUPP },
		{ "", "`xdp: generic` works, slowly", EOPNOTSUPP },
		{ "", NULL, EIO },
	};
	struct prog_config c = config();
	struct prog *p = open_with(&c);
	struct prog_link out;
	char buf[160];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		prog_hint(p, "e0", if_nametoindex("e0"), XDP_FLAGS_DRV_MODE,
		    row[i].err, row[i].kernel, buf, sizeof(buf));
		if (row[i].remedy == NULL ? *buf != '\0' :
		    strstr(buf, row[i].remedy) == NULL)
			fail_msg("%s: %s", row[i].kernel, buf);
	}
	/* one that a driver of this machine does say */
	run("ip link add e2 numrxqueues 1 numtxqueues 1 type veth peer "
	    "name p2 numrxqueues 4 numtxqueues 4");
	run("ip link set e2 up");
	assert_int_equal(attach(p, "e2", XDP_MODE_NATIVE, &out), -1);
	print_message("# %s\n", out.why);
	assert_non_null(strstr(out.why, "veth, native: "));
	assert_non_null(strstr(out.why, "XDP needs queues of its own: see "
	    "ethtool -l e2"));
	run("ip link del e2");
	prog_close(p);
}

/* An XDP program of somebody else. */
static int
other_program(void)
{
	struct bpf_insn insn[] = {
		{ .code = 0xb7, .dst_reg = 0, .imm = 2 },	/* r0 = PASS */
		{ .code = 0x95 },				/* exit */
	};
	LIBBPF_OPTS(bpf_prog_load_opts, opts,
	    .expected_attach_type = BPF_XDP);
	int fd = bpf_prog_load(BPF_PROG_TYPE_XDP, "other", "GPL", insn, 2,
	    &opts);

	assert_true(fd >= 0);
	return fd;
}

static void
a_foreign_program_is_left_alone(void **state)
{
	struct prog_config c = config();
	struct prog_link row;
	struct prog *p;
	char text[64];
	int fd = other_program();

	(void)state;
	assert_int_equal(bpf_xdp_attach((int)if_nametoindex("e0"), fd,
	    XDP_FLAGS_DRV_MODE, NULL), 0);
	snprintf(text, sizeof(text), "program %u is attached there (native)",
	    xdp_id("e0", false));
	p = open_with(&c);
	assert_int_equal(attach(p, "e0", XDP_MODE_NATIVE, &row), -1);
	print_message("# %s\n", row.why);
	assert_non_null(strstr(row.why, text));
	assert_int_equal(attach(p, "e0", XDP_MODE_AUTO, &row), -1);
	assert_int_not_equal(xdp_id("e0", false), p->id);
	run("ip link set e0 xdp off");
	assert_int_equal(attach(p, "e0", XDP_MODE_NATIVE, &row), 0);
	assert_int_equal(xdp_id("e0", false), p->id);
	prog_close(p);
	close(fd);
}

static void
links_that_are_lost_are_made_again(void **state)
{
	struct prog_config c = config();
	struct prog_link row;
	struct prog *p;
	uint32_t ifindex;
	int fd;

	(void)state;
	p = open_with(&c);
	assert_int_equal(attach(p, "e0", XDP_MODE_NATIVE, &row), 0);
	ifindex = row.ifindex;
	fd = pin_link_open(KERN_DIR, ifindex);
	assert_int_equal(bpf_link_detach(fd), 0);
	close(fd);
	assert_int_equal(xdp_id("e0", false), 0);
	assert_int_equal(attach(p, "e0", XDP_MODE_NATIVE, &row), 0);
	assert_int_equal(xdp_id("e0", false), p->id);

	run("ip link del e0");
	assert_int_equal(attach(p, "e0", XDP_MODE_NATIVE, &row), -1);
	assert_false(is_there("links/%u", ifindex));
	run("ip link add e0 index %u type veth peer name p2", ifindex);
	assert_int_equal(attach(p, "e0", XDP_MODE_NATIVE, &row), 0);
	assert_int_equal(xdp_id("e0", false), p->id);
	prog_close(p);
}

static uint32_t
link_id(uint32_t ifindex, uint32_t *prog_id)
{
	struct bpf_link_info info = { 0 };
	uint32_t len = sizeof(info);
	int fd = pin_link_open(KERN_DIR, ifindex);

	assert_true(fd >= 0);
	assert_int_equal(bpf_obj_get_info_by_fd(fd, &info, &len), 0);
	close(fd);
	*prog_id = info.prog_id;
	return info.id;
}

static void
another_build_is_replaced_without_a_gap(void **state)
{
	struct prog_config c = config();
	uint32_t id, link, now;
	struct prog_link row;
	struct prog *p;
	int fd;

	(void)state;
	p = open_with(&c);
	assert_int_equal(attach(p, "e0", XDP_MODE_NATIVE, &row), 0);
	link = link_id(row.ifindex, &id);

	/* the same instructions with another flag */
	prog_close(p);
	c.frags = true;
	p = open_with(&c);
	assert_int_equal(link_id(row.ifindex, &now), link);
	assert_int_not_equal(now, id);
	assert_int_equal(now, p->id);
	assert_true(kern_log_has("replaced by this build's"));
	prog_close(p);
	kern_log_clear();
	p = open_with(&c);
	assert_false(kern_log_has("replaced"));
	assert_int_equal(now, p->id);

	/* other instructions, as if another build had pinned and attached */
	fd = other_program();
	assert_int_equal(pin_replace(KERN_DIR, "program", fd), 0);
	id = (uint32_t)pin_link_open(KERN_DIR, row.ifindex);
	assert_int_equal(bpf_link_update((int)id, fd, NULL), 0);
	close((int)id);
	close(fd);
	prog_close(p);
	p = open_with(&c);
	assert_int_equal(link_id(row.ifindex, &now), link);
	assert_int_equal(now, p->id);
	assert_int_equal(xdp_id("e0", false), p->id);
	prog_close(p);
}

/* A program without xdp.frags takes no MTU of 9000: the one that does stays, and
 * packets go on. */
static void
a_link_that_refuses_the_update_is_named(void **state)
{
	struct prog_config c = config();
	uint32_t link, kept, now;
	struct prog_link row;
	char text[64];
	struct prog *p;

	(void)state;
	c.frags = true;
	p = open_with(&c);
	assert_int_equal(attach(p, "e0", XDP_MODE_NATIVE, &row), 0);
	link = link_id(row.ifindex, &kept);
	prog_close(p);
	run("ip link set e0 mtu 9000");
	run_in(peer, "ip link set p0 mtu 9000");

	c.frags = false;
	p = open_with(&c);
	assert_int_not_equal(p->id, kept);
	kern_log_clear();
	assert_int_equal(attach(p, "e0", XDP_MODE_NATIVE, &row), 0);
	assert_true(row.attached && row.adopted && !row.again);
	snprintf(text, sizeof(text), "link %u keeps program %u", link, kept);
	assert_non_null(strstr(row.why, text));
	assert_true(kern_log_has(text));
	assert_int_equal(link_id(row.ifindex, &now), link);
	assert_int_equal(now, kept);
	kern_log_clear();
	assert_int_equal(attach(p, "e0", XDP_MODE_NATIVE, &row), 0);
	assert_false(kern_log_has("keeps"));	/* said once */

	run_in(peer, "ip link set p0 mtu 1500");
	assert_int_equal(attach(p, "e0", XDP_MODE_NATIVE, &row), 0);
	assert_string_equal(row.why, "");
	assert_int_equal(link_id(row.ifindex, &now), link);
	assert_int_equal(now, p->id);
	prog_close(p);
}

static void
refused(const struct prog_config *c, const char *text)
{
	struct prog *p;

	kern_log_clear();
	assert_int_equal(prog_open(c, &p), -EEXIST);
	if (!kern_log_has(text) || !kern_log_has("xlb restart --flush"))
		fail_msg("\"%s\" is not in: %s", text, kern_log());
	assert_int_equal(prog_check(c), -EEXIST);
}

static void
maps_that_do_not_fit_are_refused_by_name(void **state)
{
	struct prog_config c = config(), other;
	char why[80];
	int fd;

	(void)state;
	prog_close(open_with(&c));
	other = c;
	other.ring_size = 257;
	refused(&other, "maglev.table_size 251, the configuration says 257");
	other = c;
	other.seed = 8;
	refused(&other, "maglev.seed 7, the configuration says 8");
	other = c;
	other.hash_key[3]++;
	refused(&other, "maglev.key_file");
	other = c;
	other.flow_entries = 1024;
	refused(&other, "pinned with flow_table.entries 2048, the "
	    "configuration says 1024");

	run("rm %s/rare", KERN_DIR);
	fd = bpf_map_create(BPF_MAP_TYPE_PERCPU_ARRAY, "rare", 4, 24, 100,
	    NULL);
	assert_int_equal(bpf_obj_pin(fd, KERN_DIR "/rare"), 0);
	close(fd);
	snprintf(why, sizeof(why), "rare: value size 24 is pinned, this xlbd "
	    "needs %zu", sizeof(struct xlb_rare));
	refused(&c, why);
	run("rm %s/rare", KERN_DIR);
	fd = bpf_map_create(BPF_MAP_TYPE_HASH, "rare", 4, 16, 1, NULL);
	assert_int_equal(bpf_obj_pin(fd, KERN_DIR "/rare"), 0);
	close(fd);
	refused(&c, "rare: type 1 is pinned, this xlbd needs 6");
	run("rm %s/tables", KERN_DIR);
	refused(&c, "ring_table is pinned, tables is not");
}

/* A table of smaller rings: the verifier sees that a slot may lie outside. */
static void
the_verifier_is_quoted(void **state)
{
	LIBBPF_OPTS(bpf_map_create_opts, inner, .map_flags = BPF_F_MMAPABLE);
	LIBBPF_OPTS(bpf_map_create_opts, outer);
	struct prog_config c = config();
	struct prog *p;
	int fd;

	(void)state;
	prog_close(open_with(&c));
	outer.inner_map_fd = (uint32_t)bpf_map_create(BPF_MAP_TYPE_ARRAY, "x",
	    4, (uint32_t)xlb_ring_bytes(11), 1, &inner);
	fd = bpf_map_create(BPF_MAP_TYPE_ARRAY_OF_MAPS, "ring_table", 4, 4,
	    XLB_RINGS, &outer);
	assert_true(fd >= 0);
	assert_int_equal(pin_replace(KERN_DIR, "ring_table", fd), 0);
	close(fd);
	close((int)outer.inner_map_fd);
	kern_log_clear();
	assert_int_equal(prog_open(&c, &p), -EACCES);
	assert_true(kern_log_has("loading the packet program: Permission"));
	assert_true(kern_log_has("verifier: invalid access to map value"));
}

static void
a_lost_map_is_made_again_and_used(void **state)
{
	struct prog_config c = config();
	uint32_t id, link, now;
	struct prog_link row;
	struct prog *p;

	(void)state;
	p = open_with(&c);
	assert_int_equal(attach(p, "e0", XDP_MODE_NATIVE, &row), 0);
	link = link_id(row.ifindex, &id);
	prog_close(p);
	run("rm %s/ring_table %s/health", KERN_DIR, KERN_DIR);
	p = open_with(&c);
	/* the old program reads a table that nobody can write any more */
	assert_int_equal(link_id(row.ifindex, &now), link);
	assert_int_not_equal(now, id);
	assert_int_equal(now, p->id);
	prog_close(p);
}

static void
all_goes_and_nothing_is_left(void **state)
{
	struct prog_config c = config();
	struct prog_link row;
	struct prog *p;

	(void)state;
	p = open_with(&c);
	assert_int_equal(attach(p, "e0", XDP_MODE_GENERIC, &row), 0);
	assert_int_equal(prog_remove(p), 0);
	assert_int_equal(prog_remove(p), 0);
	prog_close(p);
	assert_int_equal(xdp_id("e0", true), 0);
	assert_int_not_equal(access(KERN_DIR, F_OK), 0);
	assert_int_equal(prog_remove_dir(KERN_DIR), 0);

	p = open_with(&c);
	assert_int_equal(attach(p, "e0", XDP_MODE_NATIVE, &row), 0);
	prog_close(p);
	assert_int_equal(mkdir(KERN_DIR "/mine", 0700), 0);
	assert_int_equal(prog_remove_dir(KERN_DIR), -ENOTEMPTY);
	assert_int_equal(xdp_id("e0", false), 0);
	assert_int_equal(rmdir(KERN_DIR "/mine"), 0);
	assert_int_equal(prog_remove_dir(KERN_DIR), 0);
}

/* A start in a child; the first pin is there when this returns. */
static pid_t
start_child(const struct prog_config *c)
{
	struct prog_link row;
	struct prog *p;
	pid_t pid = fork();

	if (pid == 0) {
		if (prog_open(c, &p) == 0)
			attach(p, "e0", XDP_MODE_GENERIC, &row);
		_exit(0);
	}
	while (!is_there("tables", 0) && waitpid(pid, NULL, WNOHANG) == 0)
		;
	return pid;
}

/* Killed at any moment of its start, the next one makes it whole. A first start
 * leaves traces only in its last milliseconds, after the verifier. */
static void
a_start_that_is_cut_short_is_completed(void **state)
{
	struct prog_config c = config();
	double first, later, begin;
	struct prog_link row;
	struct prog *p;
	pid_t pid;
	int i;

	(void)state;
	pid = start_child(&c);
	begin = now_ms();
	waitpid(pid, NULL, 0);
	first = now_ms() - begin;
	begin = now_ms();
	p = open_with(&c);
	attach(p, "e0", XDP_MODE_NATIVE, &row);
	later = now_ms() - begin;
	prog_close(p);
	print_message("# from the first pin %.0f ms, a later start %.0f ms\n",
	    first, later);
	for (i = 0; i < 12; i++) {
		if (i % 3 != 0)
			assert_int_equal(prog_remove_dir(KERN_DIR), 0);
		pid = start_child(&c);
		usleep((useconds_t)((i % 3 != 0 ? first : later) * 1e3 *
		    (i + 1) / 12));
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		kern_log_clear();
		p = open_with(&c);
		assert_int_equal(attach(p, "e0", XDP_MODE_NATIVE, &row), 0);
		assert_int_equal(xdp_id("e0", false), p->id);
		prog_close(p);
	}
}

static void
caps_keep(uint64_t keep)
{
	struct __user_cap_header_struct h = { .version =
	    _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct d[2];
	int i;

	for (i = 0; i < 2; i++)
		d[i].effective = d[i].permitted = d[i].inheritable =
		    (uint32_t)(keep >> 32 * i);
	if (syscall(SYS_capset, &h, d) < 0)
		_exit(2);
}

/* No CAP_SYS_ADMIN: nothing may be opened by id. */
static void
four_capabilities_are_enough(void **state)
{
	struct prog_config c = config();
	struct prog_link row;
	struct state found;
	struct ports *ports;
	struct prog *p;
	int status, i;
	sd_event *ev;
	pid_t pid;

	(void)state;
	pid = fork();
	if (pid == 0) {
		if (sd_event_new(&ev) < 0)
			_exit(5);
		caps_keep(1ULL << CAP_BPF | 1ULL << CAP_NET_ADMIN |
		    1ULL << CAP_NET_RAW | 1ULL << CAP_PERFMON);
		for (i = 0; i < 2; i++) {
			p = open_with(&c);
			if (attach(p, "e0", XDP_MODE_NATIVE, &row) != 0 ||
			    maps_read(prog_maps(p), arena_new(), &found) != 0)
				_exit(3);
			if (ports_open(ev, prog_ports(p), NULL, NULL,
			    &ports) != 0)
				_exit(6);
			ports_close(ports);
			prog_close(p);
		}
		_exit(prog_remove_dir(KERN_DIR) == 0 ? 0 : 4);
	}
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
}

static uint64_t
used_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
	return ((uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec) >>
	    XLB_FLOW_TICK_SHIFT;
}

/* Both programs on their own tables: where the links' one looks. */
static uint32_t
flows_id(const struct prog *p)
{
	struct bpf_map_info info = { 0 };
	uint32_t len = sizeof(info);

	assert_int_equal(bpf_obj_get_info_by_fd(p->maps->fd[MAP_FLOWS], &info,
	    &len), 0);
	return info.id;
}

static bool
program_uses(int fd, uint32_t map)
{
	uint32_t ids[64], len = sizeof(struct bpf_prog_info), i;
	struct bpf_prog_info info = { .nr_map_ids = 64,
	    .map_ids = (uint64_t)(uintptr_t)ids };

	assert_int_equal(bpf_obj_get_info_by_fd(fd, &info, &len), 0);
	for (i = 0; i < info.nr_map_ids; i++)
		if (ids[i] == map)
			return true;
	return false;
}

static void
the_flow_table_grows_with_what_is_in_it(void **state)
{
	struct prog_config c = config();
	uint64_t flow = 0x123456780000abcdULL, e;
	struct prog_link row;
	struct prog *p;
	uint32_t before, i;

	(void)state;
	p = open_with(&c);
	assert_int_equal(attach(p, "e0", XDP_MODE_NATIVE, &row), 0);
	before = xdp_id("e0", false);
	assert_int_equal(maps_flow_entries(p->maps), 2048);
	e = XLB_FLOW(xlb_flow_tag((uint32_t)(flow >> 32), flow), 7,
	    XLB_FLOW_CONFIRMED, used_now());
	p->maps->flows[xlb_flow_row(flow, 255)].entry[3] = e;
	assert_int_equal(prog_grow(p, &c), 0);	/* it is as large already */
	assert_int_equal(xdp_id("e0", false), before);

	c.flow_entries = 8192;
	assert_int_equal(prog_grow(p, &c), 0);
	assert_int_equal(maps_flow_entries(p->maps), 8192);
	assert_int_not_equal(xdp_id("e0", false), before);
	assert_int_equal(xdp_id("e0", false), p->id);
	assert_true(program_uses(p->fd, flows_id(p)));
	assert_true(kern_log_has("flow_table.entries: 2048 -> 8192"));
	for (i = 0; i < XLB_FLOW_WAYS; i++)
		if (p->maps->flows[xlb_flow_row(flow, 1023)].entry[i] == e)
			break;
	assert_int_not_equal(i, XLB_FLOW_WAYS);

	/* the next one finds it, with the old size in its file or a larger */
	before = p->id;
	prog_close(p);
	p = open_with(&c);
	assert_int_equal(p->id, before);
	assert_int_equal(maps_flow_entries(p->maps), 8192);
	prog_close(p);
	c.flow_entries = 16384;
	p = open_with(&c);
	assert_int_equal(p->id, before);
	assert_int_equal(maps_flow_entries(p->maps), 8192);
	assert_int_equal(prog_grow(p, &c), 0);
	assert_int_equal(maps_flow_entries(p->maps), 16384);
	prog_close(p);

	c.flow_entries = 8192;
	p = NULL;
	kern_log_clear();
	assert_int_equal(prog_open(&c, &p), -EEXIST);
	assert_true(kern_log_has("pinned with flow_table.entries 16384, the "
	    "configuration says 8192; a table in use does not shrink: drain "
	    "the node, then xlb restart --flush"));
}

/* A kill between two pins: the table is the new one, the program the old. */
static void
growing_that_was_cut_short_is_completed(void **state)
{
	struct prog_config c = config();
	struct prog_link row;
	struct prog *p;
	uint32_t old;
	int program;

	(void)state;
	p = open_with(&c);
	assert_int_equal(attach(p, "e0", XDP_MODE_NATIVE, &row), 0);
	old = p->id;
	program = dup(p->fd);
	c.flow_entries = 8192;
	assert_int_equal(prog_grow(p, &c), 0);
	run("rm %s/program", KERN_DIR);
	assert_int_equal(bpf_obj_pin(program, KERN_DIR "/program"), 0);
	prog_links_update(p, program, old);
	assert_int_equal(xdp_id("e0", false), old);
	prog_close(p);
	p = open_with(&c);
	assert_int_equal(maps_flow_entries(p->maps), 8192);
	assert_int_not_equal(p->id, old);
	assert_int_equal(xdp_id("e0", false), p->id);
	assert_true(program_uses(p->fd, flows_id(p)));
	close(program);
	prog_close(p);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
	const struct CMUnitTest test[] = {
		CASE(directories_that_do_not_fit_are_refused),
		CASE(an_interface_is_attached_and_adopted),
		CASE(modes_change_and_gro_comes_back),
		CASE(a_driver_that_refuses_is_quoted),
		CASE(each_refusal_has_its_remedy),
		CASE(a_foreign_program_is_left_alone),
		CASE(links_that_are_lost_are_made_again),
		CASE(another_build_is_replaced_without_a_gap),
		CASE(a_link_that_refuses_the_update_is_named),
		CASE(maps_that_do_not_fit_are_refused_by_name),
		CASE(the_verifier_is_quoted),
		CASE(a_lost_map_is_made_again_and_used),
		CASE(all_goes_and_nothing_is_left),
		CASE(a_start_that_is_cut_short_is_completed),
		CASE(the_flow_table_grows_with_what_is_in_it),
		CASE(growing_that_was_cut_short_is_completed),
		CASE(four_capabilities_are_enough),
	};

	kern_enter();
	kern_bpffs();
	log_init("test_prog", false);
	log_libbpf();
	return cmocka_run_group_tests_name("prog", test, NULL, NULL);
}
