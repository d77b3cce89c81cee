/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Numbers of wanted rows: equal found rows keep theirs, others get one that
 * nothing in the maps uses or names. */
#include <stddef.h>
#include <string.h>

#include "core/ids.h"
#include "core/ring_words.h"
#include "core/rows.h"
#include "core/state_build.h"

/* Numbers that rows of other kinds name, though the row they mean may be gone
 * (somebody edited a map): taken by another row, they would mean that one. */
static void
nexthops_named(const struct state *found, struct ids *used)
{
	size_t i;

	for (i = 0; i < found->nbackend; i++)
		ids_take(used, found->backend[i].nexthop);
}

static void
backends_named(const struct state *found, struct ids *used)
{
	uint32_t k;
	size_t i;

	for (i = 0; i < found->nring; i++) {
		for (k = 0; k < found->ring_size; k++) {
			ids_take(used, XLB_SLOT_CUR(found->ring[i].slot[k]));
			ids_take(used, XLB_SLOT_PREV(found->ring[i].slot[k]));
		}
		for (k = ring_member_next(found->ring[i].roles, 0);
		    k < XLB_BACKENDS;
		    k = ring_member_next(found->ring[i].roles, k + 1))
			ids_take(used, k);
	}
}

static void
rings_named(const struct state *found, struct ids *used)
{
	size_t i;

	for (i = 0; i < found->nservice; i++) {
		ids_take(used, found->service[i].ring);
		ids_take(used, found->service[i].old_ring);
	}
}

static uint32_t
roles_and(const uint32_t *a, const uint32_t *b)
{
	uint32_t i, n = 0;

	for (i = 0; i < RING_MEMBER_WORDS; i++)
		n += (uint32_t)__builtin_popcount((a[i] | a[i] >> 1) &
		    (b[i] | b[i] >> 1) & 0x55555555U);
	return n;
}

/*
 * The ring of a pool that has another name now: the found one that nobody has
 * kept whose members are most like the wanted one's, more in common than not.
 * A wrong guess costs nothing: its slots move as those of any other ring.
 */
static uint32_t
ring_like(const void *row, const struct state *found, const struct ids *kept)
{
	const struct state_ring *want = row, *f;
	uint32_t both, either, best = 0, number = IDS_NONE;
	size_t i;

	for (i = 0; i < found->nring; i++) {
		f = &found->ring[i];
		if (ids_taken(kept, f->number))
			continue;
		both = roles_and(want->roles, f->roles);
		either = roles_and(want->roles, want->roles) +
		    roles_and(f->roles, f->roles) - both;
		if (2 * both > either && both > best) {
			best = both;
			number = f->number;
		}
	}
	return number;
}

static void
vips_named(const struct state *found, struct ids *used)
{
	size_t i;

	for (i = 0; i < found->nservice; i++)
		ids_take(used, found->service[i].vip_id);
}

static void
sources_named(const struct state *found, struct ids *used)
{
	size_t i;
	uint32_t k;

	for (i = 0; i < found->nbackend; i++)
		for (k = 0; k < XLB_NAT_SOURCES; k++)
			if (found->backend[i].sources >> k & 1)
				ids_take(used, k);
}

static const struct kind {
	const char *what;	/* where the message points to */
	uint32_t first, end;	/* numbers of rows */
	size_t rows, n;		/* where in struct state */
	size_t size, number;	/* of a row, and where in it its number is */
	rows_cmp cmp;
	void (*named)(const struct state *found, struct ids *used);
	/* the number of a found row that is the same under another key */
	uint32_t (*like)(const void *row, const struct state *found,
	    const struct ids *kept);
} kinds[] = {
#define ROWS(name, field) offsetof(struct state, name), \
	offsetof(struct state, n##name), sizeof(struct state_##name), \
	offsetof(struct state_##name, field)
	[NUMBER_NEXTHOP] = { "next hops", 1, XLB_NEXTHOPS,
	    ROWS(nexthop, number), state_nexthop_key_cmp, nexthops_named,
	    NULL },
	[NUMBER_BACKEND] = { "pools: backends", 1, XLB_BACKENDS,
	    ROWS(backend, number), state_backend_key_cmp, backends_named,
	    NULL },
	[NUMBER_RING] = { "pools", 0, XLB_RINGS,
	    ROWS(ring, number), state_ring_key_cmp, rings_named, ring_like },
	[NUMBER_VIP] = { "services: addresses", 1, STATE_VIP_IDS,
	    ROWS(vip, id), state_vip_key_cmp, vips_named, NULL },
	[NUMBER_SERVICE] = { "services: addresses and ports", 0, XLB_SERVICES,
	    ROWS(service, number), state_service_key_cmp, NULL, NULL },
	[NUMBER_SOURCE] = { "nat: addresses", 0, XLB_NAT_SOURCES,
	    ROWS(source, number), state_source_key_cmp, sources_named, NULL },
	[NUMBER_DOOR] = { "interfaces", 0, XLB_DOORS,
	    ROWS(door, number), state_door_key_cmp, NULL, NULL },
#undef ROWS
};

struct numbering {
	const struct kind *kind;
	struct ids kept;
	size_t fresh;		/* rows that need a number */
};

static void *
rows_of(const struct kind *k, const struct state *s, size_t *n)
{
	void *rows;

	memcpy(&rows, (const char *)s + k->rows, sizeof(rows));
	memcpy(n, (const char *)s + k->n, sizeof(*n));
	return rows;
}

static uint32_t *
number_of(const struct kind *k, const void *row)
{
	/* for wanted rows, which are ours to write, and to read found ones */
	return (uint32_t *)((uintptr_t)row + k->number);
}

static void
number_keep(const void *want, const void *found, void *arg)
{
	struct numbering *nb = arg;
	uint32_t *number;

	if (want == NULL)
		return;
	number = number_of(nb->kind, want);
	*number = found == NULL ? IDS_NONE : *number_of(nb->kind, found);
	if (found == NULL || !ids_take(&nb->kept, *number)) {
		*number = IDS_NONE;
		nb->fresh++;
	}
}

int
state_number(struct state_build *b, enum state_kind kind)
{
	const struct kind *k = &kinds[kind];
	const struct state *found = b->in->found;
	struct numbering nb = { .kind = k };
	size_t i, n, nfound;
	char *row = rows_of(k, b->s, &n), *old = rows_of(k, found, &nfound);
	struct ids used;

	ids_init(&nb.kept, k->first, k->end, b->a);
	rows_walk(row, n, old, nfound, k->size, k->cmp, number_keep, &nb);
	if (nb.fresh == 0)
		return 0;
	ids_init(&used, k->first, k->end, b->a);
	for (i = 0; i < nfound; i++)
		ids_take(&used, *number_of(k, old + i * k->size));
	if (k->named != NULL)
		k->named(found, &used);
	for (i = 0; i < n; i++, row += k->size) {
		if (*number_of(k, row) != IDS_NONE)
			continue;
		if (k->like != NULL)
			*number_of(k, row) = k->like(row, found, &nb.kept);
		if (ids_take(&nb.kept, *number_of(k, row)))
			continue;
		*number_of(k, row) = ids_new(&used);
		if (*number_of(k, row) != IDS_NONE)
			continue;
		diag_add(b->dg, DIAG_ERROR, (struct mark){ 0 },
		    "%s: %zu new and %zu that are there, which go last, are "
		    "more than %u: make the change in two steps", k->what,
		    nb.fresh, nfound, k->end - k->first);
		return -1;
	}
	return 0;
}
