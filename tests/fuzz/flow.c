/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The flow table under a sequence of operations: packets, rings that move, a
 * backend that dies, time, passes in pieces, floods, a table that grows. A
 * connection whose entry is confirmed keeps its backend for as long as that lives
 * and the manual says, whatever else happens; and nothing goes to a dead one.
 * The code is the packet program's, core/sweep, core/ring_words, core/flow_copy.
 */
#include "fuzz.h"

#include "../prog/engine_host.c"

#include "core/flow_copy.h"
#include "core/ring_words.h"
#include "core/sweep.h"

#define SLOTS 5
#define BACKENDS 6		/* numbers 1.. */
#define CONNECTIONS 24
#define SETS 8			/* at first */
#define SETS_MAX 64
#define OPS_MAX 1024
#define PASSES_MAX 12		/* each looks at all rows of services */
#define PASS_TICKS 4000		/* xlbd reads the table well within a wrap */

static struct connection {
	uint32_t select;
	uint64_t flow;
	bool firm;		/* its entry is confirmed */
	uint32_t with;		/* that backend */
	uint32_t used;		/* tick */
	unsigned floods;	/* that there had been then */
} conn[CONNECTIONS];

static struct xlb_tables *tables_at;
static struct xlb_ring *ring;
static struct xlb_flow_set *table;
static struct sweep *sweep;
static uint32_t now, sets, passed;	/* tick, sets, tick of the last pass */
static unsigned floods, passes;
static uint64_t dice;

static uint32_t *
half(unsigned which)
{
	return ring->slot + which * SLOTS;
}

static bool
keeps(uint32_t backend)
{
	return ring_member(ring->member, backend) & XLB_MEMBER_KEEPS;
}

static void
table_use(struct xlb_flow_set *t, uint32_t n)
{
	table = t;
	sets = n;
	flow_mask = n - 1;
	host_map_find("flows")->memory = (uint8_t *)t;
	host_map_find("flows")->entries = n;
	sweep_flows(sweep, t, n);
}

/* Two or three connections share a set, and no two a tag. */
static void
connections_make(void)
{
	uint32_t i;

	memset(conn, 0, sizeof(conn));
	for (i = 0; i < CONNECTIONS; i++) {
		conn[i].select = (uint32_t)(((uint64_t)(i % SLOTS) << 32) /
		    SLOTS) + 0x100000 + (i << 8);
		conn[i].flow = (uint64_t)conn[i].select << 32 | i * 7;
	}
}

static void
begin(void)
{
	const struct engine_config c = { SLOTS, SETS * XLB_FLOW_WAYS, 0, false };
	char why[64];
	uint32_t insns;
	size_t len;

	FUZZ_CHECK(engine_open(&c, &insns, why, sizeof(why)) == 0);
	tables_at = engine_map("tables", &len);
	tables_at->settings.flow_budget = UINT32_MAX;
	free(host_map_find("flows")->memory);
	host_map_find("flows")->memory = NULL;
}

static void
fresh(void)
{
	size_t len;
	uint32_t i;

	if (tables_at == NULL)
		begin();
	free(table);
	memset(host_map_find("flow_stats")->memory, 0,
	    sizeof(struct xlb_flow_stats));
	ring = engine_ring(0, &len);
	ring->size = SLOTS;
	now = passed = 100000;
	floods = passes = 0;
	dice = 0;
	for (i = 1; i <= BACKENDS; i++)
		ring_member_set(ring->member, i, XLB_MEMBER | XLB_MEMBER_KEEPS);
	for (i = 0; i < SLOTS; i++)
		half(0)[i] = XLB_SLOT(1 + i % BACKENDS, 0, 0);
	sweep_free(sweep);
	sweep = sweep_new(tables_at, SLOTS);
	sweep_ring(sweep, 0, ring);
	table_use(calloc(SETS, sizeof(*table)), SETS);
	engine_clock((uint64_t)now << XLB_FLOW_TICK_SHIFT, now);
	connections_make();
}

