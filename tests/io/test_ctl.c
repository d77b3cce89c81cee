/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The control socket: a server in a process of its own, good and bad clients. */
#include "../unit/unit.h"

#include <dirent.h>
#include <errno.h>
#include <grp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/diag.h"
#include "io/ctl.h"
#include "io/log.h"

#define READERS 60001		/* group ids that nothing else has */
#define ADMINS 60002
#define BIG (1 << 20)
#define ENOUGH_MS 60000		/* where a busy machine may take long */

static char dir[] = "/tmp/xlb-ctl.XXXXXX";
static pid_t server;
static bool groups_exist = true;
static char last_line[512];

/* Instead of the C library's: this machine need not have the groups. */
struct group *
getgrnam(const char *name)
{
	static struct group gr;

	if (!groups_exist)
		return NULL;
	gr.gr_gid = strcmp(name, "xlb") == 0 ? READERS :
	    strcmp(name, "xlb-admin") == 0 ? ADMINS : 0;
	return gr.gr_gid != 0 ? &gr : NULL;
}

static void
line_keep(int level, const char *text, void *arg)
{
	(void)level, (void)arg;
	snprintf(last_line, sizeof(last_line), "%s", text);
}

/* Requests that are answered when somebody says so. */
static struct ctl_request *kept[64];
static size_t nkept;

static void
kept_reply(void)
{
	while (nkept > 0)
		ctl_reply(kept[--nkept], ctl_message(0));
}

static size_t
fds_own(void)
{
	DIR *d = opendir("/proc/self/fd");
	size_t n = 0;

	while (readdir(d) != NULL)
		n++;
	closedir(d);
	return n;
}

#define LINE_LEN 200

/* The server's one stream: `push` says how many lines it took. */
static struct ctl_stream *stream;
static long streams_gone;

static void
stream_is_gone(void *arg)
{
	(void)arg;
	streams_gone++;
	stream = NULL;
}

static long
stream_push(long n)
{
	static long number;
	char text[LINE_LEN + 1];
	long taken = 0;

	for (; n > 0 && stream != NULL; n--, number++) {
		memset(text, 'x', sizeof(text));
		snprintf(text, sizeof(text), "{\"n\":%12ld,\"pad\":\"", number);
		text[strlen(text)] = 'x';
		memcpy(text + LINE_LEN - 3, "\"}\n", 3);
		taken += ctl_stream_line(stream, text, LINE_LEN);
	}
	return taken;
}

static void
serve(struct ctl_request *rq, const char *command, const json_t *args,
    bool may_change, void *arg)
{
	json_t *m = ctl_message(0), *result = json_object_get(m, "result");
	struct diag dg;
	char *big;

	(void)arg;

	if (strcmp(command, "echo") == 0) {
		json_object_set_new(result, "args", json_deep_copy(args));
		json_object_set_new(result, "change", json_boolean(may_change));
		ctl_warning(m, "%s was said", command);
		ctl_error(m, "not \xff UTF-8");
		diag_init(&dg);
		diag_add(&dg, DIAG_ERROR, (struct mark){ "f", 1, 2 }, "bad");
		diag_add(&dg, DIAG_WARNING, (struct mark){ "f", 3, 4 }, "odd");
		ctl_diag(m, &dg);
		diag_fini(&dg);
	} else if (strcmp(command, "fds") == 0) {
		json_object_set_new(result, "n",
		    json_integer((json_int_t)fds_own()));
	} else if (strcmp(command, "big") == 0) {
		big = malloc(BIG + 1);
		memset(big, 'x', BIG);
		big[BIG] = '\0';
		json_object_set_new(result, "big", json_string(big));
		free(big);
	} else if (strcmp(command, "stream") == 0) {
		stream = ctl_stream(rq, m, stream_is_gone, NULL);
		return;
	} else if (strcmp(command, "three") == 0) {
		stream = ctl_stream(rq, m, stream_is_gone, NULL);
		stream_push(3);
		if (json_is_true(json_object_get(args, "end")))
			ctl_stream_end(stream);
		return;
	} else if (strcmp(command, "push") == 0) {
		json_object_set_new(result, "taken", json_integer(stream_push(
		    (long)json_integer_value(json_object_get(args, "n")))));
		json_object_set_new(result, "gone",
		    json_integer(streams_gone));
	} else if (strcmp(command, "later") == 0) {
		json_decref(m);
		assert_in_range(nkept, 0, 63);
		kept[nkept++] = rq;
		return;
	} else if (strcmp(command, "now") == 0) {
		json_object_set_new(result, "n",
		    json_integer((json_int_t)nkept));
		kept_reply();
	} else if (strcmp(command, "die") == 0) {
		_exit(0);
	} else {
		m = (json_decref(m), ctl_message(1));
	}
	ctl_reply(rq, m);
}

