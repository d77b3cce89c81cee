/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Monotonic time as a type of its own: adding seconds to milliseconds does not
 * compile. Core code is given `now`; it never reads a clock. It stands still
 * while the machine sleeps, as it does for the packet program: what could not
 * answer then is not late, and what nobody watched was not well.
 */
#ifndef XLB_MONO_H
#define XLB_MONO_H

#include <stdint.h>

typedef struct {
	int64_t ns;		/* CLOCK_MONOTONIC */
} mono_t;

static inline mono_t
mono_add_ms(mono_t t, int64_t ms)
{
	return (mono_t){ t.ns + ms * 1000000 };
}

static inline int64_t
mono_ms_since(mono_t later, mono_t earlier)
{
	return (later.ns - earlier.ns) / 1000000;
}

static inline int
mono_before(mono_t a, mono_t b)
{
	return a.ns < b.ns;
}

#endif
