/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Bytes to a node tree, by libyaml's events; the only user of <yaml.h>. */
#include "core/yaml.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "core/arena.h"
#include "core/text.h"

struct reader {
	yaml_parser_t parser;
	const char *name;
	const char *text;
	size_t len;
	struct arena *a;
	struct diag *dg;
	size_t nodes;
};

static struct node *node_read(struct reader *r, yaml_event_t *ev,
    const struct node *parent);

/* Length of the UTF-8 sequence at `p`, 0 if it is none. */
static size_t
utf8_decode(const unsigned char *p, size_t len, uint32_t *out)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t n, i;
	uint32_t c;

	n = p[0] < 0x80 ? 1 : p[0] >> 5 == 6 ? 2 : p[0] >> 4 == 14 ? 3 :
	    p[0] >> 3 == 30 ? 4 : 0;
	if (n == 0 || n > len)
		return 0;
	c = n == 1 ? p[0] : p[0] & (0x7fU >> n);
	for (i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (p[i] & 0x3f);
	}
	if (c < least[n] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
		return 0;
	*out = c;
	return n;
}

/* Characters that YAML does not allow, and those that only YAML takes for a
 * line's end: editors would count other lines than we do. */
static const char *
char_fault(uint32_t c, uint32_t next)
{
	if (c == 0)
		return "a NUL byte";
	if (c == '\r')
		return next == '\n' ? NULL :
		    "a carriage return without a line feed";
	if ((c < 0x20 && c != '\t' && c != '\n') || (c >= 0x7f && c < 0xa0))
		return "a control character";
	if (c == 0x2028 || c == 0x2029)
		return "a Unicode line separator";
	if (c == 0xfeff)
		return "a byte order mark in the middle of the file";
	if (c == 0xfffe || c == 0xffff)
		return "a character that is none";
	return NULL;
}

/* 0, or -1: the first byte that makes the file no text is reported. */
static int
text_check(struct reader *r)
{
	const unsigned char *p = (const unsigned char *)r->text;
	struct mark at = { r->name, 1, 1 };
	const char *fault;
	size_t i, n;
	uint32_t c;

	for (i = 0; i < r->len; i += n) {
		n = utf8_decode(p + i, r->len - i, &c);
		if (n == 0) {
			diag_add(r->dg, DIAG_ERROR, at,
			    "byte 0x%02x is not UTF-8", p[i]);
			return -1;
		}
		fault = char_fault(c, i + 1 < r->len ? p[i + 1] : 0);
		if (fault != NULL) {
			diag_add(r->dg, DIAG_ERROR, at, "%s (0x%02x)", fault,
			    c);
			return -1;
		}
		at.col++;
		if (c == '\n') {
			at.line++;
			at.col = 1;
		}
	}
	return 0;
}

static struct mark
mark_make(const struct reader *r, const yaml_mark_t *m)
{
	return (struct mark){ r->name, (unsigned)m->line + 1,
	    (unsigned)m->column + 1 };
}

static const char *
problem_text(const struct reader *r)
{
	const char *s = r->parser.problem;
	size_t at = r->parser.problem_mark.index, i, n = 0;

	if (strstr(s, "mapping values are not allowed") != NULL)
		return "a second colon in the line: quote a text that holds \": \"";
	if (strstr(s, "cannot start any token") == NULL)
		return s;
	/* the mark counts characters */
	for (i = 0; i < r->len; i++)
		if (((unsigned char)r->text[i] & 0xc0) != 0x80 && n++ == at)
			break;
	if (i == r->len)
		return s;
	if (r->text[i] == '\t')
		return "a tab where only spaces may indent";
	return arena_printf(r->a, "%c cannot begin a value: quote it",
	    r->text[i]);
}

static void
syntax_error(struct reader *r)
{
	const yaml_parser_t *p = &r->parser;

	if (p->error == YAML_MEMORY_ERROR)
		abort();
	if (p->context != NULL &&
	    p->context_mark.index != p->problem_mark.index)
		diag_add(r->dg, DIAG_ERROR, mark_make(r, &p->problem_mark),
		    "%s, %s that begins at %zu:%zu", problem_text(r),
		    p->context, p->context_mark.line + 1,
		    p->context_mark.column + 1);
	else
		diag_add(r->dg, DIAG_ERROR, mark_make(r, &p->problem_mark),
		    "%s", problem_text(r));
}

static int
event_next(struct reader *r, yaml_event_t *ev)
{
	if (yaml_parser_parse(&r->parser, ev))
		return 0;
	syntax_error(r);
	return -1;
}

static struct node *
node_new(struct reader *r, const yaml_event_t *ev, const struct node *parent)
{
	struct mark at = mark_make(r, &ev->start_mark);
	const struct node *up;
	struct node *n;
	unsigned depth = 0;

	for (up = parent; up != NULL; up = up->parent)
		depth++;
	if (depth > YAML_DEPTH_MAX) {
		diag_add(r->dg, DIAG_ERROR, at,
		    "nested deeper than %d levels", YAML_DEPTH_MAX);
		return NULL;
	}
	if (++r->nodes > YAML_NODES_MAX) {
		diag_add(r->dg, DIAG_ERROR, at,
		    "more than %d values in one file", YAML_NODES_MAX);
		return NULL;
	}
	n = arena_alloc(r->a, sizeof(*n));
	n->mark = at;
	n->parent = parent;
	return n;
}

