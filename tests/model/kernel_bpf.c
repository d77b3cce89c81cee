/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Maps and program in the kernel. Beside each packet the program that is compiled
 * for this machine runs, on a flow table and counters of its own and on the
 * kernel's rings and tables: verdicts, frames, counters and flow tables have to be
 * the same.
 */
#include "kernel_int.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <ftw.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/log.h"

/* bpftool's code casts const away */
#pragma GCC diagnostic ignored "-Wcast-qual"
#include "xlb_clock.skel.h"

#define RINGS 64		/* that are mapped */

/* A ring by the kernel's number for it: rings come and go, numbers do not. */
struct ring_at {
	uint32_t id;		/* 0: free */
	struct xlb_ring *map;
};

struct kernel {
	struct kernel *next;	/* of those there are */
	bool used;		/* loading takes long: they are used again */
	char dir[128];		/* of the pins */
	uint32_t ring_size, entries;
	struct xlb_clock_bpf *skel;
	int fd[MAP_IDS];	/* the object's */
	struct xlb_tables *tables;
	struct xlb_stats *stats;	/* one for each CPU */
	struct xlb_flow_set *flows;
	struct ring_at ring[RINGS];
	struct maps *maps;	/* xlbd's; NULL: it does not run */
	/* the other program's */
	struct xlb_stats stats_host;
	struct xlb_flow_stats flow_stats_host;
	struct xlb_flow_set *flows_host;
	bool stale;		/* xlbd may have been at the flow table */
};

static struct kernel *machines;
static char mount_dir[64];
static int cpu, ncpu;		/* the one that packets run on */
static struct xlb_flow_stats *every_cpu;	/* scratch */
static char difference[512];

const char *
kernel_differs(void)
{
	return difference[0] != '\0' ? difference : NULL;
}

static void __attribute__((format(printf, 1, 2)))
differs(const char *fmt, ...)
{
	va_list ap;

	if (difference[0] != '\0')
		return;
	va_start(ap, fmt);
	vsnprintf(difference, sizeof(difference), fmt, ap);
	va_end(ap);
}

static size_t
flows_bytes(const struct kernel *k)
{
	return (size_t)k->entries / XLB_FLOW_WAYS * sizeof(*k->flows);
}

static void
flows_compare(const struct kernel *k)
{
	uint32_t i, j;

	if (k->stale || memcmp(k->flows, k->flows_host, flows_bytes(k)) == 0)
		return;
	for (i = 0; i < k->entries / XLB_FLOW_WAYS; i++)
		for (j = 0; j < XLB_FLOW_WAYS; j++)
			if (k->flows[i].entry[j] != k->flows_host[i].entry[j])
				differs("set %u of the flow table, way %u: "
				    "kernel %016llx, this machine %016llx", i,
				    j, (unsigned long long)
				    k->flows[i].entry[j], (unsigned long long)
				    k->flows_host[i].entry[j]);
}

/* xlbd is about to change something; whatever it does is right for both. */
void
kernel_use(struct kernel *k)
{
	flows_compare(k);
	k->stale = true;
}

void
kernel_sync(struct kernel *k)
{
	k->stale = true;
}

static int
remove_one(const char *path, const struct stat *st, int type, struct FTW *f)
{
	(void)st;
	(void)type;
	return f->level == 0 ? 0 : remove(path);
}

