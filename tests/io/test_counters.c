/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counters in a file: they outlive whoever counted, and give way to others only
 * when there is no room. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/counters.h"
#include "io/log.h"

static char dir[] = "/tmp/xlb-counters-XXXXXX";
static char path[128];

static void
ignore(int level, const char *line, void *arg)
{
	(void)level, (void)line, (void)arg;
}

static int
fresh(void **state)
{
	(void)state;
	unlink(path);
	return 0;
}

static void
test_outlives(void **state)
{
	struct counters *c = counters_open(dir);
	struct stat st;

	(void)state;
	counters_row(c, "pool", "web")[1] += 5;
	counters_row(c, "check", "web")[1] += 7;
	counters_close(c);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	c = counters_open(dir);
	assert_int_equal(counters_row(c, "pool", "web")[1], 5);
	assert_int_equal(counters_row(c, "check", "web")[1], 7);
	assert_int_equal(counters_row(c, "pool", "web")[0], 0);
	counters_close(c);
}

/* An object that is gone for a while goes on where it was. */
static void
test_comes_back(void **state)
{
	struct counters *c = counters_open(dir);
	int i;

	(void)state;
	counters_row(c, "pool", "web")[0] = 5;
	for (i = 0; i < 10; i++)
		counters_renew(c);
	assert_int_equal(counters_row(c, "pool", "web")[0], 5);
	counters_close(c);
}

/* Each configuration has a thousand other pools, and one that stays. */
static void
test_makes_room(void **state)
{
	struct counters *c = counters_open(dir);
	char name[32];
	int round, i;

	(void)state;
	for (round = 0; round < 20; round++) {
		counters_renew(c);
		counters_row(c, "pool", "stays")[0]++;
		for (i = 0; i < 1000; i++) {
			snprintf(name, sizeof(name), "p%d-%d", round, i);
			assert_int_equal(counters_row(c, "pool", name)[0], 0);
			counters_row(c, "pool", name)[0] = 1;
		}
		for (i = 0; i < 1000; i++) {
			snprintf(name, sizeof(name), "p%d-%d", round, i);
			assert_int_equal(counters_row(c, "pool", name)[0], 1);
		}
	}
	assert_int_equal(counters_row(c, "pool", "stays")[0], 20);
	counters_close(c);
}

/* What somebody else left there is not believed. */
static void
test_foreign(void **state)
{
	struct counters *c;
	int fd = open(path, O_WRONLY | O_CREAT, 0600), i;

	(void)state;
	for (i = 0; i < 300000; i++)
		assert_int_equal(write(fd, "nonsense", 8), 8);
	close(fd);
	c = counters_open(dir);
	assert_int_equal(counters_row(c, "pool", "web")[0], 0);
	counters_row(c, "pool", "web")[0] = 3;
	counters_close(c);
	c = counters_open(dir);
	assert_int_equal(counters_row(c, "pool", "web")[0], 3);
	counters_close(c);
}

static void
test_no_file(void **state)
{
	struct counters *c;

	(void)state;
	assert_int_equal(mkdir(path, 0700), 0);
	c = counters_open(dir);
	counters_row(c, "pool", "web")[0] = 3;
	assert_int_equal(counters_row(c, "pool", "web")[0], 3);
	counters_close(c);
	assert_int_equal(rmdir(path), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_outlives, fresh),
		cmocka_unit_test_setup(test_comes_back, fresh),
		cmocka_unit_test_setup(test_makes_room, fresh),
		cmocka_unit_test_setup(test_foreign, fresh),
		cmocka_unit_test_setup(test_no_file, fresh),
	};
	int rc;

	log_capture(ignore, NULL);
	if (mkdtemp(dir) == NULL)
		return 1;
	snprintf(path, sizeof(path), "%s/" COUNTERS_FILE, dir);
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	rmdir(dir);
	return rc;
}
