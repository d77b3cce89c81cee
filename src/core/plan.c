/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Puts the differences of two states into an order in which every single step
 * leaves the maps consistent. */
#include "core/plan.h"

#include <string.h>

#include "core/arena.h"
#include "core/ids.h"
#include "core/plan_ring.h"
#include "core/rows.h"

#define VIP_ANY (XLB_VIP_ANY_TCP | XLB_VIP_ANY_UDP)

struct build {
	const struct state *wanted, *found;
	struct arena *a;
	struct plan *p;
	struct plan_rings rings;
	struct plan_ring *ring;	/* as wanted->ring */
	bool removing;		/* the second walk: deletions alone */
};

static void
op_add(struct build *b, enum op_kind kind, uint32_t id, bool known,
    const void *row)
{
	struct op *op = arena_grow(b->a, &b->p->op, b->p->n, sizeof(*op));

	op->kind = kind;
	op->id = id;
	op->known = known;
	op->row = row;
	b->p->n++;
}

/*
 * The outcome for one row: true if there is something to do in this walk. Rows
 * are counted in the walk that handles them.
 */
static bool
row_due(struct build *b, bool want, bool found, bool same)
{
	if (b->removing != !want || (want && found && same))
		return false;
	if (!want)
		b->p->removed++;
	else if (found)
		b->p->changed++;
	else
		b->p->added++;
	return true;
}

static void
port_step(const void *want, const void *found, void *arg)
{
	const uint32_t *w = want, *f = found;
	struct build *b = arg;

	if (row_due(b, w != NULL, f != NULL, true))
		op_add(b, w != NULL ? OP_PORT_PUT : OP_PORT_DEL,
		    w != NULL ? *w : *f, false, NULL);
}

static void
door_step(const void *want, const void *found, void *arg)
{
	const struct state_door *w = want, *f = found;
	struct build *b = arg;

	if (!row_due(b, w != NULL, f != NULL, w != NULL && f != NULL &&
	    memcmp(w->mac, f->mac, sizeof(w->mac)) == 0 && w->mtu == f->mtu))
		return;
	if (w != NULL)
		op_add(b, OP_DOOR_PUT, w->number, f != NULL, w);
	else
		op_add(b, OP_DOOR_DEL, f->number, false, f);
}

static void
source_step(const void *want, const void *found, void *arg)
{
	const struct state_source *w = want, *f = found;
	struct build *b = arg;

	if (!row_due(b, w != NULL, f != NULL, true))
		return;
	if (w != NULL)
		op_add(b, OP_SOURCE_PUT, w->number, false, w);
	else
		op_add(b, OP_SOURCE_DEL, f->number, false, f);
}

static void
nexthop_step(const void *want, const void *found, void *arg)
{
	const struct state_nexthop *w = want, *f = found;
	struct build *b = arg;

	if (!row_due(b, w != NULL, f != NULL, w != NULL && f != NULL &&
	    memcmp(w->mac, f->mac, sizeof(w->mac)) == 0))
		return;
	if (w != NULL)
		op_add(b, OP_NEXTHOP_PUT, w->number, f != NULL, w);
	else
		op_add(b, OP_NEXTHOP_DEL, f->number, false, f);
}

static void
backend_step(const void *want, const void *found, void *arg)
{
	const struct state_backend *w = want, *f = found;
	struct build *b = arg;

	if (w == NULL && f->retired)
		return;
	if (!row_due(b, w != NULL, f != NULL, w != NULL && f != NULL &&
	    w->nexthop == f->nexthop && w->sources == f->sources &&
	    !f->retired))
		return;
	if (w != NULL)
		op_add(b, OP_BACKEND_PUT, w->number, f != NULL, w);
	else
		op_add(b, OP_BACKEND_RETIRE, f->number, false, f);
}

/* Wanted rings have the numbers of the found ones that they go on with, under
 * another name, too. */
