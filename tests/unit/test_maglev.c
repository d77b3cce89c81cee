/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/hash.h"
#include "core/maglev.h"

#define SIZE 65537

static struct maglev_member member[16384];
static uint16_t ring[SIZE], owner[SIZE], other[SIZE];
static bool up[16384];
static uint64_t dice = 1;

/* The same sequence in every run. */
static uint32_t
roll(uint32_t n)
{
	return hash_below(hash_mix(dice += HASH_GOLDEN), n);
}

static int
member_cmp(const void *va, const void *vb)
{
	const struct maglev_member *a = va, *b = vb;

	return addr_cmp(&a->addr, &b->addr);
}

/* n members with addresses that differ in random places, sorted. */
static void
members_random(size_t n, uint32_t heaviest)
{
	size_t i, k;

	memset(member, 0, sizeof(member));
	for (i = 0; i < n; i++) {
		member[i].addr = addr_from4(0);
		for (k = 12; k < 16; k++)
			member[i].addr.b[k] = (uint8_t)roll(256);
		member[i].addr.b[0] = (uint8_t)(i & 1);
		member[i].addr.b[1] = (uint8_t)(i >> 8);
		member[i].addr.b[2] = (uint8_t)i;
		member[i].weight = 1 + roll(heaviest);
	}
	qsort(member, n, sizeof(member[0]), member_cmp);
}

/* n equal members from 10.0.0.1 on. */
static void
members_equal(size_t n)
{
	size_t i;

	memset(member, 0, sizeof(member));
	for (i = 0; i < n; i++) {
		member[i].addr = addr_from4(0);
		member[i].addr.b[12] = 10;
		member[i].addr.b[14] = (uint8_t)((i + 1) >> 8);
		member[i].addr.b[15] = (uint8_t)(i + 1);
		member[i].weight = 100;
	}
}

static void
count(const uint16_t *r, uint32_t size, size_t n, uint32_t *slots)
{
	uint32_t i;

	memset(slots, 0, n * sizeof(*slots));
	for (i = 0; i < size; i++) {
		assert_true(r[i] < n);
		slots[r[i]]++;
	}
}

static uint64_t
weight_sum(size_t n)
{
	uint64_t sum = 0;
	size_t i;

	for (i = 0; i < n; i++)
		sum += member[i].weight;
	return sum;
}

static void
shares_follow_weight_to_within_one_slot(void **state)
{
	static const struct {
		size_t n;
		uint32_t heaviest, size;
	} row[] = { { 1, 1, 251 }, { 2, 1000, 2003 }, { 3, 7, 251 },
	    { 10, 1000, 65537 }, { 65, 1000, 65537 }, { 100, 100, 65537 },
	    { 251, 1, 251 }, { 1000, 1, 65537 }, { 1000, 65, 65537 },
	    { 16383, 4, 65537 } };
	static uint32_t slots[16384];
	uint64_t sum, exact;
	size_t i, k;

	(void)state;
	for (i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		members_random(row[i].n, row[i].heaviest);
		maglev_build(member, row[i].n, i, row[i].size, ring);
		count(ring, row[i].size, row[i].n, slots);
		sum = weight_sum(row[i].n);
		for (k = 0; k < row[i].n; k++) {
			exact = (uint64_t)member[k].weight * row[i].size;
			assert_true(slots[k] >= exact / sum);
			assert_true(slots[k] <= (exact + sum - 1) / sum);
			assert_true(slots[k] > 0);
		}
	}
}

static void
the_seed_makes_another_ring(void **state)
{
	uint32_t i, same = 0;

	(void)state;
	members_equal(100);
	maglev_build(member, 100, 1, SIZE, ring);
	maglev_build(member, 100, 2, SIZE, other);
	for (i = 0; i < SIZE; i++)
		same += ring[i] == other[i];
	assert_in_range(same, 1, SIZE / 50);
	assert_true(maglev_fingerprint(member, 100, SIZE, ring) !=
	    maglev_fingerprint(member, 100, SIZE, other));
}

/* Share of slots that changed between two members that both rings have. */
static double
collateral(size_t n, size_t gone)
{
	uint32_t i, moved = 0;

	for (i = 0; i < SIZE; i++) {
		assert_true(ring[i] < n);
		if (ring[i] == gone)
			continue;
		moved += ring[i] - (ring[i] > gone) != other[i];
	}
	return (double)moved / SIZE;
}

