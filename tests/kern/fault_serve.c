/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Work with clients, servers and helpers, see fault.h. */
#include "fault.h"

#include "../unit/unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <systemd/sd-event.h>
#include <unistd.h>

#include "core/announce.h"
#include "core/arena.h"
#include "core/diag.h"
#include "io/bird.h"
#include "io/ctl.h"
#include "io/file.h"
#include "io/http.h"
#include "io/probe.h"
#include "kern.h"

#define PORT 9109
#define CLOSED 9110
#define ENOUGH_MS 20000		/* where a busy machine may take long */

static pid_t
child(int (*fn)(void))
{
	pid_t pid;

	fault_hold();
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		_exit(fn() < 0);
	}
	fault_go();
	return pid;
}

/* What a child came to: 1 while it runs, else 0 or -EIO. */
struct ending {
	pid_t pid;
	int rc;
};

static bool
has_ended(void *arg)
{
	struct ending *e = arg;
	int status;

	if (e->rc == 1 && waitpid(e->pid, &status, WNOHANG) == e->pid)
		e->rc = WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 :
		    -EIO;
	return e->rc != 1;
}

static int
serve(sd_event *ev, pid_t pid)
{
	struct ending e = { pid, 1 };
	int rc = fault_loop(ev, has_ended, &e);

	if (rc < 0) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	return rc < 0 ? rc : e.rc;
}

static void
ctl_serve(struct ctl_request *rq, const char *command, const json_t *args,
    bool may_change, void *arg)
{
	struct ctl_stream *s;

	(void)args, (void)may_change, (void)arg;
	if (strcmp(command, "lines") != 0) {
		ctl_reply(rq, ctl_message(0));
		return;
	}
	s = ctl_stream(rq, ctl_message(0), NULL, NULL);
	ctl_stream_line(s, "{}\n", 3);
	ctl_stream_end(s);
}

static bool
line_take(const json_t *o, void *arg)
{
	(void)o, (void)arg;
	return false;
}

static int
ctl_ask(void)
{
	json_t *reply = NULL;
	int rc;

	rc = ctl_call(fault_dir, "x", NULL, ENOUGH_MS, &reply);
	json_decref(reply);
	if (rc < 0)
		return rc;
	reply = NULL;
	rc = ctl_call_lines(fault_dir, "lines", NULL, ENOUGH_MS, line_take,
	    NULL, &reply);
	json_decref(reply);
	return rc;
}

static int
ctl_server_work(void)
{
	struct ctl *ctl;
	sd_event *ev;
	int rc;

	assert_true(sd_event_new(&ev) >= 0);
	fault_hold();
	run("rm -f %s/*~", fault_dir);
	fault_go();
	rc = ctl_open(ev, fault_dir, ctl_serve, NULL, &ctl);
	if (rc == 0) {
		rc = serve(ev, child(ctl_ask));
		ctl_close(ctl);
	}
	sd_event_unref(ev);
	return rc;
}

static int
ctl_serve_for_ever(void)
{
	struct ctl *ctl;
	sd_event *ev;

	assert_true(sd_event_new(&ev) >= 0);
	assert_int_equal(ctl_open(ev, fault_dir, ctl_serve, NULL, &ctl), 0);
	return sd_event_loop(ev);
}

static int
ctl_client_work(void)
{
	pid_t pid = child(ctl_serve_for_ever);
	double begun = now_ms();
	json_t *reply = NULL;
	int rc;

	fault_hold();
	while (ctl_call(fault_dir, "x", NULL, ENOUGH_MS, &reply) < 0 &&
	    now_ms() - begun < ENOUGH_MS)
		usleep(5000);
	assert_non_null(reply);
	json_decref(reply);
	fault_go();
	rc = ctl_ask();
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return rc;
}

static struct http *http;

static void
http_write(enum http_document doc, void *arg)
{
	(void)arg;
	http_answer(http, doc, "text\n", 5);
}

/* Asks until it is answered. */
static int
http_ask(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
	    .sin_port = htons(PORT), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	static const char request[] = "GET /metrics HTTP/1.1\r\nHost: x\r\n"
	    "Connection: close\r\n\r\n";
	char text[4096];
	ssize_t n;
	int fd;

	for (;; usleep(10000)) {
		fd = socket(AF_INET, SOCK_STREAM, 0);
		if (connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0 &&
		    write(fd, request, sizeof(request) - 1) > 0 &&
		    (n = recv(fd, text, sizeof(text) - 1, MSG_WAITALL)) > 0) {
			text[n] = '\0';
			if (strstr(text, "\r\n\r\ntext\n") != NULL)
				return 0;
		}
		close(fd);
	}
}

