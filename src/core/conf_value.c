/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Texts of the configuration to values of its structs. */
#include "core/conf_value.h"

#include <inttypes.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/arena.h"
#include "core/conf_schema.h"
#include "core/text.h"

static const struct {
	const char *name;
	uint32_t ms;
} units[] = {		/* the largest first */
	{ "h", 60 * 60 * 1000 }, { "m", 60 * 1000 }, { "s", 1000 },
	{ "ms", 1 },
};
#define UNITS (sizeof(units) / sizeof(units[0]))

static void __attribute__((format(printf, 3, 4)))
wrong_print(char why[WHY_MAX], const char *text, const char *fmt, ...)
{
	char shown[TEXT_SHOW_MAX];
	va_list ap;
	int n;

	n = snprintf(why, WHY_MAX, "%s ", text_show(text, shown));
	va_start(ap, fmt);
	vsnprintf(why + n, WHY_MAX - (size_t)n, fmt, ap);
	va_end(ap);
}
/* -1 where clang's analyzer sees it too: into such functions it does not look. */
#define wrong(...) (wrong_print(__VA_ARGS__), -1)

static void *
field(void *base, size_t offset)
{
	return (char *)base + offset;
}

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Digits up to `end`; UINT64_MAX and `*over` when they are too many. A leading
 * zero is octal to some readers and decimal to others: refused. */
static int
digits_parse(const char *s, const char *end, uint64_t *out, bool *over)
{
	uint64_t n = 0;

	*over = false;
	if (s == end || (s[0] == '0' && s + 1 != end))
		return -1;
	for (; s != end; s++) {
		if (!is_digit(*s))
			return -1;
		if (__builtin_mul_overflow(n, 10, &n) ||
		    __builtin_add_overflow(n, (uint64_t)(*s - '0'), &n))
			*over = true;
	}
	*out = *over ? UINT64_MAX : n;
	return 0;
}

static bool
is_prime(uint64_t n)
{
	uint64_t i;

	if (n < 4 || n % 2 == 0)
		return n == 2 || n == 3;
	for (i = 3; i * i <= n; i += 2)
		if (n % i == 0)
			return false;
	return true;
}

static int
prime_check(const char *text, uint64_t n, char why[WHY_MAX])
{
	uint64_t up = n, down = n;

	if (is_prime(n))
		return 0;
	while (!is_prime(down))		/* both ends of the range are */
		down--;
	while (!is_prime(up))
		up++;
	return wrong(why, text, "is not a prime, %" PRIu64 " and %" PRIu64
	    " are", down, up);
}

static int
number_parse(const struct key *k, const char *text, uint64_t *out,
    char why[WHY_MAX])
{
	const char *digits = *text == '-' ? text + 1 : text;
	const char *end = text + strlen(text);
	bool over;
	uint64_t n;

	if (digits_parse(digits, end, &n, &over) < 0)
		return wrong(why, text, "is not an integer%s",
		    is_digit(*text) && strspn(text, "0123456789") ==
		    (size_t)(end - text) ? ": it has a leading zero" : "");
	if (over || digits != text || n < k->min || n > k->max)
		return wrong(why, text, "is not in %" PRIu64 "..%" PRIu64,
		    k->min, k->max);
	if ((k->flags & KEY_PRIME) && prime_check(text, n, why) < 0)
		return -1;
	while ((k->flags & KEY_POW2) && (n & (n - 1)) != 0)
		n += n & -n;
	*out = n;
	return 0;
}

static int
msec_parse(const struct key *k, const char *text, uint32_t *out,
    char why[WHY_MAX])
{
	char low[MSEC_STR_MAX], high[MSEC_STR_MAX];
	const char *unit = text + strspn(text, "0123456789");
	uint64_t n, ms;
	bool over;
	size_t i;

	for (i = 0; i < UNITS; i++)
		if (strcmp(unit, units[i].name) == 0)
			break;
	if (digits_parse(text, unit, &n, &over) < 0 || i == UNITS)
		return wrong(why, text, "is not a duration: an integer "
		    "with ms, s, m or h");
	if (over || __builtin_mul_overflow(n, units[i].ms, &ms) ||
	    ms < k->min || ms > k->max)
		return wrong(why, text, "is not in %s..%s",
		    msec_print((uint32_t)k->min, low),
		    msec_print((uint32_t)k->max, high));
	*out = (uint32_t)ms;
	return 0;
}

const char *
msec_print(uint32_t ms, char buf[MSEC_STR_MAX])
{
	size_t i = 0;

	while (ms % units[i].ms != 0)
		i++;
	if (ms == 0)
		i = 2;		/* 0s */
	snprintf(buf, MSEC_STR_MAX, "%" PRIu32 "%s", ms / units[i].ms,
	    units[i].name);
	return buf;
}

