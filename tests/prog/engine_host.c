/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The same packet program as an ordinary function: under the sanitizers an
 * access outside of the frame or of a map ends the test.
 */
#include "engine.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "xlb.bpf.c"

#define HEADROOM 256
#define RINGS 8
#define PORTS 8

struct host_map {
	const char *name;
	void *handle;		/* the program's own name for it */
	size_t size, entries;
	uint8_t *memory;
};

#define HOST_MAP(map) { #map, &(map), sizeof(*(map).value), \
    sizeof(*(map).max_entries) / sizeof(int), NULL }

static struct host_map host_map[] = {
	HOST_MAP(tables), HOST_MAP(stats), HOST_MAP(rare),
	HOST_MAP(event_state), HOST_MAP(flows), HOST_MAP(flow_stats),
	HOST_MAP(nat)
};
#define HOST_MAPS (sizeof(host_map) / sizeof(host_map[0]))

static uint8_t *ring_memory[RINGS];
static size_t ring_len;
static uint32_t port[PORTS], nport;
static uint64_t clock_ns, clock_jiffies;	/* 0: this machine's */

/* The one hash: rows in the order of their making, the oldest goes first. */
static struct host_row {
	struct xlb_fragment_key key;
	struct xlb_fragment value;
} host_row[XLB_FRAGMENTS];
static size_t nrow;

static struct host_row *
host_row_find(const void *key)
{
	size_t i;

	for (i = 0; i < nrow; i++)
		if (memcmp(&host_row[i].key, key, sizeof(host_row[i].key)) == 0)
			return &host_row[i];
	return NULL;
}

static struct xlb_event event[XLB_EVENT_BYTES / (sizeof(struct xlb_event) + 8)];
static size_t nevent;

void (*engine_nat_look)(void);
/* A CPU's scratch, where there is more than one: a thread is one. */
static _Thread_local struct xlb_rare host_rare;

static struct host_map *
host_map_find(const char *name)
{
	size_t i;

	for (i = 0; i < HOST_MAPS; i++)
		if (strcmp(host_map[i].name, name) == 0)
			return &host_map[i];
	return NULL;
}

void *
bpf_map_lookup_elem(void *map, const void *key)
{
	uint32_t at;
	size_t i;

	if (map == (void *)&fragments) {
		struct host_row *found = host_row_find(key);

		return found == NULL ? NULL : &found->value;
	}
	memcpy(&at, key, sizeof(at));
	if (map == (void *)&rare && engine_nat_look != NULL)
		return &host_rare;
	if (map == (void *)&nat && engine_nat_look != NULL)
		engine_nat_look();
	if (map == (void *)&ring_table)
		return at < RINGS && ring_memory[at] != NULL ?
		    &ring_memory[at] : NULL;
	for (i = 0; i < RINGS; i++)
		if (map == (void *)&ring_memory[i])
			return at == 0 ? ring_memory[i] : NULL;
	for (i = 0; i < HOST_MAPS; i++)
		if (map == host_map[i].handle)
			return at < host_map[i].entries ?
			    host_map[i].memory + at * host_map[i].size : NULL;
	assert(!"a map that is not here");
	return NULL;
}

long
bpf_map_update_elem(void *map, const void *key, const void *value, __u64 flags)
{
	struct host_row *at = host_row_find(key);

	assert(map == (void *)&fragments && flags == BPF_ANY);
	if (at == NULL && nrow == XLB_FRAGMENTS)
		memmove(host_row, host_row + 1,
		    --nrow * sizeof(*host_row));
	if (at == NULL)
		at = &host_row[nrow++];
	memcpy(&at->key, key, sizeof(at->key));
	memcpy(&at->value, value, sizeof(at->value));
	return 0;
}

/* Full when the kernel's is, each record with 8 bytes in front. */
long
bpf_ringbuf_output(void *map, void *data, __u64 size, __u64 flags)
{
	assert(map == (void *)&events && size == sizeof(event[0]) &&
	    flags == 0);
	if (nevent == sizeof(event) / sizeof(event[0]))
		return -EAGAIN;
	memcpy(&event[nevent++], data, size);
	return 0;
}

__u32
bpf_get_smp_processor_id(void)
{
	return 0;
}

long
bpf_redirect_map(void *map, __u64 key, __u64 flags)
{
	uint32_t i;

	assert(map == (void *)&tx_ports);
	for (i = 0; i < nport; i++)
		if (port[i] == key)
			return XDP_REDIRECT;
	return (long)flags;
}

/* Its first buffer is a block of its own, so that each byte outside counts as
 * such; the rest is another one. */
struct host_frame {
	struct sys_ctx ctx;
	uint8_t *tail;
	size_t tail_len;
	size_t headroom;
};

