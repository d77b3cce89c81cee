/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the journal hears of a change: the line for people, and its fields. The
 * journal is a socket here, in a mount namespace of its own. */
#include "unit/unit.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "io/log.h"

#define SOCKET "/run/systemd/journal/socket"

static int journal;

static int
journal_open(void **state)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX, .sun_path = SOCKET };

	(void)state;
	if (unshare(CLONE_NEWNS) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("test", "/run", "tmpfs", 0, NULL) < 0 ||
	    mkdir("/run/systemd", 0755) < 0 ||
	    mkdir("/run/systemd/journal", 0755) < 0)
		return -1;
	journal = socket(AF_UNIX, SOCK_DGRAM, 0);
	return bind(journal, (struct sockaddr *)&a, sizeof(a));
}

/* As the service manager says that stderr is the journal's. */
static void
stream_set(bool is)
{
	struct stat st;
	char text[64];

	assert_int_equal(fstat(STDERR_FILENO, &st), 0);
	snprintf(text, sizeof(text), "%llu:%llu", (unsigned long long)st.st_dev,
	    (unsigned long long)st.st_ino + !is);
	setenv("JOURNAL_STREAM", text, 1);
	log_init("test_log", false);
}

static void
a_change_has_its_fields(void **state)
{
	static const struct {
		const char *object, *why, *field[8];
	} row[] = {
		{ "backend web/b (10.0.0.7:80)", "HTTP 500", {
		    "MESSAGE=backend web/b (10.0.0.7:80): up -> down: HTTP 500",
		    "PRIORITY=5", "XLB_OBJECT=backend web/b (10.0.0.7:80)",
		    "XLB_OLD=up", "XLB_NEW=down", "XLB_REASON=HTTP 500",
		    "XLB_BACKEND=web/b",
		    "MESSAGE_ID=5d1a5d7c8f0e4b1f9a6e2c3b7d4f8e10" } },
		{ "node", "", { "MESSAGE=node: up -> down", "XLB_NODE=node",
		    "XLB_REASON=" } },
	};
	char got[4096], want[256];
	ssize_t n;
	size_t i, k;

	(void)state;
	stream_set(true);
	for (i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		log_change(row[i].object, "up", "down", row[i].why);
		got[0] = '\n';
		n = recv(journal, got + 1, sizeof(got) - 2, MSG_DONTWAIT);
		assert_true(n > 0);
		got[n + 1] = '\0';
		for (k = 0; k < 8 && row[i].field[k] != NULL; k++) {
			snprintf(want, sizeof(want), "\n%s\n", row[i].field[k]);
			if (strstr(got, want) == NULL)
				fail_msg("%s is not in:%s", want, got);
		}
	}
	/* somebody redirects it: then it is text */
	stream_set(false);
	log_change("node", "up", "down", "");
	assert_true(recv(journal, got, sizeof(got), MSG_DONTWAIT) < 0);
}

int
main(void)
{
	const struct CMUnitTest test[] = {
		cmocka_unit_test(a_change_has_its_fields),
	};

	if (geteuid() != 0) {
		printf("1..0 # SKIP needs root\n");
		return 0;
	}
	return cmocka_run_group_tests_name("log", test, journal_open, NULL);
}