static void
refuse(struct reader *r, struct node *n, const char *fmt, const void *name)
{
	char buf[TEXT_SHOW_MAX];

	diag_add(r->dg, DIAG_ERROR, n->mark, fmt, text_show(name, buf));
	n->kind = NODE_BAD;
}

/* Anchors and tags: reported, and the value is read as if they were not. */
static void
decoration_refuse(struct reader *r, struct node *n, const void *anchor,
    const void *tag)
{
	static const char core_tag[] = "tag:yaml.org,2002:";
	enum node_kind kind = n->kind;

	if (anchor != NULL)
		refuse(r, n, "anchor &%s: anchors are not supported", anchor);
	if (tag != NULL && strncmp(tag, core_tag, sizeof(core_tag) - 1) == 0)
		refuse(r, n, "tag !!%s: tags are not supported",
		    (const char *)tag + sizeof(core_tag) - 1);
	else if (tag != NULL)
		refuse(r, n, "tag %s: tags are not supported", tag);
	n->kind = kind;
}

static void
text_read(struct reader *r, struct node *n, const yaml_event_t *ev)
{
	const char *s = (const char *)ev->data.scalar.value;
	size_t len = ev->data.scalar.length;
	char *copy;

	n->kind = NODE_TEXT;
	n->plain = ev->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
	if (memchr(s, '\0', len) != NULL) {
		refuse(r, n, "%s...: a text cannot hold a NUL", s);
		return;
	}
	copy = arena_alloc(r->a, len + 1);
	memcpy(copy, s, len);
	n->text = copy;
}

static void
child_add(struct reader *r, struct node *n, struct node *child)
{
	struct node **slot;

	child->index = n->n;
	slot = arena_grow(r->a, &n->child, n->n, sizeof(*slot));
	*slot = child;
	n->n++;
}

static int
list_read(struct reader *r, struct node *n)
{
	struct node *child;
	yaml_event_t ev;
	int end;

	for (;;) {
		if (event_next(r, &ev) < 0)
			return -1;
		end = ev.type == YAML_SEQUENCE_END_EVENT;
		child = end ? NULL : node_read(r, &ev, n);
		yaml_event_delete(&ev);
		if (end)
			return 0;
		if (child == NULL)
			return -1;
		child_add(r, n, child);
	}
}

static int
pair_read(struct reader *r, struct node *n, yaml_event_t *ev)
{
	struct node *key, *value;
	yaml_event_t next;

	key = node_read(r, ev, n);
	if (key == NULL || event_next(r, &next) < 0)
		return -1;
	value = node_read(r, &next, n);
	yaml_event_delete(&next);
	if (value == NULL)
		return -1;
	if (key->kind == NODE_BAD)
		return 0;
	if (key->kind != NODE_TEXT) {
		diag_add(r->dg, DIAG_ERROR, key->mark,
		    "a key must be text, not %s", node_kind_text(key));
		return 0;
	}
	value->key = key->text;
	value->key_mark = key->mark;
	child_add(r, n, value);
	return 0;
}

static int
key_cmp(const void *a, const void *b)
{
	const struct node *const *na = a, *const *nb = b;
	int c = strcmp((*na)->key, (*nb)->key);

	if (c != 0)
		return c;
	return (*na)->index < (*nb)->index ? -1 : 1;
}

/* By sorting: a hostile file may have a million keys. */
static void
duplicates_report(struct reader *r, struct node *n)
{
	struct node **sorted;
	char path[YAML_PATH_MAX];
	size_t i, first = 0;

	if (n->n < 2)
		return;
	sorted = arena_dup(r->a, n->child, n->n * sizeof(*sorted));
	qsort(sorted, n->n, sizeof(*sorted), key_cmp);
	for (i = 1; i < n->n; i++) {
		if (strcmp(sorted[i]->key, sorted[first]->key) != 0) {
			first = i;
			continue;
		}
		diag_add(r->dg, DIAG_ERROR, sorted[i]->key_mark,
		    "%s: duplicate key, already at %s:%u:%u",
		    node_path(sorted[i], path), r->name,
		    sorted[first]->key_mark.line,
		    sorted[first]->key_mark.col);
		sorted[i]->kind = NODE_BAD;
	}
}

static int
map_read(struct reader *r, struct node *n)
{
	yaml_event_t ev;
	int end, rc;

	for (;;) {
		if (event_next(r, &ev) < 0)
			return -1;
		end = ev.type == YAML_MAPPING_END_EVENT;
		rc = end ? 0 : pair_read(r, n, &ev);
		yaml_event_delete(&ev);
		if (rc < 0)
			return -1;
		if (end)
			return 0;
	}
}

