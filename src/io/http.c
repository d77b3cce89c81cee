/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The HTTP helper as xlbd sees it: its socket, its process, its wishes. */
#include "io/http.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/arena.h"
#include "io/http_wire.h"
#include "io/log.h"
#include "io/probe_wire.h"

#define RESTART_US (1000 * 1000ULL)	/* between starts of the process */
#define LISTEN_AGAIN_US (100 * 1000ULL)	/* doubled up to this many times: */
#define LISTEN_AGAIN_MAX 6
#define BACKLOG 64

/* How far a document is. */
enum wish { WISH_NONE, WISH_WAITS, WISH_TOLD };

struct http {
	struct spawner spawner;
	sd_event *ev;
	sd_event_source *spawner_io, *spawner_end, *sock_io, *restart, *again;
	void (*wanted)(enum http_document doc, void *arg);
	void *arg;

	int sock;		/* to the helper; -1: none */
	pid_t pid;		/* 0: not known (yet) */
	int64_t started;	/* ns */

	struct addr addr;	/* where to listen */
	uint16_t port;		/* 0: nowhere */
	int listener;		/* -1: none (yet) */
	int refused, warned;	/* why not: -errno; 0. The last one, the last
				 * one in the log */
	unsigned tries;

	struct {
		enum wish wish;
		int64_t answered;	/* ns */
		sd_event_source *timer;	/* WISH_WAITS: its time */
	} doc[HTTP_DOCUMENTS];
};

static int helper_begin(struct http *h);

static void helper_lost(struct http *h, const char *why);

static void
order_send(struct http *h, const struct http_order *o, int fd)
{
	if (h->sock >= 0 && probe_send(h->sock, o, sizeof(*o), fd,
	    MSG_DONTWAIT) < 0)
		helper_lost(h, "hangs");
}

static void
listener_send(struct http *h)
{
	struct http_order o = { .kind = HTTP_LISTEN };

	order_send(h, &o, h->listener);
}

static void
timer_ask(struct http *h, sd_event_source **s, uint64_t usec,
    sd_event_time_handler_t fn, void *arg)
{
	int rc = 0;

	if (*s == NULL)
		rc = sd_event_add_time_relative(h->ev, s, CLOCK_MONOTONIC, usec,
		    1000, fn, arg);
	else
		rc = sd_event_source_set_time_relative(*s, usec);
	if (rc >= 0)
		rc = sd_event_source_set_enabled(*s, SD_EVENT_ONESHOT);
	if (rc < 0)
		fatalx("http: %s", strerror(-rc));
}

static void
wish_tell(struct http *h, size_t doc)
{
	h->doc[doc].wish = WISH_TOLD;
	h->wanted((enum http_document)doc, h->arg);
}

static int
on_wish_due(sd_event_source *s, uint64_t usec, void *arg)
{
	struct http *h = arg;
	size_t i;

	(void)usec;
	for (i = 0; i < HTTP_DOCUMENTS; i++)
		if (h->doc[i].timer == s && h->doc[i].wish == WISH_WAITS)
			wish_tell(h, i);
	return 0;
}

/* One that asks sooner than it may only waits. */
static void
wish_take(struct http *h, size_t doc)
{
	int64_t ms = (probe_now().ns - h->doc[doc].answered) / 1000000;

	if (h->doc[doc].answered == 0 || ms >= HTTP_FRESH_MS) {
		wish_tell(h, doc);
		return;
	}
	h->doc[doc].wish = WISH_WAITS;
	timer_ask(h, &h->doc[doc].timer,
	    (uint64_t)(HTTP_FRESH_MS - ms) * 1000, on_wish_due, h);
}

static int
on_restart(sd_event_source *s, uint64_t usec, void *arg)
{
	struct http *h = arg;

	(void)s;
	(void)usec;
	if (h->sock < 0 && helper_begin(h) < 0)
		timer_ask(h, &h->restart, RESTART_US, on_restart, h);
	return 0;
}

static void
helper_lost(struct http *h, const char *why)
{
	size_t i;

	if (h->sock < 0)
		return;
	log_warnx("http: %s, is started again", why);
	h->sock_io = sd_event_source_disable_unref(h->sock_io);
	close(h->sock);
	h->sock = -1;
	h->pid = 0;
	for (i = 0; i < HTTP_DOCUMENTS; i++)
		if (h->doc[i].wish == WISH_WAITS)
			h->doc[i].wish = WISH_NONE;
	timer_ask(h, &h->restart, RESTART_US, on_restart, h);
}

