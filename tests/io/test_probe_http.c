/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Http checks against a server that answers well, badly, late or never. */
#include "probe_test.h"

#include <errno.h>
#include <poll.h>
#include <sys/mman.h>

#include "io/log.h"

/* How connections ended, as the server saw it. */
static struct seen {
	unsigned asked, reset, closed, ours;
} *seen;

static char big[70000];

static void
say(int fd, const char *text)
{
	send(fd, text, strlen(text), MSG_NOSIGNAL);
}

static void
end_count(bool reset)
{
	__atomic_add_fetch(reset ? &seen->reset : &seen->closed, 1,
	    __ATOMIC_SEQ_CST);
}

/* The end of the client's side; a checker sends RST, never FIN. */
static void
end_await(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	char c;

	if (poll(&pfd, 1, 60000) > 0)
		end_count(recv(fd, &c, 1, 0) < 0 && errno == ECONNRESET);
}

/* Until the client has enough: the error is told once. */
static _Noreturn void
forever(int fd, const char *head, const char *bytes)
{
	say(fd, head);
	while (send(fd, bytes, strlen(bytes), MSG_NOSIGNAL) > 0)
		;
	end_count(errno == ECONNRESET);
	_exit(0);
}

static void
echo(int fd, const char *request)
{
	char head[128];

	snprintf(head, sizeof(head), "HTTP/1.1 200 OK\r\nContent-Length: %zu"
	    "\r\n\r\n", strlen(request));
	say(fd, head);
	say(fd, request);
}

static void
pieces(int fd, const char *a, const char *b)
{
	say(fd, a);
	usleep(50000);
	say(fd, b);
}

static void
answer(int fd, const char *request, const char *path)
{
	char head[128];

	if (strncmp(path, "/status/", 8) == 0) {
		snprintf(head, sizeof(head), "HTTP/1.1 %.3s Word\r\n"
		    "Content-Length: 3\r\n\r\nok\n", path + 8);
		say(fd, head);
	} else if (strcmp(path, "/redirect") == 0) {
		say(fd, "HTTP/1.1 302 Found\r\nLocation: /status/200\r\n"
		    "Content-Length: 0\r\n\r\n");
	} else if (strcmp(path, "/continue") == 0) {
		pieces(fd, "HTTP/1.1 100 Continue\r\n\r\n",
		    "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
	} else if (strcmp(path, "/late-body") == 0) {
		say(fd, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n");
	} else if (strcmp(path, "/huge") == 0) {
		forever(fd, "HTTP/1.1 200 OK\r\n\r\n", big);
	} else if (strcmp(path, "/headers") == 0) {
		forever(fd, "HTTP/1.1 200 OK\r\n", "X-More: of the same\r\n");
	} else if (strcmp(path, "/line") == 0) {
		forever(fd, "HTTP/1.1 200 OK\r\nX-Long: ", big);
	} else if (strcmp(path, "/chunked") == 0) {
		pieces(fd, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"
		    "\r\n6\r\nall sy\r\n", "8\r\nstems go\r\n0\r\n\r\n");
	} else if (strcmp(path, "/until-close") == 0) {
		pieces(fd, "HTTP/1.0 200 OK\r\n\r\nall sys", "tems go");
		shutdown(fd, SHUT_WR);
	} else if (strcmp(path, "/no-header") == 0) {
		say(fd, "hello, I am not HTTP\r\n\r\n");
		shutdown(fd, SHUT_WR);
	} else if (strcmp(path, "/half") == 0) {
		say(fd, "HTTP/1.1 200 OK\r\nContent-Le");
		shutdown(fd, SHUT_WR);
	} else if (strcmp(path, "/cut") == 0) {
		say(fd, "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nall");
		shutdown(fd, SHUT_WR);
	} else if (strcmp(path, "/close") == 0) {
		shutdown(fd, SHUT_WR);
	} else if (strcmp(path, "/silent") != 0) {
		echo(fd, request);
	}
}

static _Noreturn void
serve(int fd)
{
	const struct linger abort_on_close = { .l_onoff = 1 };
	char request[8192], path[2048];
	size_t n = 0;
	ssize_t got;

	do {
		got = recv(fd, request + n, sizeof(request) - 1 - n, 0);
		if (got <= 0)
			_exit(0);
		n += (size_t)got;
		request[n] = '\0';
	} while (strstr(request, "\r\n\r\n") == NULL);
	__atomic_add_fetch(&seen->asked, 1, __ATOMIC_SEQ_CST);
	if (sscanf(request, "%*s %2047[^\r]", path) != 1)
		_exit(1);
	*strstr(path, " HTTP/") = '\0';
	if (strcmp(path, "/reset") == 0) {
		__atomic_add_fetch(&seen->ours, 1, __ATOMIC_SEQ_CST);
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &abort_on_close,
		    sizeof(abort_on_close));
		_exit(0);
	}
	answer(fd, request, path);
	end_await(fd);
	_exit(0);
}

/* Listens everywhere; a process for each connection. */
static pid_t
server_start(uint16_t *port)
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	socklen_t len = sizeof(in);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), client;
	pid_t pid;

	assert_int_equal(bind(fd, (struct sockaddr *)&in, sizeof(in)), 0);
	assert_int_equal(listen(fd, 512), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&in, &len), 0);
	*port = ntohs(in.sin_port);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		signal(SIGCHLD, SIG_IGN);
		while ((client = accept(fd, NULL, NULL)) >= 0) {
			if (fork() == 0)
				serve(client);
			close(client);
		}
		_exit(0);
	}
	close(fd);
	return pid;
}

