/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unit.h"

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/conf.h"

static struct arena *a;
static struct diag dg;
static char *text;		/* the file that a test builds */
static size_t text_len;
static FILE *file;

static int
fresh(void **state)
{
	(void)state;
	a = arena_new();
	diag_init(&dg);
	file = open_memstream(&text, &text_len);
	return file == NULL ? -1 : 0;
}

static int
done(void **state)
{
	(void)state;
	arena_free(a);
	diag_fini(&dg);
	if (file != NULL)
		fclose(file);
	free(text);
	return 0;
}

/* What was written to `file`; NULL: refused. */
static const struct conf *
load(void)
{
	struct conf_source src = { "f", NULL, 0 };
	const struct conf *c = NULL;
	int rc;

	fclose(file);
	file = NULL;
	src.text = text;
	src.len = text_len;
	rc = conf_load(&src, 1, a, &c, &dg);
	assert_int_equal(rc, dg.errors > 0 ? -1 : 0);
	assert_int_equal(rc == 0, c != NULL);
	/* nothing may still point at the file */
	memset(text, 'x', text_len);
	return c;
}

static struct addr
addr(const char *s)
{
	struct addr x;

	assert_int_equal(addr_parse(s, &x), 0);
	return x;
}

static void
nothing_is_valid_and_has_the_defaults(void **state)
{
	const struct conf *c;

	(void)state;
	assert_int_equal(conf_load(NULL, 0, a, &c, &dg), 0);
	assert_string_equal(c->node_name, "");
	assert_int_equal(c->node_state, NODE_ACTIVE);
	assert_int_equal(c->gue_port, 6080);
	assert_int_equal(c->table_size, 65537);
	assert_int_equal(c->flow_entries, 1048576);
	assert_false(c->bgp.present);
	assert_int_equal(c->bgp.hold_ms, 5000);
	assert_string_equal(c->bgp.bird_directory, "/run/xlb-bird");
	assert_true(c->metrics_on);
	assert_int_equal(c->metrics_port, 9555);
	assert_int_equal(c->nservice + c->npool + c->ncheck, 0);
	assert_int_equal(dg.n, 0);
}

static const char whole[] =
    "interfaces: [{name: eth0}]\n"
    "tunnel: {source_ipv4: 10.255.0.0/16}\n"
    "maglev: {seed: 5, key_file: /k}\n"
    "bgp: {local_as: 64512, communities: ['1:2', '1:2:3'], hold: 0s}\n"
    "checks: {z: {type: tcp}, c: {type: tcp, via: direct, port: 80}}\n"
    "pools:\n"
    "  z: {}\n"
    "  p:\n"
    "    check: c\n"
    "    min_healthy: 50%\n"
    "    backends:\n"
    "      - {name: b, address: 192.0.2.2, weight: 7, state: down}\n"
    "      - {name: a, address: '2001:db8::1'}\n"
    "services:\n"
    "  - name: s\n"
    "    addresses: [{address: 203.0.113.1, med: 9,"
    " announce: 203.0.113.0/24}]\n"
    "    listen: [tcp/80, udp/*]\n"
    "    pool: p\n"
    "    hash: source\n";

static void
values_reach_their_fields(void **state)
{
	const struct conf_service *s;
	const struct conf_pool *p;
	const struct conf *c;
	struct addr want;

	(void)state;
	fputs(whole, file);
	c = load();
	assert_non_null(c);
	assert_string_equal(c->interface[0].name, "eth0");
	assert_true(c->has_source4);
	assert_false(c->has_source6);
	assert_int_equal(c->source4.len, 16);
	assert_int_equal(c->seed, 5);
	assert_true(c->bgp.present);
	assert_int_equal(c->bgp.hold_ms, 0);
	assert_int_equal(c->bgp.communities.n, 2);
	assert_true(c->bgp.communities.row[1].large);
	assert_int_equal(c->bgp.communities.row[1].c, 3);
	assert_string_equal(c->check[0].name, "c");
	assert_int_equal(c->check[0].via, VIA_DIRECT);
	assert_int_equal(c->check[1].via, VIA_DEFAULT);
	p = conf_pool_find(c, "p");
	assert_ptr_equal(p, &c->pool[0]);
	assert_ptr_equal(p->check, &c->check[0]);
	assert_true(p->min_healthy_percent);
	assert_int_equal(p->min_healthy, 50);
	assert_int_equal(p->mark.line, 8);
	assert_int_equal(p->mark.col, 3);
	assert_string_equal(p->mark.file, "f");
	assert_string_equal(p->backend[0].name, "b");
	assert_int_equal(p->backend[0].weight, 7);
	assert_int_equal(p->backend[0].state, BACKEND_DOWN);
	want = addr("2001:db8::1");
	assert_memory_equal(&p->backend[1].address, &want, sizeof(want));
	assert_int_equal(p->backend[1].mark.line, 13);
	assert_ptr_equal(conf_backend_find(p, "a"), &p->backend[1]);
	assert_null(conf_backend_find(p, "c"));
	assert_null(conf_pool_find(c, "q"));
	assert_ptr_equal(conf_pool_find(c, "z"), &c->pool[1]);
	s = &c->service[0];
	assert_ptr_equal(s->pool, p);
	assert_int_equal(s->hash, HASH_SOURCE);
	assert_true(s->required);
	assert_true(s->address[0].has_med);
	assert_int_equal(s->address[0].med, 9);
	assert_int_equal(s->address[0].announce.len, 24);
	assert_int_equal(s->listen[1].proto, IPPROTO_UDP);
	assert_int_equal(s->listen[1].port, 0);
	assert_int_equal(s->listen[1].mark.col, 22);
}

