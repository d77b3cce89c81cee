/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The packet program as something to be fed: in the kernel (engine_bpf.c), or
 * compiled for this machine (engine_host.c). The Makefile picks.
 */
#ifndef XLB_PROG_ENGINE_H
#define XLB_PROG_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct xlb_stats;

#define ENGINE_FRAME_MAX 16384

struct engine_config {
	uint32_t ring_size;
	uint32_t flow_entries;	/* a power of two */
	uint32_t nat_rows;	/* the same; 0: as few as there can be */
	bool frags;
};

/* 0; 1: not permitted here, with the reason; -1: failed, with the reason.
 * `insns` as loaded, 0 where that means nothing. */
int engine_open(const struct engine_config *c, uint32_t *insns, char *why,
    size_t len);

/* Instructions that the verifier went through, which is what a load costs; 0: there
 * was none. */
uint32_t engine_verified(void);

/* What the program's clocks say from now on. -1: they are the kernel's. */
int engine_clock(uint64_t ns, uint64_t jiffies);

/* Gives back all of it, with the memory that was mapped. */
void engine_close(void);

/* The loaded program's descriptor; -1: not in the kernel. */
int engine_program(void);
struct bpf_insn;
/* Its instructions as they were given to the kernel, maps by descriptor; NULL:
 * not in the kernel. */
const struct bpf_insn *engine_insns(size_t *n);

/* Memory of an array that userland maps; NULL if there is none. */
void *engine_map(const char *name, size_t *len);
/* A new ring, made part of ring_table; its memory. */
void *engine_ring(uint32_t number, size_t *len);
/* Packets may leave by this interface number. 0, or -1. */
int engine_port(uint32_t ifindex);

/* From now on the first buffer of a frame holds `head` bytes of it; 0: all that
 * fit. 0, or -errno: this kernel (before 6.18) can't. */
int engine_split(size_t head);

/* The XDP action, or -errno. The frame comes in by interface 1. */
int engine_run(const uint8_t *frame, size_t len, uint8_t *out, size_t *out_len);

/* A value of a hash, read and written. 0, or -errno. */
int engine_get(const char *name, const void *key, void *value, size_t *len);
int engine_set(const char *name, const void *key, const void *value);

/* Empties a hash. 0, or -errno. */
int engine_clear(const char *name);
/* A row of a per-CPU array becomes `value` on each. 0, or -errno. */
int engine_row_set(const char *name, uint32_t row, const void *value);

/* The next record of the map `events`. 0 and `record`; 1: there is none; -1. */
int engine_event(uint8_t *record, size_t len);

/* `n` counters, summed over the CPUs: of `reasons`, or of a row of `service` or
 * `backend` in struct xlb_stats; else of a row of the per-CPU map of that name.
 * 0, or -1. */
int engine_counters(const char *name, uint32_t row, uint64_t *sum, size_t n);
/* On this machine: called, if it is set, before a packet looks at a row of NAT's
 * table, since there another CPU's may go on meanwhile: on another thread, one
 * at a time. */
extern void (*engine_nat_look)(void);
/* Where the first three are in one CPU's memory; NULL: another name. */
const uint64_t *engine_stats(const struct xlb_stats *s, const char *name,
    uint32_t row);

#endif
