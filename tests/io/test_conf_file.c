/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "../unit/unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/arena.h"
#include "core/yaml.h"
#include "io/conf_file.h"

static char dir[64];
static struct conf_files files;
static struct diag dg;

static const char *
in_dir(const char *name)
{
	static char path[2][160];
	static int turn;

	turn = !turn;
	snprintf(path[turn], sizeof(path[turn]), "%s/%s", dir, name);
	return path[turn];
}

static void
put(const char *name, const char *text)
{
	FILE *f = fopen(in_dir(name), "w");

	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

static int
fresh(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/xlb-conf-XXXXXX");
	if (mkdtemp(dir) == NULL || mkdir(in_dir("xlb.d"), 0700) < 0)
		return -1;
	diag_init(&dg);
	put("main.yaml", "# main\n");
	return 0;
}

static int
done(void **state)
{
	char *rm;
	int rc;

	(void)state;
	conf_files_free(&files);
	diag_fini(&dg);
	if (asprintf(&rm, "rm -rf %s", dir) < 0)
		return -1;
	rc = system(rm);
	free(rm);
	return rc;
}

static int
files_read(void)
{
	return conf_files_read(in_dir("main.yaml"), &files, &dg);
}

static void
fragments_are_read_in_order(void **state)
{
	(void)state;
	put("xlb.d/b.yaml", "# b\n");
	put("xlb.d/a.yaml", "# a\n");
	put("xlb.d/B.yaml", "# B\n");
	put("xlb.d/.c.yaml", "# no\n");
	put("xlb.d/c.yml", "# no\n");
	put("xlb.d/.yaml", "# no\n");
	put("xlb.d/c.yaml~", "# no\n");
	assert_int_equal(files_read(), 0);
	assert_int_equal(files.n, 4);
	assert_string_equal(files.src[0].name, in_dir("main.yaml"));
	assert_string_equal(files.src[0].text, "# main\n");
	assert_int_equal(files.src[0].len, 7);
	assert_string_equal(files.src[1].name, in_dir("xlb.d/B.yaml"));
	assert_string_equal(files.src[2].text, "# a\n");
	assert_string_equal(files.src[3].text, "# b\n");
}

static void
names_are_shown_as_given(void **state)
{
	char cwd[4096];

	(void)state;
	put("xlb.d/a.yaml", "");
	assert_non_null(getcwd(cwd, sizeof(cwd)));
	assert_int_equal(chdir(dir), 0);
	assert_int_equal(conf_files_read("main.yaml", &files, &dg), 0);
	assert_int_equal(chdir(cwd), 0);
	assert_string_equal(files.src[0].name, "main.yaml");
	assert_string_equal(files.src[1].name, "xlb.d/a.yaml");
}

static void
no_directory_is_no_mistake(void **state)
{
	(void)state;
	assert_int_equal(rmdir(in_dir("xlb.d")), 0);
	assert_int_equal(files_read(), 0);
	assert_int_equal(files.n, 1);
}

static void
every_unreadable_file_is_named(void **state)
{
	(void)state;
	assert_int_equal(unlink(in_dir("main.yaml")), 0);
	assert_int_equal(mkdir(in_dir("xlb.d/a.yaml"), 0700), 0);
	assert_int_equal(symlink("nowhere", in_dir("xlb.d/b.yaml")), 0);
	/* opening it would wait for a writer */
	assert_int_equal(mkfifo(in_dir("xlb.d/c.yaml"), 0600), 0);
	put("xlb.d/d.yaml", "");
	assert_int_equal(files_read(), -1);
	assert_int_equal(dg.errors, 4);
	assert_string_equal(dg.row[0].mark.file, in_dir("main.yaml"));
	assert_string_equal(dg.row[0].text, "No such file or directory");
	assert_int_equal(dg.row[0].mark.line, 0);
	assert_string_equal(dg.row[1].text, "Is a directory");
	assert_string_equal(dg.row[2].text, "No such file or directory");
	assert_string_equal(dg.row[3].mark.file, in_dir("xlb.d/c.yaml"));
}

static void
a_file_for_a_directory_is_said(void **state)
{
	(void)state;
	assert_int_equal(rmdir(in_dir("xlb.d")), 0);
	put("xlb.d", "");
	assert_int_equal(files_read(), -1);
	assert_string_equal(dg.row[0].text, "Not a directory");
}

static void
size_is_bounded(void **state)
{
	(void)state;
	assert_int_equal(truncate(in_dir("main.yaml"), YAML_SIZE_MAX + 1), 0);
	assert_int_equal(files_read(), -1);
	assert_string_equal(dg.row[0].text, "larger than 16 MiB");
	/* what never ends, too */
	conf_files_free(&files);
	assert_int_equal(conf_files_read("/dev/zero", &files, &dg), -1);
}

static void
the_number_of_fragments_is_bounded(void **state)
{
	char name[32];
	int i;

	(void)state;
	for (i = 0; i <= CONF_FRAGMENTS_MAX; i++) {
		snprintf(name, sizeof(name), "xlb.d/%d.yaml", i);
		put(name, "");
	}
	assert_int_equal(files_read(), -1);
	assert_string_equal(dg.row[0].text, "more than 1024 files");
	assert_int_equal(unlink(in_dir("xlb.d/0.yaml")), 0);
	conf_files_free(&files);
	assert_int_equal(files_read(), 0);
	assert_int_equal(files.n, 1 + CONF_FRAGMENTS_MAX);
}

static void
a_node_without_a_name_has_the_hosts(void **state)
{
	struct arena *a = arena_new();
	char host[NODE_NAME_MAX], buf[NODE_NAME_MAX];
	const struct conf *c;

	(void)state;
	assert_int_equal(gethostname(host, sizeof(host)), 0);
	assert_int_equal(conf_file_load(in_dir("main.yaml"), a, &c, &dg), 0);
	assert_string_equal(conf_node_name(c, buf), host);
	put("main.yaml", "node: {name: lb1}");
	assert_int_equal(conf_file_load(in_dir("main.yaml"), a, &c, &dg), 0);
	assert_string_equal(conf_node_name(c, buf), "lb1");
	assert_string_equal(c->node_name, "lb1");
	arena_free(a);
}

#define T(f) cmocka_unit_test_setup_teardown(f, fresh, done)

int
main(void)
{
	const struct CMUnitTest test[] = {
		T(fragments_are_read_in_order),
		T(names_are_shown_as_given),
		T(no_directory_is_no_mistake),
		T(every_unreadable_file_is_named),
		T(a_file_for_a_directory_is_said),
		T(size_is_bounded),
		T(the_number_of_fragments_is_bounded),
		T(a_node_without_a_name_has_the_hosts),
	};

	return cmocka_run_group_tests_name("conf_file", test, NULL, NULL);
}