static int
on_sock(sd_event_source *s, int fd, uint32_t events, void *arg)
{
	struct http *h = arg;
	struct http_wish w;
	ssize_t n;

	(void)s;
	(void)events;
	n = recv(fd, &w, sizeof(w), MSG_DONTWAIT | MSG_TRUNC);
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return 0;
	if (n <= 0)
		helper_lost(h, "ended");
	else if (n != sizeof(w) || w.document >= HTTP_DOCUMENTS ||
	    h->doc[w.document].wish != WISH_NONE)
		helper_lost(h, "sent nonsense");
	else
		wish_take(h, w.document);
	return 0;
}

static int
on_spawner(sd_event_source *s, int fd, uint32_t events, void *arg)
{
	struct http *h = arg;
	struct probe_spawned said;

	(void)events;
	if (recv(fd, &said, sizeof(said), MSG_DONTWAIT) != sizeof(said)) {
		/* its end is heard of through its pidfd */
		sd_event_source_set_enabled(s, SD_EVENT_OFF);
		return 0;
	}
	h->pid = said.pid;
	if (said.err != 0)
		log_warnx("http: fork: %s", strerror(said.err));
	return 0;
}

static int
on_spawner_end(sd_event_source *s, int fd, uint32_t events, void *arg)
{
	struct http *h = arg;

	(void)s;
	(void)fd;
	(void)events;
	h->spawner_io = sd_event_source_disable_unref(h->spawner_io);
	h->spawner_end = sd_event_source_disable_unref(h->spawner_end);
	spawner_reap(&h->spawner);
	helper_lost(h, "its spawner ended");
	return 0;
}

static int
spawner_watch(struct http *h)
{
	int rc;

	rc = sd_event_add_io(h->ev, &h->spawner_io, h->spawner.fd, EPOLLIN,
	    on_spawner, h);
	if (rc < 0)
		return rc;
	return sd_event_add_io(h->ev, &h->spawner_end, h->spawner.pidfd,
	    EPOLLIN, on_spawner_end, h);
}

/* 0, or -errno (logged). */
static int
helper_begin(struct http *h)
{
	int rc;

	if (h->spawner.pid == 0) {
		rc = spawner_start(&h->spawner);
		if (rc < 0)
			return rc;
		rc = spawner_watch(h);
		if (rc < 0)
			fatalx("http: %s", strerror(-rc));
	}
	h->sock = spawner_helper(&h->spawner);
	if (h->sock < 0) {
		rc = h->sock;
		log_warnx("http: %s", strerror(-rc));
		h->sock = -1;
		spawner_kill(&h->spawner);	/* hangs: its queue is full */
		return rc;
	}
	rc = sd_event_add_io(h->ev, &h->sock_io, h->sock, EPOLLIN, on_sock, h);
	if (rc < 0)
		fatalx("http: %s", strerror(-rc));
	if (h->listener >= 0)
		listener_send(h);
	return 0;
}

int
http_fork(const char *user, struct http **out)
{
	struct http *h = must_calloc(1, sizeof(*h));
	int rc;

	h->sock = h->listener = -1;
	rc = spawner_init(&h->spawner, "http", http_child, user);
	if (rc == 0)
		rc = spawner_start(&h->spawner);
	if (rc < 0) {
		free(h);
		return rc;
	}
	*out = h;
	return 0;
}

int
http_start(struct http *h, sd_event *ev,
    void (*wanted)(enum http_document doc, void *arg), void *arg)
{
	int rc;

	h->ev = sd_event_ref(ev);
	h->wanted = wanted;
	h->arg = arg;
	rc = spawner_watch(h);
	return rc < 0 ? rc : helper_begin(h);
}

/* A socket, or -errno. */
static int
listener_open(const struct addr *addr, uint16_t port)
{
	struct sockaddr_storage ss;
	socklen_t len = addr_sockaddr(addr, port, &ss);
	int fd, one = 1, rc;

	fd = socket(addr_family(addr), SOCK_STREAM | SOCK_CLOEXEC |
	    SOCK_NONBLOCK, IPPROTO_TCP);
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (addr_family(addr) == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&ss, len) < 0 ||
	    listen(fd, BACKLOG) < 0) {
		rc = -errno;
		close(fd);
		return rc;
	}
	return fd;
}