#define LONG_200 "0123456789012345678901234567890123456789012345678901234567" \
	"890123456789012345678901234567890123456789012345678901234567890123456" \
	"7890123456789012345678901234567890123456789012345678901234567890123456"

static const struct row {
	const char *path, *method, *host, *body;
	struct http_range expect;	/* low 0: 200 */
	enum probe_result want;
	uint16_t detail;
} row[] = {
	{ "/status/200", "GET", NULL, NULL, { 0, 0 }, PROBE_OK, 0 },
	{ "/status/204", "GET", NULL, NULL, { 0, 0 }, PROBE_STATUS, 204 },
	{ "/status/204", "GET", NULL, NULL, { 200, 299 }, PROBE_OK, 0 },
	{ "/status/300", "GET", NULL, NULL, { 200, 299 }, PROBE_STATUS, 300 },
	{ "/status/404", "GET", NULL, NULL, { 404, 404 }, PROBE_OK, 0 },
	{ "/status/500", "GET", NULL, NULL, { 0, 0 }, PROBE_STATUS, 500 },
	{ "/status/503", "GET", NULL, NULL, { 0, 0 }, PROBE_DRAIN, 503 },
	{ "/status/503", "GET", NULL, "ok", { 0, 0 }, PROBE_DRAIN, 503 },
	/* never followed */
	{ "/redirect", "GET", NULL, NULL, { 0, 0 }, PROBE_STATUS, 302 },
	/* sent as they are */
	{ "/a/../b?c=%2e#d", "GET", NULL, "GET /a/../b?c=%2e#d HTTP/1.1\r\n",
	    { 0, 0 }, PROBE_OK, 0 },
	{ "/" LONG_200, "GET", NULL, LONG_200, { 0, 0 }, PROBE_OK, 0 },
	{ "/echo", "OPTIONS", NULL, "OPTIONS /echo HTTP/1.1", { 0, 0 },
	    PROBE_OK, 0 },
	{ "/status/200", "HEAD", NULL, NULL, { 0, 0 }, PROBE_OK, 0 },
	{ "/echo", "GET", "www.example.com", "\r\nHost: www.example.com\r\n",
	    { 0, 0 }, PROBE_OK, 0 },
	{ "/echo", "GET", NULL, "\r\nHost: 127.0.1.", { 0, 0 }, PROBE_OK, 0 },
	{ "/echo", "GET", NULL, "\r\nConnection: close\r\n", { 0, 0 },
	    PROBE_OK, 0 },
	{ "/echo", "GET", NULL, "no such thing", { 0, 0 }, PROBE_BODY, 0 },
	{ "/chunked", "GET", NULL, "all systems go", { 0, 0 }, PROBE_OK, 0 },
	{ "/until-close", "GET", NULL, "all systems go", { 0, 0 }, PROBE_OK,
	    0 },
	{ "/continue", "GET", NULL, NULL, { 0, 0 }, PROBE_OK, 0 },
	/* the header is enough, unless the body matters */
	{ "/late-body", "GET", NULL, NULL, { 0, 0 }, PROBE_OK, 0 },
	{ "/late-body", "GET", NULL, "x", { 0, 0 }, PROBE_TIMEOUT, 0 },
	{ "/huge", "GET", NULL, NULL, { 0, 0 }, PROBE_OK, 0 },
	{ "/huge", "GET", NULL, "y", { 0, 0 }, PROBE_BODY, 0 },
	{ "/headers", "GET", NULL, NULL, { 0, 0 }, PROBE_TOO_LONG, 0 },
	{ "/line", "GET", NULL, NULL, { 0, 0 }, PROBE_TOO_LONG, 0 },
	{ "/no-header", "GET", NULL, NULL, { 0, 0 }, PROBE_NONSENSE, 0 },
	{ "/half", "GET", NULL, NULL, { 0, 0 }, PROBE_CLOSED, 0 },
	{ "/cut", "GET", NULL, "all systems", { 0, 0 }, PROBE_CLOSED, 0 },
	{ "/close", "GET", NULL, NULL, { 0, 0 }, PROBE_CLOSED, 0 },
	{ "/reset", "GET", NULL, NULL, { 0, 0 }, PROBE_RESET, 0 },
	{ "/silent", "GET", NULL, NULL, { 0, 0 }, PROBE_TIMEOUT, 0 },
};
#define ROWS (sizeof(row) / sizeof(row[0]))

