/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whole files: read with a bound, replaced so that a crash leaves the old one
 * or the new one. */
#ifndef XLB_FILE_H
#define XLB_FILE_H

#include <stddef.h>
#include <sys/types.h>

/* Reads all of `path` ("-": standard input). `*buf` is malloc'ed and ends in
 * NUL. 0, or -errno (-EFBIG above `max` bytes). */
int file_read(const char *path, size_t max, char **buf, size_t *len);

/* Temporary file in the same directory whose name no "*.conf" glob matches,
 * fsync, rename, fsync of the directory. 0, or -errno and the old file. */
int file_replace(const char *path, const void *buf, size_t len, mode_t mode);

/* 1 if the file holds exactly these bytes, 0 if not, -errno. */
int file_equal(const char *path, const void *buf, size_t len);

/* mkdir -p of one level, then a check that it is a directory of ours. 0, or
 * -errno. */
int file_mkdir(const char *path, mode_t mode);

#endif
