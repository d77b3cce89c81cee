/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unit.h"

#include <string.h>

#include "core/arena.h"
#include "core/conf.h"
#include "core/diag.h"
#include "core/health.h"

static const struct conf_check check = { .name = "ready", .rise = 2,
    .fall = 3 };

/* o ok, t timeout, r refused, u unreachable, d drain, l this node could not
 * send */
static enum probe_result
result(char c)
{
	return c == 'o' ? PROBE_OK : c == 't' ? PROBE_TIMEOUT :
	    c == 'r' ? PROBE_REFUSED : c == 'u' ? PROBE_UNREACHABLE :
	    c == 'd' ? PROBE_DRAIN : PROBE_LOCAL;
}

static void
results_make_states(void **state)
{
	static const struct {
		const char *what;
		enum health_state from;
		const char *results;
		enum health_state want;
		unsigned changes;
		enum probe_result why;
	} row[] = {
		{ "the first pass decides", HEALTH_UNKNOWN, "o", HEALTH_UP, 1,
		    PROBE_OK },
		{ "the first fail decides", HEALTH_UNKNOWN, "r", HEALTH_DOWN,
		    1, PROBE_REFUSED },
		{ "no result decides nothing", HEALTH_UNKNOWN, "lll",
		    HEALTH_UNKNOWN, 0, PROBE_OK },
		{ "two misses under fall 3", HEALTH_UP, "tt", HEALTH_UP, 0,
		    PROBE_OK },
		{ "three make down", HEALTH_UP, "ttr", HEALTH_DOWN, 1,
		    PROBE_REFUSED },
		{ "in a row only", HEALTH_UP, "ttotto", HEALTH_UP, 0,
		    PROBE_OK },
		{ "one pass under rise 2", HEALTH_DOWN, "oro", HEALTH_DOWN, 0,
		    PROBE_OK },
		{ "two make up", HEALTH_DOWN, "oo", HEALTH_UP, 1, PROBE_OK },
		{ "why stays that of the change", HEALTH_UP, "tttrr",
		    HEALTH_DOWN, 1, PROBE_TIMEOUT },
		{ "until as many say another", HEALTH_UP, "tttrrr",
		    HEALTH_DOWN, 1, PROBE_REFUSED },
		{ "in a row, of one kind", HEALTH_UP, "tttrrtrrurur",
		    HEALTH_DOWN, 1, PROBE_TIMEOUT },
		{ "which a pass breaks", HEALTH_UP, "tttrrorr", HEALTH_DOWN, 1,
		    PROBE_TIMEOUT },
		{ "and a local failure does not", HEALTH_UP, "tttrrlr",
		    HEALTH_DOWN, 1, PROBE_REFUSED },
		{ "and back", HEALTH_UP, "tttrrrttt", HEALTH_DOWN, 1,
		    PROBE_TIMEOUT },
		{ "a local failure is no miss", HEALTH_UP, "ttllt",
		    HEALTH_DOWN, 1, PROBE_TIMEOUT },
		{ "nor a break in a row", HEALTH_DOWN, "olo", HEALTH_UP, 1,
		    PROBE_OK },
		{ "down and up again", HEALTH_UP, "tttoo", HEALTH_UP, 2,
		    PROBE_OK },
		{ "the first drain decides", HEALTH_UNKNOWN, "d", HEALTH_DRAIN,
		    1, PROBE_DRAIN },
		{ "two drains under fall 3", HEALTH_UP, "ddodd", HEALTH_UP, 0,
		    PROBE_OK },
		{ "three drain", HEALTH_UP, "ddd", HEALTH_DRAIN, 1,
		    PROBE_DRAIN },
		{ "a miss among drains cuts nobody", HEALTH_UP, "ddt",
		    HEALTH_DRAIN, 1, PROBE_DRAIN },
		{ "nor drains after misses", HEALTH_UP, "ttd", HEALTH_DRAIN, 1,
		    PROBE_DRAIN },
		{ "then misses count anew", HEALTH_UP, "ttdtt", HEALTH_DRAIN,
		    1, PROBE_DRAIN },
		{ "and make down", HEALTH_UP, "ttdttr", HEALTH_DOWN, 2,
		    PROBE_REFUSED },
		{ "one pass ends no drain", HEALTH_DRAIN, "odo", HEALTH_DRAIN,
		    0, PROBE_OK },
		{ "two do", HEALTH_DRAIN, "oo", HEALTH_UP, 1, PROBE_OK },
		{ "misses and passes are no row", HEALTH_DRAIN, "ttottot",
		    HEALTH_DRAIN, 0, PROBE_OK },
		{ "up by a drain is to drain", HEALTH_DOWN, "do", HEALTH_DRAIN,
		    1, PROBE_DRAIN },
		{ "in any order", HEALTH_DOWN, "od", HEALTH_DRAIN, 1,
		    PROBE_DRAIN },
	};
	struct health_fsm f;
	unsigned changes;
	const char *p;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		f = (struct health_fsm){ .state = row[i].from };
		changes = 0;
		for (p = row[i].results; *p != '\0'; p++)
			changes += health_step(&f, &check, result(*p), 0, "");
		if (f.state != row[i].want || changes != row[i].changes ||
		    f.why != row[i].why)
			fail_msg("%s: %s, %u changes, %s", row[i].what,
			    health_state_text(f.state), changes,
			    probe_result_text(f.why));
	}
}

