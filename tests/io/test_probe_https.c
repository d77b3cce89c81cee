/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Https checks against servers of tests/io/https_server.py, with certificates
 * made for the occasion. */
#include "probe_test.h"

#include <limits.h>

#include "io/conf_world.h"

static char dir[] = "/tmp/xlb-https.XXXXXX";
static char ca[64], other[64];

static const struct row {
	const char *server, *path, *sni, *host, *body, *ca;
	bool insecure;
	enum probe_result want;
	uint16_t detail;
	const char *said;
} row[] = {
	{ "good", "/", NULL, NULL, NULL, ca, false, PROBE_OK, 0, "" },
	{ "good", "/", NULL, NULL, "sni None end", ca, false, PROBE_OK, 0, "" },
	{ "good", "/", "www.example.com", NULL, "sni www.example.com end", ca,
	    false, PROBE_OK, 0, "" },
	{ "good", "/", "www.example.com", NULL, "\r\nHost: 127.0.0.1:", ca,
	    false, PROBE_OK, 0, "" },
	{ "good", "/", "www.example.com", "a.example", "\r\nHost: a.example\r",
	    ca, false, PROBE_OK, 0, "" },
	{ "good", "/503", NULL, NULL, NULL, ca, false, PROBE_DRAIN, 503, "" },
	{ "good", "/500", NULL, NULL, NULL, ca, false, PROBE_STATUS, 500, "" },
	{ "good", "/", NULL, NULL, "no such thing", ca, false, PROBE_BODY, 0,
	    "" },
	{ "good", "/silent", NULL, NULL, NULL, ca, false, PROBE_TIMEOUT, 0,
	    "" },
	{ "good", "/", "www.example.org", NULL, NULL, ca, false, PROBE_CERT,
	    62, "" },
	{ "good", "/", NULL, NULL, NULL, other, false, PROBE_CERT, 20, "" },
	{ "good", "/", NULL, NULL, NULL, NULL, false, PROBE_CERT, 20, "" },
	{ "good", "/", "www.example.org", NULL, "sni www.example.org end", NULL,
	    true, PROBE_OK, 0, "" },
	{ "name", "/", NULL, NULL, NULL, ca, false, PROBE_CERT, 64, "" },
	{ "name", "/", "www.example.com", NULL, NULL, ca, false, PROBE_OK, 0,
	    "" },
	{ "self", "/", NULL, NULL, NULL, ca, false, PROBE_CERT, 18, "" },
	{ "self", "/", NULL, NULL, NULL, NULL, true, PROBE_OK, 0, "" },
	{ "expired", "/", NULL, NULL, NULL, ca, false, PROBE_CERT, 10, "" },
	{ "plain", "/", NULL, NULL, NULL, ca, false, PROBE_TLS, 0,
	    "wrong version number" },
	{ "silent", "/", NULL, NULL, NULL, ca, false, PROBE_TLS_TIMEOUT, 0,
	    "" },
	{ "reset", "/", NULL, NULL, NULL, ca, false, PROBE_TLS, 0,
	    "Connection reset by peer" },
	{ "close", "/", NULL, NULL, NULL, ca, false, PROBE_TLS, 0,
	    "SSL_ERROR_SYSCALL" },
};
#define ROWS (sizeof(row) / sizeof(row[0]))

static struct http_range ok[] = { { 200, 200 } }, drained[] = { { 503, 503 } };
static char name[ROWS][8];

static struct conf_check
check_https(size_t i)
{
	const struct row *r = &row[i];
	struct conf_check c = check_of(CHECK_HTTPS, i, name[i],
	    r->want == PROBE_TIMEOUT || r->want == PROBE_TLS_TIMEOUT);

	if (r->want == PROBE_TIMEOUT)	/* once the handshake is over */
		c.timeout_ms = ANSWERED_MS;
	c.path = r->path;
	c.method = "GET";
	c.sni = r->sni;
	c.host = r->host;
	c.body = r->body;
	c.ca = r->ca;
	c.verify = !r->insecure;
	c.expect = (struct http_range_list){ ok, 1 };
	c.drain_status = (struct http_range_list){ drained, 1 };
	return c;
}

static int
row_report(const struct bench *b, const struct conf_check *c, size_t i)
{
	struct health_fsm f = { .why = b->last[i], .detail = b->detail[i] };
	char why[HEALTH_WHY_MAX];

	if (b->got[i] > 0 && b->last[i] == row[i].want &&
	    b->detail[i] == row[i].detail &&
	    strncmp(b->said[i], row[i].said, strlen(row[i].said)) == 0 &&
	    (row[i].said[0] != '\0') == (b->said[i][0] != '\0'))
		return 0;
	snprintf(f.said, sizeof(f.said), "%s", b->said[i]);
	print_error("row %zu %s: %zu results: %s (%u, \"%s\")\n", i,
	    row[i].server, b->got[i], health_why_print(&f, c, why),
	    b->detail[i], b->said[i]);
	return 1;
}

