/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads the files of the configuration; what they mean is conf_load()'s. */
#include "io/conf_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/yaml.h"
#include "io/conf_world.h"
#include "io/file.h"

static void *
need(void *p)
{
	if (p == NULL)
		abort();
	return p;
}

static int
read_error(const char *path, int rc, struct diag *dg)
{
	struct mark at = { path, 0, 0 };

	if (rc == -EFBIG)
		diag_add(dg, DIAG_ERROR, at, "larger than %d MiB",
		    YAML_SIZE_MAX >> 20);
	else
		diag_add(dg, DIAG_ERROR, at, "%s", strerror(-rc));
	return -1;
}

/* Takes `name`. */
static int
source_add(struct conf_files *f, char *name, struct diag *dg)
{
	struct conf_source *src;
	size_t len;
	char *text;
	int rc;

	rc = file_read(name, YAML_SIZE_MAX, &text, &len);
	if (rc < 0) {
		read_error(name, rc, dg);
		free(name);
		return -1;
	}
	f->src = need(reallocarray(f->src, f->n + 1, sizeof(*f->src)));
	src = &f->src[f->n++];
	src->name = name;
	src->text = text;
	src->len = len;
	return 0;
}

/* Names with a dot in front are editors' and package managers'. */
static int
is_fragment(const struct dirent *d)
{
	size_t n = strlen(d->d_name);

	return d->d_name[0] != '.' && n > 5 &&
	    strcmp(d->d_name + n - 5, ".yaml") == 0;
}

static int
name_cmp(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

/* A pipe would wait for ever, a directory is a mistake. */
static int
fragment_add(struct conf_files *f, char *name, struct diag *dg)
{
	struct stat st;
	int rc = 0;

	if (stat(name, &st) < 0)
		rc = -errno;
	else if (S_ISDIR(st.st_mode))
		rc = -EISDIR;
	else if (!S_ISREG(st.st_mode))
		rc = -EINVAL;
	if (rc == 0)
		return source_add(f, name, dg);
	read_error(name, rc, dg);
	free(name);
	return -1;
}

static int
fragments_read(const char *dir, struct conf_files *f, struct diag *dg)
{
	struct dirent **list;
	int n, i, rc = 0;
	char *name;

	n = scandir(dir, &list, is_fragment, name_cmp);
	if (n < 0)
		return errno == ENOENT ? 0 : read_error(dir, -errno, dg);
	if (n > CONF_FRAGMENTS_MAX) {
		diag_add(dg, DIAG_ERROR, (struct mark){ dir, 0, 0 },
		    "more than %d files", CONF_FRAGMENTS_MAX);
		rc = -1;
	}
	for (i = 0; i < n; i++) {
		if (n <= CONF_FRAGMENTS_MAX) {
			if (asprintf(&name, "%s/%s", dir, list[i]->d_name) < 0)
				abort();
			if (fragment_add(f, name, dg) < 0)
				rc = -1;
		}
		free(list[i]);
	}
	free(list);
	return rc;
}

int
conf_files_read(const char *path, struct conf_files *f, struct diag *dg)
{
	const char *slash = strrchr(path, '/');
	char *dir;
	int rc;

	memset(f, 0, sizeof(*f));
	rc = source_add(f, need(strdup(path)), dg);
	if (strcmp(path, "-") == 0)
		return rc;
	if (asprintf(&dir, "%.*sxlb.d", slash == NULL ? 0 :
	    (int)(slash - path) + 1, path) < 0)
		abort();
	if (fragments_read(dir, f, dg) < 0)
		rc = -1;
	free(dir);
	return rc;
}

void
conf_files_free(struct conf_files *f)
{
	size_t i;

	for (i = 0; i < f->n; i++) {
		/* ours: read and named above */
		free((void *)(uintptr_t)f->src[i].name);
		free((void *)(uintptr_t)f->src[i].text);
	}
	free(f->src);
	memset(f, 0, sizeof(*f));
}

int
conf_file_load(const char *path, struct arena *a, const struct conf **out,
    struct diag *dg)
{
	struct conf_files f;
	int rc;

	rc = conf_files_read(path, &f, dg);
	if (rc == 0)
		rc = conf_load(f.src, f.n, a, out, dg);
	if (rc == 0)
		rc = conf_world_check(*out, DIAG_ERROR, dg);
	conf_files_free(&f);
	return rc;
}

const char *
conf_node_name(const struct conf *c, char buf[NODE_NAME_MAX])
{
	if (c->node_name[0] != '\0')
		snprintf(buf, NODE_NAME_MAX, "%s", c->node_name);
	else if (gethostname(buf, NODE_NAME_MAX) < 0)
		snprintf(buf, NODE_NAME_MAX, "localhost");
	buf[NODE_NAME_MAX - 1] = '\0';
	return buf;
}
