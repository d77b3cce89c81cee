/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The search for what a path carries, against paths that carry any size. */
#include "unit.h"

#include <string.h>

#include "core/path_mtu.h"

/* More than any round takes: twelve halvings, three tries for each. */
#define STEPS_MAX 60

static struct path_mtu
path(const char *addr, uint16_t limit)
{
	struct path_mtu p = { 0 };

	assert_int_equal(addr_parse(addr, &p.addr), 0);
	path_mtu_limit(&p, limit);
	return p;
}

/* One round on a path that carries `mtu`; of every `loss` probes one is lost
 * (0: none). How often it was asked; `*told`: a change was. */
static int
round_run(struct path_mtu *p, uint16_t mtu, int loss, bool *told)
{
	bool changed;
	uint32_t ms;
	int n = 0;

	*told = false;
	do {
		n++;
		ms = path_mtu_step(p, path_mtu_ask(p) <= mtu &&
		    (loss == 0 || n % loss != 0), &changed);
		*told |= changed;
		assert_true(ms == 0 || ms == PATH_ROUND_MS);
		assert_in_range(n, 1, STEPS_MAX);
	} while (ms == 0);
	assert_int_equal(p->hi, 0);
	return n;
}

static void
every_size_is_found(void **state)
{
	struct path_mtu p;
	uint16_t mtu;
	bool told;
	int n;

	(void)state;
	for (mtu = 576; mtu <= 1500; mtu++) {
		p = path("10.0.0.1", 1500);
		n = round_run(&p, mtu, 0, &told);
		assert_true(told);
		assert_int_equal(p.carries, mtu);
		assert_true(mtu < 1500 || n == 1);
		/* as it was: full, the least, this and one more */
		n = round_run(&p, mtu, 0, &told);
		assert_false(told);
		assert_int_equal(p.carries, mtu);
		assert_true(n <= (mtu == 1499 ? 8 : 3 + 1 + 1 + 3));
	}
	for (mtu = 1280; mtu <= 9000; mtu += 13) {
		p = path("2001:db8::1", 9000);
		round_run(&p, mtu, 0, &told);
		assert_int_equal(p.carries, mtu);
	}
}

static void
a_path_changes(void **state)
{
	static const uint16_t mtu[] = { 1400, 1500, 1280, 1499, 1281, 1400,
	    1399, 1401, 1500 };
	struct path_mtu p = path("10.0.0.1", 1500);
	struct path_table t = { &p, 1 };
	size_t i;
	bool told;

	(void)state;
	for (i = 0; i < sizeof(mtu) / sizeof(mtu[0]); i++) {
		round_run(&p, mtu[i], 0, &told);
		assert_true(told);
		assert_int_equal(p.carries, mtu[i]);
		assert_int_equal(path_narrow(&t, &p.addr),
		    mtu[i] < 1500 ? mtu[i] : 0);
	}
}

/* Lost ones are asked again, so they are no news. */
static void
losses_are_borne(void **state)
{
	struct path_mtu p;
	uint16_t mtu;
	int loss;
	bool told;

	(void)state;
	for (loss = 2; loss < 9; loss++)
		for (mtu = 600; mtu <= 1500; mtu += 50) {
			p = path("10.0.0.1", 1500);
			round_run(&p, mtu, loss, &told);
			assert_int_equal(p.carries, mtu);
		}
}

/* Who answers no probe of any size says nothing about the path. */
static void
silence_teaches_nothing(void **state)
{
	struct path_mtu p = path("10.0.0.1", 1500), least;
	bool told;

	(void)state;
	assert_int_equal(round_run(&p, 0, 0, &told), 2 * PATH_TRIES);
	assert_false(told);
	assert_int_equal(p.carries, 0);
	round_run(&p, 1400, 0, &told);
	round_run(&p, 0, 0, &told);
	assert_false(told);
	assert_int_equal(p.carries, 1400);
	/* nothing below the link's to search in */
	least = path("2001:db8::1", 1280);
	assert_int_equal(round_run(&least, 0, 0, &told), PATH_TRIES);
	assert_int_equal(least.carries, 0);
}

/* It was gone for as long as the largest was asked for, and is back. */
static void
an_outage_is_no_small_path(void **state)
{
	struct path_mtu p = path("10.0.0.1", 1500);
	bool changed, told;
	int i;

	(void)state;
	round_run(&p, 1500, 0, &told);
	for (i = 0; i < PATH_TRIES; i++) {
		path_mtu_ask(&p);
		path_mtu_step(&p, false, &changed);
	}
	round_run(&p, 1500, 0, &told);
	assert_false(told);
	assert_int_equal(p.carries, 1500);
}

static void
the_link_changes(void **state)
{
	struct path_mtu p = path("10.0.0.1", 1500);
	struct path_table t = { &p, 1 };
	bool changed, told;
	struct addr other;

	(void)state;
	round_run(&p, 1500, 0, &told);
	path_mtu_limit(&p, 9000);
	assert_int_equal(p.carries, 0);
	round_run(&p, 4000, 0, &told);
	assert_int_equal(p.carries, 4000);
	/* in the middle of a round; what is known of less stays, and the answer
	 * that comes then is none to what is asked next */
	path_mtu_ask(&p);
	path_mtu_step(&p, false, &changed);
	path_mtu_ask(&p);
	path_mtu_limit(&p, 8000);
	assert_int_equal(path_mtu_step(&p, true, &changed), 0);
	assert_false(changed);
	assert_int_equal(path_mtu_ask(&p), 8000);
	assert_int_equal(path_narrow(&t, &p.addr), 4000);
	path_mtu_limit(&p, 4000);
	assert_int_equal(path_narrow(&t, &p.addr), 0);
	/* as an earlier xlbd left it, before anything is asked */
	p = (struct path_mtu){ .addr = p.addr, .carries = 1400 };
	assert_int_equal(path_narrow(&t, &p.addr), 1400);
	path_mtu_limit(&p, 1500);
	assert_int_equal(path_narrow(&t, &p.addr), 1400);
	path_mtu_limit(&p, 1400);
	assert_int_equal(p.carries, 0);
	assert_int_equal(addr_parse("10.0.0.2", &other), 0);
	assert_int_equal(path_narrow(&t, &other), 0);
}

