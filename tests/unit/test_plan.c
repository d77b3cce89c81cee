/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Plans between the states of a random node: what the file says, health, routes
 * and overrides change by bits; every prefix of every plan is replayed.
 */
#include "unit.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/hash.h"
#include "core/rows.h"
#include "fake/maps_mem.h"

#define POOLS 4
#define ADDRS 10		/* backends to choose from */
#define VIPS 3
#define PORTS 4
#define RING 251

/* What may change from step to step; index 0 of `member` weights is "not in
 * the pool". */
struct world {
	uint64_t dice;
	struct {
		bool present, percent, fail_open, check;
		uint32_t min;
		char name[3];	/* a pool that is renamed is another one */
		uint32_t weight[ADDRS];	/* 0: not a member; 51: weight 0 */
		enum backend_state state[ADDRS];
	} pool[POOLS];
	struct {
		int pool;	/* -1: none */
		enum hash_kind hash;
		enum udp_kind udp;
	} service[VIPS][2][PORTS];
	struct hop hop[ADDRS];
	struct health_row health[ADDRS];
	struct override override[2];
	bool vip_local;
	uint32_t mtu;
};

static const uint16_t ports[PORTS] = { 0, 53, 80, 443 };
static const char *const addrs[ADDRS] = { "10.0.0.1", "10.0.0.2", "10.0.0.3",
    "10.0.0.4", "10.0.1.1", "10.0.1.2", "2001:db8::1", "2001:db8::2",
    "2001:db8:1::1", "2001:db8:1::2" };
static const char *const vips[VIPS] = { "192.0.2.1", "192.0.2.2",
    "2001:db8:ffff::1" };
static uint32_t tick = 1000;
static const struct conf_check check = { .name = "c", .port = 8080,
    .via = VIA_DIRECT };

static uint32_t
roll(struct world *w, uint32_t n)
{
	return hash_below(hash_mix(w->dice += HASH_GOLDEN), n);
}

static struct addr
ip(const char *s)
{
	struct addr a;

	assert_int_equal(addr_parse(s, &a), 0);
	return a;
}

static void
pool_roll(struct world *w, int i)
{
	size_t k;

	w->pool[i].present = roll(w, 4) != 0;
	w->pool[i].check = roll(w, 4) != 0;
	w->pool[i].percent = roll(w, 2);
	w->pool[i].min = roll(w, 3) * (w->pool[i].percent ? 30 : 1);
	w->pool[i].fail_open = roll(w, 3) == 0;
	snprintf(w->pool[i].name, sizeof(w->pool[i].name), "%c%d",
	    roll(w, 5) ? 'b' : "ac"[roll(w, 2)], i);
	for (k = 0; k < ADDRS; k++) {
		w->pool[i].weight[k] = roll(w, 2) ? 0 : 1 + roll(w, 25);
		if (roll(w, 8) == 0)
			w->pool[i].weight[k] = 51;
		w->pool[i].state[k] = roll(w, 6) ? BACKEND_ACTIVE :
		    (enum backend_state)roll(w, 3);
	}
}

static void
hop_roll(struct world *w, size_t i)
{
	struct state_nexthop *h = &w->hop[i].nexthop;
	uint32_t via = roll(w, 3);

	memset(h, 0, sizeof(*h));
	w->hop[i].addr = ip(addrs[i]);
	w->hop[i].status = roll(w, 3) ? HOP_OK : (enum hop_status)roll(w, 5);
	if (w->hop[i].status != HOP_OK)
		return;
	h->gateway = via == 0 ? w->hop[i].addr : ip("10.9.0.1");
	h->ifindex = 2 + roll(w, 2);
	h->src = ip("10.9.0.2");
	h->src_mac[5] = (uint8_t)h->ifindex;
	h->mtu = roll(w, 8) ? 1500 : 1400;
	h->vlan = via == 2 ? 7 : 0;
	h->mac[0] = 2;
	h->mac[5] = (uint8_t)roll(w, 2);
}

