/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The completion for bash, made from the table, and what both shells ask for
 * while somebody types. */
#include <string.h>

#include "core/reason.h"
#include "ctl/command.h"
#include "io/ctl.h"

#define TYPING_MS 500

static const char head[] =
    "# SPDX-License-Identifier: GPL-2.0-or-later\n"
    "# Made by `xlb completion bash` from the table of commands; a test holds\n"
    "# it against that table.\n"
    "_xlb()\n"
    "{\n"
    "\tlocal cur prev command=\"\" i\n"
    "\tlocal -a run=(xlb)\n"
    "\n"
    "\tcur=${COMP_WORDS[COMP_CWORD]}\n"
    "\tprev=${COMP_WORDS[COMP_CWORD-1]}\n"
    "\tCOMPREPLY=()\n"
    "\tfor ((i = 1; i < COMP_CWORD; i++)); do\n"
    "\t\tcase ${COMP_WORDS[i]} in\n";

static const char tail[] =
    "\tesac\n"
    "}\n"
    "complete -F _xlb xlb\n";

static void
words_print(const char *indent, const char *words)
{
	printf("%sCOMPREPLY=($(compgen -W \"%s\" -- \"$cur\"))\n", indent,
	    words);
}

/* "--config FILE": a path follows, whatever it is called. */
static void
options_print(void)
{
	size_t i;

	fputs("\t\t", stdout);
	for (i = 0; option_table[i] != NULL; i++)
		printf("%s%.*s", i > 0 ? "|" : "",
		    (int)strcspn(option_table[i], " "), option_table[i]);
	fputs(")\n"
	    "\t\t\trun+=(\"${COMP_WORDS[i]}\" \"${COMP_WORDS[i+1]}\")\n"
	    "\t\t\t((++i == COMP_CWORD)) && {\n"
	    "\t\t\t\tcompopt -o filenames 2>/dev/null\n"
	    "\t\t\t\tCOMPREPLY=($(compgen -f -- \"$cur\"))\n"
	    "\t\t\t\treturn\n"
	    "\t\t\t}\n"
	    "\t\t\t;;\n"
	    "\t\t-*) ;;\n"
	    "\t\t*)\n"
	    "\t\t\tcommand=${COMP_WORDS[i]}\n"
	    "\t\t\tbreak\n"
	    "\t\t\t;;\n"
	    "\t\tesac\n"
	    "\tdone\n", stdout);
}

static void
commands_print(void)
{
	const struct command *c;
	size_t i;

	fputs("\tif [[ -z $command ]]; then\n"
	    "\t\tCOMPREPLY=($(compgen -W \"", stdout);
	for (c = command_table; c->name != NULL; c++)
		printf("%s%s", c == command_table ? "" : " ", c->name);
	for (i = 0; option_table[i] != NULL; i++)
		printf(" %.*s", (int)strcspn(option_table[i], " "),
		    option_table[i]);
	fputs(" --json --help --version\" -- \"$cur\"))\n"
	    "\t\treturn\n"
	    "\tfi\n", stdout);
}

/* What may be offered, as the script fills COMPREPLY. */
static const char *
offer(enum complete what)
{
	static const char *const argument[] = {
		[COMPLETE_NONE] = NULL,
		/* a directory ends with its slash, and no blank behind it */
		[COMPLETE_FILE] = "\t\tcompopt -o filenames 2>/dev/null\n"
		    "\t\tCOMPREPLY=($(compgen -f -- \"$cur\"))\n",
		[COMPLETE_OBJECT] = "\t\tCOMPREPLY=($(compgen -W \"$(\"${run[@]"
		    "}\" completion objects 2>/dev/null)\" -- \"$cur\"))\n",
		[COMPLETE_COMMAND] = "\t\tCOMPREPLY=($(compgen -W \"$(xlb "
		    "completion commands)\" -- \"$cur\"))\n",
		[COMPLETE_SERVICE] = "\t\tCOMPREPLY=($(compgen -W \"$(\"${run[@]"
		    "}\" completion services 2>/dev/null)\" -- \"$cur\"))\n",
		/* behind the last comma */
		[COMPLETE_REASON] = "\t\tCOMPREPLY=($(compgen -P \"${cur%\"$"
		    "{cur##*,}\"}\" -W \"$(xlb completion reasons)\" "
		    "-- \"${cur##*,}\"))\n",
		/* the first word behind the command */
		[COMPLETE_PROTOCOL] = "\t\t((i + 1 == COMP_CWORD)) &&\n"
		    "\t\t\tCOMPREPLY=($(compgen -W \"tcp udp\" -- "
		    "\"$cur\"))\n",
	};

	return argument[what];
}