/* Targets are sorted by port, results have their index. */
static int
target_cmp(const void *va, const void *vb)
{
	const struct health_target *a = va, *b = vb;

	return a->port != b->port ? (a->port > b->port) - (a->port < b->port) :
	    strcmp(a->check->name, b->check->name);
}

static void
each_answer_has_its_result(void **state)
{
	static struct conf_check c[ROWS];
	struct health_target t[ROWS];
	static struct bench b, by_row;
	struct script s = script_start("https_server.py", dir);
	uint16_t port = 0;
	size_t i, at;
	int bad = 0;

	(void)state;
	for (i = 0; i < ROWS; i++) {
		if (i == 0 || strcmp(row[i].server, row[i - 1].server) != 0)
			port = script_port(&s, row[i].server);
		c[i] = check_https(i);
		t[i] = target("127.0.0.1", port, &c[i]);
	}
	qsort(t, ROWS, sizeof(t[0]), target_cmp);
	bench_open(&b);
	assert_int_equal(prober_set(b.p, t, ROWS), 0);
	bench_each(&b, ROWS);
	assert_int_equal(prober_set(b.p, NULL, 0), 0);
	by_row = b;
	for (i = 0; i < ROWS; i++) {
		at = (size_t)(t[i].check - c);
		by_row.got[at] = b.got[i];
		by_row.last[at] = b.last[i];
		by_row.detail[at] = b.detail[i];
		memcpy(by_row.said[at], b.said[i], sizeof(b.said[i]));
	}
	for (i = 0; i < ROWS; i++)
		bad += row_report(&by_row, &c[i], i);
	assert_int_equal(bad, 0);
	/* its three, its socket, its epoll set, and libcurl's own */
	BENCH_AWAIT(&b, fds_of(prober_pid(b.p)) >= 5 &&
	    fds_of(prober_pid(b.p)) <= 9);
	bench_close(&b);
	script_end(&s);
}

/* Without its authorities a check is not asked, and says so where it stands. */
static void
missing_authorities_fail_closed(void **state)
{
	struct conf_check c = check_https(0);
	struct health_target t = target("127.0.0.1", 9, &c);
	struct conf conf = { .check = &c, .ncheck = 1 };
	struct diag dg;
	struct bench b;

	(void)state;
	c.ca = "/nonexistent/ca.pem";
	c.ca_mark = (struct mark){ "xlb.yaml", 7, 9 };
	diag_init(&dg);
	assert_int_equal(conf_world_check(&conf, DIAG_ERROR, &dg), -1);
	assert_int_equal(dg.row[0].mark.line, 7);
	assert_string_equal(dg.row[0].text, "checks.c0.ca: "
	    "/nonexistent/ca.pem: No such file or directory");
	c.ca = "/etc/passwd";
	assert_int_equal(conf_world_check(&conf, DIAG_WARNING, &dg), 0);
	assert_string_equal(dg.row[1].text,
	    "checks.c0.ca: /etc/passwd: holds no certificate");
	diag_fini(&dg);
	bench_open(&b);
	assert_int_equal(prober_set(b.p, &t, 1), 0);
	bench_each(&b, 1);
	assert_int_equal(b.last[0], PROBE_LOCAL);
	bench_close(&b);
}

int
main(void)
{
	const struct CMUnitTest test[] = {
		cmocka_unit_test(each_answer_has_its_result),
		cmocka_unit_test(missing_authorities_fail_closed),
	};
	char rm[64];
	int rc;

	if (geteuid() != 0) {
		puts("1..0 # SKIP needs root: looks at the prober in /proc");
		return 0;
	}
	if (system("command -v openssl python3 >/dev/null") != 0) {
		puts("1..0 # SKIP needs openssl and python3");
		return 0;
	}
	if (mkdtemp(dir) == NULL)
		return 1;
	snprintf(ca, sizeof(ca), "%s/ca.pem", dir);
	snprintf(other, sizeof(other), "%s/other.pem", dir);
	/* must not matter */
	setenv("SSL_CERT_FILE", "/nonexistent", 1);
	rc = cmocka_run_group_tests_name("probe_https", test, NULL, NULL);
	snprintf(rm, sizeof(rm), "rm -rf %s", dir);
	return system(rm) == 0 ? rc : 1;
}
