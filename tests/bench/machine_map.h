/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The kernel's maps as the bench's interpreter reaches them. */
#ifndef XLB_BENCH_MACHINE_MAP_H
#define XLB_BENCH_MACHINE_MAP_H

struct machine_map;
struct machine_maps;

struct machine_maps *machine_maps_new(void);
void machine_maps_free(struct machine_maps *s);

/* The map of this descriptor, or its first value; NULL after saying why. It is
 * the same for as long as the descriptor is open. */
void *machine_map(struct machine_maps *s, int fd, int value);

/* As the helpers do. Of a map that userland can't map, a value is the machine's
 * own: per-CPU ones begin as zeros, a hash's is a copy until the next call. */
void *machine_map_find(struct machine_map *map, const void *key);
long machine_map_put(struct machine_map *map, const void *key,
    const void *value);

#endif