/* As in the middle of a search the link says once more what it said. */
static void
the_same_limit_is_no_news(void **state)
{
	struct path_mtu p = path("10.0.0.1", 1500);
	bool changed;
	int i;

	(void)state;
	for (i = 0; i <= PATH_TRIES; i++) {
		path_mtu_ask(&p);
		path_mtu_step(&p, i == PATH_TRIES, &changed);
	}
	assert_in_range(path_mtu_ask(&p), 577, 1499);
	path_mtu_limit(&p, 1500);
	assert_in_range(path_mtu_ask(&p), 577, 1499);
	path_mtu_limit(&p, 1600);
	assert_int_equal(path_mtu_ask(&p), 1600);
}

static void
tunnels_add_their_headers(void **state)
{
	struct path_mtu four = path("10.0.0.1", 1500), six =
	    path("2001:db8::1", 1500);

	(void)state;
	assert_int_equal(path_overhead(FORWARD_IPIP, &four.addr), 20);
	assert_int_equal(path_overhead(FORWARD_GUE, &four.addr), 28);
	assert_int_equal(path_overhead(FORWARD_IPIP, &six.addr), 40);
	assert_int_equal(path_overhead(FORWARD_GUE, &six.addr), 48);
}

static mono_t
at_ms(int64_t ms)
{
	return (mono_t){ (1000 + ms) * 1000000 };
}

/* A router's word counts at once; probes have the last one. */
static void
a_router_is_believed_until_probes_know(void **state)
{
	struct path_mtu p = path("10.0.0.1", 1500);
	struct path_table t = { &p, 1 };
	bool changed, told;

	(void)state;
	assert_false(path_mtu_error(&p, 1500, at_ms(0)));
	assert_false(path_mtu_error(&p, 575, at_ms(0)));
	assert_false(path_mtu_error(&p, 0, at_ms(0)));
	assert_true(path_mtu_error(&p, 1400, at_ms(0)));
	assert_int_equal(path_narrow(&t, &p.addr), 1400);
	/* one after the other, and never up */
	assert_false(path_mtu_error(&p, 1300, at_ms(PATH_ERROR_MS - 1)));
	assert_false(path_mtu_error(&p, 1450, at_ms(PATH_ERROR_MS)));
	assert_true(path_mtu_error(&p, 1300, at_ms(PATH_ERROR_MS)));
	round_run(&p, 1300, 0, &told);
	assert_false(told);
	assert_false(path_mtu_expire(&p, at_ms(10 * PATH_LEARNED_MS)));
	/* one that lies, in the middle of a round */
	path_mtu_ask(&p);
	assert_false(path_mtu_error(&p, 600, at_ms(2 * PATH_ERROR_MS - 1)));
	assert_true(path_mtu_error(&p, 600, at_ms(2 * PATH_ERROR_MS)));
	assert_int_equal(path_mtu_step(&p, true, &changed), 0);
	assert_int_equal(path_narrow(&t, &p.addr), 600);
	round_run(&p, 1500, 0, &told);
	assert_true(told);
	assert_int_equal(path_narrow(&t, &p.addr), 0);
	/* what is only not confirmed any more hides none */
	p.learned = at_ms(3 * PATH_ERROR_MS);
	assert_true(path_mtu_error(&p, 1400, at_ms(3 * PATH_ERROR_MS)));
	/* of a link that is not known yet */
	p = (struct path_mtu){ .addr = p.addr };
	assert_false(path_mtu_error(&p, 1400, at_ms(0)));
}

/* Where no probe is answered it is tried again after ten minutes. */
static void
what_nobody_confirms_is_forgotten(void **state)
{
	struct path_mtu p = path("2001:db8::1", 1500);
	struct path_table t = { &p, 1 };
	bool told;

	(void)state;
	assert_false(path_mtu_error(&p, 1279, at_ms(0)));
	assert_true(path_mtu_error(&p, 1400, at_ms(0)));
	round_run(&p, 0, 0, &told);
	assert_int_equal(path_narrow(&t, &p.addr), 1400);
	assert_false(path_mtu_expire(&p, at_ms(PATH_LEARNED_MS - 1)));
	assert_true(path_mtu_expire(&p, at_ms(PATH_LEARNED_MS)));
	assert_false(path_mtu_expire(&p, at_ms(PATH_LEARNED_MS)));
	assert_int_equal(path_narrow(&t, &p.addr), 0);
	assert_true(path_mtu_error(&p, 1400, at_ms(PATH_LEARNED_MS)));
}

int
main(void)
{
	const struct CMUnitTest test[] = {
		cmocka_unit_test(every_size_is_found),
		cmocka_unit_test(a_path_changes),
		cmocka_unit_test(losses_are_borne),
		cmocka_unit_test(silence_teaches_nothing),
		cmocka_unit_test(an_outage_is_no_small_path),
		cmocka_unit_test(the_link_changes),
		cmocka_unit_test(the_same_limit_is_no_news),
		cmocka_unit_test(tunnels_add_their_headers),
		cmocka_unit_test(a_router_is_believed_until_probes_know),
		cmocka_unit_test(what_nobody_confirms_is_forgotten),
	};

	return cmocka_run_group_tests_name("path_mtu", test, NULL, NULL);
}