/* What every process of this machine had is gone. */
static void
machine_clear(struct kernel *k)
{
	char path[256];
	uint32_t i;

	for (i = 0; i < XLB_RINGS; i++)
		bpf_map_delete_elem(k->fd[MAP_RING_TABLE], &i);
	i = KERNEL_IFINDEX;
	bpf_map_delete_elem(k->fd[MAP_TX_PORTS], &i);
	for (i = 0; i < RINGS; i++) {
		maps_unmap(k->ring[i].map, xlb_ring_bytes(k->ring_size));
		k->ring[i] = (struct ring_at){ 0 };
	}
	memset(k->tables, 0, sizeof(*k->tables));
	memset(k->flows, 0, flows_bytes(k));
	nftw(k->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	snprintf(path, sizeof(path), "%s/rings", k->dir);
	if (mkdir(path, 0700) < 0)
		fatal("%s", path);
	k->stale = true;
}

static int
machine_load(struct kernel *k)
{
	struct xlb_clock_bpf *s = xlb_clock_bpf__open();
	uint32_t sets = k->entries / XLB_FLOW_WAYS;
	int rc;

	if (s == NULL)
		return -errno;
	k->skel = s;
	s->rodata->ring_size = k->ring_size;
	s->rodata->flow_mask = sets - 1;
	rc = bpf_map__set_value_size(bpf_map__inner_map(s->maps.ring_table),
	    (uint32_t)xlb_ring_bytes(k->ring_size));
	if (rc == 0)
		rc = bpf_map__set_max_entries(s->maps.stats, (uint32_t)ncpu);
	if (rc == 0)
		rc = bpf_map__set_max_entries(s->maps.flows, sets);
	return rc == 0 ? xlb_clock_bpf__load(s) : rc;
}

static void
machine_maps(struct kernel *k)
{
	LIBBPF_OPTS(bpf_map_create_opts, o, .map_flags = BPF_F_NO_PREALLOC);
	struct bpf_map *map;
	int i;

	for (i = 0; i < MAP_IDS; i++) {
		map = i == MAP_TABLES ? k->skel->maps.bss :
		    bpf_object__find_map_by_name(k->skel->obj, map_name[i]);
		/* `saved` is xlbd's alone, when it loads */
		k->fd[i] = i != MAP_SAVED ? bpf_map__fd(map) : bpf_map_create(
		    BPF_MAP_TYPE_HASH, map_name[i], sizeof(uint32_t),
		    sizeof(struct xlb_saved), XLB_SAVED, &o);
	}
	k->tables = maps_map(k->fd[MAP_TABLES], sizeof(*k->tables));
	k->stats = maps_map(k->fd[MAP_STATS], (size_t)ncpu * sizeof(*k->stats));
	k->flows = maps_map(k->fd[MAP_FLOWS], flows_bytes(k));
	k->flows_host = calloc(1, flows_bytes(k));
	if (k->tables == NULL || k->stats == NULL || k->flows == NULL ||
	    k->flows_host == NULL)
		fatal("maps");
}

static void
machines_remove(void)
{
	struct kernel *k, *next;

	for (k = machines; k != NULL; k = next) {
		next = k->next;
		xlb_clock_bpf__destroy(k->skel);
		close(k->fd[MAP_SAVED]);
		free(k->flows_host);
		free(k);
	}
	machines = NULL;
	free(every_cpu);
	umount2(mount_dir, MNT_DETACH);
	rmdir(mount_dir);
}

/* A BPF file system that nobody else sees, and one CPU for all packets: budgets
 * and counters are each CPU's own. NULL, or what failed. */
static const char *
world_begin(void)
{
	cpu_set_t one;

	cpu = sched_getcpu();
	ncpu = libbpf_num_possible_cpus();
	CPU_ZERO(&one);
	if (cpu < 0 || ncpu < 0)
		return "which CPU this is";
	every_cpu = calloc((size_t)ncpu, sizeof(*every_cpu));
	if (every_cpu == NULL)
		fatal("flow_stats");
	CPU_SET(cpu, &one);
	if (sched_setaffinity(0, sizeof(one), &one) < 0)
		return "sched_setaffinity";
	snprintf(mount_dir, sizeof(mount_dir), "/tmp/xlb-model-XXXXXX");
	if (unshare(CLONE_NEWNS) < 0)
		return "unshare";
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return "mount";
	if (mkdtemp(mount_dir) == NULL)
		return mount_dir;
	if (mount("bpf", mount_dir, "bpf", 0, NULL) < 0) {
		rmdir(mount_dir);
		return "a BPF file system";
	}
	atexit(machines_remove);
	return NULL;
}

static struct kernel *
machine_new(uint32_t ring_size, uint32_t entries, char *why, size_t len)
{
	struct kernel *k = calloc(1, sizeof(*k));
	static unsigned number;
	int rc;

	if (k == NULL)
		fatal("kernel");
	k->ring_size = ring_size;
	k->entries = entries;
	rc = machine_load(k);
	if (rc < 0) {
		snprintf(why, len, "load: %s", strerror(-rc));
		xlb_clock_bpf__destroy(k->skel);
		free(k);
		return NULL;
	}
	machine_maps(k);
	snprintf(k->dir, sizeof(k->dir), "%s/%u", mount_dir, number++);
	if (mkdir(k->dir, 0700) < 0)
		fatal("%s", k->dir);
	k->next = machines;
	machines = k;
	return k;
}

struct kernel *
kernel_new(uint32_t ring_size, uint32_t entries, char *why, size_t len,
    bool *skip)
{
	const char *failed = NULL;
	struct kernel *k;

	*skip = geteuid() != 0;
	if (*skip) {
		snprintf(why, len, "needs root to load BPF");
		return NULL;
	}
	if (mount_dir[0] == '\0')
		failed = world_begin();
	if (failed != NULL) {
		snprintf(why, len, "%s: %s", failed, strerror(errno));
		return NULL;
	}
	for (k = machines; k != NULL; k = k->next)
		if (!k->used && k->ring_size == ring_size &&
		    k->entries == entries)
			break;
	if (k == NULL)
		k = machine_new(ring_size, entries, why, len);
	if (k == NULL)
		return NULL;
	machine_clear(k);
	k->used = true;
	difference[0] = '\0';
	return k;
}

void
kernel_free(struct kernel *k)
{
	if (k == NULL)
		return;
	kernel_leave(k);
	k->used = false;
}

void
kernel_reboot(struct kernel *k)
{
	kernel_leave(k);
	machine_clear(k);
}

struct maps *
kernel_adopt(struct kernel *k)
{
	kernel_use(k);
	if (maps_open(k->dir, k->fd, k->ring_size, &k->maps) < 0)
		fatalx("the maps cannot be adopted");
	return k->maps;
}

void
kernel_leave(struct kernel *k)
{
	maps_close(k->maps);
	k->maps = NULL;
}

struct xlb_tables *
kernel_tables(struct kernel *k)
{
	return k->tables;
}

struct xlb_flow_set *
kernel_flows(struct kernel *k, uint32_t *sets)
{
	*sets = k->entries / XLB_FLOW_WAYS;
	return k->flows;
}

/* In the place of one that was mapped before, if need be: xlbd has few. */
static struct xlb_ring *
ring_map(struct kernel *k, uint32_t id)
{
	struct ring_at *r = &k->ring[id % RINGS];
	int fd;

	if (r->id == id)
		return r->map;
	maps_unmap(r->map, xlb_ring_bytes(k->ring_size));
	fd = bpf_map_get_fd_by_id(id);
	r->map = fd < 0 ? NULL : maps_map(fd, xlb_ring_bytes(k->ring_size));
	if (r->map == NULL)
		fatal("ring %u", id);
	close(fd);
	r->id = id;
	return r->map;
}

struct xlb_ring *
kernel_ring(struct kernel *k, uint32_t number)
{
	uint32_t id;

	return bpf_map_lookup_elem(k->fd[MAP_RING_TABLE], &number, &id) < 0 ?
	    NULL : ring_map(k, id);
}

void *
kernel_value(struct kernel *k, enum map_id map, uint32_t row)
{
	switch (map) {
	case MAP_TABLES:
		return row == 0 ? k->tables : NULL;
	case MAP_STATS:
		return row == 0 ? &k->stats_host : NULL;
	case MAP_FLOW_STATS:
		return row == 0 ? &k->flow_stats_host : NULL;
	case MAP_FLOWS:
		return row < k->entries / XLB_FLOW_WAYS ?
		    &k->flows_host[row] : NULL;
	default:
		fatalx("the model's packets have no use for map %s",
		    map_name[map]);
	}
}

void
kernel_flow_stats(struct kernel *k, struct xlb_flow_stats *out)
{
	uint32_t zero = 0;

	if (bpf_map_lookup_elem(k->fd[MAP_FLOW_STATS], &zero, every_cpu) < 0)
		fatal("flow_stats");
	*out = every_cpu[cpu];
}

static void
counters_compare(struct kernel *k)
{
	const struct xlb_reasons *a = &k->stats[cpu].reasons;
	const struct xlb_reasons *b = &k->stats_host.reasons;
	struct xlb_flow_stats s;
	uint32_t i;

	for (i = 0; i < XLB_REASON_COUNT; i++)
		if (a->packets[i] != b->packets[i])
			differs("counter of reason %u: kernel %llu, this "
			    "machine %llu", i, (unsigned long long)
			    a->packets[i], (unsigned long long)b->packets[i]);
	kernel_flow_stats(k, &s);
	for (i = 0; i < sizeof(s) / 8; i++)
		if (((uint64_t *)&s)[i] != ((uint64_t *)
		    &k->flow_stats_host)[i])
			differs("word %u of flow_stats: kernel %llu, this "
			    "machine %llu", i, (unsigned long long)
			    ((uint64_t *)&s)[i], (unsigned long long)
			    ((uint64_t *)&k->flow_stats_host)[i]);
}

/* The counters go on from where the kernel's are. */
static void
host_begin(struct kernel *k)
{
	if (!k->stale)
		return;
	memcpy(k->flows_host, k->flows, flows_bytes(k));
	k->stats_host.reasons = k->stats[cpu].reasons;
	kernel_flow_stats(k, &k->flow_stats_host);
	k->stale = false;
}

int
kernel_run(struct kernel *k, uint8_t *buf, uint8_t **frame, size_t *len)
{
	uint8_t out[KERNEL_FRAME_MAX];
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = *frame,
	    .data_size_in = (uint32_t)*len, .data_out = out,
	    .data_size_out = sizeof(out), .repeat = 1);
	int action;

	host_begin(k);
	k->skel->data->clock_ns = kernel_ns();
	k->skel->data->clock_jiffies = kernel_jiffies();
	if (bpf_prog_test_run_opts(bpf_program__fd(k->skel->progs.xlb),
	    &opts) != 0)
		fatal("BPF_PROG_TEST_RUN");
	action = kernel_run_host(k, k->ring_size, k->entries, buf, frame, len);
	if (action != (int)opts.retval)
		differs("verdict: kernel %u, this machine %d", opts.retval,
		    action);
	else if (*len != opts.data_size_out || memcmp(*frame, out, *len) != 0)
		differs("the frame that was sent");
	counters_compare(k);
	/* what is judged is the kernel's */
	*frame = buf;
	*len = opts.data_size_out;
	memcpy(buf, out, *len);
	return (int)opts.retval;
}
