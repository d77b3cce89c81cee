/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A pass reads the table twice: first each row, where what is over becomes GONE
 * and of what is not the places on its way are noted; then each place that was
 * GONE before the pass began and was not noted becomes empty. That is safe, since
 * whoever places a row takes the first that is free on its way: a row placed
 * since then passes none that was GONE all the time.
 */
#include "core/nat_sweep.h"

#include <stdlib.h>
#include <string.h>


#define AT_ONCE 1024		/* rows, 64 kB */

enum phase { PHASE_NONE, PHASE_ROWS, PHASE_PLACES };

struct nat_sweep {
	const struct xlb_tables *tables;
	struct xlb_nat *table;
	uint32_t rows;
	uint8_t *noted;		/* a bit for each row */
	enum phase phase;
	uint32_t at, tick;
	struct nat_sweep_result now, last;
	bool counted;		/* `last` is of this table */
	/* passes that began while the backend was retired, and the same as of
	 * the last one that was finished */
	uint8_t retired[XLB_BACKENDS], clean[XLB_BACKENDS];
};

struct nat_sweep *
nat_sweep_new(const struct xlb_tables *tables)
{
	struct nat_sweep *s = calloc(1, sizeof(*s));

	if (s == NULL)
		abort();
	s->tables = tables;
	return s;
}

void
nat_sweep_free(struct nat_sweep *s)
{
	if (s == NULL)
		return;
	free(s->noted);
	free(s);
}

void
nat_sweep_table(struct nat_sweep *s, struct xlb_nat *table, uint32_t rows)
{
	uint8_t *noted = realloc(s->noted, rows / 8);

	if (noted == NULL)
		abort();
	s->noted = noted;
	s->table = table;
	s->rows = rows;
	s->phase = PHASE_NONE;
	s->counted = false;
	memset(s->clean, 0, sizeof(s->clean));
	memset(s->retired, 0, sizeof(s->retired));
}

static __u64
word_of(const struct nat_sweep *s, uint32_t at)
{
	return __atomic_load_n(&s->table[at].word, __ATOMIC_ACQUIRE);
}

