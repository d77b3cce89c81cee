/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * `xlb bird-config`: goldens in tests/golden/bird-config, and BIRD itself reads
 * them. UPDATE=1 rewrites the goldens.
 */
#include "unit.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/bird_text.h"

static struct addr
ip(const char *s)
{
	struct addr a;

	assert_int_equal(addr_parse(s, &a), 0);
	return a;
}

static const char *
source_path(char *buf, size_t size, const char *name)
{
	const char *top = getenv("top_srcdir");

	snprintf(buf, size, "%s/%s", top != NULL ? top : ".", name);
	return buf;
}

static char *
slurp(const char *path)
{
	char *text = NULL;
	size_t size = 0;
	FILE *f = fopen(path, "r");

	if (f == NULL)
		fail_msg("%s: cannot open", path);
	if (getdelim(&text, &size, '\0', f) < 0)
		fail_msg("%s: empty", path);
	fclose(f);
	return text;
}

static char *
render(const struct conf *c, const char *wrapper, const struct addr *local)
{
	struct diag dg;
	char *text;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(out);
	diag_init(&dg);
	assert_int_equal(bird_config_render(c, wrapper, local, out, &dg), 0);
	assert_int_equal(dg.n, 0);
	fclose(out);
	return text;
}

static void
golden(const char *name, const char *text)
{
	char path[4096], file[128], *want;
	FILE *f;

	snprintf(file, sizeof(file), "tests/golden/bird-config/%s", name);
	source_path(path, sizeof(path), file);
	if (getenv("UPDATE") != NULL) {
		f = fopen(path, "w");
		assert_non_null(f);
		fputs(text, f);
		assert_int_equal(fclose(f), 0);
	}
	want = slurp(path);
	assert_string_equal(text, want);
	free(want);
}

/* BIRD reads it; the directory is made so that the pattern has one. */
static void
bird_reads(const char *text)
{
	char dir[] = "/tmp/xlb-bird-config-XXXXXX", cmd[256];
	FILE *f;
	int rc;

	if (access("/usr/sbin/bird", X_OK) < 0) {
		print_message("# no bird here: syntax not checked\n");
		return;
	}
	assert_non_null(mkdtemp(dir));
	snprintf(cmd, sizeof(cmd), "%s/bird.conf", dir);
	f = fopen(cmd, "w");
	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
	snprintf(cmd, sizeof(cmd),
	    "cd %s && /usr/sbin/bird -p -c bird.conf 2>&1 | sed 's/^/# /'; "
	    "/usr/sbin/bird -p -c bird.conf >/dev/null 2>&1", dir);
	fflush(stdout);
	rc = system(cmd);
	snprintf(cmd, sizeof(cmd), "rm -r %s", dir);
	assert_int_equal(system(cmd), 0);
	assert_int_equal(rc, 0);
}

static struct conf_neighbor both[] = {
	{ .as = 64500, .bfd = true },
	{ .as = 64500, .bfd = true, .password = "two words" },
	{ .as = 64512 },
};
static struct conf_address address[2];
static struct conf_service service = { .name = "www", .address = address,
    .naddress = 2 };

static struct conf
config(size_t nneighbor)
{
	struct conf c;

	both[0].address = ip("10.0.0.1");
	both[1].address = ip("2001:db8::1");
	both[2].address = ip("10.0.9.1");
	address[0].address = ip("203.0.113.10");
	address[1].address = ip("2001:db8:5::10");
	memset(&c, 0, sizeof(c));
	c.bgp.present = true;
	c.bgp.local_as = 64512;
	c.bgp.bird_directory = BIRD_DIRECTORY;
	c.bgp.neighbor = both;
	c.bgp.nneighbor = nneighbor;
	c.service = &service;
	c.nservice = 1;
	return c;
}

static void
two_families_and_ibgp(void **state)
{
	const struct addr local[] = { ip("10.0.0.2"), ip("2001:db8::2"),
	    ip("10.0.0.2") };
	struct conf c = config(3);
	char *text;

	(void)state;
	c.bgp.router_id = ip("10.0.0.2");
	c.bgp.bird_directory = ".";
	text = render(&c, "/nonexistent", local);
	golden("full.conf", text);
	bird_reads(text);
	free(text);
}

static void
one_session_for_both_families(void **state)
{
	struct conf c = config(1);
	char *text, wrapper[4096];

	(void)state;
	text = render(&c, "/usr/share/xlb/bird/xlb.conf", NULL);
	golden("one-peer.conf", text);
	free(text);
	c.bgp.neighbor = &both[1];
	text = render(&c, "/usr/share/xlb/bird/xlb.conf", NULL);
	golden("one-peer6.conf", text);
	free(text);
	/* BIRD would look for the wrapper: that of the sources will do, where
	 * /run/xlb-bird exists */
	if (access(BIRD_DIRECTORY, X_OK) < 0)
		c.bgp.bird_directory = ".";
	text = render(&c, source_path(wrapper, sizeof(wrapper),
	    "bird/xlb.conf"), NULL);
	bird_reads(text);
	free(text);
}

