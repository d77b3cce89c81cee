/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What cost.c and its programs share. */
#ifndef XLB_VM_COST_H
#define XLB_VM_COST_H

#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/tcp.h>
#include <linux/types.h>

#define COST_FLOWS 16384	/* at most; a power of two */
#define COST_BACKENDS 8		/* addresses that follow each other */

/* An ACK with timestamps, as most are. Its sequence number is that of its flow,
 * which says address and port (tests/bench/frame.h). */
struct cost_frame {
	struct ethhdr eth;
	struct iphdr ip;
	struct tcphdr tcp;
	__u8 option[12];
} __attribute__((packed));

/* Without the parts that make a flow, the sums without these, too. */
struct cost_template {
	struct cost_frame frame;
	__u32 ip_sum, tcp_sum;
	__u32 flows;		/* that take turns */
	__u32 device;		/* where they leave */
	__u32 node, backend;	/* outer source, and the first destination */
};

struct cost_seen {
	__u64 sent;
	__u64 dropped;		/* by the node, where a program of ours does */
	__u64 tunnelled;	/* IPIP that came back */
	__u64 wrong;		/* of these; only `look` asks */
	__u64 why;		/* bits: what was wrong */
	__u64 backend[COST_BACKENDS];
};

enum {
	COST_SHORT = 1, COST_OUTER = 2, COST_INNER = 4, COST_FLOW = 8,
	COST_MOVED = 16, COST_BACKEND = 32, COST_MAC = 64
};

#endif
