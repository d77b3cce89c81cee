/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Addresses as core has them, as keys of the program's maps, and back. */
#include "decap/decap.h"

#include <string.h>

struct decap_prefix
key_build(const struct prefix *p)
{
	struct decap_prefix key;

	memset(&key, 0, sizeof(key));
	key.bits = DECAP_FAMILY_BITS + (uint32_t)p->len;
	if (addr_is4(&p->addr)) {
		key.a.family = 4;
		memcpy(key.a.addr, p->addr.b + 12, 4);
	} else {
		key.a.family = 6;
		memcpy(key.a.addr, p->addr.b, 16);
	}
	return key;
}

void
key_prefix(const struct decap_prefix *key, struct prefix *out)
{
	uint32_t be;

	if (key->a.family == 4) {
		memcpy(&be, key->a.addr, sizeof(be));
		out->addr = addr_from4(be);
	} else {
		memcpy(out->addr.b, key->a.addr, sizeof(out->addr.b));
	}
	out->len = (uint8_t)(key->bits - DECAP_FAMILY_BITS);
}