static void
server_start(void)
{
	struct ctl *ctl;
	sd_event *ev;
	char c = 0;
	int ready[2], rc;

	assert_int_equal(pipe(ready), 0);
	server = fork();
	if (server == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(ready[0]);
		sd_event_new(&ev);
		rc = ctl_open(ev, dir, serve, NULL, &ctl);
		c = rc == 0 ? 'y' : 'n';
		if (write(ready[1], &c, 1) == 1 && rc == 0)
			sd_event_loop(ev);
		_exit(1);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &c, 1), 1);
	close(ready[0]);
	assert_int_equal(c, 'y');
}

static void
server_end(void)
{
	kill(server, SIGKILL);
	waitpid(server, NULL, 0);
}

static int
suite_start(void **state)
{
	(void)state;
	server_start();
	return 0;
}

static int
suite_end(void **state)
{
	char path[128];

	(void)state;
	server_end();
	snprintf(path, sizeof(path), "%s/xlb.sock", dir);
	unlink(path);
	snprintf(path, sizeof(path), "%s/xlb.lock", dir);
	unlink(path);
	return rmdir(dir);
}

static double
now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static int
raw_open(void)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(sun.sun_path, sizeof(sun.sun_path), "%s/xlb.sock", dir);
	assert_int_equal(connect(fd, (struct sockaddr *)&sun, sizeof(sun)), 0);
	return fd;
}

static json_t *
raw_read(int fd)
{
	static char text[65536];
	size_t len = 0;
	ssize_t n;

	while (len < sizeof(text) &&
	    (n = read(fd, text + len, sizeof(text) - len)) > 0)
		len += (size_t)n;
	close(fd);
	return json_loadb(text, len, 0, NULL);
}

static const char *
line(const json_t *m, const char *key, size_t i)
{
	const char *s = json_string_value(json_array_get(json_object_get(m,
	    key), i));

	return s != NULL ? s : "";
}

static int
status_of(const json_t *m)
{
	return (int)json_integer_value(json_object_get(m, "exit"));
}

static json_int_t
server_fds(void)
{
	json_t *m;
	json_int_t n;

	assert_int_equal(ctl_call(dir, "fds", NULL, ENOUGH_MS, &m), 0);
	n = json_integer_value(json_object_get(json_object_get(m, "result"),
	    "n"));
	json_decref(m);
	return n;
}

/* The server closes what is over when it hears of it. */
static void
server_fds_await(json_int_t want)
{
	double until = now() + ENOUGH_MS / 1000;

	while (server_fds() != want && now() < until)
		usleep(10000);
	assert_int_equal(server_fds(), want);
}

/* How many that waited it has answered now. */
static json_int_t
later_is_now(void)
{
	json_t *m;
	json_int_t n;

	assert_int_equal(ctl_call(dir, "now", NULL, ENOUGH_MS, &m), 0);
	n = json_integer_value(json_object_get(json_object_get(m, "result"),
	    "n"));
	json_decref(m);
	return n;
}

static void
request_and_reply(void **state)
{
	json_t *m, *result;

	(void)state;
	assert_int_equal(ctl_call(dir, "echo", json_pack("{s:s}", "a",
	    "line\nbreak"), ENOUGH_MS, &m), 0);
	assert_int_equal(status_of(m), 0);
	result = json_object_get(m, "result");
	assert_string_equal(json_string_value(json_object_get(
	    json_object_get(result, "args"), "a")), "line\nbreak");
	assert_true(json_is_true(json_object_get(result, "change")));
	assert_string_equal(line(m, "warnings", 0), "warning: echo was said");
	assert_string_equal(line(m, "warnings", 1), "f:3:4: warning: odd");
	assert_string_equal(line(m, "errors", 0), "not ? UTF-8");
	assert_string_equal(line(m, "errors", 1), "f:1:2: bad");
	json_decref(m);
	assert_int_equal(ctl_call(dir, "big", NULL, ENOUGH_MS, &m), 0);
	assert_int_equal(json_string_length(json_object_get(json_object_get(m,
	    "result"), "big")), BIG);
	json_decref(m);
}

static void
tick_count(void *arg)
{
	++*(int *)arg;
	later_is_now();
}

