/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Commands about files: check, diff, bird-config. */
#include <errno.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/arena.h"
#include "core/bird_text.h"
#include "core/conf.h"
#include "core/health.h"
#include "core/rows.h"
#include "ctl/command.h"
#include "io/bird.h"
#include "io/conf_file.h"
#include "io/ctl.h"

#define DIFF_MS 30000

static const char *
file_of(const struct context *x)
{
	return x->narg > 0 ? x->arg[0] : x->o.config;
}

static json_t *
diag_json(const struct diag *dg, enum diag_level level)
{
	json_t *list = json_array();
	const struct diag_row *row;
	size_t i;

	for (i = 0; i < dg->n; i++) {
		row = &dg->row[i];
		if (row->level != level)
			continue;
		json_array_append_new(list, json_pack("{s:o, s:i, s:i, s:o}",
		    "file", row->mark.file != NULL ?
		    ctl_text(row->mark.file) : json_null(),
		    "line", (int)row->mark.line, "column", (int)row->mark.col,
		    "text", ctl_text(row->text)));
	}
	return list;
}

/* This host's own, sorted. */
static struct addr *
local_addresses(struct arena *a, size_t *n)
{
	const struct sockaddr_in6 *in6;
	const struct sockaddr_in *in;
	struct addr *list = NULL, *one;
	struct ifaddrs *all, *i;

	*n = 0;
	if (getifaddrs(&all) < 0)
		return NULL;
	for (i = all; i != NULL; i = i->ifa_next) {
		if (i->ifa_addr == NULL || (i->ifa_addr->sa_family != AF_INET &&
		    i->ifa_addr->sa_family != AF_INET6))
			continue;
		one = arena_grow(a, &list, (*n)++, sizeof(*one));
		in = (const void *)i->ifa_addr;
		in6 = (const void *)i->ifa_addr;
		if (i->ifa_addr->sa_family == AF_INET)
			*one = addr_from4(in->sin_addr.s_addr);
		else
			memcpy(one->b, &in6->sin6_addr, sizeof(one->b));
	}
	freeifaddrs(all);
	rows_sort(list, *n, sizeof(*list), addr_order);
	return list;
}

/* A file that may well be written before its key; only a reload reads it. */
static void
key_check(const struct conf *c, const char *file, struct diag *dg)
{
	if (c->key_file != NULL && access(c->key_file, F_OK) < 0 &&
	    (errno == ENOENT || errno == ENOTDIR))
		diag_add(dg, DIAG_WARNING, (struct mark){ file, 0, 0 },
		    "maglev.key_file: %s: %s: make it before a reload: "
		    "`head -c 16 /dev/urandom >%s && chmod 600 %s`",
		    c->key_file, strerror(errno), c->key_file, c->key_file);
}

/* What the file alone does not tell. */
static int
check_here(const struct conf *c, const char *file, struct arena *a,
    struct diag *dg)
{
	const struct addr *local;
	size_t n;

	key_check(c, file, dg);
	local = local_addresses(a, &n);
	health_local_check(c, local, n, dg);
	return dg->errors > 0 ? -1 : 0;
}

int
check_run(const struct context *x)
{
	const struct conf *c = NULL;
	struct arena *a = arena_new();
	char counts[CONF_COUNTS_MAX];
	struct diag dg;
	size_t i, backends = 0;
	int rc, status;

	diag_init(&dg);
	rc = conf_file_load(file_of(x), a, &c, &dg);
	if (rc == 0)
		rc = check_here(c, file_of(x), a, &dg);
	diag_print(&dg, stderr);
	for (i = 0; rc == 0 && i < c->npool; i++)
		backends += c->pool[i].nbackend;
	status = rc == 0 ? STATUS_DONE : STATUS_CONFIG;
	if (x->flags & FLAG_JSON)
		rc = json_out(x, json_pack(
		    "{s:o, s:b, s:I, s:I, s:I, s:o, s:o}",
		    "file", ctl_text(file_of(x)), "ok", rc == 0,
		    "services", (json_int_t)(rc == 0 ? c->nservice : 0),
		    "pools", (json_int_t)(rc == 0 ? c->npool : 0),
		    "backends", (json_int_t)backends,
		    "errors", diag_json(&dg, DIAG_ERROR),
		    "warnings", diag_json(&dg, DIAG_WARNING)));
	else if (rc == 0)
		printf("%s: ok: %s\n", file_of(x), conf_counts_print(c,
		    counts));
	if (status == STATUS_DONE && rc != 0)
		status = rc;
	diag_fini(&dg);
	arena_free(a);
	return status;
}

/* 0, or the exit status. */
static int
sources_json(const struct context *x, json_t **out)
{
	const char *file = file_of(x);
	json_t *list = json_array(), *text;
	struct conf_files f;
	struct diag dg;
	int status = 0;
	size_t i;

	diag_init(&dg);
	if (conf_files_read(file, &f, &dg) < 0)
		status = STATUS_CONFIG;
	for (i = 0; status == 0 && i < f.n; i++) {
		text = json_stringn(f.src[i].text, f.src[i].len);
		if (text == NULL) {
			diag_add(&dg, DIAG_ERROR,
			    (struct mark){ f.src[i].name, 0, 0 },
			    "is not UTF-8");
			status = STATUS_CONFIG;
			break;
		}
		json_array_append_new(list, json_pack("{s:o, s:o}", "name",
		    ctl_text(f.src[i].name), "text", text));
	}
	diag_print(&dg, stderr);
	if (status != 0) {
		diag_refused(x, &dg);
		json_decref(list);
	} else {
		*out = list;
	}
	conf_files_free(&f);
	diag_fini(&dg);
	return status;
}

