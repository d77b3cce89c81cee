/* SPDX-License-Identifier: GPL-2.0-or-later */
/* io/maps_bpf against the real kernel: what is done is what is read back, by
 * whoever comes later, wherever the one before was stopped. */
#include "unit/unit.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/arena.h"
#include "core/maglev.h"
#include "core/ring_words.h"
#include "core/sweep.h"
#include "io/log.h"
#include "io/prog_int.h"
#include "kern.h"

#define RING_SIZE 251

static uint32_t tick = 1000;
static struct prog *prog;
static struct maps *m;
static const uint32_t no_roles[RING_MEMBER_WORDS];

static int
setup(void **state)
{
	struct prog_config c = { .bpf_dir = KERN_DIR, .ring_size = RING_SIZE,
	    .flow_entries = 1024, .seed = 7 };
	int rc;

	(void)state;
	kern_log_clear();
	rc = prog_open(&c, &prog);
	if (rc != 0)
		fail_msg("prog_open: %s: %s", strerror(-rc), kern_log());
	m = prog_maps(prog);
	return 0;
}

/* The pinned maps as the next process finds them. It loads the program, too,
 * which takes a hundred times as long and is test_prog's. */
static void
reopen(void)
{
	char path[MAPS_PATH_MAX];
	int fd[MAP_IDS], i, rc;

	maps_close(m);
	m = prog->maps = NULL;
	for (i = 0; i < MAP_IDS; i++) {
		fd[i] = bpf_obj_get(pin_path(path, KERN_DIR, "%s",
		    map_name[i]));
		assert_true(fd[i] >= 0);
	}
	rc = maps_open(KERN_DIR, fd, RING_SIZE, &prog->maps);
	if (rc != 0)
		fail_msg("maps_open: %s: %s", strerror(-rc), kern_log());
	m = prog->maps;
	for (i = 0; i < MAP_IDS; i++)
		close(fd[i]);
}

static int
teardown(void **state)
{
	int rc = kern_prog_end(prog);

	(void)state;
	prog = NULL;
	return rc;
}

static void
must(enum op_kind kind, uint32_t id, const void *row)
{
	struct op op = { .kind = kind, .id = id, .row = row };
	int rc = maps_do(m, &op);

	if (rc != 0)
		fail_msg("operation %d on %u: %s", kind, id, strerror(-rc));
}

static struct addr
addr4(uint32_t host_order)
{
	return addr_from4(htonl(host_order));
}

/* A world of objects, of which a random part is wanted. */
#define POOLS 6
#define MEMBERS 10
#define BACKENDS 40
#define HOPS 5
#define VIPS 30

struct world {
	bool pool[POOLS], backend[BACKENDS], vip[VIPS];
	uint32_t number[BACKENDS];	/* kept while it is there */
	uint32_t ring[POOLS], id[VIPS];
	uint32_t last;			/* number given */
};

static uint32_t
backend_of(uint32_t pool, uint32_t i)
{
	return (pool * 7 + i) % BACKENDS;
}

/* Another part is wanted; what comes new gets a number of its own. */
static void
world_turn(struct world *w)
{
	uint32_t i, k;
	bool was;

	for (i = 0; i < POOLS; i++) {
		was = w->pool[i];
		w->pool[i] = random() % 3 != 0;
		if (w->pool[i] && !was)
			w->ring[i] = w->last++ % XLB_RINGS;
	}
	for (i = 0; i < BACKENDS; i++) {
		was = w->backend[i];
		w->backend[i] = false;
		for (k = 0; k < POOLS * MEMBERS; k++)
			w->backend[i] |= w->pool[k / MEMBERS] &&
			    backend_of(k / MEMBERS, k % MEMBERS) == i;
		if (w->backend[i] && !was)
			w->number[i] = 1 + w->last++ % (XLB_BACKENDS - 1);
	}
	for (i = 0; i < VIPS; i++) {
		was = w->vip[i];
		w->vip[i] = w->pool[i % POOLS] && random() % 4 != 0;
		if (w->vip[i] && !was)
			w->id[i] = 1 + w->last++ % 65000;
	}
}

static void
world_hops(struct state *s, struct arena *a)
{
	struct state_nexthop *h;
	uint32_t i;

	s->port = arena_calloc(a, 1, sizeof(*s->port));
	s->port[s->nport++] = if_nametoindex("e0");
	s->nexthop = arena_calloc(a, HOPS, sizeof(*s->nexthop));
	for (i = 0; i < HOPS; i++) {
		h = &s->nexthop[s->nnexthop++];
		h->gateway = addr4(0x0a000001 + i);
		h->ifindex = s->port[0];
		h->src = addr4(0x0a0000fe);
		h->src_mac[5] = 1;
		h->mtu = 1500;
		h->mac[0] = 2;
		h->mac[5] = (uint8_t)random();
		h->vlan = (uint16_t)(i * 10);
		h->number = i + 1;
	}
}