/* The helper has it, too, for a moment: the port is free at once. */
static void
listener_close(struct http *h)
{
	int fd = h->listener;

	if (fd < 0)
		return;
	h->listener = -1;
	listener_send(h);
	shutdown(fd, SHUT_RDWR);
	close(fd);
}

static int on_listen_again(sd_event_source *s, uint64_t usec, void *arg);

static int
listen_try(struct http *h)
{
	char where[ADDRPORT_STR_MAX];
	int fd;

	fd = listener_open(&h->addr, h->port);
	if (fd >= 0) {
		h->listener = fd;
		listener_send(h);
		log_info("metrics.listen: %s", addrport_print(&h->addr,
		    h->port, where));
		h->refused = h->warned = 0;
		return 0;
	}
	h->refused = fd;
	/* where an earlier xlbd was killed, its helper has it for a moment */
	if (fd != h->warned && h->tries > 2) {
		log_warnx("metrics.listen: %s: %s: is tried again",
		    addrport_print(&h->addr, h->port, where), strerror(-fd));
		h->warned = fd;
	}
	timer_ask(h, &h->again, LISTEN_AGAIN_US << (h->tries <
	    LISTEN_AGAIN_MAX ? h->tries++ : LISTEN_AGAIN_MAX), on_listen_again,
	    h);
	return fd;
}

static int
on_listen_again(sd_event_source *s, uint64_t usec, void *arg)
{
	struct http *h = arg;

	(void)s;
	(void)usec;
	if (h->listener < 0 && h->port != 0)
		listen_try(h);
	return 0;
}

int
http_listen(struct http *h, const struct addr *addr, uint16_t port)
{
	static const struct addr none;

	if (addr == NULL) {
		addr = &none;
		port = 0;
	}
	if (port == h->port && addr_cmp(addr, &h->addr) == 0)
		return h->port == 0 || h->listener >= 0 ? 0 : h->refused;
	listener_close(h);
	h->addr = *addr;
	h->port = port;
	h->tries = 0;
	h->refused = h->warned = 0;
	return port != 0 ? listen_try(h) : 0;
}

/* A sealed memory file with these bytes, or -errno. */
static int
document_file(const char *text, size_t len)
{
	int fd = memfd_create("xlb-document", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	size_t at = 0;
	ssize_t n;
	int rc;

	if (fd < 0)
		return -errno;
	while (at < len) {
		n = write(fd, text + at, len - at);
		if (n < 0 && errno != EINTR)
			goto fail;
		if (n > 0)
			at += (size_t)n;
	}
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE |
	    F_SEAL_SEAL) == 0)
		return fd;
fail:
	rc = -errno;
	close(fd);
	return rc;
}

void
http_answer(struct http *h, enum http_document doc, const char *text,
    size_t len)
{
	struct http_order o = { .kind = HTTP_DOCUMENT, .document = doc,
	    .length = len };
	int fd = -1;

	if (h->doc[doc].wish != WISH_TOLD)
		return;
	h->doc[doc].wish = WISH_NONE;
	h->doc[doc].answered = probe_now().ns;
	if (text != NULL) {
		fd = document_file(text, len);
		if (fd < 0)
			log_warnx("http: %s", strerror(-fd));
	}
	if (fd < 0)
		o.length = 0;
	order_send(h, &o, fd);
	if (fd >= 0)
		close(fd);
}

void
http_close(struct http *h)
{
	size_t i;

	if (h == NULL)
		return;
	listener_close(h);
	sd_event_source_disable_unref(h->spawner_io);
	sd_event_source_disable_unref(h->spawner_end);
	sd_event_source_disable_unref(h->sock_io);
	sd_event_source_disable_unref(h->restart);
	sd_event_source_disable_unref(h->again);
	for (i = 0; i < HTTP_DOCUMENTS; i++)
		sd_event_source_disable_unref(h->doc[i].timer);
	sd_event_unref(h->ev);
	if (h->sock >= 0)
		close(h->sock);
	spawner_close(&h->spawner);
	free(h);
}

pid_t
http_pid(const struct http *h)
{
	return h->pid;
}
