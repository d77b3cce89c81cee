/* SPDX-License-Identifier: GPL-2.0-or-later */
/* xlbd without its loop. */
#include "node.h"

#include <arpa/inet.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/plan.h"
#include "core/sweep.h"
#include "io/log.h"
#include "io/maps.h"

#define SECOND 1000000000LL
/* as in daemon/tidy.c */
#define SOON (SECOND / 10)
#define LOOK (60 * SECOND)
#define HYGIENE (3600 * SECOND)

static int64_t
model_ns(void)
{
	return (int64_t)kernel_ns();
}

void
node_init(struct node *n, struct kernel *k, const struct site *s)
{
	memset(n, 0, sizeof(*n));
	n->k = k;
	memset(n->up, true, sizeof(n->up));
	node_reload(n, s);
}

void
node_fini(struct node *n)
{
	node_stop(n);
	arena_free(n->arena);
	kernel_free(n->k);
}

/* What `xlb drain` has said. */
static void
overrides_make(struct node *n, const struct site *s)
{
	struct override_list *l = &n->overrides;
	const struct site_member *m;
	struct override *o;
	unsigned p, i;

	*l = (struct override_list){ NULL, 0 };
	for (p = 0; p < s->npool; p++)
		for (i = 0; i < s->nbackend; i++) {
			m = &s->pool[p].member[i];
			if (!m->in || m->said == 0)
				continue;
			o = arena_grow(n->arena, &l->row, l->n++, sizeof(*o));
			*o = (struct override){ .addr = site_address(i),
			    .pool = arena_printf(n->arena, "%s",
			    s->pool[p].name), .state = m->state,
			    .file_state = BACKEND_ACTIVE, .since = m->said };
		}
}

void
node_reload(struct node *n, const struct site *s)
{
	struct conf_source src = { .name = "model" };
	const struct conf *c;
	struct diag dg;
	char *text;
	FILE *f = open_memstream(&text, &src.len);

	site_print(s, f);
	fclose(f);
	src.text = text;
	diag_init(&dg);
	arena_free(n->arena);
	n->arena = arena_new();
	if (conf_load(&src, 1, n->arena, &c, &dg) < 0)
		fatalx("the model's configuration: %s", dg.row[0].text);
	diag_fini(&dg);
	free(text);
	n->conf = *c;
	n->conf.flow_entries = s->entries;
	overrides_make(n, s);
}

void
node_start(struct node *n)
{
	n->maps = kernel_adopt(n->k);
	n->rings = ring_cache_new();
	n->graced = n->again = false;
	n->fresh = true;
	n->scanned = 0;
	n->due = model_ns() + SECOND;
	memset(&n->surge, 0, sizeof(n->surge));
	n->second = model_ns();
	node_reconcile(n);
}

void
node_stop(struct node *n)
{
	kernel_use(n->k);
	ring_cache_free(n->rings);
	n->rings = NULL;
	kernel_leave(n->k);
	n->maps = NULL;
}

/* Every backend is on the same wire. */
static struct hop_table
hops_make(struct arena *a)
{
	struct hop_table t = { .n = SITE_BACKENDS };
	unsigned i;

	t.row = arena_calloc(a, t.n, sizeof(*t.row));
	for (i = 0; i < t.n; i++) {
		struct state_nexthop *h = &t.row[i].nexthop;

		t.row[i].addr = h->gateway = site_address(i);
		t.row[i].status = HOP_OK;
		h->ifindex = KERNEL_IFINDEX;
		h->src = addr_from4(htonl(0x0a01fffe));
		h->mtu = 1500;
		memcpy(h->mac, "\x02\0\0\0\0\1", 6);
		memcpy(h->src_mac, "\x02\0\0\0\0\2", 6);
		h->mac[5] = (uint8_t)i;
	}
	return t;
}

static struct health_table
health_make(const struct node *n, struct arena *a)
{
	struct health_table t = { .n = SITE_BACKENDS };
	unsigned i;

	t.row = arena_calloc(a, t.n, sizeof(*t.row));
	for (i = 0; i < t.n; i++) {
		t.row[i].addr = site_address(i);
		t.row[i].port = 80;
		t.row[i].check = "up";
		t.row[i].fsm.state = n->up[i] ? HEALTH_UP : HEALTH_DOWN;
		t.row[i].since = 1;
	}
	return t;
}

