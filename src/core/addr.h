/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Addresses as the packet program keeps them: 16 bytes in network byte order,
 * IPv4 as ::ffff:a.b.c.d (RFC 4291, 2.5.5.2). One form for both families, so a
 * table row, a key and a configuration value compare with memcmp.
 */
#ifndef XLB_ADDR_H
#define XLB_ADDR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

struct addr {
	uint8_t b[16];
};

struct prefix {
	struct addr addr;	/* host bits are zero */
	uint8_t len;		/* of its own family: 0..32 or 0..128 */
};

/* "2001:db8:ffff:ffff:ffff:ffff:255.255.255.255" and an end */
#define ADDR_STR_MAX 46
#define PREFIX_STR_MAX (ADDR_STR_MAX + 4)
#define ADDRPORT_STR_MAX (ADDR_STR_MAX + 8)

bool addr_is4(const struct addr *a);
int addr_family(const struct addr *a);		/* AF_INET or AF_INET6 */
unsigned addr_bits(const struct addr *a);	/* 32 or 128 */
int addr_cmp(const struct addr *a, const struct addr *b);	/* as memcmp */
/* The same as a rows_cmp, for rows that begin with their address. */
int addr_order(const void *a, const void *b);
bool addr_is_zero(const struct addr *a);	/* all 16 bytes are 0: unset */
struct addr addr_from4(uint32_t be);		/* network byte order */
uint32_t addr_to4(const struct addr *a);	/* network byte order */

/* Literal only; a v4-mapped IPv6 literal is refused (write it as IPv4).
 * 0, or -1. */
int addr_parse(const char *s, struct addr *out);
const char *addr_print(const struct addr *a, char buf[ADDR_STR_MAX]);

/* "10.0.0.0/16"; host bits must be zero. 0, or -1. */
int prefix_parse(const char *s, struct prefix *out);
const char *prefix_print(const struct prefix *p, char buf[PREFIX_STR_MAX]);
bool prefix_has(const struct prefix *p, const struct addr *a);
int prefix_cmp(const struct prefix *a, const struct prefix *b);
/* In a sorted array: bsearch() by prefix_cmp(), fit for n = 0. */
bool prefix_find(const struct prefix *p, size_t n, const struct prefix *want);
/* Sorts and drops duplicates; returns how many are left. */
size_t prefix_sort(struct prefix *p, size_t n);

/* "a.b.c.d:port", "[v6]:port"; the port in host byte order, 0..65535. */
int addrport_parse(const char *s, struct addr *a, uint16_t *port);
const char *addrport_print(const struct addr *a, uint16_t port,
    char buf[ADDRPORT_STR_MAX]);

/* For socket calls; returns the length. Port in host byte order. */
socklen_t addr_sockaddr(const struct addr *a, uint16_t port,
    struct sockaddr_storage *out);
/* Of another family than these two: unset. */
struct addr addr_from_sockaddr(const struct sockaddr_storage *ss);

#endif
