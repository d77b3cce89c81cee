/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Internet checksums (RFC 1071): sums of 16-bit words as they lie in memory. */
#ifndef XLB_CSUM_H
#define XLB_CSUM_H

#include "pkt.h"

/*
 * Of a sum below 2^48. 0 stays 0, nothing else becomes 0. Folding leaves the sum
 * modulo 65535, and so does this: of sum = 65535 q + r the product, modulo 2^64,
 * is four copies of r side by side, less q. That is no more than the three lower
 * ones, so the upper one stays; where r is 0 and q is not, it becomes all ones.
 */
static __always_inline __u32
csum_fold(__u64 sum)
{
	return sum * 0x0001000100010001ULL >> 48;
}

/* RFC 1624: a checksum after one of its words has become another. */
static __always_inline __u16
csum_replace(__u16 sum, __u16 was, __u16 is)
{
	return ~csum_fold((__u64)(__u16)~sum + (__u16)~was + is);
}

/* The sum of addresses, length and protocol that TCP, UDP and ICMPv6 add. */
static __always_inline __u64
csum_pseudo6(const __be32 src[4], const __be32 dst[4], __u32 len, __u8 proto)
{
	return (__u64)src[0] + src[1] + src[2] + src[3] + dst[0] + dst[1] +
	    dst[2] + dst[3] + be32(len) + be32(proto);
}

#endif
