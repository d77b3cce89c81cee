/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The process that speaks HTTP (libmicrohttpd): gives out what xlbd made, and
 * keeps clients that are slow or many from mattering to those that are not.
 */
#include <errno.h>
#include <microhttpd.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/page_text.h"
#include "io/http_wire.h"
#include "io/probe_wire.h"

#define CONNECTIONS 64
#define CROWDED 48		/* from here on the oldest gives way */
#define MEMORY 16384		/* of a connection: its request's head */
#define FDS 256			/* of the process */
#define REQUEST_MS 10000	/* from a connection, or the answer before, to the
				 * end of a request's head: then it is closed */
#define ANSWER_MS 30000		/* an answer takes no longer */
#define XLBD_MS 5000		/* nor does a document */
#define TURN_MS 500		/* deadlines are looked at so often */

enum stage { READS, WAITS, ANSWERS };

/* A client's connection; all of them are a list, the oldest first. */
struct client {
	struct client *next, **prev;
	struct MHD_Connection *c;
	int fd;
	enum stage stage;
	bool closing;		/* its socket was shut */
	enum http_document doc;	/* WAITS for this one */
	int64_t since;		/* ns, of the stage */
};

struct document {
	struct MHD_Response *response;	/* NULL: none yet */
	int64_t at;		/* ns, when it came */
	bool asked;		/* xlbd has yet to answer */
	void *map;
	size_t len;
};

static struct {
	int xlbd;
	struct MHD_Daemon *mhd;	/* NULL: does not listen */
	struct client *first, **last;
	unsigned n;
	struct document doc[HTTP_DOCUMENTS];
	struct MHD_Response *missing, *unavailable;
} me;

static const char *const content_type[HTTP_DOCUMENTS] = {
	[HTTP_METRICS] = "text/plain; version=0.0.4; charset=utf-8",
	[HTTP_PAGE] = "text/html; charset=utf-8"
};

static void
client_stage(struct client *k, enum stage stage)
{
	k->stage = stage;
	k->since = probe_now().ns;
	if (k->next == NULL)
		return;
	/* to the end of the list: it is the youngest */
	*k->prev = k->next;
	k->next->prev = k->prev;
	k->next = NULL;
	k->prev = me.last;
	*me.last = k;
	me.last = &k->next;
}

/* libmicrohttpd sees the end of the connection, and ends it. */
static void
client_close(struct client *k)
{
	if (k->closing)
		return;
	k->closing = true;
	shutdown(k->fd, SHUT_RDWR);
	if (k->stage == WAITS) {
		client_stage(k, ANSWERS);
		MHD_resume_connection(k->c);
	}
}

static struct client *
client_new(struct MHD_Connection *c)
{
	const union MHD_ConnectionInfo *fd = MHD_get_connection_info(c,
	    MHD_CONNECTION_INFO_CONNECTION_FD);
	struct client *k, *old;

	k = calloc(1, sizeof(*k));
	if (k == NULL || fd == NULL)
		_exit(1);
	k->c = c;
	k->fd = fd->connect_fd;
	k->since = probe_now().ns;
	k->prev = me.last;
	*me.last = k;
	me.last = &k->next;
	if (++me.n <= CROWDED)
		return k;
	/* one that has asked for something stays, if another does */
	for (old = me.first; old != NULL; old = old->next)
		if (old->stage == READS && !old->closing)
			break;
	if (old == NULL)
		for (old = me.first; old->closing && old->next != NULL; )
			old = old->next;
	if (old != k)
		client_close(old);
	return k;
}

static void
client_free(struct client *k)
{
	*k->prev = k->next;
	if (k->next != NULL)
		k->next->prev = k->prev;
	else
		me.last = k->prev;
	me.n--;
	free(k);
}

static void
on_connection(void *cls, struct MHD_Connection *c, void **mine,
    enum MHD_ConnectionNotificationCode what)
{
	(void)cls;
	if (what == MHD_CONNECTION_NOTIFY_STARTED)
		*mine = client_new(c);
	else if (*mine != NULL)
		client_free(*mine);
}

