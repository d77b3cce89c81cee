/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An http check: one request, and as much of the answer as its verdict needs. */
#include "io/probe_http.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "io/probe_tls.h"

#define HEADER_MAX 65536	/* bytes of all header lines */
#define BODY_MAX 65536		/* in which the text has to be */
#define NEVER INT64_MAX

struct http {
	CURLM *multi;
	int epoll;
	int64_t due;
	http_fn fn;
	void *arg;
};

struct http_probe {
	CURL *easy;
	struct curl_slist *header, *connect_to;
	struct http *http;
	int fd;
	bool taken;		/* fd is curl's to close */
	bool watched;		/* it is in the epoll set */
	uint64_t key;
	void *owner;
	struct probe_check check;
	bool judged;		/* `end` is the verdict, read no more */
	struct probe_end end;
	char error[CURL_ERROR_SIZE];
	size_t header_bytes;
	bool header_ended;	/* that of a final answer */
	char *body;		/* what is read of it, if a text is to be in it */
	size_t body_bytes;
};

static void
judge(struct http_probe *p, enum probe_result r, long detail)
{
	if (p->judged)
		return;
	p->judged = true;
	p->end.result = r;
	p->end.detail = (uint16_t)detail;
}

static long
status_of(const struct http_probe *p)
{
	long status = 0;

	curl_easy_getinfo(p->easy, CURLINFO_RESPONSE_CODE, &status);
	return status;
}

/* All that the status says. True if that is the verdict. */
static bool
status_judge(struct http_probe *p)
{
	long status = status_of(p);

	if (probe_status_in(p->check.drain, status))
		judge(p, PROBE_DRAIN, status);
	else if (!probe_status_in(p->check.expect, status))
		judge(p, PROBE_STATUS, status);
	else if (p->check.body[0] == '\0')
		judge(p, PROBE_OK, 0);
	return p->judged;
}

/* Anything but `size` ends the transfer: curl calls it a write error. */
static size_t
header_take(char *line, size_t one, size_t size, void *arg)
{
	struct http_probe *p = arg;

	(void)one;
	p->header_bytes += size;
	if (p->header_bytes > HEADER_MAX) {
		judge(p, PROBE_TOO_LONG, 0);
		return 0;
	}
	/* the empty line after a final status: the rest is the body */
	if ((size == 2 && memcmp(line, "\r\n", 2) == 0) ||
	    (size == 1 && line[0] == '\n')) {
		p->header_ended = status_of(p) >= 200;
		if (p->header_ended && status_judge(p))
			return 0;
	}
	return size;
}

static size_t
body_take(char *bytes, size_t one, size_t size, void *arg)
{
	struct http_probe *p = arg;
	size_t room = BODY_MAX - p->body_bytes;
	size_t n = size < room ? size : room;

	(void)one;
	if (status_judge(p))
		return 0;
	if (p->body == NULL && (p->body = malloc(BODY_MAX)) == NULL) {
		judge(p, PROBE_LOCAL, 0);
		return 0;
	}
	memcpy(p->body + p->body_bytes, bytes, n);
	p->body_bytes += n;
	if (memmem(p->body, p->body_bytes, p->check.body,
	    strlen(p->check.body)) != NULL)
		judge(p, PROBE_OK, 0);
	else if (p->body_bytes == BODY_MAX)
		judge(p, PROBE_BODY, 0);
	return p->judged ? 0 : size;
}

static enum probe_result
failure_of(struct http_probe *p, CURLcode code)
{
	long err = 0;

	switch (code) {
	case CURLE_GOT_NOTHING:
	case CURLE_PARTIAL_FILE:
		return PROBE_CLOSED;
	case CURLE_COULDNT_CONNECT:
	case CURLE_SEND_ERROR:
	case CURLE_RECV_ERROR:
		curl_easy_getinfo(p->easy, CURLINFO_OS_ERRNO, &err);
		return probe_tcp_result((int)err);
	case CURLE_OPERATION_TIMEDOUT:
		return PROBE_TIMEOUT;
	case CURLE_OUT_OF_MEMORY:	/* also said of a line of 100 kB */
		return PROBE_TOO_LONG;
	case CURLE_FAILED_INIT:
		return PROBE_LOCAL;
	default:
		return PROBE_NONSENSE;
	}
}

static void
probe_judge(struct http_probe *p, CURLcode code)
{
	if (p->judged ||
	    tls_judge(p->easy, &p->check, code, p->error, &p->end))
		return;
	if (code != CURLE_OK)
		judge(p, failure_of(p, code), 0);
	else if (!p->header_ended)
		judge(p, PROBE_CLOSED, 0);
	else if (!status_judge(p))
		judge(p, PROBE_BODY, 0);	/* ended, and it was not there */
}