static void
rings_build(struct build *b, struct ids *stay)
{
	const struct state_ring **found, *w;
	size_t i;

	found = arena_calloc(b->a, XLB_RINGS, sizeof(*found));
	for (i = 0; i < b->found->nring; i++)
		found[b->found->ring[i].number] = &b->found->ring[i];
	ids_init(stay, 0, XLB_RINGS, b->a);
	for (i = 0; i < b->wanted->nring; i++) {
		w = &b->wanted->ring[i];
		plan_ring_build(&b->rings, w, found[w->number], &b->ring[i]);
		/* another set of slots is no change of the object */
		b->p->added += found[w->number] == NULL;
		ids_take(stay, w->number);
	}
	/* a service that has just left it may ask it for a while */
	for (i = 0; i < b->wanted->nservice; i++)
		ids_take(stay, b->wanted->service[i].old_ring);
}

static void
ring_remove(struct build *b, const struct state_ring *f)
{
	struct op_ring *gone = arena_calloc(b->a, 1, sizeof(*gone));

	gone->number = f->number;
	gone->pool = f->pool;
	gone->size = b->found->ring_size;
	op_add(b, OP_RING_DEL, f->number, false, gone);
	b->p->removed++;
}

/* It is asked for owners alone: flows are no longer its own. */
static void
ring_leave(struct build *b, const struct state_ring *f)
{
	struct op_ring *left;
	uint32_t *roles, i, keeps = 0;

	for (i = 0; i < RING_MEMBER_WORDS; i++)
		keeps |= f->roles[i] & 0x55555555U * XLB_MEMBER_KEEPS;
	if (keeps == 0)
		return;
	roles = arena_calloc(b->a, RING_MEMBER_WORDS, sizeof(*roles));
	for (i = 0; i < RING_MEMBER_WORDS; i++)
		roles[i] = f->roles[i] & 0x55555555U * XLB_MEMBER;
	left = arena_calloc(b->a, 1, sizeof(*left));
	left->number = f->number;
	left->pool = f->pool;
	left->size = b->found->ring_size;
	left->roles = roles;
	op_add(b, OP_RING_ROLES, f->number, true, left);
}

static void
rings_remove(struct build *b, const struct ids *stay)
{
	const struct state_ring *f;
	struct ids wanted;
	size_t i;

	ids_init(&wanted, 0, XLB_RINGS, b->a);
	for (i = 0; i < b->wanted->nring; i++)
		ids_take(&wanted, b->wanted->ring[i].number);
	for (i = 0; i < b->found->nring; i++) {
		f = &b->found->ring[i];
		if (!ids_taken(stay, f->number))
			ring_remove(b, f);
		else if (!ids_taken(&wanted, f->number))
			ring_leave(b, f);
	}
}

/* The flags for "any port" are set before the first such service is there, and
 * cleared only after the last one has gone: see vip_clear_step(). */
static void
vip_step(const void *want, const void *found, void *arg)
{
	const struct state_vip *w = want, *f = found;
	struct build *b = arg;
	struct state_vip *both;

	if (!row_due(b, w != NULL, f != NULL,
	    w != NULL && f != NULL && w->flags == f->flags &&
	    w->own == f->own))
		return;
	if (w == NULL) {
		op_add(b, OP_VIP_DEL, f->id, false, f);
		return;
	}
	both = arena_dup(b->a, w, sizeof(*w));
	if (f != NULL)
		both->flags |= f->flags & VIP_ANY;
	if (f == NULL || both->flags != f->flags || both->own != f->own)
		op_add(b, OP_VIP_PUT, w->id, f != NULL, both);
}

static void
vip_clear_step(const void *want, const void *found, void *arg)
{
	const struct state_vip *w = want, *f = found;

	if (w != NULL && f != NULL && (f->flags & ~w->flags & VIP_ANY))
		op_add(arg, OP_VIP_PUT, w->id, true, w);
}

static int
service_row_cmp(const void *va, const void *vb)
{
	const struct state_service *a = va, *b = vb;
	int c = state_service_key_cmp(a, b);

	return c != 0 ? c : (a->vip_id > b->vip_id) - (a->vip_id < b->vip_id);
}

