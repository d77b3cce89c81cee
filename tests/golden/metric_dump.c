/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table of metrics, one a line, for the tests of manual and alerts. */
#include <stdio.h>

#include "core/metric.h"

int
main(void)
{
	const struct metric_row *row;
	size_t i, k;

	for (i = 0; i < METRIC_COUNT; i++) {
		row = metric_get((enum metric)i);
		printf("%s\t%s\t%s\t", row->name, metric_type_text(row->type),
		    row->help);
		for (k = 0; row->label[k] != NULL; k++)
			printf("%s%s", k > 0 ? "," : "", row->label[k]);
		printf("\n");
	}
	return fflush(stdout) != 0;
}