static int
enum_parse(const struct key *k, const char *text, int *out, char why[WHY_MAX])
{
	const struct key_value *v;
	struct text_guess g;
	char list[WHY_MAX] = "";
	size_t n = 0, count = 0;

	text_guess_init(&g, text);
	for (v = k->value; v->name != NULL; v++) {
		if (strcmp(v->name, text) == 0) {
			*out = v->value;
			return 0;
		}
		text_guess_try(&g, v->name);
		n += (size_t)snprintf(list + n, sizeof(list) - n, "%s%s",
		    count++ > 0 ? ", " : "", v->name);
	}
	return wrong(why, text, "is not %s%s%s%s%s",
	    count > 1 ? "one of " : "", list,
	    g.best != NULL ? "; did you mean " : "",
	    g.best != NULL ? g.best : "", g.best != NULL ? "?" : "");
}

static int
bool_parse(const char *text, bool *out, char why[WHY_MAX])
{
	*out = strcmp(text, "true") == 0;
	if (*out || strcmp(text, "false") == 0)
		return 0;
	return wrong(why, text, "is not true or false");
}

bool
name_is_valid(const char *s)
{
	static const char set[] = "0123456789abcdefghijklmnopqrstuvwxyz"
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZ_-";
	size_t n = strspn(s, set);

	return n > 0 && s[n] == '\0' && n <= CONF_NAME_MAX && *s != '_' &&
	    *s != '-';
}

/* Texts go into messages, requests and BIRD's configuration. */
static int
text_parse(const struct key *k, const char *text, char why[WHY_MAX])
{
	size_t n = strlen(text), i;

	if (n < k->min || n > k->max)
		return wrong(why, text, "has %zu bytes, not %" PRIu64
		    "..%" PRIu64, n, k->min, k->max);
	for (i = 0; i < n; i++)
		if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
			return wrong(why, text, "holds a control character");
	if ((k->flags & KEY_NO_QUOTE) && strchr(text, '"') != NULL)
		return wrong(why, text, "holds a quote");
	return 0;
}

static int
path_parse(const struct key *k, const char *text, char why[WHY_MAX])
{
	if (text[0] != '/')
		return wrong(why, text, "is not an absolute path");
	if (strpbrk(text, "\"*?[]{}\\") != NULL)
		return wrong(why, text, "holds one of \"*?[]{}\\");
	return text_parse(k, text, why);
}

static int
ifname_parse(const char *text, char why[WHY_MAX])
{
	size_t n = strlen(text), i;

	for (i = 0; i < n; i++)
		if ((unsigned char)text[i] <= ' ' || text[i] == '/' ||
		    text[i] == ':' || text[i] == 0x7f)
			break;
	if (n == 0 || n > 15 || i < n || strcmp(text, ".") == 0 ||
	    strcmp(text, "..") == 0)
		return wrong(why, text, "is not the name of an interface: 1 "
		    "to 15 bytes without space, slash or colon");
	return 0;
}

static int
string_parse(const struct key *k, const char *text, struct arena *a,
    const char **out, char why[WHY_MAX])
{
	int rc = 0;

	if (k->type == KEY_NAME && !name_is_valid(text))
		rc = wrong(why, text, "is not a name: a letter or digit, then "
		    "up to 62 letters, digits, _ or -");
	else if (k->type == KEY_IFNAME)
		rc = ifname_parse(text, why);
	else if (k->type == KEY_PATH)
		rc = path_parse(k, text, why);
	else if (k->type == KEY_TEXT)
		rc = text_parse(k, text, why);
	if (rc == 0)
		*out = arena_strdup(a, text);
	return rc;
}

static int
address_parse(const struct key *k, const char *text, struct addr *out,
    char why[WHY_MAX])
{
	struct addr a;

	if (addr_parse(text, &a) < 0)
		return wrong(why, text, "is not an address");
	if (k->type == KEY_ADDR4 && !addr_is4(&a))
		return wrong(why, text, "is not an IPv4 address");
	*out = a;
	return 0;
}

static int
range_parse(const struct key *k, const char *text, struct prefix *out,
    bool *set, char why[WHY_MAX])
{
	const char *slash = strchr(text, '/');
	struct prefix p;

	if (prefix_parse(text, &p) < 0)
		return wrong(why, text, slash == NULL ?
		    "is not a prefix: ADDRESS/LENGTH" :
		    "is not a prefix: ADDRESS/LENGTH, the bits behind LENGTH "
		    "0");
	if ((k->type == KEY_PREFIX4 && !addr_is4(&p.addr)) ||
	    (k->type == KEY_PREFIX6 && addr_is4(&p.addr)))
		return wrong(why, text, "is not an %s prefix",
		    k->type == KEY_PREFIX4 ? "IPv4" : "IPv6");
	*out = p;
	*set = true;
	return 0;
}

static int
count_parse(const struct key *k, const char *text, uint32_t *out,
    bool *percent, char why[WHY_MAX])
{
	const char *end = text + strlen(text);
	bool over;
	uint64_t n;

	if (end > text && end[-1] == '%') {
		if (digits_parse(text, end - 1, &n, &over) < 0)
			return wrong(why, text, "is not a percentage");
		if (over || n < 1 || n > 100)
			return wrong(why, text, "is not in 1%%..100%%");
		*percent = true;
	} else {
		if (number_parse(k, text, &n, why) < 0)
			return -1;
		*percent = false;
	}
	*out = (uint32_t)n;
	return 0;
}