static struct http_range drained[] = { { 503, 503 } };
static struct http_range passed[ROWS];
static char name[ROWS][8];

static struct conf_check
check_http(size_t i)
{
	const struct row *r = &row[i];
	struct conf_check c = check_tcp(NEVER_MS,
	    r->want == PROBE_TIMEOUT ? 700 : 60000);

	snprintf(name[i], sizeof(name[i]), "c%zu", i);
	passed[i] = r->expect.low != 0 ? r->expect :
	    (struct http_range){ 200, 200 };
	c.name = name[i];
	c.type = CHECK_HTTP;
	c.path = r->path;
	c.method = r->method;
	c.host = r->host;
	c.body = r->body;
	c.expect = (struct http_range_list){ &passed[i], 1 };
	c.drain_status = (struct http_range_list){ drained, 1 };
	return c;
}

static void
each_answer_has_its_result(void **state)
{
	static struct conf_check c[ROWS];
	struct health_target t[ROWS];
	struct bench b;
	char addr[32];
	uint16_t port;
	pid_t pid = server_start(&port);
	unsigned bad = 0;
	size_t i;

	(void)state;
	bench_open(&b);
	for (i = 0; i < ROWS; i++) {
		c[i] = check_http(i);
		snprintf(addr, sizeof(addr), "127.0.1.%zu", i);
		t[i] = target(addr, port, &c[i]);
	}
	assert_int_equal(prober_set(b.p, t, ROWS), 0);
	bench_each(&b, ROWS);	/* some may have a second turn */
	assert_int_equal(prober_set(b.p, NULL, 0), 0);
	for (i = 0; i < ROWS; i++)
		if (b.got[i] == 0 || b.last[i] != row[i].want ||
		    b.detail[i] != row[i].detail) {
			print_error("row %zu %s %s: %zu results: %s (%u)\n", i,
			    row[i].path, row[i].body ? row[i].body : "",
			    b.got[i], probe_result_text(b.last[i]),
			    b.detail[i]);
			bad++;
		}
	assert_int_equal(bad, 0);
	BENCH_AWAIT(&b, seen->reset + seen->closed + seen->ours ==
	    seen->asked);
	assert_in_range(seen->asked, ROWS, SIZE_MAX);
	assert_int_equal(seen->closed, 0);
	assert_int_equal(seen->reset + seen->ours, seen->asked);
	/* its three, its socket, its epoll set, and libcurl's own */
	BENCH_AWAIT(&b, fds_of(prober_pid(b.p)) >= 5 &&
	    fds_of(prober_pid(b.p)) <= 8);
	bench_close(&b);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void
same_as_tcp_where_nobody_listens(void **state)
{
	struct conf_check c = check_http(0);
	struct health_target t;
	struct bench b;
	uint16_t port;
	int fd = port_open(-1, &port);

	(void)state;
	t = target("127.0.0.1", port, &c);
	bench_open(&b);
	assert_int_equal(prober_set(b.p, &t, 1), 0);
	bench_each(&b, 1);
	assert_int_equal(b.last[0], PROBE_REFUSED);
	bench_close(&b);
	close(fd);
}

/* A reload changes what is asked; a new prober is told again. */
static void
changed_check_is_asked_anew(void **state)
{
	struct conf_check c = check_http(0);
	struct health_target t;
	struct bench b;
	uint16_t port;
	pid_t pid = server_start(&port), before;

	(void)state;
	c.interval_ms = 50;
	t = target("127.0.0.1", port, &c);
	bench_open(&b);
	assert_int_equal(prober_set(b.p, &t, 1), 0);
	bench_run(&b, 60000, 3);
	assert_int_equal(b.last[0], PROBE_OK);
	c.path = "/status/500";
	assert_int_equal(prober_set(b.p, &t, 1), 0);
	bench_reset(&b);
	bench_run(&b, 60000, 3);
	assert_int_equal(b.last[0], PROBE_STATUS);
	assert_int_equal(b.detail[0], 500);
	before = prober_pid(b.p);
	assert_int_equal(kill(before, SIGKILL), 0);
	BENCH_AWAIT(&b, prober_pid(b.p) != before && prober_pid(b.p) != 0);
	bench_reset(&b);
	bench_run(&b, 60000, 3);
	assert_int_equal(b.last[0], PROBE_STATUS);
	c.type = CHECK_TCP;
	assert_int_equal(prober_set(b.p, &t, 1), 0);
	bench_reset(&b);
	bench_run(&b, 60000, 3);
	assert_int_equal(b.last[0], PROBE_OK);
	assert_int_equal(prober_set(b.p, NULL, 0), 0);
	bench_close(&b);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* As where a virtual machine is stopped: neither end runs while a deadline passes. */
static void
a_pause_is_no_silence(void **state)
{
	struct conf_check c = check_http(0);
	struct health_target t;
	struct bench b;
	uint16_t port;
	pid_t pid = server_start(&port);
	int round, i;

	(void)state;
	/* each connection's process, too; some are under way at any time */
	assert_int_equal(setpgid(pid, pid), 0);
	c.interval_ms = 60;
	c.timeout_ms = 1000;
	c.path = "/continue";
	t = target("127.0.0.1", port, &c);
	bench_open(&b);
	assert_int_equal(prober_set(b.p, &t, 1), 0);
	bench_run(&b, 10000, 1);
	for (round = 0; round < 4; round++) {
		bench_run(&b, 25, SIZE_MAX);
		assert_int_equal(kill(prober_pid(b.p), SIGSTOP), 0);
		assert_int_equal(kill(-pid, SIGSTOP), 0);
		usleep(1200000);
		assert_int_equal(kill(prober_pid(b.p), SIGCONT), 0);
		usleep(20000);
		assert_int_equal(kill(-pid, SIGCONT), 0);
		for (i = 0; i < 5; i++) {
			bench_run(&b, 10000, b.total + 1);
			assert_int_equal(b.last[0], PROBE_OK);
		}
	}
	bench_close(&b);
	kill(-pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

int
main(void)
{
	const struct CMUnitTest test[] = {
		cmocka_unit_test(each_answer_has_its_result),
		cmocka_unit_test(same_as_tcp_where_nobody_listens),
		cmocka_unit_test(changed_check_is_asked_anew),
		cmocka_unit_test(a_pause_is_no_silence),
	};

	memset(big, 'x', sizeof(big) - 1);
	seen = mmap(NULL, sizeof(*seen), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	/* must not matter */
	setenv("http_proxy", "http://127.0.0.1:9", 1);
	setenv("ALL_PROXY", "http://127.0.0.1:9", 1);
	return PROBE_TESTS("probe_http", test);
}
