/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One turn of one target: its socket, and the request to the prober. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "io/log.h"
#include "io/probe_private.h"

#define BUSY_MS 50		/* until a command's turn is looked for again */
#define RETRY_MS 10		/* after the kernel was short of something */
#define PATH_RETRY_MS 5000	/* where a path cannot be asked now */

/* Probes of targets that are gone end before their timeout. */
void
cancel_send(struct prober *p)
{
	struct probe_request rq;
	uint32_t id;

	while (p->sock >= 0 && !p->full && (id = p->cancel) != NONE) {
		memset(&rq, 0, sizeof(rq));
		rq.kind = PROBE_REQUEST_CANCEL;
		rq.id = id;
		rq.generation = p->flight[id].generation;
		if (probe_send(p->sock, &rq, sizeof(rq), -1, MSG_DONTWAIT) < 0) {
			p->full = true;	/* or gone: EPOLLHUP says so */
			return;
		}
		p->cancel = p->flight[id].next;
		flight_free(p, id);
	}
}

/* Nothing, if it has none or the prober knows it. 0, or -errno. */
static int
check_send(struct prober *p, const struct target *t)
{
	struct probe_checks *c = &p->checks;

	if (t->slot >= c->n || c->sent[t->slot])
		return 0;
	return probe_checks_send(c, t->slot, p->sock);
}

/* What is connected to. */
static const struct addr *
target_peer(const struct target *t)
{
	return addr_is_zero(&t->vip) ? &t->addr : &t->vip;
}

static int
request_send(struct prober *p, const struct target *t, uint32_t id, int fd)
{
	struct probe_request rq;
	int rc = check_send(p, t);

	if (rc < 0)
		return rc;

	memset(&rq, 0, sizeof(rq));
	rq.id = id;
	rq.generation = p->flight[id].generation;
	rq.kind = t->kind;
	rq.check = t->slot;
	memcpy(rq.addr, target_peer(t)->b, sizeof(rq.addr));
	rq.port = t->port;
	rq.timeout_ms = t->timeout_ms;
	rq.size = t->size;
	return probe_send(p->sock, &rq, sizeof(rq), fd, MSG_DONTWAIT);
}

/* A descriptor, or -errno. */
static int
target_socket(const struct prober *p, const struct target *t)
{
	const struct addr *peer = target_peer(t);
	int fd, rc;

	if (t->fd >= 0) {
		fd = fcntl(t->fd, F_DUPFD_CLOEXEC, 0);
		return fd < 0 ? -errno : fd;
	}
	if (t->kind == PROBE_REQUEST_EXEC)
		return p->commands == PROBE_COMMANDS_MAX ? -EAGAIN :
		    exec_begin(&p->launcher, p->checks.order[t->slot],
		    &t->addr, t->port, t->timeout_ms);

	fd = probe_socket((enum probe_request_kind)t->kind, peer);
	if (fd < 0 || addr_is_zero(&t->vip))
		return fd;
	rc = probe_socket_mark(fd, t->mark, &t->src);
	if (rc == 0 && t->size != 0)
		rc = probe_socket_whole(fd, peer);
	if (rc < 0) {
		close(fd);
		return rc;
	}
	return fd;
}

/* False: not now. */
static bool
path_turn(const struct prober *p, struct target *t)
{
	struct path_question q;

	if (!p->path_ask(t->index, &q, p->arg))
		return false;
	t->vip = q.vip;
	t->src = q.src;
	t->mark = q.mark;
	t->size = q.size;
	return true;
}

/* False: no more for now. */
bool
target_probe(struct prober *p, struct target *t, int64_t now)
{
	static const struct probe_end local = { .result = PROBE_LOCAL };
	uint32_t id;
	int fd, rc;

	if (t->path && !path_turn(p, t)) {
		heap_put(&p->due, &t->node, now + PATH_RETRY_MS * MSEC);
		return true;
	}
	if (!addr_is_zero(&t->vip) && t->mark == 0) {
		target_next(p, t, now);
		return true;
	}
	id = flight_new(p);
	if (id == NONE) {
		if (!p->warned)
			log_warnx("prober: %u probes in flight, which is the "
			    "limit (LimitNOFILE): others wait", p->flights_max);
		p->warned = true;
		return false;
	}
	fd = probe_checks_fit(&p->checks, t->slot) ? target_socket(p, t) :
	    -ENOENT;
	if (fd == -EAGAIN) {	/* others have their turn */
		flight_free(p, id);
		heap_put(&p->due, &t->node, now + BUSY_MS * MSEC);
		return true;
	}
	if (fd < 0) {
		flight_free(p, id);
		p->took = 0;
		target_ended(p, t, &local);
		return true;
	}
	rc = request_send(p, t, id, fd);
	close(fd);
	if (rc < 0) {
		flight_free(p, id);
		if (rc == -EAGAIN || rc == -EPIPE || rc == -ECONNRESET)
			p->full = true;		/* epoll tells what it is */
		else
			p->retry_at = now + RETRY_MS * MSEC;
		return false;
	}
	p->flight[id].target = t;
	t->flight = id;
	t->commanded = t->kind == PROBE_REQUEST_EXEC;
	p->commands += t->commanded;
	heap_del(&p->due, &t->node);
	t->asked_ms = t->timeout_ms;
	heap_put(&p->overdue, &t->node,
	    now + ((int64_t)t->timeout_ms + OVERDUE_MS) * MSEC);
	return true;
}