static void
world_ring(const struct world *w, uint32_t pool, struct state *s,
    struct arena *a)
{
	struct state_ring *r = &s->ring[s->nring++];
	struct maglev_member *member;
	uint16_t *number;
	uint32_t *roles;
	bool *eligible;
	uint32_t i, b;

	member = arena_calloc(a, MEMBERS, sizeof(*member));
	number = arena_calloc(a, MEMBERS, sizeof(*number));
	eligible = arena_calloc(a, MEMBERS, sizeof(*eligible));
	roles = arena_calloc(a, RING_MEMBER_WORDS, sizeof(*roles));
	for (i = 0; i < MEMBERS; i++) {
		member[i].addr = addr4(0x0a010000 + pool * 256 + i);
		member[i].weight = 100;
		b = backend_of(pool, i);
		number[i] = (uint16_t)w->number[b];
		eligible[i] = random() % 4 != 0;
		ring_member_set(roles, number[i], XLB_MEMBER |
		    (eligible[i] || random() % 2 ? XLB_MEMBER_KEEPS : 0));
	}
	r->pool = arena_printf(a, "pool%u", pool);
	r->number = w->ring[pool];
	r->roles = roles;
	r->member = member;
	r->number_of = number;
	r->eligible = eligible;
	r->nmember = MEMBERS;
}

static void
world_vip(const struct world *w, uint32_t i, struct state *s)
{
	struct state_service *v;
	struct state_vip *vip;
	struct addr a = addr4(0xcb007100 + i);
	uint32_t k;

	if (i % 2 != 0)
		memset(a.b, (int)i, sizeof(a.b));	/* IPv6 */
	vip = &s->vip[s->nvip++];	/* as backends in world_state() */
	vip->addr = a;
	vip->id = w->id[i];
	vip->flags = i % 3 == 0 ? XLB_VIP_ANY_TCP : 0;
	for (k = 0; k < 2; k++) {
		v = &s->service[s->nservice++];
		v->vip = a;
		v->proto = k == 0 ? IPPROTO_TCP : IPPROTO_UDP;
		v->port = i % 3 == 0 && k == 0 ? 0 : 443;
		v->vip_id = w->id[i];
		v->number = i * 2 + k;
		v->ring = v->old_ring = w->ring[i % POOLS];
		v->flags = random() % 2 ? XLB_SERVICE_HASH_SOURCE : 0;
	}
}

static struct state *
world_state(const struct world *w, struct arena *a)
{
	struct state *s = arena_alloc(a, sizeof(*s));
	struct state_backend *b;
	uint32_t i;

	s->ring_size = RING_SIZE;
	s->seed = 7;
	s->settings = (struct xlb_settings){ .abi = XLB_ABI,
	    .ring_size = RING_SIZE, .seed = 7,
	    .gue_port = (uint16_t)random() };
	world_hops(s, a);
	s->ring = arena_calloc(a, POOLS, sizeof(*s->ring));
	for (i = 0; i < POOLS; i++)
		if (w->pool[i])
			world_ring(w, i, s, a);
	s->backend = arena_calloc(a, BACKENDS, sizeof(*s->backend));
	for (i = 0; i < BACKENDS; i++) {
		if (!w->backend[i])
			continue;
		/* field by field: rows are compared whole, holes too */
		b = &s->backend[s->nbackend++];
		b->addr = addr4(0x0a020000 + i);
		b->number = w->number[i];
		b->nexthop = (uint32_t)random() % (HOPS + 1);
	}
	s->vip = arena_calloc(a, VIPS, sizeof(*s->vip));
	s->service = arena_calloc(a, VIPS * 2, sizeof(*s->service));
	for (i = 0; i < VIPS; i++)
		if (w->vip[i])
			world_vip(w, i, s);
	state_sort(s);
	return s;
}

