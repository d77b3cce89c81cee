/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Operations one by one: what they are called, and where deletions begin. */
#include "unit.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "core/plan.h"

static struct addr
ip(const char *s)
{
	struct addr a;

	assert_int_equal(addr_parse(s, &a), 0);
	return a;
}

static void
operations_have_names(void **state)
{
	struct state_service v = { .vip = ip("192.0.2.1"), .port = 443,
	    .proto = IPPROTO_TCP }, any = { .vip = ip("2001:db8::1"),
	    .proto = IPPROTO_UDP };
	struct state_nexthop h = { .gateway = ip("10.0.0.1"), .ifindex = 3,
	    .vlan = 100 };
	struct state_backend b = { .addr = ip("10.0.0.7") };
	struct state_vip vip = { .addr = ip("192.0.2.1") };
	struct op_ring r = { .pool = "web" };
	const struct {
		struct op op;
		const char *name, *verb;
	} row[] = {
		{ { OP_SERVICE_PUT, 0, false, &v },
		    "service 192.0.2.1:443/tcp", "add" },
		{ { OP_SERVICE_DEL, 0, false, &any },
		    "service [2001:db8::1]:*/udp", "remove" },
		{ { OP_VIP_PUT, 1, true, &vip }, "vip 192.0.2.1", "change" },
		{ { OP_RING_SLOTS, 0, true, &r }, "ring web", "change" },
		{ { OP_RING_NEW, 0, false, &r }, "ring web", "add" },
		{ { OP_RING_ROLES, 0, true, &r }, "ring web", "change" },
		{ { OP_BACKEND_RETIRE, 1, false, &b }, "backend 10.0.0.7",
		    "remove" },
		{ { OP_BACKEND_DEL, 1, false, &b }, "backend 10.0.0.7",
		    "remove" },
		{ { OP_NEXTHOP_PUT, 1, true, &h },
		    "next hop 10.0.0.1 on interface 3 vlan 100", "change" },
		{ { OP_PORT_PUT, 3, false, NULL }, "port 3", "add" },
		{ { OP_SETTINGS_PUT, 0, false, NULL }, "settings", "add" },
		{ { OP_GRACE, 0, false, NULL }, "grace period", "wait for" },
	};
	char buf[128];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		assert_string_equal(op_print(&row[i].op, buf, sizeof(buf)),
		    row[i].name);
		assert_string_equal(op_verb(&row[i].op), row[i].verb);
	}
}

/* What failed is named with the limit and where it is set. */
static void
failures_name_their_limit(void **state)
{
	struct state_service v = { .vip = ip("192.0.2.1"), .port = 443,
	    .proto = IPPROTO_TCP };
	struct op_ring r = { .pool = "web", .size = 65537 };
	const struct op ring = { OP_RING_NEW, 0, false, &r },
	    port = { OP_PORT_PUT, 3, false, NULL },
	    service = { OP_SERVICE_PUT, 1, false, &v },
	    grace = { OP_GRACE, 0, false, NULL };
	const struct {
		const struct op *op;
		int err;
		const char *has[3];
	} row[] = {
		{ &port, E2BIG, { "Argument list too long", "256 interfaces",
		    "routes" } },
		{ &service, ENOSPC, { "No space left", "32",
		    "services[].listen" } },
		{ &ring, ENOMEM, { "Cannot allocate memory", "772 kB",
		    "maglev.table_size 65537" } },
		{ &ring, E2BIG, { "1024 pools", "maglev.table_size", "" } },
		{ &ring, EMFILE, { "Too many open files", "LimitNOFILE=", "" } },
		{ &grace, ENOMEM, { "Cannot allocate", "MemoryMax=", "" } },
		{ &port, EPERM, { "not permitted", "BPF and NET_ADMIN",
		    "CapabilityBoundingSet=" } },
		{ &port, EBUSY, { "busy", "somebody else holds it", "" } },
		{ &port, EIO, { "Input/output error", "", "" } },
		{ &grace, ENOSPC, { "No space left on device", "", "" } },
	};
	char buf[256];
	size_t i, k;

	(void)state;
	for (i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		op_why(row[i].op, row[i].err, buf, sizeof(buf));
		for (k = 0; k < 3; k++)
			if (strstr(buf, row[i].has[k]) == NULL)
				fail_msg("no \"%s\" in \"%s\"",
				    row[i].has[k], buf);
	}
}

/* What goes off dead backends comes first, then what makes, then what breaks. */
static void
parts_have_a_beginning(void **state)
{
	enum op_kind kind;
	struct op op[2] = { { .kind = OP_SETTINGS_PUT } };
	struct plan p = { .op = op, .n = 0 };

	(void)state;
	assert_int_equal(plan_first_delete(&p), 0);
	p.n = 2;
	for (kind = OP_SETTINGS_PUT; kind < OP_KINDS; kind++) {
		op[1].kind = kind;
		assert_int_equal(plan_first_delete(&p),
		    strcmp(op_verb(&op[1]), "remove") == 0 ||
		    kind == OP_GRACE ? 1 : 2);
		assert_int_equal(plan_first_call(&p),
		    kind == OP_SETTINGS_PUT || kind == OP_RING_SLOTS ||
		    kind == OP_RING_ROLES ? 2 : 1);
	}
}

int
main(void)
{
	const struct CMUnitTest test[] = {
		cmocka_unit_test(operations_have_names),
		cmocka_unit_test(failures_name_their_limit),
		cmocka_unit_test(parts_have_a_beginning),
	};

	return cmocka_run_group_tests_name("plan_op", test, NULL, NULL);
}