static size_t split;		/* bytes in the first buffer; 0: all */

static struct host_frame *
host_frame(struct sys_ctx *ctx)
{
	return (struct host_frame *)ctx;
}

static size_t
head_len(const struct sys_ctx *ctx)
{
	return (size_t)(ctx->data_end - ctx->data);
}

/* The first buffer begins `by` bytes later, and is `len` long. */
static void
head_move(struct sys_ctx *ctx, long by, size_t len)
{
	size_t have = head_len(ctx);
	uint8_t *data = calloc(1, len);

	assert(data != NULL);
	if (by < 0)
		memcpy(data - by, ctx->data, have);
	else
		memcpy(data, ctx->data + by, len);
	free(ctx->data);
	ctx->data = data;
	ctx->data_end = data + len;
}

/* The kernel keeps a struct of 40 bytes in the headroom. */
long
bpf_xdp_adjust_head(struct sys_ctx *ctx, int delta)
{
	struct host_frame *f = host_frame(ctx);

	if ((long)f->headroom + delta < 40 ||
	    (long)head_len(ctx) - delta < ETH_HLEN)
		return -EINVAL;
	f->headroom = (size_t)((long)f->headroom + delta);
	head_move(ctx, delta, (size_t)((long)head_len(ctx) - delta));
	return 0;
}

/* The frame gets shorter; longer it is never made. */
long
bpf_xdp_adjust_tail(struct sys_ctx *ctx, int delta)
{
	struct host_frame *f = host_frame(ctx);
	size_t cut = (size_t)(0 - (long)delta);

	assert(delta <= 0);
	if (head_len(ctx) + f->tail_len < cut + ETH_HLEN)
		return -EINVAL;
	if (cut < f->tail_len) {
		f->tail_len -= cut;
		return 0;
	}
	cut -= f->tail_len;
	f->tail_len = 0;
	if (cut > 0)
		head_move(ctx, 0, head_len(ctx) - cut);
	return 0;
}

__u64
bpf_xdp_get_buff_len(struct sys_ctx *ctx)
{
	return head_len(ctx) + host_frame(ctx)->tail_len;
}

/* The byte at `offset` of the frame. */
static uint8_t *
frame_byte(struct sys_ctx *ctx, size_t offset)
{
	return offset < head_len(ctx) ? ctx->data + offset :
	    host_frame(ctx)->tail + (offset - head_len(ctx));
}

long
bpf_xdp_load_bytes(struct sys_ctx *ctx, __u32 offset, void *buf, __u32 len)
{
	size_t have = bpf_xdp_get_buff_len(ctx), i;

	if (offset > have || len > have - offset)
		return -EINVAL;
	for (i = 0; i < len; i++)
		((uint8_t *)buf)[i] = *frame_byte(ctx, offset + i);
	return 0;
}

long
bpf_xdp_store_bytes(struct sys_ctx *ctx, __u32 offset, void *buf, __u32 len)
{
	size_t have = bpf_xdp_get_buff_len(ctx), i;

	if (offset > have || len > have - offset)
		return -EINVAL;
	for (i = 0; i < len; i++)
		*frame_byte(ctx, offset + i) = ((uint8_t *)buf)[i];
	return 0;
}

/* As the kernel's, with its limits before 6.13. */
__s64
bpf_csum_diff(__be32 *from, __u32 from_size, __be32 *to, __u32 to_size,
    __u32 seed)
{
	__u64 sum = seed;
	__u32 i;

	if (from_size % 4 != 0 || to_size % 4 != 0 || from_size + to_size > 512)
		return -EINVAL;
	for (i = 0; i < from_size / 4; i++)
		sum += (__u32)~from[i];
	for (i = 0; i < to_size / 4; i++)
		sum += to[i];
	while (sum >> 32 != 0)
		sum = (sum & 0xffffffff) + (sum >> 32);
	return (__s64)sum;
}

__u64
bpf_ktime_get_coarse_ns(void)
{
	struct timespec t;

	if (clock_ns != 0)
		return clock_ns;
	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	return (__u64)t.tv_sec * 1000000000 + (__u64)t.tv_nsec;
}

__u64
bpf_ktime_get_ns(void)
{
	return bpf_ktime_get_coarse_ns();
}

__u64
bpf_jiffies64(void)
{
	return clock_ns != 0 ? clock_jiffies :
	    bpf_ktime_get_coarse_ns() / 4000000;
}

uint32_t
engine_verified(void)
{
	return 0;
}

int
engine_clock(uint64_t ns, uint64_t jiffies)
{
	clock_ns = ns;
	clock_jiffies = jiffies;
	return 0;
}

