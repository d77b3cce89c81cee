/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unit.h"

#include <string.h>

#include "core/hash_key.h"
#include "hash.h"

#define RING 65537

static const uint8_t secret[16] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12,
    13, 14, 15 };
static struct xlb_hash key;

static int
key_make(void **state)
{
	(void)state;
	hash_expand(secret, &key);
	return 0;
}

/* The message 00 01 02 ...; the paper's appendix has that of 15 bytes, the
 * reference implementation the others. */
static void
siphash_vectors(void **state)
{
	uint8_t message[15];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(message); i++)
		message[i] = (uint8_t)i;
	assert_true(siphash(secret, message, 15) == 0xa129ca6149be45e5ULL);
	assert_true(siphash(secret, message, 0) == 0x726fdb47dd0e0e31ULL);
	assert_true(siphash(secret, message, 8) == 0x93f5f5799a932462ULL);
}

/* What every node must agree on, by an implementation of its own. */
static void
flows_of_all_versions_agree(void **state)
{
	const __be32 src[4] = { be32(0x20010db8), 0, 0, be32(1) };
	const __be32 dst[4] = { be32(0x20010db8), be32(0x50000), 0, be32(16) };

	(void)state;
	assert_true(hash_flow4(&key, be32(0xc0000207), be32(0xcb00710a),
	    be32(40000U << 16 | 443), 6) == 0x723e581b3204b3d9ULL);
	assert_true(hash_flow6(&key, src, dst, be32(40000U << 16 | 443), 6) ==
	    0x0a5afca13949d896ULL);
	assert_true(hash_source4(&key, be32(0xc0000207)) == 0x7a0e659d47316a5fULL);
	assert_true(hash_source6(&key, src) == 0xb4c180c77dc2af09ULL);
}

static uint64_t
hash_message(const uint8_t *m, size_t len)
{
	__be32 word[10] = { 0 };

	memcpy(word, m, len);
	if (len == 13)
		return hash_flow4(&key, word[0], word[1], word[2], m[12]);
	return hash_flow6(&key, word, word + 4, word[8], m[36]);
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
			h = hash_flow4(&key, be32(0xc0000200 + client),
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
		h = hash_source4(&key, be32(0x0a000000 + client));
		count[hash_slot(hash_select(h), RING)]++;
	}
	sigma = chi_square_sigma(count, RING, (double)n / RING);
	assert_true(sigma > -4 && sigma < 4);
}

/* What a real site sees: each client's ports, each port's clients, addresses
 * one after the other, IPv6 whose halves are equal. */
static void
real_tuples_are_even(void **state)
{
	static uint32_t count[4][RING];
	__be32 src[4], dst[4] = { be32(0x20010db8), 0, 0, be32(10) };
	uint32_t i, n = 1000000, k;
	double sigma;

	(void)state;
	memset(count, 0, sizeof(count));
	for (i = 0; i < n; i++) {
		count[0][hash_slot(hash_select(hash_flow4(&key,
		    be32(0xc6336401), be32(0xcb00710a + i / 60000),
		    be32((1024 + i % 60000) << 16 | 443), 6)), RING)]++;
		count[1][hash_slot(hash_select(hash_flow4(&key,
		    be32(0x0a000000 + i), be32(0xcb00710a),
		    be32(40000U << 16 | 443), 17)), RING)]++;
		src[0] = src[2] = be32(0x20010db8 + i / 65536);
		src[1] = src[3] = be32(i);
		count[2][hash_slot(hash_select(hash_flow6(&key, src, dst,
		    be32(40000U << 16 | 443), 6)), RING)]++;
		count[3][hash_slot(hash_select(hash_source6(&key, src)),
		    RING)]++;
	}
	for (k = 0; k < 4; k++) {
		sigma = chi_square_sigma(count[k], RING, (double)n / RING);
		print_message("# %+.2f sigma\n", sigma);
		assert_true(sigma > -4 && sigma < 4);
	}
}

/* Each input bit flips each output bit in half of the cases. */
static void
avalanche(size_t len)
{
	static uint32_t flips[37 * 8][64];
	uint8_t m[64];
	uint64_t a, b, x = 88172645463325252ULL;
	size_t trial, bit, o, i;

	memset(flips, 0, sizeof(flips));
	for (trial = 0; trial < 1000; trial++) {
		for (i = 0; i < sizeof(m); i++) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			m[i] = (uint8_t)x;
		}
		a = hash_message(m, len);
		for (bit = 0; bit < len * 8; bit++) {
			m[bit / 8] ^= (uint8_t)(1 << bit % 8);
			b = a ^ hash_message(m, len);
			m[bit / 8] ^= (uint8_t)(1 << bit % 8);
			for (o = 0; o < 64; o++)
				flips[bit][o] += b >> o & 1;
		}
	}
	/* 500 in the mean, deviation 15.8; 19000 cells */
	for (bit = 0; bit < len * 8; bit++)
		for (o = 0; o < 64; o++)
			assert_in_range(flips[bit][o], 400, 600);
}

static void
one_bit_changes_half(void **state)
{
	(void)state;
	avalanche(13);
	avalanche(37);
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
		cmocka_unit_test(siphash_vectors),
		cmocka_unit_test(flows_of_all_versions_agree),
		cmocka_unit_test(slots_are_even),
		cmocka_unit_test(real_tuples_are_even),
		cmocka_unit_test(one_bit_changes_half),
		cmocka_unit_test(slots_cover_the_ring),
	};

	return cmocka_run_group_tests_name("hash", test, key_make, NULL);
}
