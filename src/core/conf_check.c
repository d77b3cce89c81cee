/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Rules across the objects of a configuration: limits, duplicates, what has to
 * fit together. Runs after mistakes too, and skips the values that have them:
 * an address of 16 zero bytes, a protocol 0, a name or pool NULL. */
#include "core/conf_bind.h"

#include <inttypes.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/conf_schema.h"
#include "core/conf_value.h"

/* The key at the top of the main file, or the file. */
static const struct node *
top_node(const struct bind *b, const char *key)
{
	const struct node *n = NULL;
	size_t i;

	for (i = 0; i < b->nroot && n == NULL; i++)
		n = node_get(b->root[i], key);
	return n != NULL ? n : b->root[0];
}

static void
limit_fault(struct bind *b, const struct node *n, enum conf_limit_kind kind)
{
	const struct conf_limit *l = conf_limit_get(kind);

	bind_key_fault(b, n, "more than %" PRIu64 " %s (%s)", l->max, l->what,
	    l->why);
}

/* Points at the first object too many, in the order of the files. */
static bool
objects_limit(struct bind *b, const struct objects *all,
    enum conf_limit_kind kind)
{
	size_t i;

	if (all->n <= conf_limit_get(kind)->max)
		return true;
	for (i = 0; i < all->n; i++)
		if (all->row[i].seq == conf_limit_get(kind)->max)
			limit_fault(b, all->row[i].node, kind);
	return false;
}

static void
sums_limit(struct bind *b)
{
	const struct conf *c = b->c;
	size_t i, backends = 0, listeners = 0;

	for (i = 0; i < c->npool; i++) {
		if (backends <= CONF_BACKENDS_MAX &&
		    backends + c->pool[i].nbackend > CONF_BACKENDS_MAX)
			limit_fault(b, node_get(b->pool.row[i].node,
			    "backends"), LIMIT_BACKENDS);
		backends += c->pool[i].nbackend;
	}
	for (i = 0; i < c->nservice; i++) {
		if (listeners <= CONF_LISTENERS_MAX && listeners +
		    c->service[i].naddress * c->service[i].nlisten >
		    CONF_LISTENERS_MAX)
			limit_fault(b, node_get(b->service.row[i].node,
			    "listen"), LIMIT_LISTENERS);
		listeners += c->service[i].naddress * c->service[i].nlisten;
	}
}

static void
interfaces_check(struct bind *b)
{
	const struct conf *c = b->c;
	const struct node *list = top_node(b, "interfaces"), *n;
	size_t i, j;

	if (c->nservice > 0 && c->ninterface == 0)
		bind_member_fault(b, DIAG_ERROR, b->root[0], "interfaces",
		    "required where there are services");
	if (c->ninterface > CONF_INTERFACES_MAX) {
		limit_fault(b, list->child[CONF_INTERFACES_MAX],
		    LIMIT_INTERFACES);
		return;
	}
	for (i = 0; i < c->ninterface; i++)
		for (j = 0; j < i; j++) {
			if (c->interface[i].name == NULL ||
			    c->interface[j].name == NULL ||
			    strcmp(c->interface[i].name,
			    c->interface[j].name) != 0)
				continue;
			n = list->child[i];
			bind_member_fault(b, DIAG_ERROR, n, "name",
			    "%s is already at %s", c->interface[i].name,
			    bind_place(b, c->interface[j].mark));
			break;
		}
}

void
conf_check_rules(struct bind *b)
{
	bool fits;

	fits = objects_limit(b, &b->service, LIMIT_SERVICES);
	fits = objects_limit(b, &b->pool, LIMIT_POOLS) && fits;
	interfaces_check(b);
	if (!fits)
		return;
	sums_limit(b);
}