static void
probe_free(struct http *h, struct http_probe *p)
{
	if (p->easy != NULL) {
		curl_multi_remove_handle(h->multi, p->easy);
		curl_easy_cleanup(p->easy);
	}
	if (!p->taken)
		close(p->fd);
	curl_slist_free_all(p->header);
	curl_slist_free_all(p->connect_to);
	free(p->body);
	free(p);
}

static void
ended_take(struct http *h)
{
	struct http_probe *p;
	struct probe_end end;
	void *owner;
	CURLMsg *m;
	int left;

	while ((m = curl_multi_info_read(h->multi, &left)) != NULL) {
		if (m->msg != CURLMSG_DONE ||
		    curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE,
		    (char **)&p) != CURLE_OK || p == NULL)
			continue;
		probe_judge(p, m->data.result);
		end = p->end;
		owner = p->owner;
		probe_free(h, p);
		h->fn(owner, &end, h->arg);
	}
}

static int
socket_watch(CURL *easy, curl_socket_t fd, int what, void *arg, void *unused)
{
	struct http *h = arg;
	struct http_probe *p = NULL;
	struct epoll_event ev = { 0 };

	(void)unused;
	curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&p);
	if (p == NULL || fd != p->fd)
		return 0;
	if (what == CURL_POLL_REMOVE) {
		if (p->watched)
			epoll_ctl(h->epoll, EPOLL_CTL_DEL, fd, NULL);
		p->watched = false;
		return 0;
	}
	ev.events = (what & CURL_POLL_IN ? EPOLLIN : 0U) |
	    (what & CURL_POLL_OUT ? EPOLLOUT : 0U);
	ev.data.u64 = p->key;
	if (epoll_ctl(h->epoll, p->watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd,
	    &ev) < 0)
		judge(p, PROBE_LOCAL, 0);	/* its deadline ends it */
	p->watched = true;
	return 0;
}

static int
timer_want(CURLM *multi, long ms, void *arg)
{
	struct http *h = arg;

	(void)multi;
	h->due = ms < 0 ? NEVER : mono_add_ms(probe_now(), ms).ns;
	return 0;
}

static curl_socket_t
socket_give(void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
	struct http_probe *p = arg;

	(void)purpose, (void)address;
	if (p->taken)		/* there is one connection, and no other */
		return CURL_SOCKET_BAD;
	p->taken = true;
	return p->fd;
}

static int
socket_is_connected(void *arg, curl_socket_t fd, curlsocktype purpose)
{
	(void)arg, (void)fd, (void)purpose;
	return CURL_SOCKOPT_ALREADY_CONNECTED;
}

struct http *
http_open(int epoll, http_fn fn, void *arg)
{
	struct http *h = calloc(1, sizeof(*h));

	/* proxies, .netrc, key logs, other certificates: none of these */
	if (h == NULL || clearenv() != 0 ||
	    curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK ||
	    (h->multi = curl_multi_init()) == NULL ||
	    curl_multi_setopt(h->multi, CURLMOPT_SOCKETFUNCTION,
	    socket_watch) != CURLM_OK ||
	    curl_multi_setopt(h->multi, CURLMOPT_SOCKETDATA, h) != CURLM_OK ||
	    curl_multi_setopt(h->multi, CURLMOPT_TIMERFUNCTION,
	    timer_want) != CURLM_OK ||
	    curl_multi_setopt(h->multi, CURLMOPT_TIMERDATA, h) != CURLM_OK) {
		free(h);
		return NULL;
	}
	h->epoll = epoll;
	h->due = NEVER;
	h->fn = fn;
	h->arg = arg;
	return h;
}

#define SET(option, value) \
	do { \
		if (curl_easy_setopt(p->easy, option, value) != CURLE_OK) \
			return -1; \
	} while (0)

static int
header_add(struct http_probe *p, const char *line)
{
	struct curl_slist *more = curl_slist_append(p->header, line);

	if (more == NULL)
		return -1;
	p->header = more;
	return 0;
}

/* The URL's host is what the certificate has to be for, and the server name if
 * it is a name; a connection to the address is there already. */
static int
url_set(struct http_probe *p, const struct addr *to, uint16_t port)
{
	char where[ADDRPORT_STR_MAX], url[sizeof(p->check.sni) + 32];
	char line[sizeof(where) + 8];
	const char *sni = p->check.sni;

	addrport_print(to, port, where);
	if (sni[0] == '\0') {
		snprintf(url, sizeof(url), "http%s://%s/",
		    p->check.tls ? "s" : "", where);
		SET(CURLOPT_URL, url);
		return 0;
	}
	snprintf(url, sizeof(url), "https://%s:%u/", sni, port);
	SET(CURLOPT_URL, url);
	snprintf(line, sizeof(line), "::%s", where);
	p->connect_to = curl_slist_append(NULL, line);
	if (p->connect_to == NULL)
		return -1;
	SET(CURLOPT_CONNECT_TO, p->connect_to);
	if (p->check.host[0] != '\0')
		return 0;
	if (port == 443)	/* as where libcurl makes it of an address */
		*strrchr(where, ':') = '\0';
	snprintf(line, sizeof(line), "Host: %s", where);
	return header_add(p, line);
}

