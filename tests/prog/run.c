/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Feeds the packet program for tests/prog/rig.py: commands on standard input,
 * one a line, one line of answer each.
 *   open RING_SIZE FRAGS FLOWS ok INSNS | skip WHY | failed WHY
 *   clock NS JIFFIES           ok, or none: it is the kernel's
 *   now                        ns of the kernel's clock
 *   put MAP OFFSET HEX         ok
 *   peek MAP OFFSET LEN        HEX
 *   ring NUMBER                ok
 *   slot NUMBER OFFSET HEX     ok
 *   port IFINDEX               ok
 *   split N                    ok | no; see engine.h
 *   run HEX                    ACTION HEX
 *   count MAP ROW N            N numbers
 *   get MAP HEX                HEX of a hash's value, or none
 *   event LEN                  HEX of the next record, or none
 *   set MAP HEX HEX            ok
 */
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "engine.h"

#define LINE_MAX_ (1 << 21)
#define MAPS 8
#define RINGS 8
#define COUNTERS 64

struct region {
	char name[32];
	uint8_t *at;
	size_t len;
};

static struct region map[MAPS], ring[RINGS];
static char line[LINE_MAX_];
static uint8_t bytes[LINE_MAX_ / 2], out[ENGINE_FRAME_MAX];

static _Noreturn void
fail(const char *what)
{
	printf("failed %s: %s\n", what, strerror(errno));
	exit(1);
}

static int
hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static size_t
hex_read(const char *s, uint8_t *to, size_t room)
{
	size_t n = 0;
	int high, low;

	for (; n < room && (high = hex_digit(s[0])) >= 0 &&
	    (low = hex_digit(s[1])) >= 0; s += 2)
		to[n++] = (uint8_t)(high << 4 | low);
	return n;
}

static void
hex_print(const uint8_t *b, size_t n)
{
	static const char digit[] = "0123456789abcdef";
	size_t i;

	for (i = 0; i < n; i++) {
		putchar_unlocked(digit[b[i] >> 4]);
		putchar_unlocked(digit[b[i] & 15]);
	}
}

static struct region *
map_find(const char *name)
{
	struct region *m;

	for (m = map; m < map + MAPS && m->at != NULL; m++)
		if (strcmp(m->name, name) == 0)
			return m;
	if (m == map + MAPS)
		fail("too many maps");
	m->at = engine_map(name, &m->len);
	if (m->at == NULL)
		fail(name);
	snprintf(m->name, sizeof(m->name), "%s", name);
	return m;
}

static void
do_put(struct region *r, size_t offset, const char *hex)
{
	size_t n = hex_read(hex, bytes, sizeof(bytes));

	if (offset > r->len || n > r->len - offset)
		fail("put: outside of the map");
	memcpy(r->at + offset, bytes, n);
	printf("ok\n");
}

static void
do_peek(const struct region *r, size_t offset, size_t n)
{
	if (offset > r->len || n > r->len - offset)
		fail("peek: outside of the map");
	hex_print(r->at + offset, n);
	printf("\n");
}

static void
do_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	printf("%lld\n", (long long)t.tv_sec * 1000000000 + t.tv_nsec);
}

static void
do_open(const struct engine_config *c)
{
	static const char *const verdict[] = { "failed", "ok", "skip" };
	char why[256] = "";
	uint32_t insns = 0;
	int r = engine_open(c, &insns, why, sizeof(why));

	if (r == 0)
		printf("ok %" PRIu32 " %" PRIu32 "\n", insns,
		    engine_verified());
	else
		printf("%s %s\n", verdict[r + 1], why);
}

static void
do_ring(uint32_t number)
{
	if (number >= RINGS)
		fail("ring: number");
	ring[number].at = engine_ring(number, &ring[number].len);
	if (ring[number].at == NULL)
		fail("ring");
	printf("ok\n");
}

static void
do_run(const char *hex)
{
	size_t len = hex_read(hex, bytes, sizeof(bytes)), out_len = 0;
	int action = engine_run(bytes, len, out, &out_len);

	printf("%d ", action);
	hex_print(out, out_len);
	printf("\n");
}

static void
do_count(const char *name, uint32_t row, size_t n)
{
	uint64_t sum[COUNTERS];
	size_t i;

	if (n > COUNTERS || engine_counters(name, row, sum, n) != 0)
		fail(name);
	for (i = 0; i < n; i++)
		printf("%" PRIu64 " ", sum[i]);
	printf("\n");
}

