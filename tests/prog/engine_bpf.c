/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The packet program in the kernel, fed by BPF_PROG_TEST_RUN. */
#include "engine.h"

#include <errno.h>
#include <linux/if_ether.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>

/* bpftool's code casts const away */
#pragma GCC diagnostic ignored "-Wcast-qual"
#include "xlb_abi.h"
#include "xlb.skel.h"

#define MAPPINGS 32

static struct xlb_bpf *skel;
static size_t ring_len, split;
static uint32_t verified;
static struct mapping {
	void *at;
	size_t len;
} mapping[MAPPINGS];
static size_t nmapping;
static const struct xlb_stats *stats;
static size_t stats_len;

static int
say_quietly(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	if (level != LIBBPF_WARN)
		return 0;
	return vfprintf(stderr, fmt, ap);
}

int
engine_open(const struct engine_config *c, uint32_t *insns, char *why,
    size_t len)
{
	struct bpf_prog_info info = { 0 };
	uint32_t info_len = sizeof(info), flags;
	int e;

	if (geteuid() != 0) {
		snprintf(why, len, "needs root to load BPF");
		return 1;
	}
	libbpf_set_print(say_quietly);
	skel = xlb_bpf__open();
	if (skel == NULL) {
		snprintf(why, len, "open: %s", strerror(errno));
		return -1;
	}
	skel->rodata->ring_size = c->ring_size;
	skel->rodata->flow_mask = c->flow_entries / XLB_FLOW_WAYS - 1;
	skel->rodata->frags = c->frags;
	if (c->nat_rows != 0)
		skel->rodata->nat_mask = c->nat_rows - 1;
	flags = bpf_program__flags(skel->progs.xlb);
	if (c->frags)
		bpf_program__set_flags(skel->progs.xlb,
		    flags | BPF_F_XDP_HAS_FRAGS);
	ring_len = xlb_ring_bytes(c->ring_size);
	e = bpf_map__set_value_size(bpf_map__inner_map(skel->maps.ring_table),
	    (uint32_t)ring_len);
	if (e == 0)
		e = bpf_map__set_max_entries(skel->maps.stats,
		    (uint32_t)libbpf_num_possible_cpus());
	if (e == 0)
		e = bpf_map__set_max_entries(skel->maps.flows,
		    c->flow_entries / XLB_FLOW_WAYS);
	if (e == 0 && c->nat_rows != 0)
		e = bpf_map__set_max_entries(skel->maps.nat, c->nat_rows);
	if (e == 0)
		e = xlb_bpf__load(skel);
	if (e != 0) {
		snprintf(why, len, "load: %s", strerror(-e));
		return e == -EPERM ? 1 : -1;
	}
	e = bpf_obj_get_info_by_fd(bpf_program__fd(skel->progs.xlb), &info,
	    &info_len);
	*insns = e == 0 ? info.xlated_prog_len / 8 : 0;
	verified = e == 0 ? info.verified_insns : 0;
	return 0;
}

uint32_t
engine_verified(void)
{
	return verified;
}

int
engine_clock(uint64_t ns, uint64_t jiffies)
{
	(void)ns;
	(void)jiffies;
	return -1;
}

int
engine_program(void)
{
	return bpf_program__fd(skel->progs.xlb);
}

const struct bpf_insn *
engine_insns(size_t *n)
{
	*n = bpf_program__insn_cnt(skel->progs.xlb);
	return bpf_program__insns(skel->progs.xlb);
}

static void *
map_memory(int fd, size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *at;

	size = (size + page - 1) / page * page;
	at = nmapping == MAPPINGS ? MAP_FAILED : mmap(NULL, size,
	    PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return NULL;
	mapping[nmapping++] = (struct mapping){ at, size };
	return at;
}

void
engine_close(void)
{
	while (nmapping > 0) {
		nmapping--;
		munmap(mapping[nmapping].at, mapping[nmapping].len);
	}
	stats = NULL;
	xlb_bpf__destroy(skel);
	skel = NULL;
}

void *
engine_map(const char *name, size_t *len)
{
	struct bpf_map *map = strcmp(name, "tables") == 0 ? skel->maps.bss :
	    bpf_object__find_map_by_name(skel->obj, name);

	if (map == NULL || !(bpf_map__map_flags(map) & BPF_F_MMAPABLE))
		return NULL;
	/* elements are rounded up to 8 bytes; ours all are a multiple */
	*len = (size_t)bpf_map__value_size(map) * bpf_map__max_entries(map);
	return map_memory(bpf_map__fd(map), *len);
}

void *
engine_ring(uint32_t number, size_t *len)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "ring", sizeof(uint32_t),
	    (uint32_t)ring_len, 1, &opts);
	void *at;

	if (fd < 0)
		return NULL;
	*len = ring_len;
	at = map_memory(fd, ring_len);
	if (at != NULL && bpf_map_update_elem(
	    bpf_map__fd(skel->maps.ring_table), &number, &fd, 0) != 0)
		at = NULL;
	close(fd);
	return at;
}

/* The key is what the program asks for; the loopback device, which every
 * network namespace has, is where it would lead. */
int
engine_port(uint32_t ifindex)
{
	uint32_t loopback = 1;

	return bpf_map_update_elem(bpf_map__fd(skel->maps.tx_ports), &ifindex,
	    &loopback, 0) == 0 ? 0 : -1;
}

