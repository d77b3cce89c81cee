/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Clients, and which backend their packets must reach. */
#include "history.h"

#include <stdio.h>

#define HOUR (3600 * SECOND)
/* entries count time in ticks of 4.3 s */
#define SLACK (10 * SECOND)

static int64_t
now_ns(void)
{
	return (int64_t)kernel_ns();
}

static unsigned
flow_pool(const struct history *h, const struct flow *f)
{
	return h->site.service[f->t.service].pool;
}

/* On every node: they hear of a death one after the other. */
static bool
lives(const struct history *h, const struct flow *f, int backend)
{
	unsigned i;

	for (i = 0; i < h->profile->nodes; i++)
		if (!site_lives(&h->site, flow_pool(h, f), (unsigned)backend,
		    h->node[i].up))
			return false;
	return true;
}

void
flows_void(struct history *h)
{
	struct flow *f;

	for (f = h->flow; f < h->flow + HISTORY_FLOWS; f++) {
		if (f->state == FLOW_FREE)
			continue;
		if (!f->broken && !lives(h, f, f->owner))
			f->state = FLOW_FREE;
		else if (!f->lru_broken && !lives(h, f, f->lru_owner))
			f->lru_broken = true;	/* not by a move */
	}
}

void
flow_print(struct history *h, const struct flow *f)
{
	struct node *n = &h->node[f->node];
	uint64_t e = node_entry(n, f->select, f->hash);
	const struct xlb_tables *t = kernel_tables(n->k);
	const struct xlb_ring *r;
	uint32_t i, at, word, past;

	printf("# flow: service %u, owner b%d, %s%s, began %.1f s ago, last "
	    "looked up %.1f s ago\n", f->t.service, f->owner,
	    f->confirmed ? "confirmed" : "not confirmed",
	    f->state == FLOW_CLOSING ? ", closing" : "",
	    (double)(now_ns() - f->began) / 1e9,
	    (double)(now_ns() - f->sure) / 1e9);
	printf("# entry: b%d%s%s, %u ticks\n", e == 0 ? -1 :
	    node_backend(n, XLB_FLOW_BACKEND(e)),
	    (uint32_t)e & XLB_FLOW_CONFIRMED ? " confirmed" : "",
	    (uint32_t)e & XLB_FLOW_CLOSING ? " closing" : "",
	    (kernel_tick() - XLB_FLOW_USED(e)) & XLB_FLOW_AGE_MASK);
	for (i = 0; i < XLB_TABLE_ROWS; i++)
		if (t->service[i].key & XLB_SERVICE_VALID &&
		    (t->service[i].key & 0xffff) ==
		    (uint64_t)SITE_PORT + f->t.service)
			break;
	if (i == XLB_TABLE_ROWS)
		return;
	r = kernel_ring(n->k, XLB_WORD_RING(t->service[i].word));
	at = (uint32_t)((uint64_t)f->select * h->site.ring_size >> 32);
	word = r->slot[at + (r->active & 1) * h->site.ring_size];
	past = r->slot[at + 2 * h->site.ring_size];
	printf("# service: ring %u, old %u, flags %x; slot %u: cur b%d prev "
	    "b%d%s, past b%d %u ticks ago\n",
	    XLB_WORD_RING(t->service[i].word),
	    XLB_WORD_OLD_RING(t->service[i].word),
	    XLB_WORD_FLAGS(t->service[i].word), at,
	    node_backend(n, XLB_SLOT_CUR(word)),
	    node_backend(n, XLB_SLOT_PREV(word)),
	    word & XLB_SLOT_LOOKUP ? " LOOKUP" : "",
	    node_backend(n, XLB_PAST_OWNER(past)),
	    (kernel_tick() - XLB_PAST_TICK(past)) & XLB_PAST_TICK_MASK);
}

static void
wrong(struct history *h, const struct flow *f, const char *what, int got)
{
	if (h->wrong != NULL)
		return;
	h->wrong = what;
	history_log(h, "packet of flow %zu reached b%d", (size_t)(f - h->flow),
	    got);
	flow_print(h, f);
}

/* How long what the table says of it is a promise. */
static bool
entry_holds(uint64_t e)
{
	uint32_t life = (uint32_t)e & XLB_FLOW_CLOSING ? XLB_FLOW_SESSION :
	    (uint32_t)e & XLB_FLOW_CONFIRMED ? XLB_FLOW_LIVE :
	    XLB_FLOW_OPENING;

	return ((kernel_tick() - XLB_FLOW_USED(e)) & XLB_FLOW_AGE_MASK) <=
	    life;
}

static void
judge(struct history *h, struct flow *f, unsigned flags, uint64_t e, int got)
{
	bool held = e != 0 && entry_holds(e) &&
	    node_backend(&h->node[f->node], XLB_FLOW_BACKEND(e)) == f->owner &&
	    (h->settled[f->node] || f->began < h->left[f->node]);
	bool known = f->state == FLOW_OPEN ? f->confirmed &&
	    now_ns() - f->sure < HOUR - SLACK : false;

	if (got == f->owner)
		return;
	if (held) {
		history_log(h, "flags %02x, entry b%d%s%s, %u ticks", flags,
		    f->owner, (uint32_t)e & XLB_FLOW_CONFIRMED ?
		    " confirmed" : "", (uint32_t)e & XLB_FLOW_CLOSING ?
		    " closing" : "", (kernel_tick() - XLB_FLOW_USED(e)) &
		    XLB_FLOW_AGE_MASK);
		wrong(h, f, "moved, and the table held it", got);
		return;
	}
	f->broken = true;
	if (f->hopped)
		h->count->moved_node++;
	else if (!known && f->state == FLOW_OPEN && !f->confirmed &&
	    f->opened == f->began)
		h->count->moved_mute++;
	else if (!known)
		h->count->moved_idle++;
	else
		h->count->moved_room++;
	if (known && h->profile->roomy)
		wrong(h, f, "moved, and the table should have held it", got);
}

