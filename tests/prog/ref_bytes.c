/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Numbers, sums and the hash, a byte at a time. */
#include "ref_packet.h"

unsigned
ref_16(const uint8_t *p)
{
	return (unsigned)p[0] << 8 | p[1];
}

uint32_t
ref_32(const uint8_t *p)
{
	return (uint32_t)ref_16(p) << 16 | ref_16(p + 2);
}

void
ref_put16(uint8_t *p, unsigned v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

void
ref_put32(uint8_t *p, uint32_t v)
{
	ref_put16(p, v >> 16);
	ref_put16(p + 2, v & 0xffff);
}

uint32_t
ref_sum(uint32_t sum, const uint8_t *p, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		sum += i % 2 == 0 ? (uint32_t)p[i] << 8 : p[i];
	return sum;
}

unsigned
ref_fold(uint32_t sum)
{
	while (sum > 0xffff)
		sum = sum % 0x10000 + sum / 0x10000;
	return sum;
}

uint32_t
ref_pseudo(const struct ref_packet *p, size_t len, unsigned proto)
{
	unsigned from = p->v6 ? 0 : 12;

	return ref_sum(ref_sum((uint32_t)len + proto, p->src + from,
	    16 - from), p->dst + from, 16 - from);
}

static uint64_t
turn(uint64_t x, int by)
{
	return x << by | x >> (64 - by);
}

static void
mix(uint64_t v[4])
{
	v[0] += v[1];
	v[1] = turn(v[1], 13) ^ v[0];
	v[0] = turn(v[0], 32);
	v[2] += v[3];
	v[3] = turn(v[3], 16) ^ v[2];
	v[0] += v[3];
	v[3] = turn(v[3], 21) ^ v[0];
	v[2] += v[1];
	v[1] = turn(v[1], 17) ^ v[2];
	v[2] = turn(v[2], 32);
}

static uint64_t
little(const uint8_t *p, size_t n)
{
	uint64_t v = 0;

	while (n-- > 0)
		v = v << 8 | p[n];
	return v;
}

static void
absorb(uint64_t v[4], uint64_t word)
{
	v[3] ^= word;
	mix(v);
	mix(v);
	v[0] ^= word;
}

/* SipHash-2-4 of a number of 8 bytes. */
static uint64_t
number_hash(const uint8_t key[16], uint64_t number)
{
	static const char start[] = "uespemosmodnarodarenegylsetybdet";
	uint64_t v[4], k[2] = { little(key, 8), little(key + 8, 8) };
	size_t i;

	for (i = 0; i < 4; i++)
		v[i] = little((const uint8_t *)start + 8 * i, 8) ^ k[i % 2];
	absorb(v, number);
	absorb(v, 8ULL << 56);
	v[2] ^= 0xff;
	for (i = 0; i < 4; i++)
		mix(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

void
ref_hash_expand(const uint8_t key[16], struct ref_hash *h)
{
	unsigned i;

	for (i = 0; i < 10; i++)
		h->word[i] = number_hash(key, i) & 0xffffffff;
	for (i = 0; i < 2; i++)
		h->odd[i] = number_hash(key, 16 + i) | 1;
}

uint64_t
ref_hash(const struct ref_hash *h, const uint8_t *message, size_t len)
{
	uint64_t hash = 0;
	uint32_t a, b;
	size_t i;

	for (i = 0; i < len / 4; i += 2) {
		a = (uint32_t)little(message + 4 * i, 4) + h->word[i];
		b = (uint32_t)little(message + 4 * i + 4, 4) + h->word[i + 1];
		hash += (uint64_t)a * b;
	}
	for (i = 0; i < 2; i++)
		hash = (hash ^ hash >> 32) * h->odd[i];
	return hash ^ hash >> 32;
}