/* All that one neighbour changes, everybody behind it sees. */
static void
hops_agree(struct world *w)
{
	size_t i, k;

	for (i = 0; i < ADDRS; i++)
		for (k = 0; k < i; k++)
			if (w->hop[i].status == HOP_OK &&
			    w->hop[k].status == HOP_OK &&
			    state_nexthop_key_cmp(&w->hop[i].nexthop,
			    &w->hop[k].nexthop) == 0)
				memcpy(w->hop[k].nexthop.mac,
				    w->hop[i].nexthop.mac, 6);
}

static void
service_roll(struct world *w)
{
	uint32_t v = roll(w, VIPS), u = roll(w, 2), p = roll(w, PORTS);

	w->service[v][u][p].pool = (int)roll(w, POOLS + 2) - 2;
	w->service[v][u][p].hash = HASH_FLOW;
	w->service[v][u][p].udp = (enum udp_kind)roll(w, 3);
}

static void
override_roll(struct world *w)
{
	struct override *o = &w->override[roll(w, 2)];
	uint32_t i = roll(w, POOLS), k = roll(w, ADDRS);

	o->pool = w->pool[i].name;
	o->addr = ip(addrs[k]);
	o->state = roll(w, 2) ? BACKEND_DRAIN : BACKEND_ACTIVE;
	o->file_state = w->pool[i].state[k];
}

static void
world_init(struct world *w, uint64_t seed)
{
	size_t v, u, p;
	int i;

	memset(w, 0, sizeof(*w));
	w->dice = seed << 32;
	for (i = 0; i < POOLS; i++)
		pool_roll(w, i);
	for (i = 0; i < ADDRS; i++) {
		hop_roll(w, (size_t)i);
		w->health[i] = (struct health_row){ .addr = ip(addrs[i]),
		    .port = 8080, .check = "c" };
	}
	for (v = 0; v < VIPS; v++)
		for (u = 0; u < 2; u++)
			for (p = 0; p < PORTS; p++)
				w->service[v][u][p].pool = -1;
	for (i = 0; i < 2; i++)
		override_roll(w);
	hops_agree(w);
}

/* One step: a handful of things at once, as after a reload or a failed link. */
static void
world_step(struct world *w)
{
	uint32_t n = 1 + roll(w, 4);

	while (n-- > 0) {
		switch (roll(w, 8)) {
		case 0:
			pool_roll(w, (int)roll(w, POOLS));
			break;
		case 1:
		case 2:
			service_roll(w);
			service_roll(w);
			break;
		case 3:
			hop_roll(w, roll(w, ADDRS));
			break;
		case 4:
			override_roll(w);
			break;
		case 5:
			w->vip_local = !w->vip_local;
			w->mtu = roll(w, 2) * 1400;
			break;
		default:
			w->health[roll(w, ADDRS)].fsm.state =
			    (enum health_state)roll(w, 3);
			break;
		}
	}
	hops_agree(w);
}

static int
pool_cmp(const void *va, const void *vb)
{
	const struct conf_pool *a = va, *b = vb;

	return strcmp(a->name, b->name);
}

static void
conf_pools(const struct world *w, struct arena *a, struct conf *c)
{
	struct conf_backend *b;
	struct conf_pool *p;
	size_t i, k;

	c->pool = arena_calloc(a, POOLS, sizeof(*c->pool));
	for (i = 0; i < POOLS; i++) {
		if (!w->pool[i].present)
			continue;
		p = &c->pool[c->npool++];
		p->name = arena_strdup(a, w->pool[i].name);
		p->check = w->pool[i].check ? &check : NULL;
		p->min_healthy = w->pool[i].min;
		p->min_healthy_percent = w->pool[i].percent;
		p->fail_open = w->pool[i].fail_open;
		p->backend = arena_calloc(a, ADDRS, sizeof(*p->backend));
		for (k = ADDRS; k-- > 0;) {
			if (w->pool[i].weight[k] == 0)
				continue;
			b = &p->backend[p->nbackend++];
			b->address = ip(addrs[k]);
			b->weight = w->pool[i].weight[k] % 51;
			b->state = w->pool[i].state[k];
		}
	}
	rows_sort(c->pool, c->npool, sizeof(*c->pool), pool_cmp);
}

