/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The packet program as an ordinary function, on the maps of one machine. */
#include "kernel_int.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

/* libbpf has functions of these names, too */
#define bpf_map_lookup_elem run_lookup
#define bpf_map_update_elem run_update
#include "xlb.bpf.c"

static struct kernel *here;
static struct xlb_ring *ring_here;	/* looked up last */
static uint64_t clock_ns = 1;

void
kernel_clock(uint64_t ns)
{
	clock_ns = ns;
}

uint64_t
kernel_ns(void)
{
	return clock_ns;
}

uint32_t
kernel_tick(void)
{
	return (uint32_t)(clock_ns >> XLB_FLOW_TICK_SHIFT);
}

uint64_t
kernel_jiffies(void)
{
	return clock_ns / 4000000;
}

void *
run_lookup(void *map, const void *key)
{
	uint32_t at;

	memcpy(&at, key, sizeof(at));
	if (map == (void *)&tables)
		return kernel_value(here, MAP_TABLES, at);
	if (map == (void *)&ring_table) {
		ring_here = kernel_ring(here, at);
		return ring_here != NULL ? &ring_here : NULL;
	}
	if (map == (void *)&ring_here)
		return at == 0 ? ring_here : NULL;
	if (map == (void *)&stats)
		return kernel_value(here, MAP_STATS, at);
	if (map == (void *)&flows)
		return kernel_value(here, MAP_FLOWS, at);
	if (map == (void *)&flow_stats)
		return kernel_value(here, MAP_FLOW_STATS, at);
	if (map == (void *)&nat)
		return kernel_value(here, MAP_NAT, at);
	if (map == (void *)&rare)
		return kernel_value(here, MAP_RARE, at);
	assert(map == (void *)&fragments);
	return NULL;
}

long
run_update(void *map, const void *key, const void *value, __u64 flags)
{
	(void)map;
	(void)key;
	(void)value;
	(void)flags;
	assert(!"the model sends no fragments");
	return -EINVAL;
}

__u32
bpf_get_smp_processor_id(void)
{
	return 0;
}

long
bpf_redirect_map(void *map, __u64 key, __u64 flags)
{
	(void)map;
	(void)flags;
	return key == KERNEL_IFINDEX ? XDP_REDIRECT : XDP_ABORTED;
}

/* Frames lie in the middle of a buffer that has room on both sides. */
long
bpf_xdp_adjust_head(struct sys_ctx *ctx, int delta)
{
	ctx->data += delta;
	return 0;
}

long
bpf_xdp_adjust_tail(struct sys_ctx *ctx, int delta)
{
	ctx->data_end += delta;
	return 0;
}

__u64
bpf_xdp_get_buff_len(struct sys_ctx *ctx)
{
	return (__u64)(ctx->data_end - ctx->data);
}

long
bpf_xdp_load_bytes(struct sys_ctx *ctx, __u32 offset, void *buf, __u32 len)
{
	size_t have = (size_t)(ctx->data_end - ctx->data);

	if (offset > have || len > have - offset)
		return -EINVAL;
	memcpy(buf, ctx->data + offset, len);
	return 0;
}

long
bpf_xdp_store_bytes(struct sys_ctx *ctx, __u32 offset, void *buf, __u32 len)
{
	(void)ctx;
	(void)offset;
	(void)buf;
	(void)len;
	assert(!"the model's frames have one buffer");
	return -EINVAL;
}

__s64
bpf_csum_diff(__be32 *from, __u32 from_size, __be32 *to, __u32 to_size,
    __u32 seed)
{
	(void)from;
	(void)from_size;
	(void)to;
	(void)to_size;
	(void)seed;
	assert(!"the model's packets need no sums");
	return -EINVAL;
}

__u64
bpf_ktime_get_coarse_ns(void)
{
	return clock_ns;
}

__u64
bpf_ktime_get_ns(void)
{
	return clock_ns;
}

long
bpf_ringbuf_output(void *map, void *data, __u64 size, __u64 flags)
{
	(void)map;
	(void)data;
	(void)size;
	(void)flags;
	assert(!"nobody listens");
	return -EINVAL;
}

__u64
bpf_jiffies64(void)
{
	return kernel_jiffies();
}

int
kernel_run_host(struct kernel *k, uint32_t slots, uint32_t entries,
    uint8_t *buf, uint8_t **frame, size_t *len)
{
	struct sys_ctx ctx = { .data = *frame, .data_end = *frame + *len,
	    .ingress_ifindex = KERNEL_IFINDEX };
	int action;

	here = k;
	ring_size = slots;
	flow_mask = entries / XLB_FLOW_WAYS - 1;
	action = xlb(&ctx);
	assert(ctx.data >= buf && ctx.data_end <= buf + KERNEL_FRAME_MAX);
	*frame = ctx.data;
	*len = (size_t)(ctx.data_end - ctx.data);
	return action;
}

void
kernel_hash(struct kernel *k, const uint8_t *frame, bool source,
    uint32_t *select, uint64_t *flow)
{
	const struct xlb_hash *key = &kernel_tables(k)->settings.hash;
	const uint8_t *ip = frame + ETH_HLEN;

	uint32_t src[4], dst[4];

	if (frame[12] == 0x86) {
		memcpy(src, ip + 8, sizeof(src));
		memcpy(dst, ip + 24, sizeof(dst));
		*flow = hash_flow6(key, src, dst, get32(ip + PARSE_IP6_LEN),
		    ip[6]);
		*select = hash_select(source ? hash_source6(key, src) : *flow);
		return;
	}
	*flow = hash_flow4(key, get32(ip + 12), get32(ip + 16),
	    get32(ip + PARSE_IP4_LEN), ip[9]);
	*select = hash_select(source ? hash_source4(key, get32(ip + 12)) :
	    *flow);
}
