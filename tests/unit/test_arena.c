/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What comes out of an arena is zeroed, aligned and nobody else's; what is more
 * than there is ends the process. */
#include "unit.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/arena.h"

static void
pieces_are_zeroed_aligned_and_apart(void **state)
{
	static struct {
		unsigned char *p;
		size_t size;
	} piece[4000];
	struct arena *a = arena_new();
	unsigned seed = 7;
	size_t i, k;

	(void)state;
	for (i = 0; i < 4000; i++) {
		/* mostly small, some larger than any block */
		piece[i].size = (size_t)rand_r(&seed) % (i % 100 == 0 ?
		    3 << 20 : 300);
		piece[i].p = arena_alloc(a, piece[i].size);
		assert_int_equal((uintptr_t)piece[i].p % 16, 0);
		for (k = 0; k < piece[i].size; k++)
			assert_int_equal(piece[i].p[k], 0);
		memset(piece[i].p, (int)(i % 255) + 1, piece[i].size);
	}
	for (i = 0; i < 4000; i++)
		for (k = 0; k < piece[i].size; k++)
			if (piece[i].p[k] != i % 255 + 1)
				fail_msg("piece %zu, byte %zu", i, k);
	arena_free(a);
	arena_free(NULL);
}

static void
arrays_grow(void **state)
{
	struct arena *a = arena_new();
	uint32_t *row = NULL, *new;
	size_t n, i;

	(void)state;
	for (n = 0; n < 5000; n++) {
		new = arena_grow(a, &row, n, sizeof(*row));
		assert_ptr_equal(new, &row[n]);
		assert_int_equal(*new, 0);
		*new = (uint32_t)n * 3;
	}
	for (i = 0; i < n; i++)
		assert_int_equal(row[i], i * 3);
	arena_free(a);
}

static void
texts_are_copied(void **state)
{
	struct arena *a = arena_new();
	char text[] = "abc", *s = arena_strdup(a, text);

	(void)state;
	text[0] = 'x';
	assert_string_equal(s, "abc");
	assert_string_equal(arena_printf(a, "%s-%0500d", s, 7) + 500, "0007");
	assert_memory_equal(arena_dup(a, text, 4), "xbc", 4);
	assert_non_null(arena_dup(a, NULL, 0));
	arena_free(a);
}

static void
too_large(struct arena *a)
{
	arena_alloc(a, SIZE_MAX - 3);
}

static void
too_many(struct arena *a)
{
	arena_calloc(a, SIZE_MAX / 16 + 2, 16);
}

static void
more_than_there_is(struct arena *a)
{
	(void)a;
	must_calloc(SIZE_MAX / 2, 1);
}

/* Its exit status is 0 if it went on. */
static int
try(void (*fn)(struct arena *a))
{
	int status, null;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		null = open("/dev/null", O_WRONLY);
		dup2(null, STDERR_FILENO);
		fn(arena_new());
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void
out_of_memory_ends_the_process(void **state)
{
	int status = try(too_large);

	(void)state;
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	status = try(too_many);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	/* with AddressSanitizer its own calloc() ends it */
	assert_int_not_equal(try(more_than_there_is), 0);
}

int
main(void)
{
	const struct CMUnitTest test[] = {
		cmocka_unit_test(pieces_are_zeroed_aligned_and_apart),
		cmocka_unit_test(arrays_grow),
		cmocka_unit_test(texts_are_copied),
		cmocka_unit_test(out_of_memory_ends_the_process),
	};

	return cmocka_run_group_tests_name("arena", test, NULL, NULL);
}