static const struct conf_pool *
pool_find(const struct conf *c, const char *name)
{
	size_t i;

	for (i = 0; i < c->npool; i++)
		if (strcmp(c->pool[i].name, name) == 0)
			return &c->pool[i];
	return NULL;
}

/* A service for each of the world's that has a pool, so that ports and forms
 * mix freely. */
static void
conf_services(const struct world *w, struct arena *a, struct conf *c)
{
	const struct conf_pool *pool;
	struct conf_service *s;
	size_t i, v, u, p;

	c->service = arena_calloc(a, VIPS * 2 * PORTS, sizeof(*c->service));
	for (i = 0; i < VIPS * 2 * PORTS; i++) {
		v = i / 2 / PORTS;
		u = i / PORTS % 2;
		p = i % PORTS;
		if (w->service[v][u][p].pool < 0)
			continue;
		pool = pool_find(c, w->pool[w->service[v][u][p].pool].name);
		if (pool == NULL)
			continue;
		s = &c->service[c->nservice++];
		s->pool = pool;
		s->hash = w->service[v][u][p].hash;
		s->udp = w->service[v][u][p].udp;
		s->naddress = s->nlisten = 1;
		s->address = arena_calloc(a, 1, sizeof(*s->address));
		s->address->address = ip(vips[v]);
		s->listen = arena_calloc(a, 1, sizeof(*s->listen));
		s->listen->proto = u == 0 ? IPPROTO_TCP : IPPROTO_UDP;
		s->listen->port = ports[p];
	}
}

/* What is wanted of the world, given what is found. */
static void
world_state(struct world *w, const struct state *found, struct arena *a,
    struct state *wanted)
{
	struct conf *c = arena_alloc(a, sizeof(*c));
	struct override_list overrides = { w->override, 2 };
	struct health_table health = { w->health, ADDRS };
	struct hop_table hops = { w->hop, ADDRS };
	struct addr local = ip(vips[0]);
	struct state_input in = { .conf = c, .overrides = &overrides,
	    .health = &health, .hops = &hops, .local = &local,
	    .nlocal = w->vip_local, .found = found };
	struct diag dg;

	c->table_size = RING;
	c->seed = 5;
	c->tunnel_mtu = w->mtu;
	conf_pools(w, a, c);
	conf_services(w, a, c);
	diag_init(&dg);
	if (state_build(&in, a, wanted, &dg) < 0)
		fail_msg("%s", dg.row[0].text);
	diag_fini(&dg);
}

static void
holds(struct maps *m)
{
	struct arena *a = arena_new();
	struct state s;
	const char *wrong;

	if (m->broken != NULL)
		fail_msg("%s", m->broken);
	assert_int_equal(maps_read(m, a, &s), 0);
	wrong = state_check(&s, a);
	if (wrong != NULL)
		fail_msg("%s", wrong);
	arena_free(a);
}

/* A wanted ring and what was found of it, while a plan runs. */
struct promise {
	const struct state *wanted, *found;
	const struct plan *plan;
	struct ring_cache *rc;
	size_t first;		/* operations before the first addition */
};

/* By number: a pool that is renamed keeps its ring. */
static const struct state_ring *
ring_found(const struct state *s, const struct state_ring *want)
{
	size_t i;

	for (i = 0; i < s->nring; i++)
		if (s->ring[i].number == want->number)
			return &s->ring[i];
	return NULL;
}

static bool
ring_eligible(const struct state_ring *r, uint32_t number)
{
	size_t i;

	for (i = 0; i < r->nmember; i++)
		if (r->number_of[i] == number)
			return r->eligible[i];
	return false;
}