static int
http_work(void)
{
	struct addr here;
	sd_event *ev;
	int rc;

	assert_int_equal(addr_parse("127.0.0.1", &here), 0);
	assert_true(sd_event_new(&ev) >= 0);
	rc = http_fork("nobody", &http);
	if (rc == 0) {
		rc = http_start(http, ev, http_write, NULL);
		if (rc == 0)
			rc = http_listen(http, &here, PORT);
		if (rc == 0)
			rc = serve(ev, child(http_ask));
		http_close(http);
	}
	sd_event_unref(ev);
	return rc;
}

struct probed {
	size_t n;
	enum probe_result last;
};

static void
probe_take(size_t id, enum probe_result r, uint16_t detail, const char *said,
    void *arg)
{
	struct probed *p = arg;

	(void)id, (void)detail, (void)said;
	p->n++;
	p->last = r;
}

static bool
is_probed(void *arg)
{
	return ((struct probed *)arg)->n > 0;
}

static void
error_take(const struct addr *to, const struct addr *from, uint16_t mtu,
    void *arg)
{
	(void)to, (void)from, (void)mtu, (void)arg;
}

/* One check of what listens on `port`, or, if that is CLOSED, does not. */
static int
probe_once(struct conf_check *c, uint16_t port)
{
	struct health_target t = { .port = port, .check = c };
	struct probed got = { 0, PROBE_OK };
	struct prober *p;
	sd_event *ev;
	int rc;

	c->name = "c";
	c->interval_ms = 100;
	c->timeout_ms = ENOUGH_MS;
	c->rise = c->fall = 1;
	assert_int_equal(addr_parse("127.0.0.1", &t.addr), 0);
	assert_true(sd_event_new(&ev) >= 0);
	rc = prober_fork("nobody", &p);
	if (rc == 0) {
		rc = prober_start(p, ev, probe_take, &got);
		if (rc == 0)
			rc = prober_errors(p, 6080, error_take);
		if (rc == 0)
			rc = prober_set(p, &t, 1);
		if (rc == 0)
			rc = fault_loop(ev, is_probed, &got);
		if (rc == 0 && got.last != (c->ca != NULL ? PROBE_LOCAL :
		    port == CLOSED ? PROBE_REFUSED : PROBE_OK))
			rc = -EIO;
		prober_close(p);
	}
	sd_event_unref(ev);
	return rc;
}

static int
probe_tcp_work(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
	    .sin_port = htons(PORT), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct conf_check c = { .type = CHECK_TCP };
	int fd, rc, one = 1;

	fault_hold();
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(fd, 8), 0);
	fault_go();
	rc = probe_once(&c, PORT);
	close(fd);
	return rc;
}

static int
probe_exec_work(void)
{
	static const char *command[] = { "/bin/true", NULL };
	struct conf_check c = { .type = CHECK_EXEC, .command = command,
	    .user = "nobody" };

	return probe_once(&c, PORT);
}

static int
probe_icmp_work(void)
{
	struct conf_check c = { .type = CHECK_ICMP };

	return probe_once(&c, PORT);
}

static int
probe_udp_work(void)
{
	struct conf_check c = { .type = CHECK_UDP, .send = "x", .reply = "x" };

	return probe_once(&c, CLOSED);
}

static int
probe_http_work(void)
{
	struct conf_check c = { .type = CHECK_HTTP, .path = "/",
	    .method = "GET" };

	return probe_once(&c, CLOSED);
}

/* That the file comes to it: what is in it is no certificate. */
static int
probe_https_work(void)
{
	struct conf_check c = { .type = CHECK_HTTPS, .path = "/",
	    .method = "GET", .verify = true };
	char ca[160];

	snprintf(ca, sizeof(ca), "%s/ca", fault_dir);
	fault_hold();
	assert_int_equal(file_replace(ca, "no certificate", 14, 0644), 0);
	fault_go();
	c.ca = ca;
	return probe_once(&c, CLOSED);
}