static uint32_t
word_of(uint32_t select)
{
	return half(ring->active)[(uint64_t)select * SLOTS >> 32];
}

/* As xlb_select() has it: who gets the packet. */
static uint32_t
packet(uint32_t select, uint64_t flow, uint8_t flags, bool data)
{
	uint8_t frame[100] = { 0 };
	struct sys_ctx ctx = { frame, frame + sizeof(frame), 1 };
	uint32_t word = word_of(select), to = XLB_SLOT_CUR(word);
	struct pkt p = { .tables = tables_at, .flow = flow, .hash = select,
	    .service = XLB_SERVICE_WORD(0, 0, 0, 0), .tcp_flags = flags };

	frame[14 + 20 + 12] = 5 << 4;
	if (flow_is_looked_up(&p, word))
		to = xlb_flow(&ctx, flow, FLOW_WHERE(word, select), p.service,
		    FLOW_PACKET(OTHER_PACKET(data ? 60 : 40, 14, 20, 0),
		    flags != 0 ? flags : FLOW_UDP)) & 0x7fff;
	FUZZ_CHECK(to != 0 && keeps(to));
	return to;
}

static const uint64_t *
entry_find(const struct connection *c)
{
	const uint64_t *e = (const uint64_t *)
	    table[xlb_flow_row(c->flow, flow_mask)].entry;
	uint32_t tag = xlb_flow_tag(c->select, c->flow), i;

	for (i = 0; i < XLB_FLOW_WAYS; i++)
		if (e[i] != 0 && XLB_FLOW_TAG(e[i]) == tag)
			return &e[i];
	return NULL;
}

/* A flood takes what has been idle for long; without one an hour is promised. */
static bool
is_bound(const struct connection *c)
{
	return c->firm && now - c->used <=
	    (c->floods == floods ? XLB_FLOW_LIVE : XLB_FLOW_FIRM);
}

static void
connection_packet(struct connection *c, unsigned kind)
{
	static const uint8_t flags[] = { PARSE_SYN, PARSE_PSH | PARSE_ACK,
	    PARSE_ACK, PARSE_FIN | PARSE_ACK, PARSE_RST, 0 };
	uint8_t f = flags[kind % sizeof(flags)];
	const uint64_t *e;
	uint32_t to;

	if (f == 0) {		/* a datagram: another flow, of the same hash */
		packet(c->select, c->flow ^ 1ULL << 39, 0, true);
		return;
	}
	to = packet(c->select, c->flow, f, f & PARSE_PSH);
	if (is_bound(c))
		FUZZ_CHECK(to == c->with);
	else
		c->firm = false;
	if (f & (PARSE_FIN | PARSE_RST))
		c->firm = false;
	if (!(f & PARSE_PSH))
		return;
	e = entry_find(c);
	FUZZ_CHECK(e != NULL && XLB_FLOW_BACKEND(*e) == to);
	c->firm = (*e & XLB_FLOW_CONFIRMED) && !(*e & XLB_FLOW_CLOSING);
	c->with = to;
	c->used = now;
	c->floods = floods;
}

/* Connections that begin, and are never heard of again. */
static void
flood(unsigned n)
{
	uint64_t h;

	floods++;
	while (n-- > 0) {
		h = dice += 0x9e3779b97f4a7c15ULL;
		h = (h ^ h >> 31) * 0xbf58476d1ce4e5b9ULL;
		h ^= h >> 29;
		packet((uint32_t)(h >> 32) | 0x80000, h, PARSE_SYN, false);
	}
}

/* Slots' new owners by `owner`, as a plan has it: roles are set before and taken
 * away after. */
static void
ring_move(const uint32_t *owner, const uint32_t *roles)
{
	uint32_t *was = half(ring->active), *to = half(!ring->active);
	uint32_t *past = half(2), i;
	struct ring_slot s;

	for (i = 0; i < SLOTS; i++) {
		s.word = was[i];
		s.past = past[i];
		s = ring_slot_step(s, owner[i], roles,
		    keeps(XLB_SLOT_CUR(was[i])), now);
		to[i] = s.word;
		past[i] = s.past;
	}
	sweep_ring_moves(sweep, 0, was, to);
	ring->active = !ring->active;
	memcpy(ring->member, roles, sizeof(ring->member));
	sweep_ring_roles(sweep, 0);
}

