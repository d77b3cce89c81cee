/* SPDX-License-Identifier: GPL-2.0-or-later */
/* keepalived.conf: words, and files that are damaged in every place. What files
 * come to is in tests/golden/keepalived. */
#include "unit.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/keepalived.h"

static int
none(void *arg, const char *pattern, struct mark at, struct arena *a,
    struct conf_source **src, size_t *n, struct diag *dg)
{
	(void)arg, (void)pattern, (void)at, (void)a, (void)src, (void)dg;
	*n = 0;
	return 0;
}

/* "<a><b>{<c>}": words and blocks. */
static void
words_put(const struct ka_stmt *s, FILE *out)
{
	size_t i;

	for (; s != NULL; s = s->next) {
		for (i = 0; i < s->nword; i++)
			fprintf(out, "<%s>", s->word[i]);
		if (s->block) {
			fputc('{', out);
			words_put(s->child, out);
			fputc('}', out);
		}
	}
}

static void
words_are_read(void **state)
{
	static const struct {
		const char *text, *want;	/* want NULL: refused */
	} row[] = {
		{ "", "" }, { "  # nothing\n! either\n", "" },
		{ "a b c\nd", "<a><b><c><d>" },
		{ "a{b}c", "<a>{<b>}<c>" },
		{ "a\n{\nb }", "<a>{<b>}" },
		{ "a # b\nc", "<a><c>" }, { "a \"# b\" c!d", "<a><# b><c>" },
		{ "a \"b 'c'\" 'd \"e\"'", "<a><b 'c'><d \"e\">" },
		{ "ab\"c d\"e", "<abc de>" },
		{ "\"\\x41\\102\\n\\q\\\"\"", "<AB\nq\">" },
		{ "$A=b c\na $A d", "<a><b><c><d>" },
		{ "$A=b\na ${A}c $Ac ${D}", "<a><bc><$Ac><${D}>" },
		{ "$A=${B}\n$B=1\na $A\n$B=2\na $A", "<a><1><a><2>" },
		{ "$A= \\\n b { \\\n c \\\n }\n$A\nd", "<b>{<c>}<d>" },
		{ "a ${_HASH}b", "<a><#b>" },
		{ "@x a\n@^x b", "<b>" },
		{ "a\r\nb\r\n", "<a><b>" },
		{ "a {", NULL }, { "}", NULL }, { "{ }", NULL },
		{ "a { } { }", NULL }, { "a \"b", NULL },
		{ "a \"\\0\"", NULL }, { "~SEQ(A, 1, 2) a", NULL },
		{ "$A=$A \na $A ", NULL }, { "include", NULL },
		{ "includea x", NULL },
	};
	struct conf_source src = { "f", NULL, 0 };
	struct ka_stmt *top;
	struct arena *a;
	struct diag dg;
	size_t i, len;
	char *got;
	FILE *out;

	(void)state;
	for (i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		a = arena_new();
		diag_init(&dg);
		src.text = row[i].text;
		src.len = strlen(src.text);
		top = ka_parse(&src, none, NULL, a, &dg);
		out = open_memstream(&got, &len);
		assert_non_null(out);
		words_put(top, out);
		fclose(out);
		if (row[i].want != NULL)
			assert_string_equal(got, row[i].want);
		assert_int_equal(dg.errors > 0, row[i].want == NULL);
		free(got);
		diag_fini(&dg);
		arena_free(a);
	}
}

/* A file that includes `n` others, each of which includes the next. */
struct tree {
	size_t n, depth;
};

static int
grow(void *arg, const char *pattern, struct mark at, struct arena *a,
    struct conf_source **src, size_t *n, struct diag *dg)
{
	struct tree *t = arg;
	size_t i;

	(void)at, (void)dg;
	*n = pattern[0] == 'd' ? 1 : t->n;
	*src = arena_calloc(a, *n, sizeof(**src));
	for (i = 0; i < *n; i++) {
		(*src)[i].name = arena_printf(a, "%s%zu", pattern, i);
		(*src)[i].text = pattern[0] == 'd' && t->depth > 1 ?
		    arena_printf(a, "include d%zu", --t->depth) : "word";
		(*src)[i].len = strlen((*src)[i].text);
	}
	return 0;
}