void
node_reconcile(struct node *n)
{
	struct arena *a = arena_new();
	struct hop_table hops = hops_make(a);
	struct health_table health = health_make(n, a);
	struct state found, wanted;
	struct state_input in = { .conf = &n->conf, .overrides = &n->overrides,
	    .health = &health, .hops = &hops, .surge = n->surge.on,
	    .now = model_ns(), .found = &found };
	struct plan plan;
	struct diag dg;
	size_t i;
	int rc;

	kernel_use(n->k);
	diag_init(&dg);
	if (maps_read(n->maps, a, &found) < 0 ||
	    state_build(&in, a, &wanted, &dg) < 0)
		fatalx("reconcile: %s", dg.n > 0 ? dg.row[0].text : "maps");
	diag_fini(&dg);
	plan_build(&wanted, &found, n->rings, kernel_tick(), a, &plan);
	for (i = 0; i < plan.n; i++) {
		rc = maps_do(n->maps, &plan.op[i]);
		if (rc < 0)
			fatalx("operation %zu of %zu: %s", i, plan.n,
			    strerror(-rc));
	}
	if (plan.n > 0) {
		n->again = sweep_running(maps_sweep(n->maps));
		n->fresh = true;
		if (!n->again)
			n->due = model_ns() + SECOND;
	}
	arena_free(a);
}

static int64_t
next_pass(const struct node *n, const struct sweep_result *r)
{
	if (n->again || r->prev > 0)
		return SECOND;
	if (r->scrubbed || (r->waits && !r->scanned))
		return SOON;
	if (r->lookup > 0 || r->retired > 0)
		return LOOK;
	return HYGIENE;
}

static void
pass_done(struct node *n)
{
	struct sweep *s = maps_sweep(n->maps);
	const struct sweep_result *r = sweep_result(s);
	uint32_t b;

	n->passes++;
	if (r->scanned) {
		n->scanned = model_ns();
		n->fresh = r->scrubbed;
		for (b = sweep_freed(s, 1); b < XLB_BACKENDS;
		    b = sweep_freed(s, b + 1))
			maps_backend_free(n->maps, b);
	} else {
		n->fresh |= r->waits;
	}
	n->due = model_ns() + next_pass(n, r);
	n->fresh |= n->again;
	n->again = false;
	if (r->old_gone)
		node_reconcile(n);
}

static void
pass_begin(struct node *n)
{
	int64_t ago = model_ns() - n->scanned;
	enum sweep_scan scan = SWEEP_SCAN_NEVER;

	if (n->scanned == 0 || ago >= HYGIENE)
		scan = SWEEP_SCAN_ALWAYS;
	else if (n->fresh || ago >= LOOK)
		scan = SWEEP_SCAN_ASKED;
	sweep_begin(maps_sweep(n->maps), scan);
}

/* Surge is judged once a second. */
static void
second(struct node *n)
{
	struct xlb_flow_stats now;

	n->second = model_ns() + SECOND;
	if (maps_flow_stats(n->maps, &now) == 0 &&
	    surge_step(&n->surge, &now, (mono_t){ model_ns() }))
		node_reconcile(n);
}

bool
node_tidy(struct node *n)
{
	struct sweep *s;

	if (n->maps == NULL)
		return false;
	kernel_use(n->k);
	if (model_ns() >= n->second)
		second(n);
	s = maps_sweep(n->maps);
	if (!sweep_running(s)) {
		if (model_ns() < n->due)
			return false;
		pass_begin(n);
		return true;
	}
	switch (sweep_step(s, kernel_tick())) {
	case SWEEP_GRACE:
		sweep_graced(s);
		break;
	case SWEEP_DONE:
		pass_done(n);
		break;
	case SWEEP_MORE:
		break;
	}
	return true;
}

void
node_tidy_all(struct node *n)
{
	while (node_tidy(n))
		;
}
