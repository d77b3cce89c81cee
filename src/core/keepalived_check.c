/* SPDX-License-Identifier: GPL-2.0-or-later */
/* keepalived's checkers to checks. */
#include "core/keepalived_int.h"

#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/conf_schema.h"
#include "core/conf_value.h"

#define TEXT_BYTES_MAX 1024	/* of send, reply and body */
#define SMTP_PORT 25

/* Where a real server has several the first of these is taken: one that asks
 * for more says more. */
static const char *const checker[] = { "HTTP_GET", "SSL_GET", "DNS_CHECK",
    "UDP_CHECK", "MISC_CHECK", "SMTP_CHECK", "TCP_CHECK", "PING_CHECK",
    "BFD_CHECK", "FILE_CHECK", NULL };

static const struct ka_word common[] = {
	{ "connect_ip", "a check of xlb asks the backend itself" },
	{ "bindto", "the kernel chooses the source address of a probe" },
	{ "bind_if", "the route decides" },
	{ "bind_port", "the kernel chooses the source port of a probe" },
	{ "fwmark", "probes have no mark" },
	{ "alpha", NULL },	/* unknown is not up */
	{ "warmup", NULL },	/* probes are spread anyway */
	{ "log_all_failures", NULL },
	{ NULL, NULL }
};

static const struct ka_word http_words[] = {
	{ "http_protocol", "requests are HTTP/1.1" },
	{ "fast_recovery", NULL },
	{ "tls_compliant", NULL },
	{ NULL, NULL }
};

static const struct ka_word url_words[] = {
	{ "digest", "use body: a text that the page has to hold" },
	{ "regex_no_match", "body is a text that has to be there" },
	{ "regex_options", "body is compared byte by byte" },
	{ "regex_stack", NULL },
	{ "regex_min_offset", "body is looked for from the start" },
	{ "regex_max_offset", "body is looked for in the first 64 KiB" },
	{ "tls_compliant", NULL },
	{ NULL, NULL }
};

static int
checker_rank(const struct ka_stmt *s)
{
	int i;

	for (i = 0; checker[i] != NULL; i++)
		if (ka_is(s, checker[i]))
			return i;
	return -1;
}

static void
codes_take(struct ka_job *j, const struct ka_stmt *s, struct conf_check *c)
{
	struct http_range_list list = { NULL, 0 };
	struct http_range *row;
	char why[WHY_MAX];
	size_t i;

	for (i = 1; i < s->nword; i++) {
		row = arena_grow(j->a, &list.row, list.n, sizeof(*row));
		if (codes_parse(s->word[i], row, why) < 0)
			ka_fault(j, s, "%s", why);
		else
			list.n++;
		if (list.n > 0 && row->low <= 503 && row->high >= 503)
			c->drain_status.n = 0;
	}
	if (list.n > 0)
		c->expect = list;
}

/* An expression that is only a text. */
static bool
is_literal(const char *s)
{
	size_t n = strlen(s);

	return n > 0 && n <= TEXT_BYTES_MAX &&
	    strpbrk(s, ".^$*+?()[]{}|\\") == NULL;
}

static void
regex_take(struct ka_job *j, const struct ka_stmt *s, struct conf_check *c)
{
	const char *text = ka_arg(j, s);

	if (is_literal(text))
		c->body = text;
	else
		ka_note(j, s, "no equal: body is a text, no expression");
}

static void
url_take(struct ka_job *j, const struct ka_stmt *url, struct conf_check *c)
{
	const struct ka_stmt *s;

	for (s = url->child; s != NULL; s = s->next) {
		if (ka_is(s, "path"))
			c->path = ka_arg(j, s);
		else if (ka_is(s, "status_code"))
			codes_take(j, s, c);
		else if (ka_is(s, "virtualhost"))
			c->host = ka_arg(j, s);
		else if (ka_is(s, "regex"))
			regex_take(j, s, c);
		else if (!ka_known(j, s, url_words))
			ka_unknown(j, s);
	}
}

static void
http_take(struct ka_job *j, const struct ka_stmt *s, struct conf_check *c,
    bool *sni)
{
	static const struct http_range ok = { 200, 299 };

	if (ka_is(s, "url")) {
		if (c->path != NULL) {
			ka_note(j, s, "no equal: a check asks for one path, "
			    "that of the first url");
			return;
		}
		c->expect.row = arena_dup(j->a, &ok, sizeof(ok));
		c->expect.n = 1;
		url_take(j, s, c);
		if (c->path == NULL)
			c->path = "/";
	} else if (ka_is(s, "enable_sni")) {
		*sni = ka_bool(s);
	} else if (ka_is(s, "sni_name")) {
		c->sni = ka_arg(j, s);
	} else if (!ka_known(j, s, http_words)) {
		ka_unknown(j, s);
	}
}

