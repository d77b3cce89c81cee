/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unit.h"

#include <arpa/inet.h>
#include <string.h>

#include "core/announce.h"
#include "core/arena.h"

#define SEC INT64_C(1000000000)
#define HOLD 5

/*
 * Three addresses: .1 has two required services (a, b), .2 a required one and
 * one that is not (a, c), .3 two that are not required (c, d). Services use the
 * pool of their letter.
 */
struct world {
	struct conf conf;
	struct conf_pool pool[4];
	struct conf_service service[4];
	struct conf_address address[4][2];
	struct state_pool ready[4];
	struct state state;
	struct announce_input in;
	struct arena *a;
};

static const char *const letter[] = { "a", "b", "c", "d" };

static struct addr
ip(unsigned last)
{
	return addr_from4(htonl(0xc0000200 + last));
}

static int
setup(void **state)
{
	static const unsigned on[4][2] = { { 1, 2 }, { 1, 0 }, { 3, 2 },
	    { 3, 0 } };
	struct world *w = test_calloc(1, sizeof(*w));
	size_t i, j;

	for (i = 0; i < 4; i++) {
		w->pool[i].name = w->service[i].name = letter[i];
		w->service[i].pool = &w->pool[i];
		w->service[i].required = i < 2;
		w->service[i].address = w->address[i];
		for (j = 0; j < 2 && on[i][j] != 0; j++)
			w->address[i][j].address = ip(on[i][j]);
		w->service[i].naddress = j;
		w->ready[i].conf = &w->pool[i];
		w->ready[i].ready = true;
	}
	w->conf.bgp.present = true;
	w->conf.bgp.hold_ms = HOLD * 1000;
	w->conf.service = w->service;
	w->conf.nservice = 4;
	w->conf.pool = w->pool;
	w->conf.npool = 4;
	w->state.pool = w->ready;
	w->state.npool = 4;
	w->in.conf = &w->conf;
	w->in.wanted = &w->state;
	w->in.datapath = true;
	w->a = arena_new();
	*state = w;
	return 0;
}

static int
teardown(void **state)
{
	struct world *w = *state;

	arena_free(w->a);
	test_free(w);
	return 0;
}

static mono_t
step(struct world *w, const struct announce *prev, int64_t sec,
    struct announce *next)
{
	return announce_step(prev, &w->in, (mono_t){ sec * SEC },
	    1000 * SEC + sec * SEC, w->a, next);
}

/* The last bytes of the addresses that are wanted, as a number: 1, 2, 3 ->
 * 123. */
static unsigned
wanted(const struct announce *an)
{
	unsigned n = 0;
	size_t i;

	for (i = 0; i < an->n; i++)
		if (an->row[i].wanted)
			n = n * 10 + an->row[i].addr.b[15];
	return n;
}

static void
readiness_of_an_address(void **state)
{
	static const struct {
		const char *what, *ready, *lacking[3];
		unsigned want;
	} row[] = {
		{ "all ready", "abcd", { NULL, NULL, NULL }, 123 },
		{ "one required of two lacks", "acd", { "b", NULL, NULL }, 23 },
		{ "a required lacks: both its addresses", "bcd",
		    { "a", "a", NULL }, 3 },
		{ "one that is not required lacks beside a required one",
		    "abd", { NULL, NULL, NULL }, 123 },
		{ "none of two that are not required", "ab",
		    { NULL, NULL, "c" }, 12 },
		{ "nothing", "", { "a", "a", "c" }, 0 },
	};
	struct world *w = *state;
	struct announce an;
	size_t i, j;

	w->conf.bgp.hold_ms = 0;
	for (i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		print_message("# %s\n", row[i].what);
		for (j = 0; j < 4; j++)
			w->ready[j].ready =
			    strchr(row[i].ready, *letter[j]) != NULL;
		assert_int_equal(step(w, NULL, 1, &an).ns, 0);
		assert_int_equal(an.n, 3);
		assert_int_equal(wanted(&an), row[i].want);
		for (j = 0; j < 3; j++) {
			if (row[i].lacking[j] == NULL) {
				assert_null(an.row[j].service);
				continue;
			}
			assert_string_equal(an.row[j].service,
			    row[i].lacking[j]);
			assert_int_equal(an.row[j].why, ANNOUNCE_NOT_READY);
			assert_int_equal(an.row[j].ready_since.ns, 0);
		}
	}
}

