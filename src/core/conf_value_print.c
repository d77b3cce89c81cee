/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Values of the configuration's structs to the texts that parse to them. */
#include "core/conf_value.h"

#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>

#include "core/arena.h"
#include "core/conf_schema.h"

static const void *
field_const(const void *base, size_t offset)
{
	return (const char *)base + offset;
}

static const char *
number_print(const struct key *k, const void *at, struct arena *a)
{
	uint64_t n = k->type == KEY_U16 ? *(const uint16_t *)at :
	    k->type == KEY_U32 ? *(const uint32_t *)at :
	    *(const uint64_t *)at;

	if (n == 0 && (k->flags & KEY_ZERO_UNSET))
		return NULL;
	return arena_printf(a, "%" PRIu64, n);
}

static const char *
enum_print(const struct key *k, int value)
{
	const struct key_value *v;

	for (v = k->value; v->name != NULL; v++)
		if (v->value == value)
			return v->name;
	return NULL;	/* KEY_ZERO_UNSET */
}

static const char *
metrics_print(const struct conf *c, struct arena *a)
{
	char buf[ADDRPORT_STR_MAX];

	if (!c->metrics_on)
		return "off";
	return arena_strdup(a, addrport_print(&c->metrics_addr,
	    c->metrics_port, buf));
}

const char *
value_print(const struct key *k, const void *base, struct arena *a)
{
	const void *at = field_const(base, k->offset);
	bool also = k->also == 0 || *(const bool *)field_const(base, k->also);
	const struct conf_check *const *check = at;
	const struct conf_pool *const *pool = at;
	char buf[PREFIX_STR_MAX];

	switch (k->type) {
	case KEY_BOOL:
		return *(const bool *)at ? "true" : "false";
	case KEY_U16:
	case KEY_U32:
	case KEY_U64:
		return also ? number_print(k, at, a) : NULL;
	case KEY_MSEC:
		return arena_strdup(a, msec_print(*(const uint32_t *)at, buf));
	case KEY_ENUM:
		return enum_print(k, *(const int *)at);
	case KEY_ADDR:
	case KEY_ADDR4:
		return addr_is_zero(at) ? NULL :
		    arena_strdup(a, addr_print(at, buf));
	case KEY_PREFIX:
	case KEY_PREFIX4:
	case KEY_PREFIX6:
		return also ? arena_strdup(a, prefix_print(at, buf)) : NULL;
	case KEY_COUNT:
		return arena_printf(a, "%" PRIu32 "%s",
		    *(const uint32_t *)at, also ? "%" : "");
	case KEY_METRICS:
		return metrics_print(base, a);
	case KEY_CHECK_REF:
		return *check == NULL ? NULL : (*check)->name;
	case KEY_POOL_REF:
		return *pool == NULL ? NULL : (*pool)->name;
	default:
		return *(const char *const *)at;
	}
}

const char *
community_print(const struct community *c, char buf[COMMUNITY_STR_MAX])
{
	int n;

	n = snprintf(buf, COMMUNITY_STR_MAX, "%" PRIu32 ":%" PRIu32, c->a,
	    c->b);
	if (c->large)
		snprintf(buf + n, COMMUNITY_STR_MAX - (size_t)n, ":%" PRIu32,
		    c->c);
	return buf;
}

const char *
listen_print(const struct conf_listen *l, char buf[LISTEN_STR_MAX])
{
	const char *proto = l->proto == IPPROTO_TCP ? "tcp" : "udp";

	if (l->port == 0)
		snprintf(buf, LISTEN_STR_MAX, "%s/*", proto);
	else
		snprintf(buf, LISTEN_STR_MAX, "%s/%u", proto, l->port);
	return buf;
}
