/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a valid configuration does that its author may not expect. */
#include "core/conf_bind.h"

#include <inttypes.h>

#include "core/arena.h"
#include "core/conf_schema.h"

static void
pool_warn(struct bind *b, const struct conf_pool *p)
{
	const struct node *n = b->pool.row[p - b->c->pool].node;

	size_t i;

	for (i = 0; i < p->nbackend && p->backend[i].weight == 0; i++)
		;
	if (i > 0 && i == p->nbackend)
		bind_member_fault(b, DIAG_WARNING, n, "backends", "every weight "
		    "is 0: nobody takes new flows");
	if (!p->min_healthy_percent && p->min_healthy > p->nbackend)
		bind_member_fault(b, DIAG_WARNING, n, "min_healthy", "%" PRIu32
		    " can never be reached with %zu backends", p->min_healthy,
		    p->nbackend);
}

/* Pools that a service uses, each once. */
static void
pools_warn(struct bind *b)
{
	const struct conf *c = b->c;
	bool *used = arena_calloc(b->a, c->npool, sizeof(*used));
	size_t i;

	for (i = 0; i < c->nservice; i++)
		used[c->service[i].pool - c->pool] = true;
	for (i = 0; i < c->npool; i++)
		if (used[i])
			pool_warn(b, &c->pool[i]);
}

void
conf_check_warnings(struct bind *b)
{
	const struct node *maglev = node_get(b->root[0], "maglev");
	const struct conf *c = b->c;

	pools_warn(b);
	if (c->nservice == 0)
		return;		/* nothing that could surprise */
	if (c->key_file == NULL)
		bind_member_fault(b, DIAG_WARNING, maglev != NULL ? maglev :
		    b->root[0], maglev != NULL ? "key_file" :
		    "maglev.key_file", "not set: without a secret, clients can "
		    "aim their flows at one backend");
}
