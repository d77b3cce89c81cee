/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A fuzz target without a fuzzer: each file of its corpus, whole and cut short
 * in some places. The corpus is tests/fuzz/corpus/NAME for a program fuzz_NAME,
 * or files and directories that are named.
 */
#include "fuzz.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#define CUTS 32

static unsigned long files, inputs;

static _Noreturn void
fail(const char *path)
{
	printf("Bail out! %s: %s\n", path, strerror(errno));
	exit(1);
}

/* In a block of its own, so that each byte outside counts as such. */
static void
feed(const uint8_t *data, size_t len)
{
	uint8_t *own = malloc(len > 0 ? len : 1);

	if (own == NULL)
		fail("memory");
	memcpy(own, data, len);
	LLVMFuzzerTestOneInput(own, len);
	free(own);
	inputs++;
}

static void
file_run(const char *path)
{
	FILE *f = fopen(path, "re");
	size_t len = 0, i;
	struct stat st;
	uint8_t *data;

	if (f == NULL || fstat(fileno(f), &st) < 0)
		fail(path);
	data = malloc((size_t)st.st_size + 1);
	if (data == NULL)
		fail(path);
	len = fread(data, 1, (size_t)st.st_size, f);
	if (len != (size_t)st.st_size)
		fail(path);
	fclose(f);
	printf("# %s\n", path);		/* the last one, if it ends here */
	fflush(stdout);
	feed(data, len);
	for (i = 1; i < CUTS && len > CUTS; i++)
		feed(data, len * i / CUTS);
	free(data);
	files++;
}

static int
visible(const struct dirent *d)
{
	return d->d_name[0] != '.';
}

static void
path_run(const char *path)
{
	struct dirent **row;
	char at[4096];
	struct stat st;
	int n, i;

	if (stat(path, &st) < 0)
		fail(path);
	if (!S_ISDIR(st.st_mode)) {
		file_run(path);
		return;
	}
	n = scandir(path, &row, visible, alphasort);
	if (n < 0)
		fail(path);
	for (i = 0; i < n; i++) {
		snprintf(at, sizeof(at), "%s/%s", path, row[i]->d_name);
		file_run(at);
		free(row[i]);
	}
	free(row);
}

int
main(int argc, char **argv)
{
	const char *top = getenv("top_srcdir");
	const char *name = strstr(argv[0], "fuzz_");
	char corpus[4096];
	int i;

	printf("1..1\n");
	for (i = 1; i < argc; i++)
		path_run(argv[i]);
	if (argc == 1 && name != NULL) {
		snprintf(corpus, sizeof(corpus), "%s/tests/fuzz/corpus/%s",
		    top != NULL ? top : ".", name + strlen("fuzz_"));
		path_run(corpus);
	}
	printf("%sok 1 - %s: %lu inputs of %lu files\n", files > 0 ? "" :
	    "not ", name != NULL ? name : argv[0], inputs, files);
	return files == 0;
}
