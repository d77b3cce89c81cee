/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * All that the packet code asks of its surroundings, so that the same code runs
 * in the kernel and, compiled for the host, under sanitizers and fuzzers. On
 * the host the helpers of this name are ordinary functions that the test gives.
 */
#ifndef XLB_SYS_H
#define XLB_SYS_H

#include <linux/bpf.h>
#include <linux/types.h>

#ifdef __bpf__

#include <bpf/bpf_helpers.h>

#define sys_ctx xdp_md

/* A length that the verifier has to see as it is written: without it clang
 * may test another form of it than the one that is used. */
#define SYS_OPAQUE(x) __asm__ volatile("" : "+r"(x))

/* Of a product 6.1 knows the bounds only where the second factor is known. */
static __always_inline __u64
sys_mul(__u64 x, __u64 known)
{
	__asm__("%0 *= %1" : "+r"(x) : "r"(known));
	return x;
}

/* Set by userland before the program is loaded; constants to the verifier. */
#define SYS_RODATA const volatile

/* A map of one value whose address is part of the program: no look-up. There
 * can be one: libbpf makes an array of the object's .bss, mmapable. */
#define SYS_VALUE(type, name) type name
#define SYS_VALUE_OF(name) (&(name))

/* The kernel's side takes care of unaligned words; clang would split them. */
#define SYS_GET(bits) \
	static __always_inline __u##bits \
	get##bits(const void *p) \
	{ \
		return *(const __u##bits *)p; \
	}
#define SYS_PUT(bits) \
	static __always_inline void \
	put##bits(void *p, __u##bits v) \
	{ \
		*(__u##bits *)p = v; \
	}

static __always_inline __u8 *
sys_data(const struct sys_ctx *ctx)
{
	return (__u8 *)(long)ctx->data;
}

static __always_inline __u8 *
sys_end(const struct sys_ctx *ctx)
{
	return (__u8 *)(long)ctx->data_end;
}

#else

#include <string.h>

#define SYS_RODATA static
#define SYS_OPAQUE(x) ((void)0)
#undef __always_inline
#define __always_inline inline __attribute__((always_inline, unused))
#define __noinline __attribute__((noinline))
#define SEC(name) __attribute__((unused))
#define __uint(name, value) int(*name)[value]
#define __type(name, value) __typeof__(value) *name
#define __array(name, value) __typeof__(value) *name[]

#define SYS_VALUE(type, name) \
	struct { \
		__uint(max_entries, 1); \
		__type(key, __u32); \
		__type(value, type); \
	} name
#define SYS_VALUE_OF(name) sys_value(&(name))

static __always_inline __u64
sys_mul(__u64 x, __u64 known)
{
	return x * known;
}

struct sys_ctx {
	__u8 *data, *data_end;	/* the first buffer */
	__u32 ingress_ifindex;
};

void *bpf_map_lookup_elem(void *map, const void *key);
static inline void *
sys_value(void *map)
{
	const __u32 zero = 0;

	return bpf_map_lookup_elem(map, &zero);
}

long bpf_map_update_elem(void *map, const void *key, const void *value,
    __u64 flags);
long bpf_redirect_map(void *map, __u64 key, __u64 flags);
long bpf_xdp_adjust_head(struct sys_ctx *ctx, int delta);
long bpf_xdp_adjust_tail(struct sys_ctx *ctx, int delta);
__u64 bpf_xdp_get_buff_len(struct sys_ctx *ctx);
long bpf_xdp_load_bytes(struct sys_ctx *ctx, __u32 offset, void *buf,
    __u32 len);
long bpf_xdp_store_bytes(struct sys_ctx *ctx, __u32 offset, void *buf,
    __u32 len);
__s64 bpf_csum_diff(__be32 *from, __u32 from_size, __be32 *to, __u32 to_size,
    __u32 seed);
__u64 bpf_ktime_get_coarse_ns(void);
__u64 bpf_ktime_get_ns(void);
__u32 bpf_get_smp_processor_id(void);
long bpf_ringbuf_output(void *map, void *data, __u64 size, __u64 flags);
__u64 bpf_jiffies64(void);

#define SYS_GET(bits) \
	static __always_inline __u##bits \
	get##bits(const void *p) \
	{ \
		__u##bits v; \
\
		memcpy(&v, p, sizeof(v)); \
		return v; \
	}
#define SYS_PUT(bits) \
	static __always_inline void \
	put##bits(void *p, __u##bits v) \
	{ \
		memcpy(p, &v, sizeof(v)); \
	}

static __always_inline __u8 *
sys_data(const struct sys_ctx *ctx)
{
	return ctx->data;
}

static __always_inline __u8 *
sys_end(const struct sys_ctx *ctx)
{
	return ctx->data_end;
}

#endif

SYS_GET(16)
SYS_GET(32)
SYS_GET(64)
SYS_PUT(16)
SYS_PUT(32)
SYS_PUT(64)

/* Tells the compiler, which then does not test it. */
#define SYS_NEVER(x) \
	do { \
		if (x) \
			__builtin_unreachable(); \
	} while (0)

#define SYS_LITTLE (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)

/* Big-endian (wire) to host order and back, and the same for little-endian. */
static __always_inline __u16
be16(__u16 v)
{
	return SYS_LITTLE ? __builtin_bswap16(v) : v;
}

static __always_inline __u32
be32(__u32 v)
{
	return SYS_LITTLE ? __builtin_bswap32(v) : v;
}

static __always_inline __u32
le32(__u32 v)
{
	return SYS_LITTLE ? v : __builtin_bswap32(v);
}

static __always_inline __u64
le64(__u64 v)
{
	return SYS_LITTLE ? v : __builtin_bswap64(v);
}

/* Two words as they lie in memory. */
static __always_inline __u64
pair64(__u32 first, __u32 second)
{
	return SYS_LITTLE ? (__u64)second << 32 | first :
	    (__u64)first << 32 | second;
}

/* The kernel publishes by single stores: one load each, never repeated. */
#define READ_ONCE(x) (*(const volatile __typeof__(x) *)&(x))

#endif