static void
objects_print(const json_t *result, const char *key, const char *verb)
{
	const json_t *list = json_object_get(result, key);
	size_t i;

	for (i = 0; i < json_array_size(list); i++)
		printf("%-7s %s\n", verb,
		    json_string_value(json_array_get(list, i)));
}

static void
moves_print(const json_t *result)
{
	const json_t *list = json_object_get(result, "pools"), *p, *flows;
	json_int_t moved, slots;
	size_t i;

	for (i = 0; i < json_array_size(list); i++) {
		p = json_array_get(list, i);
		moved = json_integer_value(json_object_get(p, "slots_moved"));
		slots = json_integer_value(json_object_get(p, "slots"));
		flows = json_object_get(p, "flows_moved");
		if (moved == 0 || slots == 0)
			continue;
		printf("move    pool %s: %lld of %lld slots (%.1f %%)",
		    json_string_value(json_object_get(p, "name")),
		    (long long)moved, (long long)slots,
		    100.0 * (double)moved / (double)slots);
		if (json_is_integer(flows))
			printf(", about %lld live flows",
			    (long long)json_integer_value(flows));
		putchar('\n');
	}
}

/* The values themselves: what follows from them is above. */
static void
settings_print(const json_t *result)
{
	const json_t *list = json_object_get(result, "settings"), *row;
	const char *was, *is;
	size_t i;

	for (i = 0; i < json_array_size(list); i++) {
		row = json_array_get(list, i);
		was = json_string_value(json_object_get(row, "old"));
		is = json_string_value(json_object_get(row, "new"));
		printf("set     %s: ",
		    json_string_value(json_object_get(row, "key")));
		if (is != NULL && *is == '\0')
			puts("new");
		else if (was != NULL && *was == '\0')
			puts("gone");
		else
			printf("%s -> %s\n", was != NULL ? was : "none",
			    is != NULL ? is : "none");
	}
}

static bool
has_changes(const json_t *result)
{
	return json_array_size(json_object_get(result, "settings")) > 0 ||
	    json_array_size(json_object_get(result, "added")) > 0 ||
	    json_array_size(json_object_get(result, "changed")) > 0 ||
	    json_array_size(json_object_get(result, "removed")) > 0;
}

int
diff_run(const struct context *x)
{
	json_t *sources, *reply, *result;
	int status, rc;

	status = sources_json(x, &sources);
	if (status != 0)
		return status;
	status = ask(x, "diff", json_pack("{s:o}", "sources", sources),
	    DIFF_MS, &reply);
	if (status != 0)
		return status;
	status = reply_take(reply);
	result = json_object_get(reply, "result");
	if (status == STATUS_DONE && (x->flags & FLAG_JSON)) {
		rc = json_out(x, json_incref(result));
		if (rc != 0)
			status = rc;
	} else if (status == STATUS_DONE) {
		objects_print(result, "added", "add");
		objects_print(result, "changed", "change");
		objects_print(result, "removed", "remove");
		moves_print(result);
		settings_print(result);
		if (!has_changes(result))
			puts("no changes");
	} else {
		reply_refused(x, reply);
	}
	if (status == STATUS_DONE && (x->flags & FLAG_EXIT_CODE) &&
	    has_changes(result))
		status = STATUS_FAILED;
	json_decref(reply);
	return status;
}

int
bird_config_run(const struct context *x)
{
	const struct conf *loaded;
	struct arena *a = arena_new();
	struct conf c;
	struct diag dg;
	char *text = NULL;
	size_t len;
	FILE *f;
	int rc, status = STATUS_CONFIG;

	diag_init(&dg);
	rc = conf_file_load(x->o.config, a, &loaded, &dg);
	if (rc == 0) {
		c = *loaded;
		if (x->o.bird_dir != NULL)
			c.bgp.bird_directory = x->o.bird_dir;
		f = open_memstream(&text, &len);
		if (f == NULL || bird_config_render(&c, XLB_BIRD_WRAPPER,
		    bird_locals(&c, a), f, &dg) == 0)
			status = STATUS_DONE;
		if (f == NULL || fclose(f) != 0)
			status = STATUS_FAILED;
	}
	diag_print(&dg, stderr);
	if (status == STATUS_CONFIG)
		diag_refused(x, &dg);
	if (status == STATUS_DONE && (x->flags & FLAG_JSON))
		status = json_out(x, json_pack("{s:o}", "bird_conf",
		    ctl_text(text)));
	else if (status == STATUS_DONE && (fputs(text, stdout) == EOF ||
	    fflush(stdout) == EOF)) {
		complain("standard output: %s", strerror(errno));
		status = STATUS_FAILED;
	}
	free(text);
	diag_fini(&dg);
	arena_free(a);
	return status;
}
