/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The directory of pinned links, and what hangs on a link. */
#include "decap/decap.h"

#include <bpf/bpf.h>
#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <linux/magic.h>

#define PROGRAM_MAPS 16	/* more than any version has */

static const char *const map_name[MAP_COUNT] = {
	[MAP_SETTINGS] = "settings", [MAP_FROM] = "from", [MAP_VIPS] = "vips",
	[MAP_LOCALS] = "locals", [MAP_COUNTERS] = "counters",
};

/* Whoever may write here could have us replace his link, or hide ours. */
static int
directory_check(const char *dir, int fd)
{
	struct statfs fs;
	struct stat st;

	if (fstat(fd, &st) < 0 || fstatfs(fd, &fs) < 0) {
		warn("%s", dir);
		return -1;
	}
	if (fs.f_type != BPF_FS_MAGIC) {
		warnx("%s: not on a BPF file system "
		    "(mount -t bpf bpf /sys/fs/bpf)", dir);
		return -1;
	}
	if (st.st_uid != geteuid() || (st.st_mode & 077) != 0) {
		warnx("%s: not ours: owner %u, mode %04o; wanted: owner %u, "
		    "mode 0700", dir, (unsigned)st.st_uid,
		    (unsigned)st.st_mode & 07777, (unsigned)geteuid());
		return -1;
	}
	return 0;
}

/* One that another xlb-decap removed while we waited for it is of no use. */
static bool
directory_current(const char *dir, int fd)
{
	struct stat a, b;

	return fstat(fd, &a) == 0 && lstat(dir, &b) == 0 &&
	    a.st_ino == b.st_ino && a.st_dev == b.st_dev;
}

int
pins_open(const char *dir, bool make, struct pins *out)
{
	out->dir = dir;
	for (;;) {
		if (make && mkdir(dir, 0700) < 0 && errno != EEXIST) {
			warn("%s", dir);
			if (errno == EPERM)
				warnx("a BPF file system takes no name with a "
				    "dot; is one mounted there?");
			return -1;
		}
		out->fd = open(dir,
		    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (out->fd < 0 && errno == ENOENT)
			return 0;
		if (out->fd < 0) {
			warn("%s", dir);
			return -1;
		}
		if (flock(out->fd, LOCK_EX) < 0) {
			warn("%s: lock", dir);
			break;
		}
		if (directory_current(dir, out->fd)) {
			if (directory_check(dir, out->fd) < 0)
				break;
			return 0;
		}
		close(out->fd);
	}
	close(out->fd);
	out->fd = -1;
	return -1;
}

void
pins_close(struct pins *p)
{
	if (p->fd < 0)
		return;
	rmdir(p->dir);	/* fails unless it is empty, as it should */
	close(p->fd);
	p->fd = -1;
}

static int
index_cmp(const void *a, const void *b)
{
	const unsigned *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

size_t
pins_list(const struct pins *p, unsigned **out)
{
	unsigned *list = NULL, index;
	struct dirent *e;
	size_t n = 0;
	DIR *d;
	char *end;

	*out = NULL;
	if (p->fd < 0)
		return 0;
	d = opendir(p->dir);
	if (d == NULL)
		err(EXIT_FAILED, "%s", p->dir);
	while ((e = readdir(d)) != NULL) {
		index = (unsigned)strtoul(e->d_name, &end, 10);
		if (index == 0 || *end != '\0')
			continue;
		list = reallocarray(list, n + 1, sizeof(*list));
		if (list == NULL)
			err(EXIT_FAILED, "memory");
		list[n++] = index;
	}
	closedir(d);
	if (n > 0)
		qsort(list, n, sizeof(*list), index_cmp);
	*out = list;
	return n;
}

static void
pin_path(const struct pins *p, unsigned ifindex, char buf[PATH_MAX])
{
	snprintf(buf, PATH_MAX, "%s/%u", p->dir, ifindex);
}

int
pins_put(const struct pins *p, unsigned ifindex, int link)
{
	char path[PATH_MAX];

	pin_path(p, ifindex, path);
	return bpf_obj_pin(link, path);
}

int
pins_remove(const struct pins *p, unsigned ifindex)
{
	char path[PATH_MAX];

	pin_path(p, ifindex, path);
	return unlink(path) < 0 ? -errno : 0;
}

/* Which of ours is this map? It is closed if none. */
static void
instance_take(struct instance *i, int fd)
{
	struct bpf_map_info info = { .type = 0 };
	uint32_t len = sizeof(info);
	int m;

	if (bpf_obj_get_info_by_fd(fd, &info, &len) == 0) {
		for (m = 0; m < MAP_COUNT; m++) {
			if (i->map[m] < 0 &&
			    strcmp(info.name, map_name[m]) == 0) {
				i->map[m] = fd;
				return;
			}
		}
	}
	close(fd);
}

static int
instance_maps(struct instance *i)
{
	uint32_t id[PROGRAM_MAPS], len, m;
	struct bpf_prog_info info = {
		.map_ids = (uintptr_t)id,
		.nr_map_ids = PROGRAM_MAPS,
	};
	int fd;

	len = sizeof(info);
	if (bpf_obj_get_info_by_fd(i->prog, &info, &len) < 0)
		return -errno;
	for (m = 0; m < info.nr_map_ids && m < PROGRAM_MAPS; m++) {
		fd = bpf_map_get_fd_by_id(id[m]);
		if (fd < 0)
			return fd;
		instance_take(i, fd);
	}
	return 0;
}

int
instance_open(const struct pins *p, unsigned ifindex, struct instance *out)
{
	struct bpf_link_info info;
	uint32_t len = sizeof(info);
	char path[PATH_MAX];
	int m, r;

	memset(out, 0, sizeof(*out));
	out->link = out->prog = -1;
	for (m = 0; m < MAP_COUNT; m++)
		out->map[m] = -1;
	if (p->fd < 0)
		return -ENOENT;
	pin_path(p, ifindex, path);
	out->link = bpf_obj_get(path);
	if (out->link < 0)
		return out->link;
	memset(&info, 0, sizeof(info));
	r = bpf_obj_get_info_by_fd(out->link, &info, &len);
	if (r == 0 && info.type != BPF_LINK_TYPE_XDP)
		r = -EMEDIUMTYPE;
	if (r == 0) {
		out->ifindex = info.xdp.ifindex;
		out->prog_id = info.prog_id;
		out->prog = bpf_prog_get_fd_by_id(info.prog_id);
		r = out->prog < 0 ? out->prog : instance_maps(out);
	}
	if (r < 0) {
		instance_close(out);
		return r;
	}
	if (out->map[MAP_SETTINGS] < 0 ||
	    bpf_map_lookup_elem(out->map[MAP_SETTINGS], &(uint32_t){ 0 },
	    &out->settings) < 0 || out->settings.abi != DECAP_ABI)
		out->settings.abi = 0;
	return 0;
}

void
instance_close(struct instance *i)
{
	int m;

	for (m = 0; m < MAP_COUNT; m++) {
		if (i->map[m] >= 0)
			close(i->map[m]);
		i->map[m] = -1;
	}
	if (i->prog >= 0)
		close(i->prog);
	if (i->link >= 0)
		close(i->link);
	i->prog = i->link = -1;
}
