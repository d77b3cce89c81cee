/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Watches for frames that an interface did not take: a redirect verdict is no
 * proof. Runs once for all frames that a driver is handed together, looks at
 * the result, and tells userland of the errors that say that the interface
 * cannot send XDP frames at all.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "ports_abi.h"

#define ENXIO 6
#define EOPNOTSUPP 95

/* What we read of the kernel's; where it lies is found out at loading. */
struct ns_common {
	unsigned int inum;
} __attribute__((preserve_access_index));

struct net {
	struct ns_common ns;
} __attribute__((preserve_access_index));

typedef struct {
	struct net *net;
} possible_net_t;

struct net_device {
	int ifindex;
	possible_net_t nd_net;
} __attribute__((preserve_access_index));

/* Set by userland: its network namespace, and the map `tx_ports`. */
const volatile __u32 netns = 0, tx_ports_id = 0;

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} port_errors SEC(".maps");

/* When each was told of last. */
__u64 told[PORTS_SLOTS];

static __always_inline void
tell(__u32 ifindex, int err)
{
	__u64 now = bpf_ktime_get_ns(), *last;
	struct port_error e = { .ifindex = ifindex, .err = err };

	if (err != -ENXIO && err != -EOPNOTSUPP)
		return;
	last = &told[ifindex & (PORTS_SLOTS - 1)];
	if (now - *last < PORTS_EVERY_NS)
		return;
	if (bpf_ringbuf_output(&port_errors, &e, sizeof(e), 0) == 0)
		*last = now;
}

int ports_xmit(const __u64 *arg);
int ports_redirect(const __u64 *arg);

/* The driver was handed some and gave them back. The arguments: where they came
 * from, where they should have gone, how many went, how many not, the error. */
SEC("tp_btf/xdp_devmap_xmit")
int
ports_xmit(const __u64 *arg)
{
	const struct net_device *to = (const void *)arg[1];
	int err = (int)arg[4];

	if (err < 0 && to->nd_net.net->ns.inum == netns)
		tell(to->ifindex, err);
	return 0;
}

/* It has no function to hand them to. The arguments: where they came from, the
 * program, an entry of the map, the error, the map's type, id and key. */
SEC("tp_btf/xdp_redirect_err")
int
ports_redirect(const __u64 *arg)
{
	if ((__u32)arg[5] == tx_ports_id)
		tell((__u32)arg[6], (int)arg[3]);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
