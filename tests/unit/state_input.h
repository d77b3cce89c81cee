/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a state is built from: a test changes what it is about. */
#ifndef XLB_STATE_INPUT_H
#define XLB_STATE_INPUT_H

#include "unit.h"

#include <string.h>

#include "core/arena.h"
#include "core/state.h"

static struct arena *a;
static struct diag dg;
static struct hop hop[9];
static struct health_row health[16];
static struct override override[4];
static struct hop_table hops = { hop, 0 };
static struct health_table table = { health, 0 };
static struct override_list overrides = { override, 0 };
static struct state found;
static struct state_input in;
static struct addr local[1];

static inline int
fresh(void **state)
{
	(void)state;
	a = arena_new();
	diag_init(&dg);
	memset(&found, 0, sizeof(found));
	hops.n = table.n = overrides.n = 0;
	in = (struct state_input){ .overrides = &overrides, .health = &table,
	    .hops = &hops, .found = &found, .local = local };
	return 0;
}

static inline int
done(void **state)
{
	(void)state;
	diag_fini(&dg);
	arena_free(a);
	return 0;
}

static inline struct addr
ip(const char *s)
{
	struct addr x;

	assert_int_equal(addr_parse(s, &x), 0);
	return x;
}

static inline const struct conf *
conf(const char *text)
{
	struct conf_source src = { "f", text, strlen(text) };
	const struct conf *c = NULL;

	if (conf_load(&src, 1, a, &c, &dg) < 0)
		fail_msg("%u: %s", dg.row[0].mark.line, dg.row[0].text);
	in.conf = c;
	return c;
}

/* A next hop for the next address in order. */
static inline struct hop *
hop_add(const char *addr, enum hop_status status)
{
	struct hop *h = &hop[hops.n++];

	memset(h, 0, sizeof(*h));
	h->addr = ip(addr);
	h->status = status;
	if (status != HOP_OK)
		return h;
	h->nexthop.gateway = h->addr;
	h->nexthop.ifindex = 2;
	h->nexthop.src = ip("10.0.0.254");
	h->nexthop.mtu = 1500;
	h->nexthop.mac[0] = 2;
	return h;
}

static inline void
health_add(const char *addr, uint16_t port, enum health_state s)
{
	health[table.n++] = (struct health_row){ .addr = ip(addr),
	    .port = port, .check = "c", .fsm = { .state = s } };
}

static inline struct state
build(void)
{
	struct state s;
	const char *wrong;

	if (state_build(&in, a, &s, &dg) < 0)
		fail_msg("%s", dg.row[0].text);
	wrong = state_check(&s, a);
	if (wrong != NULL)
		fail_msg("%s", wrong);
	return s;
}

#define HEAD "interfaces: [{name: eth0}]\n" \
	"checks: {c: {type: tcp, port: 80, via: direct}}\n"
#define WEB "services: [{name: w, addresses: [192.0.2.1], listen: [tcp/80]," \
	" pool: p}]\n"

#define CASE(f) cmocka_unit_test_setup_teardown(f, fresh, done)

#endif
