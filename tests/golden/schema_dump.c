/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The key table and the limits, one a line, for the test of the manual. */
#include <inttypes.h>
#include <stdio.h>

#include "core/conf_schema.h"

static void
key_dump(const struct section *s, const struct key *k, void *arg)
{
	(void)arg;
	printf("key\t%s%s%s\t", s->path, *s->path != '\0' ? "." : "", k->name);
	key_describe(k, stdout);
	printf("\t%s\n", k->help);
}

int
main(void)
{
	const struct conf_limit *l;
	unsigned i;

	schema_walk(schema_root(), key_dump, NULL);
	for (i = 0; i < LIMIT_COUNT; i++) {
		l = conf_limit_get((enum conf_limit_kind)i);
		printf("limit\t%s\t%" PRIu64 "\t%s\n", l->what, l->max, l->why);
	}
	return fflush(stdout) != 0;
}
