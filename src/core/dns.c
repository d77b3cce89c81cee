/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Makes a query and reads what came back, by the C library's resolver parser. */
#include "core/dns.h"

#include <arpa/nameser.h>
#include <netinet/in.h>
#include <resolv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const struct {
	const char *name;
	uint16_t type;
} types[] = {
	{ "A", ns_t_a }, { "AAAA", ns_t_aaaa }, { "ANY", ns_t_any },
	{ "CAA", 257 }, { "CNAME", ns_t_cname }, { "DNSKEY", ns_t_dnskey },
	{ "DS", ns_t_ds }, { "HTTPS", 65 }, { "MX", ns_t_mx },
	{ "NAPTR", ns_t_naptr }, { "NS", ns_t_ns }, { "PTR", ns_t_ptr },
	{ "SOA", ns_t_soa }, { "SRV", ns_t_srv }, { "SVCB", 64 },
	{ "TLSA", 52 }, { "TXT", ns_t_txt },
};
#define TYPES (sizeof(types) / sizeof(types[0]))

uint16_t
dns_type_parse(const char *text)
{
	unsigned long n;
	char *end;
	size_t i;

	for (i = 0; i < TYPES; i++)
		if (strcasecmp(text, types[i].name) == 0)
			return types[i].type;
	if (strncasecmp(text, "TYPE", 4) != 0 || text[4] < '1' ||
	    text[4] > '9')
		return 0;
	n = strtoul(text + 4, &end, 10);
	return *end == '\0' && n <= UINT16_MAX ? (uint16_t)n : 0;
}

const char *
dns_type_print(uint16_t type, char buf[DNS_TYPE_STR_MAX])
{
	size_t i;

	for (i = 0; i < TYPES; i++)
		if (types[i].type == type)
			return types[i].name;
	snprintf(buf, DNS_TYPE_STR_MAX, "TYPE%u", type);
	return buf;
}

const char *
dns_rcode_text(uint16_t rcode)
{
	static const char *const text[] = { "NOERROR", "FORMERR", "SERVFAIL",
	    "NXDOMAIN", "NOTIMP", "REFUSED" };

	return rcode < sizeof(text) / sizeof(text[0]) ? text[rcode] : NULL;
}

size_t
dns_query_build(const char *name, uint16_t type, uint16_t id,
    uint8_t query[DNS_QUERY_MAX])
{
	uint8_t *at = query;
	int len;

	memset(query, 0, NS_HFIXEDSZ);
	NS_PUT16(id, at);
	query[2] = 1;		/* recursion is wanted, as any client asks */
	query[5] = 1;		/* one question */
	at = query + NS_HFIXEDSZ;
	len = dn_comp(name, at, DNS_QUERY_MAX - NS_HFIXEDSZ - NS_QFIXEDSZ,
	    NULL, NULL);
	if (len < 1 || len > NS_MAXCDNAME)
		return 0;
	at += len;
	NS_PUT16(type, at);
	NS_PUT16(ns_c_in, at);
	return (size_t)(at - query);
}

/* Both have one question, and it is the same. */
static bool
question_same(ns_msg *query, ns_msg *reply)
{
	ns_rr asked, said;

	return ns_msg_count(*reply, ns_s_qd) == 1 &&
	    ns_parserr(query, ns_s_qd, 0, &asked) == 0 &&
	    ns_parserr(reply, ns_s_qd, 0, &said) == 0 &&
	    strcasecmp(ns_rr_name(asked), ns_rr_name(said)) == 0 &&
	    ns_rr_type(asked) == ns_rr_type(said) &&
	    ns_rr_class(asked) == ns_rr_class(said);
}

/* The name may be another one: a CNAME led there. */
static enum probe_result
answers_judge(ns_msg *reply, uint16_t type)
{
	int i, n = ns_msg_count(*reply, ns_s_an);
	ns_rr rr;

	for (i = 0; i < n; i++) {
		if (ns_parserr(reply, ns_s_an, i, &rr) < 0)
			return PROBE_NONSENSE;
		if ((type == ns_t_any || ns_rr_type(rr) == type) &&
		    ns_rr_class(rr) == ns_c_in)
			return PROBE_OK;
	}
	return ns_msg_getflag(*reply, ns_f_tc) ? PROBE_TRUNCATED :
	    PROBE_NO_ANSWER;
}

bool
dns_reply_judge(const uint8_t *query, size_t query_len, const uint8_t *reply,
    size_t reply_len, enum probe_result *r, uint16_t *detail)
{
	ns_msg q, m;
	ns_rr rr;
	uint16_t rcode;

	*detail = 0;
	/* the id and that it is a response come before all that may be wrong */
	if (reply_len < 3 || memcmp(reply, query, 2) != 0 ||
	    (reply[2] & 0x80) == 0)
		return false;
	*r = PROBE_NONSENSE;
	if (ns_initparse(query, (int)query_len, &q) < 0 ||
	    ns_parserr(&q, ns_s_qd, 0, &rr) < 0 ||
	    ns_initparse(reply, (int)reply_len, &m) < 0)
		return true;
	rcode = (uint16_t)ns_msg_getflag(m, ns_f_rcode);
	/* an error may leave out the question that was not understood */
	if (!question_same(&q, &m) &&
	    (rcode == ns_r_noerror || ns_msg_count(m, ns_s_qd) != 0))
		return false;
	if (rcode != ns_r_noerror) {
		*r = PROBE_RCODE;
		*detail = rcode;
		return true;
	}
	*r = answers_judge(&m, ns_rr_type(rr));
	if (*r == PROBE_NO_ANSWER || *r == PROBE_TRUNCATED)
		*detail = ns_rr_type(rr);
	return true;
}
