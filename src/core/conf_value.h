/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One value of the configuration: its text to the field, and back. */
#ifndef XLB_CONF_VALUE_H
#define XLB_CONF_VALUE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/conf.h"

struct arena;
struct key;

#define MSEC_STR_MAX 16
#define COMMUNITY_STR_MAX 36
#define LISTEN_STR_MAX 12
#define WHY_MAX 320

/* Sets the field of `k` in the struct at `base`. 0, or -1 with what is wrong
 * in `why` ("3000 is not in 0..1000"). Types that are one text only. */
int value_parse(const struct key *k, const char *text, struct arena *a,
    void *base, char why[WHY_MAX]);

/* The text that value_parse() takes, in `a`; NULL: nobody set it. */
const char *value_print(const struct key *k, const void *base,
    struct arena *a);

/* The same of lists of texts too, with commas between (conf_print.c). */
const char *conf_key_print(const struct key *k, const void *base,
    struct arena *a);

/* Parts of values that stand in lists. 0, or -1 and why. */
int community_parse(const char *s, struct community *out, char why[WHY_MAX]);
const char *community_print(const struct community *c,
    char buf[COMMUNITY_STR_MAX]);
int listen_parse(const char *s, struct conf_listen *out, char why[WHY_MAX]);
const char *listen_print(const struct conf_listen *l,
    char buf[LISTEN_STR_MAX]);
/* KEY_ADDRS4 or KEY_ADDRS6. */
int addrs_parse(const struct key *k, const char *s, struct addr *out,
    char why[WHY_MAX]);
int codes_parse(const char *s, struct http_range *out, char why[WHY_MAX]);

const char *msec_print(uint32_t ms, char buf[MSEC_STR_MAX]);
bool name_is_valid(const char *s);

#endif
