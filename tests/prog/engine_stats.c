/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counters by the names that the tests call them. */
#include "engine.h"

#include <string.h>

#include "xlb_abi.h"

const uint64_t *
engine_stats(const struct xlb_stats *s, const char *name, uint32_t row)
{
	if (strcmp(name, "reasons") == 0)
		return (const uint64_t *)s->reasons.packets;
	if (strcmp(name, "service") == 0 && row < XLB_SERVICES)
		return (const uint64_t *)&s->service[row];
	if (strcmp(name, "backend") == 0 && row < XLB_BACKENDS)
		return (const uint64_t *)&s->backend[row];
	return NULL;
}
