/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sources of IPv4 packets by their first 16 bits, for `plain_source` of
 * struct xlb_tables: most packets' sources are told by one bit to be fit.
 */
#ifndef CORE_SOURCE_H
#define CORE_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "xlb_abi.h"

/* False if an address with these first 16 bits (`at`: xlb_source_at()) may be of
 * a kind that nobody sends from (RFC 6890: this network, loopback, multicast,
 * broadcast) or in the tunnel's source prefix. VIPs are the caller's. */
bool source_is_plain(uint32_t at, const struct xlb_settings *s);

#endif
