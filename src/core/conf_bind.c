/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A node tree and the key table to the structs of conf.h; goes on after a
 * mistake, so that one run shows all of them. */
#include "core/conf_bind.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/conf_schema.h"
#include "core/conf_value.h"
#include "core/text.h"

static void
fault(struct bind *b, enum diag_level level, struct mark at, const char *path,
    const char *fmt, va_list ap)
{
	char *what;

	if (vasprintf(&what, fmt, ap) < 0)
		abort();
	diag_add(b->dg, level, at, "%s%s%s", path, *path != '\0' ? ": " : "",
	    what);
	free(what);
}

void
bind_fault(struct bind *b, enum diag_level level, const struct node *n,
    const char *fmt, ...)
{
	char path[YAML_PATH_MAX];
	va_list ap;

	va_start(ap, fmt);
	fault(b, level, n->mark, node_path(n, path), fmt, ap);
	va_end(ap);
}

void
bind_key_fault(struct bind *b, const struct node *n, const char *fmt, ...)
{
	char path[YAML_PATH_MAX];
	va_list ap;

	va_start(ap, fmt);
	fault(b, DIAG_ERROR, n->key != NULL ? n->key_mark : n->mark,
	    node_path(n, path), fmt, ap);
	va_end(ap);
}

void
bind_member_fault(struct bind *b, enum diag_level level,
    const struct node *map, const char *key, const char *fmt, ...)
{
	const struct node *n = node_get(map, key);
	char path[YAML_PATH_MAX];
	struct mark at = n != NULL ? n->mark : map->mark;
	size_t used;
	va_list ap;

	/* an empty mapping begins nowhere: its key does */
	if (n == NULL && node_is_empty(map))
		at = map->key_mark;
	node_path(map, path);
	used = strlen(path);
	/* an address may stand for the mapping that would hold it */
	if (map->kind != NODE_TEXT || node_is_empty(map))
		snprintf(path + used, sizeof(path) - used, "%s%s",
		    used > 0 ? "." : "", key);
	va_start(ap, fmt);
	fault(b, level, at, path, fmt, ap);
	va_end(ap);
}

const struct node *
bind_element(const struct node *object, const char *key, size_t i)
{
	return node_get(object, key)->child[i];
}

const char *
bind_place(struct bind *b, struct mark at)
{
	return arena_printf(b->a, "%s:%u:%u", at.file, at.line, at.col);
}

static bool
is_section(const struct key *k)
{
	return k->type >= KEY_SECTION;
}

static bool
is_list(const struct key *k)
{
	return (k->type >= KEY_COMMUNITIES && k->type <= KEY_LISTENS) ||
	    k->type == KEY_LIST || k->type == KEY_ADDRESSES;
}

bool
bind_expect(struct bind *b, const struct node *n, enum node_kind kind)
{
	if (n->kind == kind)
		return true;
	if (n->kind == NODE_BAD || (kind != NODE_TEXT && node_is_empty(n)))
		return false;
	bind_fault(b, DIAG_ERROR, n, "%s where %s is expected",
	    node_kind_text(n), kind == NODE_MAP ? "a mapping" :
	    kind == NODE_LIST ? "a list" : "text");
	return false;
}

static const char *
text_expect(struct bind *b, const struct node *n)
{
	if (!bind_expect(b, n, NODE_TEXT))
		return NULL;
	if (!node_is_empty(n))
		return n->text;
	bind_key_fault(b, n, "has no value");
	return NULL;
}

static void
default_set(struct bind *b, const struct key *k, void *base)
{
	char why[WHY_MAX];
	struct http_range_list *codes;
	int rc;

	if (k->def == NULL)
		return;
	switch (k->type) {
	case KEY_TEXT:
	case KEY_PATH:
		*(const char **)((char *)base + k->offset) = k->def;
		return;
	case KEY_CODES:
		codes = (void *)((char *)base + k->offset);
		codes->row = arena_alloc(b->a, sizeof(*codes->row));
		codes->n = 1;
		rc = codes_parse(k->def, codes->row, why);
		break;
	default:
		rc = value_parse(k, k->def, b->a, base, why);
	}
	assert(rc == 0);
}