static int
lru_send(struct history *h, const struct flow *f)
{
	return lru_packet(&h->lru[f->node], &h->site, h->node[0].up, flow_pool(h, f),
	    f->select, f->id);
}

/* What the table has to know of it from this packet on. */
static void
flow_seen(struct flow *f, unsigned flags)
{
	if (!(flags & (TCP_PSH | TCP_SYN)))
		return;
	if (now_ns() - f->sure >= HOUR - SLACK) {
		f->confirmed = false;
		f->opened = now_ns();
	} else if ((flags & TCP_PSH) && now_ns() - f->opened < 50 * SECOND) {
		f->confirmed = true;
	}
	f->sure = now_ns();
}

static void
flow_send(struct history *h, struct flow *f, unsigned flags, bool data)
{
	struct node *n = &h->node[f->node];
	uint64_t e = node_entry(n, f->select, f->hash);
	int got = node_packet(n, &f->t, flags, data), lru = lru_send(h, f);

	h->count->packets++;
	if (!f->broken)
		judge(h, f, flags, e, got);
	if (!f->lru_broken && lru != f->lru_owner) {
		f->lru_broken = true;
		h->count->lru_moved++;
	}
	f->answered |= !(flags & TCP_SYN);
	flow_seen(f, flags);
}

static void
flow_tuple(struct history *h, struct flow *f)
{
	struct rng *r = &h->rng;
	unsigned i;

	/* some clients have many connections */
	f->t.client = 0xc6120000 + (rng_chance(r, 30) ? rng_below(r, 4) :
	    rng_below(r, 65536));
	f->t.port = (uint16_t)rng_range(r, 1024, 65535);
	f->t.service = (uint8_t)rng_below(r, h->site.nservice);
	f->t.v6 = rng_chance(r, 30);
	f->id = h->next_id++ % HISTORY_IDS;
	for (i = 0; i < h->profile->nodes; i++)
		lru_forget(&h->lru[i], f->id);
	node_hash(&h->node[0], &f->t, h->site.service[f->t.service].source,
	    &f->select, &f->hash);
}

/* A first packet: whoever gets it has the connection. */
static void
flow_begin(struct history *h, struct flow *f)
{
	uint64_t e;
	struct node *n;
	int got;

	if (f->began == 0 || rng_chance(&h->rng, 70))
		flow_tuple(h, f);
	f->node = rng_below(&h->rng, h->profile->nodes);
	n = &h->node[f->node];
	e = node_entry(n, f->select, f->hash);
	got = node_packet(n, &f->t, TCP_SYN, false);
	f->lru_owner = lru_send(h, f);
	h->count->packets++;
	if (got < 0 || f->lru_owner < 0)
		return;
	f->owner = got;
	if (h->settled[f->node] && !site_eligible(&h->site, flow_pool(h, f),
	    (unsigned)got, n->up) && (e == 0 ||
	    node_backend(n, XLB_FLOW_BACKEND(e)) != got)) {
		wrong(h, f, "a new connection where none should be", got);
		return;
	}
	if (!lives(h, f, got))
		return;
	f->state = FLOW_OPEN;
	f->began = f->opened = f->sure = now_ns();
	f->broken = f->lru_broken = f->confirmed = f->answered =
	    f->hopped = false;
	h->count->flows++;
	if (rng_chance(&h->rng, 80))
		flow_send(h, f, TCP_ACK, false);
	if (rng_chance(&h->rng, 80))
		flow_send(h, f, TCP_ACK | TCP_PSH, true);
}

void
flow_step(struct history *h, struct flow *f)
{
	struct rng *r = &h->rng;
	unsigned what = rng_below(r, 100);

	if (f->state == FLOW_FREE) {
		flow_begin(h, f);
		return;
	}
	if (h->profile->nodes > 1 && rng_chance(r, 1)) {
		f->node = (f->node + 1) % h->profile->nodes;
		f->hopped = true;
	}
	if (f->state == FLOW_CLOSING && now_ns() - f->fin > 100 * SECOND)
		f->state = FLOW_FREE;
	else if (what < 4 && f->state == FLOW_OPEN && !f->answered &&
	    now_ns() - f->began < 50 * SECOND)
		flow_send(h, f, TCP_SYN, false);
	else if (what < 50)
		flow_send(h, f, TCP_ACK | TCP_PSH, true);
	else if (what < 95)
		flow_send(h, f, TCP_ACK, what < 70);
	else if (what < 99) {
		flow_send(h, f, TCP_ACK | TCP_FIN, false);
		f->state = FLOW_CLOSING;
		f->fin = now_ns();
	} else {
		flow_send(h, f, TCP_RST, false);
		f->state = FLOW_FREE;
	}
}

/* Single packets from addresses that nobody has: SYNs, and some ACKs. */
void
flow_flood(struct history *h, unsigned packets)
{
	struct flow f = { .node = 0 };
	unsigned i;

	for (i = 0; i < packets; i++) {
		f.t.client = 0xc0000000 + rng_below(&h->rng, 0x1000000);
		f.t.port = (uint16_t)rng_next(&h->rng);
		f.t.service = (uint8_t)rng_below(&h->rng, h->site.nservice);
		f.id = h->next_id++ % HISTORY_IDS;
		f.select = (uint32_t)rng_next(&h->rng);
		lru_forget(&h->lru[0], f.id);
		node_packet(&h->node[0], &f.t, rng_chance(&h->rng, 90) ?
		    TCP_SYN : TCP_ACK | TCP_PSH, false);
		lru_send(h, &f);
		h->count->packets++;
	}
}