/* The row-by-row answer to whether the kernel holds just this. */
static void
found_is(const struct state *w, struct ring_cache *rc, struct arena *a)
{
	uint32_t word[RING_SIZE];
	struct state f;
	size_t i, k;

	assert_int_equal(maps_read(m, a, &f), 0);
	assert_memory_equal(&f.settings, &w->settings, sizeof(f.settings));
	assert_int_equal(f.nport, w->nport);
	assert_memory_equal(f.port, w->port, w->nport * sizeof(*w->port));
	assert_int_equal(f.nnexthop, w->nnexthop);
	for (i = 0; i < f.nnexthop; i++)
		assert_memory_equal(&f.nexthop[i], &w->nexthop[i],
		    sizeof(f.nexthop[i]));
	for (i = k = 0; i < f.nbackend; i++)
		if (!f.backend[i].retired)
			f.backend[k++] = f.backend[i];
	assert_int_equal(k, w->nbackend);
	for (i = 0; i < k; i++)
		assert_memory_equal(&f.backend[i], &w->backend[i],
		    sizeof(f.backend[i]));
	assert_int_equal(f.nvip, w->nvip);
	for (i = 0; i < f.nvip; i++)
		assert_memory_equal(&f.vip[i], &w->vip[i], sizeof(f.vip[i]));
	assert_int_equal(f.nservice, w->nservice);
	for (i = 0; i < f.nservice; i++) {
		assert_memory_equal(&f.service[i].vip, &w->service[i].vip, 16);
		assert_int_equal(f.service[i].port, w->service[i].port);
		assert_int_equal(f.service[i].proto, w->service[i].proto);
		assert_int_equal(f.service[i].ring, w->service[i].ring);
		assert_int_equal(f.service[i].old_ring,
		    w->service[i].old_ring);
		assert_int_equal(f.service[i].number, w->service[i].number);
		assert_int_equal(f.service[i].flags, w->service[i].flags);
	}
	assert_int_equal(f.nring, w->nring);
	for (i = 0; i < f.nring; i++) {
		assert_string_equal(f.ring[i].pool, w->ring[i].pool);
		assert_int_equal(f.ring[i].number, w->ring[i].number);
		state_ring_words(rc, w, &w->ring[i], word);
		for (k = 0; k < RING_SIZE; k++)
			assert_int_equal(XLB_SLOT_CUR(f.ring[i].slot[k]),
			    word[k]);
		for (k = 1; k < XLB_BACKENDS; k++)
			assert_int_equal(ring_member(f.ring[i].roles,
			    (uint32_t)k) & (ring_member(w->ring[i].roles,
			    (uint32_t)k) | XLB_MEMBER_KEEPS),
			    ring_member(w->ring[i].roles, (uint32_t)k));
	}
}

/* From what the kernel holds to what is wanted; `check` after every step. */
static void
converge(const struct state *w, struct ring_cache *rc, struct arena *a,
    bool check)
{
	struct state found, now;
	const char *wrong;
	struct plan p;
	size_t i;
	int r;

	assert_int_equal(maps_read(m, a, &found), 0);
	plan_build(w, &found, rc, tick++, a, &p);
	for (i = 0; i < p.n; i++) {
		r = maps_do(m, &p.op[i]);
		if (r == 0)	/* all are idempotent */
			r = maps_do(m, &p.op[i]);
		if (r != 0)
			fail_msg("operation %zu, kind %d: %s", i, p.op[i].kind,
			    strerror(-r));
		if (!check)
			continue;
		assert_int_equal(maps_read(m, a, &now), 0);
		wrong = state_check(&now, a);
		if (wrong != NULL)
			fail_msg("after operation %zu, kind %d: %s", i,
			    p.op[i].kind, wrong);
	}
}

static void
random_states_are_read_back(void **state)
{
	struct ring_cache *rc = ring_cache_new();
	struct world w = { .last = 1 };
	struct arena *a;
	struct state *s;
	int i;

	(void)state;
	srandom(1);
	for (i = 0; i < 12; i++) {
		a = arena_new();
		world_turn(&w);
		s = world_state(&w, a);
		converge(s, rc, a, true);
		found_is(s, rc, a);
		reopen();
		found_is(s, rc, a);
		arena_free(a);
	}
	a = arena_new();
	s = arena_alloc(a, sizeof(*s));
	memset(&w, 0, sizeof(w));
	s = world_state(&w, a);
	converge(s, rc, a, true);
	found_is(s, rc, a);
	arena_free(a);
	ring_cache_free(rc);
}

static void
one_killed_between_operations_leaves_what_the_next_can_use(void **state)
{
	struct ring_cache *rc = ring_cache_new();
	struct world w = { .last = 1 };
	struct state found, *s;
	const char *wrong;
	struct arena *a;
	pid_t pid;
	int i;

	(void)state;
	srandom(2);
	for (i = 0; i < 30; i++) {
		a = arena_new();
		world_turn(&w);
		s = world_state(&w, a);
		pid = fork();
		if (pid == 0) {
			converge(s, rc, a, false);
			_exit(0);
		}
		usleep((useconds_t)(random() % 60000));
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		reopen();
		assert_int_equal(maps_read(m, a, &found), 0);
		wrong = state_check(&found, a);
		if (wrong != NULL)
			fail_msg("round %d: %s", i, wrong);
		converge(s, rc, a, false);
		found_is(s, rc, a);
		arena_free(a);
	}
	ring_cache_free(rc);
}

/* `n` addresses whose rows all begin at the same place. */
static void
colliding(struct state_vip *v, size_t n)
{
	uint32_t i, at;
	size_t k = 0;
	__be32 w[4];

	for (i = 0; k < n; i++) {
		v[k].addr = addr4(0x0a000000 + i);
		v[k].id = (uint32_t)k + 1;
		v[k].flags = 0;
		memcpy(w, v[k].addr.b, sizeof(w));
		if (k == 0)
			at = xlb_vip_hash(w);
		if (xlb_vip_hash(w) == at)
			k++;
	}
}

static uint32_t
row_of(uint32_t id)
{
	uint32_t i;

	for (i = 0; i < XLB_TABLE_ROWS; i++)
		if (m->tables->vip[i].id == id)
			return i;
	return XLB_TABLE_ROWS;
}