/* "/path/to/script 'one word' another" */
static const char **
command_split(struct ka_job *j, const char *s)
{
	const char **word = NULL, **at;
	size_t n = 0;
	char *to;

	while (*(s += strspn(s, " \t")) != '\0') {
		at = arena_grow(j->a, &word, n++, sizeof(*at));
		*at = to = arena_alloc(j->a, strlen(s) + 1);
		while (*s != '\0' && *s != ' ' && *s != '\t') {
			if (*s != '\'') {
				*to++ = *s++;
				continue;
			}
			for (s++; *s != '\0' && *s != '\''; )
				*to++ = *s++;
			s += *s == '\'';
		}
	}
	arena_grow(j->a, &word, n, sizeof(*at));
	return word;
}

static void
misc_take(struct ka_job *j, const struct ka_stmt *s, struct conf_check *c)
{
	if (ka_is(s, "misc_path"))
		c->command = command_split(j, ka_arg(j, s));
	else if (ka_is(s, "misc_timeout"))
		c->timeout_ms = ka_msec(j, s);
	else if (ka_is(s, "user"))
		c->user = ka_arg(j, s);
	else if (ka_is(s, "misc_dynamic"))
		ka_note(j, s, "no equal: a check says up or down, and no "
		    "weight; write weights into the file, then xlb reload");
	else
		ka_unknown(j, s);
}

static int
hex_digit(char c)
{
	static const char digits[] = "0123456789abcdef";
	const char *at = strchr(digits, c | 0x20);

	return c != '\0' && at != NULL && c != 'X' && c != 'x' ?
	    (int)(at - digits) : -1;
}

/* Pairs of hexadecimal digits in any grouping; NULL if that is no text. */
static const char *
hex_text(struct ka_job *j, const struct ka_stmt *s)
{
	char *out = arena_alloc(j->a, TEXT_BYTES_MAX + 1);
	size_t n = 0, i, k;
	int high, low;

	for (i = 1; i < s->nword; i++) {
		for (k = 0; s->word[i][k] != '\0'; ) {
			high = 0;
			low = hex_digit(s->word[i][k++]);
			if (s->word[i][k] != '\0') {
				high = low;
				low = hex_digit(s->word[i][k++]);
			}
			if (high < 0 || low < 0 || n == TEXT_BYTES_MAX ||
			    high * 16 + low < 0x20 || high * 16 + low > 0x7e)
				return NULL;
			out[n++] = (char)(high * 16 + low);
		}
	}
	return n > 0 ? out : NULL;
}

static void
udp_take(struct ka_job *j, const struct ka_stmt *s, struct conf_check *c)
{
	const char *text = s->nword > 1 ? hex_text(j, s) : NULL;

	if (ka_is(s, "payload"))
		c->send = text;
	else if (ka_is(s, "require_reply"))
		c->reply = text;
	else if (ka_is(s, "min_reply_length") || ka_is(s, "max_reply_length"))
		ka_note(j, s, "no equal: any length will do");
	else
		ka_unknown(j, s);
	if (s->nword > 1 && text == NULL &&
	    (ka_is(s, "payload") || ka_is(s, "require_reply")))
		ka_note(j, s, "no equal: send and reply are printable texts; "
		    "an exec check can do more");
}

static void
dns_take(struct ka_job *j, const struct ka_stmt *s, struct conf_check *c)
{
	if (ka_is(s, "name"))
		c->qname = ka_arg(j, s);
	else if (ka_is(s, "type"))
		c->qtype = ka_arg(j, s);
	else
		ka_unknown(j, s);
	if (c->qname != NULL && strcmp(c->qname, ".") == 0)
		c->qname = NULL;	/* the root, as without */
}

static void
own_take(struct ka_job *j, const struct ka_stmt *s, struct conf_check *c,
    bool *sni)
{
	switch (c->type) {
	case CHECK_HTTP:
	case CHECK_HTTPS:
		http_take(j, s, c, sni);
		break;
	case CHECK_UDP:
		udp_take(j, s, c);
		break;
	case CHECK_DNS:
		dns_take(j, s, c);
		break;
	case CHECK_EXEC:
		misc_take(j, s, c);
		break;
	default:
		ka_unknown(j, s);
	}
}

/* What is our own default is not said. */
static void
timers_set(struct ka_job *j, const struct ka_stmt *s, struct conf_check *c,
    const struct ka_timers *t)
{
	if (t->interval_ms != 0)
		c->interval_ms = t->interval_ms < 10 ? 10 : t->interval_ms;
	if (c->type != CHECK_EXEC && t->timeout_ms != 0)
		c->timeout_ms = t->timeout_ms;
	if (t->retry != UINT32_MAX)
		c->fall = t->retry + 1;
	if (c->timeout_ms > c->interval_ms) {
		ka_note(j, s, "its timeout of %u ms is longer than the %u ms "
		    "between two probes: cut to that", c->timeout_ms,
		    c->interval_ms);
		c->timeout_ms = c->interval_ms;
	}
}

