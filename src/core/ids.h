/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Numbers of rows: which are taken, and the lowest that is free. Rows keep
 * their numbers for life, so an unchanged object never moves in the maps.
 */
#ifndef XLB_IDS_H
#define XLB_IDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;

#define IDS_NONE UINT32_MAX

struct ids {
	uint64_t *taken;	/* a bit per number, from 0 on */
	uint32_t first, end;	/* numbers are first..end-1 */
	uint32_t next;		/* none below is free */
};

void ids_init(struct ids *ids, uint32_t first, uint32_t end, struct arena *a);
/* False if it is out of range or already taken. */
bool ids_take(struct ids *ids, uint32_t number);
bool ids_taken(const struct ids *ids, uint32_t number);
uint32_t ids_new(struct ids *ids);	/* taken from now on; IDS_NONE: full */

#endif
