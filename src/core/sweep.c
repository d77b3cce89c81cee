/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Passes over rings and the flow table, in pieces. */
#include "core/sweep.h"

#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/flow_entry.h"
#include "core/ring_words.h"

#define PIECE_SLOTS 16384
#define PIECE_SETS 128
#define PIECE_SERVICES 16384
#define WORDS(n) (((n) + 63) / 64)

enum stage { IDLE, SERVICES, RINGS, INDEX, GRACE, SCAN, FORGET, CLEAR };

struct sweep_ring {
	struct xlb_ring *ring;	/* NULL: none */
	uint64_t *wait;		/* by slot: LOOKUP may go; NULL: of none */
	bool quiet;		/* no word of it needs anything */
	bool asked;		/* services wait for it to agree with all flows */
	bool differs;		/* it does not */
	bool stirs;		/* found in this pass, for `quiet` */
};

struct sweep_service {
	uint64_t word;		/* as it was first seen with this old ring */
	uint32_t tick;		/* when */
	bool wait;		/* LOOKUP may go */
};

struct sweep {
	struct xlb_tables *tables;
	struct xlb_flow_set *flows;
	uint32_t sets, ring_size;
	struct sweep_ring ring[XLB_RINGS];
	struct sweep_service service[XLB_SERVICES];
	enum stage stage;
	enum sweep_scan scan;
	bool waits;		/* services do */
	uint32_t at, slot;	/* how far: row, ring or set; slot of a ring */
	struct sweep_result r;
	/* by backend number */
	uint64_t retired[WORDS(XLB_BACKENDS)];	/* candidates */
	uint64_t dirty[WORDS(XLB_BACKENDS)];	/* there were entries */
	uint64_t named[WORDS(XLB_BACKENDS)];	/* by a slot, or keeps flows */
	/* rings that wait for something and have the backend as a member:
	 * of[first[b]..first[b + 1]) */
	uint32_t first[XLB_BACKENDS + 1];
	uint16_t *of;
};

static bool
bit(const uint64_t *map, uint32_t i)
{
	return map[i / 64] >> i % 64 & 1;
}

static void
bit_set(uint64_t *map, uint32_t i)
{
	map[i / 64] |= 1ULL << i % 64;
}

static void
bit_clear(uint64_t *map, uint32_t i)
{
	map[i / 64] &= ~(1ULL << i % 64);
}

struct sweep *
sweep_new(struct xlb_tables *tables, uint32_t ring_size)
{
	struct sweep *s = must_calloc(1, sizeof(*s));

	s->tables = tables;
	s->ring_size = ring_size;
	return s;
}

static void
ring_drop(struct sweep_ring *r)
{
	free(r->wait);
	r->wait = NULL;
}

void
sweep_free(struct sweep *s)
{
	uint32_t i;

	for (i = 0; s != NULL && i < XLB_RINGS; i++)
		ring_drop(&s->ring[i]);
	if (s != NULL)
		free(s->of);
	free(s);
}

void
sweep_ring(struct sweep *s, uint32_t number, struct xlb_ring *ring)
{
	struct sweep_ring *r = &s->ring[number];

	ring_drop(r);
	memset(r, 0, sizeof(*r));
	r->ring = ring;
	r->differs = true;	/* the pass under way has not seen it */
}

void
sweep_ring_moves(struct sweep *s, uint32_t number, const uint32_t *was,
    const uint32_t *now)
{
	struct sweep_ring *r = &s->ring[number];
	uint32_t i;

	r->quiet = false;
	r->differs = true;
	r->stirs = true;
	for (i = 0; r->wait != NULL && i < s->ring_size; i++)
		if (was[i] != now[i])
			bit_clear(r->wait, i);
}

void
sweep_ring_roles(struct sweep *s, uint32_t number)
{
	s->ring[number].differs = true;
}

void
sweep_flows(struct sweep *s, struct xlb_flow_set *flows, uint32_t sets)
{
	s->flows = flows;
	s->sets = sets;
	/* what was read is no longer all there is */
	s->stage = IDLE;
}

