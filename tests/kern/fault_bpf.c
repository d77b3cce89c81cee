/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Work with maps, programs and pins, see fault.h. */
#include "fault.h"

#include "../unit/unit.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-event.h>
#include <unistd.h>

#include "core/arena.h"
#include "core/ring_words.h"
#include "io/events.h"
#include "io/prog_int.h"
#include "kern.h"

#define SLOTS 251

static struct prog_config
config(void)
{
	return (struct prog_config){ .bpf_dir = KERN_DIR, .ring_size = SLOTS,
	    .flow_entries = 2048, .seed = 7,
	    .hash_key = "0123456789abcde" };
}

/* Nothing is pinned. */
static void
begin_new(void)
{
	fault_hold();
	fault_small_programs(true);
	assert_int_equal(prog_remove_dir(KERN_DIR), 0);
	fault_go();
}

/* Open, with what is pinned, if it is. */
static struct prog *
begin(void)
{
	struct prog_config c = config();
	struct prog *p = NULL;

	fault_hold();
	fault_small_programs(true);
	assert_int_equal(prog_open(&c, &p), 0);
	fault_go();
	return p;
}

static int
end(struct prog *p, int rc)
{
	prog_close(p);
	fault_small_programs(false);
	return rc;
}

static int
open_work(void)
{
	struct prog_config c = config();
	struct prog *p = NULL;
	int rc;

	begin_new();
	rc = prog_open(&c, &p);
	return end(p, rc);
}

/* What an earlier xlbd left behind. */
static int
adopt_work(void)
{
	static uint32_t slot[SLOTS], past[SLOTS], roles[RING_MEMBER_WORDS];
	const struct op_ring ring = { .number = 3, .pool = "web",
	    .size = SLOTS, .slot = slot, .past = past, .roles = roles };
	const struct op op = { .kind = OP_RING_NEW, .id = 3, .row = &ring };
	struct prog_config c = config();
	struct prog *p = NULL;
	int rc;

	fault_small_programs(true);
	if (access(KERN_DIR "/rings/3", F_OK) < 0) {
		p = begin();
		fault_hold();
		assert_int_equal(maps_do(prog_maps(p), &op), 0);
		fault_go();
		prog_close(p);
		p = NULL;
	}
	rc = prog_open(&c, &p);
	return end(p, rc);
}

static int
remove_work(void)
{
	prog_close(begin());
	return end(NULL, prog_remove_dir(KERN_DIR));
}

static int
attach(struct prog *p, enum xdp_mode mode, struct prog_link *row)
{
	const struct conf_interface want = { .name = "e0", .xdp = mode };

	return prog_attach(p, &want, 1, row) < 0 ? -ENOTCONN : 0;
}

static int
attach_work(void)
{
	struct prog *p = begin();
	struct prog_link row;
	int rc;

	fault_hold();
	prog_attach(p, NULL, 0, NULL);
	fault_go();
	rc = attach(p, XDP_MODE_GENERIC, &row);
	if (rc == 0)
		rc = attach(p, XDP_MODE_GENERIC, &row);
	if (rc == 0)
		rc = attach(p, XDP_MODE_NATIVE, &row);
	if (rc == 0)
		rc = prog_attach(p, NULL, 0, NULL);
	return end(p, rc);
}

/* The program on e0. */
static uint32_t
attached_id(void)
{
	LIBBPF_OPTS(bpf_xdp_query_opts, q);

	fault_hold();
	assert_int_equal(bpf_xdp_query((int)if_nametoindex("e0"), 0, &q), 0);
	fault_go();
	return q.drv_prog_id;
}

/* One that fails leaves packets with the tables that xlbd has. */
static int
grow_work(void)
{
	struct prog_config c = config();
	struct prog_link row;
	struct prog *p;
	uint32_t before;
	int rc;

	begin_new();
	p = begin();
	c.flow_entries *= 2;
	c.nat = true;
	fault_hold();
	assert_int_equal(attach(p, XDP_MODE_NATIVE, &row), 0);
	fault_go();
	before = attached_id();
	rc = prog_grow(p, &c);
	if (rc < 0) {
		assert_int_equal(attached_id(), before);
		assert_int_equal(p->id, before);
		assert_int_equal(maps_flow_entries(p->maps), 2048);
	} else {
		/* a link that was left out is met at the next turn */
		fault_hold();
		assert_int_equal(attach(p, XDP_MODE_NATIVE, &row), 0);
		fault_go();
		assert_int_not_equal(attached_id(), before);
		assert_int_equal(attached_id(), p->id);
		assert_int_equal(maps_flow_entries(p->maps), 4096);
	}
	return end(p, rc);
}