/* Not before enough backends have answered on it. */
static void
an_address_that_nobody_answers_on_waits(void **state)
{
	struct health_path path[2] = { { .vip = ip(1) },
	    { .vip = ip(2), .established = true } };
	struct world *w = *state;
	struct announce an;

	w->conf.bgp.hold_ms = 0;
	w->ready[0].paths = (struct health_paths){ path, 2 };
	step(w, NULL, 1, &an);
	assert_int_equal(wanted(&an), 23);
	assert_int_equal(an.row[0].why, ANNOUNCE_UNANSWERED);
	assert_string_equal(an.row[0].service, "a");
	path[0].established = true;
	step(w, NULL, 1, &an);
	assert_int_equal(wanted(&an), 123);
}

static void
reasons_in_their_order(void **state)
{
	struct world *w = *state;
	struct announce an;

	w->ready[0].ready = false;
	w->in.datapath = false;
	w->in.phase = PHASE_WITHDRAW;
	w->conf.bgp.present = false;
	step(w, NULL, 1, &an);
	assert_int_equal(an.row[0].why, ANNOUNCE_NO_BGP);
	w->conf.bgp.present = true;
	step(w, NULL, 1, &an);
	assert_int_equal(an.row[0].why, ANNOUNCE_STOPPING);
	w->in.phase = PHASE_SERVE;
	step(w, NULL, 1, &an);
	assert_int_equal(an.row[0].why, ANNOUNCE_NO_DATAPATH);
	w->in.datapath = true;
	step(w, NULL, 1, &an);
	assert_int_equal(an.row[0].why, ANNOUNCE_NOT_READY);
	assert_int_equal(an.row[2].why, ANNOUNCE_HOLD);
	assert_int_equal(wanted(&an), 0);
}

static void
hold_is_counted_from_readiness(void **state)
{
	struct world *w = *state;
	struct announce an[6];
	mono_t wake;

	w->ready[2].ready = w->ready[3].ready = false;
	wake = step(w, NULL, 10, &an[0]);
	assert_int_equal(wake.ns, (10 + HOLD) * SEC);
	assert_int_equal(wanted(&an[0]), 0);
	w->ready[3].ready = true;
	/* .3 is ready from 12 s on: the earlier end is the one to wake for */
	wake = step(w, &an[0], 12, &an[1]);
	assert_int_equal(wake.ns, (10 + HOLD) * SEC);
	assert_true(an[1].changed);
	wake = step(w, &an[1], 15, &an[2]);
	assert_int_equal(wanted(&an[2]), 12);
	assert_int_equal(wake.ns, (12 + HOLD) * SEC);
	/* unready for a moment: the hold begins anew */
	w->ready[3].ready = false;
	step(w, &an[2], 16, &an[3]);
	w->ready[3].ready = true;
	wake = step(w, &an[3], 17, &an[4]);
	assert_int_equal(wake.ns, (17 + HOLD) * SEC);
	wake = step(w, &an[4], 22, &an[5]);
	assert_int_equal(wake.ns, 0);
	assert_int_equal(wanted(&an[5]), 123);
	assert_int_equal(an[5].row[2].since, 1022 * SEC);
	assert_int_equal(an[5].row[0].since, 1015 * SEC);
}

static void
withdrawal_does_not_wait(void **state)
{
	struct world *w = *state;
	struct announce an[3];

	step(w, NULL, 10, &an[0]);
	step(w, &an[0], 20, &an[1]);
	assert_int_equal(wanted(&an[1]), 123);
	w->ready[1].ready = false;
	step(w, &an[1], 21, &an[2]);
	assert_int_equal(wanted(&an[2]), 23);
	assert_true(an[2].changed);
	assert_int_equal(an[2].row[0].since, 1021 * SEC);
}

