/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ICMP errors about packets of ours, and such that only look like it. */
#include "unit.h"

#include <string.h>

#include "core/path_error.h"

#define GUE 6080

/* A message about a packet from 10.0.0.1, or 2001:db8::1. */
struct message {
	uint8_t b[128];
	size_t n;
};

static struct addr
ip(const char *text)
{
	struct addr a;

	assert_int_equal(addr_parse(text, &a), 0);
	return a;
}

static struct message
message4(uint8_t proto, uint16_t mtu)
{
	struct addr from = ip("10.0.0.1"), to = ip("10.0.1.11");
	struct message m = { { 3, 4, 0, 0, 0, 0, (uint8_t)(mtu >> 8),
	    (uint8_t)mtu, 0x45 }, 8 + 20 + 8 };

	m.b[8 + 9] = proto;
	memcpy(m.b + 8 + 12, from.b + 12, 4);
	memcpy(m.b + 8 + 16, to.b + 12, 4);
	m.b[8 + 20 + 2] = GUE >> 8;
	m.b[8 + 20 + 3] = GUE & 255;
	return m;
}

static struct message
message6(uint8_t proto, uint32_t mtu)
{
	struct addr from = ip("2001:db8::1"), to = ip("2001:db8::11");
	struct message m = { { 2, 0, 0, 0, (uint8_t)(mtu >> 24),
	    (uint8_t)(mtu >> 16), (uint8_t)(mtu >> 8), (uint8_t)mtu, 0x60 },
	    8 + 40 + 8 };

	m.b[8 + 6] = proto;
	memcpy(m.b + 8 + 8, from.b, 16);
	memcpy(m.b + 8 + 24, to.b, 16);
	m.b[8 + 40 + 2] = GUE >> 8;
	m.b[8 + 40 + 3] = GUE & 255;
	return m;
}

/* The MTU that it is read as, of the one backend; 0: not at all. */
static uint16_t
read4(const struct message *m)
{
	struct addr at = ip("10.0.0.1"), to = ip("10.0.1.11");
	struct path_error e;

	if (!path_error_parse(m->b, m->n, true, &at, GUE, &e))
		return 0;
	assert_int_equal(addr_cmp(&e.to, &to), 0);
	return e.mtu;
}

static uint16_t
read6(const struct message *m)
{
	struct addr at = ip("2001:db8::1"), to = ip("2001:db8::11");
	struct path_error e;

	if (!path_error_parse(m->b, m->n, false, &at, GUE, &e))
		return 0;
	assert_int_equal(addr_cmp(&e.to, &to), 0);
	return e.mtu;
}

static void
each_form_of_tunnel_is_ours(void **state)
{
	static const uint8_t proto[] = { 4, 41, 17 };
	struct message m;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(proto); i++) {
		m = message4(proto[i], 1400);
		assert_int_equal(read4(&m), 1400);
		m = message6(proto[i], 1400);
		assert_int_equal(read6(&m), 1400);
	}
	m = message6(4, 70000);
	assert_int_equal(read6(&m), 65535);
	/* options; what is quoted further does not matter */
	m = message4(17, 1400);
	m.b[8] = 0x46;
	memmove(m.b + 8 + 24, m.b + 8 + 20, 8);
	m.n += 4;
	assert_int_equal(read4(&m), 1400);
	m.n += 40;
	assert_int_equal(read4(&m), 1400);
}

static void
others_are_not(void **state)
{
	struct message m = message4(6, 1400);
	size_t n;

	(void)state;
	assert_int_equal(read4(&m), 0);			/* TCP */
	m = message4(17, 1400);
	m.b[8 + 20 + 3]++;				/* another port */
	assert_int_equal(read4(&m), 0);
	m = message4(4, 1400);
	m.b[1] = 3;					/* port unreachable */
	assert_int_equal(read4(&m), 0);
	m = message4(4, 1400);
	m.b[0] = 11;					/* time exceeded */
	assert_int_equal(read4(&m), 0);
	m = message4(4, 1400);
	m.b[8 + 15]++;					/* somebody else's */
	assert_int_equal(read4(&m), 0);
	m = message4(4, 1400);
	m.b[8] = 0x44;					/* a header of 16 */
	assert_int_equal(read4(&m), 0);
	m = message4(4, 1400);
	m.b[8] = 0x65;
	assert_int_equal(read4(&m), 0);
	m = message6(4, 1400);
	m.b[0] = 1;					/* unreachable */
	assert_int_equal(read6(&m), 0);
	m = message6(58, 1400);
	assert_int_equal(read6(&m), 0);
	m = message6(4, 1400);
	m.b[8 + 8]++;
	assert_int_equal(read6(&m), 0);
	/* cut short anywhere; behind the end nothing is read */
	for (n = 0; n < 8 + 20 + 8; n++) {
		m = message4(4, 1400);
		m.n = n;
		assert_int_equal(read4(&m), 0);
	}
	m = message4(4, 1400);
	m.b[8] = 0x4f;		/* options that are not there */
	assert_int_equal(read4(&m), 0);
	for (n = 0; n < 8 + 40 + 8; n++) {
		m = message6(4, 1400);
		m.n = n;
		assert_int_equal(read6(&m), 0);
	}
}

int
main(void)
{
	const struct CMUnitTest test[] = {
		cmocka_unit_test(each_form_of_tunnel_is_ours),
		cmocka_unit_test(others_are_not),
	};

	return cmocka_run_group_tests_name("path_error", test, NULL, NULL);
}
