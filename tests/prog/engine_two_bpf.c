/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The kernel's engine, beside the other one. */
#define TWO(name) engine_bpf_##name
#include "engine_two.h"

#include "engine_bpf.c"

const struct engine engine_two_bpf = ENGINE_TWO("kernel", 14);
