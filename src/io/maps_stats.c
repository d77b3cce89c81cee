/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counters summed over the CPUs, and the health verdicts that outlive xlbd. */
#include "io/maps_int.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/rows.h"
#include "io/log.h"

/* `of` is the counters in the first CPU's memory; words, to be added up. */
static int
stats_sum(const struct maps *m, const void *of, uint64_t *sum, size_t size)
{
	const uint64_t *word = of;
	size_t i, n = size / sizeof(*word);
	int cpu;

	memset(sum, 0, size);
	for (cpu = 0; cpu < m->ncpu; cpu++) {
		for (i = 0; i < n; i++)
			sum[i] += __atomic_load_n(&word[i], __ATOMIC_RELAXED);
		word += sizeof(*m->stats) / sizeof(*word);
	}
	return 0;
}

int
maps_reasons(struct maps *m, struct xlb_reasons *out)
{
	return stats_sum(m, &m->stats->reasons, (uint64_t *)out, sizeof(*out));
}

int
maps_service_stats(struct maps *m, uint32_t number,
    struct xlb_service_stats *out)
{
	if (number >= XLB_SERVICES)
		return -EINVAL;
	return stats_sum(m, &m->stats->service[number], (uint64_t *)out,
	    sizeof(*out));
}

int
maps_backend_stats(struct maps *m, uint32_t number,
    struct xlb_backend_stats *out)
{
	if (number >= XLB_BACKENDS)
		return -EINVAL;
	return stats_sum(m, &m->stats->backend[number], (uint64_t *)out,
	    sizeof(*out));
}

int
maps_csum_full(struct maps *m, uint64_t *out)
{
	struct xlb_rare *rare = calloc((size_t)m->ncpu, sizeof(*rare));
	uint32_t zero = 0;
	int rc = 0, cpu;

	_Static_assert(sizeof(*rare) % 8 == 0, "as the kernel lays it out");
	if (rare == NULL)
		fatal("maps");
	*out = 0;
	if (bpf_map_lookup_elem(m->fd[MAP_RARE], &zero, rare) < 0)
		rc = -errno;
	for (cpu = 0; rc == 0 && cpu < m->ncpu; cpu++)
		*out += rare[cpu].csum_full;
	free(rare);
	return rc;
}

void
stats_zero(struct maps *m, void *of, size_t size)
{
	uint64_t *word = of;
	size_t i;
	int cpu;

	for (cpu = 0; cpu < m->ncpu; cpu++) {
		for (i = 0; i < size / sizeof(*word); i++)
			__atomic_store_n(&word[i], 0, __ATOMIC_RELAXED);
		word += sizeof(*m->stats) / sizeof(*word);
	}
}

static struct xlb_health_key
health_key(const struct health_row *row)
{
	struct xlb_health_key key;
	size_t len = strnlen(row->check, sizeof(key.check) - 1);

	memset(&key, 0, sizeof(key));
	memcpy(key.addr, row->addr.b, sizeof(key.addr));
	memcpy(key.vip, row->vip.b, sizeof(key.vip));
	key.port = row->port;
	memcpy(key.check, row->check, len);
	return key;
}

/* What an other version wrote and this one cannot read is as if unknown. */
static bool
health_known(const struct xlb_health *h)
{
	return h->state <= HEALTH_DRAIN && (h->why & 0xffff) < PROBE_RESULTS;
}

int
maps_health_read(struct maps *m, struct arena *a, struct health_table *t)
{
	int fd = m->fd[MAP_HEALTH];
	struct xlb_health_key key, next;
	struct health_row *row;
	struct xlb_health h;
	void *from = NULL;

	memset(t, 0, sizeof(*t));
	while (bpf_map_get_next_key(fd, from, &next) == 0) {
		key = next;
		from = &key;
		if (bpf_map_lookup_elem(fd, &key, &h) < 0 ||
		    !health_known(&h))
			continue;
		row = arena_grow(a, &t->row, t->n++, sizeof(*row));
		memcpy(row->addr.b, key.addr, sizeof(row->addr.b));
		memcpy(row->vip.b, key.vip, sizeof(row->vip.b));
		row->port = key.port;
		row->check = arena_printf(a, "%.*s",
		    (int)sizeof(key.check) - 1, key.check);
		row->fsm.state = (enum health_state)h.state;
		row->passed = h.passed != 0 || health_is_alive(row->fsm.state);
		row->fsm.why = row->fsm.last = (enum probe_result)
		    (h.why & 0xffff);
		row->fsm.detail = row->fsm.asked = (uint16_t)(h.why >> 16);
		row->since = h.since;
	}
	if (errno != ENOENT)
		return -errno;
	rows_sort(t->row, t->n, sizeof(*t->row), health_row_cmp);
	return 0;
}

int
maps_health_put(struct maps *m, const struct health_row *row)
{
	struct xlb_health_key key = health_key(row);
	struct xlb_health h = { .state = (__u16)row->fsm.state,
	    .passed = row->passed,
	    .why = row->fsm.why | (uint32_t)row->fsm.detail << 16,
	    .since = row->since };

	if (bpf_map_update_elem(m->fd[MAP_HEALTH], &key, &h, BPF_ANY) < 0)
		return -errno;
	return 0;
}

int
maps_health_del(struct maps *m, const struct health_row *row)
{
	struct xlb_health_key key = health_key(row);

	if (bpf_map_delete_elem(m->fd[MAP_HEALTH], &key) < 0 &&
	    errno != ENOENT)
		return -errno;
	return 0;
}
