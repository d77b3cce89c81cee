/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of the reasons: those of the table that the packet program is made
 * from. */
#include "core/reason.h"

#include <string.h>

static const struct {
	const char *name;
	enum reason_kind kind;
} reason[XLB_REASON_COUNT] = {
#define X(NAME, name, kind) [XLB_REASON_##NAME] = { #name, REASON_##kind },
	XLB_REASONS(X)
#undef X
};

const char *
reason_name(enum xlb_reason r)
{
	return r < XLB_REASON_COUNT ? reason[r].name : "unknown";
}

enum reason_kind
reason_kind(enum xlb_reason r)
{
	return r < XLB_REASON_COUNT ? reason[r].kind : REASON_DROP;
}

int
reason_find(const char *name)
{
	int i;

	for (i = 0; i < XLB_REASON_COUNT; i++)
		if (strcmp(reason[i].name, name) == 0)
			return i;
	return -1;
}
