/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which numbers are taken, as a bitmap. */
#include "core/ids.h"

#include "core/arena.h"

void
ids_init(struct ids *ids, uint32_t first, uint32_t end, struct arena *a)
{
	ids->taken = arena_calloc(a, end / 64 + 1, sizeof(*ids->taken));
	ids->first = ids->next = first;
	ids->end = end;
}

bool
ids_taken(const struct ids *ids, uint32_t number)
{
	return number < ids->end && (ids->taken[number / 64] >> number % 64 & 1);
}

bool
ids_take(struct ids *ids, uint32_t number)
{
	if (number < ids->first || number >= ids->end ||
	    ids_taken(ids, number))
		return false;
	ids->taken[number / 64] |= 1ULL << number % 64;
	return true;
}

uint32_t
ids_new(struct ids *ids)
{
	for (; ids->next < ids->end; ids->next++)
		if (ids_take(ids, ids->next))
			return ids->next++;
	return IDS_NONE;
}