static void
service_step(const void *want, const void *found, void *arg)
{
	const struct state_service *w = want, *f = found;
	struct build *b = arg;

	if (!row_due(b, w != NULL, f != NULL, w != NULL && f != NULL &&
	    w->number == f->number && w->ring == f->ring &&
	    w->old_ring == f->old_ring && w->flags == f->flags &&
	    w->backend_port == f->backend_port))
		return;
	if (w != NULL)
		op_add(b, OP_SERVICE_PUT, w->number, f != NULL, w);
	else
		op_add(b, OP_SERVICE_DEL, f->number, false, f);
}

#define WALK(b, name, cmp, step) \
	rows_walk((b)->wanted->name, (b)->wanted->n##name, (b)->found->name, \
	    (b)->found->n##name, sizeof(*(b)->wanted->name), cmp, step, b)

static void
ring_add(struct build *b, enum op_kind kind, const struct op_ring *r)
{
	if (r != NULL)
		op_add(b, kind, r->number, kind != OP_RING_NEW, r);
}

/* (1) what depends on nothing: first where flows go astray, then the rest */
static void
rings_first(struct build *b)
{
	const struct plan_ring *r, *end = b->ring + b->wanted->nring;

	for (r = b->ring; r < end; r++)
		if (r->dead)
			ring_add(b, OP_RING_SLOTS,
			    r->interim != NULL ? r->interim : r->final);
	for (r = b->ring; r < end; r++)
		ring_add(b, OP_RING_ROLES, r->roles_now);
	for (r = b->ring; r < end; r++)
		if (r->now && !r->dead)
			ring_add(b, OP_RING_SLOTS, r->final);
}

static void
rings_then(struct build *b)
{
	const struct plan_ring *r;

	for (r = b->ring; r < b->ring + b->wanted->nring; r++) {
		if (!r->now)
			ring_add(b, r->known ? OP_RING_SLOTS : OP_RING_NEW,
			    r->final);
		ring_add(b, OP_RING_ROLES, r->roles_then);
	}
}

void
plan_build(const struct state *wanted, const struct state *found,
    struct ring_cache *rc, uint32_t tick, struct arena *a, struct plan *p)
{
	struct build b = { .wanted = wanted, .found = found, .a = a, .p = p };
	struct ids rings;

	memset(p, 0, sizeof(*p));
	b.ring = arena_calloc(a, wanted->nring, sizeof(*b.ring));
	plan_rings_init(&b.rings, wanted, found, rc, tick, a);
	rings_build(&b, &rings);
	rings_first(&b);
	if (memcmp(&wanted->settings, &found->settings,
	    sizeof(wanted->settings)) != 0) {
		op_add(&b, OP_SETTINGS_PUT, 0, found->settings.abi != 0,
		    &wanted->settings);
		p->changed++;
	}
	WALK(&b, port, state_port_cmp, port_step);
	WALK(&b, door, state_door_cmp, door_step);
	WALK(&b, source, state_source_cmp, source_step);
	WALK(&b, nexthop, state_nexthop_cmp, nexthop_step);
	WALK(&b, backend, state_backend_cmp, backend_step);
	rings_then(&b);
	WALK(&b, vip, state_vip_cmp, vip_step);
	WALK(&b, service, service_row_cmp, service_step);
	b.removing = true;
	WALK(&b, service, service_row_cmp, service_step);
	WALK(&b, vip, state_vip_cmp, vip_clear_step);
	WALK(&b, vip, state_vip_cmp, vip_step);
	rings_remove(&b, &rings);
	WALK(&b, backend, state_backend_cmp, backend_step);
	WALK(&b, nexthop, state_nexthop_cmp, nexthop_step);
	WALK(&b, source, state_source_cmp, source_step);
	WALK(&b, door, state_door_cmp, door_step);
	WALK(&b, port, state_port_cmp, port_step);
	if (p->removed > 0)
		op_add(&b, OP_GRACE, 0, false, NULL);
}

static size_t
first_from(const struct plan *p, enum op_kind kind)
{
	size_t i;

	for (i = 0; i < p->n && p->op[i].kind < kind; i++)
		;
	return i;
}

size_t
plan_first_call(const struct plan *p)
{
	return first_from(p, OP_PORT_PUT);
}

size_t
plan_first_delete(const struct plan *p)
{
	return first_from(p, OP_SERVICE_DEL);
}

static bool
on_ring(const struct op *op)
{
	return op->kind == OP_RING_SLOTS || op->kind == OP_RING_NEW ||
	    op->kind == OP_RING_ROLES;
}

/* A ring's words name the backend; whoever owns slots is a member. */
static bool
ring_names(const struct op *op, uint32_t backend)
{
	const struct op_ring *r = op->row;

	return on_ring(op) && ring_member(r->roles, backend) != 0;
}

static uint32_t
service_vip(const struct op *op)
{
	return ((const struct state_service *)op->row)->vip_id;
}

static uint32_t
service_ring(const struct op *op)
{
	return ((const struct state_service *)op->row)->ring;
}

static uint32_t
service_old_ring(const struct op *op)
{
	return ((const struct state_service *)op->row)->old_ring;
}

/* Additions: `op` names a row that `failed` should have made. */
static bool
depends_on_put(const struct op *op, const struct op *failed)
{
	switch (failed->kind) {
	case OP_SETTINGS_PUT:
		return !op->known && (op->kind == OP_RING_NEW ||
		    op->kind == OP_VIP_PUT || op->kind == OP_SERVICE_PUT);
	case OP_PORT_PUT:
		return op->kind == OP_NEXTHOP_PUT && failed->id ==
		    ((const struct state_nexthop *)op->row)->ifindex;
	case OP_NEXTHOP_PUT:
		return op->kind == OP_BACKEND_PUT && !failed->known &&
		    failed->id ==
		    ((const struct state_backend *)op->row)->nexthop;
	case OP_BACKEND_PUT:
		/* a known one kept its next hop: 0, or one to be deleted */
		return ring_names(op, failed->id) ||
		    (op->kind == OP_NEXTHOP_DEL && failed->known);
	case OP_RING_NEW:
		return op->kind == OP_SERVICE_PUT &&
		    service_ring(op) == failed->id;
	case OP_VIP_PUT:
		return op->kind == OP_SERVICE_PUT &&
		    service_vip(op) == failed->id && (!failed->known ||
		    ((const struct state_service *)op->row)->port == 0);
	case OP_SERVICE_PUT:
		/* a known one kept its ring */
		return op->kind == OP_RING_DEL && failed->known;
	default:
		return false;
	}
}

/* Deletions: `failed` left a row that names the one that `op` deletes. */
bool
plan_depends(const struct op *op, const struct op *failed)
{
	switch (failed->kind) {
	case OP_RING_SLOTS:
	case OP_RING_ROLES:
	case OP_RING_DEL:
		return op->kind == OP_BACKEND_RETIRE;
	case OP_SERVICE_DEL:
		if (op->kind == OP_RING_DEL)
			return service_ring(failed) == op->id ||
			    service_old_ring(failed) == op->id;
		return (op->kind == OP_VIP_DEL || op->kind == OP_VIP_PUT) &&
		    service_vip(failed) == op->id;
	case OP_BACKEND_RETIRE:
		return op->kind == OP_NEXTHOP_DEL && op->id ==
		    ((const struct state_backend *)failed->row)->nexthop;
	case OP_NEXTHOP_DEL:
		return op->kind == OP_PORT_DEL && op->id ==
		    ((const struct state_nexthop *)failed->row)->ifindex;
	default:
		return depends_on_put(op, failed);
	}
}

bool
plan_blocked(const struct plan *p, const bool *failed, size_t i)
{
	size_t k;

	for (k = 0; k < i; k++)
		if (failed[k] && plan_depends(&p->op[i], &p->op[k]))
			return true;
	return false;
}
