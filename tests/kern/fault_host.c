/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Work with files, devices, threads and netlink, see fault.h. */
#include "fault.h"

#include "../unit/unit.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-event.h>
#include <unistd.h>

#include "core/arena.h"
#include "core/diag.h"
#include "io/conf_file.h"
#include "io/counters.h"
#include "io/file.h"
#include "io/grace.h"
#include "io/key.h"
#include "io/netlink.h"
#include "io/ports.h"
#include "io/tun.h"
#include "io/tunnel.h"
#include "io/work.h"
#include "kern.h"
#include "xlb_abi.h"

static const char *
in_dir(const char *name)
{
	static char path[2][128];
	static int turn;

	turn ^= 1;
	snprintf(path[turn], sizeof(path[turn]), "%s/%s", fault_dir, name);
	return path[turn];
}

static int
file_work(void)
{
	size_t len;
	char *text;
	int rc;

	rc = file_mkdir(in_dir("d"), 0755);
	if (rc == 0)
		rc = file_mkdir(in_dir("d"), 0755);	/* as it is there */
	if (rc == 0)
		rc = file_replace(in_dir("d/f"), "text", 4, 0644);
	if (rc < 0)
		return rc;
	rc = file_equal(in_dir("d/f"), "text", 4);
	if (rc < 0)
		return rc;
	assert_int_equal(rc, 1);
	rc = file_read(in_dir("d/f"), 100, &text, &len);
	if (rc == 0)
		free(text);
	return rc;
}

static int
key_work(void)
{
	uint8_t key[16];

	fault_hold();
	assert_int_equal(file_replace(in_dir("key"), "0123456789abcdef", 16,
	    0600), 0);
	fault_go();
	return key_read(in_dir("key"), key);
}

static int
counters_work(void)
{
	struct counters *c;

	fault_hold();
	unlink(in_dir(COUNTERS_FILE));
	fault_go();
	c = counters_open(fault_dir);
	counters_row(c, "a", "b")[0]++;
	counters_close(c);
	return 0;
}

/* As another program left it. */
static int
counters_kept_work(void)
{
	struct counters *c;

	fault_hold();
	c = counters_open(fault_dir);
	counters_close(c);
	run("f=%s; s=$(stat -c %%s $f) && yes | head -c $s >$f",
	    in_dir(COUNTERS_FILE));
	fault_go();
	c = counters_open(fault_dir);
	assert_int_equal(counters_row(c, "a", "b")[0], 0);
	counters_close(c);
	counters_close(NULL);
	return 0;
}

/* The main file, and one beside it. */
static int
conf_work(void)
{
	static const char text[] = "node: {name: n}\n";
	const struct conf *conf;
	struct arena *a = arena_new();
	struct diag dg;
	int rc;

	diag_init(&dg);
	fault_hold();
	file_mkdir(in_dir("xlb.d"), 0755);
	assert_int_equal(file_replace(in_dir("xlb.yaml"), text,
	    sizeof(text) - 1, 0644), 0);
	assert_int_equal(file_replace(in_dir("xlb.d/more.yaml"),
	    "pools: {}\n", 10, 0644), 0);
	fault_go();
	rc = conf_file_load(in_dir("xlb.yaml"), a, &conf, &dg);
	diag_fini(&dg);
	arena_free(a);
	return rc < 0 ? -EIO : 0;
}

static int
tun_work(void)
{
	int fd = tun_open(-1);

	if (fd >= 0)
		close(fd);
	return fd < 0 ? fd : 0;
}

/* One that the service manager kept; if it cannot be looked at, it is none. */
static int
tun_kept_work(void)
{
	int fd;

	fault_hold();
	fd = tun_open(-1);
	fault_go();
	fd = tun_open(fd);
	if (fd >= 0)
		close(fd);
	return fd < 0 ? fd : 0;
}

static int called;

static void
call_count(void *arg)
{
	(void)arg;
	called++;
}

static bool
were_called(void *arg)
{
	return called >= *(const int *)arg;
}

static int
work_work(void)
{
	struct work *w;
	sd_event *ev;
	int rc;

	assert_true(sd_event_new(&ev) >= 0);
	called = 0;
	rc = work_open(ev, call_count, call_count, NULL, &w);
	if (rc == 0) {
		rc = fault_loop(ev, were_called, &(int){ 2 });
		work_close(w);
	}
	sd_event_unref(ev);
	return rc;
}

