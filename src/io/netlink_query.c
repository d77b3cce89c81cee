/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Questions to rtnetlink: batches with one answer each, and dumps. */
#include "io/netlink_int.h"

#include <errno.h>
#include <linux/if_addr.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include "io/log.h"

void *
netlink_realloc(void *p, size_t n, size_t size)
{
	p = reallocarray(p, n > 0 ? n : 1, size);
	if (p == NULL)
		fatal("netlink");
	return p;
}

int
query_open(struct query *q)
{
	struct timeval limit = { .tv_sec = 2 };
	int one = 1, size = 1 << 20, fd;

	q->sock = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC);
	if (q->sock == NULL)
		return -errno;
	if (mnl_socket_bind(q->sock, 0, MNL_SOCKET_AUTOPID) < 0)
		return -errno;
	fd = mnl_socket_get_fd(q->sock);
	/* Each of these only makes it better: room for a batch of answers, no
	 * endless wait, no echo of our request in an error. */
	setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(fd, SOL_NETLINK, NETLINK_CAP_ACK, &one, sizeof(one));
	q->seq = 1;
	return 0;
}

void
query_close(struct query *q)
{
	if (q->sock != NULL)
		mnl_socket_close(q->sock);
	q->sock = NULL;
}

static void
batch_reset(struct query *q)
{
	q->seq += (uint32_t)q->n;
	q->n = 0;
	q->used = 0;
	q->last = NULL;
}

void
query_begin(struct netlink *nl, query_fn *fn)
{
	batch_reset(&nl->query);
	nl->query.fn = fn;
}

/* Hands the messages of one datagram to their rows; how many they were. */
static size_t
batch_answers(struct netlink *nl, int len)
{
	struct query *q = &nl->query;
	const struct nlmsghdr *nlh = (const void *)q->in;
	const struct nlmsgerr *e;
	size_t done = 0;
	uint32_t i;

	for (; mnl_nlmsg_ok(nlh, len); nlh = mnl_nlmsg_next(nlh, &len)) {
		i = nlh->nlmsg_seq - q->seq;
		if (i >= q->n)	/* an answer that came too late */
			continue;
		done++;
		if (nlh->nlmsg_type == NLMSG_ERROR) {
			e = mnl_nlmsg_get_payload(nlh);
			q->fn(nl, q->row[i], NULL, e->error);
		} else {
			q->fn(nl, q->row[i], nlh, 0);
		}
		q->row[i] = NULL;
	}
	return done;
}

static void
batch_run(struct netlink *nl)
{
	struct query *q = &nl->query;
	size_t done = 0, i;
	ssize_t n;

	if (q->last != NULL)
		q->used += MNL_ALIGN(q->last->nlmsg_len);
	if (q->n > 0 && mnl_socket_sendto(q->sock, q->out, q->used) < 0) {
		log_warn("netlink: asking the kernel");
		done = q->n;
	}
	while (done < q->n) {
		n = mnl_socket_recvfrom(q->sock, q->in, sizeof(q->in));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			log_warn("netlink: an answer of the kernel");
			break;
		}
		done += batch_answers(nl, (int)n);
	}
	for (i = 0; i < q->n; i++)
		if (q->row[i] != NULL)	/* unanswered */
			q->fn(nl, q->row[i], NULL, -EAGAIN);
	batch_reset(q);
}

struct nlmsghdr *
query_add(struct netlink *nl, uint16_t type, uint16_t flags, size_t extra,
    void *row)
{
	struct query *q = &nl->query;

	if (q->n == QUERY_BATCH)
		batch_run(nl);
	if (q->last != NULL)
		q->used += MNL_ALIGN(q->last->nlmsg_len);
	q->last = mnl_nlmsg_put_header(q->out + q->used);
	q->last->nlmsg_type = type;
	q->last->nlmsg_flags = NLM_F_REQUEST | flags;
	q->last->nlmsg_seq = q->seq + (uint32_t)q->n;
	mnl_nlmsg_put_extra_header(q->last, extra);
	q->row[q->n++] = row;
	return q->last;
}

void
query_end(struct netlink *nl)
{
	batch_run(nl);
}

static int
dump_once(struct netlink *nl, uint16_t type, mnl_cb_t fn)
{
	struct query *q = &nl->query;
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(q->out);
	unsigned port = mnl_socket_get_portid(q->sock);
	ssize_t n;
	int rc;

	batch_reset(q);
	nlh->nlmsg_type = type;
	nlh->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	nlh->nlmsg_seq = q->seq++;
	mnl_nlmsg_put_extra_header(nlh, sizeof(struct ifinfomsg));
	if (type == RTM_GETLINK)	/* no counters, or it is megabytes */
		mnl_attr_put_u32(nlh, IFLA_EXT_MASK, RTEXT_FILTER_SKIP_STATS);
	if (mnl_socket_sendto(q->sock, nlh, nlh->nlmsg_len) < 0)
		return -errno;
	do {
		n = mnl_socket_recvfrom(q->sock, q->in, sizeof(q->in));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		rc = mnl_cb_run(q->in, (size_t)n, nlh->nlmsg_seq, port, fn, nl);
	} while (n < 0 || rc > 0);
	return rc < 0 ? -errno : 0;
}

int
query_dump(struct netlink *nl, uint16_t type, mnl_cb_t fn,
    void (*restart)(struct netlink *nl))
{
	int rc, tries = 0;

	do {
		restart(nl);
		rc = dump_once(nl, type, fn);
	} while (rc == -EINTR && ++tries < 100);
	return rc;
}

bool
query_addr(const struct nlattr *at, struct addr *out)
{
	uint32_t be;

	if (at == NULL)
		return false;
	if (mnl_attr_get_payload_len(at) == 4) {
		memcpy(&be, mnl_attr_get_payload(at), 4);
		*out = addr_from4(be);
		return true;
	}
	if (mnl_attr_get_payload_len(at) != 16)
		return false;
	memcpy(out->b, mnl_attr_get_payload(at), 16);
	return true;
}

void
query_put_addr(struct nlmsghdr *nlh, uint16_t type, const struct addr *addr)
{
	if (addr_is4(addr))
		mnl_attr_put(nlh, type, 4, addr->b + 12);
	else
		mnl_attr_put(nlh, type, 16, addr->b);
}

struct attrs {
	const struct nlattr **tb;
	uint16_t max;
};

static int
attr_take(const struct nlattr *at, void *arg)
{
	const struct attrs *x = arg;

	if (mnl_attr_get_type(at) <= x->max)
		x->tb[mnl_attr_get_type(at)] = at;
	return MNL_CB_OK;
}

void
query_attrs(const struct nlmsghdr *nlh, size_t extra,
    const struct nlattr **tb, uint16_t max)
{
	struct attrs x = { .tb = tb, .max = max };

	memset(tb, 0, (max + 1u) * sizeof(tb[0]));
	mnl_attr_parse(nlh, (unsigned)extra, attr_take, &x);
}

void
query_nested(const struct nlattr *nest, const struct nlattr **tb,
    uint16_t max)
{
	struct attrs x = { .tb = tb, .max = max };

	memset(tb, 0, (max + 1u) * sizeof(tb[0]));
	if (nest != NULL)
		mnl_attr_parse_nested(nest, attr_take, &x);
}
