/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Exec checks: commands that pass, fail, hang, flood and leave things behind. */
#include "probe_test.h"

#include <linux/capability.h>
#include <pwd.h>

#include "io/conf_world.h"

#define SH(script) { "/bin/sh", "-c", script, NULL }

/* They sleep for so long, as nobody else's do: other tests may run. */
static char hangs[64], hang_two[64], leaves_one[64], sleeper[64];
static char seconds[32];

static const struct row {
	const char *command[4];
	enum probe_result want;
	uint16_t detail;
	const char *said;
} row[] = {
	{ SH("exit 0"), PROBE_OK, 0, "" },
	{ SH("echo fine; exit 0"), PROBE_OK, 0, "" },
	{ SH("exit 3"), PROBE_EXIT, 3, "" },
	{ SH("echo no database >&2; echo more; exit 2"), PROBE_EXIT, 2,
	    "no database" },
	{ SH("printf 'half a'; sleep 0.1; printf ' line'; exit 1"), PROBE_EXIT,
	    1, "half a line" },
	{ SH("printf 'a\\033[2Jb\\n'; exit 1"), PROBE_EXIT, 1, "a\033[2Jb" },
	{ SH("kill -9 $$"), PROBE_SIGNAL, 9, "" },
	{ SH("kill -TERM $$"), PROBE_SIGNAL, 15, "" },
	{ SH(hangs), PROBE_TIMEOUT, 0, "" },
	{ SH(hang_two), PROBE_TIMEOUT, 0, "" },
	/* what it leaves behind holds nothing up */
	{ SH(leaves_one), PROBE_OK, 0, "" },
	/* more than a pipe holds */
	{ SH("head -c 1000000 /dev/zero; exit 0"), PROBE_OK, 0, "" },
	{ { "/nonexistent/check", NULL }, PROBE_EXIT, 127,
	    "/nonexistent/check: No such file or directory" },
	{ { "/etc/passwd", NULL }, PROBE_EXIT, 127,
	    "/etc/passwd: Permission denied" },
	/* no shell */
	{ { "/usr/bin/test", "$(id)", "=", NULL }, PROBE_EXIT, 2, NULL },
	/* who it is, and what it has */
	{ SH("echo $(id -un); exit 1"), PROBE_EXIT, 1, "nobody" },
	{ SH("echo $(id -Gn); exit 1"), PROBE_EXIT, 1, "nogroup" },
	{ SH("echo $XLB_CHECK $XLB_ADDRESS $XLB_PORT; exit 1"), PROBE_EXIT, 1,
	    "c17 127.0.1.17 5432" },
	{ SH("env | cut -d= -f1 | sort | tr '\\n' ' '; exit 1"), PROBE_EXIT, 1,
	    "HOME LANG PATH PWD USER XLB_ADDRESS XLB_CHECK XLB_PORT " },
	{ SH("cat; echo $(ls /proc/self/fd); exit 1"), PROBE_EXIT, 1,
	    "0 1 2 3" },		/* 3: ls's own */
	{ SH("echo $(grep -E 'NoNewPrivs|CapPrm|SigBlk' /proc/self/status); "
	    "exit 1"), PROBE_EXIT, 1, "SigBlk: 0000000000000000 CapPrm: "
	    "0000000000000000 NoNewPrivs: 1" },
	/* without those that the C library keeps to itself */
	{ SH("grep SigIgn /proc/self/status | tail -c 8; exit 1"), PROBE_EXIT,
	    1, "0000000" },
	{ SH("echo $(ulimit -c) $(ulimit -n) $(ulimit -t) $PWD; exit 1"),
	    PROBE_EXIT, 1, "0 1024 122 /" },
};
#define ROWS (sizeof(row) / sizeof(row[0]))

static void
check_set(struct conf_check *c, size_t i, char name[8])
{
	*c = check_of(CHECK_EXEC, i, name, row[i].want == PROBE_TIMEOUT);
	c->command = (const char **)(uintptr_t)row[i].command;
	c->user = "nobody";
}

