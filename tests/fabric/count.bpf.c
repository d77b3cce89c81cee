/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counts the numbered datagrams that a node has sent on to a backend by IPIP, at
 * the other end of its link, and takes them off it. */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/udp.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "blast.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, BLAST_VALUES);
	__type(key, __u32);
	__type(value, __u64);
} xlbf_seen SEC(".maps");

struct sent_on {
	struct ethhdr eth;
	struct iphdr outer, inner;
	struct udphdr udp;
	__u64 number;
} __attribute__((packed));

int xlbf_count(struct xdp_md *ctx);

static void
add(__u32 key)
{
	__u64 *value = bpf_map_lookup_elem(&xlbf_seen, &key);

	if (value != NULL)
		__sync_fetch_and_add(value, 1);
}

SEC("xdp")
int
xlbf_count(struct xdp_md *ctx)
{
	struct sent_on *p = (void *)(long)ctx->data;
	__u64 *word, bit;
	__u32 key;

	if ((void *)(p + 1) > (void *)(long)ctx->data_end ||
	    p->eth.h_proto != bpf_htons(ETH_P_IP) ||
	    p->outer.ihl != 5 || p->outer.protocol != IPPROTO_IPIP ||
	    p->inner.ihl != 5 || p->inner.protocol != IPPROTO_UDP ||
	    p->udp.dest != bpf_htons(BLAST_PORT) ||
	    p->number >= BLAST_NUMBERS)
		return XDP_PASS;
	key = BLAST_SEEN + (__u32)(p->number / 64);
	bit = 1ULL << p->number % 64;
	word = bpf_map_lookup_elem(&xlbf_seen, &key);
	if (word == NULL)
		return XDP_ABORTED;
	add(__sync_fetch_and_or(word, bit) & bit ? BLAST_AGAIN :
	    BLAST_RECEIVED);
	return XDP_DROP;
}

char LICENSE[] SEC("license") = "GPL";
