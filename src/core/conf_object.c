/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Checks, pools and services: collected over all files, sorted by name, then
 * bound, so that a name may stand before what it names. */
#include "core/conf_bind.h"

#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/conf_schema.h"
#include "core/conf_value.h"
#include "core/dns.h"
#include "core/text.h"

static void
object_add(struct bind *b, struct objects *all, const char *name,
    const struct node *n)
{
	struct object *o = arena_grow(b->a, &all->row, all->n, sizeof(*o));

	o->name = name;
	o->node = n;
	o->seq = all->n++;
}

static void
named_collect(struct bind *b, struct objects *all, const struct node *map)
{
	char shown[TEXT_SHOW_MAX];
	const struct node *n;
	size_t i;

	if (map == NULL || !bind_expect(b, map, NODE_MAP))
		return;
	for (i = 0; i < map->n; i++) {
		n = map->child[i];
		if (!name_is_valid(n->key))
			bind_key_fault(b, n, "%s is not a name: a letter or "
			    "digit, then up to 62 letters, digits, _ or -",
			    text_show(n->key, shown));
		object_add(b, all, n->key, n);
	}
}

static void
services_collect(struct bind *b, const struct node *list)
{
	const struct node *n, *name;
	size_t i;

	if (list == NULL || !bind_expect(b, list, NODE_LIST))
		return;
	for (i = 0; i < list->n; i++) {
		n = list->child[i];
		name = node_get(n, "name");
		object_add(b, &b->service, name != NULL &&
		    name->kind == NODE_TEXT && !node_is_empty(name) ?
		    name->text : NULL, n);
	}
}

void
bind_root(struct bind *b, const struct node *root, bool fragment)
{
	const struct section *s = schema_root();
	const struct key *k;
	size_t i;

	if (!bind_expect(b, root, NODE_MAP))
		return;
	if (!fragment)
		bind_section(b, s, root, b->c);
	for (i = 0; fragment && i < root->n; i++) {
		k = schema_find(s, root->child[i]->key);
		if (k == NULL)
			bind_unknown(b, s, root->child[i]);
		else if (!(k->flags & KEY_FRAGMENT))
			bind_key_fault(b, root->child[i], "belongs into the "
			    "main file; here may be checks, pools and "
			    "services");
	}
	named_collect(b, &b->check, node_get(root, "checks"));
	named_collect(b, &b->pool, node_get(root, "pools"));
	services_collect(b, node_get(root, "services"));
}

static int
object_cmp(const void *a, const void *b)
{
	const struct object *oa = a, *ob = b;
	int c;

	if (oa->name == NULL || ob->name == NULL)
		c = (oa->name == NULL) - (ob->name == NULL);
	else
		c = strcmp(oa->name, ob->name);
	if (c != 0)
		return c;
	return oa->seq < ob->seq ? -1 : oa->seq > ob->seq;
}

static struct mark
object_mark(const struct object *o)
{
	const struct node *name;

	if (o->node->key != NULL)
		return o->node->key_mark;
	name = node_get(o->node, "name");
	return name != NULL ? name->mark : o->node->mark;
}

/* Sorts by name and drops the second of two with the same name. */
static void
objects_sort(struct bind *b, struct objects *all)
{
	struct object *o, *kept;
	size_t i, n = 0;

	if (all->n > 0)
		qsort(all->row, all->n, sizeof(*all->row), object_cmp);
	for (i = 0; i < all->n; i++) {
		o = &all->row[i];
		kept = n > 0 ? &all->row[n - 1] : NULL;
		if (kept == NULL || o->name == NULL ||
		    strcmp(kept->name, o->name) != 0) {
			all->row[n++] = *o;
			continue;
		}
		if (o->node->kind == NODE_BAD)
			continue;	/* twice in one mapping */
		if (o->node->key != NULL)
			bind_key_fault(b, o->node, "already at %s",
			    bind_place(b, object_mark(kept)));
		else
			bind_member_fault(b, DIAG_ERROR, o->node, "name",
			    "%s is already at %s", o->name,
			    bind_place(b, object_mark(kept)));
	}
	all->n = n;
}

static void
objects_bind(struct bind *b, const struct objects *all, const char *name,
    void *array)
{
	const struct section *s = schema_find(schema_root(), name)->section;
	const struct object *o;
	char *element;
	size_t i;

	for (i = 0; i < all->n; i++) {
		o = &all->row[i];
		element = (char *)array + i * s->size;
		*(struct mark *)(void *)element = object_mark(o);
		if (node_is_empty(o->node) || bind_expect(b, o->node, NODE_MAP))
			bind_section(b, s, o->node, element);
		else
			bind_section(b, s, NULL, element);
	}
}

/* Keys that belong to another type of check. */
static void
check_keys_refuse(struct bind *b, const struct object *o, enum check_type type)
{
	const struct section *s = schema_find(schema_root(), "checks")->section;
	const struct node *n = node_get(o->node, "type");
	const struct key_value *v = schema_find(s, "type")->value;
	const struct key *k;
	char only[KEY_ONLY_MAX];
	size_t i;

	while (v->name != NULL && (n == NULL || n->kind != NODE_TEXT ||
	    strcmp(n->text, v->name) != 0))
		v++;
	for (i = 0; v->name != NULL && i < s->n; i++) {
		k = &s->key[i];
		n = node_get(o->node, k->name);
		if (n != NULL && k->only != 0 && !(k->only & 1U << type))
			bind_key_fault(b, n, "only for type %s",
			    key_only_print(k->only, only));
	}
}

#define NAME_CHARS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz" \
	"0123456789-_"

