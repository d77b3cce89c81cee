/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Members of the daemon's answers: one that is missing is empty, 0 or false. */
#ifndef XLB_FIELDS_H
#define XLB_FIELDS_H

#include <jansson.h>
#include <stdbool.h>

static inline const char *
text(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s != NULL ? s : "";
}

static inline long long
number(const json_t *o, const char *key)
{
	return (long long)json_integer_value(json_object_get(o, key));
}

static inline bool
yes(const json_t *o, const char *key)
{
	return json_is_true(json_object_get(o, key));
}

/* How long before `status`'s time that was, in one unit that still says
 * something. */
const char *ago(const json_t *status, const json_t *o, const char *key,
    char buf[24]);

#endif