static bool
swap(struct nat_sweep *s, uint32_t at, __u64 was, __u64 now)
{
	return __atomic_compare_exchange_n(&s->table[at].word, &was, now,
	    false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

bool
nat_pair(const struct xlb_nat *table, uint32_t rows, uint32_t at)
{
	const struct xlb_nat *row = &table[at], *peer;
	__u64 word, other;

	if (row->peer >= rows)
		return false;
	peer = &table[row->peer];
	word = __atomic_load_n(&row->word, __ATOMIC_ACQUIRE);
	other = __atomic_load_n(&peer->word, __ATOMIC_ACQUIRE);
	return ((word ^ other) & (XLB_NAT_FORWARD | XLB_NAT_REPLY)) ==
	    (XLB_NAT_FORWARD | XLB_NAT_REPLY) &&
	    !(other & (XLB_NAT_BUSY | XLB_NAT_GONE)) &&
	    peer->peer == at && peer->ports == row->ports &&
	    peer->back == row->back && peer->backend == row->backend &&
	    peer->source == row->source &&
	    memcmp(peer->client, row->client, sizeof(row->client)) == 0;
}

/* The flow is over: of neither direction there was a packet for so long, or its
 * backend is nobody's any more. */
static bool
is_over(const struct nat_sweep *s, uint32_t at, __u64 word)
{
	const struct xlb_nat *row = &s->table[at];

	if (!(word & XLB_NAT_BUSY) && s->tables->backend[row->backend %
	    XLB_BACKENDS].flags & XLB_BACKEND_RETIRED)
		return true;
	if (!xlb_nat_old(word, s->tick))
		return false;
	return (word & XLB_NAT_BUSY) || !nat_pair(s->table, s->rows, at) ||
	    xlb_nat_old(word_of(s, row->peer), s->tick);
}

/* All places that a search for the row passes. */
static void
note_way(struct nat_sweep *s, uint32_t at, uint32_t step)
{
	uint32_t home = xlb_nat_home(at, step, s->rows - 1), i, place;

	for (i = 0; i < step; i++) {
		place = xlb_nat_at(home, i, s->rows - 1);
		s->noted[place / 8] |= (uint8_t)(1 << place % 8);
	}
}

static void
count(struct nat_sweep *s, uint32_t at, __u64 word)
{
	const struct xlb_nat *row = &s->table[at];

	if (!(word & XLB_NAT_FORWARD) || (word & XLB_NAT_BUSY))
		return;
	s->now.flows++;
	s->now.udp += (word & XLB_NAT_UDP) != 0;
	s->now.established += (word & (XLB_NAT_ESTABLISHED |
	    XLB_NAT_CLOSING)) == XLB_NAT_ESTABLISHED;
	s->now.source[row->source % XLB_NAT_SOURCES]++;
}

static void
row_step(struct nat_sweep *s, uint32_t at)
{
	__u64 word = word_of(s, at);

	if (word == 0)
		return;
	s->now.used++;
	if (word & XLB_NAT_GONE)
		return;
	if (is_over(s, at, word) &&
	    swap(s, at, word, XLB_NAT_GONE | s->tick)) {
		s->now.expired += (word & XLB_NAT_FORWARD) != 0;
		return;
	}
	note_way(s, at, XLB_NAT_STEP(word));
	count(s, at, word);
}

/* GONE for a tick or more when the pass began. */
static void
place_step(struct nat_sweep *s, uint32_t at)
{
	__u64 word = word_of(s, at);
	uint32_t age = (s->tick - XLB_NAT_USED(word)) & XLB_NAT_TICK;

	if ((word & XLB_NAT_GONE) && age > 1 && age <= XLB_NAT_TICK / 2 &&
	    !(s->noted[at / 8] >> at % 8 & 1) && swap(s, at, word, 0))
		s->now.used--;
}

void
nat_sweep_begin(struct nat_sweep *s, uint32_t tick)
{
	uint32_t i;

	s->tick = tick & XLB_NAT_TICK;
	s->at = 0;
	s->phase = PHASE_ROWS;
	memset(&s->now, 0, sizeof(s->now));
	memset(s->noted, 0, s->rows / 8);
	for (i = 0; i < XLB_BACKENDS; i++) {
		if (!(s->tables->backend[i].flags & XLB_BACKEND_RETIRED))
			s->retired[i] = 0;
		else if (s->retired[i] < 2)
			s->retired[i]++;
	}
}

static void
pass_end(struct nat_sweep *s)
{
	s->phase = PHASE_NONE;
	s->last = s->now;
	s->counted = true;
	memcpy(s->clean, s->retired, sizeof(s->clean));
}

bool
nat_sweep_step(struct nat_sweep *s)
{
	uint32_t i;

	for (i = 0; i < AT_ONCE && s->at < s->rows; i++, s->at++) {
		if (s->phase == PHASE_ROWS)
			row_step(s, s->at);
		else
			place_step(s, s->at);
	}
	if (s->at < s->rows)
		return true;
	s->at = 0;
	if (s->phase == PHASE_ROWS) {
		s->phase = PHASE_PLACES;
		return true;
	}
	pass_end(s);
	return false;
}

bool
nat_sweep_running(const struct nat_sweep *s)
{
	return s->phase != PHASE_NONE;
}

const struct nat_sweep_result *
nat_sweep_result(const struct nat_sweep *s)
{
	return &s->last;
}

bool
nat_sweep_clean(const struct nat_sweep *s, uint32_t backend)
{
	return s->rows <= XLB_NAT_ROWS_MIN ||
	    (s->clean[backend % XLB_BACKENDS] >= 2 &&
	    (s->tables->backend[backend % XLB_BACKENDS].flags &
	    XLB_BACKEND_RETIRED));
}

uint64_t
nat_sweep_sources(const struct nat_sweep *s)
{
	uint64_t bits = 0;
	uint32_t i;

	if (s->rows <= XLB_NAT_ROWS_MIN)
		return 0;
	if (!s->counted)
		return ~0ULL;
	for (i = 0; i < XLB_NAT_SOURCES; i++)
		bits |= (uint64_t)(s->last.source[i] != 0) << i;
	return bits;
}
