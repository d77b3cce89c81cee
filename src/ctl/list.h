/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A command that asks the daemon for something and shows it as lines. */
#ifndef XLB_LIST_H
#define XLB_LIST_H

#include <jansson.h>
#include <stdbool.h>

struct context;
struct grid;

#define LIST_MS 10000

/* What a command shows: of the answer to `request`, as JSON and as lines. */
struct list {
	const char *request;
	int timeout_ms;
	json_t *(*json)(const json_t *result);
	void (*print)(const json_t *result, bool colour);
};

/* The exit status; `args` is stolen. */
int list_ask(const struct context *x, const struct list *l, json_t *args);
int list_run(const struct context *x, const struct list *l);
/* To standard output; frees it. */
void list_end(struct grid *g, bool colour);

#endif
