/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What io refuses because it is too long, too many or of the wrong kind, and what
 * each error of a connection means for the backend. */
#include "../unit/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <systemd/sd-event.h>
#include <unistd.h>

#include "io/bird_client.h"
#include "io/counters.h"
#include "io/ctl.h"
#include "io/file.h"
#include "io/log.h"
#include "io/probe_wire.h"
#include "io/prog_int.h"

static char dir[] = "/tmp/xlb-refused.XXXXXX";
static char longer[2 * MAPS_PATH_MAX];	/* than any path may be */

static void
line_drop(int level, const char *text, void *arg)
{
	(void)level, (void)text, (void)arg;
}

static void
ctl_nothing(struct ctl_request *rq, const char *command, const json_t *args,
    bool may_change, void *arg)
{
	(void)rq, (void)command, (void)args, (void)may_change, (void)arg;
}

static void
bird_nothing(void *arg, enum client_event event, const struct bird_line *line,
    int err)
{
	(void)arg, (void)event, (void)line, (void)err;
}

static void
paths_that_are_too_long(void **state)
{
	struct bird_client client;
	json_t *reply = NULL;
	struct ctl *ctl;
	sd_event *ev;
	bool there;

	(void)state;
	assert_true(sd_event_new(&ev) >= 0);
	assert_int_equal(ctl_call(longer, "x", NULL, 100, &reply),
	    -ENAMETOOLONG);
	assert_null(reply);
	assert_int_equal(ctl_open(ev, longer, ctl_nothing, NULL, &ctl),
	    -ENAMETOOLONG);
	client_init(&client, ev, bird_nothing, NULL);
	assert_int_equal(client_open(&client, longer), -ENAMETOOLONG);
	assert_int_equal(client_send(&client, "show status"), -EINVAL);
	client_close(&client);
	assert_int_equal(pin_dir_check(longer, &there), -ENAMETOOLONG);
	assert_false(there);
	sd_event_unref(ev);
}

static void
files_of_the_wrong_kind(void **state)
{
	char path[128];
	bool there;

	(void)state;
	snprintf(path, sizeof(path), "%s/file", dir);
	assert_int_equal(file_replace(path, "x", 1, 0600), 0);
	assert_int_equal(file_mkdir(path, 0755), -ENOTDIR);
	assert_int_equal(pin_dir_check(path, &there), -ENOTDIR);
	assert_false(there);
	assert_true(pin_dir_check("no-such-parent", &there) < 0);
	assert_true(pin_dir_check("/xlb-no-bpffs////", &there) < 0);
	assert_false(there);
}

/* More than a configuration can have: they count nowhere, and harm nobody. */
static void
too_many_counters(void **state)
{
	struct counters *c;
	uint64_t *first, *row = NULL, *last = NULL;
	char name[32];
	int i;

	(void)state;
	c = counters_open(dir);
	first = counters_row(c, "kind", "0");
	first[0] = 7;
	for (i = 1; i < 5000; i++) {
		last = row;
		snprintf(name, sizeof(name), "%d", i);
		row = counters_row(c, "kind", name);
		row[0]++;
	}
	assert_ptr_equal(row, last);
	assert_int_equal(counters_row(c, "kind", "0")[0], 7);
	counters_close(c);
	counters_close(NULL);
}

static void
what_errors_mean(void **state)
{
	static const struct {
		int err;
		enum probe_result late, at_once;
	} want[] = {
		{ 0, PROBE_OK, PROBE_OK },
		{ ETIMEDOUT, PROBE_TIMEOUT, PROBE_TIMEOUT },
		{ ECONNREFUSED, PROBE_REFUSED, PROBE_REFUSED },
		{ ECONNRESET, PROBE_RESET, PROBE_RESET },
		{ EPIPE, PROBE_RESET, PROBE_RESET },
		{ ENETUNREACH, PROBE_UNREACHABLE, PROBE_UNREACHABLE },
		{ EHOSTUNREACH, PROBE_UNREACHABLE, PROBE_UNREACHABLE },
		{ ENETDOWN, PROBE_UNREACHABLE, PROBE_UNREACHABLE },
		{ EHOSTDOWN, PROBE_UNREACHABLE, PROBE_UNREACHABLE },
		{ ENONET, PROBE_UNREACHABLE, PROBE_UNREACHABLE },
		/* by ICMP they come late; at once they are of this host */
		{ EACCES, PROBE_UNREACHABLE, PROBE_LOCAL },
		{ EPROTO, PROBE_UNREACHABLE, PROBE_LOCAL },
		{ ENOPROTOOPT, PROBE_UNREACHABLE, PROBE_LOCAL },
		{ EOPNOTSUPP, PROBE_UNREACHABLE, PROBE_LOCAL },
		{ EMSGSIZE, PROBE_UNREACHABLE, PROBE_LOCAL },
		{ ENOBUFS, PROBE_LOCAL, PROBE_LOCAL },
		{ EADDRNOTAVAIL, PROBE_LOCAL, PROBE_LOCAL },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		assert_int_equal(probe_errno(want[i].err, false), want[i].late);
		assert_int_equal(probe_errno(want[i].err, true),
		    want[i].at_once);
	}
}

int
main(void)
{
	const struct CMUnitTest test[] = {
		cmocka_unit_test(paths_that_are_too_long),
		cmocka_unit_test(files_of_the_wrong_kind),
		cmocka_unit_test(too_many_counters),
		cmocka_unit_test(what_errors_mean),
	};
	char rm[64];
	int rc;

	memset(longer, 'x', sizeof(longer) - 1);
	longer[0] = '/';
	if (mkdtemp(dir) == NULL)
		return 1;
	log_capture(line_drop, NULL);
	rc = cmocka_run_group_tests_name("refused", test, NULL, NULL);
	snprintf(rm, sizeof(rm), "rm -rf %s", dir);
	return system(rm) != 0 ? 1 : rc;
}