static void
a_local_failure_changes_nothing_at_all(void **state)
{
	struct health_fsm f = { .state = HEALTH_UP, .last = PROBE_TIMEOUT,
	    .run = 2 }, old = f;

	(void)state;
	assert_false(health_step(&f, &check, PROBE_LOCAL, 0, ""));
	assert_memory_equal(&f, &old, sizeof(f));
}

/* A changed check keeps the verdict; why, it says itself. */
static void
a_changed_check_says_why_anew(void **state)
{
	struct health_fsm f = { .state = HEALTH_DOWN, .why = PROBE_TIMEOUT,
	    .said = "before", .anew = true };

	(void)state;
	assert_false(health_step(&f, &check, PROBE_OK, 0, ""));
	assert_int_equal(f.why, PROBE_TIMEOUT);
	assert_false(health_step(&f, &check, PROBE_STATUS, 500, "now"));
	assert_int_equal(f.why, PROBE_STATUS);
	assert_int_equal(f.detail, 500);
	assert_string_equal(f.said, "now");
	assert_false(health_step(&f, &check, PROBE_REFUSED, 0, "later"));
	assert_string_equal(f.said, "now");
}

static struct addr
ip(const char *s)
{
	struct addr a;

	assert_int_equal(addr_parse(s, &a), 0);
	return a;
}

/* Two pools that share 10.0.0.1: `own` has a port of its own, `any` is probed
 * where its services listen; nobody uses `idle`; `free` has no check. */
static struct conf_check own_check = { .name = "own", .port = 8080,
    .via = VIA_DIRECT };
static struct conf_check any_check = { .name = "any", .via = VIA_DIRECT };
static struct conf_backend own_backend[2], any_backend[3];
static struct conf_pool pool[4];
static struct conf_listen listen_web[3] = { { .proto = 6, .port = 443 },
    { .proto = 6, .port = 80 }, { .proto = 17, .port = 443 } };
static struct conf_service service[2];
static struct conf conf = { .pool = pool, .npool = 4, .service = service,
    .nservice = 2 };

static int
conf_setup(void **state)
{
	(void)state;
	own_backend[0] = (struct conf_backend){ .address = ip("10.0.0.1") };
	own_backend[1] = (struct conf_backend){ .address = ip("10.0.0.2"),
	    .state = BACKEND_DOWN };
	any_backend[0] = (struct conf_backend){ .address = ip("10.0.0.3"),
	    .state = BACKEND_DRAIN };
	any_backend[1] = (struct conf_backend){ .address = ip("10.0.0.1") };
	pool[0] = (struct conf_pool){ .name = "any", .check = &any_check,
	    .backend = any_backend, .nbackend = 2 };
	pool[1] = (struct conf_pool){ .name = "free",
	    .backend = any_backend, .nbackend = 2 };
	pool[2] = (struct conf_pool){ .name = "idle", .check = &any_check,
	    .backend = own_backend, .nbackend = 2 };
	pool[3] = (struct conf_pool){ .name = "own", .check = &own_check,
	    .backend = own_backend, .nbackend = 2 };
	service[0] = (struct conf_service){ .pool = &pool[3],
	    .listen = listen_web, .nlisten = 1 };
	service[1] = (struct conf_service){ .pool = &pool[0],
	    .listen = listen_web, .nlisten = 3 };
	return 0;
}

