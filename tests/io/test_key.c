/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Keys in files: raw, as text, and what is none. */
#include "../unit/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/file.h"
#include "io/key.h"
#include "io/log.h"

#define HEX "000102030405060708090a0b0c0d0eFF"

static char path[] = "/tmp/xlb-key.XXXXXX";
static unsigned warnings;

static void
line_count(int level, const char *line, void *arg)
{
	(void)level, (void)arg;
	assert_non_null(strstr(line, "others may read this key"));
	warnings++;
}

static const struct row {
	const char *text;
	size_t len;		/* 0: of the text */
	mode_t mode;
	int rc;
	unsigned warnings;
} row[] = {
	{ HEX, 0, 0600, 0, 0 },
	{ HEX "\n", 0, 0640, 0, 0 },
	{ HEX " \r\n", 0, 0600, 0, 0 },
	{ "\0\1\2\3\4\5\6\7\10\11\12\13\14\15\16\377", 16, 0600, 0, 0 },
	{ HEX "\n", 0, 0644, 0, 1 },
	{ HEX "\n", 0, 0601, 0, 1 },
	{ "", 0, 0600, -EINVAL, 0 },
	{ "000102030405060708090a0b0c0d0ef", 0, 0600, -EINVAL, 0 },
	{ HEX "0", 0, 0600, -EINVAL, 0 },
	{ "000102030405060708090a0b0c0d0eFg", 0, 0600, -EINVAL, 0 },
	{ "000102030405060708090a0b0c0d0e F", 0, 0600, -EINVAL, 0 },
	{ "0x0102030405060708090a0b0c0d0eFF", 0, 0600, -EINVAL, 0 },
	{ "\n" HEX, 0, 0600, -EINVAL, 0 },
};

static void
each_form(void **state)
{
	uint8_t key[16];
	size_t i, k;

	(void)state;
	for (i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		warnings = 0;
		assert_int_equal(file_replace(path, row[i].text,
		    row[i].len != 0 ? row[i].len : strlen(row[i].text),
		    row[i].mode), 0);
		memset(key, 0xaa, sizeof(key));
		assert_int_equal(key_read(path, key), row[i].rc);
		assert_int_equal(warnings, row[i].warnings);
		for (k = 0; row[i].rc == 0 && k < 16; k++)
			assert_int_equal(key[k], k == 15 ? 0xff : k);
	}
}

static void
what_is_none(void **state)
{
	static const char large[300];
	uint8_t key[16];

	(void)state;
	assert_int_equal(file_replace(path, large, sizeof(large), 0600), 0);
	assert_int_equal(key_read(path, key), -EINVAL);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(key_read(path, key), -ENOENT);
	assert_int_equal(key_read("/", key), -EISDIR);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_form),
		cmocka_unit_test(what_is_none),
	};

	close(mkstemp(path));
	log_capture(line_count, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
