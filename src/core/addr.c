/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Addresses, prefixes and ports as text and as 16 bytes. */
#include "core/addr.h"

#include <arpa/inet.h>
#include <endian.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

bool
addr_is4(const struct addr *a)
{
	return memcmp(a->b, mapped, sizeof(mapped)) == 0;
}

int
addr_family(const struct addr *a)
{
	return addr_is4(a) ? AF_INET : AF_INET6;
}

unsigned
addr_bits(const struct addr *a)
{
	return addr_is4(a) ? 32 : 128;
}

int
addr_cmp(const struct addr *a, const struct addr *b)
{
	uint64_t x[2], y[2];
	int i;

	/* large tables are sorted and searched by this: faster than memcmp() */
	memcpy(x, a->b, sizeof(x));
	memcpy(y, b->b, sizeof(y));
	i = x[0] == y[0];
	if (x[i] == y[i])
		return 0;
	return be64toh(x[i]) < be64toh(y[i]) ? -1 : 1;
}

int
addr_order(const void *a, const void *b)
{
	return addr_cmp(a, b);
}

bool
addr_is_zero(const struct addr *a)
{
	static const struct addr zero;

	return addr_cmp(a, &zero) == 0;
}

struct addr
addr_from4(uint32_t be)
{
	struct addr a;

	memcpy(a.b, mapped, sizeof(mapped));
	memcpy(a.b + 12, &be, 4);
	return a;
}

uint32_t
addr_to4(const struct addr *a)
{
	uint32_t be;

	memcpy(&be, a->b + 12, 4);
	return be;
}

int
addr_parse(const char *s, struct addr *out)
{
	struct in_addr in;

	if (inet_pton(AF_INET, s, &in) == 1) {
		*out = addr_from4(in.s_addr);
		return 0;
	}
	if (inet_pton(AF_INET6, s, out->b) != 1 || addr_is4(out))
		return -1;
	return 0;
}

const char *
addr_print(const struct addr *a, char buf[ADDR_STR_MAX])
{
	if (addr_is4(a))
		return inet_ntop(AF_INET, a->b + 12, buf, ADDR_STR_MAX);
	return inet_ntop(AF_INET6, a->b, buf, ADDR_STR_MAX);
}

/* Decimal digits alone, no sign, no space. */
static int
number_parse(const char *s, unsigned long max, unsigned long *out)
{
	unsigned long n = 0;

	if (*s == '\0')
		return -1;
	for (; *s != '\0'; s++) {
		if (*s < '0' || *s > '9')
			return -1;
		n = n * 10 + (unsigned long)(*s - '0');
		if (n > max)
			return -1;
	}
	*out = n;
	return 0;
}

/* First of the 128 bits that the prefix leaves free. */
static unsigned
prefix_end(const struct prefix *p)
{
	return 128 - addr_bits(&p->addr) + p->len;
}

int
prefix_parse(const char *s, struct prefix *out)
{
	char buf[ADDR_STR_MAX];
	const char *slash = strchr(s, '/');
	unsigned long len;
	unsigned bit;

	if (slash == NULL || (size_t)(slash - s) >= sizeof(buf))
		return -1;
	memcpy(buf, s, (size_t)(slash - s));
	buf[slash - s] = '\0';
	if (addr_parse(buf, &out->addr) < 0 ||
	    number_parse(slash + 1, addr_bits(&out->addr), &len) < 0)
		return -1;
	out->len = (uint8_t)len;
	for (bit = prefix_end(out); bit < 128; bit++)
		if (out->addr.b[bit / 8] & 0x80 >> bit % 8)
			return -1;
	return 0;
}

const char *
prefix_print(const struct prefix *p, char buf[PREFIX_STR_MAX])
{
	char a[ADDR_STR_MAX];

	snprintf(buf, PREFIX_STR_MAX, "%s/%u", addr_print(&p->addr, a),
	    p->len);
	return buf;
}

bool
prefix_has(const struct prefix *p, const struct addr *a)
{
	unsigned end = prefix_end(p), whole = end / 8, rest = end % 8;
	uint8_t mask = (uint8_t)(0xff00 >> rest);

	if (addr_is4(&p->addr) != addr_is4(a))
		return false;
	if (memcmp(p->addr.b, a->b, whole) != 0)
		return false;
	return rest == 0 || ((p->addr.b[whole] ^ a->b[whole]) & mask) == 0;
}

int
prefix_cmp(const struct prefix *a, const struct prefix *b)
{
	int c = addr_cmp(&a->addr, &b->addr);

	return c != 0 ? c : (int)a->len - (int)b->len;
}

static int
prefix_order(const void *a, const void *b)
{
	return prefix_cmp(a, b);
}

bool
prefix_find(const struct prefix *p, size_t n, const struct prefix *want)
{
	return n > 0 && bsearch(want, p, n, sizeof(*p), prefix_order) != NULL;
}

size_t
prefix_sort(struct prefix *p, size_t n)
{
	size_t i, kept = 0;

	if (n > 0)
		qsort(p, n, sizeof(*p), prefix_order);
	for (i = 0; i < n; i++)
		if (kept == 0 || prefix_cmp(&p[i], &p[kept - 1]) != 0)
			p[kept++] = p[i];
	return kept;
}

int
addrport_parse(const char *s, struct addr *a, uint16_t *port)
{
	char buf[ADDR_STR_MAX];
	const char *begin = s, *end, *colon;
	unsigned long n;

	if (*s == '[') {
		begin = s + 1;
		end = strchr(begin, ']');
		if (end == NULL || end[1] != ':')
			return -1;
		colon = end + 1;
	} else {
		end = colon = strchr(s, ':');
		if (colon == NULL || strchr(colon + 1, ':') != NULL)
			return -1;
	}
	if ((size_t)(end - begin) >= sizeof(buf))
		return -1;
	memcpy(buf, begin, (size_t)(end - begin));
	buf[end - begin] = '\0';
	if (addr_parse(buf, a) < 0 || addr_is4(a) != (*s != '[') ||
	    number_parse(colon + 1, 65535, &n) < 0)
		return -1;
	*port = (uint16_t)n;
	return 0;
}

const char *
addrport_print(const struct addr *a, uint16_t port,
    char buf[ADDRPORT_STR_MAX])
{
	char s[ADDR_STR_MAX];

	snprintf(buf, ADDRPORT_STR_MAX, addr_is4(a) ? "%s:%u" : "[%s]:%u",
	    addr_print(a, s), port);
	return buf;
}

socklen_t
addr_sockaddr(const struct addr *a, uint16_t port,
    struct sockaddr_storage *out)
{
	struct sockaddr_in *in = (struct sockaddr_in *)out;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)out;

	memset(out, 0, sizeof(*out));
	if (addr_is4(a)) {
		in->sin_family = AF_INET;
		in->sin_port = htons(port);
		in->sin_addr.s_addr = addr_to4(a);
		return sizeof(*in);
	}
	in6->sin6_family = AF_INET6;
	in6->sin6_port = htons(port);
	memcpy(&in6->sin6_addr, a->b, 16);
	return sizeof(*in6);
}

struct addr
addr_from_sockaddr(const struct sockaddr_storage *ss)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)ss;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)ss;
	struct addr a = { { 0 } };

	if (ss->ss_family == AF_INET)
		a = addr_from4(in->sin_addr.s_addr);
	else if (ss->ss_family == AF_INET6)
		memcpy(a.b, &in6->sin6_addr, 16);
	return a;
}
