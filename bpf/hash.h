/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The flow hash: SipHash-1-3 (Aumasson and Bernstein, 2012) over the addresses
 * and ports as they are on the wire, keyed by `key_file`. The same code runs in
 * userland. Nodes with one key agree on every flow; without the key nobody can
 * choose flows that meet in one slot.
 *
 * Message of a flow: source, destination (4 or 16 bytes each), source port,
 * destination port (2 each), protocol (1). Of a client: its address.
 */
#ifndef XLB_HASH_H
#define XLB_HASH_H

#include "sys.h"
#include "xlb_abi.h"

struct sip {
	__u64 v0, v1, v2, v3;
};

static __always_inline __u64
sip_rotate(__u64 x, unsigned bits)
{
	return x << bits | x >> (64 - bits);
}

static __always_inline void
sip_round(struct sip *s)
{
	s->v0 += s->v1;
	s->v2 += s->v3;
	s->v1 = sip_rotate(s->v1, 13) ^ s->v0;
	s->v3 = sip_rotate(s->v3, 16) ^ s->v2;
	s->v0 = sip_rotate(s->v0, 32);
	s->v2 += s->v1;
	s->v0 += s->v3;
	s->v1 = sip_rotate(s->v1, 17) ^ s->v2;
	s->v3 = sip_rotate(s->v3, 21) ^ s->v0;
	s->v2 = sip_rotate(s->v2, 32);
}

static __always_inline void
sip_init(struct sip *s, const __u8 key[16])
{
	__u64 k0 = le64(get64(key)), k1 = le64(get64(key + 8));

	s->v0 = k0 ^ 0x736f6d6570736575ULL;
	s->v1 = k1 ^ 0x646f72616e646f6dULL;
	s->v2 = k0 ^ 0x6c7967656e657261ULL;
	s->v3 = k1 ^ 0x7465646279746573ULL;
}

/* The next 8 bytes of the message, as a little-endian word. */
static __always_inline void
sip_word(struct sip *s, __u64 word)
{
	s->v3 ^= word;
	sip_round(s);
	s->v0 ^= word;
}

/* The last word: fewer than 8 bytes, and the message's length on top. */
static __always_inline __u64
sip_final(struct sip *s, __u64 rest, __u64 len)
{
	sip_word(s, rest | len << 56);
	s->v2 ^= 0xff;
	sip_round(s);
	sip_round(s);
	sip_round(s);
	return s->v0 ^ s->v1 ^ s->v2 ^ s->v3;
}

/* Two wire words, the first one first in memory. */
static __always_inline __u64
sip_pair(__be32 first, __be32 second)
{
	return SYS_LITTLE ? (__u64)second << 32 | first :
	    __builtin_bswap64((__u64)first << 32 | second);
}

static __always_inline __u64
hash_flow4(const __u8 key[16], __be32 src, __be32 dst, __be32 ports, __u8 proto)
{
	struct sip s;

	sip_init(&s, key);
	sip_word(&s, sip_pair(src, dst));
	return sip_final(&s, sip_pair(ports, 0) | (__u64)proto << 32, 13);
}

static __always_inline __u64
hash_flow6(const __u8 key[16], const __be32 src[4], const __be32 dst[4],
    __be32 ports, __u8 proto)
{
	struct sip s;

	sip_init(&s, key);
	sip_word(&s, sip_pair(src[0], src[1]));
	sip_word(&s, sip_pair(src[2], src[3]));
	sip_word(&s, sip_pair(dst[0], dst[1]));
	sip_word(&s, sip_pair(dst[2], dst[3]));
	return sip_final(&s, sip_pair(ports, 0) | (__u64)proto << 32, 37);
}

static __always_inline __u64
hash_source4(const __u8 key[16], __be32 src)
{
	struct sip s;

	sip_init(&s, key);
	return sip_final(&s, sip_pair(src, 0), 4);
}

static __always_inline __u64
hash_source6(const __u8 key[16], const __be32 src[4])
{
	struct sip s;

	sip_init(&s, key);
	sip_word(&s, sip_pair(src[0], src[1]));
	sip_word(&s, sip_pair(src[2], src[3]));
	return sip_final(&s, 0, 16);
}

/* The upper half selects the slot, the lower one is the tunnel's entropy. */
static __always_inline __u32
hash_select(__u64 hash)
{
	return hash >> 32;
}

static __always_inline __u32
hash_slot(__u32 select, __u32 ring_size)
{
	return (__u64)select * ring_size >> 32;
}

#endif
