/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * HTTP(S) in the prober: one question over a connection that is made already, by
 * libcurl's multi interface on the prober's epoll set. Nothing is resolved,
 * followed, kept open or taken from the environment.
 */
#ifndef XLB_PROBE_HTTP_H
#define XLB_PROBE_HTTP_H

#include "io/probe_wire.h"

struct http;			/* all of them */
struct http_probe;		/* one */

/* Called once per probe, from within http_event() or http_timer() only; the
 * probe and its socket are gone then. */
typedef void (*http_fn)(void *owner, const struct probe_end *end, void *arg);

struct http *http_open(int epoll, http_fn fn, void *arg);	/* NULL: cannot */

/* Takes `fd`, connected and in no epoll set, which will be watched under `key`.
 * NULL: cannot; `fd` is closed. `ca`: see tls_set(). */
struct http_probe *http_begin(struct http *h, int fd, const struct addr *to,
    uint16_t port, const struct probe_check *check, const struct probe_ca *ca,
    uint64_t key, void *owner);
/* epoll said so of the probe's socket. */
void http_event(struct http *h, const struct http_probe *p, uint32_t events);
/* When http_timer() is due: ns of probe_now(), INT64_MAX: never. */
int64_t http_due(const struct http *h);
void http_timer(struct http *h);
/* Its time is up: with what. */
enum probe_result http_late(const struct http_probe *p);
void http_cancel(struct http *h, struct http_probe *p);

#endif
