/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The files of the configuration: the main one and those in xlb.d/ beside. */
#ifndef XLB_CONF_FILE_H
#define XLB_CONF_FILE_H

#include "core/conf.h"

#define CONF_FRAGMENTS_MAX 1024
#define NODE_NAME_MAX 65

struct conf_files {
	struct conf_source *src;	/* heap, names and texts too */
	size_t n;
};

/*
 * Reads `path` ("-": standard input, which has nothing beside it) and
 * xlb.d/(any).yaml in the same directory, sorted by name. 0, or -1 with the
 * reasons in `dg`; conf_files_free() either way.
 */
int conf_files_read(const char *path, struct conf_files *f, struct diag *dg);
void conf_files_free(struct conf_files *f);

/* Reads and loads. As conf_load(), and what it names has to be there. */
int conf_file_load(const char *path, struct arena *a, const struct conf **out,
    struct diag *dg);

/* node.name, or the host's name. Returns `buf`. */
const char *conf_node_name(const struct conf *c, char buf[NODE_NAME_MAX]);

#endif