static void
targets_are_sorted_and_unique(void **state)
{
	static const struct {
		const char *addr;
		uint16_t port;
		const char *check;
	} want[] = { { "10.0.0.1", 80, "any" }, { "10.0.0.1", 443, "any" },
	    { "10.0.0.1", 8080, "own" }, { "10.0.0.3", 80, "any" },
	    { "10.0.0.3", 443, "any" } };
	struct arena *a = arena_new();
	struct health_target *t;
	char buf[ADDR_STR_MAX];
	size_t i, n;

	(void)state;
	t = health_targets(&conf, a, &n);
	assert_int_equal(n, sizeof(want) / sizeof(want[0]));
	for (i = 0; i < n; i++) {
		assert_string_equal(addr_print(&t[i].addr, buf), want[i].addr);
		assert_int_equal(t[i].port, want[i].port);
		assert_string_equal(t[i].check->name, want[i].check);
	}
	arena_free(a);
}

static enum health_state
verdict(const struct conf_pool *p, const struct addr *addr,
    const struct health_table *t, const struct health_row **row)
{
	struct arena *a = arena_new();
	struct health_paths paths;
	enum health_state s;

	health_paths(&conf, p, t, a, &paths);
	s = health_verdict(p->check, &paths, addr, t, row);
	arena_free(a);
	return s;
}

static void
the_worst_target_decides(void **state)
{
	struct health_row row[] = {
		{ .addr = ip("10.0.0.1"), .port = 80, .check = "any",
		    .fsm = { .state = HEALTH_UP } },
		{ .addr = ip("10.0.0.1"), .port = 443, .check = "any",
		    .fsm = { .state = HEALTH_UP } },
		{ .addr = ip("10.0.0.1"), .port = 443, .check = "own",
		    .fsm = { .state = HEALTH_DOWN } },
		{ .addr = ip("10.0.0.1"), .port = 8080, .check = "own",
		    .fsm = { .state = HEALTH_UP } },
		{ .addr = ip("10.0.0.3"), .port = 80, .check = "any",
		    .fsm = { .state = HEALTH_UP } },
	};
	struct health_table t = { row, 5 };
	const struct health_row *r;
	struct addr one = ip("10.0.0.1"), three = ip("10.0.0.3");
	struct conf_check named;
	struct health_target target = { .check = &named };
	size_t i;

	(void)state;
	for (i = 0; i < t.n; i++) {
		named.name = row[i].check;
		target.addr = row[i].addr;
		target.port = row[i].port;
		assert_ptr_equal(health_find(&t, &target), &row[i]);
	}
	target.port = 81;
	assert_null(health_find(&t, &target));
	assert_int_equal(verdict(&pool[0], &one, &t, &r), HEALTH_UP);
	assert_ptr_equal(r, &row[0]);
	row[1].fsm.state = HEALTH_UNKNOWN;
	assert_int_equal(verdict(&pool[0], &one, &t, &r),
	    HEALTH_UNKNOWN);
	assert_ptr_equal(r, &row[1]);
	row[0].fsm.state = HEALTH_DOWN;
	assert_int_equal(verdict(&pool[0], &one, &t, &r), HEALTH_DOWN);
	assert_ptr_equal(r, &row[0]);
	/* the row for port 443 is missing */
	assert_int_equal(verdict(&pool[0], &three, &t, &r),
	    HEALTH_UNKNOWN);
	assert_null(r);
	/* another check's verdict on the address is not this pool's */
	assert_int_equal(verdict(&pool[3], &one, &t, NULL), HEALTH_UP);
	/* no check, and nothing to probe */
	assert_int_equal(verdict(&pool[1], &three, &t, &r), HEALTH_UP);
	assert_null(r);
	assert_int_equal(verdict(&pool[2], &one, &t, NULL),
	    HEALTH_UNKNOWN);
}

