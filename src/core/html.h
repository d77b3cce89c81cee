/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Text as HTML, and figures for people. */
#ifndef XLB_HTML_H
#define XLB_HTML_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Any bytes as text or as a value in double quotes: markup is escaped, what is
 * not UTF-8 or a control character becomes U+FFFD. */
void html_text(FILE *out, const char *s);

#define HTML_NUMBER_MAX 16
/* 999, 1.23k, 45.6M: three digits. Returns `buf`. */
const char *html_number(uint64_t n, char buf[HTML_NUMBER_MAX]);
/* "12 s", "3 min", "5 h", "2 d": what has passed, ns. */
const char *html_ago(int64_t ns, char buf[HTML_NUMBER_MAX]);

/* A bar as an image: `part` of `all`. */
void html_bar(FILE *out, uint64_t part, uint64_t all);
/* A line as an image, the oldest value first; there is room for `all`. */
void html_spark(FILE *out, const uint32_t *value, size_t n, size_t all);

#endif
