/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counters in a mapped file: a hash table of named rows. */
#include "io/counters.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/arena.h"
#include "io/log.h"

#define MAGIC 0x786c62436e740001ULL	/* "xlbCnt", and the form of the rows */
#define ROWS 4096		/* a power of two; a configuration needs 2100 */
#define FULL (ROWS * 3 / 4)
#define KEY_MAX 88

struct row {
	char key[KEY_MAX];	/* "": free */
	uint64_t used;		/* generation in which it was asked for */
	uint64_t word[COUNTERS_WORDS];
};

struct table {
	uint64_t magic, generation;
	struct row row[ROWS];
};

struct counters {
	struct table *t;
	size_t n;		/* rows in use */
};

/* FNV-1a. */
static uint32_t
key_hash(const char *s)
{
	uint32_t h = 2166136261U;

	for (; *s != '\0'; s++)
		h = (h ^ (unsigned char)*s) * 16777619U;
	return h;
}

static struct row *
row_find(struct table *t, const char *key)
{
	uint32_t i = key_hash(key) % ROWS;

	while (t->row[i].key[0] != '\0' && strcmp(t->row[i].key, key) != 0)
		i = (i + 1) % ROWS;
	return &t->row[i];
}

/* False: it is not ours. A file that is new is not looked at: it would take
 * memory. */
static bool
table_count(struct counters *c)
{
	const struct row *row = c->t->row;
	size_t i;

	if (c->t->magic != MAGIC)
		return false;
	for (c->n = i = 0; i < ROWS; i++) {
		if (memchr(row[i].key, '\0', KEY_MAX) == NULL)
			return false;
		c->n += row[i].key[0] != '\0';
	}
	return c->n <= FULL;
}

/* NULL, with errno. */
static struct table *
file_map(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	struct table *t = MAP_FAILED;
	struct stat st;

	if (fd < 0)
		return NULL;
	if (fstat(fd, &st) == 0 && (st.st_size == sizeof(*t) ||
	    (ftruncate(fd, 0) == 0 && ftruncate(fd, sizeof(*t)) == 0)))
		t = mmap(NULL, sizeof(*t), PROT_READ | PROT_WRITE, MAP_SHARED,
		    fd, 0);
	close(fd);
	return t == MAP_FAILED ? NULL : t;
}

struct counters *
counters_open(const char *run_dir)
{
	struct counters *c = must_calloc(1, sizeof(*c));
	char path[4096];

	snprintf(path, sizeof(path), "%s/" COUNTERS_FILE, run_dir);
	c->t = file_map(path);
	if (c->t == NULL) {
		log_warn("%s: counters begin anew with each start", path);
		c->t = mmap(NULL, sizeof(*c->t), PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (c->t == MAP_FAILED)
			fatal("counters");
	}
	if (!table_count(c)) {
		if (c->t->magic != 0)
			memset(c->t, 0, sizeof(*c->t));
		c->t->magic = MAGIC;
		c->n = 0;
	}
	return c;
}

void
counters_close(struct counters *c)
{
	if (c == NULL)
		return;
	munmap(c->t, sizeof(*c->t));
	free(c);
}

void
counters_renew(struct counters *c)
{
	struct table *t = c->t;
	struct row *kept;
	size_t i, n = 0;

	t->generation++;
	if (c->n < ROWS / 2)
		return;
	kept = must_calloc(ROWS, sizeof(*kept));
	for (i = 0; i < ROWS; i++)
		if (t->row[i].key[0] != '\0' &&
		    t->row[i].used + 1 >= t->generation)
			kept[n++] = t->row[i];
	memset(t->row, 0, sizeof(t->row));
	for (i = 0; i < n; i++)
		*row_find(t, kept[i].key) = kept[i];
	c->n = n;
	free(kept);
}

uint64_t *
counters_row(struct counters *c, const char *kind, const char *name)
{
	static uint64_t nowhere[COUNTERS_WORDS];
	char key[KEY_MAX];
	struct row *row;

	snprintf(key, sizeof(key), "%s/%s", kind, name);
	row = row_find(c->t, key);
	if (row->key[0] == '\0') {
		if (c->n >= FULL)	/* no configuration has so many */
			return nowhere;
		c->n++;
		memcpy(row->key, key, sizeof(key));
	}
	row->used = c->t->generation;
	return row->word;
}
