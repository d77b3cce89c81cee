/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the decapsulating program and xlb-decap agree on. Each attach makes a
 * new set of maps and swaps it in together with the program, so settings change
 * at once or not at all; only `counters` goes on from one set to the next.
 *
 * Maps:
 *   settings  ARRAY[1] of struct decap_settings
 *   from      LPM_TRIE, struct decap_prefix -> flags: permitted outer sources
 *   vips      LPM_TRIE, struct decap_prefix -> flags: permitted inner
 *             destinations that are given as prefixes
 *   locals    HASH, struct decap_addr -> flags: addresses of the host
 *   counters  PERCPU_ARRAY[1] of struct decap_counters
 */
#ifndef XLB_DECAP_ABI_H
#define XLB_DECAP_ABI_H

#include <linux/types.h>

#define DECAP_ABI 1

/* IPv4 in the first four bytes, the rest 0. The family comes first, so that
 * ::/0 holds no IPv4 address. */
struct decap_addr {
	__u32 family;		/* 4 or 6, host byte order */
	__u8 addr[16];		/* wire */
};

struct decap_prefix {
	__u32 bits;		/* DECAP_FAMILY_BITS + length of the prefix */
	struct decap_addr a;
};
#define DECAP_FAMILY_BITS 32

/* Values of from, vips and locals. */
#define DECAP_HOST	1	/* on an interface of the host */
#define DECAP_LO	2	/* on `lo`: the inner destination may be this */
#define DECAP_GIVEN	4	/* on the command line */

struct decap_settings {
	__u32 abi;		/* DECAP_ABI */
	__u16 gue_port;		/* wire */
	__u8 generic;		/* attached in generic mode */
	__u8 frags;		/* loaded as xdp.frags */
	__u64 netns;		/* cookie of the namespace of the interface */
	char name[16];		/* of the interface when it was attached */
};

/*
 * Every packet ends in exactly one of these. X(NAME, name, kind, what)
 * PASS: untouched, as if the program were not there.
 */
#define DECAP_REASONS(X) \
	X(DECAPSULATED, decapsulated, SENT, "unwrapped, given to the host") \
	X(OTHER, other, PASS, "no tunnel packet") \
	X(SOURCE, source, PASS, "outer source not in --from") \
	X(NOT_LOCAL, not_local, PASS, "outer destination not the host's") \
	X(FRAGMENT, fragment, PASS, "outer packet is a fragment") \
	X(OPTIONS, options, PASS, "outer packet has IPv4 options") \
	X(VARIANT, variant, PASS, "GUE, but not variant 1") \
	X(NOT_VIP, not_vip, PASS, "inner destination not on lo or in --vip") \
	X(MARTIAN, martian, PASS, "inner source no source of a client") \
	X(MALFORMED, malformed, DROP, "truncated or lengths that disagree") \
	X(CHECKSUM, checksum, DROP, "checksum of the outer packet is wrong") \
	X(ECN, ecn, DROP, "CE outside, but inside not ECN-capable") \
	X(FAILED, failed, DROP, "the driver's buffer did not allow it")

enum decap_reason {
#define X(NAME, name, kind, what) DECAP_##NAME,
	DECAP_REASONS(X)
#undef X
	DECAP_REASON_COUNT
};

struct decap_counters {
	__u64 packets[DECAP_REASON_COUNT];
};

_Static_assert(sizeof(struct decap_addr) == 20, "decap_addr");
_Static_assert(sizeof(struct decap_prefix) == 24, "decap_prefix");
_Static_assert(sizeof(struct decap_settings) == 32, "decap_settings");

#endif
