/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rings: each a map of its own, pinned in rings/NUMBER and named by ring_table.
 * The pin is the truth: it comes before the table's entry, and goes after it.
 */
#include "io/maps_int.h"

#include <bpf/bpf.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/ring_words.h"
#include "core/sweep.h"
#include "io/log.h"

static const char *
ring_path(char buf[MAPS_PATH_MAX], const char *dir, uint32_t number,
    const char *suffix)
{
	snprintf(buf, MAPS_PATH_MAX, "%s/rings/%u%s", dir, number, suffix);
	return buf;
}

/* The name of a pin as a number below `end`; -1: it is none of ours. */
static long
pin_number(const char *name, unsigned long end)
{
	char *stop;
	unsigned long n;

	n = strtoul(name, &stop, 10);
	if (*name < '0' || *name > '9' || *stop != '\0' || n >= end)
		return -1;
	return (long)n;
}

static int
ring_fd_check(int fd, uint32_t number, uint32_t ring_size, uint32_t *id)
{
	struct bpf_map_info info;
	uint32_t len = sizeof(info);

	memset(&info, 0, sizeof(info));
	if (bpf_obj_get_info_by_fd(fd, &info, &len) < 0)
		return -errno;
	if (info.value_size != xlb_ring_bytes(ring_size)) {
		log_warnx("maps: ring %u holds %u bytes, maglev.table_size %u "
		    "needs %zu: drain the node, then xlb restart --flush",
		    number, info.value_size, ring_size,
		    (size_t)xlb_ring_bytes(ring_size));
		return -EEXIST;
	}
	*id = info.id;
	return 0;
}

/* Calls `fn` for each pinned ring until it fails. */
static int
ring_each(const char *dir, int (*fn)(void *arg, uint32_t number, int fd),
    void *arg)
{
	char path[MAPS_PATH_MAX];
	struct dirent *e;
	int fd, rc = 0;
	long n;
	DIR *d;

	snprintf(path, sizeof(path), "%s/rings", dir);
	d = opendir(path);
	if (d == NULL)
		return errno == ENOENT ? 0 : -errno;
	while (rc == 0 && (e = readdir(d)) != NULL) {
		n = pin_number(e->d_name, XLB_RINGS);
		if (n < 0)
			continue;
		fd = bpf_obj_get(ring_path(path, dir, (uint32_t)n, ""));
		if (fd < 0) {
			rc = -errno;
			log_warn("maps: %s", path);
			break;
		}
		rc = fn(arg, (uint32_t)n, fd);
		close(fd);
	}
	closedir(d);
	return rc;
}

static int
check_one(void *arg, uint32_t number, int fd)
{
	uint32_t id;

	return ring_fd_check(fd, number, *(uint32_t *)arg, &id);
}

int
ring_check(const char *dir, uint32_t ring_size)
{
	return ring_each(dir, check_one, &ring_size);
}

static int
table_put(struct maps *m, uint32_t number, int fd)
{
	/* ends in synchronize_rcu: nobody reads the ring before this one */
	if (bpf_map_update_elem(m->fd[MAP_RING_TABLE], &number, &fd,
	    BPF_ANY) < 0)
		return -errno;
	return 0;
}

/* A pin that the table does not name was being made, or being removed; either
 * way it is whole. */
static int
adopt_one(void *arg, uint32_t number, int fd)
{
	struct maps *m = arg;
	struct maps_ring *r = &m->ring[number];
	uint32_t id, seen;
	int rc;

	rc = ring_fd_check(fd, number, m->ring_size, &id);
	if (rc < 0)
		return rc;
	if (bpf_map_lookup_elem(m->fd[MAP_RING_TABLE], &number, &seen) < 0 ||
	    seen != id) {
		log_debug("maps: ring %u was left half done", number);
		rc = table_put(m, number, fd);
		if (rc < 0)
			return rc;
	}
	r->fd = dup(fd);
	r->map = maps_map(fd, xlb_ring_bytes(m->ring_size));
	if (r->fd < 0 || r->map == NULL)
		return -errno;
	sweep_ring(m->sweep, number, r->map);
	return 0;
}

