/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Prints what a configuration means, or what is wrong with it; and proves that
 * what it prints means the same again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/conf.h"
#include "io/conf_file.h"

/* Every field, as text: equal texts are equal configurations. */
static char *
everything(const struct conf *c)
{
	char *text;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (f == NULL || conf_print_all(c, f) < 0 || fclose(f) != 0)
		abort();
	return text;
}

static int
print_again(const struct conf *c)
{
	struct conf_source src = { "printed", NULL, 0 };
	struct arena *a = arena_new();
	const struct conf *again;
	char *text, *before, *after;
	struct diag dg;
	size_t len;
	int rc = -1;
	FILE *f = open_memstream(&text, &len);

	if (f == NULL || conf_print(c, f) < 0 || fclose(f) != 0)
		abort();
	src.text = text;
	src.len = len;
	diag_init(&dg);
	before = everything(c);
	if (conf_load(&src, 1, a, &again, &dg) < 0) {
		puts("what was printed does not load:");
		diag_print(&dg, stdout);
	} else {
		after = everything(again);
		rc = strcmp(before, after) == 0 ? 0 : -1;
		if (rc < 0)
			printf("what was printed means something else:\n"
			    "%s--- is not\n%s", after, before);
		free(after);
	}
	free(before);
	free(text);
	diag_fini(&dg);
	arena_free(a);
	return rc;
}

int
main(int argc, char *argv[])
{
	bool all = argc == 3 && strcmp(argv[1], "-a") == 0;
	struct arena *a = arena_new();
	const struct conf *c;
	struct diag dg;
	int rc = 1;

	if (argc != 2 + all) {
		fprintf(stderr, "usage: conf_show [-a] FILE\n");
		return 2;
	}
	diag_init(&dg);
	if (conf_file_load(argv[argc - 1], a, &c, &dg) == 0) {
		diag_print(&dg, stdout);
		if (all)
			conf_print_all(c, stdout);
		else
			conf_print(c, stdout);
		rc = print_again(c) < 0;
	} else {
		diag_print(&dg, stdout);
		if (dg.errors == 0)
			puts("refused without a reason");
	}
	diag_fini(&dg);
	arena_free(a);
	return rc;
}
