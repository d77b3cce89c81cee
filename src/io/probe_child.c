/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The prober: takes sockets, connects them, asks what the check asks, says how
 * each one ended. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/conf.h"
#include "core/heap.h"
#include "io/probe_http.h"
#include "io/probe_wire.h"

#define EVENTS 256
#define REQUESTS_AT_ONCE 64	/* then ends and deadlines have their turn */

struct probe {
	struct heap_node deadline;
	uint32_t id, generation;
	int fd;			/* -1: this row is free */
	struct addr addr;
	uint16_t port;
	uint16_t kind;		/* enum probe_request_kind */
	uint32_t check;		/* slot; not tcp */
	uint16_t size;		/* of the packet that asks; 0: as it comes */
	struct http_probe *http;	/* it has the socket; NULL: not yet */
	struct probe_asked *asked;	/* what it has to be the answer to */
	uint16_t others;	/* messages that were none, so far */
	struct probe_end end;	/* as it would be if its time were up */
};

struct check {
	struct probe_check c;
	struct probe_ca ca;
};

struct child {
	int sock, ep;
	struct probe **row;	/* by id, made when first used */
	struct heap deadline;
	struct http *http;	/* made when first used */
	struct check *check[CONF_CHECKS_MAX];	/* by slot */
	int64_t lost;		/* ns for which this process did not run: no
				 * deadline passes in them */
};

/* Less than that is how busy machines are. */
#define LATE_NS 20000000

static int64_t
child_now(const struct child *c)
{
	return probe_now().ns - c->lost;
}

static const struct probe_end cannot = { .result = PROBE_LOCAL };

/* Whatever is wrong here, xlbd starts a new prober. */
static _Noreturn void
give_up(void)
{
	_exit(1);
}

static void
answer(const struct child *c, uint32_t id, uint32_t generation,
    const struct probe_end *end)
{
	struct probe_answer a = { id, generation, (uint32_t)end->result,
	    end->detail, "" };

	memcpy(a.said, end->said, sizeof(a.said));
	/* Blocks while xlbd is busy: then nobody waits for results anyway. */
	while (send(c->sock, &a, sizeof(a), MSG_NOSIGNAL) < 0)
		if (errno != EINTR)
			give_up();
}

static void
probe_drop(struct child *c, struct probe *p)
{
	heap_del(&c->deadline, &p->deadline);
	/* the others are ours alone, and leave the set when they are closed */
	if (p->kind == PROBE_REQUEST_ERROR)
		epoll_ctl(c->ep, EPOLL_CTL_DEL, p->fd, NULL);
	if (p->http != NULL)
		http_cancel(c->http, p->http);
	else
		close(p->fd);
	free(p->asked);
	p->asked = NULL;
	p->http = NULL;
	p->fd = -1;
}

/* With what `end` says. */
static void
probe_ended(struct child *c, struct probe *p)
{
	probe_drop(c, p);
	answer(c, p->id, p->generation, &p->end);
}

static void
probe_done(struct child *c, struct probe *p, enum probe_result r)
{
	p->end.result = r;
	probe_ended(c, p);
}

/* What became of one that libcurl had: its socket is closed. */
static void
http_ended(void *owner, const struct probe_end *end, void *arg)
{
	struct child *c = arg;
	struct probe *p = owner;

	heap_del(&c->deadline, &p->deadline);
	p->http = NULL;
	p->fd = -1;
	answer(c, p->id, p->generation, end);
}

static uint64_t
probe_key(const struct probe *p)
{
	return (uint64_t)p->generation << 32 | p->id;
}

/* Connected, or failed to: the end of a tcp check. */
static void
probe_connected(struct child *c, struct probe *p, enum probe_result r)
{
	const struct check *check;
	int fd = p->fd;

	if (r != PROBE_OK || p->kind == PROBE_REQUEST_TCP) {
		probe_done(c, p, r);
		return;
	}
	check = c->check[p->check];
	if (c->http == NULL)
		c->http = http_open(c->ep, http_ended, c);
	if (c->http == NULL)
		give_up();
	epoll_ctl(c->ep, EPOLL_CTL_DEL, fd, NULL);
	p->http = http_begin(c->http, fd, &p->addr, p->port, &check->c,
	    &check->ca, probe_key(p), p);
	if (p->http != NULL)
		return;
	heap_del(&c->deadline, &p->deadline);
	p->fd = -1;
	answer(c, p->id, p->generation, &cannot);
}

static struct probe *
row_get(struct child *c, uint32_t id)
{
	if (c->row[id] == NULL) {
		c->row[id] = calloc(1, sizeof(*c->row[id]));
		if (c->row[id] == NULL)
			give_up();
		c->row[id]->id = id;
		c->row[id]->fd = -1;
	}
	return c->row[id];
}

