/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Renders and writes the files that BIRD includes. */
#include "io/bird_include.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/arena.h"
#include "core/bird_text.h"
#include "io/file.h"
#include "io/log.h"

#define INCLUDE_MAX (16 << 20)

bool
include_render(struct include *in, const struct announce *an,
    const struct conf *c)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	if (out == NULL || bird_render(an, c, in->family, out) < 0 ||
	    fclose(out) != 0)
		fatal("%s", in->path);
	if (in->text != NULL && in->len == len &&
	    memcmp(in->text, text, len) == 0) {
		free(text);
		return false;
	}
	free(in->text);
	arena_free(in->a);
	in->text = text;
	in->len = len;
	in->a = arena_new();
	in->want = bird_include_parse(text, len, in->a, &in->nwant);
	return true;
}

/* It stays until BIRD accepted what was written: should we die before, our
 * successor asks for the configure. No sync: it need not outlive the machine. */
static void
marker_make(const char *marker)
{
	int fd = open(marker, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	if (fd < 0)
		log_debug("%s: %s", marker, strerror(errno));
	else
		close(fd);
}

bool
include_write(struct include *in, const char *marker)
{
	int was = in->err;

	if (file_equal(in->path, in->text, in->len) == 1) {
		in->err = 0;
		return false;
	}
	marker_make(marker);
	in->err = file_replace(in->path, in->text, in->len, 0644);
	if (in->err < 0 && in->err != was)
		log_warnx("%s: %s", in->path, strerror(-in->err));
	return in->err == 0;
}

struct prefix *
include_read(const struct include *in, struct arena *a, size_t *n)
{
	struct prefix *p;
	char *text;
	size_t len;

	*n = 0;
	if (file_read(in->path, INCLUDE_MAX, &text, &len) < 0)
		return NULL;
	p = bird_include_parse(text, len, a, n);
	free(text);
	return p;
}

void
include_free(struct include *in)
{
	free(in->path);
	free(in->text);
	arena_free(in->a);
}
