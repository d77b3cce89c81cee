/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/yaml.h"

static struct arena *a;
static struct diag dg;

static int
fresh(void **state)
{
	(void)state;
	a = arena_new();
	diag_init(&dg);
	return 0;
}

static int
done(void **state)
{
	(void)state;
	arena_free(a);
	diag_fini(&dg);
	return 0;
}

static struct node *
parse(const char *text)
{
	return yaml_parse("f", text, strlen(text), a, &dg);
}

static void
at(const struct node *n, unsigned line, unsigned col, const char *path)
{
	char buf[YAML_PATH_MAX];

	assert_int_equal(n->mark.line, line);
	assert_int_equal(n->mark.col, col);
	assert_string_equal(n->mark.file, "f");
	assert_string_equal(node_path(n, buf), path);
}

static void
nodes_know_their_place(void **state)
{
	const struct node *root, *list, *map;

	(void)state;
	root = parse("a: 1\nb:\n  - x\n  - {c: 'y', \"d\": [z]}\ne: |\n  t\n");
	assert_non_null(root);
	assert_int_equal(root->kind, NODE_MAP);
	assert_int_equal(root->n, 3);
	at(node_get(root, "a"), 1, 4, "a");
	assert_true(node_get(root, "a")->plain);
	list = node_get(root, "b");
	at(list, 3, 3, "b");
	assert_int_equal(list->key_mark.line, 2);
	assert_int_equal(list->key_mark.col, 1);
	at(list->child[0], 3, 5, "b[0]");
	map = list->child[1];
	at(map, 4, 5, "b[1]");
	at(node_get(map, "c"), 4, 9, "b[1].c");
	assert_string_equal(node_get(map, "c")->text, "y");
	assert_false(node_get(map, "c")->plain);
	at(node_get(map, "d")->child[0], 4, 20, "b[1].d[0]");
	at(node_get(root, "e"), 5, 4, "e");
	assert_string_equal(node_get(root, "e")->text, "t\n");
	assert_null(node_get(root, "f"));
	assert_null(node_get(list, "c"));
	assert_int_equal(dg.n, 0);
}

static void
an_empty_document_is_a_mapping(void **state)
{
	static const char *const text[] = { "", "\n", "# x\n", "---\n",
	    "---\n...\n", "\xef\xbb\xbf", "{}", "%YAML 1.1\n---\n" };
	const struct node *root;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(text) / sizeof(text[0]); i++) {
		root = parse(text[i]);
		assert_non_null(root);
		assert_int_equal(root->kind, NODE_MAP);
		assert_int_equal(root->n, 0);
	}
	assert_int_equal(dg.n, 0);
}

/* Each at its place, and nothing of the file is taken. */
static void
characters_that_are_no_text_are_refused(void **state)
{
	static const struct {
		const char *text, *want;
	} row[] = {
		{ "a: \xef\xbb\xbf" "b", "a byte order mark in the middle of the "
		    "file (0xfeff)" },
		{ "a: \xef\xbf\xbe", "a character that is none (0xfffe)" },
		{ "a: \xef\xbf\xbf", "a character that is none (0xffff)" },
		{ "a: \xe2\x80\xa8", "a Unicode line separator (0x2028)" },
		{ "a: \x7f", "a control character (0x7f)" },
		{ "a: \xc2\x85", "a control character (0x85)" },
		{ "a: \rb", "a carriage return without a line feed (0x0d)" },
		{ "a: \xff", "byte 0xff is not UTF-8" },
		{ "a: \xed\xa0\x80", "byte 0xed is not UTF-8" },
		{ "a: \xc3", "byte 0xc3 is not UTF-8" },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		assert_null(parse(row[i].text));
		assert_int_equal(dg.errors, i + 1);
		assert_string_equal(dg.row[i].text, row[i].want);
		assert_int_equal(dg.row[i].mark.line, 1);
		assert_int_equal(dg.row[i].mark.col, 4);
	}
	assert_null(yaml_parse("f", "a: \0", 4, a, &dg));
	assert_string_equal(dg.row[i].text, "a NUL byte (0x00)");
}

