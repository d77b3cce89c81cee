/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The whole packet path once more, in plain C and from what it has to do: what
 * must become of a frame, under a configuration that is plain lists. It shares
 * no code with the packet program, only the names of the reasons.
 */
#ifndef XLB_PROG_REFERENCE_H
#define XLB_PROG_REFERENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REF_FRAME_MAX	16384
#define REF_VIPS	16
#define REF_SERVICES	160
#define REF_BACKENDS	16	/* numbers 1.. */
#define REF_HOPS	16	/* numbers 1.. */
#define REF_RINGS	6
#define REF_NAT_RINGS	2	/* the last ones: of services with NAT, alone */
#define REF_PORTS	4
#define REF_FRAGMENTS	4096	/* datagrams remembered */
#define REF_SOURCES	6	/* addresses that NAT sends from */
#define REF_DOORS	2
#define REF_FLOWS	4096	/* of NAT, in one round */

/* Addresses are 16 bytes, IPv4 as ::ffff:a.b.c.d. */

struct ref_vip {
	uint8_t addr[16];
	bool v6, local;		/* local: the host has the address itself */
};

enum ref_forward { REF_IPIP, REF_GUE, REF_L2, REF_NAT };

struct ref_service {
	unsigned vip;		/* index */
	uint8_t proto;
	uint16_t port;		/* 0: every port */
	unsigned number;	/* of its counters */
	unsigned ring;		/* REF_RINGS and more: there is none */
	enum ref_forward forward;
	bool by_source;		/* the slot is the client's */
	uint16_t backend_port;	/* NAT; 0: the one that is asked for */
};

struct ref_backend {
	uint8_t addr[16];
	bool v6;
	unsigned hop;		/* 0: none known */
	bool source[REF_SOURCES];	/* NAT sends from it to this one */
};

/* Where clients' packets come in. */
struct ref_door {
	bool there;
	uint8_t own_mac[6];
	uint16_t mtu;
	unsigned ifindex;
};

struct ref_hop {
	bool resolved;
	uint8_t mac[6], own_mac[6];
	uint16_t tci;		/* 0: untagged */
	uint16_t mtu;
	unsigned ifindex;
	uint8_t src[16];	/* this node's own address */
	uint8_t gateway[16];
};

struct ref_prefix {
	uint8_t addr[16];
	unsigned len;		/* of 32 or 128; 0: there is none */
};

struct ref_hash {
	uint32_t word[10];
	uint64_t odd[2];
};

struct ref_config {
	uint8_t key[16];
	struct ref_hash hash;	/* of the key */
	struct ref_prefix source4, source6;
	uint16_t gue_port;
	unsigned tunnel_mtu;	/* 0: the link's */
	unsigned ring_size;
	size_t first_buffer;	/* bytes that the program can look at, once it
				 * has moved what it can; 0: all */
	unsigned ingress;	/* the interface that frames come in by */
	struct ref_vip vip[REF_VIPS];
	unsigned nvip;
	struct ref_service service[REF_SERVICES];
	unsigned nservice;
	struct ref_backend backend[REF_BACKENDS];
	struct ref_hop hop[REF_HOPS];
	uint16_t *ring[REF_RINGS];	/* slot -> backend, 0: none */
	bool keeps[REF_RINGS][REF_BACKENDS];	/* its flows, of that pool */
	uint8_t source[REF_SOURCES][16];
	struct ref_door door[REF_DOORS];
	unsigned port[REF_PORTS];	/* where frames may leave */
	unsigned nport;
};

struct ref_fragment {
	uint8_t src[16], dst[16], id[4];
	uint8_t proto;
	bool v6;
	const struct ref_service *service;
	uint64_t flow;
	unsigned backend;
	uint8_t addr[16];	/* of that backend, then */
	bool nat;
	uint8_t flow_proto;
	unsigned src_port, dst_port;
};

/* One that NAT knows. */
struct ref_flow {
	bool v6;
	uint8_t proto;
	uint8_t client[16], vip[16];
	unsigned client_port, vip_port;
	unsigned backend;
	uint8_t addr[16];	/* of that backend, when it began */
	unsigned back_port;
	unsigned source;	/* index: as whom it asks */
	unsigned port;		/* and by which port */
	bool closing;
	unsigned door;		/* index; and the neighbour there */
	uint8_t mac[6];
	unsigned tci;
};

/* What one packet leaves for the next ones. */
struct ref_state {
	struct ref_fragment fragment[REF_FRAGMENTS];
	size_t nfragment;
	struct ref_flow flow[REF_FLOWS];
	size_t nflow;
	bool mute;		/* no more answers are allowed for now */
};

/* What must become of a frame. */
struct ref_result {
	int action;		/* XDP_* */
	unsigned reason;	/* XLB_REASON_* */
	size_t len;
	uint8_t frame[REF_FRAME_MAX];	/* where the action is not to drop it */
	const struct ref_service *service;	/* that it counts for, or NULL */
	unsigned backend;	/* that got it, or 0 */
	unsigned bytes;		/* by the IP header */
	bool summed;		/* an outer checksum took all the payload */
	bool nat;		/* of a service with NAT, or for a reply */
};

/* The words of the flow hash that the secret stands for. */
void ref_hash_expand(const uint8_t key[16], struct ref_hash *h);

void ref_run(const struct ref_config *c, struct ref_state *s,
    const uint8_t *frame, size_t len, struct ref_result *out);

#endif
