/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The bench's rows as a list in a file, if one is asked for. */
#include "bench.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static FILE *out;
static size_t rows;

int
json_open(const char *file)
{
	out = fopen(file, "w");
	if (out == NULL) {
		fprintf(stderr, "bench: %s: %s\n", file, strerror(errno));
		return -1;
	}
	fprintf(out, "[");
	return 0;
}

void
json_row(const char *name, uint32_t flows, const char *program, double ns,
    double net)
{
	if (out != NULL)
		fprintf(out, "%s\n {\"case\": \"%s\", \"flows\": %u, "
		    "\"program\": \"%s\", \"ns\": %.1f, \"net_ns\": %.1f}",
		    rows++ > 0 ? "," : "", name, flows, program, ns, net);
}

int
json_close(const char *file)
{
	if (out == NULL)
		return 0;
	fprintf(out, "\n]\n");
	if (fclose(out) == 0)
		return 0;
	fprintf(stderr, "bench: %s: %s\n", file, strerror(errno));
	return -1;
}
