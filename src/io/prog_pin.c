/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The directory of pins: made, checked, gone through and removed. */
#include "io/prog_int.h"

#include <bpf/bpf.h>
#include <dirent.h>
#include <errno.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "io/log.h"

const char *
pin_path(char buf[MAPS_PATH_MAX], const char *dir, const char *fmt, ...)
{
	va_list ap;
	int n;

	n = snprintf(buf, MAPS_PATH_MAX, "%s/", dir);
	if (n < 0 || n >= MAPS_PATH_MAX)
		return buf;
	va_start(ap, fmt);
	vsnprintf(buf + n, (size_t)(MAPS_PATH_MAX - n), fmt, ap);
	va_end(ap);
	return buf;
}

static bool
on_bpffs(const char *path)
{
	struct statfs fs;

	return statfs(path, &fs) == 0 &&
	    (unsigned long)fs.f_type == BPF_FS_MAGIC;
}

/* A bpffs takes no name with a dot; the way to its mount point may have any. */
static bool
dot_in_bpffs(const char *dir)
{
	char parent[MAPS_PATH_MAX];
	const char *at = dir, *slash;
	size_t len;

	while (*at != '\0') {
		slash = strchrnul(at, '/');
		len = (size_t)(at - dir);
		snprintf(parent, sizeof(parent), "%.*s", (int)len, dir);
		if (memchr(at, '.', (size_t)(slash - at)) != NULL &&
		    (len == 0 ? on_bpffs(".") : on_bpffs(parent)))
			return true;
		at = *slash == '/' ? slash + 1 : slash;
	}
	return false;
}

/* Where `dir` is, or would be made. */
static bool
parent_on_bpffs(const char *dir)
{
	char parent[MAPS_PATH_MAX];
	char *slash;

	snprintf(parent, sizeof(parent), "%s", dir);
	for (slash = parent + strlen(parent); slash > parent + 1 &&
	    slash[-1] == '/';)
		*--slash = '\0';
	slash = strrchr(parent, '/');
	if (slash == NULL)
		return on_bpffs(".");
	slash[slash == parent ? 1 : 0] = '\0';
	return on_bpffs(parent);
}

int
pin_dir_check(const char *dir, bool *there)
{
	struct stat st;

	*there = false;
	if (strlen(dir) > MAPS_PATH_MAX - 64)
		return -ENAMETOOLONG;
	if (dot_in_bpffs(dir)) {
		log_warnx("%s: no name on a bpffs may hold a dot", dir);
		return -EINVAL;
	}
	if (lstat(dir, &st) < 0) {
		if (errno != ENOENT || !parent_on_bpffs(dir))
			goto no_bpffs;
		return 0;
	}
	if (!S_ISDIR(st.st_mode)) {
		log_warnx("%s: not a directory", dir);
		return -ENOTDIR;
	}
	if (!on_bpffs(dir))
		goto no_bpffs;
	if (st.st_uid != geteuid()) {
		log_warnx("%s: was made by user %u: remove it, or choose "
		    "another with --bpf-dir", dir, st.st_uid);
		return -EPERM;
	}
	*there = true;
	return 0;
no_bpffs:
	log_warnx("%s is not on a bpffs: mount -t bpf bpf /sys/fs/bpf", dir);
	return -ENOTDIR;
}

/* Others must not open what is in it, whoever made it and with which umask. */
static int
dir_make(const char *path)
{
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return -errno;
	return chmod(path, 0700) < 0 ? -errno : 0;
}

int
pin_dir_make(const char *dir)
{
	char path[MAPS_PATH_MAX];
	int rc;

	rc = dir_make(dir);
	if (rc == 0)
		rc = dir_make(pin_path(path, dir, "rings"));
	if (rc == 0)
		rc = dir_make(pin_path(path, dir, "links"));
	if (rc < 0) {
		errno = -rc;
		log_warn("%s", dir);
	}
	return rc;
}

int
pin_replace(const char *dir, const char *name, int fd)
{
	char tmp[MAPS_PATH_MAX], path[MAPS_PATH_MAX];

	pin_path(tmp, dir, "%s-new", name);
	unlink(tmp);
	if (bpf_obj_pin(fd, tmp) < 0)
		return -errno;
	if (rename(tmp, pin_path(path, dir, "%s", name)) < 0)
		return -errno;
	return 0;
}

