/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * YAML as a tree of nodes that know their place. What a configuration needs
 * and no more: one document of mappings, lists and texts. A text is a text;
 * what it means is up to the key (`no`, `0x10` and `1:30` are not guessed at).
 */
#ifndef XLB_YAML_H
#define XLB_YAML_H

#include <stdbool.h>
#include <stddef.h>

#include "core/diag.h"

struct arena;

#define YAML_DEPTH_MAX	16		/* levels */
#define YAML_NODES_MAX	(1 << 20)	/* ten for each thing at every limit */
#define YAML_SIZE_MAX	(16 << 20)	/* bytes of one file */
#define YAML_PATH_MAX	256

enum node_kind {
	NODE_TEXT, NODE_MAP, NODE_LIST,
	NODE_BAD		/* reported already, to be skipped */
};

struct node {
	enum node_kind kind;
	struct mark mark;	/* of the value */
	const struct node *parent;	/* NULL: the root */
	const char *key;	/* in a mapping; NULL: in a list, or the root */
	struct mark key_mark;
	size_t index;		/* in the parent, from 0 */
	const char *text;	/* NODE_TEXT; holds no NUL */
	bool plain;		/* not quoted, not a block */
	struct node **child;	/* NODE_MAP, NODE_LIST */
	size_t n;
};

/*
 * The document in `text`; an empty one is an empty mapping. `name` is kept in
 * the marks. Anchors, aliases, tags and duplicate keys are reported and the
 * rest is read on; NULL after a mistake that leaves no tree.
 */
struct node *yaml_parse(const char *name, const char *text, size_t len,
    struct arena *a, struct diag *dg);

const struct node *node_get(const struct node *map, const char *key);

/* No value was written: `key:` and nothing behind it. */
bool node_is_empty(const struct node *n);

/* "a mapping", "a list", "text" */
const char *node_kind_text(const struct node *n);

/* "pools.web.backends[2].weight" */
const char *node_path(const struct node *n, char buf[YAML_PATH_MAX]);

#endif