/* True if `text` is a word that goes into a request as it is. */
static bool
token_fits(const char *text)
{
	return text[strspn(text, NAME_CHARS)] == '\0';
}

static void
http_check(struct bind *b, const struct object *o, const struct conf_check *c)
{
	if (c->path != NULL && (c->path[0] != '/' ||
	    strchr(c->path, ' ') != NULL))
		bind_member_fault(b, DIAG_ERROR, o->node, "path",
		    "has to begin with / and hold no space");
	if (c->method != NULL && !token_fits(c->method))
		bind_member_fault(b, DIAG_ERROR, o->node, "method",
		    "%s is not a method", c->method);
	if (c->host != NULL && strchr(c->host, ' ') != NULL)
		bind_member_fault(b, DIAG_ERROR, o->node, "host",
		    "%s holds a space", c->host);
}

/* A name, since TLS knows no server name that is an address (RFC 6066). */
static void
https_check(struct bind *b, const struct object *o, struct conf_check *c)
{
	const struct node *ca = node_get(o->node, "ca");
	struct addr a;

	if (ca != NULL)
		c->ca_mark = ca->mark;
	if (c->sni == NULL)
		return;
	if (addr_parse(c->sni, &a) == 0)
		bind_member_fault(b, DIAG_ERROR, o->node, "sni",
		    "%s is an address, not a name", c->sni);
	else if (strspn(c->sni, NAME_CHARS ".") != strlen(c->sni))
		bind_member_fault(b, DIAG_ERROR, o->node, "sni",
		    "%s is not a host name", c->sni);
}

static void
dns_check(struct bind *b, const struct object *o, const struct conf_check *c)
{
	uint8_t query[DNS_QUERY_MAX];
	char shown[TEXT_SHOW_MAX];

	if (c->qtype != NULL && dns_type_parse(c->qtype) == 0)
		bind_member_fault(b, DIAG_ERROR, o->node, "qtype",
		    "%s is not a type of DNS records: A, AAAA, NS, SOA, MX, "
		    "TXT, ..., or TYPE and its number",
		    text_show(c->qtype, shown));
	if (c->qname != NULL && dns_query_build(c->qname, 1, 0, query) == 0)
		bind_member_fault(b, DIAG_ERROR, o->node, "qname",
		    "%s is not a domain name", text_show(c->qname, shown));
}

static void
exec_check(struct bind *b, const struct object *o, struct conf_check *c)
{
	const struct node *user = node_get(o->node, "user");
	size_t n = 0, bytes = 0;

	c->user_mark = user != NULL ? user->mark : c->mark;
	if (c->via == VIA_TUNNEL)
		bind_member_fault(b, DIAG_ERROR, o->node, "via",
		    "a command makes its own connections: only direct");
	if (node_get(o->node, "command") != NULL && c->command == NULL)
		return;		/* reported */
	if (c->command == NULL || c->command[0] == NULL) {
		bind_member_fault(b, DIAG_ERROR, o->node, "command",
		    "required for type exec: the program and its arguments");
		return;
	}
	for (; c->command[n] != NULL; n++)
		bytes += strlen(c->command[n]) + 1;
	if (c->command[0][0] != '/')
		bind_member_fault(b, DIAG_ERROR, o->node, "command",
		    "has to begin with an absolute path");
	else if (n > CONF_COMMAND_MAX || bytes > CONF_COMMAND_BYTES)
		bind_member_fault(b, DIAG_ERROR, o->node, "command",
		    "more than %d words or %d bytes", CONF_COMMAND_MAX,
		    CONF_COMMAND_BYTES);
}

static void
check_bind(struct bind *b, const struct object *o, struct conf_check *c)
{
	char timeout[MSEC_STR_MAX], interval[MSEC_STR_MAX];

	c->name = arena_strdup(b->a, o->name);
	if (c->timeout_ms > c->interval_ms &&
	    node_get(o->node, "timeout") == NULL)
		c->timeout_ms = c->interval_ms;
	if (c->timeout_ms > c->interval_ms)
		bind_member_fault(b, DIAG_ERROR, o->node, "timeout",
		    "%s is more than the interval, %s",
		    msec_print(c->timeout_ms, timeout),
		    msec_print(c->interval_ms, interval));
	check_keys_refuse(b, o, c->type);
	if (c->type == CHECK_HTTP || c->type == CHECK_HTTPS)
		http_check(b, o, c);
	if (c->type == CHECK_HTTPS)
		https_check(b, o, c);
	if (c->type == CHECK_DNS)
		dns_check(b, o, c);
	if (c->type == CHECK_EXEC)
		exec_check(b, o, c);
}

void
bind_objects(struct bind *b)
{
	struct conf *c = b->c;
	size_t i;

	objects_sort(b, &b->check);
	objects_sort(b, &b->pool);
	objects_sort(b, &b->service);
	c->ncheck = b->check.n;
	c->npool = b->pool.n;
	c->nservice = b->service.n;
	c->check = arena_calloc(b->a, c->ncheck, sizeof(*c->check));
	c->pool = arena_calloc(b->a, c->npool, sizeof(*c->pool));
	c->service = arena_calloc(b->a, c->nservice, sizeof(*c->service));
	objects_bind(b, &b->check, "checks", c->check);
	for (i = 0; i < c->ncheck; i++)
		check_bind(b, &b->check.row[i], &c->check[i]);
	objects_bind(b, &b->pool, "pools", c->pool);
	for (i = 0; i < c->npool; i++)
		c->pool[i].name = arena_strdup(b->a, b->pool.row[i].name);
	objects_bind(b, &b->service, "services", c->service);
}