static bool
in_filter(const struct state_vip *v)
{
	__be32 w[4];

	memcpy(w, v->addr.b, sizeof(w));
	return xlb_vip_filter_has(m->tables, xlb_vip_hash(w));
}

static bool
is_plain(uint32_t addr)
{
	return xlb_source_is_plain(m->tables, xlb_source_at(htonl(addr)));
}

static void
plain_sources_follow_vips_and_prefix(void **state)
{
	struct state_vip v[2] = { { .addr = addr4(0xcb007101), .id = 1 },
	    { .addr = addr4(0xcb00720a), .id = 2 } };
	struct xlb_settings s = m->tables->settings;

	(void)state;
	assert_true(is_plain(0xcb000000) && is_plain(0x0aff0001));
	assert_false(is_plain(0x7f010101) || is_plain(0xe0000001) ||
	    is_plain(0x00010203));
	must(OP_VIP_PUT, 1, &v[0]);
	must(OP_VIP_PUT, 2, &v[1]);
	assert_false(is_plain(0xcb000000));
	must(OP_VIP_PUT, 2, &v[1]);	/* the same again is no other one */
	must(OP_VIP_DEL, 2, &v[1]);
	assert_false(is_plain(0xcb000000));
	s.source4 = htonl(0x0afc0000);	/* 10.252.0.0/14 */
	s.source4_mask = htonl(0x0003ffff);
	must(OP_SETTINGS_PUT, 0, &s);
	assert_false(is_plain(0x0afc0001) || is_plain(0x0aff0001));
	assert_true(is_plain(0x0afb0001) && is_plain(0x0b000001));
	/* bits of an xlbd that was cut short */
	memset(m->tables->plain_source, 0x5a, sizeof(m->tables->plain_source));
	reopen();
	assert_false(is_plain(0xcb000000) || is_plain(0x0afd0001) ||
	    is_plain(0x7f000001));
	assert_true(is_plain(0x0afb0001) && is_plain(0x01020304) &&
	    is_plain(0xdfff0001));
	must(OP_VIP_DEL, 1, &v[0]);
	assert_true(is_plain(0xcb000000));
	s.source4 = s.source4_mask = 0;
	must(OP_SETTINGS_PUT, 0, &s);
	assert_true(is_plain(0x0aff0001));
}

/* Two VIPs with one hash, one bit in the filter. */
static void
the_filter_has_every_vip(void **state)
{
	struct state_vip v[3];

	(void)state;
	memset(v, 0, sizeof(v));
	colliding(v, 2);
	v[2].addr = addr4(0x0afffff1);
	v[2].id = 3;
	must(OP_VIP_PUT, 1, &v[0]);
	must(OP_VIP_PUT, 2, &v[1]);
	assert_true(in_filter(&v[0]));
	assert_false(in_filter(&v[2]));
	must(OP_VIP_DEL, 1, &v[0]);
	assert_true(in_filter(&v[1]));
	must(OP_VIP_PUT, 3, &v[2]);
	assert_true(in_filter(&v[2]));
	must(OP_VIP_DEL, 2, &v[1]);
	assert_false(in_filter(&v[1]));
	/* a bit for nothing, and one that is missing */
	memset(m->tables->vip_filter, 0xa5, sizeof(m->tables->vip_filter));
	reopen();
	assert_true(in_filter(&v[2]));
	must(OP_VIP_DEL, 3, &v[2]);
	assert_int_equal(m->tables->vip_filter[0], 0);
	assert_memory_equal(m->tables->vip_filter, m->tables->vip_filter + 1,
	    sizeof(m->tables->vip_filter) - sizeof(m->tables->vip_filter[0]));
}

static void
rows_are_used_again_after_a_grace_period(void **state)
{
	struct state_vip v[XLB_PROBE + 2];
	struct op op = { .kind = OP_VIP_PUT };
	uint32_t first, i;

	(void)state;
	memset(v, 0, sizeof(v));
	colliding(v, XLB_PROBE + 2);
	for (i = 0; i < 4; i++)
		must(OP_VIP_PUT, v[i].id, &v[i]);
	first = row_of(1);
	must(OP_VIP_DEL, 1, &v[0]);
	assert_int_equal(m->tables->vip[first].id, XLB_ROW_GONE);
	must(OP_VIP_PUT, 5, &v[4]);
	assert_int_equal(row_of(5), first + 4);
	must(OP_GRACE, 0, NULL);
	must(OP_VIP_PUT, 6, &v[5]);
	assert_int_equal(row_of(6), first);

	/* another id for an address is another VIP: the old one's end does not
	 * touch it */
	v[5].id = 66;
	must(OP_VIP_PUT, 66, &v[5]);
	v[5].id = 6;
	must(OP_VIP_DEL, 6, &v[5]);
	assert_int_equal(row_of(66), first);
	v[5].id = 66;

	/* full, and what was deleted a moment ago is the only room left */
	for (i = 6; i < XLB_PROBE + 1; i++)
		must(OP_VIP_PUT, v[i].id, &v[i]);
	op.row = &v[XLB_PROBE + 1];
	assert_int_equal(maps_do(m, &op), -ENOSPC);
	must(OP_VIP_DEL, 3, &v[2]);
	assert_int_equal(maps_do(m, &op), 0);
	assert_int_equal(row_of(XLB_PROBE + 2), first + 2);

	/* a restart does not know when: it waits once, at its start */
	must(OP_VIP_DEL, 4, &v[3]);
	reopen();
	must(OP_VIP_PUT, 3, &v[2]);
	assert_int_equal(row_of(3), first + 3);
	for (i = 0; i < XLB_PROBE + 2; i++)
		must(OP_VIP_DEL, v[i].id, &v[i]);
	must(OP_GRACE, 0, NULL);
	for (i = 0; i < XLB_TABLE_ROWS; i++)
		assert_int_equal(m->tables->vip[i].id, XLB_ROW_EMPTY);
}