static const char *
parse_fault(const char *text, size_t len, struct tree *t)
{
	static char said[256];
	struct conf_source src = { "f", text, len };
	struct arena *a = arena_new();
	struct diag dg;

	diag_init(&dg);
	said[0] = '\0';
	if (ka_parse(&src, grow, t, a, &dg) == NULL)
		snprintf(said, sizeof(said), "%s", dg.row[0].text);
	diag_fini(&dg);
	arena_free(a);
	return said;
}

/* Definitions of lines, each of which has the next as its last line: once the
 * line before that has said its name. */
static size_t
lines_nest(char text[2048], int n)
{
	size_t len = 0;
	int i;

	for (i = 0; i < n; i++)
		len += (size_t)sprintf(text + len, "$A%d= \\\n$N%d=A%d \\\n"
		    "$$N%d\n", i, i, i + 1, i);
	return len + (size_t)sprintf(text + len, "$A%d=word\n$A0\n", n);
}

static void
nesting_has_an_end(void **state)
{
	char text[2048] = "";
	struct tree t = { KA_INCLUDES_MAX, KA_DEPTH_MAX - 1 };
	int i;

	(void)state;
	for (i = 0; i < KA_DEPTH_MAX; i++)
		strcat(text, "a {\n");
	for (i = 0; i < KA_DEPTH_MAX; i++)
		strcat(text, "}\n");
	assert_string_equal(parse_fault(text, strlen(text), &t), "");
	memmove(text + 4, text, strlen(text) + 1);
	strcat(text, "}\n");
	assert_string_equal(parse_fault(text, strlen(text), &t),
	    "more than 16 blocks in each other");
	assert_string_equal(parse_fault("include d", 9, &t), "");
	t.depth = KA_DEPTH_MAX;
	assert_string_equal(parse_fault("include d", 9, &t),
	    "more than 16 files in each other");
	assert_string_equal(parse_fault("include w", 9, &t), "");
	t.n++;
	assert_string_equal(parse_fault("include w", 9, &t),
	    "more than 256 included files");
	assert_string_equal(parse_fault("a\0b", 3, &t), "holds a NUL byte");
	assert_string_equal(parse_fault(text, lines_nest(text, 30), &t), "");
	assert_string_equal(parse_fault(text, lines_nest(text, 40), &t),
	    "definitions in each other without an end");
}

static void
source_try(const char *text, size_t len)
{
	/* of its own, so that a sanitizer sees a byte behind it */
	char *copy = malloc(len + 1);
	struct conf_source src = { "f", copy, len };
	struct arena *a = arena_new();
	struct ka_stmt *top;
	struct diag dg;
	struct conf c;

	assert_non_null(copy);
	memcpy(copy, text, len);
	copy[len] = '\0';
	diag_init(&dg);
	top = ka_parse(&src, none, NULL, a, &dg);
	if (dg.errors == 0)
		ka_import(top, a, &c, &dg);
	diag_fini(&dg);
	arena_free(a);
	free(copy);
}

/* Cut off, and with another byte, in every place. */
static void
damage_is_survived(void **state)
{
	static const char bytes[] = "{}\"$\n-0/";
	const char *top = getenv("top_srcdir");
	char path[4096], text[8192], saved;
	size_t i, k, len;
	glob_t g;
	FILE *f;

	(void)state;
	snprintf(path, sizeof(path), "%s/tests/golden/keepalived/*.conf",
	    top != NULL ? top : ".");
	assert_int_equal(glob(path, 0, NULL, &g), 0);
	for (i = 0; i < g.gl_pathc; i++) {
		f = fopen(g.gl_pathv[i], "r");
		assert_non_null(f);
		len = fread(text, 1, sizeof(text), f);
		fclose(f);
		assert_in_range(len, 1, sizeof(text) - 1);
		for (k = 0; k < len; k++) {
			source_try(text, k);
			saved = text[k];
			text[k] = bytes[k % (sizeof(bytes) - 1)];
			source_try(text, len);
			text[k] = saved;
		}
	}
	assert_true(g.gl_pathc >= 10);
	globfree(&g);
}

int
main(void)
{
	const struct CMUnitTest test[] = {
		cmocka_unit_test(words_are_read),
		cmocka_unit_test(nesting_has_an_end),
		cmocka_unit_test(damage_is_survived),
	};

	return cmocka_run_group_tests_name("keepalived", test, NULL, NULL);
}
