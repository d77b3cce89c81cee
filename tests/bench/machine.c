/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An interpreter for BPF, with what helpers the packet program calls. */
#include "machine.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <bpf/bpf.h>
#include <linux/bpf.h>

#include "machine_map.h"

#define STACK 512
#define DEPTH 8			/* calls of subprograms, one in another */
#define STEPS 1000000		/* of one packet, then something is wrong */
#define HEADROOM 256
#define BUFFER 4096
#define IFINDEX 1		/* where BPF_PROG_TEST_RUN lets frames come in */

struct machine {
	uint64_t r[MAX_BPF_REG];
	uint8_t stack[DEPTH + 1][STACK];
	struct {
		size_t pc;
		uint64_t r[4];	/* 6 to 9, the caller's */
	} frame[DEPTH];
	size_t depth;
	struct machine_maps *maps;
	struct xdp_md *ctx;	/* it and the frame where 32 bits reach */
	uint8_t *buffer;
	const struct machine_program *program, *next;
	bool count;
	uint64_t insns, ns, jiffies;
};

struct machine *
machine_new(void)
{
	struct machine *m = calloc(1, sizeof(*m));
	void *low;

	if (m == NULL)
		return NULL;
	m->maps = machine_maps_new();
	/* struct xdp_md has 32 bits for an address */
	low = mmap((void *)(uintptr_t)0x10000000, 2 * BUFFER,
	    PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (low == MAP_FAILED || m->maps == NULL ||
	    (uintptr_t)low + 2 * BUFFER > UINT32_MAX) {
		if (low != MAP_FAILED)
			munmap(low, 2 * BUFFER);
		machine_maps_free(m->maps);
		free(m);
		return NULL;
	}
	m->ctx = low;
	m->buffer = (uint8_t *)low + BUFFER;
	return m;
}

void
machine_free(struct machine *m)
{
	if (m == NULL)
		return;
	munmap(m->ctx, 2 * BUFFER);
	machine_maps_free(m->maps);
	free(m);
}

void
machine_clock(struct machine *m, uint64_t ns, uint64_t jiffies)
{
	m->ns = ns;
	m->jiffies = jiffies;
}

uint64_t
machine_insns(const struct machine *m)
{
	return m->insns;
}

static void *
pointer(uint64_t address)
{
	return (void *)(uintptr_t)address;
}

static uint64_t
load(const void *from, uint8_t size)
{
	uint16_t half;
	uint32_t word;
	uint64_t both;

	switch (size) {
	case BPF_B:
		return *(const uint8_t *)from;
	case BPF_H:
		memcpy(&half, from, sizeof(half));
		return half;
	case BPF_W:
		memcpy(&word, from, sizeof(word));
		return word;
	default:
		memcpy(&both, from, sizeof(both));
		return both;
	}
}

static void
store(void *to, uint8_t size, uint64_t value)
{
	uint16_t half = (uint16_t)value;
	uint32_t word = (uint32_t)value;

	switch (size) {
	case BPF_B:
		*(uint8_t *)to = (uint8_t)value;
		break;
	case BPF_H:
		memcpy(to, &half, sizeof(half));
		break;
	case BPF_W:
		memcpy(to, &word, sizeof(word));
		break;
	default:
		memcpy(to, &value, sizeof(value));
	}
}

static uint64_t
swapped(uint64_t value, int32_t bits)
{
	return bits == 16 ? __builtin_bswap16((uint16_t)value) :
	    bits == 32 ? __builtin_bswap32((uint32_t)value) :
	    __builtin_bswap64(value);
}

static uint64_t
ended(const struct bpf_insn *i, uint64_t value)
{
	bool big = BPF_SRC(i->code) == BPF_TO_BE;

	if (big == (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__))
		return i->imm == 16 ? (uint16_t)value :
		    i->imm == 32 ? (uint32_t)value : value;
	return swapped(value, i->imm);
}

/* Both widths: a 32-bit one is given and returns 32 bits. */
static bool
alu(uint8_t op, bool wide, uint64_t a, uint64_t b, uint64_t *to)
{
	unsigned shift = (unsigned)(b & (wide ? 63 : 31));

	switch (op) {
	case BPF_ADD: *to = a + b; return true;
	case BPF_SUB: *to = a - b; return true;
	case BPF_MUL: *to = a * b; return true;
	case BPF_DIV: *to = b == 0 ? 0 : a / b; return true;
	case BPF_MOD: *to = b == 0 ? a : a % b; return true;
	case BPF_OR: *to = a | b; return true;
	case BPF_AND: *to = a & b; return true;
	case BPF_XOR: *to = a ^ b; return true;
	case BPF_LSH: *to = a << shift; return true;
	case BPF_RSH: *to = a >> shift; return true;
	case BPF_NEG: *to = -a; return true;
	case BPF_MOV: *to = b; return true;
	case BPF_ARSH:
		*to = wide ? (uint64_t)((int64_t)a >> shift) :
		    (uint32_t)((int32_t)a >> shift);
		return true;
	}
	return false;
}

static bool
alu_step(struct machine *m, const struct bpf_insn *i)
{
	bool wide = BPF_CLASS(i->code) == BPF_ALU64;
	uint64_t a = m->r[i->dst_reg], b = BPF_SRC(i->code) == BPF_X ?
	    m->r[i->src_reg] : (uint64_t)(int64_t)i->imm;

	if (BPF_OP(i->code) == BPF_END) {
		m->r[i->dst_reg] = ended(i, a);
		return !wide;
	}
	if (!wide) {
		a = (uint32_t)a;
		b = (uint32_t)b;
	}
	if (!alu(BPF_OP(i->code), wide, a, b, &a))
		return false;
	m->r[i->dst_reg] = wide ? a : (uint32_t)a;
	return true;
}

/* -1: no such operation. */
static int
jumps(const struct machine *m, const struct bpf_insn *i)
{
	uint64_t a = m->r[i->dst_reg], b = BPF_SRC(i->code) == BPF_X ?
	    m->r[i->src_reg] : (uint64_t)(int64_t)i->imm;
	int64_t sa = (int64_t)a, sb = (int64_t)b;

	if (BPF_CLASS(i->code) == BPF_JMP32) {
		a = (uint32_t)a;
		b = (uint32_t)b;
		sa = (int32_t)a;
		sb = (int32_t)b;
	}
	switch (BPF_OP(i->code)) {
	case BPF_JA: return 1;
	case BPF_JEQ: return a == b;
	case BPF_JNE: return a != b;
	case BPF_JGT: return a > b;
	case BPF_JGE: return a >= b;
	case BPF_JLT: return a < b;
	case BPF_JLE: return a <= b;
	case BPF_JSET: return (a & b) != 0;
	case BPF_JSGT: return sa > sb;
	case BPF_JSGE: return sa >= sb;
	case BPF_JSLT: return sa < sb;
	case BPF_JSLE: return sa <= sb;
	}
	return -1;
}

/* One thread and no others: what is exchanged need not be atomic. */
static bool
atomic(struct machine *m, const struct bpf_insn *i)
{
	void *at = pointer(m->r[i->dst_reg] + (uint64_t)(int64_t)i->off);
	uint64_t was = load(at, BPF_SIZE(i->code)), now = m->r[i->src_reg];

	switch (i->imm & ~BPF_FETCH) {
	case BPF_ADD: now = was + now; break;
	case BPF_OR: now = was | now; break;
	case BPF_AND: now = was & now; break;
	case BPF_XOR: now = was ^ now; break;
	case BPF_XCHG & ~BPF_FETCH: break;
	case BPF_CMPXCHG & ~BPF_FETCH:
		if (was != m->r[BPF_REG_0])
			now = was;
		break;
	default:
		return false;
	}
	store(at, BPF_SIZE(i->code), now);
	if ((i->imm & ~BPF_FETCH) == (BPF_CMPXCHG & ~BPF_FETCH))
		m->r[BPF_REG_0] = was;
	else if (i->imm & BPF_FETCH)
		m->r[i->src_reg] = was;
	return true;
}

static void
adjust_head(struct machine *m)
{
	uint8_t *data = (uint8_t *)pointer(m->ctx->data) + (int32_t)m->r[2];

	m->r[0] = (uint64_t)-1;
	if (data < m->buffer || data + 14 > (uint8_t *)pointer(m->ctx->data_end))
		return;
	m->ctx->data = (uint32_t)(uintptr_t)data;
	m->r[0] = 0;
}

static void
adjust_tail(struct machine *m)
{
	uint8_t *end = (uint8_t *)pointer(m->ctx->data_end) +
	    (int32_t)m->r[2];

	m->r[0] = (uint64_t)-1;
	if (end > m->buffer + BUFFER ||
	    end < (uint8_t *)pointer(m->ctx->data) + 14)
		return;
	m->ctx->data_end = (uint32_t)(uintptr_t)end;
	m->r[0] = 0;
}

static void
load_bytes(struct machine *m)
{
	const uint8_t *from = (const uint8_t *)pointer(m->ctx->data) + m->r[2];

	m->r[0] = (uint64_t)-1;
	if (from + m->r[4] > (const uint8_t *)pointer(m->ctx->data_end))
		return;
	memcpy(pointer(m->r[3]), from, m->r[4]);
	m->r[0] = 0;
}

/* Only sums, as the packet program uses it. */
static void
csum_diff(struct machine *m)
{
	const uint8_t *at = pointer(m->r[3]);
	uint64_t i, sum = m->r[5];

	for (i = 0; i < m->r[4]; i += 4)
		sum += load(at + i, BPF_W);
	sum = (sum & UINT32_MAX) + (sum >> 32);
	m->r[0] = (sum & UINT32_MAX) + (sum >> 32);
}

/* False: none that is known here. */
static bool
helper(struct machine *m, int32_t number)
{
	switch (number) {
	case BPF_FUNC_map_lookup_elem:
		m->r[0] = (uintptr_t)machine_map_find(pointer(m->r[1]),
		    pointer(m->r[2]));
		return true;
	case BPF_FUNC_map_update_elem:
		m->r[0] = (uint64_t)machine_map_put(pointer(m->r[1]),
		    pointer(m->r[2]), pointer(m->r[3]));
		return true;
	case BPF_FUNC_get_smp_processor_id:
		m->r[0] = 0;
		return true;
	case BPF_FUNC_jiffies64:
		m->r[0] = m->jiffies;
		return true;
	case BPF_FUNC_ktime_get_coarse_ns:
	case BPF_FUNC_ktime_get_ns:
		m->r[0] = m->ns;
		return true;
	case BPF_FUNC_xdp_adjust_head:
		adjust_head(m);
		return true;
	case BPF_FUNC_xdp_adjust_tail:
		adjust_tail(m);
		return true;
	case BPF_FUNC_xdp_get_buff_len:
		m->r[0] = m->ctx->data_end - m->ctx->data;
		return true;
	case BPF_FUNC_xdp_load_bytes:
		load_bytes(m);
		return true;
	case BPF_FUNC_csum_diff:
		csum_diff(m);
		return true;
	}
	return false;
}

/* Where to go on; `pc` is that of the call. */
static bool
call(struct machine *m, const struct bpf_insn *i, size_t *pc)
{
	if (i->src_reg == BPF_PSEUDO_CALL) {
		if (m->depth == DEPTH)
			return false;
		m->frame[m->depth].pc = *pc;
		memcpy(m->frame[m->depth].r, &m->r[6], 4 * sizeof(m->r[0]));
		m->depth++;
		m->r[BPF_REG_10] = (uintptr_t)m->stack[m->depth] + STACK;
		*pc += (size_t)(int64_t)i->imm + 1;
		return true;
	}
	if (i->imm == BPF_FUNC_tail_call && m->next != NULL) {
		m->program = m->next;
		m->next = NULL;
		m->count = true;
		m->depth = 0;
		m->r[BPF_REG_10] = (uintptr_t)m->stack[0] + STACK;
		m->r[BPF_REG_1] = (uintptr_t)m->ctx;
		*pc = 0;
		return true;
	}
	(*pc)++;
	return i->src_reg == 0 && helper(m, i->imm);
}

/* From the end of a subprogram. */
static void
back(struct machine *m, size_t *pc)
{
	m->depth--;
	memcpy(&m->r[6], m->frame[m->depth].r, 4 * sizeof(m->r[0]));
	m->r[BPF_REG_10] = (uintptr_t)m->stack[m->depth] + STACK;
	*pc = m->frame[m->depth].pc + 1;
}

static bool
constant(struct machine *m, const struct bpf_insn *i)
{
	uint64_t to = (uint32_t)i[0].imm | (uint64_t)(uint32_t)i[1].imm << 32;

	if (i->src_reg == BPF_PSEUDO_MAP_FD ||
	    i->src_reg == BPF_PSEUDO_MAP_VALUE) {
		to = (uintptr_t)machine_map(m->maps, i[0].imm,
		    i->src_reg == BPF_PSEUDO_MAP_VALUE);
		if (to == 0)
			return false;
		if (i->src_reg == BPF_PSEUDO_MAP_VALUE)
			to += (uint32_t)i[1].imm;
	} else if (i->src_reg != 0) {
		return false;
	}
	m->r[i->dst_reg] = to;
	return true;
}

static bool
memory(struct machine *m, const struct bpf_insn *i)
{
	uint64_t off = (uint64_t)(int64_t)i->off;
	uint8_t size = BPF_SIZE(i->code);

	if (BPF_CLASS(i->code) == BPF_LDX && BPF_MODE(i->code) == BPF_MEM)
		m->r[i->dst_reg] = load(pointer(m->r[i->src_reg] + off), size);
	else if (BPF_CLASS(i->code) == BPF_ST)
		store(pointer(m->r[i->dst_reg] + off), size,
		    (uint64_t)(int64_t)i->imm);
	else if (BPF_MODE(i->code) == BPF_ATOMIC)
		return atomic(m, i);
	else if (BPF_MODE(i->code) == BPF_MEM)
		store(pointer(m->r[i->dst_reg] + off), size,
		    m->r[i->src_reg]);
	else
		return false;
	return true;
}

/* One instruction; `pc` is that of the next one. False: it is not known. */
static bool
step(struct machine *m, size_t *pc)
{
	const struct bpf_insn *i = &m->program->insn[*pc];
	int jump;

	switch (BPF_CLASS(i->code)) {
	case BPF_ALU:
	case BPF_ALU64:
		(*pc)++;
		return alu_step(m, i);
	case BPF_LD:
		*pc += 2;
		return i->code == (BPF_LD | BPF_IMM | BPF_DW) && constant(m, i);
	case BPF_LDX:
	case BPF_ST:
	case BPF_STX:
		(*pc)++;
		return memory(m, i);
	default:
		if (i->code == (BPF_JMP | BPF_CALL))
			return call(m, i, pc);
		jump = jumps(m, i);
		*pc += jump == 1 ? (size_t)(int64_t)i->off + 1 : 1;
		return jump != -1;
	}
}

static int
run(struct machine *m)
{
	size_t pc = 0, at, steps;

	for (steps = 0; steps < STEPS && pc < m->program->n; steps++) {
		at = pc;
		m->insns += m->count;
		if (m->program->insn[at].code == (BPF_JMP | BPF_EXIT)) {
			if (m->depth == 0)
				return (int)m->r[BPF_REG_0];
			back(m, &pc);
		} else if (!step(m, &pc)) {
			fprintf(stderr, "bench: instruction %zu: code 0x%02x "
			    "imm %d is not known here\n", at,
			    m->program->insn[at].code,
			    m->program->insn[at].imm);
			return -1;
		}
	}
	fprintf(stderr, "bench: the program does not end\n");
	return -1;
}

int
machine_run(struct machine *m, const struct machine_program *first,
    const struct machine_program *next, const void *frame, size_t len)
{
	uint8_t *data = m->buffer + HEADROOM;

	if (len > BUFFER - HEADROOM)
		return -1;
	memcpy(data, frame, len);
	memset(m->ctx, 0, sizeof(*m->ctx));
	m->ctx->data = (uint32_t)(uintptr_t)data;
	m->ctx->data_end = (uint32_t)(uintptr_t)(data + len);
	m->ctx->ingress_ifindex = IFINDEX;
	m->program = first;
	m->next = next;
	m->count = next == NULL;
	m->depth = 0;
	m->r[BPF_REG_1] = (uintptr_t)m->ctx;
	m->r[BPF_REG_10] = (uintptr_t)m->stack[0] + STACK;
	return run(m);
}
