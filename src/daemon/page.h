/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Parts of the status page; each writes row `i` of what it is about. */
#ifndef XLB_PAGE_H
#define XLB_PAGE_H

#include "daemon/document.h"

/* Rows that a list shows; what is beyond has a command. */
#define PAGE_ROWS 500
#define PAGE_CHANGES 30
#define PAGE_MEMBERS 200	/* backends of one pool */
#define PAGE_MEMBERS_ALL 1000	/* of all; then each has: */
#define PAGE_MEMBERS_LEAST 5

/* <span class="tag ..."> with a text that may be anything. */
void page_tag(FILE *out, const char *class, const char *text);
/* How long ago, as it was when the page was written. */
void page_since(FILE *out, int64_t at);
void page_more(FILE *out, size_t left, const char *command);

/* page_pools.c */
void page_pools_begin(struct document *doc);
void page_pool(struct document *doc, size_t i);
void page_pools_end(struct document *doc);

#endif