void
sweep_service_moves(struct sweep *s, uint32_t number)
{
	s->service[number].wait = false;
}

void
sweep_backend_stays(struct sweep *s, uint32_t number)
{
	bit_clear(s->retired, number);
}

void
sweep_begin(struct sweep *s, enum sweep_scan scan)
{
	uint32_t i;

	memset(&s->r, 0, sizeof(s->r));
	memset(s->retired, 0, sizeof(s->retired));
	memset(s->dirty, 0, sizeof(s->dirty));
	memset(s->named, 0, sizeof(s->named));
	for (i = 0; i < XLB_RINGS; i++) {
		ring_drop(&s->ring[i]);
		s->ring[i].asked = s->ring[i].differs = false;
		s->ring[i].stirs = false;
	}
	s->scan = scan;
	s->waits = false;
	s->at = s->slot = 0;
	s->stage = SERVICES;
	for (i = 1; i < XLB_BACKENDS; i++)
		if (s->tables->backend[i].flags & XLB_BACKEND_RETIRED)
			bit_set(s->retired, i);
}

/* True if the pass goes on with the next stage. */
static bool
piece_end(struct sweep *s, uint32_t end, enum stage next)
{
	if (s->at < end)
		return false;
	s->at = s->slot = 0;
	s->stage = next;
	return true;
}