static void
bind_value(struct bind *b, const struct key *k, const struct node *n,
    void *base)
{
	const char *text = text_expect(b, n);
	char why[WHY_MAX];

	if (text == NULL)
		return;
	if (value_parse(k, text, b->a, base, why) < 0)
		bind_fault(b, DIAG_ERROR, n, "%s", why);
}

static const struct object *
object_find(const struct objects *all, const char *name)
{
	size_t low = 0, high = all->n, mid;
	int c;

	while (low < high) {
		mid = low + (high - low) / 2;
		c = strcmp(all->row[mid].name, name);
		if (c == 0)
			return &all->row[mid];
		if (c < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return NULL;
}

static void
unknown_name(struct bind *b, const struct objects *all, const char *kind,
    const struct node *n)
{
	char shown[TEXT_SHOW_MAX];
	struct text_guess g;
	size_t i;

	text_guess_init(&g, n->text);
	for (i = 0; i < all->n; i++)
		text_guess_try(&g, all->row[i].name);
	bind_fault(b, DIAG_ERROR, n, "no %s is called %s%s%s%s", kind,
	    text_show(n->text, shown), g.best != NULL ? "; did you mean " : "",
	    g.best != NULL ? g.best : "", g.best != NULL ? "?" : "");
}

static void
bind_ref(struct bind *b, const struct key *k, const struct node *n, void *base)
{
	bool pool = k->type == KEY_POOL_REF;
	const struct objects *all = pool ? &b->pool : &b->check;
	const char *text = text_expect(b, n);
	void *at = (char *)base + k->offset;
	const struct object *o;

	if (text == NULL)
		return;
	o = object_find(all, text);
	if (o == NULL)
		unknown_name(b, all, pool ? "pool" : "check", n);
	else if (pool)
		*(const struct conf_pool **)at = &b->c->pool[o - all->row];
	else
		*(const struct conf_check **)at = &b->c->check[o - all->row];
}

/* One element of a list of texts; it has its place even if it is wrong. */
static void
bind_item(struct bind *b, const struct key *k, const struct node *n,
    void *array)
{
	const char *text = text_expect(b, n);
	struct conf_listen *listen;
	char why[WHY_MAX];
	int rc = 0;

	if (text == NULL)
		return;
	switch (k->type) {
	case KEY_COMMUNITIES:
		rc = community_parse(text, (struct community *)array +
		    n->index, why);
		break;
	case KEY_CODES:
		rc = codes_parse(text, (struct http_range *)array + n->index,
		    why);
		break;
	case KEY_ADDRS4:
	case KEY_ADDRS6:
		rc = addrs_parse(k, text, (struct addr *)array + n->index,
		    why);
		break;
	case KEY_LISTENS:
		listen = (struct conf_listen *)array + n->index;
		listen->mark = n->mark;
		rc = listen_parse(text, listen, why);
		break;
	default:
		((const char **)array)[n->index] = arena_strdup(b->a, text);
	}
	if (rc < 0)
		bind_fault(b, DIAG_ERROR, n, "%s", why);
}

static void
bind_texts(struct bind *b, const struct key *k, const struct node *n,
    void *base)
{
	void *at = (char *)base + k->offset, *array;
	struct community_list *communities = at;
	struct http_range_list *codes = at;
	struct addr_list *addrs = at;
	size_t i;

	if (!bind_expect(b, n, NODE_LIST))
		return;
	switch (k->type) {
	case KEY_COMMUNITIES:
		array = communities->row = arena_calloc(b->a, n->n,
		    sizeof(*communities->row));
		communities->n = n->n;
		break;
	case KEY_CODES:
		array = codes->row = arena_calloc(b->a, n->n,
		    sizeof(*codes->row));
		codes->n = n->n;
		break;
	case KEY_ADDRS4:
	case KEY_ADDRS6:
		array = addrs->row = arena_calloc(b->a, n->n,
		    sizeof(*addrs->row));
		addrs->n = n->n;
		break;
	case KEY_LISTENS:
		array = arena_calloc(b->a, n->n, sizeof(struct conf_listen));
		*(struct conf_listen **)at = array;
		*(size_t *)(void *)((char *)base + k->also) = n->n;
		break;
	default:
		array = arena_calloc(b->a, n->n + 1, sizeof(char *));
		*(const char ***)at = array;
	}
	for (i = 0; i < n->n; i++)
		bind_item(b, k, n->child[i], array);
}

static void
bind_list(struct bind *b, const struct key *k, const struct node *n,
    void *base)
{
	const struct section *s = k->section;
	const struct node *item;
	char *array, *element;
	size_t i;

	if (!bind_expect(b, n, NODE_LIST))
		return;
	array = arena_calloc(b->a, n->n, s->size);
	*(void **)(void *)((char *)base + k->offset) = array;
	*(size_t *)(void *)((char *)base + k->also) = n->n;
	for (i = 0; i < n->n; i++) {
		item = n->child[i];
		element = array + i * s->size;
		/* every element begins with its mark */
		*(struct mark *)(void *)element = item->mark;
		if (k->type == KEY_ADDRESSES && item->kind == NODE_TEXT) {
			bind_section(b, s, NULL, element);
			bind_value(b, &s->key[0], item, element);
		} else if (bind_expect(b, item, NODE_MAP)) {
			bind_section(b, s, item, element);
		} else if (node_is_empty(item)) {
			bind_fault(b, DIAG_ERROR, item, "has no value");
		}
	}
}

static void
bind_present(struct bind *b, const struct key *k, const struct node *n,
    void *base)
{
	if (n->kind == NODE_BAD)
		return;
	if (k->type == KEY_LIST || k->type == KEY_ADDRESSES)
		bind_list(b, k, n, base);
	else if (is_list(k))
		bind_texts(b, k, n, base);
	else if (k->type == KEY_CHECK_REF || k->type == KEY_POOL_REF)
		bind_ref(b, k, n, base);
	else
		bind_value(b, k, n, base);
}

static void
bind_key(struct bind *b, const struct key *k, const struct node *map,
    const struct node *n, void *base)
{
	void *at = (char *)base + k->offset;

	if (k->flags & KEY_FRAGMENT)
		return;		/* bind_objects() */
	if (n == NULL && map != NULL && (k->flags & KEY_REQUIRED))
		bind_member_fault(b, DIAG_ERROR, map, k->name, "required");
	if (k->type == KEY_SECTION) {
		if (n != NULL && k->also != 0)
			*(bool *)((char *)base + k->also) = true;
		if (n != NULL && !bind_expect(b, n, NODE_MAP) &&
		    !node_is_empty(n))
			n = NULL;
		bind_section(b, k->section, n, at);
		return;
	}
	if (!is_section(k))
		default_set(b, k, base);
	if (n != NULL)
		bind_present(b, k, n, base);
}

struct elsewhere {
	const char *name, *path;
};

static void
elsewhere_find(const struct section *s, const struct key *k, void *arg)
{
	struct elsewhere *e = arg;

	if (e->path == NULL && strcmp(k->name, e->name) == 0)
		e->path = s->path;
}

void
bind_unknown(struct bind *b, const struct section *s, const struct node *n)
{
	struct elsewhere e = { n->key, NULL };
	struct text_guess g;
	size_t i;

	text_guess_init(&g, n->key);
	for (i = 0; i < s->n; i++)
		text_guess_try(&g, s->key[i].name);
	schema_walk(schema_root(), elsewhere_find, &e);
	if (g.best != NULL)
		bind_key_fault(b, n, "unknown key; did you mean %s?", g.best);
	else if (e.path != NULL)
		bind_key_fault(b, n, "unknown key here; it belongs to %s",
		    *e.path != '\0' ? e.path : "the top");
	else
		bind_key_fault(b, n, "unknown key");
}

void
bind_section(struct bind *b, const struct section *s, const struct node *map,
    void *base)
{
	const struct key *k;
	size_t i;

	for (i = 0; i < s->n; i++) {
		k = &s->key[i];
		bind_key(b, k, map, map == NULL ? NULL :
		    node_get(map, k->name), base);
	}
	if (map == NULL)
		return;
	for (i = 0; i < map->n; i++)
		if (schema_find(s, map->child[i]->key) == NULL)
			bind_unknown(b, s, map->child[i]);
}

void
conf_defaults(const struct section *s, struct arena *a, void *base)
{
	struct bind b = { .a = a };

	bind_section(&b, s, NULL, base);
}
