/* SPDX-License-Identifier: GPL-2.0-or-later */
/* For helpers that are linked instead of the real ones: which of its lives this is,
 * by a file to which each adds a byte. */
#ifndef XLB_LIVES_H
#define XLB_LIVES_H

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* In the test, before anything is forked. `path` ends in XXXXXX. 0, or -1. */
static inline int
lives_begin(char *path)
{
	int fd = mkstemp(path);

	if (fd < 0 || fchmod(fd, 0666) < 0)
		return -1;
	close(fd);
	return setenv("LIVES", path, 1);
}

/* In the helper: 1, 2 and so on. Opened anew by name, since descriptors are not
 * inherited. */
static inline ssize_t
life_begin(void)
{
	char lives[64];
	int fd = open(getenv("LIVES"), O_RDWR | O_APPEND | O_CLOEXEC);

	if (fd < 0 || write(fd, "x", 1) != 1)
		_exit(1);
	return pread(fd, lives, sizeof(lives), 0);
}

#endif