static struct conf_check *
check_new(struct ka_job *j, const struct ka_stmt *s)
{
	static const enum check_type type[] = { CHECK_HTTP, CHECK_HTTPS,
	    CHECK_DNS, CHECK_UDP, CHECK_EXEC, CHECK_TCP, CHECK_TCP,
	    CHECK_ICMP };
	struct conf_check *c = arena_alloc(j->a, sizeof(*c));

	conf_defaults(schema_find(schema_root(), "checks")->section, j->a, c);
	c->mark = s->mark;
	c->type = type[checker_rank(s)];
	c->via = VIA_DIRECT;
	if (c->type == CHECK_HTTP || c->type == CHECK_HTTPS)
		c->path = NULL;	/* until its url is there */
	if (c->type == CHECK_HTTPS)
		c->verify = false;
	if (c->type == CHECK_DNS)
		c->qtype = "SOA";
	return c;
}

static void
check_finish(struct ka_job *j, const struct ka_stmt *s, struct conf_check *c,
    bool sni)
{
	if (c->type == CHECK_HTTP || c->type == CHECK_HTTPS) {
		if (c->path == NULL) {
			ka_fault(j, s, "has no url");
			c->path = "/";
		}
		if (c->type == CHECK_HTTPS && sni && c->sni == NULL)
			c->sni = c->host;
	} else {
		c->host = NULL;
	}
	if (c->type == CHECK_EXEC && c->command == NULL)
		ka_fault(j, s, "has no misc_path");
}

static struct conf_check *
check_take(struct ka_job *j, const struct ka_stmt *s, uint16_t port,
    uint16_t server_port, const struct ka_timers *inherited)
{
	struct conf_check *c = check_new(j, s);
	struct ka_timers t = *inherited;
	const struct ka_stmt *k;
	bool sni = false;

	if (ka_is(s, "SMTP_CHECK")) {
		ka_note(j, s, "no equal: a connection is opened, no greeting "
		    "read; an exec check can do more");
		port = SMTP_PORT;
	}
	c->host = t.virtualhost;
	for (k = s->child; k != NULL; k = k->next) {
		if (ka_is(k, "connect_port"))
			port = (uint16_t)ka_number(j, k, ka_arg(j, k), 1, 65535);
		else if (ka_is(s, "SMTP_CHECK") && (ka_is(k, "helo_name") ||
		    ka_is(k, "host")))
			ka_note(j, k, "no equal: see SMTP_CHECK");
		else if (ka_is(k, "virtualhost"))
			c->host = ka_arg(j, k);
		else if (!ka_timer(j, k, &t) && !ka_known(j, k, common))
			own_take(j, k, c, &sni);
	}
	if (port != server_port && c->type != CHECK_ICMP &&
	    c->type != CHECK_EXEC)
		c->port = port;
	timers_set(j, s, c, &t);
	check_finish(j, s, c, sni);
	return c;
}

struct conf_check *
ka_check(struct ka_job *j, const struct ka_stmt *real, uint16_t server_port,
    const struct ka_timers *t)
{
	const struct ka_stmt *s, *best = NULL;
	uint16_t port = real->nword > 2 ?
	    (uint16_t)strtoul(real->word[2], NULL, 10) : 0;

	for (s = real->child; s != NULL; s = s->next)
		if (checker_rank(s) >= 0 && (best == NULL ||
		    checker_rank(s) < checker_rank(best)))
			best = s;
	for (s = real->child; s != NULL; s = s->next)
		if (s != best && checker_rank(s) >= 0)
			ka_note(j, s, "no equal: a pool has one check, and %s "
			    "of line %u asks for more; an exec check can do "
			    "several things", best->word[0], best->mark.line);
	if (best == NULL)
		return NULL;
	if (ka_is(best, "BFD_CHECK") || ka_is(best, "FILE_CHECK")) {
		ka_note(j, best, "no equal: use tcp, or an exec check");
		return NULL;
	}
	if (port == 0)
		port = server_port;
	return check_take(j, best, port, server_port, t);
}

static bool
text_same(const char *a, const char *b)
{
	return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static bool
words_same(const char **a, const char **b)
{
	if (a == NULL || b == NULL)
		return a == b;
	for (; *a != NULL && *b != NULL; a++, b++)
		if (strcmp(*a, *b) != 0)
			return false;
	return *a == *b;
}

static bool
codes_same(const struct http_range_list *a, const struct http_range_list *b)
{
	size_t i;

	if (a->n != b->n)
		return false;
	for (i = 0; i < a->n; i++)
		if (a->row[i].low != b->row[i].low ||
		    a->row[i].high != b->row[i].high)
			return false;
	return true;
}

bool
ka_check_same(const struct conf_check *a, const struct conf_check *b)
{
	if (a == NULL || b == NULL)
		return a == b;
	return a->type == b->type && a->port == b->port &&
	    a->interval_ms == b->interval_ms &&
	    a->timeout_ms == b->timeout_ms && a->fall == b->fall &&
	    text_same(a->path, b->path) && text_same(a->host, b->host) &&
	    text_same(a->body, b->body) && text_same(a->sni, b->sni) &&
	    codes_same(&a->expect, &b->expect) &&
	    text_same(a->send, b->send) && text_same(a->reply, b->reply) &&
	    text_same(a->qname, b->qname) && text_same(a->qtype, b->qtype) &&
	    text_same(a->user, b->user) && words_same(a->command, b->command);
}
