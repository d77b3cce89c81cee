/* SPDX-License-Identifier: GPL-2.0-or-later */
/* xlb import-keepalived: the files, and what is printed. */
#include <errno.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/conf.h"
#include "core/keepalived.h"
#include "core/text.h"
#include "ctl/command.h"
#include "io/ctl.h"
#include "io/file.h"

#define FILE_MAX_BYTES (16U << 20)

static const char head[] =
    "# Made from %s by xlb import-keepalived.\n"
    "# What has no equal was said on standard error. Backends hold the services'\n"
    "# addresses on lo, and unwrap packets where forward is not l2: xlb-decap(8).\n";

/* Where keepalived elected one node, all of them announce. */
static const char tail[] =
    "# Nothing is announced without a section like this; README.md has the rest.\n"
    "#bgp:\n"
    "#  local_as: 64512\n"
    "#  neighbors: [{address: 192.0.2.1, as: 64500}]\n"
    "# A secret, the same on all nodes, keeps clients from choosing a backend.\n"
    "#maglev: {key_file: /etc/xlb/key}\n";

/* The text is in the arena. 0, or -1 and said. */
static int
source_read(const char *path, struct mark at, struct arena *a,
    struct conf_source *src, struct diag *dg)
{
	char *text;
	int rc;

	rc = file_read(path, FILE_MAX_BYTES, &text, &src->len);
	if (rc < 0) {
		diag_add(dg, DIAG_ERROR, at, "%s: %s", path, strerror(-rc));
		return -1;
	}
	src->name = arena_strdup(a, path);
	src->text = arena_dup(a, text, src->len + 1);
	free(text);
	return 0;
}

/* Relative to the file that has the statement, as in keepalived. */
static int
include(void *arg, const char *pattern, struct mark at, struct arena *a,
    struct conf_source **src, size_t *n, struct diag *dg)
{
	const char *slash = strrchr(at.file, '/');
	const char *path = pattern[0] == '/' || slash == NULL ? pattern :
	    arena_printf(a, "%.*s/%s", (int)(slash - at.file), at.file,
	    pattern);
	glob_t g;
	size_t i;
	int rc;

	(void)arg;
	rc = glob(path, GLOB_BRACE, NULL, &g);
	if (rc == GLOB_NOMATCH) {
		*n = 0;
		return 0;
	}
	if (rc != 0) {
		diag_add(dg, DIAG_ERROR, at, "%s: cannot be read", path);
		return -1;
	}
	*src = arena_calloc(a, g.gl_pathc, sizeof(**src));
	*n = g.gl_pathc;
	for (i = 0, rc = 0; i < g.gl_pathc; i++)
		if (source_read(g.gl_pathv[i], at, a, &(*src)[i], dg) < 0)
			rc = -1;
	globfree(&g);
	return rc;
}

/* The configuration as text, malloc'ed. */
static char *
text_make(const struct conf *c, const char *path)
{
	char *text = NULL, buf[TEXT_SHOW_MAX];
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (f == NULL)
		abort();
	fprintf(f, head, text_show(path, buf));
	conf_print(c, f);
	fputs(tail, f);
	if (fclose(f) != 0)
		abort();
	return text;
}

/* It loads; else what `xlb check` will say is said now. */
static int
text_check(const char *text, struct diag *dg)
{
	struct conf_source src = { "xlb.yaml", text, strlen(text) };
	struct arena *a = arena_new();
	const struct conf *loaded;
	struct diag own;
	size_t i;
	int rc;

	diag_init(&own);
	rc = conf_load(&src, 1, a, &loaded, &own);
	for (i = 0; i < own.n; i++)
		if (own.row[i].level == DIAG_ERROR)
			diag_add(dg, DIAG_ERROR, own.row[i].mark, "%s",
			    own.row[i].text);
	diag_fini(&own);
	arena_free(a);
	return rc;
}

static int
text_out(const struct context *x, const char *text)
{
	if (x->flags & FLAG_JSON)
		return json_out(x, json_pack("{s:o}", "xlb_yaml",
		    ctl_text(text)));
	if (fputs(text, stdout) == EOF || fflush(stdout) == EOF) {
		complain("standard output: %s", strerror(errno));
		return STATUS_FAILED;
	}
	return STATUS_DONE;
}

int
import_run(const struct context *x)
{
	struct mark nowhere = { 0 };
	struct arena *a = arena_new();
	int rc, status = STATUS_CONFIG;
	struct conf_source src;
	struct ka_stmt *top;
	struct diag dg;
	bool printed = false;
	struct conf c;
	char *text;

	diag_init(&dg);
	rc = source_read(x->arg[0], nowhere, a, &src, &dg);
	if (rc == 0) {
		top = ka_parse(&src, include, NULL, a, &dg);
		if (dg.errors > 0 || ka_import(top, a, &c, &dg) < 0)
			rc = -1;
	}
	if (rc == 0) {
		printed = true;
		text = text_make(&c, x->arg[0]);
		rc = text_check(text, &dg);
		status = text_out(x, text);
		if (status == STATUS_DONE && rc < 0)
			status = STATUS_CONFIG;
		free(text);
	}
	diag_print(&dg, stderr);
	if (rc < 0 && !printed)
		diag_refused(x, &dg);
	diag_fini(&dg);
	arena_free(a);
	return status;
}