/* Flows of a backend that has them before and after are never sent elsewhere in
 * between; those of a dead one are once (1) is done. */
static void
flows_keep_promises(const struct promise *p, const struct maps *m, size_t done)
{
	const struct state_ring *r, *f;
	uint32_t i, now, want, was;
	size_t k;

	for (k = 0; k < p->wanted->nring; k++) {
		r = &p->wanted->ring[k];
		f = ring_found(p->found, r);
		if (f == NULL || !m->ring[r->number].used)
			continue;
		for (i = 1; i < 64; i++) {
			if (ring_member(f->roles, i) ==
			    ring_member(r->roles, i) && ring_member(f->roles,
			    i) == ring_member(m->ring[r->number].roles, i))
				continue;
			now = ring_member(m->ring[r->number].roles, i);
			want = ring_member(r->roles, i);
			was = ring_member(f->roles, i);
			if (want & was & XLB_MEMBER_KEEPS)
				assert_true(now & XLB_MEMBER_KEEPS);
			if (done >= p->first && !(want & XLB_MEMBER_KEEPS))
				assert_false(now & XLB_MEMBER_KEEPS);
			if ((want | was) != 0 && done >= p->plan->n)
				assert_true(now & XLB_MEMBER);
		}
	}
}

/* What a plan has done to the words of a ring that was there. */
static void
words_keep_promises(const struct promise *p, const struct maps *m)
{
	const struct state_ring *r, *f;
	uint32_t i, now, was, prev;
	size_t k;

	for (k = 0; k < p->wanted->nring; k++) {
		r = &p->wanted->ring[k];
		f = ring_found(p->found, r);
		for (i = 0; f != NULL && i < RING; i++) {
			now = m->ring[r->number].slot[i];
			was = f->slot[i];
			prev = XLB_SLOT_PREV(now);
			if (was & XLB_SLOT_LOOKUP)
				assert_true(now & XLB_SLOT_LOOKUP);
			if (XLB_SLOT_CUR(now) == XLB_SLOT_CUR(was)) {
				assert_true(now == was ||
				    now == (was & 0xffff));
				continue;
			}
			if (XLB_SLOT_CUR(was) != 0)
				assert_true(now & XLB_SLOT_LOOKUP);
			assert_true(prev == 0 || prev == XLB_SLOT_PREV(was) ||
			    prev == XLB_SLOT_CUR(was));
			if (prev != 0)
				assert_true(ring_member(r->roles, prev) &
				    XLB_MEMBER_KEEPS);
		}
	}
}

/* After `done` operations: a slot whose backend is well stays where it is until
 * it goes where it will stay; a slot of a dead one is off it once (1) is done. */
static void
slots_keep_promises(const struct promise *p, const struct maps *m, size_t done)
{
	const struct state_ring *r, *f;
	uint32_t final[RING], i, now, was;
	size_t k;

	for (k = 0; k < p->wanted->nring; k++) {
		r = &p->wanted->ring[k];
		f = ring_found(p->found, r);
		if (f == NULL || !m->ring[r->number].used)
			continue;
		state_ring_words(p->rc, p->wanted, r, final);
		for (i = 0; i < RING; i++) {
			now = XLB_SLOT_CUR(m->ring[r->number].slot[i]);
			was = XLB_SLOT_CUR(f->slot[i]);
			if (now == final[i])
				continue;
			if (was == 0 || ring_eligible(r, was))
				assert_int_equal(now, was);
			else if (done >= p->first)
				assert_true(now == 0 || ring_eligible(r, now));
		}
	}
}

static const struct state_service *
service_find(const struct state *s, const struct state_service *key)
{
	return rows_find(key, s->service, s->nservice, sizeof(*key),
	    state_service_key_cmp);
}

/* Whatever listens before and after listens all the time: found by its own key
 * or, where the exact port is new or gone, through "any port". */