int
engine_split(size_t head)
{
	uint8_t frame[64] = { 0 }, out[ENGINE_FRAME_MAX];
	size_t len;
	int action;

	if (head == 0 || split != 0) {
		split = head;
		return 0;
	}
	split = ETH_HLEN;
	action = engine_run(frame, sizeof(frame), out, &len);
	split = action < 0 ? 0 : head;
	return action < 0 ? action : 0;
}

int
engine_run(const uint8_t *frame, size_t len, uint8_t *out, size_t *out_len)
{
	struct xdp_md ctx = { .data_end = (uint32_t)split };
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = frame,
	    .data_size_in = (uint32_t)len, .data_out = out,
	    .data_size_out = ENGINE_FRAME_MAX, .repeat = 1);
	int e;

	if (split != 0 && split < len) {
		opts.ctx_in = &ctx;
		opts.ctx_size_in = sizeof(ctx);
	}
	e = bpf_prog_test_run_opts(bpf_program__fd(skel->progs.xlb), &opts);

	if (e != 0)
		return e;
	*out_len = opts.data_size_out;
	return (int)opts.retval;
}

int
engine_get(const char *name, const void *key, void *value, size_t *len)
{
	struct bpf_map *map = bpf_object__find_map_by_name(skel->obj, name);

	if (map == NULL)
		return -ENOENT;
	*len = bpf_map__value_size(map);
	return bpf_map_lookup_elem(bpf_map__fd(map), key, value);
}

int
engine_set(const char *name, const void *key, const void *value)
{
	struct bpf_map *map = bpf_object__find_map_by_name(skel->obj, name);

	return map == NULL ? -ENOENT :
	    bpf_map_update_elem(bpf_map__fd(map), key, value, BPF_ANY);
}

int
engine_clear(const char *name)
{
	struct bpf_map *map = bpf_object__find_map_by_name(skel->obj, name);
	uint8_t key[256];
	int e = 0;

	if (map == NULL || bpf_map__key_size(map) > sizeof(key))
		return -ENOENT;
	while (e == 0 &&
	    bpf_map_get_next_key(bpf_map__fd(map), NULL, key) == 0)
		e = bpf_map_delete_elem(bpf_map__fd(map), key);
	return e;
}

int
engine_row_set(const char *name, uint32_t row, const void *value)
{
	struct bpf_map *map = bpf_object__find_map_by_name(skel->obj, name);
	int cpus = libbpf_num_possible_cpus(), cpu, e;
	size_t len, size;
	uint8_t *all;

	if (map == NULL || cpus < 1)
		return -ENOENT;
	len = bpf_map__value_size(map);
	size = (len + 7) / 8 * 8;
	all = calloc((size_t)cpus, size);
	if (all == NULL)
		return -ENOMEM;
	for (cpu = 0; cpu < cpus; cpu++)
		memcpy(all + (size_t)cpu * size, value, len);
	e = bpf_map_update_elem(bpf_map__fd(map), &row, all, BPF_ANY);
	free(all);
	return e;
}

struct taken {
	uint8_t *to;
	size_t len;
};

/* -EINTR ends the reading: one at a time. */
static int
event_take(void *arg, void *data, size_t size)
{
	const struct taken *t = arg;

	if (size != t->len)
		return -EINVAL;
	memcpy(t->to, data, size);
	return -EINTR;
}

int
engine_event(uint8_t *record, size_t len)
{
	static struct ring_buffer *ring;
	static struct taken taken;
	int n;

	if (ring == NULL)
		ring = ring_buffer__new(bpf_map__fd(skel->maps.events),
		    event_take, &taken, NULL);
	if (ring == NULL)
		return -1;
	taken = (struct taken){ record, len };
	n = ring_buffer__consume(ring);
	return n == 0 ? 1 : n == -EINTR ? 0 : -1;
}

static int
percpu_counters(const char *name, uint32_t row, uint64_t *sum, size_t n)
{
	struct bpf_map *map = bpf_object__find_map_by_name(skel->obj, name);
	int cpus = libbpf_num_possible_cpus(), cpu;
	size_t size, i;
	uint64_t *all;

	if (map == NULL || cpus < 1)
		return -1;
	size = (bpf_map__value_size(map) + 7) / 8;
	all = calloc((size_t)cpus * size, sizeof(*all));
	if (all == NULL || n > size ||
	    bpf_map_lookup_elem(bpf_map__fd(map), &row, all) != 0) {
		free(all);
		return -1;
	}
	for (i = 0; i < n; i++)
		for (sum[i] = 0, cpu = 0; cpu < cpus; cpu++)
			sum[i] += all[(size_t)cpu * size + i];
	free(all);
	return 0;
}

int
engine_counters(const char *name, uint32_t row, uint64_t *sum, size_t n)
{
	const uint64_t *word;
	size_t cpu, i;

	if (stats == NULL)
		stats = engine_map("stats", &stats_len);
	if (stats == NULL)
		return -1;
	if (engine_stats(stats, name, row) == NULL)
		return percpu_counters(name, row, sum, n);
	memset(sum, 0, n * sizeof(*sum));
	for (cpu = 0; cpu < stats_len / sizeof(*stats); cpu++) {
		word = engine_stats(&stats[cpu], name, row);
		for (i = 0; i < n; i++)
			sum[i] += word[i];
	}
	return 0;
}
