/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The listener for metrics and the status page. HTTP is parsed in a process of
 * its own, which starts before anything else is open, as user _xlb without
 * capabilities, and ends on EOF. Documents are made by xlbd, one at most of each
 * kind in a second however many clients there are.
 */
#ifndef XLB_HTTP_H
#define XLB_HTTP_H

#include <stddef.h>
#include <systemd/sd-event.h>

#include "core/addr.h"

struct http;

enum http_document { HTTP_METRICS, HTTP_PAGE, HTTP_DOCUMENTS };
#define HTTP_FRESH_MS 1000	/* a document is given out for so long */

/* Forks the process. Before the loop and before any other descriptor is open.
 * 0, or -errno (logged). */
int http_fork(const char *user, struct http **out);

/* Attaches to the loop. `wanted`: a document is asked for; it is answered by
 * http_answer(), then or later, and not asked for again before. The process is
 * started again if it ends. 0, or -errno. */
int http_start(struct http *h, sd_event *ev,
    void (*wanted)(enum http_document doc, void *arg), void *arg);

/* Listens there from now on; `addr` NULL: nowhere. 0, or -errno: then it is
 * tried again until it succeeds, and each other reason is logged. */
int http_listen(struct http *h, const struct addr *addr, uint16_t port);

/* What was wanted. NULL: there is none. */
void http_answer(struct http *h, enum http_document doc, const char *text,
    size_t len);

void http_close(struct http *h);	/* NULL is allowed; frees the port */
pid_t http_pid(const struct http *h);	/* 0: none at the moment */

#endif
