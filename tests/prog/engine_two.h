/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Both engines in one program. engine_two_*.c has each of them under names of
 * its own, TWO(name), and lists them here.
 */
#ifdef TWO
#define engine_open TWO(open)
#define engine_clock TWO(clock)
#define engine_verified TWO(verified)
#define engine_close TWO(close)
#define engine_program TWO(program)
#define engine_map TWO(map)
#define engine_ring TWO(ring)
#define engine_port TWO(port)
#define engine_run TWO(run)
#define engine_split TWO(split)
#define engine_get TWO(get)
#define engine_set TWO(set)
#define engine_clear TWO(clear)
#define engine_row_set TWO(row_set)
#define engine_event TWO(event)
#define engine_counters TWO(counters)
#endif

#ifndef XLB_PROG_ENGINE_TWO_H
#define XLB_PROG_ENGINE_TWO_H

#include "engine.h"

struct engine {
	const char *name;
	size_t shortest;	/* frame that it takes */
	int (*open)(const struct engine_config *c, uint32_t *insns, char *why,
	    size_t len);
	void *(*map)(const char *name, size_t *len);
	void *(*ring)(uint32_t number, size_t *len);
	int (*port)(uint32_t ifindex);
	int (*split)(size_t head);
	int (*run)(const uint8_t *frame, size_t len, uint8_t *out,
	    size_t *out_len);
	int (*clear)(const char *name);
	int (*row_set)(const char *name, uint32_t row, const void *value);
	int (*counters)(const char *name, uint32_t row, uint64_t *sum,
	    size_t n);
};

#define ENGINE_TWO(name, shortest) { name, shortest, engine_open, engine_map, \
    engine_ring, engine_port, engine_split, engine_run, engine_clear, \
    engine_row_set, engine_counters }

extern const struct engine engine_two_host, engine_two_bpf;

#endif