static const struct conf *
load_text(const char *s, size_t len)
{
	struct conf_source src = { "f", s, len };
	const struct conf *c = NULL;

	conf_load(&src, 1, a, &c, &dg);
	return c;
}

/* Half of a file, and a file with a wrong byte: no crash, and never refused
 * without a reason. */
static void
damaged_files_are_survived(void **state)
{
	static const unsigned char wrong[] = "\0\t\n \"'#&*:,-[]{}0a~!%\xff";
	char copy[sizeof(whole)];
	const struct conf *c;
	size_t i, j;

	(void)state;
	for (i = 0; i < sizeof(whole); i++)
		for (j = 0; j < sizeof(wrong); j++) {
			arena_free(a);
			a = arena_new();
			diag_fini(&dg);
			diag_init(&dg);
			memcpy(copy, whole, sizeof(whole));
			copy[i] = (char)wrong[j];
			c = load_text(copy, j == 0 ? i : sizeof(whole) - 1);
			assert_int_equal(c == NULL, dg.errors > 0);
		}
}

/* `n` of the kind, and what else they need. */
static void
services_write(size_t n)
{
	size_t i;

	fputs("interfaces: [{name: e}]\npools: {p: {}}\nservices:\n", file);
	for (i = 0; i < n; i++)
		fprintf(file, "- {name: s%zu, pool: p, listen: [tcp/%zu], "
		    "addresses: [203.0.113.1]}\n", i, i + 1);
}

static void
listeners_write(size_t n)
{
	size_t i;

	fputs("interfaces: [{name: e}]\npools: {p: {}}\nservices:\n"
	    "- {name: s, pool: p, addresses: [203.0.113.1], listen: [", file);
	for (i = 0; i < n; i++)
		fprintf(file, "tcp/%zu, ", i + 1);
	fputs("]}\n", file);
}

static void
pools_write(size_t n)
{
	size_t i;

	fputs("pools:\n", file);
	for (i = 0; i < n; i++)
		fprintf(file, "  p%zu:\n", i);
}

static void
backends_write(size_t n)
{
	size_t i;

	fputs("pools:\n", file);
	for (i = 0; i < n; i++) {
		if (i % 8192 == 0)
			fprintf(file, "  p%zu:\n    backends:\n", i / 8192);
		fprintf(file, "    - {name: b%zu, address: 10.0.%zu.%zu}\n", i,
		    i / 256, i % 256);
	}
}

static void
checks_write(size_t n)
{
	size_t i;

	fputs("checks:\n", file);
	for (i = 0; i < n; i++)
		fprintf(file, "  c%zu: {type: tcp, via: direct}\n", i);
}

static void
targets_write(size_t n)
{
	size_t i;

	/* 256 backends on n / 256 ports */
	fputs("interfaces: [{name: e}]\nchecks: {c: {type: tcp}}\npools:\n"
	    "  p:\n    check: c\n    backends:\n", file);
	for (i = 0; i < 256; i++)
		fprintf(file, "    - {name: b%zu, address: 10.0.0.%zu}\n", i,
		    i);
	fputs("services:\n- {name: s, pool: p, addresses: [203.0.113.1], "
	    "listen: [", file);
	for (i = 0; i * 256 < n; i++)
		fprintf(file, "tcp/%zu, ", i + 1);
	fputs("]}\n", file);
}

static void
interfaces_write(size_t n)
{
	size_t i;

	fputs("interfaces:\n", file);
	for (i = 0; i < n; i++)
		fprintf(file, "- {name: eth%zu}\n", i);
}

static void
neighbors_write(size_t n)
{
	size_t i;

	fputs("bgp:\n  local_as: 1\n  neighbors:\n", file);
	for (i = 0; i < n; i++)
		fprintf(file, "  - {address: 10.0.0.%zu, as: 1}\n", i);
}

