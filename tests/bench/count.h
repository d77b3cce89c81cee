/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Instructions that a packet takes, by the interpreter of machine.h. */
#ifndef XLB_BENCH_COUNT_H
#define XLB_BENCH_COUNT_H

#include <stdint.h>

struct driver_bpf;

/* Of xlb for one of the driver's packets, on average, once `first` and a few
 * thousand have been there. -1 after saying why; also if one of them does not
 * end in `action`. */
double count_insns(const struct driver_bpf *driver, int action, uint32_t first);

#endif