static void
adopted_addresses_need_no_hold(void **state)
{
	struct world *w = *state;
	struct announce an[2], found;
	struct prefix p[3];

	assert_int_equal(prefix_parse("192.0.2.2/32", &p[0]), 0);
	assert_int_equal(prefix_parse("192.0.2.3/32", &p[1]), 0);
	assert_int_equal(prefix_parse("192.0.2.9/32", &p[2]), 0);
	announce_adopted(&w->conf, p, 3, 5 * SEC, w->a, &found);
	w->ready[2].ready = w->ready[3].ready = false;
	step(w, &found, 10, &an[0]);
	/* .1 is new, .3 was there but is not ready */
	assert_int_equal(wanted(&an[0]), 2);
	assert_int_equal(an[0].row[0].why, ANNOUNCE_HOLD);
	assert_int_equal(an[0].row[2].why, ANNOUNCE_NOT_READY);
	/* later steps do not adopt again */
	w->ready[3].ready = true;
	step(w, &an[0], 11, &an[1]);
	assert_int_equal(wanted(&an[1]), 2);
	assert_int_equal(an[1].row[2].why, ANNOUNCE_HOLD);
}

static void
drain_adds_nothing_and_says_so(void **state)
{
	struct world *w = *state;
	struct announce an[5];

	w->ready[2].ready = w->ready[3].ready = false;
	step(w, NULL, 10, &an[0]);
	step(w, &an[0], 15, &an[1]);
	assert_int_equal(wanted(&an[1]), 12);
	assert_false(an[1].row[0].gshut);
	w->in.phase = PHASE_GSHUT;
	w->ready[3].ready = true;
	step(w, &an[1], 30, &an[2]);
	assert_int_equal(wanted(&an[2]), 12);
	assert_true(an[2].row[0].gshut && an[2].row[1].gshut);
	assert_true(an[2].changed);
	assert_int_equal(an[2].row[0].since, 1015 * SEC);
	assert_int_equal(an[2].row[2].why, ANNOUNCE_STOPPING);
	w->in.phase = PHASE_WITHDRAW;
	step(w, &an[2], 60, &an[3]);
	assert_int_equal(wanted(&an[3]), 0);
	assert_false(an[3].row[0].gshut);
	/* back: all were healthy long enough, no hold */
	w->in.phase = PHASE_SERVE;
	assert_int_equal(step(w, &an[3], 61, &an[4]).ns, 0);
	assert_int_equal(wanted(&an[4]), 123);
	assert_false(an[4].row[0].gshut);
}

static void
nothing_new_is_no_change(void **state)
{
	struct world *w = *state;
	struct announce an[4];

	step(w, NULL, 10, &an[0]);
	assert_true(an[0].changed);
	step(w, &an[0], 11, &an[1]);
	assert_false(an[1].changed);
	/* a row that goes is one */
	w->conf.nservice = 2;
	step(w, &an[1], 12, &an[2]);
	assert_int_equal(an[2].n, 2);
	assert_true(an[2].changed);
	/* the data path's loss withdraws all, its return needs no hold */
	step(w, &an[2], 20, &an[3]);
	w->in.datapath = false;
	step(w, &an[3], 21, &an[0]);
	assert_int_equal(wanted(&an[0]), 0);
	w->in.datapath = true;
	step(w, &an[0], 22, &an[1]);
	assert_int_equal(wanted(&an[1]), 12);
}

static void
an_unknown_pool_is_not_ready(void **state)
{
	struct world *w = *state;
	struct announce an;

	w->conf.bgp.hold_ms = 0;
	w->state.npool = 1;	/* only a */
	step(w, NULL, 1, &an);
	assert_int_equal(wanted(&an), 2);
	w->state.npool = 0;
	w->state.pool = NULL;
	step(w, NULL, 1, &an);
	assert_int_equal(wanted(&an), 0);
	/* and a node without services has nothing to say */
	w->conf.nservice = 0;
	step(w, NULL, 1, &an);
	assert_int_equal(an.n, 0);
	assert_false(an.changed);
}