int
engine_open(const struct engine_config *c, uint32_t *insns, char *why,
    size_t len)
{
	size_t i;

	ring_size = c->ring_size;
	flow_mask = c->flow_entries / XLB_FLOW_WAYS - 1;
	host_map_find("flows")->entries = c->flow_entries / XLB_FLOW_WAYS;
	if (c->nat_rows != 0) {
		nat_mask = c->nat_rows - 1;
		host_map_find("nat")->entries = c->nat_rows;
	}
	frags = c->frags;
	ring_len = xlb_ring_bytes(c->ring_size);
	for (i = 0; i < HOST_MAPS; i++) {
		host_map[i].memory =
		    calloc(host_map[i].entries, host_map[i].size);
		if (host_map[i].memory == NULL) {
			snprintf(why, len, "out of memory");
			return -1;
		}
	}
	*insns = 0;
	return 0;
}

void
engine_close(void)
{
	size_t i;

	for (i = 0; i < HOST_MAPS; i++)
		free(host_map[i].memory);
	for (i = 0; i < RINGS; i++) {
		free(ring_memory[i]);
		ring_memory[i] = NULL;
	}
}

int
engine_program(void)
{
	return -1;
}

void *
engine_map(const char *name, size_t *len)
{
	struct host_map *m = host_map_find(name);

	if (m == NULL)
		return NULL;
	*len = m->size * m->entries;
	return m->memory;
}

void *
engine_ring(uint32_t number, size_t *len)
{
	if (number >= RINGS)
		return NULL;
	free(ring_memory[number]);
	*len = ring_len;
	return ring_memory[number] = calloc(1, ring_len);
}

int
engine_port(uint32_t ifindex)
{
	if (nport == PORTS)
		return -1;
	port[nport++] = ifindex;
	return 0;
}

int
engine_split(size_t head)
{
	split = head;
	return 0;
}

int
engine_run(const uint8_t *frame, size_t len, uint8_t *out, size_t *out_len)
{
	size_t head = split == 0 || split > len ? len : split;
	struct host_frame f = { .ctx.ingress_ifindex = 1,
	    .headroom = HEADROOM, .tail_len = len - head };
	int action;

	f.ctx.data = malloc(head > 0 ? head : 1);
	f.tail = malloc(len > head ? len - head : 1);
	if (f.ctx.data == NULL || f.tail == NULL)
		return -ENOMEM;
	memcpy(f.ctx.data, frame, head);
	memcpy(f.tail, frame + head, len - head);
	f.ctx.data_end = f.ctx.data + head;
	action = xlb(&f.ctx);
	*out_len = bpf_xdp_get_buff_len(&f.ctx);
	bpf_xdp_load_bytes(&f.ctx, 0, out, (__u32)*out_len);
	free(f.ctx.data);
	free(f.tail);
	return action;
}

int
engine_get(const char *name, const void *key, void *value, size_t *len)
{
	struct host_row *found = host_row_find(key);

	if (strcmp(name, "fragments") != 0 || found == NULL)
		return -ENOENT;
	*len = sizeof(found->value);
	memcpy(value, &found->value, *len);
	return 0;
}

int
engine_set(const char *name, const void *key, const void *value)
{
	return strcmp(name, "fragments") != 0 ? -ENOENT :
	    (int)bpf_map_update_elem(&fragments, key, value, BPF_ANY);
}

int
engine_clear(const char *name)
{
	if (strcmp(name, "fragments") != 0)
		return -ENOENT;
	nrow = 0;
	return 0;
}

int
engine_row_set(const char *name, uint32_t row, const void *value)
{
	struct host_map *m = host_map_find(name);

	if (m == NULL || row >= m->entries)
		return -ENOENT;
	memcpy(m->memory + row * m->size, value, m->size);
	return 0;
}

int
engine_event(uint8_t *record, size_t len)
{
	if (nevent == 0)
		return 1;
	if (len != sizeof(event[0]))
		return -1;
	memcpy(record, &event[0], len);
	memmove(event, event + 1, --nevent * sizeof(event[0]));
	return 0;
}

int
engine_counters(const char *name, uint32_t row, uint64_t *sum, size_t n)
{
	struct host_map *m = host_map_find("stats");
	const uint64_t *word;

	word = engine_stats((const struct xlb_stats *)(void *)m->memory, name,
	    row);
	if (word != NULL) {
		memcpy(sum, word, n * sizeof(*sum));
		return 0;
	}
	m = host_map_find(name);
	if (m == NULL || row >= m->entries || n * sizeof(*sum) > m->size)
		return -1;
	memcpy(sum, m->memory + row * m->size, n * sizeof(*sum));
	return 0;
}