static void
do_get(const char *name, const char *hex)
{
	size_t len = 0;

	hex_read(hex, bytes, sizeof(bytes));
	if (engine_get(name, bytes, out, &len) != 0)
		len = 0;
	hex_print(out, len);
	printf(len > 0 ? "\n" : "none\n");
}

static void
do_event(size_t len)
{
	int e = len <= sizeof(out) ? engine_event(out, len) : -1;

	if (e < 0)
		fail("event");
	hex_print(out, e == 0 ? len : 0);
	printf(e == 0 ? "\n" : "none\n");
}

static void
do_set(const char *name, const char *hex)
{
	size_t n = hex_read(hex, bytes, sizeof(bytes) / 2);
	const char *value = strchr(hex, ' ');

	if (value == NULL)
		fail("set");
	hex_read(value + 1, bytes + n, sizeof(bytes) - n);
	if (engine_set(name, bytes, bytes + n) != 0)
		fail(name);
	printf("ok\n");
}

static void
command(char *s)
{
	struct engine_config c;
	uint64_t ns, jiffies;
	unsigned a, b, d, e;
	size_t offset;
	char name[32];
	int at = 0;

	if (sscanf(s, "open %u %u %u %u", &a, &b, &d, &e) == 4) {
		c = (struct engine_config){ a, d, e, b != 0 };
		do_open(&c);
	} else if (sscanf(s, "clock %" SCNu64 " %" SCNu64, &ns, &jiffies) == 2)
		printf(engine_clock(ns, jiffies) == 0 ? "ok\n" : "none\n");
	else if (strncmp(s, "now", 3) == 0)
		do_now();
	else if (sscanf(s, "put %31s %zu %n", name, &offset, &at) == 2)
		do_put(map_find(name), offset, s + at);
	else if (sscanf(s, "peek %31s %zu %u", name, &offset, &a) == 3)
		do_peek(map_find(name), offset, a);
	else if (sscanf(s, "slot %u %zu %n", &a, &offset, &at) == 2 &&
	    a < RINGS)
		do_put(&ring[a], offset, s + at);
	else if (sscanf(s, "ring %u", &a) == 1)
		do_ring(a);
	else if (sscanf(s, "port %u", &a) == 1 && engine_port(a) == 0)
		printf("ok\n");
	else if (sscanf(s, "split %u", &a) == 1)
		printf(engine_split(a) == 0 ? "ok\n" : "no\n");
	else if (sscanf(s, "get %31s %n", name, &at) == 1 && at > 0)
		do_get(name, s + at);
	else if (sscanf(s, "set %31s %n", name, &at) == 1 && at > 0)
		do_set(name, s + at);
	else if (sscanf(s, "event %u", &a) == 1)
		do_event(a);
	else if (strncmp(s, "run", 3) == 0)
		do_run(s + strspn(s, "run "));
	else if (sscanf(s, "count %31s %u %u", name, &a, &b) == 3)
		do_count(name, a, b);
	else
		fail(s);
}

/* The next line, without its end; NULL after the last. What was asked for at
 * once is answered at once: a write for each would cost more than the packet. */
static char *
line_next(void)
{
	static size_t begin, have;
	char *end;
	ssize_t n;

	while ((end = memchr(line + begin, '\n', have - begin)) == NULL) {
		fflush(stdout);
		memmove(line, line + begin, have - begin);
		have -= begin;
		begin = 0;
		if (have == sizeof(line))
			fail("a line is too long");
		n = read(STDIN_FILENO, line + have, sizeof(line) - have);
		if (n < 0)
			fail("read");
		if (n == 0)
			return NULL;
		have += (size_t)n;
	}
	*end = '\0';
	n = (ssize_t)begin;
	begin = (size_t)(end - line) + 1;
	return line + n;
}

/* Counters and limits are per CPU: all packets on one. */
static void
stay_here(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)sched_getcpu(), &set);
	if (sched_setaffinity(0, sizeof(set), &set) != 0)
		fail("sched_setaffinity");
}

int
main(void)
{
	char *s;

	stay_here();
	while ((s = line_next()) != NULL)
		command(s);
	return 0;
}
