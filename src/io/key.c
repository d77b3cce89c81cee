/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads a key: 16 raw bytes, or as text, which survives every way of copying.
 * The lengths tell them apart. */
#include "io/key.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "io/file.h"
#include "io/log.h"

#define KEY_FILE_MAX 256

static int
key_parse(const char *text, size_t len, uint8_t key[16])
{
	unsigned byte;
	size_t i;

	if (len == 16) {
		memcpy(key, text, 16);
		return 0;
	}
	while (len > 0 && isspace((unsigned char)text[len - 1]))
		len--;
	if (len != 32)
		return -EINVAL;
	for (i = 0; i < 16; i++) {
		if (!isxdigit((unsigned char)text[2 * i]) ||
		    !isxdigit((unsigned char)text[2 * i + 1]) ||
		    sscanf(text + 2 * i, "%2x", &byte) != 1)
			return -EINVAL;
		key[i] = (uint8_t)byte;
	}
	return 0;
}

int
key_read(const char *path, uint8_t key[16])
{
	struct stat st;
	char *buf;
	size_t len;
	int rc;

	rc = file_read(path, KEY_FILE_MAX, &buf, &len);
	if (rc < 0)
		return rc == -EFBIG ? -EINVAL : rc;
	rc = key_parse(buf, len, key);
	explicit_bzero(buf, len);
	free(buf);
	if (rc == 0 && stat(path, &st) == 0 && (st.st_mode & 07) != 0)
		log_warnx("%s: others may read this key (chmod 640)", path);
	return rc;
}
