/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The flow table, its counters, and what is left of backends that are gone. */
#include "io/maps_int.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/ring_words.h"
#include "core/sweep.h"
#include "io/log.h"

static size_t
flows_bytes(uint32_t sets)
{
	return (size_t)sets * sizeof(struct xlb_flow_set);
}

int
flows_map(struct maps *m)
{
	struct bpf_map_info info;
	uint32_t len = sizeof(info);

	memset(&info, 0, sizeof(info));
	if (bpf_obj_get_info_by_fd(m->fd[MAP_FLOWS], &info, &len) < 0)
		return -errno;
	m->flows = maps_map(m->fd[MAP_FLOWS], flows_bytes(info.max_entries));
	if (m->flows == NULL)
		return -errno;
	m->sets = info.max_entries;
	sweep_flows(m->sweep, m->flows, m->sets);
	return 0;
}

void
flows_unmap(struct maps *m)
{
	maps_unmap(m->flows, flows_bytes(m->sets));
	m->flows = NULL;
	m->sets = 0;
}

uint32_t
maps_tick(void)
{
	return (uint32_t)(maps_clock() >> XLB_FLOW_TICK_SHIFT);
}

struct sweep *
maps_sweep(struct maps *m)
{
	return m->sweep;
}

uint32_t
maps_flow_entries(const struct maps *m)
{
	return m->sets * XLB_FLOW_WAYS;
}

const struct xlb_flow_set *
maps_flows(const struct maps *m, uint32_t *sets)
{
	*sets = m->sets;
	return m->flows;
}

/* The row goes last: what names the number is found again until then. */
void
maps_backend_free(struct maps *m, uint32_t number)
{
	struct xlb_backend *to = &m->tables->backend[number];
	struct xlb_ring *ring;
	uint32_t i, mask;

	mask = ~(3U << number % 16 * 2);
	for (i = 0; i < XLB_RINGS; i++) {
		ring = m->ring[i].map;
		if (ring != NULL && ring_member(ring->member, number) != 0)
			__atomic_store_n(&ring->member[number / 16],
			    ring->member[number / 16] & mask,
			    __ATOMIC_RELEASE);
	}
	memset(to, 0, sizeof(*to));
}

int
maps_flow_stats(struct maps *m, struct xlb_flow_stats *out)
{
	struct xlb_flow_stats *cpu = calloc((size_t)m->ncpu, sizeof(*cpu));
	uint64_t *sum = (uint64_t *)out;
	const uint64_t *word = (const uint64_t *)cpu;
	uint32_t zero = 0;
	size_t i, n = sizeof(*out) / sizeof(*sum);
	int rc = 0;

	if (cpu == NULL)
		fatal("maps");
	memset(out, 0, sizeof(*out));
	if (bpf_map_lookup_elem(m->fd[MAP_FLOW_STATS], &zero, cpu) < 0)
		rc = -errno;
	else
		for (i = 0; i < (size_t)m->ncpu * n; i++)
			sum[i % n] += word[i];
	free(cpu);
	return rc;
}

void
maps_grace_fds(const struct maps *m, int *map, int *inner)
{
	*map = m->fd[MAP_GRACE];
	*inner = m->grace_fd;
}