static void
services_keep_listening(const struct promise *p, struct maps *m)
{
	struct arena *a = arena_new();
	const struct state_service *v, *s, *any;
	struct state_service key;
	struct state now;
	size_t i;

	maps_read(m, a, &now);
	for (i = 0; i < p->found->nservice + p->wanted->nservice; i++) {
		v = i < p->found->nservice ? &p->found->service[i] :
		    &p->wanted->service[i - p->found->nservice];
		key = *v;
		key.port = 0;
		if (!service_find(p->wanted, v) &&
		    !service_find(p->wanted, &key))
			continue;
		if (!service_find(p->found, v) && !service_find(p->found, &key))
			continue;
		s = service_find(&now, v);
		any = service_find(&now, &key);
		if (s == NULL && any == NULL)
			fail_msg("port %u is unserved for a while", v->port);
	}
	arena_free(a);
}

/* Runs the plan as xlbd does: what depends on a failed operation is not tried.
 * True if nothing failed. */
static bool
plan_run(const struct plan *p, struct maps *m, const struct promise *promise)
{
	struct arena *a = arena_new();
	bool *failed = arena_calloc(a, p->n, sizeof(*failed)), ok = true;
	size_t i;

	for (i = 0; i < p->n; i++) {
		failed[i] = plan_blocked(p, failed, i);
		if (i < promise->first)
			assert_false(failed[i]);
		if (!failed[i])
			failed[i] = maps_do(m, &p->op[i]) < 0;
		ok &= !failed[i];
		holds(m);
		/* slots leave dead backends whatever else fails */
		if (m->fail_errno != 0 && m->fail_at >= promise->first)
			slots_keep_promises(promise, m, i + 1);
		if (ok && m->fail_errno == 0) {
			slots_keep_promises(promise, m, i + 1);
			flows_keep_promises(promise, m, i + 1);
			services_keep_listening(promise, m);
		}
	}
	if (ok)
		words_keep_promises(promise, m);
	arena_free(a);
	return ok;
}

static size_t
plan_first_addition(const struct plan *p)
{
	size_t i;

	for (i = 0; i < p->n && (p->op[i].kind == OP_RING_SLOTS ||
	    p->op[i].kind == OP_RING_ROLES); i++)
		;
	return i;
}

/* The same row is not written twice: the second time says nothing new. */
static void
each_op_is_there_once(const struct plan *p)
{
	size_t i, j;

	for (i = 0; i < p->n; i++)
		for (j = 0; j < i; j++)
			assert_false(p->op[i].row != NULL &&
			    p->op[i].kind == p->op[j].kind &&
			    p->op[i].row == p->op[j].row);
}

/* Plans and runs; true if there was nothing to do. */
static bool
reconcile(struct world *w, struct maps *m, struct ring_cache *rc)
{
	struct arena *a = arena_new();
	struct state found, wanted;
	struct promise pr = { .rc = rc };
	struct plan p;
	static struct maps copy;
	bool idle;

	/* the rings found are those before the plan, not what it makes */
	copy = *m;
	maps_read(&copy, a, &found);
	if (w != NULL)
		world_state(w, &found, a, &wanted);
	else
		state_empty(&wanted, &found);
	assert_null(state_check(&wanted, a));
	plan_build(&wanted, &found, rc, tick++, a, &p);
	each_op_is_there_once(&p);
	pr.wanted = &wanted;
	pr.found = &found;
	pr.plan = &p;
	pr.first = plan_first_addition(&p);
	plan_run(&p, m, &pr);
	idle = p.n == 0;
	if (idle)
		assert_int_equal(p.added + p.changed + p.removed, 0);
	arena_free(a);
	return idle;
}

