/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Loaded before xlbd's libraries (LD_PRELOAD): calls that change maps and pins fail
 * or take long, as a file says, and the clock on the wall is another one. The file,
 * XLB_SHIM, holds struct orders; it is read anew at each call. With its descriptor
 * gone, as in the helpers, all is as without.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/types.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SHIM_FD 900		/* out of the way */

struct orders {
	int64_t clock_ns;	/* added to CLOCK_REALTIME */
	int64_t err;		/* errno of the calls below; 0: none fails */
	int64_t at;		/* the call that fails, from 0; -1: every one */
	int64_t calls, failed;	/* so far; written here */
	int64_t pause_us;	/* before each of the calls */
};

static int file = -1;
static __thread int inside;	/* libbpf calls itself */

static void __attribute__((constructor))
shim_open(void)
{
	const char *path = getenv("XLB_SHIM");
	int fd = path != NULL ? open(path, O_RDWR | O_CLOEXEC) : -1;

	if (fd < 0)
		return;
	file = fcntl(fd, F_DUPFD_CLOEXEC, SHIM_FD);
	close(fd);
}

static int
orders_read(struct orders *o)
{
	return pread(file, o, sizeof(*o), 0) == sizeof(*o);
}

/* 1, with errno set: this call fails. */
static int
call_fails(void)
{
	struct orders o;
	int fails;

	if (inside || !orders_read(&o))
		return 0;
	if (o.pause_us > 0)
		usleep((useconds_t)o.pause_us);
	if (o.err == 0)
		return 0;
	fails = o.at < 0 || o.calls == o.at;
	o.calls++;
	o.failed += fails;
	if (pwrite(file, &o, sizeof(o), 0) != sizeof(o))
		abort();
	errno = (int)o.err;
	return fails;
}

#define NEXT(name) ((__typeof__(&name))(uintptr_t)dlsym(RTLD_NEXT, #name))
#define CALL(name, ...) do { \
	int rc_; \
	if (call_fails()) \
		return -errno; \
	inside++; \
	rc_ = NEXT(name)(__VA_ARGS__); \
	inside--; \
	return rc_; \
} while (0)

int bpf_map_update_elem(int, const void *, const void *, __u64);
int bpf_map_delete_elem(int, const void *);
int bpf_obj_pin(int, const char *);
int bpf_map_create(int, const char *, __u32, __u32, __u32, const void *);

int
bpf_map_update_elem(int fd, const void *key, const void *value, __u64 flags)
{
	CALL(bpf_map_update_elem, fd, key, value, flags);
}

int
bpf_map_delete_elem(int fd, const void *key)
{
	CALL(bpf_map_delete_elem, fd, key);
}

int
bpf_obj_pin(int fd, const char *path)
{
	CALL(bpf_obj_pin, fd, path);
}

int
bpf_map_create(int type, const char *name, __u32 key, __u32 value, __u32 max,
    const void *opts)
{
	CALL(bpf_map_create, type, name, key, value, max, opts);
}

int
clock_gettime(clockid_t id, struct timespec *ts)
{
	static int (*next)(clockid_t, struct timespec *);
	struct orders o;
	int64_t ns;
	int rc;

	if (next == NULL)
		next = NEXT(clock_gettime);
	rc = next(id, ts);
	if (rc < 0 || id != CLOCK_REALTIME || !orders_read(&o))
		return rc;
	ns = ts->tv_sec * INT64_C(1000000000) + ts->tv_nsec + o.clock_ns;
	ts->tv_sec = ns / 1000000000;
	ts->tv_nsec = ns % 1000000000;
	return 0;
}
