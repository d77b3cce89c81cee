/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "core/source.h"

#include <string.h>

bool
source_is_plain(uint32_t at, const struct xlb_settings *s)
{
	uint8_t b[4] = { 0 }, prefix[4], mask[4];

	/* its place is the two bytes as they lie in memory */
	memcpy(b, &(uint16_t){ (uint16_t)at }, 2);
	memcpy(prefix, &s->source4, sizeof(prefix));
	memcpy(mask, &s->source4_mask, sizeof(mask));
	if (b[0] == 0 || b[0] == 127 || b[0] >= 224)
		return false;
	return ((b[0] ^ prefix[0]) & ~mask[0]) != 0 ||
	    ((b[1] ^ prefix[1]) & ~mask[1]) != 0;
}