/* The maps hold what is wanted, slot by slot. */
static void
world_arrived(struct world *w, struct maps *m, struct ring_cache *rc)
{
	struct arena *a = arena_new();
	struct state found, wanted;
	const struct state_ring *f;
	uint32_t word[RING];
	size_t i, k, retired = 0;

	maps_read(m, a, &found);
	world_state(w, &found, a, &wanted);
	assert_int_equal(found.nvip, wanted.nvip);
	assert_int_equal(found.nservice, wanted.nservice);
	for (i = 0; i < found.nbackend; i++)
		retired += found.backend[i].retired;
	assert_int_equal(found.nbackend - retired, wanted.nbackend);
	assert_int_equal(found.nnexthop, wanted.nnexthop);
	assert_true(found.nring >= wanted.nring);
	assert_int_equal(found.nport, wanted.nport);
	for (i = 0; i < wanted.nservice; i++) {
		assert_int_equal(found.service[i].ring, wanted.service[i].ring);
		assert_int_equal(found.service[i].old_ring,
		    wanted.service[i].old_ring);
		assert_int_equal(found.service[i].flags,
		    wanted.service[i].flags);
	}
	for (i = 0; i < wanted.nvip; i++)
		assert_int_equal(found.vip[i].flags, wanted.vip[i].flags);
	for (i = k = 0; i < wanted.nbackend; i++, k++) {
		while (found.backend[k].retired)
			k++;
		assert_int_equal(found.backend[k].number,
		    wanted.backend[i].number);
		assert_int_equal(found.backend[k].nexthop,
		    wanted.backend[i].nexthop);
	}
	for (i = 0; i < wanted.nnexthop; i++)
		assert_memory_equal(found.nexthop[i].mac,
		    wanted.nexthop[i].mac, 6);
	for (i = 0; i < wanted.nring; i++) {
		f = ring_found(&found, &wanted.ring[i]);
		assert_non_null(f);
		assert_string_equal(f->pool, wanted.ring[i].pool);
		state_ring_words(rc, &wanted, &wanted.ring[i], word);
		for (k = 0; k < RING; k++)
			assert_int_equal(word[k], XLB_SLOT_CUR(f->slot[k]));
		for (k = 0; k < RING_MEMBER_WORDS; k++)
			assert_int_equal(f->roles[k] & wanted.ring[i].roles[k],
			    wanted.ring[i].roles[k]);
	}
	assert_memory_equal(&found.settings, &wanted.settings,
	    sizeof(found.settings));
	arena_free(a);
}

static void
every_prefix_is_consistent(void **state)
{
	struct ring_cache *rc = ring_cache_new();
	static struct maps m;
	struct world w;
	size_t seed, step, worked = 0;

	(void)state;
	for (seed = 1; seed <= 40; seed++) {
		world_init(&w, seed);
		maps_mem_init(&m);
		for (step = 0; step < 50; step++) {
			worked += !reconcile(&w, &m, rc);
			world_arrived(&w, &m, rc);
			assert_true(reconcile(&w, &m, rc));
			world_step(&w);
			if (roll(&w, 3) == 0) {
				maps_mem_settle(&m);
				holds(&m);
			}
		}
		/* and back to nothing: `xlb stop` */
		assert_false(reconcile(NULL, &m, rc));
		assert_true(reconcile(NULL, &m, rc));
		assert_int_equal(m.nvip + m.nservice + m.nport, 0);
	}
	assert_true(worked > 1000);
	ring_cache_free(rc);
}

/* Every operation of a plan fails once; what does not depend on it is done, the
 * maps hold together, and the next plan repairs the rest. */
