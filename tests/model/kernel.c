/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Maps in files, and libbpf's calls on them as far as io/maps makes them. */
#include "kernel_int.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/log.h"

/* A map: a file, named by its inode in DIR/maps. */
struct kernel_map {
	int fd;
	uint64_t id;
	size_t value, entries;
	void *memory;
};

struct kernel {
	struct kernel *next;	/* of those there are */
	char dir[128];
	uint32_t ring_size, entries;
	struct kernel_map map[MAP_IDS];
	struct xlb_ring *ring[XLB_RINGS];	/* as ring_table names them */
	uint64_t ring_id[XLB_RINGS];
	struct maps *maps;	/* xlbd's; NULL: it does not run */
};

/* The machine that libbpf's calls are about, and all there are. */
static struct kernel *kernel_now, *machines;

void
kernel_use(struct kernel *k)
{
	kernel_now = k;
}

/* Values of ring_table: the ring's id, 0: none. */
static uint64_t *
ring_table(const struct kernel *k)
{
	return k->map[MAP_RING_TABLE].memory;
}

static int
failed(int error)
{
	errno = error;
	return -error;
}

static uint64_t
fd_id(int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		fatal("fstat");
	return st.st_ino;
}

static enum map_id
fd_map(int fd)
{
	uint64_t id = fd_id(fd);
	enum map_id i;

	for (i = 0; i < MAP_IDS; i++)
		if (kernel_now->map[i].id == id)
			return i;
	return MAP_IDS;
}

static const char *
map_path(const struct kernel *k, uint64_t id, char buf[256])
{
	snprintf(buf, 256, "%s/maps/%llu", k->dir, (unsigned long long)id);
	return buf;
}

/* A new file of zeros; its descriptor. */
static int
map_create(const struct kernel *k, size_t size)
{
	char tmp[256], path[256];
	int fd;

	snprintf(tmp, sizeof(tmp), "%s/maps/new-XXXXXX", k->dir);
	fd = mkstemp(tmp);
	if (fd < 0 || ftruncate(fd, (off_t)size) < 0 ||
	    rename(tmp, map_path(k, fd_id(fd), path)) < 0)
		fatal("%s", tmp);
	return fd;
}

int
bpf_map_create(enum bpf_map_type type, const char *name, __u32 key_size,
    __u32 value_size, __u32 max_entries, const struct bpf_map_create_opts *o)
{
	(void)type;
	(void)name;
	(void)key_size;
	(void)o;
	return map_create(kernel_now, (size_t)value_size * max_entries);
}

int
bpf_obj_pin(int fd, const char *path)
{
	char from[256];

	return link(map_path(kernel_now, fd_id(fd), from), path) < 0 ?
	    failed(errno) : 0;
}

int
bpf_obj_get(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);

	return fd < 0 ? failed(errno) : fd;
}

int
bpf_obj_get_info_by_fd(int fd, void *to, __u32 *len)
{
	struct bpf_map_info *info = to;
	struct stat st;
	enum map_id i = fd_map(fd);

	(void)len;
	if (fstat(fd, &st) < 0)
		return failed(errno);
	info->id = (uint32_t)st.st_ino;
	info->value_size = (uint32_t)(i < MAP_IDS ? kernel_now->map[i].value :
	    (size_t)st.st_size);
	info->max_entries = (uint32_t)((size_t)st.st_size / info->value_size);
	return 0;
}

/* A ring that was out of the table has lost its name there; it is pinned. */
static void
map_name_again(const struct kernel *k, int fd)
{
	char path[256], self[64];

	map_path(k, fd_id(fd), path);
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	if (access(path, F_OK) < 0 && linkat(AT_FDCWD, self, AT_FDCWD, path,
	    AT_SYMLINK_FOLLOW) < 0)
		fatal("%s", path);
}

int
bpf_map_update_elem(int fd, const void *key, const void *value, __u64 flags)
{
	struct kernel *k = kernel_now;
	uint32_t at;
	int inner;

	(void)flags;
	memcpy(&at, key, sizeof(at));
	switch (fd_map(fd)) {
	case MAP_GRACE:
		return 0;
	case MAP_TX_PORTS:
		if (at >= XLB_PORTS)
			return failed(E2BIG);
		((uint8_t *)k->map[MAP_TX_PORTS].memory)[at] = 1;
		return 0;
	case MAP_RING_TABLE:
		if (at >= XLB_RINGS)
			return failed(E2BIG);
		memcpy(&inner, value, sizeof(inner));
		map_name_again(k, inner);
		ring_table(k)[at] = fd_id(inner);
		kernel_sync(k);
		return 0;
	default:
		return failed(EINVAL);
	}
}

