/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Overrides by `xlb drain` and `xlb undrain`: kept in the state directory, so
 * that they outlive restart and reboot. A file that is damaged is ignored with
 * a warning: what it held is safer forgotten than guessed.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/daemon.h"
#include "io/file.h"
#include "io/log.h"

#define OVERRIDES_FILE "overrides.json"
#define OVERRIDES_MAX (16 << 20)	/* bytes; 16383 backends fit */

static const char *const state_name[] = {
	[BACKEND_ACTIVE] = "active", [BACKEND_DRAIN] = "drain",
	[BACKEND_DOWN] = "down",
};

static int
state_parse(const char *s)
{
	int i;

	for (i = 0; s != NULL && i <= BACKEND_DOWN; i++)
		if (strcmp(s, state_name[i]) == 0)
			return i;
	return -1;
}

static char *
overrides_path(const struct options *opt)
{
	char *path;

	if (asprintf(&path, "%s/%s", opt->state_dir, OVERRIDES_FILE) < 0)
		fatal("overrides");
	return path;
}

struct override *
override_find(const struct override_list *l, const char *pool,
    const struct addr *addr)
{
	struct override *o;
	size_t i;

	for (i = 0; i < l->n; i++) {
		o = &l->row[i];
		if (pool == NULL ? o->pool == NULL : o->pool != NULL &&
		    strcmp(o->pool, pool) == 0 && addr_cmp(&o->addr, addr) == 0)
			return o;
	}
	return NULL;
}

void
override_put(struct override_list *l, const struct override *o)
{
	struct override *row = override_find(l, o->pool, &o->addr);

	if (row == NULL) {
		row = reallocarray(l->row, l->n + 1, sizeof(*row));
		if (row == NULL)
			fatal("overrides");
		l->row = row;
		row += l->n++;
		*row = *o;
		if (o->pool != NULL && (row->pool = strdup(o->pool)) == NULL)
			fatal("overrides");
		return;
	}
	row->state = o->state;
	row->file_state = o->file_state;
	row->since = o->since;
}

static void
override_fini(struct override *o)
{
	/* on the heap, by override_put() */
	free((void *)(uintptr_t)o->pool);
}

void
override_del(struct override_list *l, struct override *o)
{
	override_fini(o);
	*o = l->row[--l->n];
}

void
overrides_free(struct override_list *l)
{
	size_t i;

	for (i = 0; i < l->n; i++)
		override_fini(&l->row[i]);
	free(l->row);
	memset(l, 0, sizeof(*l));
}

/* One row of the file. 0, or -1: damaged. */
static int
override_parse(const json_t *j, struct override *o)
{
	const char *addr = json_string_value(json_object_get(j, "address"));
	int state = state_parse(
	    json_string_value(json_object_get(j, "state")));
	int file = state_parse(json_string_value(json_object_get(j, "file")));
	const json_t *since = json_object_get(j, "since_ns");

	memset(o, 0, sizeof(*o));
	o->pool = json_string_value(json_object_get(j, "pool"));
	if (state < 0 || file < 0 || !json_is_integer(since))
		return -1;
	if (o->pool != NULL && (addr == NULL || addr_parse(addr, &o->addr) < 0))
		return -1;
	o->state = (enum backend_state)state;
	o->file_state = (enum backend_state)file;
	o->since = json_integer_value(since);
	return 0;
}

void
overrides_load(struct daemon *d)
{
	char *path = overrides_path(&d->opt), *buf;
	json_t *root = NULL, *j;
	json_error_t err;
	struct override o;
	size_t i, len;
	int rc;

	rc = file_read(path, OVERRIDES_MAX, &buf, &len);
	if (rc == -ENOENT)
		goto out;
	if (rc < 0) {
		log_warnx("%s: %s: overrides are ignored", path, strerror(-rc));
		goto out;
	}
	root = json_loadb(buf, len, JSON_REJECT_DUPLICATES, &err);
	free(buf);
	if (!json_is_array(json_object_get(root, "overrides"))) {
		log_warnx("%s: damaged: overrides are ignored", path);
		goto out;
	}
	json_array_foreach(json_object_get(root, "overrides"), i, j) {
		if (override_parse(j, &o) < 0)
			log_warnx("%s: entry %zu is damaged and ignored", path,
			    i);
		else
			override_put(&d->overrides, &o);
	}
out:
	json_decref(root);
	free(path);
}

int
overrides_save(const struct daemon *d)
{
	char *path = overrides_path(&d->opt), *text;
	json_t *list = json_array();
	char addr[ADDR_STR_MAX];
	const struct override *o;
	json_t *row, *root;
	size_t i;
	int rc;

	for (i = 0; i < d->overrides.n; i++) {
		o = &d->overrides.row[i];
		row = json_pack("{s:s, s:s, s:I}",
		    "state", state_name[o->state],
		    "file", state_name[o->file_state],
		    "since_ns", (json_int_t)o->since);
		if (o->pool != NULL) {
			json_object_set_new(row, "pool", json_string(o->pool));
			json_object_set_new(row, "address",
			    json_string(addr_print(&o->addr, addr)));
		}
		json_array_append_new(list, row);
	}
	root = json_pack("{s:i, s:o}", "schema", 1, "overrides", list);
	text = json_dumps(root, JSON_INDENT(1));
	json_decref(root);
	if (text == NULL)
		fatalx("overrides: out of memory");
	rc = file_replace(path, text, strlen(text), 0600);
	if (rc < 0)
		log_warnx("%s: %s: a drain would be forgotten at restart",
		    path, strerror(-rc));
	free(text);
	free(path);
	return rc;
}

/* Ends the overrides that a new configuration overrules. */
void
overrides_follow(struct daemon *d, const struct conf *c)
{
	struct override *o;
	char addr[ADDR_STR_MAX], object[160];
	bool changed = false;
	size_t i = 0;

	while (i < d->overrides.n) {
		o = &d->overrides.row[i];
		if (override_live(c, o)) {
			i++;
			continue;
		}
		snprintf(object, sizeof(object), "override %s%s%s",
		    o->pool != NULL ? o->pool : "node",
		    o->pool != NULL ? "/" : "",
		    o->pool != NULL ? addr_print(&o->addr, addr) : "");
		log_change(object, o->state == BACKEND_DRAIN ? "drain" :
		    "active", "ended", "the file sets another state, or does "
		    "not have it any more");
		override_del(&d->overrides, o);
		changed = true;
	}
	if (changed)
		overrides_save(d);
}
