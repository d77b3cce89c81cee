/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The packet program with a clock that the test turns. */
#include "../../bpf/sys.h"

/* Of .data, since .bss is `tables` alone. */
volatile __u64 clock_ns = 1, clock_jiffies = 1;

static __always_inline __u64
clock_now(void)
{
	return clock_ns;
}

static __always_inline __u64
clock_tick(void)
{
	return clock_jiffies;
}

#define bpf_ktime_get_ns clock_now
#define bpf_ktime_get_coarse_ns clock_now
#define bpf_jiffies64 clock_tick

#include "../../bpf/xlb.bpf.c"