/* Two backends, two VIPs, min_healthy as given. What each has said: u up, d
 * down, U and D the same after it had been up, - nothing, o drain. */
struct vips {
	const char *what;
	const char *said[2];	/* by backend: a letter per VIP */
	uint32_t needed;
	const char *want;	/* verdict by backend: u d - o */
	const char *established;	/* y or n by VIP */
};

static const struct vips vips_rows[] = {
	{ "at start nothing is known", { "--", "--" }, 1, "--", "nn" },
	{ "the first pass establishes", { "u-", "--" }, 1, "u-", "yn" },
	{ "a VIP that nobody holds takes nobody down", { "ud", "ud" }, 1, "uu",
	    "yn" },
	{ "one that is held by another takes down", { "uu", "ud" }, 1, "ud",
	    "yy" },
	{ "one is not enough of two", { "uu", "ud" }, 2, "uu", "yn" },
	{ "what was established stays so", { "uD", "uD" }, 1, "dd", "yy" },
	{ "of none established the best counts", { "ud", "du" }, 2, "uu",
	    "nn" },
	{ "all have failed", { "dd", "dd" }, 1, "dd", "nn" },
	{ "what is not known on a new VIP yet takes nobody down",
	    { "u-", "uu" }, 1, "uu", "yy" },
	{ "nor does it bring anybody up", { "D-", "uu" }, 1, "du", "yy" },
	{ "a new backend is unknown", { "--", "uu" }, 1, "-u", "yy" },
	{ "drain is alive", { "oo", "uo" }, 1, "oo", "yy" },
};

static void
vips_row(const struct vips *v)
{
	static const struct conf_listen one[] = { { .proto = 6, .port = 80 } };
	static const char *const vip[] = { "203.0.113.1", "2001:db8::1" };
	struct conf_address address[2] = { { .address = ip(vip[0]) },
	    { .address = ip(vip[1]) } };
	struct conf_check c = { .name = "c" };
	struct conf_backend backend[2] = { { .address = ip("10.0.0.1") },
	    { .address = ip("10.0.0.2") } };
	struct conf_pool p = { .name = "p", .check = &c, .backend = backend,
	    .nbackend = 2, .min_healthy = v->needed };
	struct conf_service s = { .pool = &p, .listen = (void *)(uintptr_t)one,
	    .nlisten = 1, .address = address, .naddress = 2 };
	struct conf conf1 = { .pool = &p, .npool = 1, .service = &s,
	    .nservice = 1 };
	struct health_row row[4];
	struct health_table t = { row, 0 };
	struct arena *a = arena_new();
	struct health_target *target;
	struct health_paths paths;
	enum health_state got;
	size_t i, k, n;
	char said;

	target = health_targets(&conf1, a, &n);
	assert_int_equal(n, 4);
	for (i = 0; i < n; i++) {
		k = addr_is4(&target[i].vip) ? 0 : 1;
		assert_int_equal(addr_cmp(&target[i].vip, &address[k].address),
		    0);
		assert_int_equal(target[i].port, 80);
		said = v->said[addr_cmp(&target[i].addr,
		    &backend[1].address) == 0][k];
		row[t.n++] = (struct health_row){ .addr = target[i].addr,
		    .vip = target[i].vip, .port = 80, .check = "c",
		    .passed = strchr("uoUD", said) != NULL, .fsm = { .state =
		    said == 'u' || said == 'U' ? HEALTH_UP : said == 'o' ?
		    HEALTH_DRAIN : said == '-' ? HEALTH_UNKNOWN :
		    HEALTH_DOWN } };
	}
	health_paths(&conf1, &p, &t, a, &paths);
	for (i = 0; i < 2; i++) {
		got = health_verdict(&c, &paths, &backend[i].address, &t, NULL);
		if (got != (v->want[i] == 'u' ? HEALTH_UP : v->want[i] == 'o' ?
		    HEALTH_DRAIN : v->want[i] == '-' ? HEALTH_UNKNOWN :
		    HEALTH_DOWN))
			fail_msg("%s: backend %zu is %s", v->what, i,
			    health_state_text(got));
		if (health_established(&paths, &address[i].address) !=
		    (v->established[i] == 'y'))
			fail_msg("%s: VIP %zu", v->what, i);
	}
	arena_free(a);
}