static bool
ring_named(const struct maps *m, uint32_t number)
{
	const struct xlb_service *s;
	uint32_t i;

	for (i = 0; i < XLB_TABLE_ROWS; i++) {
		s = &m->tables->service[i];
		if (s->key & XLB_SERVICE_VALID &&
		    XLB_WORD_RING(s->word) == number)
			return true;
	}
	return false;
}

/* In the table without a pin: somebody removed it. It cannot be read, so it
 * goes, but not before services have moved to another. */
static void
ring_orphans(struct maps *m)
{
	uint32_t n, id;

	for (n = 0; n < XLB_RINGS; n++) {
		if (m->ring[n].fd >= 0 || bpf_map_lookup_elem(
		    m->fd[MAP_RING_TABLE], &n, &id) < 0)
			continue;
		log_warnx("maps: ring %u has lost its pin", n);
		if (!ring_named(m, n))
			bpf_map_delete_elem(m->fd[MAP_RING_TABLE], &n);
	}
}

int
ring_adopt(struct maps *m)
{
	int rc = ring_each(m->dir, adopt_one, m);

	if (rc == 0)
		ring_orphans(m);
	return rc;
}

/* Pinned under a name of its own first, then moved to its place. */
static int
ring_pin(const struct maps *m, uint32_t number, int fd)
{
	char tmp[MAPS_PATH_MAX], path[MAPS_PATH_MAX];

	ring_path(tmp, m->dir, number, "-new");
	unlink(tmp);
	if (bpf_obj_pin(fd, tmp) < 0)
		return -errno;
	if (rename(tmp, ring_path(path, m->dir, number, "")) < 0)
		return -errno;
	return 0;
}

int
ring_mend(struct maps *m, size_t *pins, size_t *entries)
{
	char path[MAPS_PATH_MAX];
	uint32_t n, id, seen;
	int rc = 0;

	for (n = 0; rc == 0 && n < XLB_RINGS; n++) {
		if (m->ring[n].fd < 0)
			continue;
		if (access(ring_path(path, m->dir, n, ""), F_OK) < 0) {
			rc = ring_pin(m, n, m->ring[n].fd);
			*pins += rc == 0;
		}
		if (rc == 0)
			rc = ring_fd_check(m->ring[n].fd, n, m->ring_size, &id);
		if (rc < 0 || (bpf_map_lookup_elem(m->fd[MAP_RING_TABLE], &n,
		    &seen) == 0 && seen == id))
			continue;
		rc = table_put(m, n, m->ring[n].fd);
		*entries += rc == 0;
	}
	return rc;
}

uint32_t *
ring_part(const struct maps *m, struct xlb_ring *ring, uint32_t part)
{
	return ring->slot + (size_t)part * m->ring_size;
}

/* 32-bit stores alone: a packet may be reading this half, and must find either
 * word whole. */
static void
part_write(const struct maps *m, struct xlb_ring *ring, uint32_t part,
    const uint32_t *from)
{
	uint32_t *to = ring_part(m, ring, part), i;

	for (i = 0; i < m->ring_size; i++)
		__atomic_store_n(&to[i], from[i], __ATOMIC_RELAXED);
}

/* Only words that differ are written. `add`: what is there stays, too. */
static void
roles_write(struct xlb_ring *ring, const uint32_t *roles, bool add)
{
	uint32_t i, word;

	for (i = 0; i < RING_MEMBER_WORDS; i++) {
		word = add ? ring->member[i] | roles[i] : roles[i];
		if (word != ring->member[i])
			__atomic_store_n(&ring->member[i], word,
			    __ATOMIC_RELEASE);
	}
}

static void
ring_let_go(struct maps *m, struct maps_ring *r)
{
	if (r->fd < 0)
		return;
	close(r->fd);
	m->dead = realloc(m->dead, (m->ndead + 1) * sizeof(m->dead[0]));
	if (m->dead == NULL)
		fatal("maps");
	m->dead[m->ndead++] = r->map;
	r->fd = -1;
	r->map = NULL;
}

void
ring_bury(struct maps *m)
{
	while (m->ndead > 0)
		maps_unmap(m->dead[--m->ndead], xlb_ring_bytes(m->ring_size));
	free(m->dead);
	m->dead = NULL;
}

