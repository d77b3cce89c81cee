/* SPDX-License-Identifier: GPL-2.0-or-later */
/* TLS in the prober: what libcurl is told of it, and what its errors mean. */
#ifndef XLB_PROBE_TLS_H
#define XLB_PROBE_TLS_H

#include <curl/curl.h>

#include "io/probe_wire.h"

/* 0, or -1. `ca`: those of the check, if it has any. */
int tls_set(CURL *easy, const struct probe_check *check,
    const struct probe_ca *ca);
/* The handshake has ended well. */
bool tls_is_up(CURL *easy);
/* `code` is an error of TLS: how the probe ended. `error`: libcurl's words.
 * False: it is another one. */
bool tls_judge(CURL *easy, const struct probe_check *check, CURLcode code,
    const char *error, struct probe_end *end);

#endif
