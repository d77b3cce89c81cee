/* SPDX-License-Identifier: GPL-2.0-or-later */
/* xlb: options, then a command of the table. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/command.h"
#include "io/log.h"

enum { OPT_HELP = OPT_OWN, OPT_VERSION, OPT_JSON };

static const struct option long_options[] = {
	OPTIONS_LONG,
	{ "help", no_argument, NULL, OPT_HELP },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ "json", no_argument, NULL, OPT_JSON },
	{ NULL, 0, NULL, 0 }
};

/* "--count" and "--count=3" alike. */
static const struct flag_row *
flag_find(const char *arg)
{
	const struct flag_row *f;
	size_t len;

	for (f = flag_table; f->name != NULL; f++) {
		len = strlen(f->name);
		if (strncmp(f->name, arg, len) == 0 && (arg[len] == '\0' ||
		    (arg[len] == '=' && f->value != NULL)))
			return f;
	}
	return NULL;
}

/* What the option takes: behind '=', or the next argument. */
static int
flag_take_value(struct context *x, const struct flag_row *f, const char *arg,
    char *next, int *used)
{
	const char *value = strchr(arg, '=');

	if (value != NULL) {
		value++;
	} else if (next != NULL) {
		value = next;
		*used = 2;
	} else {
		complain("%s %s wants an argument: %s", x->command->name,
		    f->name, f->value);
		return STATUS_USAGE;
	}
	if (flag_value(x, f->flag) != NULL) {
		complain("%s %s is given twice", x->command->name, f->name);
		return STATUS_USAGE;
	}
	x->value[__builtin_ctz(f->flag)] = value;
	return 0;
}

static int
flag_unknown(const struct context *x, const char *arg)
{
	size_t i, len;

	for (i = 0; option_table[i] != NULL; i++) {
		len = strcspn(option_table[i], " ");
		if (strncmp(arg, option_table[i], len) == 0 &&
		    (arg[len] == '\0' || arg[len] == '=')) {
			complain("%.*s goes before the command", (int)len, arg);
			return STATUS_USAGE;
		}
	}
	complain("%s has no option %s, see xlb help %s", x->command->name, arg,
	    x->command->name);
	return STATUS_USAGE;
}

/* One option behind the command: 0, or the exit status. `*used` of the
 * arguments. */
static int
flag_take(struct context *x, const char *arg, char *next, int *used)
{
	const struct flag_row *f = flag_find(arg);

	*used = 1;
	if (f == NULL || !((x->command->flags | FLAG_JSON) & f->flag))
		return flag_unknown(x, arg);
	x->flags |= f->flag;
	return f->value == NULL ? 0 : flag_take_value(x, f, arg, next, used);
}

/* Sorts what is behind the command into options and arguments. */
static int
arguments_take(struct context *x, int argc, char **argv)
{
	int i, rc, used;
	bool options = true;

	x->arg = argv;		/* arguments move to its front */
	for (i = 0; i < argc; i += used) {
		used = 1;
		if (options && strcmp(argv[i], "--") == 0) {
			options = false;
		} else if (options && argv[i][0] == '-' && argv[i][1] != '\0') {
			rc = flag_take(x, argv[i],
			    i + 1 < argc ? argv[i + 1] : NULL, &used);
			if (rc != 0)
				return rc;
		} else {
			x->arg[x->narg++] = argv[i];
		}
	}
	if (x->narg < x->command->least) {
		complain("%s wants an argument: %s", x->command->name,
		    x->command->args);
		return STATUS_USAGE;
	}
	if (x->narg > x->command->most) {
		complain("%s: too many arguments, see xlb help %s",
		    x->command->name, x->command->name);
		return STATUS_USAGE;
	}
	return 0;
}

/* What was not shown was not done: a full disk, a terminal that went away. */
static int
output_end(int status)
{
	errno = 0;
	if (fflush(stdout) != EOF && !ferror(stdout))
		return status;
	complain("standard output: %s", errno != 0 ? strerror(errno) :
	    "not all was written");
	return status == STATUS_DONE ? STATUS_FAILED : status;
}

static int
command_run(struct context *x, int argc, char **argv)
{
	static const struct command completion = { .name = "completion",
	    .args = "", .most = 1, .help = "", .run = completion_run };
	int rc;

	x->command = command_find(argv[0]);
	if (x->command == NULL && strcmp(argv[0], completion.name) == 0)
		x->command = &completion;
	if (x->command == NULL)
		return command_unknown(argv[0]);
	rc = arguments_take(x, argc - 1, argv + 1);
	return rc != 0 ? rc : x->command->run(x);
}

int
main(int argc, char *argv[])
{
	struct context x = { .o = OPTIONS_INIT };
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
	int opt;

	log_init("xlb", false);
	x.terminal = isatty(STDOUT_FILENO);
	x.colour = x.terminal && (no_color == NULL || *no_color == '\0') &&
	    term != NULL && strcmp(term, "dumb") != 0;
	while ((opt = getopt_long(argc, argv, "+h", long_options, NULL)) != -1) {
		if (options_take(&x.o, opt, optarg) == 0)
			continue;
		switch (opt) {
		case OPT_JSON:
			x.flags |= FLAG_JSON;
			break;
		case OPT_VERSION:
			return output_end(version_run(&x));
		case 'h':
		case OPT_HELP:
			usage_print(stdout);
			return output_end(STATUS_DONE);
		default:
			return STATUS_USAGE;
		}
	}
	if (optind == argc) {
		usage_print(stderr);
		return STATUS_USAGE;
	}
	return output_end(command_run(&x, argc - optind, argv + optind));
}