static void
one_unknown_local_address_unbinds_all(void **state)
{
	const struct addr local[] = { ip("10.0.0.2"), { { 0 } } };
	struct conf c = config(2);
	char *text = render(&c, NULL, local);

	(void)state;
	assert_null(strstr(text, "local 10.0.0.2"));
	assert_null(strstr(text, "\tstrict bind on;\n\tbfd"));
	free(text);
}

/* Lines without comments and empty ones. */
static void
strip(char *text)
{
	char *in, *out = text, *eol;

	for (in = text; *in != '\0'; in = eol + 1) {
		eol = strchr(in, '\n');
		if (eol == NULL)
			break;
		if (eol == in || *in == '#')
			continue;
		memmove(out, in, (size_t)(eol + 1 - in));
		out += eol + 1 - in;
	}
	*out = '\0';
}

static void
the_wrapper_written_out_is_the_packaged_one(void **state)
{
	struct conf c = config(0);
	char path[4096], *text = render(&c, NULL, NULL), *wrapper;

	(void)state;
	wrapper = slurp(source_path(path, sizeof(path), "bird/xlb.conf"));
	strip(wrapper);
	strip(text);
	assert_true(strlen(wrapper) > 100);
	assert_non_null(strstr(text, wrapper));
	free(wrapper);
	free(text);
}

static void
what_bird_cannot_say_is_refused(void **state)
{
	struct conf_neighbor bad[] = {
		{ .mark = { "x.yaml", 3, 5 }, .as = 1, .password = "a\"b" },
		{ .mark = { "x.yaml", 4, 5 }, .as = 1, .password = "a\nb" },
		{ .mark = { "x.yaml", 5, 5 }, .as = 1 },
	};
	struct conf c = config(0);
	struct diag dg;
	char *text;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	(void)state;
	bad[0].address = bad[1].address = ip("10.0.0.1");
	bad[2].address = ip("fe80::1");
	c.bgp.neighbor = bad;
	c.bgp.nneighbor = 3;
	c.bgp.bird_directory = "/run/\"x";
	diag_init(&dg);
	assert_int_equal(bird_config_render(&c, NULL, NULL, out, &dg), -1);
	assert_int_equal(dg.errors, 4);
	assert_string_equal(dg.row[1].text, "bgp.neighbors[0].password: BIRD "
	    "cannot express a quote or a control character");
	assert_int_equal(dg.row[3].mark.line, 5);
	diag_fini(&dg);
	diag_init(&dg);
	c.bgp.present = false;
	assert_int_equal(bird_config_render(&c, NULL, NULL, out, &dg), -1);
	assert_int_equal(dg.errors, 1);
	diag_fini(&dg);
	fclose(out);
	assert_int_equal(len, 0);
	free(text);
}

/* A channel that nobody needs is one more that can fail. */
static void
no_channel_without_addresses(void **state)
{
	struct conf c = config(1);
	char *text;

	(void)state;
	c.bgp.bird_directory = ".";	/* BIRD wants one that is there */
	service.naddress = 1;
	text = render(&c, NULL, NULL);
	service.naddress = 2;
	assert_non_null(strstr(text, "\tipv4 {\n"));
	assert_null(strstr(text, "\tipv6 {\n"));
	bird_reads(text);
	free(text);
}

static void
a_full_disk_is_an_error(void **state)
{
	struct conf c = config(0);
	struct diag dg;
	FILE *out = fopen("/dev/full", "w");

	(void)state;
	if (out == NULL)
		skip();
	setvbuf(out, NULL, _IONBF, 0);
	diag_init(&dg);
	assert_int_equal(bird_config_render(&c, NULL, NULL, out, &dg), -1);
	assert_int_equal(dg.errors, 1);
	assert_string_equal(dg.row[0].text, "bird-config: cannot write");
	diag_fini(&dg);
	fclose(out);
}

int
main(void)
{
	const struct CMUnitTest test[] = {
		cmocka_unit_test(two_families_and_ibgp),
		cmocka_unit_test(one_session_for_both_families),
		cmocka_unit_test(one_unknown_local_address_unbinds_all),
		cmocka_unit_test(the_wrapper_written_out_is_the_packaged_one),
		cmocka_unit_test(what_bird_cannot_say_is_refused),
		cmocka_unit_test(no_channel_without_addresses),
		cmocka_unit_test(a_full_disk_is_an_error),
	};

	return cmocka_run_group_tests_name("bird_config", test, NULL, NULL);
}
