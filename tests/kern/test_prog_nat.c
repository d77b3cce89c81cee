/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table of NAT in the kernel: it comes with a service that needs it, and
 * grows with what is in it. */
#include "unit/unit.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "core/hash_key.h"
#include "core/nat_sweep.h"
#include "io/log.h"
#include "io/prog_int.h"
#include "kern.h"

static struct prog_config
config(void)
{
	return (struct prog_config){ .bpf_dir = KERN_DIR, .ring_size = 251,
	    .flow_entries = 2048, .seed = 7,
	    .hash_key = "0123456789abcde" };
}

static struct prog *
open_with(const struct prog_config *c)
{
	struct prog *p = NULL;
	int rc = prog_open(c, &p);

	if (rc != 0)
		fail_msg("prog_open: %s: %s", strerror(-rc), kern_log());
	return p;
}

static int
setup(void **state)
{
	(void)state;
	kern_log_clear();
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	return prog_remove_dir(KERN_DIR);
}

/* The way of a row into the table, as the packet program goes it. */
static uint32_t
nat_put(struct maps *m, const struct lookup_flow *f, uint32_t kind,
    const struct xlb_nat *from)
{
	struct lookup_hash h;
	uint32_t step, at;

	maps_hash(&m->tables->settings, f, 0, &h);
	for (step = 0; step < XLB_NAT_PROBE; step++) {
		at = xlb_nat_at((uint32_t)h.flow, step, m->nat_rows - 1);
		if (m->nat[at].word == 0)
			break;
	}
	assert_int_not_equal(step, XLB_NAT_PROBE);
	m->nat[at] = *from;
	m->nat[at].word = (h.flow & 0xffffffff00000000ULL) | kind |
	    XLB_NAT_ESTABLISHED | step << XLB_NAT_STEP_SHIFT |
	    (maps_tick() & XLB_NAT_TICK);
	return at;
}

/* Flow number `n`: each has a port of ours of its own. */
static void
nat_flow(unsigned n, struct lookup_flow *client, struct lookup_flow *back)
{
	bool v6 = n % 2;

	memset(client, 0, sizeof(*client));
	client->proto = back->proto = n % 3 ? IPPROTO_TCP : IPPROTO_UDP;
	addr_parse(v6 ? "2001:db8:9::1" : "192.0.2.1", &client->src);
	addr_parse(v6 ? "2001:db8:5::1" : "203.0.113.1", &client->dst);
	addr_parse(v6 ? "2001:db8:1::2" : "10.0.0.2", &back->src);
	addr_parse(v6 ? "2001:db8:1::1" : "10.0.0.1", &back->dst);
	client->sport = (uint16_t)(1000 + n);
	client->dport = back->sport = 80;
	back->dport = (uint16_t)(XLB_NAT_PORT + n);
}

/* Its rows; `more`: of another client, who has the port now. */
static void
nat_begin(struct maps *m, unsigned n, unsigned more)
{
	struct lookup_flow client, back;
	struct xlb_nat row = { .backend = (uint16_t)(1 + n % 2) };
	uint32_t a, b, udp;

	nat_flow(n, &client, &back);
	client.sport = (uint16_t)(client.sport + more);
	row.source = (uint8_t)(n % 2);
	row.ports = htonl((uint32_t)client.sport << 16 | client.dport);
	row.back = htonl((uint32_t)back.sport << 16 | back.dport);
	memcpy(row.client, client.src.b, 16);
	memcpy(row.vip, client.dst.b, 16);
	memcpy(m->tables->backend[row.backend].addr, back.src.b, 16);
	memcpy(m->tables->source[row.source].addr, back.dst.b, 16);
	udp = client.proto == IPPROTO_UDP ? XLB_NAT_UDP | XLB_NAT_REPLIED : 0;
	a = nat_put(m, &client, XLB_NAT_FORWARD | udp, &row);
	b = nat_put(m, &back, XLB_NAT_REPLY | udp, &row);
	m->nat[a].peer = b;
	m->nat[b].peer = a;
}

static void
the_table_of_nat_grows_with_what_is_in_it(void **state)
{
	struct prog_config c = config();
	struct lookup_flow client, back;
	struct lookup_hash h;
	struct xlb_nat row;
	struct prog *p;
	uint32_t at;
	unsigned n;

	(void)state;
	p = open_with(&c);
	assert_int_equal(maps_nat_rows(p->maps), XLB_NAT_ROWS_MIN);
	c.nat = true;
	assert_int_equal(prog_grow(p, &c), 0);
	assert_int_equal(maps_nat_rows(p->maps), 2048);
	hash_expand(c.hash_key, &p->maps->tables->settings.hash);
	for (n = 0; n < 400; n++)
		nat_begin(p->maps, n, 0);
	c.flow_entries = 8192;
	assert_int_equal(prog_grow(p, &c), 0);
	assert_int_equal(maps_nat_rows(p->maps), 8192);
	for (n = 0; n < 400; n++) {
		nat_flow(n, &client, &back);
		maps_hash(&p->maps->tables->settings, &client, 0, &h);
		nat_row_find(p->maps->nat, 8192, &client, h.flow, &row);
		assert_int_equal(ntohl(row.back) & 0xffff, back.dport);
		/* the reply's row is where a reply looks for it */
		maps_hash(&p->maps->tables->settings, &back, 0, &h);
		at = xlb_nat_at((uint32_t)h.flow,
		    XLB_NAT_STEP(p->maps->nat[row.peer].word), 8191);
		assert_int_equal(row.peer, at);
		assert_true(nat_pair(p->maps->nat, 8192, at));
		assert_int_equal(p->maps->nat[at].word >> 32, h.flow >> 32);
	}
	prog_close(p);
	p = open_with(&c);
	assert_int_equal(maps_nat_rows(p->maps), 8192);
	prog_close(p);
	c.nat = false;		/* no service needs it any more: it stays */
	p = open_with(&c);
	assert_int_equal(maps_nat_rows(p->maps), 8192);
	prog_close(p);
}