/* The node that begins with `ev`, whole. NULL: reported. */
static struct node *
node_read(struct reader *r, yaml_event_t *ev, const struct node *parent)
{
	struct node *n = node_new(r, ev, parent);
	int rc = 0;

	if (n == NULL)
		return NULL;
	switch (ev->type) {
	case YAML_ALIAS_EVENT:
		refuse(r, n, "alias *%s: aliases are not supported",
		    ev->data.alias.anchor);
		break;
	case YAML_SCALAR_EVENT:
		text_read(r, n, ev);
		decoration_refuse(r, n, ev->data.scalar.anchor,
		    ev->data.scalar.tag);
		break;
	case YAML_SEQUENCE_START_EVENT:
		n->kind = NODE_LIST;
		decoration_refuse(r, n, ev->data.sequence_start.anchor,
		    ev->data.sequence_start.tag);
		rc = list_read(r, n);
		break;
	default:	/* nothing else begins a node */
		n->kind = NODE_MAP;
		decoration_refuse(r, n, ev->data.mapping_start.anchor,
		    ev->data.mapping_start.tag);
		rc = map_read(r, n);
		break;
	}
	return rc < 0 ? NULL : n;
}

/* All maps of the tree, after it is complete: paths need every parent. */
static void
tree_check(struct reader *r, struct node *n)
{
	size_t i;

	if (n->kind == NODE_MAP)
		duplicates_report(r, n);
	for (i = 0; i < n->n; i++)
		tree_check(r, n->child[i]);
}

static struct node *
stream_read(struct reader *r)
{
	struct node *root = NULL;
	struct mark at;
	yaml_event_t ev;
	yaml_event_type_t type;

	for (;;) {
		if (event_next(r, &ev) < 0)
			return NULL;
		type = ev.type;
		at = mark_make(r, &ev.start_mark);
		if (type == YAML_SCALAR_EVENT || type == YAML_ALIAS_EVENT ||
		    type == YAML_SEQUENCE_START_EVENT ||
		    type == YAML_MAPPING_START_EVENT) {
			root = node_read(r, &ev, NULL);
			if (root == NULL)
				type = YAML_NO_EVENT;
		}
		yaml_event_delete(&ev);
		if (type == YAML_NO_EVENT)
			return NULL;
		if (type == YAML_DOCUMENT_START_EVENT && root != NULL) {
			diag_add(r->dg, DIAG_ERROR, at,
			    "a second document: one file holds one");
			return NULL;
		}
		if (type == YAML_STREAM_END_EVENT)
			return root;
	}
}

static struct node *
map_empty(const struct reader *r)
{
	struct node *n = arena_alloc(r->a, sizeof(*n));

	n->kind = NODE_MAP;
	n->mark = (struct mark){ r->name, 1, 1 };
	return n;
}

struct node *
yaml_parse(const char *name, const char *text, size_t len, struct arena *a,
    struct diag *dg)
{
	struct reader r = { .name = name, .text = text, .len = len, .a = a,
	    .dg = dg };
	struct node *root;
	size_t errors = dg->errors;

	/* libyaml counts a byte order mark as a column */
	if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
		r.text += 3;
		r.len -= 3;
	}
	if (len > YAML_SIZE_MAX) {
		diag_add(dg, DIAG_ERROR, (struct mark){ name, 0, 0 },
		    "larger than %d MiB", YAML_SIZE_MAX >> 20);
		return NULL;
	}
	if (text_check(&r) < 0)
		return NULL;
	if (!yaml_parser_initialize(&r.parser))
		abort();
	yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&r.parser,
	    (const unsigned char *)r.text, r.len);
	root = stream_read(&r);
	yaml_parser_delete(&r.parser);
	if (root == NULL)
		return dg->errors > errors ? NULL : map_empty(&r);
	if (node_is_empty(root))
		return map_empty(&r);
	tree_check(&r, root);
	return root;
}

const struct node *
node_get(const struct node *map, const char *key)
{
	size_t i;

	if (map->kind != NODE_MAP)
		return NULL;
	for (i = 0; i < map->n; i++)
		if (strcmp(map->child[i]->key, key) == 0)
			return map->child[i];
	return NULL;
}

bool
node_is_empty(const struct node *n)
{
	return n->kind == NODE_TEXT && n->plain && n->text[0] == '\0';
}

const char *
node_kind_text(const struct node *n)
{
	switch (n->kind) {
	case NODE_MAP:
		return "a mapping";
	case NODE_LIST:
		return "a list";
	default:
		return "text";
	}
}

const char *
node_path(const struct node *n, char buf[YAML_PATH_MAX])
{
	char part[TEXT_SHOW_MAX];
	size_t used;

	buf[0] = '\0';
	if (n->parent == NULL)
		return buf;
	node_path(n->parent, buf);
	used = strlen(buf);
	if (n->key == NULL)
		snprintf(buf + used, YAML_PATH_MAX - used, "[%zu]", n->index);
	else
		snprintf(buf + used, YAML_PATH_MAX - used, "%s%s",
		    used > 0 ? "." : "", text_show(n->key, part));
	return buf;
}
