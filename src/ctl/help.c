/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What xlb says of itself. */
#include <string.h>

#include "core/text.h"
#include "ctl/command.h"

#define WIDTH 26		/* of the commands with what they take */
#define LINE 56			/* beside "usage: xlb [OPTION...] " */
#define SYNOPSIS_MAX 512

static const char *
flag_text(const struct flag_row *f, char buf[64])
{
	snprintf(buf, 64, "%s%s%s", f->name, f->value != NULL ? " " : "",
	    f->value != NULL ? f->value : "");
	return buf;
}

/* "diff [--exit-code] [FILE]"; what is longer than `most` in short. */
static const char *
synopsis(const struct command *c, size_t most, char buf[SYNOPSIS_MAX])
{
	const struct flag_row *f;
	char flag[64];
	size_t len;

	len = (size_t)snprintf(buf, SYNOPSIS_MAX, "%s", c->name);
	for (f = flag_table; f->name != NULL; f++)
		if (c->flags & f->flag)
			len += (size_t)snprintf(buf + len, SYNOPSIS_MAX - len,
			    f->flag == FLAG_FORCE ? " %s" : " [%s]",
			    flag_text(f, flag));
	if (len > most && c->flags != 0)
		len = (size_t)snprintf(buf, SYNOPSIS_MAX, "%s [OPTION...]",
		    c->name);
	snprintf(buf + len, SYNOPSIS_MAX - len, "%s%s",
	    c->args[0] != '\0' ? " " : "", c->args);
	return buf;
}

void
usage_print(FILE *out)
{
	char buf[SYNOPSIS_MAX];
	const struct command *c;
	size_t i;

	fputs("usage: xlb [OPTION...] COMMAND [--json] [ARGUMENT...]\n\n", out);
	for (c = command_table; c->name != NULL; c++) {
		synopsis(c, WIDTH, buf);
		if (strlen(buf) > WIDTH)	/* a line of its own */
			fprintf(out, "  %s\n  %-*s  %s\n", buf, WIDTH, "",
			    c->help);
		else
			fprintf(out, "  %-*s  %s\n", WIDTH, buf, c->help);
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
	char buf[SYNOPSIS_MAX];
	int width = 6;

	fprintf(out, "usage: xlb [OPTION...] %s\n\n%s\n",
	    synopsis(c, LINE, buf), c->help);
	for (f = flag_table; f->name != NULL; f++)
		if ((c->flags & f->flag) &&
		    (int)strlen(flag_text(f, buf)) > width)
			width = (int)strlen(buf);
	for (f = flag_table; f->name != NULL; f++)
		if ((c->flags | FLAG_JSON) & f->flag)
			fprintf(out, "  %-*s  %s\n", width,
			    flag_text(f, buf), f->help);
}

int
command_unknown(const char *name)
{
	const struct command *c;
	struct text_guess guess;
	char buf[TEXT_SHOW_MAX];

	text_guess_init(&guess, name);
	for (c = command_table; c->name != NULL; c++)
		text_guess_try(&guess, c->name);
	if (guess.best != NULL)
		complain("unknown command: %s, did you mean %s?",
		    text_show(name, buf), guess.best);
	else
		complain("unknown command: %s, see xlb help",
		    text_show(name, buf));
	return STATUS_USAGE;
}

static json_t *
command_json(const struct command *c)
{
	json_t *options = json_array();
	const struct flag_row *f;
	char buf[SYNOPSIS_MAX];

	for (f = flag_table; f->name != NULL; f++)
		if ((c->flags | FLAG_JSON) & f->flag)
			json_array_append_new(options, json_pack(
			    "{s:s, s:s?, s:s}", "name", f->name, "value",
			    f->value, "help", f->help));
	return json_pack("{s:s, s:s, s:s, s:o}", "name", c->name, "usage",
	    synopsis(c, LINE, buf), "help", c->help, "options", options);
}

/* `only`, or all. */
static int
help_json(const struct context *x, const struct command *only)
{
	json_t *list = json_array();
	const struct command *c;

	for (c = command_table; c->name != NULL; c++)
		if (only == NULL || c == only)
			json_array_append_new(list, command_json(c));
	return json_out(x, json_pack("{s:o}", "commands", list));
}

int
help_run(const struct context *x)
{
	const struct command *c = NULL;

	if (x->narg > 0) {
		c = command_find(x->arg[0]);
		if (c == NULL)
			return command_unknown(x->arg[0]);
	}
	if (x->flags & FLAG_JSON)
		return help_json(x, c);
	if (c == NULL)
		usage_print(stdout);
	else
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
