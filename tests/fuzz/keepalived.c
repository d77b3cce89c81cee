/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A keepalived.conf, and after a NUL the file that it includes. What it comes to
 * prints, and loads or is refused with a reason.
 */
#include "fuzz.h"

#include <string.h>

#include "core/arena.h"
#include "core/keepalived.h"

static struct conf_source included;

static int
include(void *arg, const char *pattern, struct mark at, struct arena *a,
    struct conf_source **src, size_t *n, struct diag *dg)
{
	(void)arg, (void)at, (void)dg;
	*n = strlen(pattern) % 3;
	*src = arena_calloc(a, *n + 1, sizeof(**src));
	if (*n > 0)
		(*src)[0] = included;
	if (*n > 1)
		(*src)[1] = included;
	return 0;
}

static void
print(const struct conf *c)
{
	struct conf_source src = { "printed", NULL, 0 };
	struct arena *a = arena_new();
	const struct conf *again;
	struct diag dg;
	char *text;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	FUZZ_CHECK(f != NULL && conf_print(c, f) == 0 && fclose(f) == 0);
	src.text = text;
	src.len = len;
	diag_init(&dg);
	FUZZ_CHECK((conf_load(&src, 1, a, &again, &dg) == 0) ==
	    (dg.errors == 0));
	diag_fini(&dg);
	free(text);
	arena_free(a);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	const uint8_t *end = len > 0 ? memchr(data, '\0', len) : NULL;
	struct conf_source src = { "f", (const char *)data, len };
	struct arena *a = arena_new();
	struct conf *c = arena_calloc(a, 1, sizeof(*c));
	const struct ka_stmt *top;
	struct diag dg;

	memset(&included, 0, sizeof(included));
	included.name = "i";
	included.text = "";
	if (end != NULL) {
		src.len = (size_t)(end - data);
		included.text = (const char *)end + 1;
		included.len = len - src.len - 1;
	}
	diag_init(&dg);
	top = ka_parse(&src, include, NULL, a, &dg);
	if (dg.errors == 0 && ka_import(top, a, c, &dg) == 0) {
		FUZZ_CHECK(dg.errors == 0);
		print(c);
	} else {
		FUZZ_CHECK(dg.errors > 0);
	}
	diag_fini(&dg);
	arena_free(a);
	return 0;
}
