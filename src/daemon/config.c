/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The configuration in force: loaded, compared with the one before, kept in the
 * state directory. A file that does not load changes nothing; at start the text
 * that was accepted last takes its place.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "daemon/daemon.h"
#include "io/conf_file.h"
#include "io/conf_world.h"
#include "io/file.h"
#include "io/key.h"
#include "io/log.h"

#define KEPT_FILE "accepted.json"
#define KEPT_MAX (64 << 20)	/* bytes */

void
config_free(struct config *c)
{
	struct config *before;

	for (; c != NULL; c = before) {
		before = c->retired;
		arena_free(c->arena);
		json_decref(c->sources);
		free(c);
	}
}

/*
 * The key that its file holds. Sources that somebody sent must not make us open
 * what we do not open anyway: another file than `running` has is left alone.
 */
static int
config_key(struct config *c, const struct config *running, struct mark at,
    struct diag *dg)
{
	const char *path = c->conf->key_file;
	const char *ours = running == NULL ? path : running->conf->key_file;
	int rc;

	if (path == NULL)
		return 0;
	if (ours == NULL || strcmp(path, ours) != 0) {
		memcpy(c->hash_key, running->hash_key, sizeof(c->hash_key));
		diag_add(dg, DIAG_WARNING, at, "maglev.key_file: %s is "
		    "another file: only a reload reads it", path);
		return 0;
	}
	rc = key_read(path, c->hash_key);
	if (rc < 0)
		diag_add(dg, DIAG_ERROR, at, "maglev.key_file: %s: %s", path,
		    rc == -EINVAL ? KEY_FORM : strerror(-rc));
	return rc;
}

/* Sources may be freed when this returns: the arena keeps its own copies. */
static struct config *
config_build(const struct conf_source *src, size_t n,
    const struct config *running, struct diag *dg)
{
	struct config *c = calloc(1, sizeof(*c));
	struct mark at = { .file = n > 0 ? src[0].name : NULL };
	json_t *row;
	size_t i;

	if (c == NULL)
		fatal("configuration");
	c->arena = arena_new();
	c->sources = json_array();
	for (i = 0; i < n; i++) {
		row = json_pack("{s:s, s:s%}", "name", src[i].name, "text",
		    src[i].text, src[i].len);
		/* text that is no UTF-8 does not load either */
		if (row != NULL)
			json_array_append_new(c->sources, row);
	}
	if (conf_load(src, n, c->arena, &c->conf, dg) < 0 ||
	    config_key(c, running, at, dg) < 0) {
		config_free(c);
		return NULL;
	}
	c->loaded = daemon_realtime();
	return c;
}

struct config *
config_load(const struct options *opt, struct diag *dg)
{
	struct conf_files files;
	struct config *c = NULL;

	if (conf_files_read(opt->config, &files, dg) == 0)
		c = config_build(files.src, files.n, NULL, dg);
	conf_files_free(&files);
	if (c != NULL && conf_world_check(c->conf, DIAG_ERROR, dg) < 0) {
		config_free(c);
		c = NULL;
	}
	return c;
}

struct config *
config_from_sources(const json_t *sources, const struct config *running,
    struct diag *dg)
{
	struct mark nowhere = { 0 };
	struct conf_source *src;
	struct config *c = NULL;
	size_t i, n = json_array_size(sources);
	const json_t *row, *text;

	src = calloc(n + 1, sizeof(*src));
	if (src == NULL)
		fatal("configuration");
	for (i = 0; i < n; i++) {
		row = json_array_get(sources, i);
		text = json_object_get(row, "text");
		src[i].name = json_string_value(json_object_get(row, "name"));
		src[i].text = json_string_value(text);
		src[i].len = json_string_length(text);
		if (src[i].name == NULL || src[i].text == NULL)
			break;
	}
	if (n == 0 || i < n)
		diag_add(dg, DIAG_ERROR, nowhere,
		    "sources: not a list of {\"name\", \"text\"}");
	else
		c = config_build(src, n, running, dg);
	free(src);
	return c;
}

static char *
kept_path(const struct options *opt)
{
	char *path;

	if (asprintf(&path, "%s/%s", opt->state_dir, KEPT_FILE) < 0)
		fatal("configuration");
	return path;
}

struct config *
config_kept(const struct options *opt, struct diag *dg)
{
	struct mark nowhere = { 0 };
	char *path = kept_path(opt), *buf = NULL;
	struct config *c = NULL;
	json_t *root = NULL;
	json_error_t err;
	size_t len;
	int rc;

	rc = file_read(path, KEPT_MAX, &buf, &len);
	if (rc == -ENOENT) {
		diag_add(dg, DIAG_ERROR, nowhere, "no configuration was "
		    "accepted before that could take its place (%s is not "
		    "there)", path);
		goto out;
	}
	if (rc < 0) {
		diag_add(dg, DIAG_ERROR, nowhere, "%s: %s", path,
		    strerror(-rc));
		goto out;
	}
	root = json_loadb(buf, len, JSON_REJECT_DUPLICATES, &err);
	if (root == NULL)
		diag_add(dg, DIAG_ERROR, nowhere, "%s: damaged: %s", path,
		    err.text);
	else
		c = config_from_sources(json_object_get(root, "sources"), NULL,
		    dg);
	if (c != NULL)
		conf_world_check(c->conf, DIAG_WARNING, dg);
out:
	json_decref(root);
	free(buf);
	free(path);
	return c;
}

