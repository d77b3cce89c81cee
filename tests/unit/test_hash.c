/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unit.h"

#include <string.h>

#include "hash.h"

#define RING 65537

static const uint8_t key[16] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13,
    14, 15 };

/* The message 00 01 02 ... of the lengths that we hash. The reference
 * implementation with c = 1, d = 3 and this key says: */
static const struct {
	size_t len;
	uint8_t want[8];
} vector[] = {
	{ 4, { 0x28, 0x83, 0xd3, 0x88, 0x60, 0x57, 0x75, 0xcf } },
	{ 13, { 0xa7, 0xff, 0x29, 0x12, 0x0c, 0x76, 0x6f, 0x30 } },
	{ 16, { 0x66, 0x8b, 0x90, 0x7d, 0x1a, 0xdd, 0x4f, 0xcc } },
	{ 37, { 0x57, 0x30, 0xc3, 0xa3, 0x2d, 0x1c, 0x10, 0xb6 } },
};

static uint64_t
hash_message(const uint8_t *m, size_t len)
{
	__be32 word[10] = { 0 };

	memcpy(word, m, len < sizeof(word) ? len : sizeof(word));
	switch (len) {
	case 4:
		return hash_source4(key, word[0]);
	case 13:
		return hash_flow4(key, word[0], word[1], word[2], m[12]);
	case 16:
		return hash_source6(key, word);
	default:
		return hash_flow6(key, word, word + 4, word[8], m[36]);
	}
}

static void
vectors(void **state)
{
	uint8_t message[64];
	uint64_t want;
	size_t i, n;

	(void)state;
	for (i = 0; i < sizeof(message); i++)
		message[i] = (uint8_t)i;
	for (n = 0; n < sizeof(vector) / sizeof(vector[0]); n++) {
		for (want = 0, i = 0; i < 8; i++)
			want |= (uint64_t)vector[n].want[i] << 8 * i;
		assert_true(hash_message(message, vector[n].len) == want);
	}
}

/* Chi-square of `count` over its mean, as standard deviations from what is
 * expected. */
static double
chi_square_sigma(const uint32_t *count, size_t n, double mean)
{
	double sum = 0, d, sigma = 1;
	size_t i;

	for (i = 0; i < n; i++) {
		d = count[i] - mean;
		sum += d * d / mean;
	}
	/* the deviation is sqrt(2 (n - 1)), by Newton: no libm */
	for (i = 0; i < 60; i++)
		sigma = (sigma + 2.0 * (double)(n - 1) / sigma) / 2;
	return (sum - (double)(n - 1)) / sigma;
}

/* Few clients that open port after port, as behind a NAT; then a subnet with
 * one port each: tuples that differ in few bits. */
static void
slots_are_even(void **state)
{
	static uint32_t count[RING], low[RING];
	uint32_t client, port, n = 0;
	uint64_t h;
	double sigma;

	(void)state;
	for (client = 0; client < 16; client++)
		for (port = 1024; port < 61024; port++, n++) {
			h = hash_flow4(key, be32(0xc0000200 + client),
			    be32(0xcb00710a), be32(port << 16 | 443), 6);
			count[hash_slot(hash_select(h), RING)]++;
			low[(uint32_t)h % RING]++;
		}
	sigma = chi_square_sigma(count, RING, (double)n / RING);
	assert_true(sigma > -4 && sigma < 4);
	sigma = chi_square_sigma(low, RING, (double)n / RING);
	assert_true(sigma > -4 && sigma < 4);

	memset(count, 0, sizeof(count));
	for (client = 0, n = 0; client < 1000000; client++, n++) {
		h = hash_source4(key, be32(0x0a000000 + client));
		count[hash_slot(hash_select(h), RING)]++;
	}
	sigma = chi_square_sigma(count, RING, (double)n / RING);
	assert_true(sigma > -4 && sigma < 4);
}

/* Each input bit flips each output bit in half of the cases. */
static void
one_bit_changes_half(void **state)
{
	static uint32_t flips[37 * 8][64];
	uint8_t m[64];
	uint64_t a, b, x = 88172645463325252ULL;
	size_t trial, bit, o, i;

	(void)state;
	for (trial = 0; trial < 1000; trial++) {
		for (i = 0; i < sizeof(m); i++) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			m[i] = (uint8_t)x;
		}
		a = hash_message(m, 37);
		for (bit = 0; bit < 37 * 8; bit++) {
			m[bit / 8] ^= (uint8_t)(1 << bit % 8);
			b = a ^ hash_message(m, 37);
			m[bit / 8] ^= (uint8_t)(1 << bit % 8);
			for (o = 0; o < 64; o++)
				flips[bit][o] += b >> o & 1;
		}
	}
	/* 500 in the mean, deviation 15.8; 19000 cells */
	for (bit = 0; bit < 37 * 8; bit++)
		for (o = 0; o < 64; o++)
			assert_in_range(flips[bit][o], 400, 600);
}

static void
slots_cover_the_ring(void **state)
{
	(void)state;
	assert_int_equal(hash_slot(0, RING), 0);
	assert_int_equal(hash_slot(0xffffffff, RING), RING - 1);
	assert_int_equal(hash_slot(0xffffffff, 251), 250);
	assert_int_equal(hash_slot(0xffffffff, 1048573), 1048572);
	assert_int_equal(hash_select(0x123456789abcdef0ULL), 0x12345678);
}

int
main(void)
{
	const struct CMUnitTest test[] = {
		cmocka_unit_test(vectors),
		cmocka_unit_test(slots_are_even),
		cmocka_unit_test(one_bit_changes_half),
		cmocka_unit_test(slots_cover_the_ring),
	};

	return cmocka_run_group_tests_name("hash", test, NULL, NULL);
}