static void
a_failed_operation_is_made_up_for(void **state)
{
	struct ring_cache *rc = ring_cache_new();
	static struct maps m, copy;
	const struct op grace = { .kind = OP_GRACE };
	static const int errs[] = { ENOMEM, E2BIG, EPERM, EBUSY, ENOSPC };
	struct world w;
	size_t seed, step, at, fails = 0;

	(void)state;
	for (seed = 100; seed < 120; seed++) {
		world_init(&w, seed);
		maps_mem_init(&m);
		for (step = 0; step < 12; step++) {
			for (at = 0;; at++) {
				copy = m;
				copy.fail_at = at;
				copy.fail_errno = errs[fails % 5];
				reconcile(&w, &copy, rc);
				if (copy.done <= at)
					break;
				fails++;
				copy.fail_errno = 0;
				/* time has passed meanwhile */
				maps_do(&copy, &grace);
				reconcile(&w, &copy, rc);
				world_arrived(&w, &copy, rc);
				assert_true(reconcile(&w, &copy, rc));
			}
			reconcile(&w, &m, rc);
			if (roll(&w, 3) == 0)
				maps_mem_settle(&m);
			world_step(&w);
			world_step(&w);
		}
	}
	assert_true(fails > 1000);
	ring_cache_free(rc);
}

/* There for services that have left them: not repaired, only read. */
static bool
old_rings(const struct maps *m)
{
	size_t i;

	for (i = 0; i < m->nservice; i++)
		if (m->service[i].old_ring != m->service[i].ring)
			return true;
	return false;
}

/* Somebody edits the maps. */
static void
maps_damage(struct world *w, struct maps *m)
{
	uint32_t i = roll(w, 12);

	switch (roll(w, 9)) {
	case 0:
		if (!old_rings(m))
			memset(&m->backend[i], 0, sizeof(m->backend[i]));
		break;
	case 1:
		memset(&m->nexthop[i], 0, sizeof(m->nexthop[i]));
		break;
	case 2:
		m->ring[i].used = false;
		break;
	case 3:
		m->ring[i].slot[roll(w, RING)] = XLB_SLOT(roll(w, 20), 0, 0);
		break;
	case 4:
		if (m->nvip > 0)
			m->nvip--;
		break;
	case 5:
		if (m->nservice > 0)
			m->service[roll(w, (uint32_t)m->nservice)].ring = i;
		break;
	case 6:
		if (m->nport > 0)
			m->nport--;
		break;
	case 7:
		m->ring[roll(w, POOLS)].slot[roll(w, RING)] |=
		    XLB_SLOT(0, 1, i);
		ring_member_set(m->ring[roll(w, POOLS)].roles, i, roll(w, 4));
		break;
	default:
		if (m->nvip > 0)
			m->vip[0].flags ^= roll(w, 8);
		break;
	}
}

static void
drift_is_repaired(void **state)
{
	struct ring_cache *rc = ring_cache_new();
	static struct maps m;
	struct arena *a;
	struct state found, wanted;
	struct plan p;
	struct world w;
	size_t seed, step, i, repaired = 0;

	(void)state;
	for (seed = 200; seed < 240; seed++) {
		world_init(&w, seed);
		maps_mem_init(&m);
		reconcile(&w, &m, rc);
		for (step = 0; step < 40; step++) {
			if (step % 2 == 0) {
				maps_mem_settle(&m);
				reconcile(&w, &m, rc);
			}
			maps_damage(&w, &m);
			if (step % 3 == 0)
				maps_damage(&w, &m);
			if (step % 4 == 0)
				world_step(&w);
			a = arena_new();
			maps_read(&m, a, &found);
			world_state(&w, &found, a, &wanted);
			plan_build(&wanted, &found, rc, tick++, a, &p);
			for (i = 0; i < p.n; i++)
				assert_int_equal(maps_do(&m, &p.op[i]), 0);
			repaired += p.n > 0;
			arena_free(a);
			holds(&m);
			world_arrived(&w, &m, rc);
			assert_true(reconcile(&w, &m, rc));
		}
	}
	assert_true(repaired > 500);
	ring_cache_free(rc);
}

int
main(void)
{
	const struct CMUnitTest test[] = {
		cmocka_unit_test(every_prefix_is_consistent),
		cmocka_unit_test(a_failed_operation_is_made_up_for),
		cmocka_unit_test(drift_is_repaired),
	};

	return cmocka_run_group_tests_name("plan", test, NULL, NULL);
}