/* Where, and what is asked. */
static int
request_set(struct http_probe *p, const struct addr *to, uint16_t port)
{
	char host[sizeof(p->check.host) + 8];

	if (url_set(p, to, port) < 0)
		return -1;
	SET(CURLOPT_REQUEST_TARGET, p->check.path);
	if (strcmp(p->check.method, "HEAD") == 0)
		SET(CURLOPT_NOBODY, 1L);
	else if (strcmp(p->check.method, "GET") != 0)
		SET(CURLOPT_CUSTOMREQUEST, p->check.method);
	if (header_add(p, "Connection: close") < 0)
		return -1;
	if (p->check.host[0] != '\0') {
		snprintf(host, sizeof(host), "Host: %s", p->check.host);
		if (header_add(p, host) < 0)
			return -1;
	}
	SET(CURLOPT_HTTPHEADER, p->header);
	SET(CURLOPT_USERAGENT, "xlb");
	SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	return 0;
}

/* How: over our socket, with no help from anywhere. */
static int
transport_set(struct http_probe *p)
{
	SET(CURLOPT_PROTOCOLS_STR, "http,https");
	SET(CURLOPT_PROXY, "");
	SET(CURLOPT_FOLLOWLOCATION, 0L);
	SET(CURLOPT_NOSIGNAL, 1L);
	SET(CURLOPT_FRESH_CONNECT, 1L);
	SET(CURLOPT_FORBID_REUSE, 1L);
	SET(CURLOPT_BUFFERSIZE, 4096L);
	/* the prober's own deadlines end probes: at most an hour */
	SET(CURLOPT_CONNECTTIMEOUT, 7200L);
	SET(CURLOPT_OPENSOCKETFUNCTION, socket_give);
	SET(CURLOPT_OPENSOCKETDATA, p);
	SET(CURLOPT_SOCKOPTFUNCTION, socket_is_connected);
	SET(CURLOPT_HEADERFUNCTION, header_take);
	SET(CURLOPT_HEADERDATA, p);
	SET(CURLOPT_WRITEFUNCTION, body_take);
	SET(CURLOPT_WRITEDATA, p);
	SET(CURLOPT_PRIVATE, p);
	SET(CURLOPT_ERRORBUFFER, p->error);
	return 0;
}

struct http_probe *
http_begin(struct http *h, int fd, const struct addr *to, uint16_t port,
    const struct probe_check *check, const struct probe_ca *ca, uint64_t key,
    void *owner)
{
	struct http_probe *p = calloc(1, sizeof(*p));

	if (p == NULL) {
		close(fd);
		return NULL;
	}
	p->http = h;
	p->fd = fd;
	p->key = key;
	p->owner = owner;
	p->check = *check;
	p->easy = curl_easy_init();
	if (p->easy == NULL || request_set(p, to, port) < 0 ||
	    transport_set(p) < 0 ||
	    (check->tls && tls_set(p->easy, check, ca) < 0) ||
	    curl_multi_add_handle(h->multi, p->easy) != CURLM_OK) {
		probe_free(h, p);
		return NULL;
	}
	return p;
}

void
http_event(struct http *h, const struct http_probe *p, uint32_t events)
{
	int what = 0, running;

	if (events & EPOLLIN)
		what |= CURL_CSELECT_IN;
	if (events & EPOLLOUT)
		what |= CURL_CSELECT_OUT;
	if (events & (EPOLLERR | EPOLLHUP))
		what |= CURL_CSELECT_ERR;
	curl_multi_socket_action(h->multi, p->fd, what, &running);
	ended_take(h);
}

int64_t
http_due(const struct http *h)
{
	return h == NULL ? NEVER : h->due;
}

void
http_timer(struct http *h)
{
	int running;

	h->due = NEVER;
	curl_multi_socket_action(h->multi, CURL_SOCKET_TIMEOUT, 0, &running);
	ended_take(h);
}

enum probe_result
http_late(const struct http_probe *p)
{
	return p->check.tls && !tls_is_up(p->easy) ? PROBE_TLS_TIMEOUT :
	    PROBE_TIMEOUT;
}

void
http_cancel(struct http *h, struct http_probe *p)
{
	probe_free(h, p);
}