/* The values of options, each behind its own. */
static void
values_print(const struct command *c)
{
	const struct flag_row *f;
	const char *what;

	for (f = flag_table; f->name != NULL; f++) {
		if (!(c->flags & f->flag) || f->value == NULL)
			continue;
		what = offer(f->complete);
		printf("\t\tif [[ $prev == %s ]]; then\n%s%s"
		    "\t\t\treturn\n\t\tfi\n", f->name,
		    what != NULL ? "\t" : "", what != NULL ? what : "");
	}
}

static void
command_print(const struct command *c)
{
	const struct flag_row *f;
	char flags[256] = "--json";

	for (f = flag_table; f->name != NULL; f++)
		if (c->flags & f->flag) {
			strcat(flags, " ");
			strcat(flags, f->name);
		}
	printf("\t%s)\n", c->name);
	values_print(c);
	if (offer(c->complete) == NULL) {
		words_print("\t\t", flags);
	} else {
		fputs("\t\tif [[ $cur == -* ]]; then\n", stdout);
		words_print("\t\t\t", flags);
		printf("\t\t\treturn\n\t\tfi\n%s", offer(c->complete));
	}
	fputs("\t\t;;\n", stdout);
}

static void
bash_print(void)
{
	const struct command *c;

	fputs(head, stdout);
	options_print();
	commands_print();
	fputs("\tcase $command in\n", stdout);
	for (c = command_table; c->name != NULL; c++)
		command_print(c);
	fputs(tail, stdout);
}

/* What may be drained, a word a line; nothing if nobody answers. */
static int
objects_print(const struct context *x)
{
	json_t *reply, *pools, *p, *backends;
	size_t i, j;

	puts("node");
	if (ctl_call(x->o.run_dir, "status", NULL, TYPING_MS, &reply) < 0)
		return STATUS_DONE;
	pools = json_object_get(json_object_get(reply, "result"), "pools");
	for (i = 0; i < json_array_size(pools); i++) {
		p = json_array_get(pools, i);
		backends = json_object_get(p, "backends");
		for (j = 0; j < json_array_size(backends); j++)
			printf("%s/%s\n",
			    json_string_value(json_object_get(p, "name")),
			    json_string_value(json_object_get(
			    json_array_get(backends, j), "name")));
	}
	json_decref(reply);
	return STATUS_DONE;
}

static void
reasons_print(void)
{
	int i;

	puts("new_flow\ndrop");
	for (i = 0; i < XLB_REASON_COUNT; i++)
		puts(reason_name((enum xlb_reason)i));
}

static int
services_print(const struct context *x)
{
	json_t *reply, *list;
	const char *name;
	size_t i;

	if (ctl_call(x->o.run_dir, "status", NULL, TYPING_MS, &reply) < 0)
		return STATUS_DONE;
	list = json_object_get(json_object_get(reply, "result"), "services");
	for (i = 0; i < json_array_size(list); i++) {
		name = json_string_value(json_object_get(json_array_get(list,
		    i), "name"));
		if (name != NULL)
			puts(name);
	}
	json_decref(reply);
	return STATUS_DONE;
}

int
completion_run(const struct context *x)
{
	const char *what = x->narg > 0 ? x->arg[0] : "bash";
	const struct command *c;

	if (strcmp(what, "objects") == 0)
		return objects_print(x);
	if (strcmp(what, "services") == 0)
		return services_print(x);
	if (strcmp(what, "reasons") == 0) {
		reasons_print();
		return STATUS_DONE;
	}
	if (strcmp(what, "commands") == 0) {
		for (c = command_table; c->name != NULL; c++)
			puts(c->name);
		return STATUS_DONE;
	}
	if (strcmp(what, "bash") == 0) {
		bash_print();
		return STATUS_DONE;
	}
	if (strcmp(what, "zsh") == 0) {
		zsh_print();
		return STATUS_DONE;
	}
	complain("completion: bash, zsh, commands, objects, services or "
	    "reasons");
	return STATUS_USAGE;
}
