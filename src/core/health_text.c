/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Health in words. */
#include <stdarg.h>
#include <stdio.h>

#include "core/conf.h"
#include "core/dns.h"
#include "core/health.h"
#include "core/text.h"

static const char *const result_text[PROBE_RESULTS] = {
	[PROBE_OK] = "ok",
	[PROBE_TIMEOUT] = "timeout",
	[PROBE_REFUSED] = "connection refused",
	[PROBE_UNREACHABLE] = "unreachable",
	[PROBE_RESET] = "connection reset",
	[PROBE_LOCAL] = "this node could not send",
	[PROBE_DRAIN] = "asks for no new flows",
	[PROBE_STATUS] = "unexpected HTTP status",
	[PROBE_BODY] = "body lacks the text",
	[PROBE_CLOSED] = "connection closed before the answer's end",
	[PROBE_NONSENSE] = "no valid answer",
	[PROBE_TOO_LONG] = "HTTP header too long",
	[PROBE_REPLY] = "reply lacks the text",
	[PROBE_TLS] = "TLS handshake failed",
	[PROBE_TLS_TIMEOUT] = "TLS handshake timed out",
	[PROBE_CERT] = "certificate verify failed",
	[PROBE_QUESTION] = "reply is not for the question",
	[PROBE_RCODE] = "DNS error",
	[PROBE_NO_ANSWER] = "no answer of the type",
	[PROBE_ECHO] = "echo reply holds other data",
	[PROBE_EXIT] = "command failed",
	[PROBE_SIGNAL] = "command was killed",
	[PROBE_TRUNCATED] = "reply is truncated",
};

static const char *const state_text[] = {
	[HEALTH_UNKNOWN] = "unknown",
	[HEALTH_UP] = "up",
	[HEALTH_DOWN] = "down",
	[HEALTH_DRAIN] = "drain",
};

/* Results and states are read back from a pinned map, which an other version
 * may have written: any number is printed. */
const char *
probe_result_text(enum probe_result r)
{
	return (unsigned)r < PROBE_RESULTS ? result_text[r] : "other";
}

const char *
health_state_text(enum health_state s)
{
	return (unsigned)s < sizeof(state_text) / sizeof(state_text[0]) ?
	    state_text[s] : "other";
}

/* The numbers of OpenSSL's x509_vfy.h, which do not change. NULL: it is one
 * that says nothing to an operator. */
static const char *
x509_text(uint16_t code)
{
	switch (code) {
	case 9:
		return "not valid yet";
	case 10:
		return "expired";
	case 18:
		return "self-signed";
	case 19:
		return "self-signed authority that is not in ca";
	case 2:
	case 20:
	case 21:
		return "issuer unknown";
	case 24:
		return "issuer is no authority";
	case 26:
		return "not for a server";
	case 62:
		return "for another name";
	case 64:
		return "for another address";
	case 66:
	case 67:
	case 68:
		return "key or signature too weak";
	default:
		return NULL;
	}
}

#define LISTED_MAX 6		/* status codes that are named */

static bool
range_has(const struct http_range_list *l, uint16_t status)
{
	size_t i;

	for (i = 0; i < l->n; i++)
		if (status >= l->row[i].low && status <= l->row[i].high)
			return true;
	return false;
}

static void __attribute__((format(printf, 3, 4)))
append(char buf[HEALTH_WHY_MAX], size_t *n, const char *fmt, ...)
{
	va_list ap;
	int len;

	va_start(ap, fmt);
	len = vsnprintf(buf + *n, HEALTH_WHY_MAX - *n, fmt, ap);
	va_end(ap);
	if (len > 0)
		*n += (size_t)len;
	if (*n >= HEALTH_WHY_MAX)
		*n = HEALTH_WHY_MAX - 1;
}

/* The check may be another since: then this is not what it said. */
static void
expected_print(const struct conf_check *c, uint16_t status,
    char buf[HEALTH_WHY_MAX], size_t *n)
{
	const struct http_range_list *l = &c->expect;
	size_t i;

	if (l->n == 0 || range_has(l, status))
		return;
	for (i = 0; i < l->n && i < LISTED_MAX; i++) {
		append(buf, n, "%s%u", i == 0 ? ", expected " : ", ",
		    l->row[i].low);
		if (l->row[i].high != l->row[i].low)
			append(buf, n, "-%u", l->row[i].high);
	}
	if (i < l->n)
		append(buf, n, ", ...");
}

const char *
health_why_print(const struct health_fsm *f, const struct conf_check *check,
    char buf[HEALTH_WHY_MAX])
{
	char shown[TEXT_SHOW_MAX], type[DNS_TYPE_STR_MAX];
	size_t n = 0;

	if (f->why == PROBE_DRAIN && f->detail != 0) {
		append(buf, &n, "HTTP %u %s", f->detail,
		    probe_result_text(f->why));
	} else if (f->why == PROBE_STATUS && f->detail != 0) {
		append(buf, &n, "HTTP %u", f->detail);
		expected_print(check, f->detail, buf, &n);
	} else if (f->why == PROBE_BODY && check->body != NULL) {
		append(buf, &n, "body lacks \"%s\"",
		    text_show(check->body, shown));
	} else if (f->why == PROBE_REPLY && check->reply != NULL) {
		append(buf, &n, "reply lacks \"%s\"",
		    text_show(check->reply, shown));
	} else if (f->why == PROBE_CERT && x509_text(f->detail) != NULL) {
		append(buf, &n, "%s: %s", probe_result_text(f->why),
		    x509_text(f->detail));
	} else if (f->why == PROBE_RCODE) {
		if (dns_rcode_text(f->detail) != NULL)
			return dns_rcode_text(f->detail);
		append(buf, &n, "DNS error %u", f->detail);
	} else if (f->why == PROBE_NO_ANSWER && f->detail != 0) {
		append(buf, &n, "no answer of type %s",
		    dns_type_print(f->detail, type));
	} else if (f->why == PROBE_TRUNCATED && f->detail != 0) {
		append(buf, &n, "reply is truncated, without an answer of type "
		    "%s", dns_type_print(f->detail, type));
	} else if (f->why == PROBE_EXIT) {
		append(buf, &n, "exit status %u%s%s", f->detail,
		    f->said[0] != '\0' ? ": " : "",
		    f->said[0] != '\0' ? text_show(f->said, shown) : "");
	} else if (f->why == PROBE_SIGNAL) {
		append(buf, &n, "ended by signal %u", f->detail);
	} else if (f->said[0] != '\0') {
		append(buf, &n, "%s: %s", probe_result_text(f->why),
		    text_show(f->said, shown));
	} else {
		return probe_result_text(f->why);
	}
	return buf;
}

const char *
health_where(const struct addr *addr, uint16_t port,
    char buf[ADDRPORT_STR_MAX])
{
	return port != 0 ? addrport_print(addr, port, buf) :
	    addr_print(addr, buf);
}

const char *
health_row_why(const struct health_row *row, const struct conf_check *check,
    char buf[HEALTH_WHY_MAX])
{
	char where[ADDRPORT_STR_MAX], why[HEALTH_WHY_MAX];
	size_t n = 0;

	if (addr_is_zero(&row->vip))
		return health_why_print(&row->fsm, check, buf);
	append(buf, &n, "%s to %s through the tunnel: %s",
	    check_type_text(check->type),
	    health_where(&row->vip, row->port, where),
	    health_why_print(&row->fsm, check, why));
	return buf;
}