int
config_keep(const struct options *opt, const struct config *c)
{
	json_t *root = json_pack("{s:i, s:O}", "schema", 1, "sources",
	    c->sources);
	char *text = json_dumps(root, JSON_INDENT(1)), *path = kept_path(opt);
	int rc;

	if (text == NULL)
		fatalx("configuration: out of memory");
	rc = file_equal(path, text, strlen(text));
	if (rc == 0)
		rc = file_replace(path, text, strlen(text), 0600);
	if (rc < 0)
		log_warnx("%s: %s: the accepted configuration is not kept",
		    path, strerror(-rc));
	free(path);
	free(text);
	json_decref(root);
	return rc < 0 ? rc : 0;
}

static const struct conf_service *
service_find(const struct conf *c, const char *name)
{
	size_t i;

	for (i = 0; i < c->nservice; i++)
		if (strcmp(c->service[i].name, name) == 0)
			return &c->service[i];
	return NULL;
}

#define MOVES_ALL "would move every flow: drain the node, then " \
	"`xlb restart --flush`"

void
config_check_change(const struct config *old, const struct config *new,
    struct diag *dg)
{
	const struct conf *a = old->conf, *b = new->conf;
	struct mark at = { .file = json_string_value(json_object_get(
	    json_array_get(new->sources, 0), "name")) };
	const struct conf_service *was;
	size_t i;

	at.file = at.file == NULL ? NULL : arena_strdup(new->arena, at.file);
	if (a->table_size != b->table_size)
		diag_add(dg, DIAG_ERROR, at,
		    "maglev.table_size: %u -> %u " MOVES_ALL, a->table_size,
		    b->table_size);
	if (a->seed != b->seed)
		diag_add(dg, DIAG_ERROR, at, "maglev.seed: a change "
		    MOVES_ALL);
	if (memcmp(old->hash_key, new->hash_key, sizeof(old->hash_key)) != 0)
		diag_add(dg, DIAG_ERROR, at, "maglev.key_file: another key "
		    MOVES_ALL);
	if (b->flow_entries < a->flow_entries)
		diag_add(dg, DIAG_ERROR, at, "flow_table.entries: %u -> %u: a "
		    "table in use does not shrink: drain the node, then "
		    "`xlb restart --flush`", a->flow_entries, b->flow_entries);
	for (i = 0; i < b->nservice; i++) {
		was = service_find(a, b->service[i].name);
		if (was != NULL && was->hash != b->service[i].hash)
			diag_add(dg, DIAG_ERROR, b->service[i].mark,
			    "services[%zu].hash: a change " MOVES_ALL, i);
	}
}

bool
config_begins_anew(const struct config *old, const struct config *new)
{
	struct diag dg;
	bool anew;

	if (old->conf->nservice > 0)
		return false;
	diag_init(&dg);
	config_check_change(old, new, &dg);
	anew = dg.errors > 0;
	diag_fini(&dg);
	return anew;
}

void
config_verdict_set(struct config_verdict *v, const struct diag *dg, bool kept)
{
	const struct diag_row *row = NULL;
	size_t i;

	free(v->why);
	v->why = NULL;
	v->ok = dg->errors == 0;
	v->kept = kept;
	v->at = daemon_realtime();
	for (i = 0; i < dg->n && row == NULL; i++)
		if (dg->row[i].level == DIAG_ERROR)
			row = &dg->row[i];
	if (row != NULL)
		v->why = diag_line(row);
}

/* Every address that may get packets, for the next hops. */
static void
follow_hops(struct daemon *d, const struct conf *c)
{
	struct arena *a = arena_new();
	struct addr *addr = NULL, *row;
	size_t i, k, n = 0, unique = 0;
	int rc;

	for (i = 0; i < c->npool; i++) {
		for (k = 0; k < c->pool[i].nbackend; k++) {
			row = arena_grow(a, &addr, n++, sizeof(*addr));
			*row = c->pool[i].backend[k].address;
		}
	}
	if (n > 0)
		qsort(addr, n, sizeof(*addr),
		    (int (*)(const void *, const void *))addr_cmp);
	for (i = 0; i < n; i++)
		if (unique == 0 || addr_cmp(&addr[unique - 1], &addr[i]) != 0)
			addr[unique++] = addr[i];
	rc = netlink_want(d->nl, addr, unique);
	if (rc < 0)
		log_warnx("netlink: %s", strerror(-rc));
	arena_free(a);
}

