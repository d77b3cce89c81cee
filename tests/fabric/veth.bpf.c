/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Programs for the ends of the fabric's veth pairs: a pair hands on what one
 * end sends by XDP only while the other end runs a program too.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define ETHERTYPE_TEST 0x88b5	/* IEEE 802, local experimental */

int xlbf_pass(struct xdp_md *ctx);
int xlbf_tx(struct xdp_md *ctx);

SEC("xdp")
int
xlbf_pass(struct xdp_md *ctx)
{
	(void)ctx;
	return XDP_PASS;
}

/* Returns test frames with their addresses swapped, passes all else. */
SEC("xdp")
int
xlbf_tx(struct xdp_md *ctx)
{
	struct ethhdr *eth = (void *)(long)ctx->data;
	unsigned char mac[ETH_ALEN];

	if ((void *)(eth + 1) > (void *)(long)ctx->data_end ||
	    eth->h_proto != bpf_htons(ETHERTYPE_TEST))
		return XDP_PASS;
	__builtin_memcpy(mac, eth->h_dest, ETH_ALEN);
	__builtin_memcpy(eth->h_dest, eth->h_source, ETH_ALEN);
	__builtin_memcpy(eth->h_source, mac, ETH_ALEN);
	return XDP_TX;
}

char LICENSE[] SEC("license") = "GPL";