static void
reply_may_come_later(void **state)
{
	double begin = now();
	int ticks = 0;
	json_t *m;

	(void)state;
	assert_int_equal(ctl_call_tick(dir, "later", NULL, -1, tick_count,
	    &ticks, &m), 0);
	json_decref(m);
	assert_true(now() - begin > 0.9);
	assert_int_equal(ticks, 1);
	assert_int_equal(ctl_call(dir, "later", NULL, 100, &m), -ETIMEDOUT);
	later_is_now();		/* a reply to nobody */
}

static void
what_is_no_request_is_refused(void **state)
{
	static const struct {
		const char *text, *why;
	} row[] = {
		{ "hello\n", "request is not JSON" },
		{ "{\"schema\":1,\"command\":\"echo\"", "request is not JSON" },
		{ "\n", "request is not JSON" },
		{ "[]\n", "request is not of schema 1" },
		{ "{\"schema\":2,\"command\":\"echo\"}\n",
		    "request is not of schema 1" },
		{ "{\"schema\":1}\n", "request has no command" },
		{ "{\"schema\":1,\"command\":7}\n", "request has no command" },
		{ "{\"schema\":1,\"command\":\"echo\",\"args\":[]}\n",
		    "request has no command" },
		{ "{\"schema\":1,\"command\":\"a\",\"command\":\"b\"}\n",
		    "request is not JSON" },
		{ "{\"schema\":1,\"command\":\"echo\"}\n{\"schema\":1}\n",
		    "more than one request" },
		{ "{\"schema\":1,\"command\":\"\\u0000\"}\n",
		    "request is not JSON" },
	};
	size_t i;
	json_t *m;
	int fd;

	(void)state;
	for (i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		fd = raw_open();
		assert_int_equal(write(fd, row[i].text, strlen(row[i].text)),
		    strlen(row[i].text));
		shutdown(fd, SHUT_WR);
		m = raw_read(fd);
		assert_int_equal(status_of(m), 1);
		if (strncmp(line(m, "errors", 0), row[i].why,
		    strlen(row[i].why)) != 0)
			fail_msg("%s: %s", row[i].text, line(m, "errors", 0));
		json_decref(m);
	}
	/* without a newline the end of writing ends the request */
	fd = raw_open();
	assert_int_equal(write(fd, "{\"schema\":1,\"command\":\"echo\"}", 29),
	    29);
	shutdown(fd, SHUT_WR);
	m = raw_read(fd);
	assert_int_equal(status_of(m), 0);
	json_decref(m);
}

/* What a user in `gid`, and in `other` besides, is told. */
static void
as_user(gid_t gid, gid_t other, size_t size, int want_rc, int want_status,
    bool want_change)
{
	json_t *m, *args = json_object();
	char *text;
	int rc, status;
	pid_t pid = fork();

	if (pid == 0) {
		text = calloc(1, size + 1);
		memset(text, 'a', size);
		json_object_set_new(args, "text", json_string(text));
		if (setgroups(other != 0, &other) < 0 || setgid(gid) < 0 ||
		    setuid(60000) < 0)
			_exit(9);
		rc = ctl_call(dir, "echo", args, ENOUGH_MS, &m);
		if (rc != want_rc)
			_exit(1);
		if (rc == 0 && status_of(m) != want_status)
			_exit(2);
		if (rc == 0 && json_is_true(json_object_get(json_object_get(m,
		    "result"), "change")) != want_change)
			_exit(3);
		if (want_status != 0 && strstr(line(m, "errors", 0),
		    "may only read") == NULL)
			_exit(4);
		_exit(0);
	}
	json_decref(args);
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
}

static void
groups_decide_who_may_what(void **state)
{
	char path[128];
	struct stat st;

	(void)state;
	if (geteuid() != 0)
		skip();
	snprintf(path, sizeof(path), "%s/xlb.sock", dir);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0660);
	assert_int_equal(st.st_uid, 0);
	assert_int_equal(st.st_gid, READERS);
	assert_int_equal(chmod(dir, 0755), 0);
	as_user(60000, 0, 10, -EACCES, 0, false);
	as_user(60000, ADMINS, 10, -EACCES, 0, false);	/* and not in xlb */
	as_user(READERS, 0, 10, 0, 0, false);
	as_user(60000, READERS, 10, 0, 0, false);
	as_user(READERS, ADMINS, 10, 0, 0, true);
	as_user(ADMINS, READERS, 10, 0, 0, true);
	as_user(READERS, 0, CTL_READER_MAX - 200, 0, 0, false);
	as_user(READERS, 0, CTL_READER_MAX + 1, 0, 1, false);
	as_user(READERS, 0, 3 << 20, 0, 1, false);
	as_user(READERS, ADMINS, 3 << 20, 0, 0, true);
	/* the socket's mode is not all that protects it */
	assert_int_equal(chmod(path, 0666), 0);
	{
		json_t *m;
		int status;
		pid_t pid = fork();

		if (pid == 0) {
			if (setgroups(0, NULL) < 0 || setgid(60000) < 0 ||
			    setuid(60000) < 0)
				_exit(9);
			_exit(ctl_call(dir, "echo", NULL, ENOUGH_MS, &m) != 0 ||
			    strcmp(line(m, "errors", 0),
			    "permission denied") != 0);
		}
		waitpid(pid, &status, 0);
		assert_int_equal(status, 0);
	}
	assert_int_equal(chmod(path, 0660), 0);
}