int
bpf_map_lookup_elem(int fd, const void *key, void *value)
{
	const struct kernel *k = kernel_now;
	uint32_t at, id;

	memcpy(&at, key, sizeof(at));
	switch (fd_map(fd)) {
	case MAP_FLOW_STATS:
		memcpy(value, k->map[MAP_FLOW_STATS].memory,
		    k->map[MAP_FLOW_STATS].value);
		return 0;
	case MAP_RING_TABLE:
		if (at >= XLB_RINGS || ring_table(k)[at] == 0)
			return failed(ENOENT);
		id = (uint32_t)ring_table(k)[at];
		memcpy(value, &id, sizeof(id));
		return 0;
	default:
		return failed(EINVAL);
	}
}

int
bpf_map_delete_elem(int fd, const void *key)
{
	struct kernel *k = kernel_now;
	uint32_t at;

	memcpy(&at, key, sizeof(at));
	switch (fd_map(fd)) {
	case MAP_TX_PORTS:
		((uint8_t *)k->map[MAP_TX_PORTS].memory)[at] = 0;
		return 0;
	case MAP_RING_TABLE:
		ring_table(k)[at] = 0;
		kernel_sync(k);
		return 0;
	default:
		return failed(EINVAL);
	}
}

int
bpf_map_get_next_key(int fd, const void *key, void *next)
{
	const uint8_t *port = kernel_now->map[MAP_TX_PORTS].memory;
	uint32_t at = 0;

	if (fd_map(fd) != MAP_TX_PORTS)
		return failed(EINVAL);
	if (key != NULL) {
		memcpy(&at, key, sizeof(at));
		at++;
	}
	for (; at < XLB_PORTS; at++)
		if (port[at]) {
			memcpy(next, &at, sizeof(at));
			return 0;
		}
	return failed(ENOENT);
}

int
libbpf_num_possible_cpus(void)
{
	return 1;
}

libbpf_print_fn_t
libbpf_set_print(libbpf_print_fn_t fn)
{
	return fn;
}

static void
ring_unmap(struct kernel *k, uint32_t n)
{
	char path[256];

	if (k->ring[n] == NULL)
		return;
	maps_unmap(k->ring[n], xlb_ring_bytes(k->ring_size));
	k->ring[n] = NULL;
	unlink(map_path(k, k->ring_id[n], path));
}

void
kernel_sync(struct kernel *k)
{
	const uint64_t *id = ring_table(k);
	char path[256];
	uint32_t n;
	int fd;

	for (n = 0; n < XLB_RINGS; n++) {
		if (id[n] == k->ring_id[n])
			continue;
		ring_unmap(k, n);
		k->ring_id[n] = id[n];
		if (id[n] == 0)
			continue;
		fd = open(map_path(k, id[n], path), O_RDWR | O_CLOEXEC);
		if (fd < 0)
			fatal("%s", path);
		k->ring[n] = maps_map(fd, xlb_ring_bytes(k->ring_size));
		close(fd);
	}
}

static void
map_open(struct kernel *k, enum map_id i, size_t value, size_t entries)
{
	struct kernel_map *m = &k->map[i];

	m->value = value;
	m->entries = entries;
	m->fd = map_create(k, value * entries);
	m->id = fd_id(m->fd);
	m->memory = maps_map(m->fd, value * entries);
	if (m->memory == NULL)
		fatal("map");
}

static void
maps_make(struct kernel *k)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/maps", k->dir);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/rings", k->dir);
	mkdir(path, 0700);
	map_open(k, MAP_TABLES, sizeof(struct xlb_tables), 1);
	map_open(k, MAP_RING_TABLE, sizeof(uint64_t), XLB_RINGS);
	map_open(k, MAP_TX_PORTS, 1, XLB_PORTS);
	map_open(k, MAP_STATS, sizeof(struct xlb_stats), 1);
	map_open(k, MAP_HEALTH, 8, 1);
	map_open(k, MAP_GRACE, 8, 1);
	map_open(k, MAP_SAVED, 8, 1);
	map_open(k, MAP_FRAGMENTS, 8, 1);
	map_open(k, MAP_RARE, sizeof(struct xlb_rare), 1);
	map_open(k, MAP_EVENTS, 8, 1);
	map_open(k, MAP_EVENT_STATE, 8, 1);
	map_open(k, MAP_FLOWS, sizeof(struct xlb_flow_set),
	    k->entries / XLB_FLOW_WAYS);
	map_open(k, MAP_FLOW_STATS, sizeof(struct xlb_flow_stats), 1);
	map_open(k, MAP_NAT, sizeof(struct xlb_nat), XLB_NAT_ROWS_MIN);
}

