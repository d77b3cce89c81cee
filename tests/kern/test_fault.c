/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What io does when the system says no: each call of its work fails once. */
#include "fault.h"

#include "../unit/unit.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kern.h"

#define WORKS_MAX 128

char fault_dir[] = "/tmp/xlb-fault.XXXXXX";

static void
each_call_fails(void **state)
{
	fault_sweep(*state);
}

static void
no_memory(void **state)
{
	fault_sweep_memory(*state);
}

static const char *
no_memory_name(const struct fault_work *w)
{
	static char name[WORKS_MAX][64];
	static unsigned n;

	snprintf(name[n], sizeof(name[n]), "%s, no memory", w->name);
	return name[n++];
}

/* `only`: what names begin with; NULL: all. */
static size_t
tests_of(const struct fault_work *w, const char *only, struct CMUnitTest *test)
{
	size_t n = 0;

	for (; w->name != NULL; w++) {
		if (only != NULL && strncmp(w->name, only, strlen(only)) != 0)
			continue;
		test[n++] = (struct CMUnitTest){ .name = w->name,
		    .test_func = each_call_fails,
		    .initial_state = (void *)(uintptr_t)w };
		if (w->err == 0)
			test[n++] = (struct CMUnitTest){
			    .name = no_memory_name(w),
			    .test_func = no_memory,
			    .initial_state = (void *)(uintptr_t)w };
	}
	return n;
}

int
main(int argc, char **argv)
{
	const char *only = argc > 1 ? argv[1] : NULL;
	struct CMUnitTest test[WORKS_MAX];
	size_t n;
	int rc;

	kern_enter();
	kern_bpffs();
	run("ip link add e0 type veth peer name e1 && ip addr add 10.1.0.1/24 "
	    "dev e0 && ip link set e0 up && ip link set e1 up");
	assert_non_null(mkdtemp(fault_dir));
	memset(test, 0, sizeof(test));
	n = tests_of(fault_host, only, test);
	n += tests_of(fault_serve, only, test + n);
	n += tests_of(fault_bpf, only, test + n);
	rc = _cmocka_run_group_tests("faults", test, n, NULL, NULL);
	run("rm -rf %s", fault_dir);
	return rc;
}