static int
netlink_work(void)
{
	struct netlink *nl;
	struct addr addr;
	sd_event *ev;
	int rc;

	assert_int_equal(addr_parse("10.1.0.2", &addr), 0);
	assert_true(sd_event_new(&ev) >= 0);
	rc = netlink_open(ev, call_count, NULL, &nl);
	if (rc == 0) {
		netlink_want(nl, &addr, 1);
		rc = netlink_hops(nl)->row[0].status == HOP_RESOLVING ? 0 :
		    -EHOSTUNREACH;
		netlink_close(nl);
	}
	sd_event_unref(ev);
	return rc;
}

static void
port_failed(uint32_t ifindex, int err, void *arg)
{
	(void)ifindex, (void)err, (void)arg;
}

static int
ports_work(void)
{
	struct ports *p;
	sd_event *ev;
	int rc, fd;

	fault_hold();
	fd = bpf_map_create(BPF_MAP_TYPE_DEVMAP_HASH, "tx_ports", 4, 4, 4,
	    NULL);
	assert_true(fd >= 0);
	assert_true(sd_event_new(&ev) >= 0);
	fault_go();
	rc = ports_open(ev, fd, port_failed, NULL, &p);
	ports_close(p);
	sd_event_unref(ev);
	close(fd);
	return rc;
}

/* An array of maps takes one of its kind. */
static int
grace_work(void)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts);
	struct grace *g;
	sd_event *ev;
	int rc, inner, outer;

	fault_hold();
	inner = bpf_map_create(BPF_MAP_TYPE_ARRAY, "inner", 4, 4, 1, NULL);
	opts.inner_map_fd = (uint32_t)inner;
	outer = bpf_map_create(BPF_MAP_TYPE_ARRAY_OF_MAPS, "outer", 4, 4, 1,
	    &opts);
	assert_true(outer >= 0);
	assert_true(sd_event_new(&ev) >= 0);
	fault_go();
	called = 0;
	rc = grace_open(ev, outer, inner, call_count, NULL, &g);
	if (rc == 0) {
		grace_ask(g);
		/* a second without an answer: nobody waits for it */
		fault_loop(ev, were_called, &(int){ 1 });
		grace_close(g);
	}
	sd_event_unref(ev);
	close(inner);
	close(outer);
	return rc;
}

static int
tunnel_work(void)
{
	struct tunnel *t;
	int rc, tables;

	fault_hold();
	tables = bpf_map_create(BPF_MAP_TYPE_ARRAY, "tables", 4,
	    sizeof(struct xlb_tables), 1, &(struct bpf_map_create_opts){
	    .sz = sizeof(struct bpf_map_create_opts),
	    .map_flags = BPF_F_MMAPABLE });
	assert_true(tables >= 0);
	fault_go();
	t = tunnel_new(tables);
	rc = tunnel_mend(t);
	tunnel_remove(t);
	tunnel_free(t);
	close(tables);
	return rc;
}

const struct fault_work fault_host[] = {
	{ .name = "files", .run = file_work },
	{ .name = "files, interrupted", .run = file_work, .err = EINTR,
	    .borne = "read write" },
	{ .name = "key", .run = key_work,
	    .borne = "stat" },	/* who else may read it is only said */
	{ .name = "netlink", .run = netlink_work,
	    .borne = "setsockopt" },	/* buffers and bounds: see there */
	{ .name = "netlink, interrupted", .run = netlink_work, .err = EINTR,
	    .borne = "setsockopt mnl_socket_sendto mnl_socket_recvfrom" },
	{ .name = "counters", .run = counters_work },
	{ .name = "counters, of somebody else", .run = counters_kept_work },
	/* what this host has beside it is only warned of */
	{ .name = "configuration", .run = conf_work,
	    .borne = "mnl_socket_open2" },
	{ .name = "tun", .run = tun_work },
	/* whether it is down is only said */
	{ .name = "tun, kept", .run = tun_kept_work,
	    .borne = "socket ioctl" },
	{ .name = "work", .run = work_work },
	{ .name = "ports", .run = ports_work },
	/* of the pair of sockets between loop and thread: no answer, then */
	{ .name = "grace", .run = grace_work, .borne = "read write" },
	/* what may be there is put there; rules that go may be gone */
	{ .name = "tunnel", .run = tunnel_work, .borne =
	    "bpf_tc_query mnl_socket_sendto mnl_socket_recvfrom" },
	{ .name = NULL }
};

