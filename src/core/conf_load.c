/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From the files' bytes to a checked configuration, in stages. */
#include "core/conf.h"

#include <string.h>

#include "core/arena.h"
#include "core/conf_bind.h"
#include "core/conf_schema.h"
#include "core/yaml.h"

/* All trees, or -1: half of the files would make names look dangling. */
static int
roots_read(struct bind *b, const struct conf_source *src, size_t n,
    struct arena *scratch)
{
	size_t i;
	int rc = 0;

	b->root = arena_calloc(scratch, n, sizeof(*b->root));
	b->nroot = n;
	for (i = 0; i < n; i++) {
		b->root[i] = yaml_parse(arena_strdup(b->a, src[i].name),
		    src[i].text, src[i].len, scratch, b->dg);
		if (b->root[i] == NULL)
			rc = -1;
	}
	return rc;
}

int
conf_load(const struct conf_source *src, size_t n, struct arena *a,
    const struct conf **out, struct diag *dg)
{
	static const struct conf_source nothing = { "-", "", 0 };
	struct conf *c = arena_alloc(a, sizeof(*c));
	struct bind b = { .a = a, .dg = dg, .c = c };
	struct arena *scratch = arena_new();
	size_t errors = dg->errors, i;

	if (n == 0) {
		src = &nothing;
		n = 1;
	}
	if (roots_read(&b, src, n, scratch) == 0) {
		for (i = 0; i < n; i++)
			bind_root(&b, b.root[i], i > 0);
		if (conf_check_limits(&b) == 0) {
			bind_objects(&b);
			conf_check_rules(&b);
			if (dg->errors == errors)
				conf_check_warnings(&b);
		}
	}
	arena_free(scratch);
	diag_sort(dg);
	if (dg->errors > errors)
		return -1;
	*out = c;
	return 0;
}

const struct conf_pool *
conf_pool_find(const struct conf *c, const char *name)
{
	size_t low = 0, high = c->npool, mid;
	int d;

	while (low < high) {
		mid = low + (high - low) / 2;
		d = strcmp(c->pool[mid].name, name);
		if (d == 0)
			return &c->pool[mid];
		if (d < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return NULL;
}

const struct conf_backend *
conf_backend_find(const struct conf_pool *p, const char *name)
{
	size_t i;

	for (i = 0; i < p->nbackend; i++)
		if (strcmp(p->backend[i].name, name) == 0)
			return &p->backend[i];
	return NULL;
}
