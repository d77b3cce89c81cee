/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Text that came from elsewhere, as JSON. */
#include <stdlib.h>
#include <string.h>

#include "io/ctl.h"
#include "io/log.h"

json_t *
ctl_text(const char *text)
{
	json_t *t = json_string(text);
	char *copy, *p;

	if (t != NULL)
		return t;
	copy = strdup(text);
	if (copy == NULL)
		fatal("out of memory");
	for (p = copy; *p != '\0'; p++)
		if (*p & 0x80)
			*p = '?';
	t = json_string(copy);
	free(copy);
	return t;
}
