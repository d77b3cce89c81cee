/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From the secret in key_file to the words that the flow hash (bpf/hash.h)
 * takes: each is SipHash-2-4 (Aumasson and Bernstein, 2012) of its number. */
#ifndef XLB_HASH_KEY_H
#define XLB_HASH_KEY_H

#include <stddef.h>
#include <stdint.h>

#include "xlb_abi.h"

uint64_t siphash(const uint8_t key[16], const void *message, size_t len);

/* word[i] is the lower half of SipHash of the 8 bytes of i, little-endian;
 * odd[i] that of 16 + i, with its lowest bit set. */
void hash_expand(const uint8_t key[16], struct xlb_hash *hash);

#endif