static int
mend_work(void)
{
	struct prog *p = begin();
	struct prog_mended mended;

	run("rm -rf " KERN_DIR "/*");
	prog_mend(p, &mended);
	return end(p, 0);
}

static int
read_work(void)
{
	struct xlb_service_stats service;
	struct xlb_backend_stats backend;
	struct prog *p = begin();
	struct xlb_flow_stats flows;
	struct xlb_reasons reasons;
	struct maps_flows *copy;
	struct maps *m = prog_maps(p);
	struct health_table health;
	struct arena *a = arena_new();
	struct state found;
	uint64_t csum;
	int rc;

	rc = maps_read(m, a, &found);
	if (rc == 0)
		rc = maps_flow_stats(m, &flows);
	if (rc == 0)
		rc = maps_reasons(m, &reasons);
	if (rc == 0)
		rc = maps_service_stats(m, 1, &service);
	if (rc == 0)
		rc = maps_backend_stats(m, 1, &backend);
	if (rc == 0)
		rc = maps_csum_full(m, &csum);
	if (rc == 0)
		rc = maps_health_read(m, a, &health);
	if (rc == 0) {
		copy = maps_flows_open(m);
		rc = copy == NULL ? -errno : 0;
		maps_flows_close(copy);
	}
	arena_free(a);
	return end(p, rc);
}

/* Each of those that ask the kernel. */
static int
write_work(void)
{
	static uint32_t slot[SLOTS], past[SLOTS], roles[RING_MEMBER_WORDS];
	const struct op_ring ring = { .number = 3, .pool = "web",
	    .size = SLOTS, .slot = slot, .past = past, .roles = roles };
	const struct health_row row = { .port = 80, .check = "c" };
	const struct op op[] = {
		{ .kind = OP_PORT_PUT, .id = if_nametoindex("e0") },
		{ .kind = OP_RING_NEW, .id = 3, .row = &ring },
		{ .kind = OP_RING_SLOTS, .id = 3, .row = &ring },
		{ .kind = OP_RING_DEL, .id = 3, .row = &ring },
		{ .kind = OP_PORT_DEL, .id = if_nametoindex("e0") },
		{ .kind = OP_GRACE },
	};
	struct prog *p = begin();
	struct maps *m = prog_maps(p);
	size_t i;
	int rc;

	rc = maps_health_put(m, &row);
	if (rc == 0)
		rc = maps_health_del(m, &row);
	for (i = 0; rc == 0 && i < sizeof(op) / sizeof(op[0]); i++)
		rc = maps_do(m, &op[i]);
	return end(p, rc);
}

static void
event_take(const struct xlb_event *e, void *arg)
{
	(void)e, (void)arg;
}

static void
second_take(void *arg)
{
	(void)arg;
}

static int
events_work(void)
{
	const struct events_fn fn = { .event = event_take,
	    .second = second_take };
	const struct event_want want = { .any = true, .one_in = 1 };
	struct event_loss loss[XLB_EVENT_READERS];
	struct prog *p = begin();
	struct events *e;
	sd_event *ev;
	int rc;

	assert_true(sd_event_new(&ev) >= 0);
	rc = events_open(ev, prog_maps(p), &fn, &e);
	if (rc == 0) {
		events_want(e, 0, &want);
		rc = events_loss(e, loss);
		events_close(e);
	}
	sd_event_unref(ev);
	return end(p, rc);
}

const struct fault_work fault_bpf[] = {
	/* a program that cannot be looked at is replaced; rings that nobody
	 * pinned are only looked for */
	{ .name = "program, new", .run = open_work,
	    .borne = "bpf_obj_get unlink bpf_map_lookup_elem" },
	{ .name = "program, adopted", .run = adopt_work, .borne =
	    "bpf_obj_get bpf_obj_get_info_by_fd bpf_map_lookup_elem" },
	/* what was switched off for it stays so */
	{ .name = "program, removed", .run = remove_work,
	    .borne = "bpf_obj_get" },
	/* what cannot be looked at is made anew; veth has nothing to switch
	 * off */
	{ .name = "program, attached", .run = attach_work, .borne =
	    "bpf_obj_get socket ioctl bpf_obj_get_info_by_fd "
	    "bpf_xdp_query bpf_link_detach bpf_map_lookup_elem "
	    "bpf_map_delete_elem" },
	{ .name = "pins, put back", .run = mend_work },
	{ .name = "maps, read", .run = read_work },
	{ .name = "maps, written", .run = write_work, .borne = "unlink" },
	{ .name = "events", .run = events_work },
	/* the last one: its tables do not shrink */
	/* a link that is left out is met at the next turn */
	{ .name = "tables that grow", .run = grow_work, .from = "mmap",
	    .borne = "unlink bpf_obj_get bpf_obj_get_info_by_fd" },
	{ .name = NULL }
};