/* Connects, or asks. True: it has ended, with `p->end`. */
static bool
probe_ask(struct child *c, struct probe *p)
{
	switch (p->kind) {
	case PROBE_REQUEST_UDP:
		return probe_udp_begin(p->fd, &p->addr, p->port,
		    &c->check[p->check]->c, &p->asked, &p->end);
	case PROBE_REQUEST_DNS:
		return probe_dns_begin(p->fd, &p->addr, p->port,
		    &c->check[p->check]->c, &p->asked, &p->end);
	case PROBE_REQUEST_EXEC:
		return false;	/* xlbd has begun it */
	case PROBE_REQUEST_ERROR:
		return false;	/* whoever sends */
	case PROBE_REQUEST_ICMP:
		return probe_icmp_begin(p->fd, &p->addr, p->size,
		    &p->asked, &p->end);
	default:
		return probe_tcp_begin(p->fd, &p->addr, p->port,
		    &p->end.result);
	}
}

/* A connection that was made at once may have more to do. */
static bool
is_connecting(const struct probe *p)
{
	return p->kind == PROBE_REQUEST_TCP || p->kind == PROBE_REQUEST_HTTP;
}

static void
probe_begin(struct child *c, const struct probe_request *rq, int fd)
{
	struct probe *p = row_get(c, rq->id);
	struct epoll_event ev = { 0 };

	if (p->fd >= 0)		/* xlbd never does that */
		give_up();
	p->generation = rq->generation;
	p->port = rq->port;
	memcpy(p->addr.b, rq->addr, sizeof(p->addr.b));
	p->kind = rq->kind;
	p->check = rq->check;
	p->size = rq->size;
	p->others = 0;
	p->fd = fd;
	memset(&p->end, 0, sizeof(p->end));
	p->end.result = PROBE_TIMEOUT;
	heap_put(&c->deadline, &p->deadline,
	    mono_add_ms((mono_t){ child_now(c) }, rq->timeout_ms).ns);
	if (probe_ask(c, p)) {
		if (is_connecting(p))
			probe_connected(c, p, p->end.result);
		else
			probe_ended(c, p);
		return;
	}
	ev.events = is_connecting(p) ? EPOLLOUT : EPOLLIN;
	ev.data.u64 = probe_key(p);
	if (epoll_ctl(c->ep, EPOLL_CTL_ADD, fd, &ev) < 0)
		probe_done(c, p, PROBE_LOCAL);
}

static void
request_take(struct child *c, const struct probe_request *rq, int fd)
{
	struct probe *p;

	if (rq->id >= PROBE_FLIGHTS_MAX)
		give_up();
	switch (rq->kind) {
	case PROBE_REQUEST_CANCEL:
		p = c->row[rq->id];
		if (p != NULL && p->fd >= 0 && p->generation == rq->generation)
			probe_drop(c, p);
		break;
	case PROBE_REQUEST_HTTP:
	case PROBE_REQUEST_UDP:
	case PROBE_REQUEST_DNS:
		if (rq->check >= CONF_CHECKS_MAX || c->check[rq->check] == NULL)
			give_up();
		/* FALLTHROUGH */
	case PROBE_REQUEST_TCP:
	case PROBE_REQUEST_ICMP:
	case PROBE_REQUEST_EXEC:
	case PROBE_REQUEST_ERROR:
		if (fd < 0)	/* no room for the descriptor: MSG_CTRUNC */
			answer(c, rq->id, rq->generation, &cannot);
		else
			probe_begin(c, rq, fd);
		return;
	default:
		give_up();
	}
	if (fd >= 0)
		close(fd);
}

static void
ca_take(struct probe_ca *ca, int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0 || st.st_size < 1 || st.st_size > PROBE_CA_MAX)
		give_up();
	ca->len = (size_t)st.st_size;
	ca->pem = malloc(ca->len);
	if (ca->pem == NULL ||
	    pread(fd, ca->pem, ca->len, 0) != (ssize_t)ca->len)
		give_up();
	close(fd);
}

/* Probes that are under way keep what they were asked. */
static void
check_take(struct child *c, const struct probe_check *check, int ca)
{
	struct check *at;

	if (check->slot >= CONF_CHECKS_MAX)
		give_up();
	at = c->check[check->slot];
	if (at == NULL && (at = calloc(1, sizeof(*at))) == NULL)
		give_up();
	c->check[check->slot] = at;
	at->c = *check;
	free(at->ca.pem);
	memset(&at->ca, 0, sizeof(at->ca));
	if (ca >= 0)
		ca_take(&at->ca, ca);
}