static void
sleep_init(void)
{
	snprintf(seconds, sizeof(seconds), "1000.%d", (int)getpid());
	snprintf(hangs, sizeof(hangs), "sleep %s", seconds);
	snprintf(hang_two, sizeof(hang_two), "sleep %s & sleep %s", seconds,
	    seconds);
	snprintf(leaves_one, sizeof(leaves_one), "sleep %s & exit 0", seconds);
	snprintf(sleeper, sizeof(sleeper),
	    "pgrep -c -u nobody -f '^(/bin/)?sleep %s$'", seconds);
}

/* Processes of nobody's that sleep for so long. */
static int
sleepers(void)
{
	FILE *p = popen(sleeper, "re");
	int n = -1;

	assert_non_null(p);
	assert_int_equal(fscanf(p, "%d", &n), 1);
	pclose(p);
	return n;
}

static void
each_command_has_its_result(void **state)
{
	struct conf_check c[ROWS];
	struct health_target t[ROWS];
	char addr[32], name[ROWS][8];
	struct bench b;
	size_t i;

	(void)state;
	bench_open(&b);
	for (i = 0; i < ROWS; i++) {
		check_set(&c[i], i, name[i]);
		snprintf(addr, sizeof(addr), "127.0.1.%zu", i);
		t[i] = target(addr, 5432, &c[i]);
	}
	assert_int_equal(prober_set(b.p, t, ROWS), 0);
	bench_each(&b, ROWS);
	for (i = 0; i < ROWS; i++)
		if (b.got[i] == 0 || b.last[i] != row[i].want ||
		    b.detail[i] != row[i].detail || (row[i].said != NULL &&
		    strcmp(b.said[i], row[i].said) != 0))
			fail_msg("row %zu: %zu results, %s (%u, \"%s\")", i,
			    b.got[i], probe_result_text(b.last[i]),
			    b.detail[i], b.said[i]);
	bench_idle(&b);
	BENCH_AWAIT(&b, sleepers() == 0);
	/* its three and its socket: nothing leaked */
	assert_int_equal(fds_of(prober_launcher_pid(b.p)), 4);
	bench_close(&b);
}

/* Commands end with it, and what they began does. */
static void
nothing_outlives_the_launcher(void **state)
{
	const char *sleep[] = SH(hang_two);
	int64_t until;
	struct conf_check c;
	struct health_target t;
	char name[8];
	struct bench b;

	(void)state;
	bench_open(&b);
	c = check_of(CHECK_EXEC, 0, name, false);
	c.command = sleep;
	c.user = "nobody";
	t = target("127.0.0.1", 80, &c);
	assert_int_equal(prober_set(b.p, &t, 1), 0);
	BENCH_AWAIT(&b, sleepers() == 2);
	bench_close(&b);
	until = probe_now().ns + ENOUGH_NS;
	while (sleepers() > 0 && probe_now().ns < until)
		usleep(10000);
	assert_int_equal(sleepers(), 0);
}

static int
caps_of(pid_t pid)
{
	char path[64], line[256];
	unsigned caps = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "re");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f) != NULL &&
	    sscanf(line, "CapPrm: %x", &caps) != 1)
		;
	fclose(f);
	return (int)caps;
}

/* What it ran fails as something of ours; the next turn is as ever. */
static void
a_launcher_that_dies_is_started_again(void **state)
{
	const char *sleep[] = { "/bin/sleep", seconds, NULL };
	const char *yes[] = { "/bin/true", NULL };
	struct conf_check c[2];
	struct health_target t[2];
	char name[2][8];
	struct bench b;
	pid_t pid;

	(void)state;
	bench_open(&b);
	c[0] = check_of(CHECK_EXEC, 0, name[0], false);
	c[0].command = sleep;
	c[1] = check_of(CHECK_EXEC, 1, name[1], false);
	c[1].command = yes;
	c[1].interval_ms = 50;
	c[0].user = c[1].user = "nobody";
	t[0] = target("127.0.0.1", 80, &c[0]);
	t[1] = target("127.0.0.1", 80, &c[1]);
	assert_int_equal(prober_set(b.p, t, 2), 0);
	BENCH_AWAIT(&b, b.got[1] > 0);
	pid = prober_launcher_pid(b.p);
	assert_int_equal(caps_of(pid), 1 << CAP_KILL | 1 << CAP_SETUID |
	    1 << CAP_SETGID);
	bench_reset(&b);
	assert_int_equal(kill(pid, SIGKILL), 0);
	BENCH_AWAIT(&b, b.got[0] > 0);
	assert_int_equal(b.last[0], PROBE_LOCAL);
	BENCH_AWAIT(&b, prober_launcher_pid(b.p) != 0 &&
	    prober_launcher_pid(b.p) != pid);
	bench_reset(&b);
	BENCH_AWAIT(&b, b.got[1] >= 3);
	assert_int_equal(b.last[1], PROBE_OK);
	bench_close(&b);
}