static void
a_member_that_goes_moves_few_other_slots(void **state)
{
	static const size_t n[] = { 3, 10, 100, 1000 };
	static struct maglev_member less[1000];
	size_t i, gone;

	(void)state;
	for (i = 0; i < sizeof(n) / sizeof(n[0]); i++) {
		members_random(n[i], 2);
		gone = roll((uint32_t)n[i]);
		memcpy(less, member, gone * sizeof(less[0]));
		memcpy(less + gone, member + gone + 1,
		    (n[i] - gone - 1) * sizeof(less[0]));
		maglev_build(member, n[i], 0, SIZE, ring);
		maglev_build(less, n[i] - 1, 0, SIZE, other);
		assert_true(collateral(n[i], gone) < 0.012);
	}
}

static void
only_slots_of_the_ineligible_move(void **state)
{
	static const uint32_t percent[] = { 1, 10, 30, 50, 90, 97, 99, 100 };
	size_t n, round, i;

	(void)state;
	for (round = 0; round < 40; round++) {
		n = 1 + roll(round % 2 ? 12 : 300);
		members_random(n, 100);
		maglev_build(member, n, round, 4093, ring);
		for (i = 0; i < n; i++)
			up[i] = roll(100) >= percent[round % 8];
		maglev_eligible(member, n, round, 4093, ring, up, owner);
		for (i = 0; i < 4093; i++) {
			if (up[ring[i]])
				assert_int_equal(owner[i], ring[i]);
			else
				assert_true(owner[i] == MAGLEV_NONE ||
				    (owner[i] < n && up[owner[i]]));
		}
		for (i = 0; i < n && !up[i]; i++)
			;
		assert_int_equal(owner[0] == MAGLEV_NONE, i == n);
	}
}

/* From any eligible set: one more failure moves exactly the slots that the
 * failed one held, and its recovery gives exactly those back. */
static void
one_failure_moves_its_slots_and_gives_them_back(void **state)
{
	size_t n, round, i, k, down;

	(void)state;
	for (round = 0; round < 60; round++) {
		n = 2 + roll(round % 2 ? 10 : 200);
		members_random(n, 1000 / (uint32_t)n + 1);
		maglev_build(member, n, 0, 4093, ring);
		for (i = 0; i < n; i++)
			up[i] = roll(100) < (round % 3 ? 60 : 4);
		down = roll((uint32_t)n);
		up[down] = true;
		maglev_eligible(member, n, 0, 4093, ring, up, owner);
		up[down] = false;
		maglev_eligible(member, n, 0, 4093, ring, up, other);
		for (i = k = 0; i < 4093; i++) {
			if (owner[i] != down)
				assert_int_equal(other[i], owner[i]);
			k += owner[i] == down;
			assert_true(other[i] != down);
		}
		assert_true(k > 0);
	}
}

/* design.md, 4.1: 1 of 100 down: the largest share is 1.009 of the mean, 10 of
 * 100 down 1.038; with a tenth of a tolerance. */
static void
the_slots_of_the_failed_are_spread(void **state)
{
	static const struct {
		uint32_t down;
		double most;
	} row[] = { { 1, 1.03 }, { 10, 1.08 }, { 30, 1.15 } };
	static uint32_t slots[100];
	uint32_t i, k, most;

	(void)state;
	members_equal(100);
	maglev_build(member, 100, 0, SIZE, ring);
	for (i = 0; i < 3; i++) {
		for (k = 0; k < 100; k++)
			up[k] = k % 100 >= row[i].down;
		maglev_eligible(member, 100, 0, SIZE, ring, up, owner);
		count(owner, SIZE, 100, slots);
		for (k = most = 0; k < 100; k++)
			if (slots[k] > most)
				most = slots[k];
		assert_true((double)most * (100 - row[i].down) / SIZE <
		    row[i].most);
	}
}

/* What the failed one held goes to the others in proportion to their weights,
 * by the walk (member 0 is half of all) and by rendezvous alone (it is nearly
 * all, so the walk seldom ends). */
static void
spread_follows_weight(void **state)
{
	static const uint32_t heavy[] = { 100, 1000 };
	static uint32_t slots[5], before[5];
	double off, want;
	size_t i, k;

	(void)state;
	for (i = 0; i < 2; i++) {
		members_equal(5);
		for (k = 1; k < 5; k++)
			member[k].weight = i == 0 ? 10 * k : k;
		member[0].weight = heavy[i];
		maglev_build(member, 5, 0, SIZE, ring);
		count(ring, SIZE, 5, before);
		for (k = 0; k < 5; k++)
			up[k] = k != 0;
		maglev_eligible(member, 5, 0, SIZE, ring, up, owner);
		count(owner, SIZE, 5, slots);
		assert_int_equal(slots[0], 0);
		for (k = 1; k < 5; k++) {
			off = (double)(slots[k] - before[k]) / before[0];
			want = (double)k / 10;
			off -= want;
			/* four standard deviations */
			assert_true(off * off <
			    16 * want * (1 - want) / before[0]);
		}
	}
}

