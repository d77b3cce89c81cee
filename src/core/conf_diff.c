/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Each configuration becomes rows of key and value by the key table, defaults
 * too; two such tables side by side have the differences. */
#include "core/conf_diff.h"

#include <string.h>

#include "core/arena.h"
#include "core/conf_schema.h"
#include "core/conf_value.h"
#include "core/rows.h"

struct row {
	const char *key, *value;
};

struct table {
	struct arena *a;
	struct row *row;
	size_t n;
};

static void section_rows(struct table *t, const struct section *s,
    const void *base, const char *path);

static void
row_add(struct table *t, const char *key, const char *value)
{
	struct row *r = arena_grow(t->a, &t->row, t->n++, sizeof(*r));

	r->key = key;
	r->value = value;
}

static const char *
below(struct table *t, const char *path, const char *name)
{
	return *path == '\0' ? name : arena_printf(t->a, "%s.%s", path, name);
}

/* An element of a list is called by its first value, a named one by its name. */
static void
elements_rows(struct table *t, const struct key *k, const void *base,
    const char *path)
{
	const char *at = *(const char *const *)(const void *)
	    ((const char *)base + k->offset), *own, *element;
	size_t n = *(const size_t *)(const void *)((const char *)base +
	    k->also), i;
	const struct head {
		struct mark mark;
		const char *name;
	} *head;

	for (i = 0; i < n; i++) {
		element = at + i * k->section->size;
		head = (const void *)element;
		own = k->type == KEY_NAMED ? below(t, path, head->name) :
		    arena_printf(t->a, "%s[%s]", path, value_print(
		    &k->section->key[0], element, t->a));
		row_add(t, own, "");
		section_rows(t, k->section, element, own);
	}
}

static void
key_rows(struct table *t, const struct key *k, const void *base,
    const char *path)
{
	const char *own = below(t, path, k->name), *value;

	if (k->type == KEY_SECTION) {
		if (k->also != 0) {
			if (!*(const bool *)((const char *)base + k->also))
				return;
			row_add(t, own, "");
		}
		section_rows(t, k->section, (const char *)base + k->offset,
		    own);
	} else if (k->section != NULL) {
		elements_rows(t, k, base, own);
	} else {
		value = conf_key_print(k, base, t->a);
		if (value != NULL && *value != '\0')
			row_add(t, own, value);
	}
}

static void
section_rows(struct table *t, const struct section *s, const void *base,
    const char *path)
{
	size_t i;

	for (i = 0; i < s->n; i++)
		key_rows(t, &s->key[i], base, path);
}

/* What is in an object comes right behind it: its separators are the first of
 * all characters. */
static int
rank(char c)
{
	return c == '.' ? 1 : c == '[' ? 2 : (unsigned char)c + 2;
}

static int
row_order(const void *a, const void *b)
{
	const char *s = ((const struct row *)a)->key;
	const char *t = ((const struct row *)b)->key;

	while (*s != '\0' && *s == *t)
		s++, t++;
	return (*s == '\0' ? 0 : rank(*s)) - (*t == '\0' ? 0 : rank(*t));
}

static void
table_make(struct table *t, const struct conf *c, struct arena *a)
{
	*t = (struct table){ .a = a };
	section_rows(t, schema_root(), c, "");
	rows_sort(t->row, t->n, sizeof(*t->row), row_order);
}

struct walk {
	struct arena *a;
	struct conf_change *out;
	size_t n;
	const char *whole;	/* an object of one side; NULL */
};

static bool
is_inside(const char *key, const char *whole)
{
	size_t len = whole != NULL ? strlen(whole) : 0;

	return len > 0 && strncmp(key, whole, len) == 0 &&
	    (key[len] == '.' || key[len] == '[');
}

static const char *
shown(const struct row *r)
{
	const char *last = r != NULL ? strrchr(r->key, '.') : NULL;

	if (last != NULL && strcmp(last, ".password") == 0)
		return "(hidden)";
	return r != NULL ? r->value : NULL;
}

static void
compare(const void *want, const void *found, void *arg)
{
	const struct row *is = want, *was = found, *any = is != NULL ? is : was;
	struct conf_change *c;
	struct walk *w = arg;

	if (is_inside(any->key, w->whole) || (is != NULL && was != NULL &&
	    strcmp(is->value, was->value) == 0))
		return;
	c = arena_grow(w->a, &w->out, w->n++, sizeof(*c));
	c->key = any->key;
	c->was = shown(was);
	c->is = shown(is);
	w->whole = *any->value == '\0' ? any->key : NULL;
}

size_t
conf_diff(const struct conf *was, const struct conf *is, struct arena *a,
    struct conf_change **out)
{
	struct walk w = { .a = a };
	struct table old, new;

	table_make(&old, was, a);
	table_make(&new, is, a);
	rows_walk(new.row, new.n, old.row, old.n, sizeof(struct row),
	    row_order, compare, &w);
	*out = w.out;
	return w.n;
}
