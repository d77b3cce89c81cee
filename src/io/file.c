/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whole files: bounded reads, atomic replacement. */
#include "io/file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int
read_all(int fd, size_t max, char **buf, size_t *len)
{
	size_t size = 8192, used = 0;
	char *p = malloc(size + 1), *bigger;
	ssize_t n;
	int rc = 0;

	if (p == NULL)
		return -ENOMEM;
	for (;;) {
		n = read(fd, p + used, size - used);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			rc = -errno;
		if (n <= 0)
			break;
		used += (size_t)n;
		if (used > max) {
			rc = -EFBIG;
			break;
		}
		if (used == size) {
			size *= 2;
			bigger = realloc(p, size + 1);
			if (bigger == NULL) {
				rc = -ENOMEM;
				break;
			}
			p = bigger;
		}
	}
	if (rc < 0) {
		free(p);
		return rc;
	}
	p[used] = '\0';
	*buf = p;
	*len = used;
	return 0;
}

int
file_read(const char *path, size_t max, char **buf, size_t *len)
{
	int fd, rc;

	if (strcmp(path, "-") == 0)
		return read_all(STDIN_FILENO, max, buf, len);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	rc = read_all(fd, max, buf, len);
	close(fd);
	return rc;
}

static int
write_all(int fd, const void *buf, size_t len)
{
	const char *p = buf;
	ssize_t n;

	while (len > 0) {
		n = write(fd, p, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

static int
dir_sync(const char *path)
{
	char *copy = strdup(path);
	int fd, rc = 0;

	if (copy == NULL)
		return -ENOMEM;
	fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fsync(fd) < 0)
		rc = -errno;
	if (fd >= 0)
		close(fd);
	free(copy);
	return rc;
}

int
file_replace(const char *path, const void *buf, size_t len, mode_t mode)
{
	char *tmp;
	int fd, rc;

	if (asprintf(&tmp, "%s.new~", path) < 0)
		return -ENOMEM;
	/* One left behind by a crash may be anything: never write into it. */
	if (unlink(tmp) < 0 && errno != ENOENT) {
		rc = -errno;
		free(tmp);
		return rc;
	}
	fd = open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
	    mode);
	if (fd < 0) {
		rc = -errno;
		free(tmp);
		return rc;
	}
	rc = write_all(fd, buf, len);
	/* umask must not narrow what the reader needs */
	if (rc == 0 && (fchmod(fd, mode) < 0 || fsync(fd) < 0))
		rc = -errno;
	if (close(fd) < 0 && rc == 0)
		rc = -errno;
	if (rc == 0 && rename(tmp, path) < 0)
		rc = -errno;
	if (rc < 0)
		unlink(tmp);
	else
		rc = dir_sync(path);
	free(tmp);
	return rc;
}

int
file_equal(const char *path, const void *buf, size_t len)
{
	char *old;
	size_t oldlen;
	int rc;

	rc = file_read(path, len, &old, &oldlen);
	if (rc == -EFBIG || rc == -ENOENT)
		return 0;
	if (rc < 0)
		return rc;
	rc = oldlen == len && memcmp(old, buf, len) == 0;
	free(old);
	return rc;
}

int
file_mkdir(const char *path, mode_t mode)
{
	struct stat st;

	if (mkdir(path, mode) == 0)
		return 0;
	if (errno != EEXIST)
		return -errno;
	if (lstat(path, &st) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return -ENOTDIR;
	return st.st_uid == geteuid() ? 0 : -EPERM;
}