static void
on_completed(void *cls, struct MHD_Connection *c, void **request,
    enum MHD_RequestTerminationCode how)
{
	const union MHD_ConnectionInfo *mine = MHD_get_connection_info(c,
	    MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	(void)cls;
	(void)request;
	(void)how;
	if (mine != NULL && mine->socket_context != NULL)
		client_stage(mine->socket_context, READS);
}

/* A document that is fresh, or NULL after asking for one. */
static struct MHD_Response *
document_get(enum http_document which)
{
	struct document *d = &me.doc[which];
	struct http_wish w = { .document = which };

	if (d->response != NULL &&
	    probe_now().ns - d->at < HTTP_FRESH_MS * 1000000LL)
		return d->response;
	if (!d->asked && probe_send(me.xlbd, &w, sizeof(w), -1, 0) < 0)
		_exit(1);
	d->asked = true;
	return NULL;
}

static enum MHD_Result
answer(struct client *k, unsigned status, struct MHD_Response *r)
{
	client_stage(k, ANSWERS);
	return MHD_queue_response(k->c, status, r);
}

static enum MHD_Result
on_request(void *cls, struct MHD_Connection *c, const char *url,
    const char *method, const char *version, const char *body, size_t *len,
    void **request)
{
	const union MHD_ConnectionInfo *mine = MHD_get_connection_info(c,
	    MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	struct client *k = mine->socket_context;
	struct MHD_Response *r;
	enum http_document doc;

	(void)cls;
	(void)version;
	(void)body;
	if (*len > 0)
		return MHD_NO;	/* more than a head was sent */
	if (k->closing)
		return MHD_NO;
	if ((strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0) ||
	    (strcmp(url, "/") != 0 && strcmp(url, "/metrics") != 0))
		return answer(k, MHD_HTTP_NOT_FOUND, me.missing);
	doc = url[1] == '\0' ? HTTP_PAGE : HTTP_METRICS;
	r = document_get(doc);
	if (r != NULL)
		return answer(k, MHD_HTTP_OK, r);
	if (*request == NULL) {
		*request = k;
		k->doc = doc;
		client_stage(k, WAITS);
		MHD_suspend_connection(c);
		return MHD_YES;
	}
	return answer(k, MHD_HTTP_SERVICE_UNAVAILABLE, me.unavailable);
}

static void
header(struct MHD_Response *r, const char *name, const char *value)
{
	if (MHD_add_response_header(r, name, value) != MHD_YES)
		_exit(1);
}

static void
headers_common(struct MHD_Response *r, const char *type)
{
	header(r, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	header(r, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
	header(r, "X-Content-Type-Options", "nosniff");
}

static void
document_unmap(void *cls)
{
	struct document *d = cls;

	munmap(d->map, d->len);
	free(d);
}

static struct MHD_Response *
document_response(enum http_document which, int fd, size_t len)
{
	struct document *hold = calloc(1, sizeof(*hold));
	struct MHD_Response *r;

	if (hold == NULL)
		_exit(1);
	hold->len = len;
	hold->map = mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, 0);
	if (hold->map == MAP_FAILED)
		_exit(1);
	r = MHD_create_response_from_buffer_with_free_callback_cls(len,
	    hold->map, document_unmap, hold);
	if (r == NULL)
		_exit(1);
	headers_common(r, content_type[which]);
	if (which == HTTP_PAGE) {
		header(r, "Content-Security-Policy", PAGE_POLICY);
		header(r, "Referrer-Policy", "no-referrer");
	}
	return r;
}

static struct MHD_Response *
text_response(const char *text)
{
	union { const char *from; char *to; } u = { .from = text };
	struct MHD_Response *r = MHD_create_response_from_buffer(strlen(text),
	    u.to, MHD_RESPMEM_PERSISTENT);

	if (r == NULL)
		_exit(1);
	headers_common(r, "text/plain; charset=utf-8");
	return r;
}

/* Those that wait for a document have it, or nothing. */
static void
clients_wake(enum http_document which)
{
	struct client *k, *next;
	unsigned n = me.n;	/* the woken go to the end */

	for (k = me.first; k != NULL && n-- > 0; k = next) {
		next = k->next;
		if (k->stage != WAITS || k->doc != which)
			continue;
		client_stage(k, ANSWERS);
		MHD_resume_connection(k->c);
	}
}

static void
document_take(enum http_document which, int fd, uint64_t len)
{
	struct document *d = &me.doc[which];

	if (d->response != NULL)
		MHD_destroy_response(d->response);
	d->response = fd >= 0 && len > 0 ?
	    document_response(which, fd, (size_t)len) : NULL;
	d->at = probe_now().ns;
	d->asked = false;
	clients_wake(which);
}

/* Without a descriptor: no more. */
static void
listen_on(int fd)
{
	struct client *k;

	if (me.mhd != NULL) {
		for (k = me.first; k != NULL; k = k->next)
			if (k->stage == WAITS) {
				k->closing = true;
				k->stage = ANSWERS;
				MHD_resume_connection(k->c);
			}
		MHD_run(me.mhd);	/* none may be suspended at the end */
		MHD_stop_daemon(me.mhd);
		me.mhd = NULL;
	}
	if (fd < 0)
		return;
	me.mhd = MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0,
	    NULL, NULL, on_request, NULL,
	    MHD_OPTION_LISTEN_SOCKET, fd,
	    MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS,
	    MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)MEMORY,
	    MHD_OPTION_NOTIFY_CONNECTION, on_connection, NULL,
	    MHD_OPTION_NOTIFY_COMPLETED, on_completed, NULL,
	    MHD_OPTION_STRICT_FOR_CLIENT, 1,
	    MHD_OPTION_END);
	if (me.mhd == NULL)
		_exit(1);
}

/* Each order there is. */
static void
orders_take(void)
{
	struct http_order o;
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = { &o, sizeof(o) };
	struct msghdr msg;
	ssize_t n;
	int fd;

	for (;;) {
		memset(&msg, 0, sizeof(msg));
		msg.msg_iov = &iov;
		msg.msg_iovlen = 1;
		msg.msg_control = &control;
		msg.msg_controllen = sizeof(control);
		n = recvmsg(me.xlbd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n != sizeof(o))
			_exit(0);	/* xlbd has ended */
		fd = probe_fd_take(&msg);
		if (o.kind == HTTP_LISTEN) {
			listen_on(fd);	/* the library closes it */
			continue;
		}
		if (o.document < HTTP_DOCUMENTS)
			document_take((enum http_document)o.document, fd,
			    o.length);
		if (fd >= 0)
			close(fd);
	}
}

static int64_t
stage_ms(const struct client *k)
{
	return k->stage == WAITS ? XLBD_MS :
	    k->stage == READS ? REQUEST_MS : ANSWER_MS;
}

/* Those whose time is over. */
static void
clients_look(void)
{
	int64_t now = probe_now().ns;
	struct client *k, *next;
	unsigned n = me.n;

	for (k = me.first; k != NULL && n-- > 0; k = next) {
		next = k->next;
		if (k->closing || now - k->since < stage_ms(k) * 1000000)
			continue;
		if (k->stage == WAITS) {
			client_stage(k, ANSWERS);
			MHD_resume_connection(k->c);
		} else {
			client_close(k);
		}
	}
}

/* How long to wait for the next event. */
static int
turn_ms(void)
{
	MHD_UNSIGNED_LONG_LONG ms;

	if (me.mhd != NULL && MHD_get_timeout(me.mhd, &ms) == MHD_YES &&
	    ms < TURN_MS)
		return (int)ms;
	return me.n > 0 ? TURN_MS : -1;
}

_Noreturn void
http_child(int fd)
{
	const struct rlimit fds = { FDS, FDS };
	const union MHD_DaemonInfo *info;
	struct pollfd pfd[2];

	if (setrlimit(RLIMIT_NOFILE, &fds) < 0)
		_exit(1);
	me.xlbd = fd;
	me.last = &me.first;
	me.missing = text_response("not found: there are / and /metrics\n");
	me.unavailable = text_response("xlbd does not answer\n");
	for (;;) {
		info = me.mhd == NULL ? NULL : MHD_get_daemon_info(me.mhd,
		    MHD_DAEMON_INFO_EPOLL_FD);
		pfd[0] = (struct pollfd){ .fd = me.xlbd, .events = POLLIN };
		pfd[1] = (struct pollfd){ .events = POLLIN,
		    .fd = info == NULL ? -1 : info->epoll_fd };
		if (poll(pfd, 2, turn_ms()) < 0 && errno != EINTR)
			_exit(1);
		orders_take();
		clients_look();
		if (me.mhd != NULL)
			MHD_run(me.mhd);
	}
}
