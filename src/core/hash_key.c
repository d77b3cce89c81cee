/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The words of the flow hash, made of the secret. */
#include "core/hash_key.h"

#include <endian.h>
#include <string.h>

#define ROUNDS_WORD 2
#define ROUNDS_END 4

static uint64_t
rotate(uint64_t x, unsigned bits)
{
	return x << bits | x >> (64 - bits);
}

static void
sip_rounds(uint64_t v[4], int n)
{
	while (n-- > 0) {
		v[0] += v[1];
		v[2] += v[3];
		v[1] = rotate(v[1], 13) ^ v[0];
		v[3] = rotate(v[3], 16) ^ v[2];
		v[0] = rotate(v[0], 32);
		v[2] += v[1];
		v[0] += v[3];
		v[1] = rotate(v[1], 17) ^ v[2];
		v[3] = rotate(v[3], 21) ^ v[0];
		v[2] = rotate(v[2], 32);
	}
}

static void
sip_word(uint64_t v[4], uint64_t word)
{
	v[3] ^= word;
	sip_rounds(v, ROUNDS_WORD);
	v[0] ^= word;
}

uint64_t
siphash(const uint8_t key[16], const void *message, size_t len)
{
	const uint8_t *at = message;
	uint64_t k[2], v[4], word;
	size_t left;

	memcpy(k, key, sizeof(k));
	v[0] = le64toh(k[0]) ^ 0x736f6d6570736575ULL;
	v[1] = le64toh(k[1]) ^ 0x646f72616e646f6dULL;
	v[2] = le64toh(k[0]) ^ 0x6c7967656e657261ULL;
	v[3] = le64toh(k[1]) ^ 0x7465646279746573ULL;
	for (left = len; left >= 8; left -= 8, at += 8) {
		memcpy(&word, at, sizeof(word));
		sip_word(v, le64toh(word));
	}
	word = 0;
	memcpy(&word, at, left);
	sip_word(v, le64toh(word) | (uint64_t)len << 56);
	v[2] ^= 0xff;
	sip_rounds(v, ROUNDS_END);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

static uint64_t
key_number(const uint8_t key[16], uint64_t number)
{
	number = htole64(number);
	return siphash(key, &number, sizeof(number));
}

void
hash_expand(const uint8_t key[16], struct xlb_hash *hash)
{
	size_t i;

	for (i = 0; i < sizeof(hash->word) / sizeof(hash->word[0]); i++)
		hash->word[i] = (uint32_t)key_number(key, i);
	for (i = 0; i < 2; i++)
		hash->odd[i] = key_number(key, 16 + i) | 1;
}
