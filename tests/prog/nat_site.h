/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One service that translates, number 1, tcp/80, with one backend and one address
 * of ours, as tests want it that are about the table: see bpf/nat.h.
 */
#ifndef XLB_PROG_NAT_SITE_H
#define XLB_PROG_NAT_SITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "xlb_abi.h"

#define NAT_SITE_LEN 54		/* of a frame: Ethernet, IPv4, TCP */
#define NAT_SITE_SYN 0x02
#define NAT_SITE_RST 0x04
#define NAT_SITE_ACK 0x10

struct nat_site {
	struct xlb_tables *tables;
	struct xlb_nat *row;
	uint32_t rows, addresses;
};

/* 0; 1: not here; -1: failed. Where it is not 0, TAP has been told. */
int nat_site_open(struct nat_site *s, uint32_t rows);
/* One more address of ours to ask the backend from. */
void nat_site_address(struct nat_site *s);
/* From a client to the service, or from the backend to port `ours`. */
void nat_site_frame(uint8_t *frame, uint32_t client, uint16_t port,
    uint8_t flags);
void nat_site_reply(uint8_t *frame, uint16_t ours, uint8_t flags);
/* Sends it. The action; `*ours`: the source port of what came out. */
int nat_site_run(const uint8_t *frame, uint16_t *ours);
/* By which rows are found. */
uint64_t nat_site_hash(const struct nat_site *s, uint32_t client, uint16_t port);
uint64_t nat_site_reply_hash(const struct nat_site *s, uint16_t ours);
/* The port that a flow asks for first. */
uint16_t nat_site_port(uint64_t hash);
uint64_t nat_site_count(enum xlb_reason reason);
/* All flows that the table has, if each is two rows that name each other and no
 * two share a name on either side; else -1, and a line about the first fault.
 * Rows of backend 0 are none. */
int nat_site_flows(const struct nat_site *s);

#endif