static void
service_word(struct xlb_service *row, __u64 was, __u64 now)
{
	__atomic_compare_exchange_n(&row->word, &was, now, false,
	    __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

/* The old ring's time; then the service waits until its ring agrees with every
 * flow, since entries do not say whose they are. */
static void
service_age(struct sweep *s, struct xlb_service *row, uint32_t tick)
{
	uint64_t word = row->word;
	uint32_t ring = XLB_WORD_RING(word);
	struct sweep_service *v;

	if (XLB_WORD_NUMBER(word) >= XLB_SERVICES || ring >= XLB_RINGS)
		return;
	v = &s->service[XLB_WORD_NUMBER(word)];
	v->wait = false;
	if (XLB_WORD_OLD_RING(word) != ring) {
		if (v->word != word) {
			v->word = word;
			v->tick = tick;
		}
		if (tick - v->tick < RING_PREV_TICKS) {
			s->r.prev++;
			s->r.lookup++;
			return;
		}
		service_word(row, word, XLB_SERVICE_WORD(
		    XLB_WORD_NUMBER(word), ring, ring, XLB_WORD_FLAGS(word)));
		s->r.old_gone = true;
	}
	v->word = 0;
	if (XLB_WORD_FLAGS(word) & XLB_SERVICE_LOOKUP) {
		s->r.lookup++;
		s->ring[ring].asked = v->wait = s->waits = true;
	}
}

static void
step_services(struct sweep *s, uint32_t tick)
{
	uint32_t end = s->at + PIECE_SERVICES;
	struct xlb_service *row;

	for (; s->at < end; s->at++) {
		row = &s->tables->service[s->at];
		if ((row->key & XLB_SERVICE_VALID) &&
		    ((XLB_WORD_FLAGS(row->word) & XLB_SERVICE_LOOKUP) ||
		    XLB_WORD_OLD_RING(row->word) != XLB_WORD_RING(row->word)))
			service_age(s, row, tick);
	}
	piece_end(s, XLB_TABLE_ROWS, RINGS);
}

static uint32_t *
ring_active(const struct sweep *s, const struct sweep_ring *r)
{
	return r->ring->slot +
	    (r->ring->active & 1 ? (size_t)s->ring_size : 0);
}

static void
slot_age(struct sweep *s, struct sweep_ring *r, uint32_t *word, uint32_t i,
    uint32_t tick)
{
	uint32_t *past = &r->ring->slot[2 * (size_t)s->ring_size + i];
	struct ring_slot was = { *word, *past }, now;

	now = was;
	if (XLB_SLOT_PREV(was.word) != 0 || was.past != 0)
		now = ring_slot_age(was, r->ring->member, tick);
	if (now.past != was.past)
		__atomic_store_n(past, now.past, __ATOMIC_RELAXED);
	if (now.word != was.word)
		__atomic_compare_exchange_n(word, &was.word, now.word, false,
		    __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
	r->stirs |= (now.word & ~XLB_SLOT_CUR(~0U)) != 0 || now.past != 0;
	s->r.prev += XLB_SLOT_PREV(now.word) != 0;
	if (!(now.word & XLB_SLOT_LOOKUP))
		return;
	s->r.lookup++;
	if (XLB_SLOT_PREV(now.word) != 0)
		return;
	if (r->wait == NULL)
		r->wait = must_calloc(WORDS(s->ring_size), sizeof(*r->wait));
	bit_set(r->wait, i);
}

static void
ring_names(struct sweep *s, const struct sweep_ring *r, uint32_t from,
    uint32_t to)
{
	const uint32_t *word = ring_active(s, r);
	uint32_t i;

	for (i = from; i < to; i++) {
		bit_set(s->named, XLB_SLOT_CUR(word[i]) % XLB_BACKENDS);
		bit_set(s->named, XLB_SLOT_PREV(word[i]) % XLB_BACKENDS);
	}
	for (i = ring_member_next(r->ring->member, 1); from == 0 &&
	    i < XLB_BACKENDS; i = ring_member_next(r->ring->member, i + 1))
		if (ring_member(r->ring->member, i) & XLB_MEMBER_KEEPS)
			bit_set(s->named, i);
}

static bool
any(const uint64_t *map)
{
	uint32_t i;

	for (i = 0; i < WORDS(XLB_BACKENDS); i++)
		if (map[i] != 0)
			return true;
	return false;
}

static void
step_rings(struct sweep *s, uint32_t tick)
{
	struct sweep_ring *r;
	uint32_t *word, i, end;
	bool names = any(s->retired);

	for (; s->at < XLB_RINGS; s->at++) {
		r = &s->ring[s->at];
		if (r->ring != NULL && (!r->quiet || names))
			break;
	}
	if (piece_end(s, XLB_RINGS, INDEX))
		return;
	word = ring_active(s, r);
	end = s->ring_size - s->slot > PIECE_SLOTS ? s->slot + PIECE_SLOTS :
	    s->ring_size;
	for (i = s->slot; i < end && !r->quiet; i++)
		slot_age(s, r, &word[i], i, tick);
	if (names)
		ring_names(s, r, s->slot, end);
	s->slot = end;
	if (end < s->ring_size)
		return;
	r->quiet = !r->stirs;
	s->at++;
	s->slot = 0;
}

static bool
ring_waits(const struct sweep_ring *r)
{
	return r->ring != NULL && (r->wait != NULL || r->asked);
}

/* Calls for each member of a ring that waits. */
static void
index_walk(struct sweep *s, void (*fn)(struct sweep *, uint32_t b, uint32_t n))
{
	const uint32_t *member;
	uint32_t n, b;

	for (n = 0; n < XLB_RINGS; n++) {
		if (!ring_waits(&s->ring[n]))
			continue;
		member = s->ring[n].ring->member;
		for (b = ring_member_next(member, 1); b < XLB_BACKENDS;
		    b = ring_member_next(member, b + 1))
			fn(s, b, n);
	}
}

static void
index_count(struct sweep *s, uint32_t b, uint32_t n)
{
	(void)n;
	s->first[b]++;
}

static void
index_put(struct sweep *s, uint32_t b, uint32_t n)
{
	s->of[--s->first[b]] = (uint16_t)n;
}

static void
step_index(struct sweep *s)
{
	uint32_t b, total = 0, i;

	for (i = 0; i < WORDS(XLB_BACKENDS); i++) {
		s->r.retired += (uint32_t)__builtin_popcountll(s->retired[i]);
		s->retired[i] &= ~s->named[i];
	}
	for (i = 0; i < XLB_RINGS; i++)
		s->r.waits |= ring_waits(&s->ring[i]);
	s->r.waits |= any(s->retired);
	if (s->flows == NULL || s->scan == SWEEP_SCAN_NEVER ||
	    (s->scan == SWEEP_SCAN_ASKED && !s->r.waits)) {
		s->stage = IDLE;
		return;
	}
	memset(s->first, 0, sizeof(s->first));
	index_walk(s, index_count);
	for (b = 0; b <= XLB_BACKENDS; b++) {
		total += b < XLB_BACKENDS ? s->first[b] : 0;
		s->first[b] = total;
	}
	free(s->of);
	s->of = must_calloc(total, sizeof(*s->of));
	index_walk(s, index_put);
	s->stage = GRACE;
}

static void
entry_clear(uint64_t *at, uint64_t e)
{
	__atomic_compare_exchange_n(at, &e, 0, false, __ATOMIC_SEQ_CST,
	    __ATOMIC_RELAXED);
}

/* True if one of the slots that the flow may be in (the tag has not all of the
 * hash) is about to lose LOOKUP though the entry disagrees with it. If that is
 * `live`, it does not lose it. */
static bool
entry_judge(struct sweep *s, uint64_t e, bool live)
{
	uint32_t b = XLB_FLOW_BACKEND(e), hash = XLB_FLOW_TAG(e) & 0xffffff00U;
	uint32_t low = (uint32_t)((uint64_t)hash * s->ring_size >> 32);
	uint32_t high = (uint32_t)((uint64_t)(hash | 0xff) *
	    s->ring_size >> 32), i, k;
	bool waits, loses = false;
	struct sweep_ring *r;
	const uint32_t *word;

	for (k = s->first[b]; k < s->first[b + 1]; k++) {
		r = &s->ring[s->of[k]];
		if (r->ring == NULL)
			continue;
		word = ring_active(s, r);
		for (i = low; i <= high; i++) {
			/* few slots wait, and their bits lie closer */
			waits = r->wait != NULL && bit(r->wait, i);
			if ((!waits && !r->asked) ||
			    XLB_SLOT_CUR(word[i]) == b)
				continue;
			loses |= waits || !r->differs;
			if (live)
				r->differs = true;
			if (live && waits)
				bit_clear(r->wait, i);
		}
	}
	return loses;
}

static void
entry_step(struct sweep *s, uint64_t *at, uint32_t tick)
{
	uint64_t e = __atomic_load_n(at, __ATOMIC_RELAXED);
	uint32_t b = XLB_FLOW_BACKEND(e);

	if (e == 0)
		return;
	if (b < XLB_BACKENDS && bit(s->retired, b)) {
		entry_clear(at, e);
		bit_set(s->dirty, b);
		s->r.scrubbed = true;
		return;
	}
	if (flow_entry_over(e, tick)) {
		entry_clear(at, e);
		s->r.wrapped++;
		return;
	}
	if (!flow_entry_live(e, tick))
		return;
	s->r.live++;
	if (b < XLB_BACKENDS)
		entry_judge(s, e, true);
}

/*
 * A slot with LOOKUP goes by entries that are older than the scan minds, and a
 * packet makes such a one new: after LOOKUP was found to be of no use, and
 * before it goes. So those go first. One that has just been used is live now,
 * and keeps LOOKUP.
 */
static void
entry_forget(struct sweep *s, uint64_t *at, uint32_t tick)
{
	uint64_t e = __atomic_load_n(at, __ATOMIC_RELAXED);

	while (XLB_FLOW_BACKEND(e) != 0 && XLB_FLOW_BACKEND(e) < XLB_BACKENDS) {
		if (flow_entry_live(e, tick)) {
			entry_judge(s, e, true);
			return;
		}
		if (!entry_judge(s, e, false) ||
		    __atomic_compare_exchange_n(at, &e, 0, false,
		    __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
			return;
	}
}

/* True if all sets have been gone through. */
static bool
sets_walk(struct sweep *s, uint32_t tick, void (*fn)(struct sweep *,
    uint64_t *at, uint32_t tick), enum stage next)
{
	uint32_t end = s->at + PIECE_SETS, i;

	for (; s->at < end && s->at < s->sets; s->at++)
		for (i = 0; i < XLB_FLOW_WAYS; i++)
			fn(s, (uint64_t *)&s->flows[s->at].entry[i], tick);
	return piece_end(s, s->sets, next);
}

static void
step_scan(struct sweep *s, uint32_t tick)
{
	if (sets_walk(s, tick, entry_step, FORGET))
		s->r.scanned = true;
}

/* Not where nothing waits any more. */
static void
step_forget(struct sweep *s, uint32_t tick)
{
	bool waits = s->at > 0;
	uint32_t i;

	for (i = 0; i < XLB_RINGS && !waits; i++)
		waits = s->ring[i].wait != NULL ||
		    (s->ring[i].asked && !s->ring[i].differs);
	if (waits)
		sets_walk(s, tick, entry_forget, CLEAR);
	else
		s->stage = CLEAR;
}

static void
ring_clear(struct sweep *s, struct sweep_ring *r)
{
	uint32_t *word = ring_active(s, r), i, was;

	for (i = 0; i < s->ring_size; i++) {
		if (!bit(r->wait, i))
			continue;
		was = word[i];
		if (XLB_SLOT_PREV(was) != 0 || !(was & XLB_SLOT_LOOKUP))
			continue;
		if (__atomic_compare_exchange_n(&word[i], &was,
		    was & ~XLB_SLOT_LOOKUP, false, __ATOMIC_SEQ_CST,
		    __ATOMIC_RELAXED))
			s->r.lookup--;
	}
	ring_drop(r);
}

static void
services_clear(struct sweep *s)
{
	struct xlb_service *row;
	uint32_t i, ring;
	uint64_t word;

	for (i = 0; i < XLB_TABLE_ROWS; i++) {
		row = &s->tables->service[i];
		word = row->word;
		ring = XLB_WORD_RING(word);
		if (!(row->key & XLB_SERVICE_VALID) || ring >= XLB_RINGS ||
		    XLB_WORD_NUMBER(word) >= XLB_SERVICES ||
		    !s->service[XLB_WORD_NUMBER(word)].wait ||
		    s->ring[ring].differs)
			continue;
		service_word(row, word,
		    word & ~((uint64_t)XLB_SERVICE_LOOKUP << 48));
		s->service[XLB_WORD_NUMBER(word)].wait = false;
		s->r.lookup--;
	}
}

static void
step_clear(struct sweep *s)
{
	while (s->at < XLB_RINGS && s->ring[s->at].wait == NULL)
		s->at++;
	if (s->at < XLB_RINGS) {
		ring_clear(s, &s->ring[s->at++]);
		return;
	}
	if (s->waits)
		services_clear(s);
	s->stage = IDLE;
}

enum sweep_state
sweep_step(struct sweep *s, uint32_t tick)
{
	switch (s->stage) {
	case IDLE:
		return SWEEP_DONE;
	case SERVICES:
		step_services(s, tick);
		break;
	case RINGS:
		step_rings(s, tick);
		break;
	case INDEX:
		step_index(s);
		break;
	case GRACE:
		break;
	case SCAN:
		step_scan(s, tick);
		break;
	case FORGET:
		step_forget(s, tick);
		break;
	case CLEAR:
		step_clear(s);
		break;
	}
	return s->stage == IDLE ? SWEEP_DONE :
	    s->stage == GRACE ? SWEEP_GRACE : SWEEP_MORE;
}

void
sweep_graced(struct sweep *s)
{
	if (s->stage == GRACE)
		s->stage = SCAN;
}

bool
sweep_running(const struct sweep *s)
{
	return s->stage != IDLE;
}

const struct sweep_result *
sweep_result(const struct sweep *s)
{
	return &s->r;
}

uint32_t
sweep_freed(const struct sweep *s, uint32_t from)
{
	while (from < XLB_BACKENDS && !(s->r.scanned && bit(s->retired, from) &&
	    !bit(s->dirty, from)))
		from++;
	return from;
}