static void
ring_fill(const struct maps *m, struct xlb_ring *ring, const struct op_ring *r)
{
	ring->active = 0;
	ring->size = m->ring_size;
	snprintf(ring->pool, sizeof(ring->pool), "%s", r->pool);
	roles_write(ring, r->roles, false);
	part_write(m, ring, 0, r->slot);
	part_write(m, ring, 1, r->slot);
	if (r->past != NULL)
		part_write(m, ring, 2, r->past);
}

int
ring_new(struct maps *m, const struct op_ring *r)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);
	size_t size = xlb_ring_bytes(m->ring_size);
	struct maps_ring ring = { .fd = -1 };
	int rc;

	if (r->number >= XLB_RINGS || r->size != m->ring_size)
		return -EINVAL;
	if (m->ring[r->number].fd >= 0 &&
	    strcmp(m->ring[r->number].map->pool, r->pool) == 0)
		return ring_slots(m, r);
	ring.fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "xlb_ring",
	    sizeof(uint32_t), (uint32_t)size, 1, &opts);
	if (ring.fd < 0)
		return -errno;
	ring.map = maps_map(ring.fd, size);
	if (ring.map == NULL) {
		rc = -errno;
		goto out;
	}
	ring_fill(m, ring.map, r);
	rc = ring_pin(m, r->number, ring.fd);
	if (rc == 0)
		rc = table_put(m, r->number, ring.fd);
	if (rc < 0)
		goto out;
	ring_let_go(m, &m->ring[r->number]);
	m->ring[r->number] = ring;
	sweep_ring(m->sweep, r->number, ring.map);
	return 0;
out:
	if (ring.map != NULL)
		maps_unmap(ring.map, size);
	close(ring.fd);
	return rc;
}

static int
ring_find(struct maps *m, const struct op_ring *r, struct xlb_ring **ring)
{
	if (r->number >= XLB_RINGS || m->ring[r->number].fd < 0)
		return -ENOENT;
	if (r->size != m->ring_size)
		return -EINVAL;
	*ring = m->ring[r->number].map;
	if (strcmp((*ring)->pool, r->pool) != 0)
		snprintf((*ring)->pool, sizeof((*ring)->pool), "%s", r->pool);
	return 0;
}

/* A backend is a member before a slot names it, and ceases to be one after the
 * last slot. `past` comes last: one that is older than its slot says less, one
 * that is newer would say that the next owner has been it. */
int
ring_slots(struct maps *m, const struct op_ring *r)
{
	struct xlb_ring *ring;
	uint32_t next;
	int rc;

	rc = ring_find(m, r, &ring);
	if (rc < 0)
		return rc;
	next = ring->active & 1 ? 0 : 1;
	sweep_ring_moves(m->sweep, r->number,
	    ring_part(m, ring, ring->active & 1), r->slot);
	roles_write(ring, r->roles, true);
	part_write(m, ring, next, r->slot);
	__atomic_store_n(&ring->active, next, __ATOMIC_RELEASE);
	if (r->past != NULL)
		part_write(m, ring, 2, r->past);
	roles_write(ring, r->roles, false);
	m->unsettled = true;
	return 0;
}

int
ring_roles(struct maps *m, const struct op_ring *r)
{
	struct xlb_ring *ring;
	int rc;

	rc = ring_find(m, r, &ring);
	if (rc < 0)
		return rc;
	sweep_ring_roles(m->sweep, r->number);
	roles_write(ring, r->roles, false);
	m->unsettled = true;
	return 0;
}

int
ring_del(struct maps *m, uint32_t number)
{
	char path[MAPS_PATH_MAX];

	if (number >= XLB_RINGS)
		return -EINVAL;
	if (bpf_map_delete_elem(m->fd[MAP_RING_TABLE], &number) < 0 &&
	    errno != ENOENT)
		return -errno;
	if (unlink(ring_path(path, m->dir, number, "")) < 0 && errno != ENOENT)
		return -errno;
	sweep_ring(m->sweep, number, NULL);
	ring_let_go(m, &m->ring[number]);
	return 0;
}
