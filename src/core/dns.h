/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One question to a name server, and whether a datagram answers it (RFC 1035). */
#ifndef XLB_DNS_H
#define XLB_DNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/health.h"

#define DNS_QUERY_MAX 512
#define DNS_TYPE_STR_MAX 16

/* "A", "TXT", or "TYPE65" (RFC 3597). 0: it is none, or one that no answer
 * has. */
uint16_t dns_type_parse(const char *text);
const char *dns_type_print(uint16_t type, char buf[DNS_TYPE_STR_MAX]);

/* "NXDOMAIN"; NULL: it has no name. */
const char *dns_rcode_text(uint16_t rcode);

/* A query in network format. "" and "." are the root. Its length; 0: `name` is
 * not a domain name. */
size_t dns_query_build(const char *name, uint16_t type, uint16_t id,
    uint8_t query[DNS_QUERY_MAX]);

/* What `reply` says about the server that was sent `query`, which
 * dns_query_build() made. False: it is no reply to that query, and nothing is
 * said. */
bool dns_reply_judge(const uint8_t *query, size_t query_len,
    const uint8_t *reply, size_t reply_len, enum probe_result *r,
    uint16_t *detail);

#endif
