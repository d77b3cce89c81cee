/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The two open-address tables: rows are published by their valid word and used
 * again only after a grace period.
 */
#include "io/maps_int.h"

#include <errno.h>
#include <string.h>

#include "core/source.h"

#define MASK (XLB_TABLE_ROWS - 1)

static uint64_t
word_get(const struct maps *m, enum maps_table t, uint32_t i)
{
	return t == TABLE_VIP ? m->tables->vip[i].id :
	    m->tables->service[i].key;
}

/* Release: what the row says is there before the row is. */
static void
word_set(struct maps *m, enum maps_table t, uint32_t i, uint64_t word)
{
	if (t == TABLE_VIP)
		__atomic_store_n(&m->tables->vip[i].id, (uint32_t)word,
		    __ATOMIC_RELEASE);
	else
		__atomic_store_n(&m->tables->service[i].key, word,
		    __ATOMIC_RELEASE);
}

static bool
row_is(const struct maps *m, enum maps_table t, uint32_t i, const void *key)
{
	uint64_t word = word_get(m, t, i);

	if (t == TABLE_SERVICE)
		return word == *(const uint64_t *)key;
	return word != XLB_ROW_EMPTY && word != XLB_ROW_GONE &&
	    memcmp(m->tables->vip[i].addr, key, 16) == 0;
}

/* 1 and the row that has `key`; or 0 and where it may go; or -ENOSPC. */
static int
table_probe(const struct maps *m, enum maps_table t, uint32_t at,
    const void *key, uint32_t *row)
{
	int rc = -ENOSPC;
	uint64_t word;
	uint32_t i, n;

	for (n = 0; n < XLB_PROBE; n++) {
		i = (at + n) & MASK;
		if (row_is(m, t, i, key)) {
			*row = i;
			return 1;
		}
		word = word_get(m, t, i);
		if (rc < 0 && (word == XLB_ROW_EMPTY ||
		    (word == XLB_ROW_GONE && !m->fresh[t][i]))) {
			*row = i;
			rc = 0;
		}
		if (word == XLB_ROW_EMPTY)
			break;
	}
	return rc;
}

/* The same, with what was deleted a moment ago if there is no other room. */
static int
table_room(struct maps *m, enum maps_table t, uint32_t at, const void *key,
    uint32_t *row)
{
	int rc = table_probe(m, t, at, key, row);

	if (rc != -ENOSPC || memchr(m->fresh[t], 1, XLB_TABLE_ROWS) == NULL)
		return rc;
	rc = maps_grace(m);
	return rc < 0 ? rc : table_probe(m, t, at, key, row);
}

static void
table_del(struct maps *m, enum maps_table t, uint32_t i)
{
	word_set(m, t, i, XLB_ROW_GONE);
	m->fresh[t][i] = 1;
	m->unsettled = true;
}

static uint32_t
vip_at(const struct addr *a)
{
	__be32 w[4];

	memcpy(w, a->b, sizeof(w));
	return xlb_vip_hash(w);
}

static bool
vip_is(const struct maps *m, uint32_t i)
{
	uint64_t word = word_get(m, TABLE_VIP, i);

	return word != XLB_ROW_EMPTY && word != XLB_ROW_GONE;
}

static uint32_t
row_at(const struct maps *m, uint32_t i)
{
	struct addr a;

	memcpy(a.b, m->tables->vip[i].addr, sizeof(a.b));
	return vip_at(&a);
}

static void
filter_set(struct maps *m, uint32_t at, bool on)
{
	__u64 *word = &m->tables->vip_filter[at / 64];
	__u64 bit = 1ULL << (at & 63);

	__atomic_store_n(word, on ? *word | bit : *word & ~bit,
	    __ATOMIC_RELEASE);
}

/* Does a VIP whose row begins its search at `at` exist? */
static bool
filter_needed(const struct maps *m, uint32_t at)
{
	uint32_t i, n;

	for (n = 0; n < XLB_PROBE; n++) {
		i = (at + n) & MASK;
		if (vip_is(m, i) && row_at(m, i) == at)
			return true;
	}
	return false;
}

static void
source_set(struct maps *m, uint32_t at, const struct xlb_settings *s)
{
	__u8 *byte = &m->tables->plain_source[at / 8], bit = 1U << at % 8;

	__atomic_store_n(byte, m->source_vips[at] == 0 &&
	    source_is_plain(at, s) ? *byte | bit : *byte & ~bit,
	    __ATOMIC_RELEASE);
}