static bool
is_absent(void *arg)
{
	return bird_status(arg) == BIRD_ABSENT;
}

static void
bird_changed(void *arg)
{
	(void)arg;
}

/* Nobody listens there; what is written is. */
static int
bird_work(void)
{
	const struct announce none = { 0 };
	const struct conf conf = { 0 };
	char sock[128], file[160];
	struct bird *b;
	sd_event *ev;
	int rc;

	snprintf(sock, sizeof(sock), "%s/bird.ctl", fault_dir);
	assert_true(sd_event_new(&ev) >= 0);
	fault_hold();
	snprintf(file, sizeof(file), "rm -rf %s/bird", fault_dir);
	run("%s", file);
	fault_go();
	snprintf(file, sizeof(file), "%s/bird", fault_dir);
	rc = bird_open(ev, file, sock, bird_changed, NULL, &b);
	if (rc == 0) {
		rc = bird_set(b, &none, &conf);
		if (rc == 0)
			rc = fault_loop(ev, is_absent, b);
		bird_close(b);
	}
	sd_event_unref(ev);
	return rc;
}

const struct fault_work fault_serve[] = {
	/* groups that cannot be read give no rights; there is nothing to
	 * unlink; a request that cannot be read is refused */
	{ .name = "control socket", .run = ctl_server_work,
	    .borne = "unlink getsockopt json_loadb" },
	{ .name = "control socket, interrupted", .run = ctl_server_work,
	    .err = EINTR, .borne = "unlink getsockopt accept4 recv send" },
	{ .name = "control socket, the other end", .run = ctl_client_work },
	{ .name = "the other end, interrupted", .run = ctl_client_work,
	    .err = EINTR, .borne = "connect poll recv send" },
	/* rights that were raised are there anyway; of its end a helper tells
	 * in two ways */
	{ .name = "http", .run = http_work,
	    .borne = "syscall recv poll" },
	{ .name = "http, its helper", .run = http_work, .helpers = true },
	{ .name = "http, its helper, interrupted", .run = http_work,
	    .helpers = true, .err = EINTR },
	{ .name = "http, busy", .run = http_work, .err = EAGAIN,
	    .borne = "syscall recv poll sendmsg" },
	{ .name = "prober", .run = probe_tcp_work, .from = "sd_event_add_time",
	    .borne = "fcntl sendmsg recv poll" },
	{ .name = "prober, icmp", .run = probe_icmp_work,
	    .from = "sd_event_add_time", .borne = "fcntl sendmsg recv poll" },
	{ .name = "prober, udp", .run = probe_udp_work,
	    .from = "sd_event_add_time", .borne = "fcntl sendmsg recv poll" },
	{ .name = "prober, http", .run = probe_http_work,
	    .from = "sd_event_add_time", .borne = "fcntl sendmsg recv poll" },
	{ .name = "prober, https", .run = probe_https_work,
	    .from = "sd_event_add_time", .borne = "fcntl sendmsg recv poll" },
	{ .name = "prober, interrupted", .run = probe_tcp_work, .err = EINTR,
	    .from = "sd_event_add_time", .borne = "fcntl sendmsg recv poll" },
	/* what the kernel is short of for a moment is tried again */
	{ .name = "prober, busy", .run = probe_tcp_work, .err = EAGAIN,
	    .from = "sd_event_add_time",
	    .borne = "fcntl sendmsg recv poll socket setsockopt" },
	{ .name = "prober, its helpers", .run = probe_tcp_work,
	    .helpers = true },
	{ .name = "prober, its helpers, interrupted", .run = probe_tcp_work,
	    .helpers = true, .err = EINTR },
	{ .name = "prober, icmp, its helpers", .run = probe_icmp_work,
	    .helpers = true, .from = "epoll_create1" },
	{ .name = "prober, udp, its helpers", .run = probe_udp_work,
	    .helpers = true, .from = "epoll_create1" },
	{ .name = "prober, http, its helpers", .run = probe_http_work,
	    .helpers = true, .from = "epoll_create1" },
	{ .name = "prober, exec, its helpers", .run = probe_exec_work,
	    .helpers = true, .from = "pipe2" },
	/* what cannot be compared is written anew */
	{ .name = "bird", .run = bird_work, .borne = "open" },
	{ .name = NULL }
};
