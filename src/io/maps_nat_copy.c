/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Carries flows of NAT over to a larger table, and finds one by the packet
 * program's own hash. */
#include "io/maps_int.h"

#include <netinet/in.h>
#include <string.h>

#include "core/nat_sweep.h"
#include "hash.h"

static uint64_t
tuple_hash(const struct xlb_settings *s, const uint8_t *src,
    const uint8_t *dst, __be32 ports, uint8_t proto)
{
	struct addr a;
	__be32 from[4], to[4];

	memcpy(a.b, src, sizeof(a.b));
	memcpy(from, src, sizeof(from));
	memcpy(to, dst, sizeof(to));
	return addr_is4(&a) ?
	    hash_flow4(&s->hash, from[3], to[3], ports, proto) :
	    hash_flow6(&s->hash, from, to, ports, proto);
}

static uint8_t
row_proto(const struct xlb_nat *row)
{
	return row->word & XLB_NAT_UDP ? IPPROTO_UDP : IPPROTO_TCP;
}

/* Where the row for this hash is, or the first place for one; `rows` a power of
 * two. UINT32_MAX: there is none. */
static uint32_t
place(const struct xlb_nat *table, uint32_t rows, uint64_t hash, uint64_t word,
    uint32_t *step)
{
	uint32_t i, at, first = UINT32_MAX;

	for (i = 0; i < XLB_NAT_PROBE; i++) {
		at = xlb_nat_at((uint32_t)hash, i, rows - 1);
		if (table[at].word != 0 &&
		    ((table[at].word ^ word) & XLB_NAT_SAME) == 0) {
			*step = i;
			return at;
		}
		if (first == UINT32_MAX && (table[at].word == 0 ||
		    (table[at].word & XLB_NAT_GONE))) {
			first = at;
			*step = i;
		}
		if (table[at].word == 0)
			break;
	}
	return first;
}

static uint64_t
row_word(uint64_t word, uint64_t hash, uint32_t step)
{
	return (hash & 0xffffffff00000000ULL) | (word & 0xff000000U) |
	    step << XLB_NAT_STEP_SHIFT | XLB_NAT_USED(word);
}

/* All but what changes while a flow goes on. */
static bool
row_same(const struct xlb_nat *a, const struct xlb_nat *b)
{
	return a->ports == b->ports && a->back == b->back &&
	    a->backend == b->backend && a->source == b->source &&
	    memcmp(a->client, b->client, sizeof(a->client)) == 0 &&
	    memcmp(a->vip, b->vip, sizeof(a->vip)) == 0;
}