static void
only_what_is_not_written_is_empty(void **state)
{
	const struct node *root;

	(void)state;
	root = parse("a:\nb: ''\nc: ~\nd: null\ne: []\n");
	assert_true(node_is_empty(node_get(root, "a")));
	assert_false(node_is_empty(node_get(root, "b")));
	assert_false(node_is_empty(node_get(root, "c")));
	assert_false(node_is_empty(node_get(root, "d")));
	assert_false(node_is_empty(node_get(root, "e")));
}

/* [[[...]]], `depth` lists in the root's mapping. */
static const char *
lists(unsigned depth)
{
	char *s = arena_alloc(a, 4 + 2 * depth + 1);

	memcpy(s, "a: ", 3);
	memset(s + 3, '[', depth);
	memset(s + 3 + depth, ']', depth);
	return s;
}

static void
depth_is_bounded(void **state)
{
	(void)state;
	assert_non_null(parse(lists(YAML_DEPTH_MAX)));
	assert_int_equal(dg.errors, 0);
	assert_null(parse(lists(YAML_DEPTH_MAX + 1)));
	assert_int_equal(dg.errors, 1);
	assert_null(parse(lists(100000)));
}

static void
the_number_of_values_is_bounded(void **state)
{
	size_t n = YAML_NODES_MAX + 1;
	char *s = malloc(2 * n + 3);

	(void)state;
	s[0] = '[';
	memset(s + 1, 0, 2 * n + 2);
	for (size_t i = 0; i < n; i++)
		memcpy(s + 1 + 2 * i, "1,", 2);
	s[1 + 2 * n] = ']';
	assert_null(parse(s));
	assert_int_equal(dg.errors, 1);
	assert_non_null(strstr(dg.row[0].text, "more than 1048576 values"));
	free(s);
}

static void
size_is_bounded(void **state)
{
	char *s = malloc(YAML_SIZE_MAX + 1);

	(void)state;
	memset(s, '\n', YAML_SIZE_MAX + 1);
	assert_non_null(yaml_parse("f", s, YAML_SIZE_MAX, a, &dg));
	assert_null(yaml_parse("f", s, YAML_SIZE_MAX + 1, a, &dg));
	assert_int_equal(dg.errors, 1);
	free(s);
}

/* A sort, not a comparison of each key with each. */
static void
a_hundred_thousand_keys_take_no_time(void **state)
{
	size_t i, n = 100000, used = 0;
	char *s = malloc(n * 10 + 1);

	(void)state;
	for (i = 0; i < n; i++)
		used += (size_t)sprintf(s + used, "k%zu: 1\n", i % (n - 1));
	assert_non_null(parse(s));
	assert_int_equal(dg.errors, 1);
	assert_string_equal(dg.row[0].text,
	    "k0: duplicate key, already at f:1:1");
	assert_int_equal(dg.row[0].mark.line, n);
	free(s);
}

static void
every_prefix_of_every_byte_is_survived(void **state)
{
	static const char text[] = "a: &x {b: [1, 'c', \"\\u00e4\"], ? d : !!s e"
	    "}\r\n# \xe2\x82\xac\nf: |\n  g\nh: >-\n  i\n*x : j\n--- k\n";
	unsigned char copy[sizeof(text)];
	size_t i, c;

	(void)state;
	for (i = 0; i < sizeof(text); i++) {
		arena_free(a);
		a = arena_new();
		yaml_parse("f", text, i, a, &dg);
		for (c = 0; c < 256; c++) {
			memcpy(copy, text, sizeof(text));
			copy[i] = (unsigned char)c;
			yaml_parse("f", (const char *)copy, sizeof(text) - 1,
			    a, &dg);
		}
		diag_fini(&dg);
		diag_init(&dg);
	}
}

#define T(f) cmocka_unit_test_setup_teardown(f, fresh, done)

int
main(void)
{
	const struct CMUnitTest test[] = {
		T(nodes_know_their_place),
		T(an_empty_document_is_a_mapping),
		T(characters_that_are_no_text_are_refused),
		T(only_what_is_not_written_is_empty),
		T(depth_is_bounded),
		T(the_number_of_values_is_bounded),
		T(size_is_bounded),
		T(a_hundred_thousand_keys_take_no_time),
		T(every_prefix_of_every_byte_is_survived),
	};

	return cmocka_run_group_tests_name("yaml", test, NULL, NULL);
}
