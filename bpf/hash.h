/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The flow hash, keyed by `key_file`: NH over the addresses and ports as they
 * are on the wire (RFC 4418, section 5.2: whoever does not have the key finds
 * two flows that meet with a chance of 2^-32, whatever he chooses), then two
 * rounds of multiplication by secret odd words, so that every bit of it counts
 * in every bit of the hash, and what shows of it (which backend answered) does
 * not lead back to the key. The same code runs in userland; nodes with one key
 * agree on every flow.
 *
 * Words of a flow: source, destination (1 or 4 words each), both ports,
 * protocol; little-endian, which costs nothing where it matters. A client's
 * is hashed as a flow whose other words are 0.
 */
#ifndef XLB_HASH_H
#define XLB_HASH_H

#include "sys.h"
#include "xlb_abi.h"

/* Two words of the message: as 32-bit sums, multiplied in 64. */
static __always_inline __u64
hash_pair(const struct xlb_hash *k, int i, __u32 a, __u32 b)
{
	a += k->word[i];
	b += k->word[i + 1];
	return (__u64)a * b;
}

static __always_inline __u64
hash_mix(const struct xlb_hash *k, __u64 h)
{
	h = (h ^ h >> 32) * k->odd[0];
	h = (h ^ h >> 32) * k->odd[1];
	return h ^ h >> 32;
}

static __always_inline __u64
hash_flow4(const struct xlb_hash *k, __be32 src, __be32 dst, __be32 ports,
    __u8 proto)
{
	return hash_mix(k, hash_pair(k, 0, le32(src), le32(dst)) +
	    hash_pair(k, 2, le32(ports), proto));
}

static __always_inline __u64
hash_flow6(const struct xlb_hash *k, const __be32 src[4], const __be32 dst[4],
    __be32 ports, __u8 proto)
{
	return hash_mix(k, hash_pair(k, 0, le32(src[0]), le32(src[1])) +
	    hash_pair(k, 2, le32(src[2]), le32(src[3])) +
	    hash_pair(k, 4, le32(dst[0]), le32(dst[1])) +
	    hash_pair(k, 6, le32(dst[2]), le32(dst[3])) +
	    hash_pair(k, 8, le32(ports), proto));
}

static __always_inline __u64
hash_source4(const struct xlb_hash *k, __be32 src)
{
	return hash_flow4(k, src, 0, 0, 0);
}

static __always_inline __u64
hash_source6(const struct xlb_hash *k, const __be32 src[4])
{
	const __be32 none[4] = { 0 };

	return hash_flow6(k, src, none, 0, 0);
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
	return sys_mul(select, ring_size) >> 32;
}

#endif
