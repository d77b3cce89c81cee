/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A dns check: a query, and the first reply to it decides. */
#include <sys/random.h>

#include "core/dns.h"
#include "io/probe_wire.h"

bool
probe_dns_begin(int fd, const struct addr *to, uint16_t port,
    const struct probe_check *check, struct probe_asked **asked,
    struct probe_end *end)
{
	uint8_t query[DNS_QUERY_MAX];
	uint16_t id;
	size_t len = 0;

	if (getrandom(&id, sizeof(id), 0) == sizeof(id))
		len = dns_query_build(check->qname, check->qtype, id, query);
	*asked = len == 0 ? NULL : probe_asked_new(query, len);
	if (*asked == NULL) {
		end->result = PROBE_LOCAL;
		return true;
	}
	return probe_datagram_connect(fd, to, port, end) ||
	    probe_datagram_send(fd, query, len, end);
}

/* What is no reply to our query may be forged: it does not end the wait for the
 * real one (RFC 5452, 9.1), and is told if none comes. */
bool
probe_dns_end(int fd, const struct probe_asked *asked, struct probe_end *end)
{
	const uint8_t *got;
	ssize_t n;

	n = probe_datagram_take(fd, &got, end);
	if (n < 0)
		return n == -2;
	if (dns_reply_judge(asked->b, asked->len, got, (size_t)n, &end->result,
	    &end->detail))
		return true;
	end->result = PROBE_QUESTION;
	return false;
}