static const struct limit_case {
	void (*write)(size_t n);
	size_t max;
	const char *says;
} limit_case[] = {
	{ services_write, CONF_SERVICES_MAX, "more than 4096 services" },
	{ listeners_write, CONF_LISTENERS_MAX, "more than 16384 listeners" },
	{ pools_write, CONF_POOLS_MAX, "more than 1024 pools" },
	{ backends_write, CONF_BACKENDS_MAX, "more than 16383 backends" },
	{ checks_write, CONF_CHECKS_MAX, "more than 1024 checks" },
	{ targets_write, CONF_TARGETS_MAX, "more than 65536" },
	{ interfaces_write, CONF_INTERFACES_MAX, "more than 64 interfaces" },
	{ neighbors_write, CONF_NEIGHBORS_MAX, "more than 64 neighbors" },
};

static void
what_fits_is_taken_and_one_more_is_not(void **state)
{
	const struct limit_case *l;
	size_t i;

	for (i = 0; i < sizeof(limit_case) / sizeof(limit_case[0]); i++) {
		l = &limit_case[i];
		l->write(l->max);
		assert_non_null(load());
		assert_int_equal(dg.errors, 0);
		done(state);
		fresh(state);
		l->write(l->max + 1);
		assert_null(load());
		assert_int_equal(dg.errors, 1);
		assert_non_null(strstr(dg.row[0].text, l->says));
		done(state);
		fresh(state);
	}
}

/* Names are found by halving: every place among 1 to 64 of them. */
static void
every_name_is_found(void **state)
{
	const struct conf *c;
	size_t n, i;

	for (n = 1; n <= 64; n++) {
		checks_write(n);
		fputs("pools:\n", file);
		for (i = 0; i < n; i++)
			fprintf(file, "  p%zu: {check: c%zu}\n", i, n - 1 - i);
		c = load();
		assert_non_null(c);
		for (i = 0; i < n; i++) {
			assert_int_equal(atoi(c->pool[i].check->name + 1),
			    (int)n - 1 - atoi(c->pool[i].name + 1));
			assert_ptr_equal(conf_pool_find(c, c->pool[i].name),
			    &c->pool[i]);
		}
		done(state);
		fresh(state);
	}
}

/* 251 slots for 251 backends of one weight, and not for 252. */
static void
every_backend_owns_a_slot(void **state)
{
	fputs("maglev: {table_size: 251}\n", file);
	backends_write(251);
	assert_non_null(load());
	done(state);
	fresh(state);
	fputs("maglev: {table_size: 251}\n", file);
	backends_write(252);
	assert_null(load());
	assert_string_equal(dg.row[0].text, "pools.p0.backends: 252 backends "
	    "of weight 100..100 need 252 slots, maglev.table_size is 251");
}

/* Nothing is looked up in what is far beyond the limits. */
static void
a_hostile_file_takes_no_time(void **state)
{
	size_t i;

	(void)state;
	fputs("pools:\n", file);
	for (i = 0; i < 100000; i++)
		fprintf(file, "  p%zu: {check: c%zu}\n", i, i + 1);
	fputs("checks:\n", file);
	for (i = 0; i < 100000; i++)
		fprintf(file, "  x%zu: {}\n", i);
	assert_null(load());
	assert_int_equal(dg.errors, 2);
}

static void
a_full_disk_is_an_error(void **state)
{
	FILE *full = fopen("/dev/full", "w");
	const struct conf *c;

	(void)state;
	fputs(whole, file);
	c = load();
	assert_non_null(full);
	assert_int_equal(conf_print(c, full), -1);
	fclose(full);
}

static void
fragments_add(void **state)
{
	static const char main_text[] = "pools: {p: {check: c}}\n";
	static const char more[] = "checks: {c: {type: tcp, via: direct}}\n";
	struct conf_source src[] = {
		{ "main", main_text, sizeof(main_text) - 1 },
		{ "more", more, sizeof(more) - 1 },
	};
	const struct conf *c;

	(void)state;
	assert_int_equal(conf_load(src, 2, a, &c, &dg), 0);
	assert_ptr_equal(c->pool[0].check, &c->check[0]);
	assert_string_equal(c->check[0].mark.file, "more");
	assert_int_equal(conf_load(src, 1, a, &c, &dg), -1);
	/* the main file's sections are the main file's alone */
	src[0] = src[1];
	src[1] = (struct conf_source){ "node", "node: {}", 8 };
	assert_int_equal(conf_load(src, 2, a, &c, &dg), -1);
}

#define T(f) cmocka_unit_test_setup_teardown(f, fresh, done)

int
main(void)
{
	const struct CMUnitTest test[] = {
		T(nothing_is_valid_and_has_the_defaults),
		T(values_reach_their_fields),
		T(damaged_files_are_survived),
		T(what_fits_is_taken_and_one_more_is_not),
		T(every_name_is_found),
		T(every_backend_owns_a_slot),
		T(a_hostile_file_takes_no_time),
		T(a_full_disk_is_an_error),
		T(fragments_add),
	};

	return cmocka_run_group_tests_name("conf", test, NULL, NULL);
}