/* What is known of a flow since it was copied; not older than what is there. */
static void
row_renew(struct xlb_nat *to, const struct xlb_nat *from, uint64_t word)
{
	__u64 was = __atomic_load_n(&to->word, __ATOMIC_ACQUIRE);
	uint32_t age = (XLB_NAT_USED(word) - XLB_NAT_USED(was)) & XLB_NAT_TICK;

	if (age > XLB_NAT_TICK / 2)
		return;
	to->door = from->door;
	to->mac_vlan = from->mac_vlan;
	__atomic_compare_exchange_n(&to->word, &was, word, false,
	    __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

/* A flow that has ended since it was copied: both rows. */
static void
row_drop(struct xlb_nat *table, uint32_t rows, uint32_t at)
{
	uint64_t gone = XLB_NAT_GONE | XLB_NAT_USED(table[at].word);

	if (nat_pair(table, rows, at))
		__atomic_store_n(&table[table[at].peer].word, gone,
		    __ATOMIC_RELEASE);
	__atomic_store_n(&table[at].word, gone, __ATOMIC_RELEASE);
}

/* The row becomes `from`, or is that already. A packet may be quicker: what it
 * made stays, and this is false. */
static bool
row_put(struct xlb_nat *to, const struct xlb_nat *from, uint64_t word,
    uint32_t peer)
{
	__u64 was = __atomic_load_n(&to->word, __ATOMIC_ACQUIRE);

	if (was != 0 && !(was & XLB_NAT_GONE)) {
		if (((was ^ word) & (XLB_NAT_SAME | XLB_NAT_BUSY)) != 0 ||
		    to->peer != peer || !row_same(to, from))
			return false;
		row_renew(to, from, word);
		return true;
	}
	if (!__atomic_compare_exchange_n(&to->word, &was,
	    word | XLB_NAT_BUSY, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		return false;
	to->ports = from->ports;
	to->back = from->back;
	to->backend = from->backend;
	to->source = from->source;
	to->door = from->door;
	to->peer = peer;
	to->mac_vlan = from->mac_vlan;
	memcpy(to->client, from->client, sizeof(to->client));
	memcpy(to->vip, from->vip, sizeof(to->vip));
	__atomic_store_n(&to->word, word, __ATOMIC_RELEASE);
	return true;
}

/* True if the place is taken by another flow: of the two the one that packets
 * know is right, which is `from` as long as none uses `to`. */
static bool
place_taken(struct xlb_nat *to, uint32_t rows, uint32_t at,
    const struct xlb_nat *from, bool used)
{
	uint64_t word = __atomic_load_n(&to[at].word, __ATOMIC_ACQUIRE);

	if (word == 0 || (word & XLB_NAT_GONE) || row_same(&to[at], from))
		return false;
	if (!used)
		row_drop(to, rows, at);
	return used;
}

static void
flow_move(const struct maps *m, const struct xlb_nat *row,
    const struct xlb_nat *back, const struct nat_copy *c)
{
	const struct xlb_settings *s = &m->tables->settings;
	uint32_t at, other, step = 0, step_back = 0;
	uint8_t proto = row_proto(row);
	uint64_t hash, reply, word;

	hash = tuple_hash(s, row->client, row->vip, row->ports, proto);
	reply = tuple_hash(s,
	    m->tables->backend[row->backend % XLB_BACKENDS].addr,
	    m->tables->source[row->source % XLB_NAT_SOURCES].addr, row->back,
	    proto);
	at = place(c->to, c->rows, hash, row_word(row->word, hash, 0), &step);
	other = place(c->to, c->rows, reply, row_word(back->word, reply, 0),
	    &step_back);
	if (at == UINT32_MAX || other == UINT32_MAX ||
	    place_taken(c->to, c->rows, at, row, c->used) ||
	    place_taken(c->to, c->rows, other, row, c->used))
		return;
	word = row_word(back->word, reply, step_back);
	if (row_put(&c->to[other], back, word, at))
		row_put(&c->to[at], row, row_word(row->word, hash, step),
		    other);
}

/* Neither direction had a packet since; a tick is not told from the next. */
static bool
is_copied(const struct xlb_nat *row, const struct xlb_nat *back,
    const struct nat_copy *c)
{
	uint32_t age = (c->since - XLB_NAT_USED(row->word)) & XLB_NAT_TICK;
	uint32_t other = (c->since - XLB_NAT_USED(back->word)) & XLB_NAT_TICK;

	return !c->all && age > 1 && age <= XLB_NAT_TICK / 2 && other > 1 &&
	    other <= XLB_NAT_TICK / 2;
}

void
nat_copy(const struct maps *m, const struct nat_copy *c)
{
	const struct xlb_nat *row, *back;
	uint32_t i;

	for (i = 0; i < m->nat_rows; i++) {
		row = &m->nat[i];
		if (!(row->word & XLB_NAT_FORWARD) ||
		    (row->word & (XLB_NAT_BUSY | XLB_NAT_GONE)) ||
		    !nat_pair(m->nat, m->nat_rows, i))
			continue;
		back = &m->nat[row->peer];
		if (!is_copied(row, back, c))
			flow_move(m, row, back, c);
	}
}