/* A VIP more or less; more: before it is there, less: when it is gone. */
static void
source_count(struct maps *m, const struct addr *a, int more)
{
	__be32 word;
	uint32_t at;

	if (!addr_is4(a))
		return;
	memcpy(&word, a->b + 12, sizeof(word));
	at = xlb_source_at(word);
	m->source_vips[at] += (uint32_t)more;
	source_set(m, at, &m->tables->settings);
}

void
table_sources_put(struct maps *m, const struct xlb_settings *s)
{
	uint32_t at;

	for (at = 0; at < XLB_SOURCES; at++)
		source_set(m, at, s);
}

/* The bits of an earlier xlbd that was cut short. */
void
table_filter_check(struct maps *m)
{
	struct addr a;
	uint32_t i;

	for (i = 0; i < XLB_TABLE_ROWS; i++) {
		memcpy(a.b, m->tables->vip[i].addr, sizeof(a.b));
		if (vip_is(m, i))
			source_count(m, &a, 1);
	}
	table_sources_put(m, &m->tables->settings);
	for (i = 0; i < XLB_TABLE_ROWS; i++) {
		if (vip_is(m, i))
			filter_set(m, row_at(m, i), true);
		else if (xlb_vip_filter_has(m->tables, i) &&
		    !filter_needed(m, i))
			filter_set(m, i, false);
	}
}

int
table_vip_put(struct maps *m, const struct state_vip *v)
{
	struct xlb_vip *row;
	uint32_t i, at = vip_at(&v->addr);
	int rc;

	rc = table_room(m, TABLE_VIP, at, v->addr.b, &i);
	if (rc < 0)
		return rc;
	filter_set(m, at, true);
	row = &m->tables->vip[i];
	if (rc == 0) {
		source_count(m, &v->addr, 1);
		memcpy(row->addr, v->addr.b, sizeof(row->addr));
	}
	__atomic_store_n(&row->flags, v->flags, __ATOMIC_RELAXED);
	word_set(m, TABLE_VIP, i, v->id | (v->own ? XLB_VIP_OWN : 0));
	return 0;
}

int
table_vip_del(struct maps *m, const struct state_vip *v)
{
	uint32_t i, at = vip_at(&v->addr);

	/* the address may have another id by now: that one stays */
	if (table_probe(m, TABLE_VIP, at, v->addr.b, &i) != 1 ||
	    (m->tables->vip[i].id & ~XLB_VIP_OWN) != v->id)
		return 0;
	table_del(m, TABLE_VIP, i);
	source_count(m, &v->addr, -1);
	if (!filter_needed(m, at))
		filter_set(m, at, false);
	return 0;
}

struct xlb_service *
table_service_find(struct maps *m, uint64_t key)
{
	uint32_t i;

	if (table_probe(m, TABLE_SERVICE, xlb_service_hash(key), &key, &i) != 1)
		return NULL;
	return &m->tables->service[i];
}

int
table_service_put(struct maps *m, uint64_t key, uint64_t word)
{
	uint32_t i;
	int rc;

	rc = table_room(m, TABLE_SERVICE, xlb_service_hash(key), &key, &i);
	if (rc < 0)
		return rc;
	__atomic_store_n(&m->tables->service[i].word, word, __ATOMIC_RELAXED);
	word_set(m, TABLE_SERVICE, i, key);
	return 0;
}

int
table_service_del(struct maps *m, uint64_t key)
{
	uint32_t i;

	if (table_probe(m, TABLE_SERVICE, xlb_service_hash(key), &key, &i) == 1)
		table_del(m, TABLE_SERVICE, i);
	return 0;
}

/* After a restart nobody knows when rows became GONE. */
bool
table_any_gone(const struct maps *m)
{
	uint32_t i;

	for (i = 0; i < XLB_TABLE_ROWS; i++)
		if (word_get(m, TABLE_VIP, i) == XLB_ROW_GONE ||
		    word_get(m, TABLE_SERVICE, i) == XLB_ROW_GONE)
			return true;
	return false;
}

/* A row that is GONE before an empty one leads nowhere: it may be empty too,
 * and then the one before it. Else look-ups would only ever get longer. */
static void
table_sweep(struct maps *m, enum maps_table t)
{
	uint32_t i, n;

	for (n = 2 * XLB_TABLE_ROWS; n-- > 0;) {
		i = n & MASK;
		if (word_get(m, t, i) == XLB_ROW_GONE &&
		    word_get(m, t, (i + 1) & MASK) == XLB_ROW_EMPTY)
			word_set(m, t, i, XLB_ROW_EMPTY);
	}
}

void
table_graced(struct maps *m)
{
	memset(m->fresh, 0, sizeof(m->fresh));
	table_sweep(m, TABLE_VIP);
	table_sweep(m, TABLE_SERVICE);
}