/* The rows of flow `n` in `table`, by their own hashes; NULL: none. */
static struct xlb_nat *
nat_find_in(struct maps *m, struct xlb_nat *table, uint32_t rows,
    const struct lookup_flow *f, uint32_t kind)
{
	struct lookup_hash h;
	uint32_t i, at;
	uint64_t want;

	maps_hash(&m->tables->settings, f, 0, &h);
	want = (h.flow & 0xffffffff00000000ULL) | kind |
	    (f->proto == IPPROTO_UDP ? XLB_NAT_UDP : 0);
	for (i = 0; i < XLB_NAT_PROBE; i++) {
		at = xlb_nat_at((uint32_t)h.flow, i, rows - 1);
		if (((table[at].word ^ want) & XLB_NAT_SAME) == 0)
			return &table[at];
	}
	return NULL;
}

static struct xlb_nat *
client_row(struct maps *m, struct xlb_nat *table, uint32_t rows, unsigned n,
    unsigned more)
{
	struct lookup_flow client, back;

	nat_flow(n, &client, &back);
	client.sport = (uint16_t)(client.sport + more);
	return nat_find_in(m, table, rows, &client, XLB_NAT_FORWARD);
}

static struct xlb_nat *
reply_row(struct maps *m, struct xlb_nat *table, uint32_t rows, unsigned n)
{
	struct lookup_flow client, back;

	nat_flow(n, &client, &back);
	return nat_find_in(m, table, rows, &back, XLB_NAT_REPLY);
}

static unsigned
sport_of(const struct xlb_nat *row)
{
	return ntohl(row->ports) >> 16;
}

#define MORE 4096		/* rows of the larger table */

/* A flow that goes on, one that ends and whose port another one takes, before
 * packets use the larger table and after. */
static void
what_changes_meanwhile_is_carried_over(void **state)
{
	struct xlb_nat *to = calloc(MORE, sizeof(*to)), *row, *back;
	struct nat_copy copy = { .to = to, .rows = MORE, .all = true,
	    .since = maps_tick() };
	struct prog_config c = config();
	struct maps *m;
	struct prog *p;
	unsigned n;

	(void)state;
	c.nat = true;
	p = open_with(&c);
	m = p->maps;
	hash_expand(c.hash_key, &m->tables->settings.hash);
	for (n = 0; n < 50; n++)
		nat_begin(m, n, 0);
	nat_copy(m, &copy);
	copy.all = false;
	/* one ends, one is over and its port another client's */
	row = client_row(m, m->nat, 2048, 1, 0);
	back = &m->nat[row->peer];
	row->word = (row->word + 3) | XLB_NAT_CLOSING;
	back->word |= XLB_NAT_CLOSING;
	row = client_row(m, m->nat, 2048, 2, 0);
	m->nat[row->peer].word = row->word = XLB_NAT_GONE;
	nat_begin(m, 2, 500);
	nat_copy(m, &copy);
	row = client_row(m, to, MORE, 1, 0);
	assert_non_null(row);
	assert_true(nat_pair(to, MORE, (uint32_t)(row - to)));
	assert_true(row->word & XLB_NAT_CLOSING);
	assert_true(to[row->peer].word & XLB_NAT_CLOSING);
	assert_int_equal(XLB_NAT_USED(row->word),
	    XLB_NAT_USED(to[row->peer].word) + 3);
	assert_null(client_row(m, to, MORE, 2, 0));
	assert_int_equal(sport_of(reply_row(m, to, MORE, 2)), 1502);
	assert_true(nat_pair(to, MORE, client_row(m, to, MORE, 2, 500)->peer));
	/* from now on packets make rows there: theirs are right */
	copy.used = true;
	row = client_row(m, m->nat, 2048, 3, 0);
	m->nat[row->peer].word = row->word = XLB_NAT_GONE;
	nat_begin(m, 3, 500);
	/* the client of flow 5, by a port that `to` does not know of */
	row = client_row(m, m->nat, 2048, 5, 0);
	m->nat[row->peer].word = row->word = XLB_NAT_GONE;
	nat_begin(m, 61, 5U - 61);
	nat_copy(m, &copy);
	assert_null(reply_row(m, to, MORE, 61));
	assert_int_equal(sport_of(reply_row(m, to, MORE, 3)), 1003);
	assert_null(client_row(m, to, MORE, 3, 500));
	for (n = 4; n < 50; n++)
		assert_true(nat_pair(to, MORE, (uint32_t)(client_row(m, to,
		    MORE, n, 0) - to)));
	free(to);
	prog_close(p);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
	const struct CMUnitTest test[] = {
		CASE(the_table_of_nat_grows_with_what_is_in_it),
		CASE(what_changes_meanwhile_is_carried_over),
	};

	kern_enter();
	kern_bpffs();
	log_init("test_prog_nat", false);
	log_libbpf();
	return cmocka_run_group_tests_name("prog_nat", test, NULL, NULL);
}