int
pin_links(const char *dir, int (*fn)(void *arg, uint32_t ifindex), void *arg)
{
	char path[MAPS_PATH_MAX], *end;
	struct dirent *e;
	unsigned long n;
	int rc = 0;
	DIR *d;

	d = opendir(pin_path(path, dir, "links"));
	if (d == NULL && errno != ENOENT) {
		rc = -errno;	/* they stay as they are, and somebody has to know */
		log_warn("%s", path);
	}
	if (d == NULL)
		return rc;
	while (rc == 0 && (e = readdir(d)) != NULL) {
		n = strtoul(e->d_name, &end, 10);
		if (n > 0 && n <= INT32_MAX && *end == '\0')
			rc = fn(arg, (uint32_t)n);
	}
	closedir(d);
	return rc;
}

int
pin_link_open(const char *dir, uint32_t ifindex)
{
	char path[MAPS_PATH_MAX];
	int fd = bpf_obj_get(pin_path(path, dir, "links/%u", ifindex));

	return fd < 0 ? -errno : fd;
}

void
pin_link_remove(const char *dir, int saved_fd, uint32_t ifindex)
{
	char path[MAPS_PATH_MAX];
	int fd = pin_link_open(dir, ifindex);

	if (fd >= 0) {
		/* now, and not when the last descriptor is closed */
		bpf_link_detach(fd);
		close(fd);
	}
	if (unlink(pin_path(path, dir, "links/%u", ifindex)) < 0 &&
	    errno != ENOENT)
		log_warn("%s", path);
	offload_restore(saved_fd, ifindex);
}

struct removal {
	const char *dir;
	int saved_fd;
};

static int
remove_link(void *arg, uint32_t ifindex)
{
	const struct removal *r = arg;

	pin_link_remove(r->dir, r->saved_fd, ifindex);
	return 0;
}

/* A directory of ours with all that is in it. */
static int
remove_below(const char *dir, const char *name)
{
	char sub[MAPS_PATH_MAX], path[MAPS_PATH_MAX];
	struct dirent *e;
	DIR *d;

	d = opendir(pin_path(sub, dir, "%s", name));
	if (d == NULL)
		return errno == ENOENT ? 0 : -errno;
	while ((e = readdir(d)) != NULL)
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			unlink(pin_path(path, sub, "%s", e->d_name));
	closedir(d);
	return rmdir(sub) < 0 ? -errno : 0;
}

static int
remove_pin(const char *dir, const char *name)
{
	char path[MAPS_PATH_MAX];

	if (unlink(pin_path(path, dir, "%s", name)) < 0 && errno != ENOENT)
		return -errno;
	return 0;
}

/* Detached first: what is attached needs its maps. The maps go in the reverse
 * order of their making: a crash on the way is like one on the way up. */
int
prog_remove_dir(const char *dir)
{
	struct removal r = { .dir = dir };
	char path[MAPS_PATH_MAX];
	bool there;
	int rc, i;

	rc = pin_dir_check(dir, &there);
	if (rc < 0 || !there)
		return rc;
	r.saved_fd = bpf_obj_get(pin_path(path, dir, "%s",
	    map_name[MAP_SAVED]));
	rc = pin_links(dir, remove_link, &r);
	if (r.saved_fd >= 0)
		close(r.saved_fd);
	if (rc == 0)
		rc = remove_below(dir, "links");
	if (rc == 0)
		rc = remove_below(dir, "rings");
	if (rc == 0)
		rc = remove_pin(dir, "program-new");
	if (rc == 0)
		rc = remove_pin(dir, "program");
	for (i = MAP_IDS - 1; rc == 0 && i >= 0; i--)
		rc = remove_pin(dir, map_name[i]);
	if (rc == 0 && rmdir(dir) < 0 && errno != ENOENT)
		rc = -errno;
	if (rc < 0) {
		errno = -rc;
		log_warn("%s: removing", dir);
	}
	return rc;
}
