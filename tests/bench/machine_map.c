/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "machine_map.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <linux/bpf.h>

#define MAPS 64

struct machine_map {
	struct machine_maps *all;
	int fd;			/* the caller's, but of a ring */
	uint32_t id;		/* of an inner map; 0: it is none */
	uint32_t type, flags, entries;
	size_t size;		/* of a value */
	void *memory;		/* all of them, or one of a hash */
};

struct machine_maps {
	struct machine_map map[MAPS];
	size_t n;
};

struct machine_maps *
machine_maps_new(void)
{
	return calloc(1, sizeof(struct machine_maps));
}

static size_t
map_bytes(const struct machine_map *m)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), all = m->size * m->entries;

	return (all + page - 1) / page * page;
}

void
machine_maps_free(struct machine_maps *s)
{
	struct machine_map *m;

	if (s == NULL)
		return;
	while (s->n > 0) {
		m = &s->map[--s->n];
		if (m->flags & BPF_F_MMAPABLE)
			munmap(m->memory, map_bytes(m));
		else
			free(m->memory);
		if (m->id != 0)
			close(m->fd);
	}
	free(s);
}

static int
map_open(struct machine_map *m)
{
	struct bpf_map_info info = { 0 };
	uint32_t len = sizeof(info);

	if (bpf_obj_get_info_by_fd(m->fd, &info, &len) != 0)
		return -1;
	m->type = info.type;
	m->flags = info.map_flags;
	m->entries = info.max_entries;
	m->size = ((size_t)info.value_size + 7) / 8 * 8;
	if (!(m->flags & BPF_F_MMAPABLE)) {
		m->memory = m->type == BPF_MAP_TYPE_PERCPU_ARRAY ?
		    calloc(m->entries, m->size) : calloc(1, m->size);
		return m->memory == NULL ? -1 : 0;
	}
	m->memory = mmap(NULL, map_bytes(m), PROT_READ |
	    (m->flags & BPF_F_RDONLY_PROG ? 0 : PROT_WRITE), MAP_SHARED, m->fd,
	    0);
	if (m->memory != MAP_FAILED)
		return 0;
	m->flags = 0;
	m->memory = NULL;
	return -1;
}

static struct machine_map *
map_new(struct machine_maps *s, int fd, uint32_t id)
{
	struct machine_map *m = &s->map[s->n];

	if (s->n == MAPS) {
		fprintf(stderr, "bench: more than %d maps\n", MAPS);
		return NULL;
	}
	*m = (struct machine_map){ .all = s, .fd = fd, .id = id };
	s->n++;
	if (map_open(m) == 0)
		return m;
	fprintf(stderr, "bench: map: %s\n", strerror(errno));
	return NULL;
}

void *
machine_map(struct machine_maps *s, int fd, int value)
{
	struct machine_map *m = NULL;
	size_t i;

	for (i = 0; i < s->n && m == NULL; i++)
		if (s->map[i].id == 0 && s->map[i].fd == fd)
			m = &s->map[i];
	if (m == NULL)
		m = map_new(s, fd, 0);
	return m == NULL ? NULL : value ? m->memory : (void *)m;
}

static void *
map_inner(struct machine_map *m, const void *key)
{
	struct machine_maps *s = m->all;
	uint32_t id;
	size_t i;
	int fd;

	if (bpf_map_lookup_elem(m->fd, key, &id) != 0)
		return NULL;
	for (i = 0; i < s->n; i++)
		if (s->map[i].id == id)
			return &s->map[i];
	fd = bpf_map_get_fd_by_id(id);
	return fd < 0 ? NULL : map_new(s, fd, id);
}

void *
machine_map_find(struct machine_map *m, const void *key)
{
	uint32_t at;

	switch (m->type) {
	case BPF_MAP_TYPE_ARRAY:
	case BPF_MAP_TYPE_PERCPU_ARRAY:
		memcpy(&at, key, sizeof(at));
		return at < m->entries ? (uint8_t *)m->memory + at * m->size :
		    NULL;
	case BPF_MAP_TYPE_ARRAY_OF_MAPS:
		return map_inner(m, key);
	default:
		return bpf_map_lookup_elem(m->fd, key, m->memory) == 0 ?
		    m->memory : NULL;
	}
}

long
machine_map_put(struct machine_map *m, const void *key, const void *value)
{
	return bpf_map_update_elem(m->fd, key, value, BPF_ANY);
}