static void
clients_that_vanish_cost_nothing(void **state)
{
	static const char rq[] = "{\"schema\":1,\"command\":\"later\"}\n";
	json_int_t before = server_fds();
	int fd, i;

	(void)state;
	for (i = 0; i < 50; i++) {
		fd = raw_open();
		if (i % 2 == 0)
			assert_int_equal(write(fd, rq, sizeof(rq) - 1),
			    sizeof(rq) - 1);
		else
			assert_int_equal(write(fd, "{", 1), 1);
		close(fd);
	}
	server_fds_await(before);
	assert_int_equal(later_is_now(), 25);	/* the replies to nobody */
	server_fds_await(before);
}

static void
slow_clients_time_out(void **state)
{
	static const char rq[] = "{\"schema\":1,\"command\":\"big\"}\n";
	const struct timeval limit = { .tv_sec = 60 };
	int fd[CTL_CLIENTS_MAX + 6], slow;
	double begin = now();
	json_int_t before = server_fds();
	char c, text[4096];
	size_t i, got = 0;
	ssize_t n;
	json_t *m;

	(void)state;
	slow = raw_open();	/* asks, and does not read */
	assert_int_equal(write(slow, rq, sizeof(rq) - 1), sizeof(rq) - 1);
	for (i = 0; i < CTL_CLIENTS_MAX + 6; i++)
		fd[i] = raw_open();
	assert_int_equal(write(fd[0], "{", 1), 1);
	/* waits for a place: those that came late have less patience to try */
	assert_int_equal(ctl_call(dir, "echo", NULL, ENOUGH_MS, &m), 0);
	json_decref(m);
	assert_true(now() - begin > 1.5);
	assert_true(now() - begin < 4.5);
	assert_int_equal(setsockopt(fd[0], SOL_SOCKET, SO_RCVTIMEO, &limit,
	    sizeof(limit)), 0);
	assert_int_equal(read(fd[0], &c, 1), 0);
	assert_true(now() - begin > 4.5);
	for (i = 0; i < CTL_CLIENTS_MAX + 6; i++)
		close(fd[i]);
	server_fds_await(before);
	while ((n = read(slow, text, sizeof(text))) > 0)
		got += (size_t)n;
	close(slow);
	assert_in_range(got, 1, BIG - 1);	/* it was cut short */
}

static long
pushed(long n, const char *what)
{
	json_t *m;
	long taken;

	assert_int_equal(ctl_call(dir, "push", json_pack("{s:I}", "n",
	    (json_int_t)n), ENOUGH_MS, &m), 0);
	taken = (long)json_integer_value(json_object_get(json_object_get(m,
	    "result"), what));
	json_decref(m);
	return taken;
}

/* So many whole lines, in order. */
static void
lines_read(int fd, long n)
{
	char text[LINE_LEN];
	json_int_t number, last = -1;
	size_t len;
	ssize_t got;
	json_t *o;

	for (; n > 0; n--) {
		for (len = 0; len < LINE_LEN; len += (size_t)got) {
			got = read(fd, text + len, LINE_LEN - len);
			assert_true(got > 0);
		}
		o = json_loadb(text, LINE_LEN, 0, NULL);
		number = json_integer_value(json_object_get(o, "n"));
		assert_true(json_is_object(o) && number > last);
		last = number;
		json_decref(o);
	}
}

