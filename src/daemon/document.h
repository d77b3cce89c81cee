/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Documents for the HTTP helper, written in slices beside the loop's work: a
 * node with ten thousand backends has some megabytes of them. One that is begun
 * and whose subject changes meanwhile is begun again.
 */
#ifndef XLB_DOCUMENT_H
#define XLB_DOCUMENT_H

#include <stdbool.h>
#include <stdio.h>

#include "daemon/daemon.h"
#include "daemon/event_json.h"
#include "io/http.h"

/* A backend of a pool. */
struct doc_member {
	const struct state_pool *pool;
	size_t i;		/* of pool->member and pool->conf->backend */
};

/* One that is being written. Everything in it is good until d->epoch changes. */
struct document {
	struct daemon *d;
	FILE *out;
	char *text;
	size_t len;
	uint64_t epoch;		/* of the daemon, when it was begun */
	struct event_names *names;
	struct doc_member *member;
	size_t nmember;
	uint64_t *rate;		/* packets per second, as conf->service; NULL:
				 * not asked yet */
	size_t room;		/* for backends, on the page */
	struct log_changed *change;	/* NULL: not asked yet */
	size_t nchange;
	size_t part, row;	/* the next one to be written */
	int64_t ns;		/* spent so far */
};

/* Parts one after the other, and of each its rows. */
struct document_kind {
	size_t parts;
	size_t (*rows)(const struct document *doc, size_t part);
	void (*begin)(struct document *doc, size_t part);	/* before row 0 */
	void (*row)(struct document *doc, size_t part, size_t i);
	void (*end)(struct document *doc, size_t part);	/* NULL: nothing */
};

/* metrics_table.c */
extern const struct document_kind document_metrics;
/* page.c */
extern const struct document_kind document_page;

#endif