void
config_apply(struct daemon *d, struct config *c)
{
	struct config *old = d->config;

	d->epoch++;
	count_follow(&d->count, c->conf);
	overrides_follow(d, c->conf);
	health_follow(d, c->conf);
	follow_hops(d, c->conf);
	routes_follow(d, old != NULL ? old->conf : NULL, c->conf);
	d->link = reallocarray(d->link, c->conf->ninterface + 1,
	    sizeof(*d->link));
	if (d->link == NULL)
		fatal("interfaces");
	memset(d->link, 0, (c->conf->ninterface + 1) * sizeof(*d->link));
	c->retired = old;
	d->config = c;
	d->applied = true;
	/* pointed into the old tables; of `before` names and reasons are read */
	if (d->wanted.npool > 0)
		d->before = d->wanted;
	memset(&d->wanted, 0, sizeof(d->wanted));
	d->ring = NULL;
	documents_listen(d, c->conf);
	reconcile_now(d);
	path_follow(d);
	if (d->started)
		lifecycle_update(d, "node.state in the file");
}

void
config_messages(const struct diag *dg, json_t *reply)
{
	char *line;
	size_t i;

	if (reply != NULL)
		ctl_diag(reply, dg);
	for (i = 0; i < dg->n; i++) {
		if (reply != NULL && dg->row[i].level == DIAG_WARNING)
			continue;
		line = diag_line(&dg->row[i]);
		log_warnx("%s", line);
		free(line);
	}
}

/* What the maps have no room for is refused before anything is changed: a state
 * that cannot be built would stop all else, withdrawals too. */
static void
config_check_fit(const struct daemon *d, const struct config *c,
    struct diag *dg)
{
	struct state found, wanted;
	struct arena *a;

	if (dg->errors > 0 || !d->started)
		return;
	a = arena_new();
	reconcile_try(d, c->conf, a, &found, &wanted, dg);
	arena_free(a);
}

static const char *
verdict_text(const struct config_verdict *v)
{
	return v->ok ? "loaded" : v->kept ? "kept" : "refused";
}

/* Each error of the file is in the log already. */
static void
refusal_tell(const struct daemon *d, const char *was)
{
	const char *stays = d->verdict.kept ? "the kept one stays in force" :
	    "the one loaded before stays in force";

	if (strcmp(was, "loaded") == 0)
		log_change("configuration", was, "refused", stays);
	else
		log_warnx("configuration: refused again, %s", stays);
}

static int
reload(struct daemon *d, json_t *reply)
{
	const struct addr *local;
	struct diag dg;
	char counts[CONF_COUNTS_MAX];
	const char *was;
	struct config *c;
	size_t i, nlocal;
	int rc, status = 0;
	bool anew, same;

	if (d->lifecycle.life == LIFE_STOP) {
		log_warnx("reload: refused, xlbd is stopping");
		if (reply != NULL)
			ctl_error(reply, "xlbd is stopping");
		return 1;
	}
	diag_init(&dg);
	c = config_load(&d->opt, &dg);
	anew = c != NULL && d->started && config_begins_anew(d->config, c);
	if (c != NULL) {
		if (!anew)
			config_check_change(d->config, c, &dg);
		config_check_fit(d, c, &dg);
		local = netlink_local(d->nl, &nlocal);
		health_local_check(c->conf, local, nlocal, &dg);
		if (dg.errors > 0) {
			config_free(c);
			c = NULL;
		}
	}
	config_messages(&dg, reply);
	was = verdict_text(&d->verdict);
	config_verdict_set(&d->verdict, &dg, c == NULL && d->verdict.kept);
	diag_fini(&dg);
	if (c == NULL) {
		refusal_tell(d, was);
		return 3;
	}
	same = json_equal(c->sources, d->config->sources);
	rc = config_keep(&d->opt, c);
	if (rc < 0 && reply != NULL)
		ctl_warning(reply, "%s: %s: this configuration is not kept for "
		    "a start at which the file does not load",
		    d->opt.state_dir, strerror(-rc));
	if (anew) {
		config_free(c);
		return RELOAD_ANEW;
	}
	config_apply(d, c);
	rc = documents_listen(d, c->conf);
	if (rc < 0 && reply != NULL)
		ctl_warning(reply, "metrics.listen: %s: is tried again",
		    strerror(-rc));
	for (i = 0; i < c->conf->ninterface; i++) {
		if (d->link[i].attached)
			continue;
		status = 1;
		if (reply != NULL)
			ctl_error(reply, "interface %s: %s",
			    c->conf->interface[i].name, d->link[i].why);
	}
	if (d->failed > 0) {
		status = 1;
		if (reply != NULL)
			ctl_error(reply, "%zu operations on the maps failed; "
			    "they are tried again (see the log)", d->failed);
	}
	conf_counts_print(c->conf, counts);
	if (same && status == 0 && strcmp(was, "loaded") == 0)
		log_info("configuration: loaded again, it is the same");
	else
		log_change("configuration", was, status != 0 ?
		    "loaded in part" : strcmp(was, "loaded") == 0 ?
		    "replaced" : "loaded", status == 0 ? counts :
		    "what was refused is tried again");
	return status;
}

int
config_reload(struct daemon *d, json_t *reply)
{
	int status = reload(d, reply);

	d->count.reload[status == 0 ? COUNT_SUCCESS :
	    status == 3 ? COUNT_FAILURE : COUNT_PARTIAL]++;
	return status;
}
