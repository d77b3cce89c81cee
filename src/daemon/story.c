/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a pass changes, told in the log: slots that move, pools, backends that
 * cannot be reached, addresses, also those that NAT sends from. Health tells of
 * itself. */
#include <stdio.h>
#include <string.h>

#include "core/plan.h"
#include "daemon/daemon.h"
#include "io/log.h"

#define OBJECT_MAX 160
#define WHY_MAX 192

static void
source_tell(const struct state_source *s, bool more)
{
	char text[ADDR_STR_MAX];

	log_info("nat: %s %s", more ? "sends from" : "no flow is left with",
	    addr_print(&s->addr, text));
}

static void
ring_tell(const struct op_ring *ring)
{
	if (ring->moved > 0)
		log_info("pool %s: %u of %u slots move (%.1f %%)",
		    ring->pool, ring->moved, ring->size,
		    100.0 * ring->moved / ring->size);
}

void
story_plan(const struct plan *p)
{
	const struct op *op;
	size_t i;

	for (i = 0; i < p->n; i++) {
		op = &p->op[i];
		if (op->kind == OP_RING_SLOTS)
			ring_tell(op->row);
		if (op->kind == OP_SOURCE_PUT || op->kind == OP_SOURCE_DEL)
			source_tell(op->row, op->kind == OP_SOURCE_PUT);
	}
	if (p->added + p->changed + p->removed > 0)
		log_info("maps: %zu added, %zu changed, %zu removed",
		    p->added, p->changed, p->removed);
}

static bool
unreachable(enum member_why w)
{
	return w == MEMBER_NO_ROUTE || w == MEMBER_NO_NEIGHBOR ||
	    w == MEMBER_NO_PORT;
}

static void
member_tell(const struct state_pool *p, size_t i, enum member_why was)
{
	enum member_why is = p->member[i].why;
	char object[OBJECT_MAX];

	/* from and to what its check says is told by that */
	if ((was != MEMBER_ELIGIBLE || !unreachable(is)) &&
	    (is != MEMBER_ELIGIBLE || !unreachable(was)))
		return;
	snprintf(object, sizeof(object), "backend %s/%s", p->conf->name,
	    p->conf->backend[i].name);
	log_change(object, unreachable(was) ? member_why_text(was) :
	    "reachable", unreachable(is) ? member_why_text(is) : "reachable",
	    "");
}

static const char *
pool_text(const struct state_pool *p)
{
	return p->failed_open ? "fail open" : p->ready ? "ready" : "not ready";
}

static void
pool_tell(const struct state_pool *was, const struct state_pool *is)
{
	char object[OBJECT_MAX], why[WHY_MAX];
	size_t i;

	/* the same members, or a reload is on, which tells its own */
	for (i = 0; was->conf == is->conf && i < is->conf->nbackend; i++)
		member_tell(is, i, was->member[i].why);
	if (strcmp(pool_text(was), pool_text(is)) == 0)
		return;
	snprintf(object, sizeof(object), "pool %s", is->conf->name);
	snprintf(why, sizeof(why), "%u of %zu eligible, %u needed",
	    is->eligible, is->conf->nbackend, is->needed);
	log_change(object, pool_text(was), pool_text(is), why);
}

/* `prev` is empty after a reload. */
void
story_state(const struct state *prev, const struct state *next)
{
	size_t i;

	if (prev->npool != next->npool)
		return;
	for (i = 0; i < next->npool; i++)
		pool_tell(&prev->pool[i], &next->pool[i]);
}

/* Why it is so, for people. */
static const char *
address_why(const struct daemon *d, const struct announce_row *row,
    char buf[WHY_MAX])
{
	enum bird_status s = d->bird != NULL ? bird_status(d->bird) : BIRD_OFF;

	if (row->wanted) {
		if (s == BIRD_OFF || s == BIRD_SYNCED || s == BIRD_BUSY)
			return "";
		snprintf(buf, WHY_MAX, "as soon as BIRD takes it: %s",
		    bird_status_text(s));
		return buf;
	}
	if (row->why == ANNOUNCE_STOPPING && d->lifecycle.life == LIFE_STOP)
		return "xlbd is stopping";
	if (row->service == NULL)
		return announce_why_text(row->why);
	snprintf(buf, WHY_MAX, "%s: %s", announce_why_text(row->why),
	    row->service);
	return buf;
}

/* What is wanted, and of BIRD: which sessions have it, and when, it tells
 * `xlb status`. */
static const char *
address_text(bool wanted)
{
	return wanted ? "to be announced" : "withdrawn";
}

static void
address_tell(const struct addr *addr, bool was, bool is, const char *why)
{
	char object[OBJECT_MAX], text[ADDR_STR_MAX];

	if (was == is)
		return;
	snprintf(object, sizeof(object), "address %s", addr_print(addr, text));
	log_change(object, address_text(was), address_text(is), why);
}

/* Both are sorted by address. */
void
story_announce(const struct daemon *d, const struct announce *next)
{
	const struct announce *prev = &d->announce;
	const struct announce_row *row, *was;
	char buf[WHY_MAX];
	size_t i = 0, k = 0;
	int c;

	while (i < next->n || k < prev->n) {
		row = i < next->n ? &next->row[i] : NULL;
		was = k < prev->n ? &prev->row[k] : NULL;
		c = row == NULL ? 1 : was == NULL ? -1 :
		    addr_cmp(&row->addr, &was->addr);
		if (c > 0)
			address_tell(&was->addr, was->wanted, false,
			    "no service has it any more");
		else
			address_tell(&row->addr, c == 0 && was->wanted,
			    row->wanted, address_why(d, row, buf));
		i += c <= 0;
		k += c >= 0;
	}
}