/* What a slow one does not take is lost to it, and costs nobody anything. */
static void
streams_are_bounded(void **state)
{
	static const char rq[] = "{\"schema\":1,\"command\":\"stream\"}\n";
	json_int_t before = server_fds();
	int fd = raw_open();
	char c = 0;
	long taken;

	(void)state;
	assert_int_equal(write(fd, rq, sizeof(rq) - 1), sizeof(rq) - 1);
	while (c != '\n')
		assert_int_equal(read(fd, &c, 1), 1);
	assert_int_equal(pushed(10, "taken"), 10);
	lines_read(fd, 10);
	taken = pushed(100000, "taken");
	assert_in_range(taken, CTL_STREAM_BYTES / LINE_LEN,
	    (CTL_STREAM_BYTES + (1 << 20)) / LINE_LEN);
	assert_int_equal(pushed(1, "taken"), 0);
	lines_read(fd, taken);
	assert_int_equal(pushed(2, "taken"), 2);
	lines_read(fd, 2);
	assert_int_equal(pushed(0, "gone"), 0);
	close(fd);
	assert_int_equal(pushed(1, "taken"), 0);
	assert_int_equal(pushed(0, "gone"), 1);
	server_fds_await(before);
}

static bool
count_lines(const json_t *o, void *arg)
{
	int *left = arg;

	assert_true(json_is_integer(json_object_get(o, "n")));
	return --*left > 0;
}

static void
client_of_a_stream(void **state)
{
	int left = 9;
	json_t *m;

	(void)state;
	assert_int_equal(ctl_call_lines(dir, "three", json_pack("{s:b}", "end",
	    1), ENOUGH_MS, count_lines, &left, &m), -ECONNRESET);
	assert_int_equal(left, 6);
	left = 2;
	assert_int_equal(ctl_call_lines(dir, "three", NULL, ENOUGH_MS, count_lines,
	    &left, &m), 0);
	assert_int_equal(left, 0);
	assert_int_equal(status_of(m), 0);
	json_decref(m);
	/* a refusal is all there is */
	assert_int_equal(ctl_call_lines(dir, "nonsense", NULL, ENOUGH_MS,
	    count_lines, &left, &m), 0);
	assert_int_equal(status_of(m), 1);
	json_decref(m);
}

static void
one_daemon_for_each_directory(void **state)
{
	char path[128], want[256];
	struct ctl *ctl;
	sd_event *ev;
	json_t *m;

	(void)state;
	sd_event_new(&ev);
	assert_int_equal(ctl_open(ev, dir, serve, ev, &ctl), -EADDRINUSE);
	snprintf(want, sizeof(want), "%s: xlbd is running already on this "
	    "directory, pid %d", dir, (int)server);
	assert_string_equal(last_line, want);
	assert_int_equal(ctl_call(dir, "echo", NULL, ENOUGH_MS, &m), 0);
	json_decref(m);
	/* one that was killed leaves its socket: no obstacle */
	assert_int_equal(ctl_call(dir, "die", NULL, ENOUGH_MS, &m), -ECONNRESET);
	waitpid(server, NULL, 0);
	assert_int_equal(ctl_call(dir, "echo", NULL, ENOUGH_MS, &m), -ECONNREFUSED);
	server_start();
	assert_int_equal(ctl_call(dir, "echo", NULL, ENOUGH_MS, &m), 0);
	json_decref(m);
	server_end();

	groups_exist = false;
	assert_int_equal(ctl_open(ev, dir, serve, ev, &ctl), 0);
	snprintf(path, sizeof(path), "%s/xlb.sock", dir);
	{
		struct stat st;

		assert_int_equal(stat(path, &st), 0);
		assert_int_equal(st.st_mode & 07777, 0600);
	}
	ctl_close(ctl);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(ctl_call(dir, "echo", NULL, ENOUGH_MS, &m), -ENOENT);
	assert_int_equal(ctl_open(ev, "/proc/xlb", serve, ev, &ctl), -ENOENT);
	groups_exist = true;
	sd_event_unref(ev);
	server_start();
}

int
main(void)
{
	const struct CMUnitTest test[] = {
		cmocka_unit_test(request_and_reply),
		cmocka_unit_test(reply_may_come_later),
		cmocka_unit_test(what_is_no_request_is_refused),
		cmocka_unit_test(groups_decide_who_may_what),
		cmocka_unit_test(clients_that_vanish_cost_nothing),
		cmocka_unit_test(slow_clients_time_out),
		cmocka_unit_test(streams_are_bounded),
		cmocka_unit_test(client_of_a_stream),
		cmocka_unit_test(one_daemon_for_each_directory),
	};

	if (mkdtemp(dir) == NULL)
		return 1;
	log_capture(line_keep, NULL);
	return cmocka_run_group_tests_name("ctl", test, suite_start, suite_end);
}
