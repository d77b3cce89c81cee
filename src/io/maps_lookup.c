/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the maps say of one flow, of the rings, and of all flows. */
#include "io/maps_int.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "io/log.h"

uint64_t
maps_clock(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static const struct xlb_vip *
vip_row(const struct xlb_tables *t, const struct addr *a)
{
	const struct xlb_vip *row;
	__be32 addr[4];
	uint32_t at, i;

	memcpy(addr, a->b, sizeof(addr));
	at = xlb_vip_hash(addr);
	for (i = 0; i < XLB_PROBE; i++) {
		row = &t->vip[(at + i) % XLB_TABLE_ROWS];
		if (row->id == XLB_ROW_EMPTY)
			return NULL;
		if (row->id != XLB_ROW_GONE &&
		    memcmp(row->addr, addr, sizeof(addr)) == 0)
			return row;
	}
	return NULL;
}

/* An exact port beats every port. NULL: no service. */
static const struct xlb_service *
service_row(struct maps *m, const struct lookup_flow *f)
{
	const struct xlb_vip *vip = vip_row(m->tables, &f->dst);
	uint32_t any = f->proto == IPPROTO_TCP ? XLB_VIP_ANY_TCP :
	    XLB_VIP_ANY_UDP;
	const struct xlb_service *s;

	if (vip == NULL)
		return NULL;
	s = table_service_find(m, XLB_SERVICE_KEY(vip->id, f->proto,
	    f->dport));
	if (s == NULL && (vip->flags & any))
		s = table_service_find(m, XLB_SERVICE_KEY(vip->id, f->proto,
		    0));
	return s;
}

static uint32_t
slot_word(const struct maps *m, uint32_t number, uint32_t slot)
{
	struct xlb_ring *ring = number < XLB_RINGS ? m->ring[number].map :
	    NULL;

	return ring == NULL ? 0 : ring_part(m, ring, ring->active & 1)[slot];
}

/* The flow's entry in its set; 0: none. */
static uint64_t
set_find(const struct xlb_flow_set *set, const struct lookup_hash *h)
{
	uint32_t tag = xlb_flow_tag(h->select, h->flow), i;
	uint64_t entry;

	for (i = 0; i < XLB_FLOW_WAYS; i++) {
		entry = __atomic_load_n(&set->entry[i], __ATOMIC_RELAXED);
		if (XLB_FLOW_TAG(entry) == tag && XLB_FLOW_BACKEND(entry) != 0)
			return entry;
	}
	return 0;
}

static int
entry_find(struct maps *m, const struct lookup_hash *h, uint64_t *entry)
{
	struct bpf_map_info info = { 0 };
	struct xlb_flow_set set;
	uint32_t len = sizeof(info), row;

	if (bpf_obj_get_info_by_fd(m->fd[MAP_FLOWS], &info, &len) < 0)
		return -errno;
	row = xlb_flow_row(h->flow, info.max_entries - 1);
	if (bpf_map_lookup_elem(m->fd[MAP_FLOWS], &row, &set) < 0)
		return -errno;
	*entry = set_find(&set, h);
	return 0;
}

/* Flows of NAT are in a table of their own, and in no other. */
static void
nat_decide(const struct maps *m, const struct lookup_flow *f,
    const struct lookup_in *in, struct maps_found *out)
{
	uint32_t n;

	out->entry = 0;
	out->backend = XLB_SLOT_CUR(out->word);
	out->why = out->backend != 0 ? LOOKUP_RING : LOOKUP_NO_BACKEND;
	nat_row_find(m->nat, m->nat_rows, f, out->hash.flow, &out->nat);
	n = out->nat.backend % XLB_BACKENDS;
	if (out->nat.word == 0 || !(XLB_MEMBER_BITS(in->member[n / 16], n) &
	    XLB_MEMBER_KEEPS))
		return;
	out->backend = n;
	out->why = LOOKUP_ENTRY;
}

int
maps_lookup(struct maps *m, const struct lookup_flow *f,
    struct maps_found *out)
{
	static const uint32_t nobody[XLB_BACKENDS / 16];
	struct lookup_in in = { .now = maps_clock(), .proto = f->proto };
	const struct xlb_service *s = service_row(m, f);
	uint32_t number, old;
	int rc;

	if (s == NULL)
		return -ENOENT;
	in.service = s->word;
	number = XLB_WORD_RING(s->word);
	old = XLB_WORD_OLD_RING(s->word);
	maps_hash(&m->tables->settings, f, XLB_WORD_FLAGS(s->word),
	    &out->hash);
	rc = entry_find(m, &out->hash, &in.entry);
	if (rc < 0)
		return rc;
	in.word = slot_word(m, number, out->hash.slot);
	in.member = number < XLB_RINGS && m->ring[number].map != NULL ?
	    m->ring[number].map->member : nobody;
	if ((XLB_WORD_FLAGS(s->word) & XLB_SERVICE_LOOKUP) && old != number)
		in.old = XLB_SLOT_CUR(slot_word(m, old, out->hash.slot));
	out->service = s->word;
	out->word = in.word;
	out->entry = in.entry;
	out->now = in.now;
	out->backend = lookup_decide(&in, &out->why);
	memset(&out->nat, 0, sizeof(out->nat));
	if (XLB_WORD_FLAGS(s->word) & XLB_SERVICE_NAT)
		nat_decide(m, f, &in, out);
	return 0;
}

int
maps_ring_count(struct maps *m, uint32_t number, struct maps_ring_count *out)
{
	struct xlb_ring *ring = number < XLB_RINGS ? m->ring[number].map :
	    NULL;
	const uint32_t *word, *past;
	uint32_t i;

	memset(out, 0, sizeof(*out));
	if (ring == NULL)
		return -ENOENT;
	word = ring_part(m, ring, ring->active & 1);
	past = ring_part(m, ring, 2);
	for (i = 0; i < m->ring_size; i++) {
		out->lookup += (word[i] & XLB_SLOT_LOOKUP) != 0;
		out->prev += XLB_SLOT_PREV(word[i]) != 0;
		out->empty += XLB_SLOT_CUR(word[i]) == 0;
		out->moved += past[i] != 0;
	}
	return 0;
}

/* All of an array, and how many elements it has; NULL: it cannot be. */
static void *
table_map(int fd, size_t size, uint32_t *n)
{
	struct bpf_map_info info = { 0 };
	uint32_t len = sizeof(info);

	if (bpf_obj_get_info_by_fd(fd, &info, &len) < 0)
		return NULL;
	*n = info.max_entries;
	return maps_map(fd, (size_t)*n * size);
}

struct maps_flows *
maps_flows_open(struct maps *m)
{
	struct maps_flows *f = calloc(1, sizeof(*f));

	if (f == NULL)
		fatal("maps");
	f->set = table_map(m->fd[MAP_FLOWS], sizeof(*f->set), &f->n);
	f->nat = table_map(m->fd[MAP_NAT], sizeof(*f->nat), &f->rows);
	if (f->set == NULL || f->nat == NULL) {
		log_warn("maps: flows");
		maps_flows_close(f);
		return NULL;
	}
	return f;
}

uint64_t
maps_flows_find(const struct maps *m, const struct maps_flows *f,
    const struct lookup_flow *flow, uint32_t service_flags)
{
	struct lookup_hash h;

	maps_hash(&m->tables->settings, flow, service_flags, &h);
	return set_find(&f->set[xlb_flow_row(h.flow, f->n - 1)], &h);
}

void
maps_flows_nat(const struct maps *m, const struct maps_flows *f,
    const struct lookup_flow *flow, struct xlb_nat *out)
{
	struct lookup_hash h;

	maps_hash(&m->tables->settings, flow, 0, &h);
	nat_row_find(f->nat, f->rows, flow, h.flow, out);
}

void
maps_flows_close(struct maps_flows *f)
{
	if (f == NULL)
		return;
	maps_unmap(f->set, (size_t)f->n * sizeof(*f->set));
	maps_unmap(f->nat, (size_t)f->rows * sizeof(*f->nat));
	free(f);
}
