/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The engine of this machine, beside the other one. */
#define TWO(name) engine_host_##name
#include "engine_two.h"

/* libbpf has functions of these names, too */
#define bpf_map_lookup_elem host_map_lookup_elem
#define bpf_map_update_elem host_map_update_elem
#include "engine_host.c"

const struct engine engine_two_host = ENGINE_TWO("host", 0);