static int
metrics_parse(const char *text, struct conf *c, char why[WHY_MAX])
{
	struct addr a;
	uint16_t port;

	if (strcmp(text, "off") == 0) {
		c->metrics_on = false;
		return 0;
	}
	if (addrport_parse(text, &a, &port) < 0 || port == 0)
		return wrong(why, text, "is not ADDRESS:PORT or off");
	c->metrics_on = true;
	c->metrics_addr = a;
	c->metrics_port = port;
	return 0;
}

int
value_parse(const struct key *k, const char *text, struct arena *a,
    void *base, char why[WHY_MAX])
{
	void *at = field(base, k->offset), *also = field(base, k->also);
	uint64_t n;

	switch (k->type) {
	case KEY_BOOL:
		return bool_parse(text, at, why);
	case KEY_U16:
	case KEY_U32:
	case KEY_U64:
		if (number_parse(k, text, &n, why) < 0)
			return -1;
		if (k->type == KEY_U16)
			*(uint16_t *)at = (uint16_t)n;
		else if (k->type == KEY_U32)
			*(uint32_t *)at = (uint32_t)n;
		else
			*(uint64_t *)at = n;
		if (k->also != 0)
			*(bool *)also = true;
		return 0;
	case KEY_MSEC:
		return msec_parse(k, text, at, why);
	case KEY_ENUM:
		return enum_parse(k, text, at, why);
	case KEY_ADDR:
	case KEY_ADDR4:
		return address_parse(k, text, at, why);
	case KEY_PREFIX:
	case KEY_PREFIX4:
	case KEY_PREFIX6:
		return range_parse(k, text, at, also, why);
	case KEY_COUNT:
		return count_parse(k, text, at, also, why);
	case KEY_METRICS:
		return metrics_parse(text, base, why);
	default:
		return string_parse(k, text, a, at, why);
	}
}

int
community_parse(const char *s, struct community *out, char why[WHY_MAX])
{
	uint32_t part[3] = { 0 };
	const char *p = s, *end;
	uint64_t n, max;
	size_t count = 0;
	bool over;

	/* three numbers are a large community, of 32 bits each */
	end = strchr(s, ':');
	max = end != NULL && strchr(end + 1, ':') != NULL ? UINT32_MAX :
	    UINT16_MAX;
	for (;;) {
		end = p + strcspn(p, ":");
		if (count == 3 || digits_parse(p, end, &n, &over) < 0)
			return wrong(why, s, "is not a community: A:B or "
			    "A:B:C");
		if (n > max)
			return wrong(why, s, "is not a community: each number "
			    "is in 0..%" PRIu64, max);
		part[count++] = (uint32_t)n;
		if (*end == '\0')
			break;
		p = end + 1;
	}
	if (count < 2)
		return wrong(why, s, "is not a community: A:B or A:B:C");
	*out = (struct community){ count == 3, part[0], part[1], part[2] };
	return 0;
}

int
addrs_parse(const struct key *k, const char *s, struct addr *out,
    char why[WHY_MAX])
{
	if (addr_parse(s, out) < 0)
		return wrong(why, s, "is not an address");
	if (addr_is4(out) != (k->type == KEY_ADDRS4))
		return wrong(why, s, "is not an %s address",
		    k->type == KEY_ADDRS4 ? "IPv4" : "IPv6");
	return 0;
}

int
listen_parse(const char *s, struct conf_listen *out, char why[WHY_MAX])
{
	const char *port = s + 4;
	uint64_t n;
	bool over;
	uint8_t proto;

	if (strncmp(s, "tcp/", 4) == 0)
		proto = IPPROTO_TCP;
	else if (strncmp(s, "udp/", 4) == 0)
		proto = IPPROTO_UDP;
	else
		return wrong(why, s, "is not tcp/PORT, udp/PORT, tcp/* or "
		    "udp/*");
	if (strcmp(port, "*") == 0)
		n = 0;
	else if (digits_parse(port, port + strlen(port), &n, &over) < 0)
		return wrong(why, s, "has no port: a number or *");
	else if (over || n < 1 || n > 65535)
		return wrong(why, s, "has no port in 1..65535");
	out->proto = proto;
	out->port = (uint16_t)n;
	return 0;
}

int
codes_parse(const char *s, struct http_range *out, char why[WHY_MAX])
{
	const char *dash = s + strcspn(s, "-"), *end = s + strlen(s);
	uint64_t low, high;
	bool over;

	if (digits_parse(s, dash, &low, &over) < 0)
		return wrong(why, s, "is not a status code or a range");
	high = low;
	if (*dash == '-' && digits_parse(dash + 1, end, &high, &over) < 0)
		return wrong(why, s, "is not a status code or a range");
	if (low < 100 || high > 599 || low > high)
		return wrong(why, s, "is not in 100..599");
	out->low = (uint16_t)low;
	out->high = (uint16_t)high;
	return 0;
}