/* False: xlbd has nothing more for now. */
static bool
request_read(struct child *c)
{
	char control[CMSG_SPACE(sizeof(int))];
	union {
		struct probe_request rq;
		struct probe_check check;
	} m;
	struct iovec iov = { &m, sizeof(m) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1,
	    .msg_control = control, .msg_controllen = sizeof(control) };
	ssize_t n;

	n = recvmsg(c->sock, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0 && errno == EINTR)
		return true;
	if (n < 0 && errno == EAGAIN)
		return false;
	if (n == 0)
		_exit(0);	/* xlbd is gone */
	if (n == sizeof(m.check))
		check_take(c, &m.check, probe_fd_take(&msg));
	else if (n == sizeof(m.rq))
		request_take(c, &m.rq, probe_fd_take(&msg));
	else
		give_up();
	return true;
}

/* Something came. True: it has ended, with `p->end`. */
static bool
probe_hear(struct probe *p)
{
	switch (p->kind) {
	case PROBE_REQUEST_UDP:
		return probe_udp_end(p->fd, p->asked, &p->end);
	case PROBE_REQUEST_DNS:
		return probe_dns_end(p->fd, p->asked, &p->end);
	case PROBE_REQUEST_ICMP:
		return probe_icmp_end(p->fd, &p->addr, p->asked, &p->end);
	case PROBE_REQUEST_EXEC:
		return exec_end(p->fd, &p->end);
	case PROBE_REQUEST_ERROR:
		return probe_error_end(p->fd, &p->addr, p->port, &p->others,
		    &p->end);
	default:
		give_up();
	}
}

static void
event_do(struct child *c, const struct epoll_event *ev)
{
	uint32_t id = (uint32_t)ev->data.u64;
	struct probe *p;
	int i;

	if (id == UINT32_MAX) {
		for (i = 0; i < REQUESTS_AT_ONCE && request_read(c); i++)
			;
		return;
	}
	p = c->row[id];
	/* ended, perhaps begun anew, since epoll_wait() said so */
	if (p->fd < 0 || p->generation != ev->data.u64 >> 32)
		return;
	if (p->http != NULL)
		http_event(c->http, p->http, ev->events);
	else if (is_connecting(p))
		probe_connected(c, p, probe_tcp_end(p->fd, &p->addr, p->port));
	else if (probe_hear(p))
		probe_ended(c, p);
}

static void
probe_late(struct child *c, struct probe *p)
{
	if (p->http != NULL)
		p->end.result = http_late(p->http);
	probe_ended(c, p);
}

/* Rounded up: waking before the deadline would only spin. */
static int
wait_ms(const struct child *c)
{
	const struct heap_node *min = heap_min(&c->deadline);
	int64_t at = http_due(c->http), ns;

	if (min != NULL && min->key + c->lost < at)
		at = min->key + c->lost;
	if (at == INT64_MAX)
		return -1;
	ns = at - probe_now().ns;
	return ns <= 0 ? 0 : (int)((ns + 999999) / 1000000);
}

/*
 * As epoll_wait(). One that comes back long after its time says that we were
 * stopped, or the virtual machine was: answers were there that nobody read, and
 * what was to be asked next was not.
 */
static int
events_wait(struct child *c, struct epoll_event *ev)
{
	int ms = wait_ms(c), n;
	int64_t begun = probe_now().ns, late;

	n = epoll_wait(c->ep, ev, EVENTS, ms);
	if (ms < 0)
		return n;
	late = probe_now().ns - begun - ms * INT64_C(1000000);
	if (late > LATE_NS)
		c->lost += late;
	return n;
}

_Noreturn void
probe_child(int fd)
{
	struct epoll_event ev[EVENTS], first = { .events = EPOLLIN };
	struct child c = { .sock = fd };
	struct heap_node *min;
	int64_t now;
	int i, n;

	c.row = calloc(PROBE_FLIGHTS_MAX, sizeof(*c.row));
	c.ep = epoll_create1(EPOLL_CLOEXEC);
	first.data.u64 = UINT32_MAX;
	if (c.row == NULL || c.ep < 0 ||
	    epoll_ctl(c.ep, EPOLL_CTL_ADD, fd, &first) < 0)
		give_up();
	for (;;) {
		n = events_wait(&c, ev);
		if (n < 0 && errno != EINTR)
			give_up();
		for (i = 0; i < n; i++)
			event_do(&c, &ev[i]);
		if (http_due(c.http) <= probe_now().ns)
			http_timer(c.http);
		if (n == EVENTS)
			continue;	/* more have ended: hear them first */
		now = child_now(&c);
		while ((min = heap_min(&c.deadline)) != NULL && min->key <= now)
			probe_late(&c, HEAP_ITEM(min, struct probe, deadline));
	}
}
