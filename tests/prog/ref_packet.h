/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A frame as the reference has taken it apart, and what may be done with it. */
#ifndef XLB_PROG_REF_PACKET_H
#define XLB_PROG_REF_PACKET_H

#include "reference.h"

enum { REF_ICMP = 1, REF_IN4 = 4, REF_TCP = 6, REF_UDP = 17, REF_IN6 = 41,
    REF_ICMP6 = 58 };
#define REF_NEXT 1000U		/* no reason: go on */

struct ref_packet {
	const uint8_t *frame;
	size_t len;		/* of the frame */
	size_t link;		/* bytes before the IP header */
	bool v6;
	const uint8_t *ip;
	size_t room;		/* from there to the frame's end */
	size_t seen;		/* of it in the first buffer: headers must be */
	size_t total;		/* the packet's, by its own word */
	size_t l4;		/* from `ip` to the transport header */
	uint8_t proto;		/* the transport's */
	uint8_t src[16], dst[16];
	bool first, later;	/* of a datagram in fragments */
	uint8_t id[4];
	unsigned vip;		/* index */
	bool own;		/* no VIP, but an address that NAT sends from */
	bool error;		/* an ICMP error, about this flow: */
	uint8_t client[16];
	uint8_t flow_proto;
	unsigned client_port, vip_port;
	size_t quote;		/* from `ip` to the transport header it quotes */
	uint64_t flow;
};

unsigned ref_16(const uint8_t *p);	/* as on the wire */
uint32_t ref_32(const uint8_t *p);
void ref_put16(uint8_t *p, unsigned v);
void ref_put32(uint8_t *p, uint32_t v);

/* NH (RFC 4418, section 5.2) over words of 4 bytes, and the mixing. */
uint64_t ref_hash(const struct ref_hash *h, const uint8_t *message, size_t len);

/* The ones' complement sum of 16-bit words, odd lengths filled up with 0. */
uint32_t ref_sum(uint32_t sum, const uint8_t *p, size_t len);
unsigned ref_fold(uint32_t sum);
uint32_t ref_pseudo(const struct ref_packet *p, size_t len, unsigned proto);

/* To the transport header, with its VIP; or the reason it ends in. */
unsigned ref_take_apart(const struct ref_config *c, const uint8_t *frame,
    size_t len, struct ref_packet *p);
/* Walks over IPv6 extension headers from `at` of `p`, whose end is `end` and of
 * which `seen` bytes can be looked at. */
enum ref_walk { REF_WHOLE, REF_FIRST, REF_LATER, REF_BAD };
enum ref_walk ref_extensions(const uint8_t *p, size_t *at, size_t end,
    size_t seen, uint8_t *proto, uint8_t id[4]);

unsigned ref_echo(const struct ref_packet *p, struct ref_result *out);
/* ref_nat.c: a client's packet, and what comes to an address of ours. Of a
 * packet of a service the hash is in `p`. */
unsigned ref_nat(const struct ref_config *c, struct ref_state *s,
    const struct ref_packet *p, const struct ref_service *service,
    unsigned owner, struct ref_result *out);
unsigned ref_nat_own(const struct ref_config *c, struct ref_state *s,
    struct ref_packet *p, struct ref_result *out);
bool ref_is_source(const struct ref_config *c, const uint8_t addr[16]);

/* The datagram's first fragment; NULL: it is not known. */
struct ref_fragment *ref_fragment_find(struct ref_state *s,
    const struct ref_packet *p);
/* It was for this backend, of this service (NULL: a reply, to a client). */
void ref_fragment_remember(const struct ref_config *c, struct ref_state *s,
    const struct ref_packet *p, const struct ref_service *service,
    unsigned backend, bool nat);

/* ref_send.c */
unsigned ref_check_changed(unsigned was_sum, uint32_t was, uint32_t is);
unsigned ref_too_big(const struct ref_state *s, const struct ref_packet *p,
    size_t mtu, struct ref_result *out);
size_t ref_link_put(const struct ref_packet *p, const struct ref_hop *hop,
    bool six, uint8_t *frame);
unsigned ref_leave(const struct ref_config *c, const struct ref_packet *p,
    const struct ref_hop *hop, size_t len, struct ref_result *out);
/* To a backend, or the answer that it is too big. */
unsigned ref_send(const struct ref_config *c, const struct ref_state *s,
    const struct ref_packet *p, const struct ref_service *service,
    unsigned backend, struct ref_result *out);

#endif
