/* SPDX-License-Identifier: GPL-2.0-or-later */
/* io/maps_do: what would be beyond the end of a table changes nothing, rings of
 * another size are refused, and what NAT has of the tables comes and goes. */
#include "unit/unit.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/arena.h"
#include "core/ring_words.h"
#include "io/log.h"
#include "io/prog_int.h"
#include "kern.h"

#define RING_SIZE 251

static struct prog *prog;
static struct maps *m;

static int
setup(void **state)
{
	struct prog_config c = { .bpf_dir = KERN_DIR, .ring_size = RING_SIZE,
	    .flow_entries = 1024, .seed = 7 };

	(void)state;
	kern_log_clear();
	assert_int_equal(prog_open(&c, &prog), 0);
	m = prog_maps(prog);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	return kern_prog_end(prog);
}

static int
op(enum op_kind kind, uint32_t id, const void *row)
{
	const struct op o = { .kind = kind, .id = id, .row = row };

	return maps_do(m, &o);
}

static void
numbers_beyond_the_end(void **state)
{
	static const uint32_t slot[RING_SIZE], roles[RING_MEMBER_WORDS];
	const struct state_source source = { .number = XLB_NAT_SOURCES };
	const struct state_door door = { .number = XLB_DOORS };
	const struct state_nexthop hop = { .ifindex = 1 };
	const struct state_backend backend = { .nexthop = 0 };
	const struct state_service service = { .number = XLB_SERVICES };
	const struct state_service of_no_ring = { .ring = XLB_RINGS };
	const struct op_ring ring = { .number = XLB_RINGS, .size = RING_SIZE,
	    .pool = "p", .slot = slot, .roles = roles };
	const struct op_ring small = { .size = RING_SIZE - 1, .pool = "p",
	    .slot = slot, .roles = roles };
	struct xlb_service_stats service_stats;
	struct xlb_backend_stats backend_stats;
	struct xlb_tables *before = malloc(sizeof(*before));

	(void)state;
	assert_non_null(before);
	memcpy(before, m->tables, sizeof(*before));
	assert_int_equal(op(OP_SOURCE_PUT, 0, &source), -EINVAL);
	assert_int_equal(op(OP_SOURCE_DEL, 0, &source), 0);
	assert_int_equal(op(OP_DOOR_PUT, 0, &door), -EINVAL);
	assert_int_equal(op(OP_DOOR_DEL, 0, &door), -EINVAL);
	assert_int_equal(op(OP_NEXTHOP_PUT, XLB_NEXTHOPS, &hop), -EINVAL);
	assert_int_equal(op(OP_NEXTHOP_DEL, XLB_NEXTHOPS, NULL), -EINVAL);
	assert_int_equal(op(OP_NEXTHOP_DEL, 0, NULL), -EINVAL);
	assert_int_equal(op(OP_BACKEND_PUT, XLB_BACKENDS, &backend), -EINVAL);
	assert_int_equal(op(OP_BACKEND_PUT, 0, &backend), -EINVAL);
	assert_int_equal(op(OP_BACKEND_RETIRE, XLB_BACKENDS, NULL), -EINVAL);
	assert_int_equal(op(OP_BACKEND_DEL, XLB_BACKENDS, NULL), -EINVAL);
	assert_int_equal(op(OP_SERVICE_PUT, 0, &service), -EINVAL);
	assert_int_equal(op(OP_SERVICE_PUT, 0, &of_no_ring), -EINVAL);
	assert_int_equal(op(OP_RING_NEW, 0, &ring), -EINVAL);
	assert_int_equal(op(OP_RING_NEW, 0, &small), -EINVAL);
	assert_int_equal(op(OP_RING_DEL, XLB_RINGS, NULL), -EINVAL);
	assert_int_equal(op(OP_KINDS, 0, NULL), -EINVAL);
	assert_int_equal(maps_service_stats(m, XLB_SERVICES, &service_stats),
	    -EINVAL);
	assert_int_equal(maps_backend_stats(m, XLB_BACKENDS, &backend_stats),
	    -EINVAL);
	assert_memory_equal(m->tables, before, sizeof(*before));
	free(before);
}

static int
reopen(uint32_t ring_size)
{
	char path[MAPS_PATH_MAX];
	int fd[MAP_IDS], i, rc;

	maps_close(m);
	for (i = 0; i < MAP_IDS; i++)
		fd[i] = bpf_obj_get(pin_path(path, KERN_DIR, "%s",
		    map_name[i]));
	rc = maps_open(KERN_DIR, fd, ring_size, &prog->maps);
	m = prog->maps = rc == 0 ? prog->maps : NULL;
	for (i = 0; i < MAP_IDS; i++)
		close(fd[i]);
	return rc;
}

static void
rings_of_another_size(void **state)
{
	static const uint32_t slot[RING_SIZE], roles[RING_MEMBER_WORDS];
	const struct op_ring ring = { .number = 3, .size = RING_SIZE,
	    .pool = "p", .slot = slot, .roles = roles };

	(void)state;
	assert_int_equal(op(OP_RING_NEW, 3, &ring), 0);
	assert_int_equal(reopen(1021), -EEXIST);
	assert_non_null(strstr(kern_log(), "drain the node, then xlb restart "
	    "--flush"));
	assert_int_equal(reopen(RING_SIZE), 0);
}

static void
what_nat_has(void **state)
{
	const struct state_source source = { .number = 5,
	    .addr = addr_from4(0x0100000a) };
	const struct state_door door = { .number = 7, .ifindex = 2,
	    .mac = { 2, 0, 0, 0, 0, 9 }, .mtu = 1400 };
	struct arena *a = arena_new();
	struct state found;

	(void)state;
	assert_int_equal(op(OP_SOURCE_PUT, 0, &source), 0);
	assert_int_equal(op(OP_DOOR_PUT, 0, &door), 0);
	assert_int_equal(maps_read(m, a, &found), 0);
	assert_int_equal(found.nsource, 1);
	assert_int_equal(found.source[0].number, 5);
	assert_memory_equal(&found.source[0].addr, &source.addr,
	    sizeof(source.addr));
	assert_int_equal(found.ndoor, 1);
	assert_int_equal(found.door[0].number, 7);
	assert_int_equal(found.door[0].ifindex, 2);
	assert_int_equal(found.door[0].mtu, 1400);
	assert_memory_equal(found.door[0].mac, door.mac, 6);
	assert_int_equal(op(OP_SOURCE_DEL, 0, &source), 0);
	assert_int_equal(op(OP_DOOR_DEL, 0, &door), 0);
	assert_int_equal(maps_read(m, a, &found), 0);
	assert_int_equal(found.nsource, 0);
	assert_int_equal(found.ndoor, 0);
	arena_free(a);
}

int
main(void)
{
	const struct CMUnitTest test[] = {
		cmocka_unit_test(numbers_beyond_the_end),
		cmocka_unit_test(what_nat_has),
		cmocka_unit_test(rings_of_another_size),
	};

	kern_enter();
	kern_bpffs();
	log_init("test_maps_bounds", false);
	log_libbpf();
	return cmocka_run_group_tests_name("maps, bounds", test, setup,
	    teardown);
}