static void
hundred_set(struct conf_check c[100], struct health_target t[100],
    char name[100][8], const char **command, bool times_out)
{
	size_t i;

	for (i = 0; i < 100; i++) {
		c[i] = check_of(CHECK_EXEC, i, name[i], times_out);
		c[i].command = command;
		c[i].user = "nobody";
		t[i] = target("127.0.0.1", 1, &c[i]);
		snprintf(name[i], 8, "%c%03zu", times_out ? 'd' : 'c', i);
	}
}

/* A hundred commands that hang hold up no other check, and not each other
 * beyond their turns. */
static void
commands_that_hang_delay_nobody(void **state)
{
	static struct conf_check c[101];
	static struct health_target t[101];
	static char name[101][8];
	const char *sleep[] = { "/bin/sleep", seconds, NULL };
	struct bench b;
	uint16_t port;
	int fd = port_open(4096, &port);
	size_t i;

	(void)state;
	hundred_set(c, t, name, sleep, false);
	c[100] = check_tcp(50, 60000);
	t[100] = target("127.0.0.1", port, &c[100]);	/* above port 1 */
	bench_open(&b);
	assert_int_equal(prober_set(b.p, t, 101), 0);
	/* as many as run at a time do, and nobody has waited for them */
	BENCH_AWAIT(&b, b.got[100] >= 4);
	BENCH_AWAIT(&b, sleepers() == PROBE_COMMANDS_MAX);
	bench_reset(&b);
	BENCH_AWAIT(&b, b.got[100] >= 4);
	assert_int_equal(b.ended[PROBE_OK], b.total);
	assert_int_equal(b.total, b.got[100]);
	/* others instead, whose time is up soon */
	hundred_set(c, t, name, sleep, true);
	assert_int_equal(prober_set(b.p, t, 101), 0);
	bench_each(&b, 100);
	for (i = 0; i < 100; i++)
		assert_int_equal(b.last[i], PROBE_TIMEOUT);
	bench_close(&b);
	close(fd);
}

static void
users_are_looked_up_at_load(void **state)
{
	struct conf_check c = { .name = "c", .type = CHECK_EXEC };
	struct conf conf = { .check = &c, .ncheck = 1 };
	struct diag dg;

	(void)state;
	c.user_mark = (struct mark){ "xlb.yaml", 3, 9 };
	diag_init(&dg);
	c.user = "nobody";
	assert_int_equal(conf_world_check(&conf, DIAG_ERROR, &dg), 0);
	c.user = "no-such-user";
	assert_int_equal(conf_world_check(&conf, DIAG_ERROR, &dg), -1);
	assert_int_equal(dg.row[0].mark.line, 3);
	assert_string_equal(dg.row[0].text,
	    "checks.c.user: no-such-user: no such user");
	c.user = "root";
	assert_int_equal(conf_world_check(&conf, DIAG_ERROR, &dg), -1);
	assert_string_equal(dg.row[1].text,
	    "checks.c.user: root is root: commands run without its rights");
	c.user = "bird";
	if (getpwnam(c.user) == NULL) {
		print_message("# no user bird here: its own is not refused\n");
	} else {
		assert_int_equal(conf_world_check(&conf, DIAG_ERROR, &dg), -1);
		assert_string_equal(dg.row[2].text, "checks.c.user: bird can "
		    "act on xlbd or BIRD: name another, like nobody");
	}
	diag_fini(&dg);
}

int
main(void)
{
	const struct CMUnitTest test[] = {
		cmocka_unit_test(each_command_has_its_result),
		cmocka_unit_test(nothing_outlives_the_launcher),
		cmocka_unit_test(a_launcher_that_dies_is_started_again),
		cmocka_unit_test(commands_that_hang_delay_nobody),
		cmocka_unit_test(users_are_looked_up_at_load),
	};

	sleep_init();
	return PROBE_TESTS("probe_exec", test);
}
