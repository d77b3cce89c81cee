/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What xlb says of itself. */
#include <stdlib.h>
#include <string.h>

#include "ctl/command.h"

/* "diff [FILE] [--exit-code]" */
static void
synopsis_print(const struct command *c, FILE *out)
{
	const struct flag_row *f;

	fputs(c->name, out);
	for (f = flag_table; f->name != NULL; f++)
		if ((c->flags & f->flag) && f->built)
			fprintf(out, f->flag == FLAG_FORCE ? " %s" : " [%s]",
			    f->name);
	if (c->args[0] != '\0')
		fprintf(out, " %s", c->args);
}

void
usage_print(FILE *out)
{
	const struct command *c;
	char *text;
	size_t len, i;
	FILE *f;

	fputs("usage: xlb [OPTION...] COMMAND [--json] [ARGUMENT...]\n\n", out);
	for (c = command_table; c->name != NULL; c++) {
		f = open_memstream(&text, &len);
		if (f == NULL)
			return;
		synopsis_print(c, f);
		fclose(f);
		fprintf(out, "  %-25s  %s\n", text, c->help);
		free(text);
	}
	fputs("\noptions:\n", out);
	for (i = 0; option_table[i] != NULL; i++)
		if (i % 3 == 2 || option_table[i + 1] == NULL)
			fprintf(out, "  %s\n", option_table[i]);
		else
			fprintf(out, "  %-18s", option_table[i]);
}

void
help_print(const struct command *c, FILE *out)
{
	const struct flag_row *f;

	fputs("usage: xlb [OPTION...] ", out);
	synopsis_print(c, out);
	fprintf(out, "\n\n%s\n", c->help);
	for (f = flag_table; f->name != NULL; f++)
		if ((c->flags | FLAG_JSON) & f->flag && f->built)
			fprintf(out, "  %-12s  %s\n", f->name, f->help);
}

int
help_run(const struct context *x)
{
	const struct command *c;

	if (x->narg == 0) {
		usage_print(stdout);
		return STATUS_DONE;
	}
	c = command_find(x->arg[0]);
	if (c == NULL) {
		complain("unknown command: %s", x->arg[0]);
		return STATUS_USAGE;
	}
	help_print(c, stdout);
	return STATUS_DONE;
}

int
version_run(const struct context *x)
{
	if (x->flags & FLAG_JSON)
		return json_out(x, json_pack("{s:s}", "version",
		    PACKAGE_VERSION));
	printf("xlb %s\n", PACKAGE_VERSION);
	return STATUS_DONE;
}