static void
kept_is_what_both_announce(void **state)
{
	struct world *w = *state;
	struct announce before, after, keep;

	w->conf.bgp.hold_ms = 0;
	w->ready[1].ready = false;
	step(w, NULL, 1, &before);
	assert_int_equal(wanted(&before), 23);
	w->ready[1].ready = true;
	w->ready[2].ready = w->ready[3].ready = false;
	step(w, &before, 2, &after);
	assert_int_equal(wanted(&after), 12);
	announce_keep(&before, &after, w->a, &keep);
	assert_int_equal(wanted(&keep), 2);
	assert_int_equal(keep.n, 3);
	assert_int_equal(wanted(&after), 12);
	announce_keep(NULL, &after, w->a, &keep);
	assert_int_equal(wanted(&keep), 0);
}

static void
fingerprints_of_the_rings_behind_an_address(void **state)
{
	static const uint64_t first[4] = { 9, 5, 5, 5 };
	static const uint64_t second[4] = { 1, 2, 3, 4 };
	struct world *w = *state;
	struct announce before, after, keep;

	w->conf.bgp.hold_ms = 0;
	step(w, NULL, 1, &before);
	assert_int_equal(before.row[0].nfingerprint, 0);
	w->in.fingerprint = first;
	step(w, NULL, 1, &before);
	/* sorted, and each once: .1 is of a and b, .3 of c and d */
	assert_int_equal(before.row[0].nfingerprint, 2);
	assert_int_equal(before.row[0].fingerprint[0], 5);
	assert_int_equal(before.row[0].fingerprint[1], 9);
	assert_int_equal(before.row[2].nfingerprint, 1);
	assert_int_equal(before.row[2].fingerprint[0], 5);
	/* what stays while maps change has the rings as they were */
	w->in.fingerprint = second;
	step(w, &before, 2, &after);
	assert_int_equal(after.row[0].fingerprint[0], 1);
	announce_keep(&before, &after, w->a, &keep);
	assert_int_equal(keep.row[0].fingerprint[0], 5);
	/* but those that nobody knew are the new ones: at a start */
	before.row[0].nfingerprint = 0;
	announce_keep(&before, &after, w->a, &keep);
	assert_int_equal(keep.row[0].fingerprint[0], 1);
}

static void
prefixes_lead_back_to_addresses(void **state)
{
	struct world *w = *state;
	struct prefix p[3];
	struct announce out;

	assert_int_equal(prefix_parse("192.0.2.0/24", &p[0]), 0);
	assert_int_equal(prefix_parse("192.0.2.2/32", &p[1]), 0);
	assert_int_equal(prefix_parse("198.51.100.1/32", &p[2]), 0);
	announce_adopted(&w->conf, p, 3, 7, w->a, &out);
	assert_int_equal(out.n, 1);	/* once, though two services name it */
	assert_memory_equal(&out.row[0].addr, &p[1].addr, 16);
	assert_true(out.row[0].wanted);
	assert_int_equal(out.row[0].since, 7);
	w->address[2][0].has_announce = true;
	w->address[2][0].announce = p[0];
	announce_adopted(&w->conf, p, 3, 7, w->a, &out);
	assert_int_equal(out.n, 2);
	assert_int_equal(out.row[1].addr.b[15], 3);
	announce_adopted(&w->conf, NULL, 0, 7, w->a, &out);
	assert_int_equal(out.n, 0);
}

static void
every_reason_has_a_text(void **state)
{
	int w;

	(void)state;
	for (w = ANNOUNCE_OK; w <= ANNOUNCE_HOLD; w++)
		assert_non_null(announce_why_text((enum announce_why)w));
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest test[] = {
		T(readiness_of_an_address),
		T(an_address_that_nobody_answers_on_waits),
		T(reasons_in_their_order),
		T(hold_is_counted_from_readiness),
		T(withdrawal_does_not_wait),
		T(adopted_addresses_need_no_hold),
		T(drain_adds_nothing_and_says_so),
		T(nothing_new_is_no_change),
		T(an_unknown_pool_is_not_ready),
		T(kept_is_what_both_announce),
		T(fingerprints_of_the_rings_behind_an_address),
		T(prefixes_lead_back_to_addresses),
		T(every_reason_has_a_text),
	};

	return cmocka_run_group_tests_name("announce", test, NULL, NULL);
}