static void
vips_are_established(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(vips_rows) / sizeof(vips_rows[0]); i++)
		vips_row(&vips_rows[i]);
}

/* What a changed check takes over, and what it must not. */
static void
kin_is_found(void **state)
{
	struct health_row row[] = {
		{ .addr = ip("10.0.0.1"), .port = 80, .check = "c",
		    .fsm = { .state = HEALTH_UP } },
		{ .addr = ip("10.0.0.1"), .port = 443, .check = "c",
		    .fsm = { .state = HEALTH_DOWN } },
		{ .addr = ip("10.0.0.1"), .port = 443, .check = "other",
		    .fsm = { .state = HEALTH_UP } },
		{ .addr = ip("10.0.0.2"), .vip = ip("203.0.113.1"), .port = 80,
		    .check = "c", .fsm = { .state = HEALTH_UP } },
	};
	const struct health_table t = { row, 4 };
	struct conf_check c = { .name = "c" };
	struct health_target target = { .addr = ip("10.0.0.1"), .check = &c,
	    .port = 81 };

	(void)state;
	assert_ptr_equal(health_kin(&t, &target), &row[1]);
	target.vip = ip("203.0.113.1");
	assert_ptr_equal(health_kin(&t, &target), &row[1]);
	target.addr = ip("10.0.0.2");
	assert_ptr_equal(health_kin(&t, &target), &row[3]);
	target.vip = ip("203.0.113.2");
	assert_null(health_kin(&t, &target));
	memset(&target.vip, 0, sizeof(target.vip));
	assert_ptr_equal(health_kin(&t, &target), &row[3]);
	c.name = "new";
	assert_null(health_kin(&t, &target));
}

/* Both ends would be this host's. */
static void
local_vips_are_asked_directly(void **state)
{
	static struct conf_address address[2];
	struct addr local[2] = { ip("192.0.2.9"), ip("203.0.113.1") };
	struct conf_check c = { .name = "c", .via = VIA_TUNNEL };
	struct conf_pool p = { .name = "p", .check = &c };
	struct conf_service s[2] = { { .pool = &pool[1] }, { .pool = &p,
	    .address = address, .naddress = 2 } };
	struct conf one = { .service = s, .nservice = 2 };
	struct diag d;

	(void)state;
	address[0].address = ip("203.0.113.2");
	address[1].address = local[1];
	address[1].mark = (struct mark){ "f", 3, 4 };
	diag_init(&d);
	health_local_check(&one, local, 2, &d);
	assert_int_equal(d.errors, 1);
	assert_int_equal(d.row[0].mark.line, 3);
	assert_string_equal(d.row[0].text, "services[1].addresses[1]: "
	    "203.0.113.1 is an address of this host, which would answer checks "
	    "through the tunnel itself: remove it, or set checks.c.via to "
	    "direct");
	health_local_check(&one, local, 1, &d);
	c.via = VIA_DIRECT;
	health_local_check(&one, local, 2, &d);
	assert_int_equal(d.n, 1);
	diag_fini(&d);
}

static void
alive_is_what_holds_flows(void **state)
{
	(void)state;
	assert_true(health_is_alive(HEALTH_UP));
	assert_true(health_is_alive(HEALTH_DRAIN));
	assert_false(health_is_alive(HEALTH_DOWN));
	assert_false(health_is_alive(HEALTH_UNKNOWN));
}

int
main(void)
{
	const struct CMUnitTest test[] = {
		cmocka_unit_test(vips_are_established),
		cmocka_unit_test(kin_is_found),
		cmocka_unit_test_setup(local_vips_are_asked_directly,
		    conf_setup),
		cmocka_unit_test(alive_is_what_holds_flows),
		cmocka_unit_test(results_make_states),
		cmocka_unit_test(a_changed_check_says_why_anew),
		cmocka_unit_test(a_local_failure_changes_nothing_at_all),
		cmocka_unit_test_setup(targets_are_sorted_and_unique,
		    conf_setup),
		cmocka_unit_test_setup(the_worst_target_decides, conf_setup),
	};

	return cmocka_run_group_tests_name("health", test, NULL, NULL);
}