static int
remove_one(const char *path, const struct stat *st, int type, struct FTW *f)
{
	(void)st;
	(void)type;
	return f->level == 0 ? 0 : remove(path);
}

static void
maps_drop(struct kernel *k)
{
	enum map_id i;
	uint32_t n;

	for (n = 0; n < XLB_RINGS; n++)
		ring_unmap(k, n);
	memset(k->ring_id, 0, sizeof(k->ring_id));
	for (i = 0; i < MAP_IDS; i++) {
		maps_unmap(k->map[i].memory,
		    k->map[i].value * k->map[i].entries);
		close(k->map[i].fd);
	}
	nftw(k->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* However the test ends, nothing is left. */
static void
machines_remove(void)
{
	for (; machines != NULL; machines = machines->next) {
		maps_drop(machines);
		rmdir(machines->dir);
	}
}

static void
on_signal(int sig)
{
	(void)sig;
	exit(1);
}

struct kernel *
kernel_new(uint32_t ring_size, uint32_t entries, char *why, size_t len,
    bool *skip)
{
	struct kernel *k = calloc(1, sizeof(*k));
	const char *tmp = getenv("TMPDIR");
	static bool registered;

	if (k == NULL)
		fatal("kernel");
	if (tmp == NULL)
		tmp = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
	k->ring_size = ring_size;
	k->entries = entries;
	*skip = false;
	snprintf(k->dir, sizeof(k->dir), "%s/xlb-model-XXXXXX", tmp);
	if (mkdtemp(k->dir) == NULL) {
		snprintf(why, len, "%s: %s", k->dir, strerror(errno));
		free(k);
		return NULL;
	}
	maps_make(k);
	k->next = machines;
	machines = k;
	if (!registered) {
		atexit(machines_remove);
		signal(SIGINT, on_signal);
		signal(SIGTERM, on_signal);
	}
	registered = true;
	return k;
}

void
kernel_free(struct kernel *k)
{
	struct kernel **at = &machines;

	if (k == NULL)
		return;
	kernel_leave(k);
	while (*at != k)
		at = &(*at)->next;
	*at = k->next;
	maps_drop(k);
	rmdir(k->dir);
	free(k);
}

void
kernel_reboot(struct kernel *k)
{
	kernel_leave(k);
	maps_drop(k);
	maps_make(k);
}

struct maps *
kernel_adopt(struct kernel *k)
{
	int fd[MAP_IDS];
	enum map_id i;

	kernel_use(k);
	for (i = 0; i < MAP_IDS; i++)
		fd[i] = k->map[i].fd;
	if (maps_open(k->dir, fd, k->ring_size, &k->maps) < 0)
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
	return k->map[MAP_TABLES].memory;
}

struct xlb_flow_set *
kernel_flows(struct kernel *k, uint32_t *sets)
{
	*sets = (uint32_t)k->map[MAP_FLOWS].entries;
	return k->map[MAP_FLOWS].memory;
}

struct xlb_ring *
kernel_ring(struct kernel *k, uint32_t number)
{
	return number < XLB_RINGS ? k->ring[number] : NULL;
}

void *
kernel_value(struct kernel *k, enum map_id map, uint32_t row)
{
	const struct kernel_map *m = &k->map[map];

	return row < m->entries ? (uint8_t *)m->memory + row * m->value : NULL;
}

int
kernel_run(struct kernel *k, uint8_t *buf, uint8_t **frame, size_t *len)
{
	return kernel_run_host(k, k->ring_size, k->entries, buf, frame, len);
}

const char *
kernel_differs(void)
{
	return NULL;
}

void
kernel_flow_stats(struct kernel *k, struct xlb_flow_stats *out)
{
	memcpy(out, k->map[MAP_FLOW_STATS].memory, sizeof(*out));
}