/* While halves are written over and over, a reader of either sees only words
 * that some table had there. */
static void
ring_words_are_whole_for_every_reader(void **state)
{
	uint32_t word[2][RING_SIZE], i, n = 0;
	struct op_ring r = { .number = 9, .pool = "web", .size = RING_SIZE,
	    .slot = word[0], .roles = no_roles };
	const struct xlb_ring *ring;
	double begin;
	int status, reads[2];
	pid_t pid;
	char c;

	(void)state;
	for (i = 0; i < RING_SIZE; i++) {
		word[0][i] = XLB_SLOT(1 + i, 0, 0x5555);
		word[1][i] = XLB_SLOT(0x2aaa, 1, 1 + i);
	}
	must(OP_RING_NEW, 9, &r);
	ring = m->ring[9].map;
	assert_int_equal(pipe(reads), 0);
	pid = fork();
	if (pid == 0) {
		for (bool told = false;; told = true) {
			if (!told && write(reads[1], "r", 1) != 1)
				_exit(2);
			for (i = 0; i < 2 * RING_SIZE; i++) {
				uint32_t w = __atomic_load_n(&ring->slot[i],
				    __ATOMIC_RELAXED);

				if (w != word[0][i % RING_SIZE] &&
				    w != word[1][i % RING_SIZE])
					_exit(1);
			}
		}
	}
	assert_int_equal(read(reads[0], &c, 1), 1);	/* it has begun */
	close(reads[0]);
	close(reads[1]);
	begin = now_ms();
	while (now_ms() - begin < 300) {
		r.slot = word[++n & 1];
		must(OP_RING_SLOTS, 9, &r);
	}
	assert_int_equal(waitpid(pid, &status, WNOHANG), 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	print_message("# %u changes of %u slots\n", n, RING_SIZE);
	assert_memory_equal(ring->slot + (ring->active ? RING_SIZE : 0),
	    word[n & 1], sizeof(word[0]));
	/* the half that packets read is never written */
	r.slot = word[++n & 1];
	i = ring->active;
	must(OP_RING_SLOTS, 9, &r);
	assert_int_not_equal(ring->active, i);
	assert_memory_equal(ring->slot + (i ? RING_SIZE : 0),
	    word[(n - 1) & 1], sizeof(word[0]));
	r.size = 257;
	struct op bad = { .kind = OP_RING_SLOTS, .id = 9, .row = &r };
	assert_int_equal(maps_do(m, &bad), -EINVAL);
	r.number = 10;
	r.size = RING_SIZE;
	assert_int_equal(maps_do(m, &bad), -ENOENT);
}

static void
rings_left_half_done_are_completed(void **state)
{
	uint32_t word[RING_SIZE] = { 0 }, n = 3, id;
	struct op_ring r = { .number = 3, .pool = "web", .size = RING_SIZE,
	    .slot = word, .roles = no_roles };
	struct arena *a = arena_new();
	struct state found;

	(void)state;
	must(OP_RING_NEW, 3, &r);
	/* pinned, but not in the table */
	assert_int_equal(bpf_map_delete_elem(m->fd[MAP_RING_TABLE], &n), 0);
	reopen();
	assert_int_equal(bpf_map_lookup_elem(m->fd[MAP_RING_TABLE], &n, &id),
	    0);
	assert_int_equal(maps_read(m, a, &found), 0);
	assert_int_equal(found.nring, 1);
	assert_string_equal(found.ring[0].pool, "web");
	/* in the table, but not pinned */
	run("rm %s/rings/3", KERN_DIR);
	reopen();
	assert_int_not_equal(bpf_map_lookup_elem(m->fd[MAP_RING_TABLE], &n,
	    &id), 0);
	assert_int_equal(maps_read(m, a, &found), 0);
	assert_int_equal(found.nring, 0);
	must(OP_RING_NEW, 3, &r);
	/* a name that an earlier one was about to give */
	run("mkdir %s/x && mv %s/rings/3 %s/rings/3-new && rmdir %s/x",
	    KERN_DIR, KERN_DIR, KERN_DIR, KERN_DIR);
	reopen();
	must(OP_RING_NEW, 3, &r);
	must(OP_RING_DEL, 3, NULL);
	must(OP_RING_DEL, 3, NULL);
	assert_int_not_equal(access(KERN_DIR "/rings/3", F_OK), 0);
	arena_free(a);
}

static void
counters_begin_at_zero(void **state)
{
	struct state_backend b = { .addr = addr4(0x0a000001), .number = 5 };
	struct state_service s = { .vip_id = 1, .proto = 6, .port = 80,
	    .number = 4, .ring = 1 };
	struct xlb_service_stats ss;
	struct xlb_backend_stats bs;
	struct xlb_reasons rs;
	int cpu;

	(void)state;
	must(OP_BACKEND_PUT, 5, &b);
	must(OP_SERVICE_PUT, 4, &s);
	for (cpu = 0; cpu < m->ncpu; cpu++) {
		m->stats[cpu].service[4].packets = 1000;
		m->stats[cpu].service[4].drops = 1;
		m->stats[cpu].backend[5].bytes = 1000;
		m->stats[cpu].reasons.packets[XLB_REASON_ENCAP_FAILED] = 7;
	}

	b.nexthop = 3;		/* a change in place counts on */
	s.ring = 2;
	must(OP_BACKEND_PUT, 5, &b);
	must(OP_SERVICE_PUT, 4, &s);
	assert_int_equal(maps_backend_stats(m, 5, &bs), 0);
	assert_int_equal(bs.bytes, 1000 * m->ncpu);
	assert_int_equal(maps_service_stats(m, 4, &ss), 0);
	assert_int_equal(ss.packets, 1000 * m->ncpu);
	assert_int_equal(ss.drops, m->ncpu);
	assert_int_equal(maps_reasons(m, &rs), 0);
	assert_int_equal(rs.packets[XLB_REASON_ENCAP_FAILED], 7 * m->ncpu);
	assert_int_equal(rs.packets[XLB_REASON_FORWARD], 0);

	must(OP_SERVICE_DEL, 4, &s);	/* the numbers go to others */
	must(OP_BACKEND_DEL, 5, &b);
	must(OP_GRACE, 0, NULL);
	s.port = 81;
	b.addr = addr4(0x0a000002);
	must(OP_BACKEND_PUT, 5, &b);
	must(OP_SERVICE_PUT, 4, &s);
	assert_int_equal(maps_backend_stats(m, 5, &bs), 0);
	assert_int_equal(bs.bytes, 0);
	assert_int_equal(maps_service_stats(m, 4, &ss), 0);
	assert_int_equal(ss.packets + ss.drops, 0);
}

static void
health_outlives_us(void **state)
{
	struct health_row row[3] = {
		{ .addr = addr4(0x0a000002), .vip = addr4(0xcb007101),
		    .port = 80, .check = "web", .passed = true,
		    .fsm = { .state = HEALTH_DOWN, .why = PROBE_REFUSED },
		    .since = 12345678901234 },
		{ .addr = addr4(0x0a000001), .port = 81, .check = "web",
		    .fsm = { .state = HEALTH_DRAIN, .why = PROBE_DRAIN,
		    .detail = 503 } },
		{ .addr = addr4(0x0a000001), .port = 80, .check =
		    "a-name-of-63-characters-a-name-of-63-characters-"
		    "a-name-of-63-ch", .fsm = { .state = HEALTH_UP } },
	};
	struct arena *a = arena_new();
	struct xlb_health_key odd = { .port = 9 };
	struct xlb_health h = { .state = 99 };
	struct health_table t;
	int i;

	(void)state;
	for (i = 0; i < 3; i++)
		assert_int_equal(maps_health_put(m, &row[i]), 0);
	assert_int_equal(bpf_map_update_elem(m->fd[MAP_HEALTH], &odd, &h,
	    BPF_ANY), 0);
	reopen();
	assert_int_equal(maps_health_read(m, a, &t), 0);
	assert_int_equal(t.n, 3);
	assert_string_equal(t.row[0].check, row[2].check);
	assert_int_equal(t.row[1].port, 81);
	assert_int_equal(t.row[1].fsm.state, HEALTH_DRAIN);
	assert_int_equal(t.row[1].fsm.why, PROBE_DRAIN);
	assert_int_equal(t.row[1].fsm.detail, 503);
	assert_int_equal(t.row[2].fsm.state, HEALTH_DOWN);
	assert_int_equal(t.row[2].fsm.why, PROBE_REFUSED);
	assert_int_equal(t.row[2].since, 12345678901234);
	assert_int_equal(addr_cmp(&t.row[2].vip, &row[0].vip), 0);
	assert_true(t.row[2].passed);
	assert_true(addr_is_zero(&t.row[1].vip));
	assert_int_equal(maps_health_del(m, &row[0]), 0);
	assert_int_equal(maps_health_del(m, &row[0]), 0);
	assert_int_equal(maps_health_read(m, a, &t), 0);
	assert_int_equal(t.n, 2);
	arena_free(a);
}

/* What settings and next hops never do is waver: words that stay are not
 * written, and one without a MAC address is unresolved. */
static void
next_hops_change_in_place(void **state)
{
	struct state_nexthop h = { .gateway = addr4(1), .ifindex = 7,
	    .src = addr4(2), .mtu = 1500, .mac = { 2, 0, 0, 0, 0, 1 },
	    .vlan = 0x0123, .number = 4 };
	uint8_t wire[8] = { 2, 0, 0, 0, 0, 9, 0x01, 0x23 };
	struct op op = { .kind = OP_NEXTHOP_PUT, .id = 0, .row = &h };

	(void)state;
	must(OP_NEXTHOP_PUT, 4, &h);
	h.mac[5] = 9;
	must(OP_NEXTHOP_PUT, 4, &h);
	assert_memory_equal(&m->tables->nexthop[4].mac_vlan, wire, 8);
	assert_int_equal(m->tables->nexthop[4].flags, XLB_NEXTHOP_VALID);
	assert_int_equal(m->tables->nexthop[4].mtu, 1500);
	must(OP_NEXTHOP_DEL, 4, &h);
	assert_int_equal(m->tables->nexthop[4].mac_vlan, 0);
	assert_int_equal(maps_do(m, &op), -EINVAL);
	op.id = XLB_NEXTHOPS;
	assert_int_equal(maps_do(m, &op), -EINVAL);
	op.kind = OP_BACKEND_DEL;
	assert_int_equal(maps_do(m, &op), -EINVAL);
	op.kind = OP_KINDS;
	assert_int_equal(maps_do(m, &op), -EINVAL);
}

/* Who listens to events is not part of what is wanted. */
static void
settings_leave_the_lease(void **state)
{
	struct arena *a = arena_new();
	struct xlb_settings s = m->tables->settings;
	struct state found;

	(void)state;
	__atomic_store_n(&m->tables->settings.listening, 77, __ATOMIC_RELEASE);
	assert_int_equal(maps_read(m, a, &found), 0);
	assert_int_equal(found.settings.listening, 0);
	s.gue_port ^= 1;
	s.listening = 0;
	must(OP_SETTINGS_PUT, 0, &s);
	assert_int_equal(m->tables->settings.gue_port, s.gue_port);
	assert_int_equal(m->tables->settings.listening, 77);
	m->tables->settings.listening = 0;
	arena_free(a);
}

/* Where a process that asks for one after the other spends its time. */
static void
a_grace_period_waits_for_every_packet(void **state)
{
	char path[64], stack[4096];
	bool seen = false;
	FILE *f = NULL;
	pid_t pid;
	size_t n;
	int i;

	(void)state;
	pid = fork();
	if (pid == 0)
		while (maps_grace(m) == 0)
			;
	snprintf(path, sizeof(path), "/proc/%d/stack", (int)pid);
	for (i = 0; i < 4000 && !seen; i++) {
		usleep(5000);
		f = fopen(path, "r");
		if (f == NULL)
			break;
		n = fread(stack, 1, sizeof(stack) - 1, f);
		stack[n] = '\0';
		fclose(f);
		seen = strstr(stack, "synchronize_rcu") != NULL;
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	if (f == NULL) {
		print_message("# this kernel shows no stacks\n");
		skip();
	}
	assert_true(seen);
}

static void
times_are_shown(void **state)
{
	uint32_t word[RING_SIZE] = { 0 }, i;
	struct op_ring r = { .pool = "web", .size = RING_SIZE, .slot = word,
	    .roles = no_roles };
	struct arena *a = arena_new();
	double begin;
	struct state found;

	(void)state;
	begin = now_ms();
	for (i = 0; i < 20; i++)
		must(OP_GRACE, 0, NULL);
	print_message("# grace %.2f ms\n", (now_ms() - begin) / 20);
	begin = now_ms();
	for (r.number = 0; r.number < 20; r.number++)
		must(OP_RING_NEW, r.number, &r);
	print_message("# a new ring %.2f ms\n", (now_ms() - begin) / 20);
	begin = now_ms();
	assert_int_equal(maps_read(m, a, &found), 0);
	print_message("# all read back in %.2f ms\n", now_ms() - begin);
	for (i = 0; i < m->sets; i++)
		memset(m->flows[i].entry, 0x11, sizeof(m->flows[i].entry));
	begin = now_ms();
	sweep_begin(maps_sweep(m), SWEEP_SCAN_ALWAYS);
	for (i = 0; sweep_step(maps_sweep(m), 0x0111) != SWEEP_DONE; i++)
		sweep_graced(maps_sweep(m));
	print_message("# a flow table of %u entries gone through in %.2f ms, "
	    "%u pieces\n", maps_flow_entries(m), now_ms() - begin, i);
	arena_free(a);
}

/* A drain that was followed by a kill, and then by kills while its traces go:
 * the maps alone say how far it has come. */
enum { A = 1, B, C };

static uint64_t *
flow(uint32_t at, uint32_t backend)
{
	uint64_t *e = (uint64_t *)&m->flows[at].entry[at % XLB_FLOW_WAYS];

	*e = XLB_FLOW(at << 8, backend, XLB_FLOW_CONFIRMED, tick);
	return e;
}

/* True if it ended; grace periods are real ones. */
static bool
sweep_pass(int stop)
{
	struct sweep *s = maps_sweep(m);
	enum sweep_state state;

	sweep_begin(s, SWEEP_SCAN_ASKED);
	while (stop-- != 0) {
		state = sweep_step(s, tick);
		if (state == SWEEP_DONE)
			return true;
		if (state == SWEEP_GRACE) {
			assert_int_equal(maps_grace(m), 0);
			sweep_graced(s);
		}
	}
	return false;
}

static void
drain_a(void)
{
	struct op_ring r = { .number = 3, .pool = "web", .size = RING_SIZE };
	uint32_t word[RING_SIZE], past[RING_SIZE] = { 0 }, i;
	uint32_t roles[RING_MEMBER_WORDS] = { 0 };
	struct state_backend b;

	for (i = A; i <= C; i++) {
		b = (struct state_backend){ .addr = addr4(0x0a000000 + i),
		    .number = i };
		must(OP_BACKEND_PUT, i, &b);
		ring_member_set(roles, i, XLB_MEMBER | XLB_MEMBER_KEEPS);
	}
	r.slot = word;
	r.past = past;
	r.roles = roles;
	for (i = 0; i < RING_SIZE; i++)
		word[i] = XLB_SLOT(A, 0, 0);
	must(OP_RING_NEW, 3, &r);
	for (i = 0; i < RING_SIZE; i++) {
		word[i] = XLB_SLOT(B, 1, i % 2 ? A : 0);
		past[i] = XLB_PAST(A, tick - RING_PREV_TICKS * (i % 4 != 3));
	}
	ring_member_set(roles, C, XLB_MEMBER);
	must(OP_RING_SLOTS, 3, &r);
	must(OP_BACKEND_RETIRE, C, NULL);
}

static void
what_a_drain_leaves_goes_however_often_we_are_killed(void **state)
{
	static const int stops[] = { 1, 5, 6, 7, 8, 9 };
	const struct state_ring *ring;
	struct arena *a = arena_new();
	uint64_t *held, *gone;
	struct state found;
	uint32_t i;
	size_t k;

	(void)state;
	for (k = 0; k < sizeof(stops) / sizeof(stops[0]); k++) {
		drain_a();
		held = flow(20, A);
		gone = flow(40, C);
		sweep_pass(stops[k]);
		reopen();
		held = (uint64_t *)&m->flows[20].entry[4];
		gone = (uint64_t *)&m->flows[40].entry[0];
		assert_int_equal(XLB_FLOW_BACKEND(*held), A);
		assert_true(sweep_pass(-1));
		assert_true(sweep_pass(-1));
		assert_int_equal(*gone, 0);
		assert_int_equal(sweep_freed(maps_sweep(m), 1), C);
		maps_backend_free(m, C);
		assert_int_equal(maps_read(m, a, &found), 0);
		assert_null(state_check(&found, a));
		assert_int_equal(found.nbackend, 2);
		ring = &found.ring[0];
		assert_int_equal(ring_member(ring->roles, C), 0);
		for (i = 0; i < RING_SIZE; i++)
			assert_int_equal(ring->slot[i], XLB_SLOT(B,
			    i % 4 == 3 || i == XLB_FLOW_TAG(*held) / 256 *
			    256ULL * RING_SIZE >> 32, i % 4 == 3 ? A : 0));
	}
	arena_free(a);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
	const struct CMUnitTest test[] = {
		CASE(random_states_are_read_back),
		CASE(one_killed_between_operations_leaves_what_the_next_can_use),
		CASE(rows_are_used_again_after_a_grace_period),
		CASE(the_filter_has_every_vip),
		CASE(plain_sources_follow_vips_and_prefix),
		CASE(ring_words_are_whole_for_every_reader),
		CASE(rings_left_half_done_are_completed),
		CASE(counters_begin_at_zero),
		CASE(health_outlives_us),
		CASE(settings_leave_the_lease),
		CASE(next_hops_change_in_place),
		CASE(a_grace_period_waits_for_every_packet),
		CASE(what_a_drain_leaves_goes_however_often_we_are_killed),
		CASE(times_are_shown),
	};

	kern_enter();
	kern_bpffs();
	run("ip link add e0 type veth peer name e1");
	log_init("test_maps", false);
	log_libbpf();
	return cmocka_run_group_tests_name("maps", test, NULL, NULL);
}
