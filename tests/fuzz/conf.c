/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * YAML to a configuration. The input is a file and, after each NUL, a fragment.
 * One that is refused says why; one that loads prints as one that loads again
 * and means the same, and what it asks to be probed is in order.
 */
#include "fuzz.h"

#include <string.h>

#include "core/arena.h"
#include "core/conf.h"
#include "core/health.h"

#define FILES 4

/* Every field, as text. */
static char *
everything(const struct conf *c)
{
	char *text;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	FUZZ_CHECK(f != NULL && conf_print_all(c, f) == 0 && fclose(f) == 0);
	return text;
}

static void
loads_again(const struct conf *c)
{
	struct conf_source src = { "printed", NULL, 0 };
	struct arena *a = arena_new();
	const struct conf *again;
	char *text, *before = everything(c), *after;
	struct diag dg;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	FUZZ_CHECK(f != NULL && conf_print(c, f) == 0 && fclose(f) == 0);
	src.text = text;
	src.len = len;
	diag_init(&dg);
	if (conf_load(&src, 1, a, &again, &dg) < 0) {
		diag_print(&dg, stderr);
		FUZZ_CHECK(!"loads again");
	}
	after = everything(again);
	FUZZ_CHECK(strcmp(before, after) == 0);
	free(after);
	free(before);
	free(text);
	diag_fini(&dg);
	arena_free(a);
}

/* What is made of it first. */
static void
is_used(const struct conf *c)
{
	struct arena *a = arena_new();
	struct health_target *t;
	size_t n, i;

	t = health_targets(c, a, &n);
	for (i = 1; i < n; i++)
		FUZZ_CHECK(addr_cmp(&t[i - 1].addr, &t[i].addr) <= 0);
	arena_free(a);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static const char *const name[FILES] = { "a", "b", "c", "d" };
	struct conf_source src[FILES];
	const char *at = (const char *)data, *end = at + len, *stop;
	struct arena *a = arena_new();
	const struct conf *c = NULL;
	struct diag dg;
	size_t n = 0;

	diag_init(&dg);
	for (; n < FILES; at = stop + 1) {
		stop = n + 1 < FILES && at < end ?
		    memchr(at, '\0', (size_t)(end - at)) : NULL;
		src[n].name = name[n];
		src[n].text = at;
		src[n++].len = (size_t)((stop != NULL ? stop : end) - at);
		if (stop == NULL)
			break;
	}
	if (conf_load(src, n, a, &c, &dg) < 0) {
		FUZZ_CHECK(dg.errors > 0);
	} else {
		FUZZ_CHECK(dg.errors == 0 && c != NULL);
		loads_again(c);
		is_used(c);
	}
	diag_fini(&dg);
	arena_free(a);
	return 0;
}
