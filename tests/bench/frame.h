/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A frame as the bench's driver sends it: the same but for what makes a flow. */
#ifndef XLB_BENCH_FRAME_H
#define XLB_BENCH_FRAME_H

#include <linux/types.h>

#define BENCH_FRAME 96		/* bytes; every case's frame has as many */

struct bench_frame {
	__u64 word[BENCH_FRAME / 8];	/* as on the wire */
	__u32 address;		/* offset of 4 bytes of the source address */
	__u32 ports;		/* offset of the source port */
	__u32 fragment;		/* offset of the word that makes it a first and a
				 * later fragment by turns; 0: it is none */
	__u32 flags;		/* offset of TCP's flags, for BENCH_MIX */
	__u32 kind;
};

/* What follows what. */
enum {
	BENCH_SAME,		/* packets of so many flows, all alike */
	BENCH_MIX,		/* each flow begins, talks and ends, then a new
				 * one begins in its place */
	BENCH_FRESH,		/* each is a flow of its own, and none of those */
	BENCH_REPLY		/* from so many backends and ports of NAT */
};

/* Flow number `id`: which of 2^24 addresses, which port. */
static inline __u32
bench_address(__u32 id)
{
	return 100U << 24 | (id * 0x9e3779b1U) >> 8;
}

static inline __u16
bench_port(__u32 id)
{
	return 1024 + id % 32768;
}

/* With NAT flow `id` is with this backend, by this port of ours. */
#define BENCH_NAT_BACKENDS 100
#define BENCH_NAT_FLOWS	(BENCH_NAT_BACKENDS * 16384)	/* at most */

static inline __u32
bench_backend(__u32 id)
{
	return (10U << 24 | 1U << 8 | 1U) + id % BENCH_NAT_BACKENDS;
}

static inline __u16
bench_nat_port(__u32 id)
{
	return 16384 + id / BENCH_NAT_BACKENDS;
}

#endif
