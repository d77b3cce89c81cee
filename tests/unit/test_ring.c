/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The cache of primary owners: what is built anew, what is kept, and that it has
 * an end. maglev_build() is another one here (--wrap), which counts. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/maglev.h"
#include "core/state.h"

#define SIZE 1048573
#define BYTES (2 * SIZE)		/* of one ring in the cache, about */
#define RINGS (RING_CACHE_MAX / BYTES)	/* that fit */

void __wrap_maglev_build(const struct maglev_member *member, size_t n,
    uint64_t seed, uint32_t size, uint16_t *primary);

static unsigned built;
static const bool eligible[1] = { true };
static const uint16_t number_of[1] = { 1 };

void
__wrap_maglev_build(const struct maglev_member *member, size_t n,
    uint64_t seed, uint32_t size, uint16_t *primary)
{
	(void)member, (void)n, (void)seed;
	memset(primary, 0, size * sizeof(*primary));
	built++;
}

/* Rings of one member each, told apart by its weight. */
static struct state_ring *
rings_make(struct arena *a, size_t n)
{
	struct state_ring *r = arena_calloc(a, n, sizeof(*r));
	struct maglev_member *m = arena_calloc(a, n, sizeof(*m));
	size_t i;

	for (i = 0; i < n; i++) {
		m[i].weight = (uint32_t)i + 1;
		r[i] = (struct state_ring){ .pool = arena_printf(a, "p%zu", i),
		    .number = (uint32_t)i, .member = &m[i], .nmember = 1,
		    .number_of = number_of, .eligible = eligible };
	}
	return r;
}

/* True: it was not in the cache. */
static bool
asked(struct ring_cache *rc, const struct state *s, size_t i)
{
	unsigned before = built;

	state_ring_fingerprint(rc, s, &s->ring[i]);
	return built > before;
}

static void
the_oldest_goes_where_there_is_no_room(void **state)
{
	struct ring_cache *rc = ring_cache_new();
	struct arena *a = arena_new();
	struct state s = { .ring_size = SIZE, .nring = RINGS + 1 };
	size_t i;

	(void)state;
	s.ring = rings_make(a, s.nring);
	for (i = 0; i < RINGS - 1; i++)
		assert_true(asked(rc, &s, i));
	for (i = 0; i < RINGS - 1; i++)
		assert_false(asked(rc, &s, i));
	/* the first was just used, so the second is the oldest */
	assert_false(asked(rc, &s, 0));
	assert_true(asked(rc, &s, RINGS - 1));
	assert_true(asked(rc, &s, RINGS));
	assert_false(asked(rc, &s, 0));
	assert_false(asked(rc, &s, RINGS));
	assert_false(asked(rc, &s, 3));
	assert_true(asked(rc, &s, 1));
	ring_cache_free(rc);
	ring_cache_free(NULL);
	arena_free(a);
}

static void
what_is_not_wanted_goes(void **state)
{
	struct ring_cache *rc = ring_cache_new();
	struct arena *a = arena_new();
	struct state s = { .ring_size = 251, .nring = 3 }, less;

	(void)state;
	s.ring = rings_make(a, 3);
	assert_true(asked(rc, &s, 0) && asked(rc, &s, 1) && asked(rc, &s, 2));
	less = s;
	less.ring++;
	less.nring = 1;
	ring_cache_trim(rc, &less);
	assert_false(asked(rc, &s, 1));
	assert_true(asked(rc, &s, 0) && asked(rc, &s, 2));
	/* others of the same members are other rings */
	s.seed = 1;
	assert_true(asked(rc, &s, 0));
	s.ring_size = 257;
	assert_true(asked(rc, &s, 0));
	assert_false(asked(rc, &s, 0));
	ring_cache_free(rc);
	arena_free(a);
}

static void
rings_are_found_by_their_pool(void **state)
{
	struct arena *a = arena_new();
	struct state s = { .nring = 3 };

	(void)state;
	s.ring = rings_make(a, 3);
	assert_ptr_equal(state_ring_find(&s, "p2"), &s.ring[2]);
	assert_null(state_ring_find(&s, "p3"));
	arena_free(a);
}

int
main(void)
{
	const struct CMUnitTest test[] = {
		cmocka_unit_test(the_oldest_goes_where_there_is_no_room),
		cmocka_unit_test(what_is_not_wanted_goes),
		cmocka_unit_test(rings_are_found_by_their_pool),
	};

	return cmocka_run_group_tests_name("ring", test, NULL, NULL);
}