static void
owner_set(unsigned slot, unsigned backend)
{
	uint32_t owner[SLOTS], i;

	backend = 1 + backend % BACKENDS;
	if (!keeps(backend))
		return;
	for (i = 0; i < SLOTS; i++)
		owner[i] = XLB_SLOT_CUR(half(ring->active)[i]);
	owner[slot % SLOTS] = backend;
	ring_move(owner, ring->member);
}

/* It dies, or is there again. */
static void
role_set(unsigned backend, unsigned heir)
{
	uint32_t owner[SLOTS], roles[RING_MEMBER_WORDS], i;

	backend = 1 + backend % BACKENDS;
	heir = 1 + heir % BACKENDS;
	if (!keeps(backend)) {
		ring_member_set(ring->member, backend,
		    XLB_MEMBER | XLB_MEMBER_KEEPS);
		sweep_ring_roles(sweep, 0);
		return;
	}
	if (heir == backend || !keeps(heir))
		return;
	for (i = 0; i < SLOTS; i++) {
		owner[i] = XLB_SLOT_CUR(half(ring->active)[i]);
		if (owner[i] == backend)
			owner[i] = heir;
	}
	memcpy(roles, ring->member, sizeof(roles));
	ring_member_set(roles, backend, XLB_MEMBER);
	ring_move(owner, roles);
	for (i = 0; i < CONNECTIONS; i++)
		if (conn[i].with == backend)
			conn[i].firm = false;
}

/* `pieces` of a pass; a new one if there is none. */
static void
sweep_run(unsigned pieces)
{
	while (pieces-- > 0) {
		if (!sweep_running(sweep)) {
			sweep_begin(sweep, SWEEP_SCAN_ALWAYS);
			passed = now;
			passes++;
		}
		if (sweep_step(sweep, now) == SWEEP_GRACE)
			sweep_graced(sweep);
	}
}

/* A pass from its beginning to its end. */
static void
sweep_all(void)
{
	while (sweep_running(sweep))
		sweep_run(1);
	do
		sweep_run(1);
	while (sweep_running(sweep));
}

static void
time_goes(uint32_t ticks)
{
	now += ticks;
	engine_clock((uint64_t)now << XLB_FLOW_TICK_SHIFT, now);
	if (now - passed > PASS_TICKS)
		sweep_all();
}

/* Packets use both tables for a moment. */
static void
grow(void)
{
	struct xlb_flow_set *old = table, *t;
	uint32_t was = sets;

	if (sets == SETS_MAX)
		return;
	t = calloc(sets * 2, sizeof(*t));
	FUZZ_CHECK(t != NULL);
	flow_copy(old, was, t, was * 2, now);
	table_use(t, was * 2);
	flow_copy(old, was, t, was * 2, now);
	free(old);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct fuzz_in in = { data, data + len };
	unsigned op, x, n;

	fresh();
	for (n = 0; n < OPS_MAX && passes < PASSES_MAX && in.at < in.end;
	    n++) {
		op = fuzz_byte(&in);
		x = fuzz_byte(&in);
		switch (op & 7) {
		case 0:
		case 1:
			connection_packet(&conn[x % CONNECTIONS], op >> 3);
			break;
		case 2:
			owner_set(x, op >> 3);
			break;
		case 3:
			role_set(x, op >> 3);
			break;
		case 4:
			time_goes(op & 8 ? x * 16 : x);
			break;
		case 5:
			sweep_run(1 + x % 32);
			break;
		case 6:
			flood(1 + x);
			break;
		case 7:
			if (op >> 3 == 31)
				grow();
			else
				sweep_all();
			break;
		}
	}
	return 0;
}
