/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The completion for zsh, made from the table. */
#include <string.h>

#include "ctl/command.h"

static const char head[] =
    "#compdef xlb\n"
    "# SPDX-License-Identifier: GPL-2.0-or-later\n"
    "# Made by `xlb completion zsh` from the table of commands; a test holds\n"
    "# it against that table.\n"
    "\n"
    "# Offers what the running node, or xlb itself, has of a kind.\n"
    "_xlb_names()\n"
    "{\n"
    "\tlocal -a names expl\n"
    "\n"
    "\tnames=(${(f)\"$(\"${run[@]}\" completion $1 2>/dev/null)\"})\n"
    "\t_wanted $1 expl $1 compadd \"${@[2,-1]}\" -a names\n"
    "}\n"
    "\n"
    "# One after the other, with commas between.\n"
    "_xlb_list()\n"
    "{\n"
    "\tlocal -a names expl\n"
    "\n"
    "\tnames=(${(f)\"$(\"${run[@]}\" completion $1 2>/dev/null)\"})\n"
    "\t_wanted $1 expl $1 _sequence compadd - $names\n"
    "}\n"
    "\n"
    "_xlb()\n"
    "{\n"
    "\tlocal curcontext=$curcontext state option\n"
    "\tlocal -a line run commands\n"
    "\tlocal -A opt_args\n"
    "\n";

static const char tail[] =
    "\tesac\n"
    "}\n"
    "\n"
    "_xlb \"$@\"\n";

/* Inside of '…', and up to an `end`. */
static void
quoted_print(const char *s, char end)
{
	for (; *s != '\0'; s++)
		if (*s == '\'')
			fputs("'\\''", stdout);
		else if (*s == end || *s == '\\')
			printf("\\%c", *s);
		else
			putchar(*s);
}

static void
commands_print(void)
{
	const struct command *c;

	puts("\tcommands=(");
	for (c = command_table; c->name != NULL; c++) {
		printf("\t\t'%s:", c->name);
		quoted_print(c->help, '\0');
		puts("'");
	}
	puts("\t)");
}

/* The options before the command, and what they say for those behind it. */
static void
options_print(void)
{
	size_t i;
	int len;

	puts("\t_arguments -C \\");
	for (i = 0; option_table[i] != NULL; i++) {
		len = (int)strcspn(option_table[i], " ");
		printf("\t    '%.*s=:%s:_files' \\\n", len, option_table[i],
		    option_table[i] + len + 1);
	}
	fputs("\t    '--json[print JSON]' \\\n"
	    "\t    '(- : *)'{-h,--help}'[show the commands]' \\\n"
	    "\t    '(- : *)--version[show the version]' \\\n"
	    "\t    '(-): :->command' '(-)*:: :->argument' && return\n"
	    "\trun=($service)\n"
	    "\tfor option in ${(k)opt_args}; do\n"
	    "\t\t[[ -z $opt_args[$option] ]] ||\n"
	    "\t\t    run+=($option=${(Q)opt_args[$option]})\n"
	    "\tdone\n"
	    "\tif [[ $state == command ]]; then\n"
	    "\t\t_describe -t commands command commands\n"
	    "\t\treturn\n"
	    "\tfi\n"
	    "\tcurcontext=${curcontext%:*}-$words[1]:\n", stdout);
}

/* How what is offered is found. */
static const char *
action(enum complete what)
{
	static const char *const actions[] = {
		[COMPLETE_NONE] = " ",
		[COMPLETE_FILE] = "_files",
		[COMPLETE_OBJECT] = "{_xlb_names objects}",
		[COMPLETE_COMMAND] = "{_xlb_names commands}",
		[COMPLETE_SERVICE] = "{_xlb_names services}",
		[COMPLETE_REASON] = "{_xlb_list reasons}",
		[COMPLETE_PROTOCOL] = "(tcp udp)",
	};

	return actions[what];
}

static void
command_print(const struct command *c)
{
	const struct flag_row *f;
	int i;

	printf("\t%s)\n\t\t_arguments", c->name);
	for (f = flag_table; f->name != NULL; f++) {
		if (!((c->flags | FLAG_JSON) & f->flag))
			continue;
		printf(" \\\n\t\t    '%s%s[", f->name,
		    f->value != NULL ? "=" : "");
		quoted_print(f->help, ']');
		putchar(']');
		if (f->value != NULL) {
			putchar(':');
			quoted_print(f->value, ':');
			printf(":%s", action(f->complete));
		}
		putchar('\'');
	}
	for (i = 1; i <= c->most; i++) {
		printf(" \\\n\t\t    '%d:%s", i, i > c->least ? ":" : "");
		quoted_print(c->args, ':');
		/* flows are typed, their protocol is one of two */
		printf(":%s'", action(i > 1 && c->complete ==
		    COMPLETE_PROTOCOL ? COMPLETE_NONE : c->complete));
	}
	puts("\n\t\t;;");
}

void
zsh_print(void)
{
	const struct command *c;

	fputs(head, stdout);
	commands_print();
	options_print();
	puts("\tcase $words[1] in");
	for (c = command_table; c->name != NULL; c++)
		command_print(c);
	fputs(tail, stdout);
}