static void
the_fingerprint_is_of_addresses(void **state)
{
	uint64_t f;

	(void)state;
	members_equal(3);
	maglev_build(member, 3, 0, 251, ring);
	f = maglev_fingerprint(member, 3, 251, ring);
	/* another weight may leave the ring as it is; the owners count */
	member[1].weight = 101;
	assert_true(f == maglev_fingerprint(member, 3, 251, ring));
	ring[100] = (uint16_t)((ring[100] + 1) % 3);
	assert_true(f != maglev_fingerprint(member, 3, 251, ring));
	ring[100] = (uint16_t)((ring[100] + 2) % 3);
	member[1].addr.b[15] ^= 0x40;
	assert_true(f != maglev_fingerprint(member, 3, 251, ring));
}

/* "ADDR*WEIGHT" words up to the end of the line. */
static size_t
golden_members(char *text)
{
	char *word, *save = NULL, *star;
	size_t n = 0;

	for (word = strtok_r(text, " \n", &save); word != NULL;
	    word = strtok_r(NULL, " \n", &save)) {
		if (strcmp(word, "-") == 0)
			continue;
		star = strchr(word, '*');
		assert_non_null(star);
		*star = '\0';
		assert_int_equal(addr_parse(word, &member[n].addr), 0);
		member[n++].weight = (uint32_t)atoi(star + 1);
	}
	qsort(member, n, sizeof(member[0]), member_cmp);
	return n;
}

static void
golden_ring(const char *words, const uint16_t *r, uint32_t size)
{
	uint32_t i;
	int used;
	char word[8];

	for (i = 0; i < size; i++) {
		assert_int_equal(sscanf(words, "%7s%n", word, &used), 1);
		words += used;
		if (strcmp(word, "-") == 0)
			assert_int_equal(r[i], MAGLEV_NONE);
		else
			assert_int_equal(r[i], atoi(word));
	}
	assert_string_equal(words, "\n");
}

/* rings.txt is the work of another program, from the description: what it says
 * must not change within a major version. */
static void
golden_rings(void **state)
{
	char path[4096], line[16384], down[1024], *text, *save = NULL, *word;
	unsigned long long seed, primary, eligible;
	uint32_t size = 0;
	size_t i, n, rings = 0, whole = 0;
	int used;
	FILE *f;

	(void)state;
	snprintf(path, sizeof(path), "%s/tests/golden/rings.txt",
	    getenv("top_srcdir") ? getenv("top_srcdir") : ".");
	f = fopen(path, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f) != NULL) {
		if (strncmp(line, "primary ", 8) == 0) {
			golden_ring(line + 7, ring, size);
			whole++;
		}
		if (strncmp(line, "owner ", 6) == 0)
			golden_ring(line + 5, owner, size);
		if (sscanf(line, "ring %u %llu %llx %llx down %1023s members %n",
		    &size, &seed, &primary, &eligible, down, &used) != 5)
			continue;
		n = golden_members(line + used);
		maglev_build(member, n, seed, size, ring);
		for (i = 0; i < n; i++)
			up[i] = true;
		text = down[0] == '-' ? down + 1 : down;
		for (word = strtok_r(text, ",", &save); word != NULL;
		    word = strtok_r(NULL, ",", &save))
			up[atoi(word)] = false;
		maglev_eligible(member, n, seed, size, ring, up, owner);
		assert_true(primary ==
		    maglev_fingerprint(member, n, size, ring));
		assert_true(eligible ==
		    maglev_fingerprint(member, n, size, owner));
		rings++;
	}
	fclose(f);
	assert_int_equal(rings, 10);
	assert_int_equal(whole, 6);
}

int
main(void)
{
	const struct CMUnitTest test[] = {
		cmocka_unit_test(shares_follow_weight_to_within_one_slot),
		cmocka_unit_test(the_seed_makes_another_ring),
		cmocka_unit_test(a_member_that_goes_moves_few_other_slots),
		cmocka_unit_test(only_slots_of_the_ineligible_move),
		cmocka_unit_test(
		    one_failure_moves_its_slots_and_gives_them_back),
		cmocka_unit_test(the_slots_of_the_failed_are_spread),
		cmocka_unit_test(spread_follows_weight),
		cmocka_unit_test(the_fingerprint_is_of_addresses),
		cmocka_unit_test(golden_rings),
	};

	return cmocka_run_group_tests_name("maglev", test, NULL, NULL);
}
