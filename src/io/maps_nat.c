/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table of NAT, mapped. */
#include "io/maps_int.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "core/nat_sweep.h"

void
nat_take(struct maps *m, struct xlb_nat *table, uint32_t rows)
{
	maps_unmap(m->nat, (size_t)m->nat_rows * sizeof(*m->nat));
	m->nat = table;
	m->nat_rows = rows;
	nat_sweep_table(m->nat_sweep, table, rows);
}

int
nat_map(struct maps *m)
{
	struct bpf_map_info info;
	uint32_t len = sizeof(info);
	struct xlb_nat *table;

	memset(&info, 0, sizeof(info));
	if (bpf_obj_get_info_by_fd(m->fd[MAP_NAT], &info, &len) < 0)
		return -errno;
	table = maps_map(m->fd[MAP_NAT],
	    (size_t)info.max_entries * sizeof(*table));
	if (table == NULL)
		return -errno;
	m->nat_sweep = nat_sweep_new(m->tables);
	nat_take(m, table, info.max_entries);
	return 0;
}

void
nat_unmap(struct maps *m)
{
	nat_sweep_free(m->nat_sweep);
	maps_unmap(m->nat, (size_t)m->nat_rows * sizeof(*m->nat));
	m->nat = NULL;
}

struct nat_sweep *
maps_nat(struct maps *m)
{
	return m->nat_sweep;
}

uint32_t
maps_nat_rows(const struct maps *m)
{
	return m->nat_rows;
}

uint64_t
maps_nat_sources(struct maps *m)
{
	return nat_sweep_sources(m->nat_sweep);
}

void
nat_row_find(const struct xlb_nat *table, uint32_t rows,
    const struct lookup_flow *f, uint64_t hash, struct xlb_nat *out)
{
	uint16_t port[2] = { htons(f->sport), htons(f->dport) };
	uint64_t kind = (hash & 0xffffffff00000000ULL) | XLB_NAT_FORWARD |
	    (f->proto == IPPROTO_UDP ? XLB_NAT_UDP : 0);
	uint32_t i, at;

	for (i = 0; i < XLB_NAT_PROBE; i++) {
		at = xlb_nat_at((uint32_t)hash, i, rows - 1);
		*out = table[at];
		if (out->word == 0)
			return;
		if (((out->word ^ kind) & (XLB_NAT_SAME | XLB_NAT_BUSY)) == 0 &&
		    memcmp(&out->ports, port, sizeof(port)) == 0 &&
		    memcmp(out->client, f->src.b, sizeof(out->client)) == 0 &&
		    memcmp(out->vip, f->dst.b, sizeof(out->vip)) == 0 &&
		    !(xlb_nat_old(out->word, maps_tick()) &&
		    (!nat_pair(table, rows, at) || xlb_nat_old(
		    table[out->peer].word, maps_tick()))))
			return;
	}
	memset(out, 0, sizeof(*out));
}
