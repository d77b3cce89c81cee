/* SPDX-License-Identifier: GPL-2.0-or-later */
/* xlbd's options; its helpers are forked here, before anything else is open. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/daemon.h"
#include "io/log.h"

enum { OPT_DEBUG = OPT_OWN, OPT_PREFLIGHT, OPT_VERSION, OPT_HELP };

static const struct option long_options[] = {
	OPTIONS_LONG,
	{ "debug", no_argument, NULL, OPT_DEBUG },
	{ "preflight", optional_argument, NULL, OPT_PREFLIGHT },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ "help", no_argument, NULL, OPT_HELP },
	{ 0 }
};

static void
usage(FILE *out)
{
	fprintf(out, "usage: xlbd [--config FILE] [--run-dir DIR] "
	    "[--bpf-dir DIR] [--state-dir DIR]\n"
	    "            [--bird-dir DIR] [--bird-socket PATH] [--debug] "
	    "[--preflight[=restart]]\n"
	    "            [--version] [--help]\n");
}

struct command {
	struct options opt;
	int (*question)(const struct options *opt);	/* NULL: none */
	bool debug;
};

/* -1: go on; else the exit status. */
static int
command_parse(int argc, char **argv, struct command *cmd)
{
	int c;

	while ((c = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
		switch (c) {
		case OPT_DEBUG:
			cmd->debug = true;
			break;
		case OPT_PREFLIGHT:
			cmd->question = optarg == NULL ? preflight :
			    strcmp(optarg, "restart") == 0 ?
			    preflight_restart : NULL;
			if (cmd->question != NULL)
				break;
			fprintf(stderr, "xlbd: --preflight=%s: not one of: "
			    "restart\n", optarg);
			usage(stderr);
			return EXIT_USAGE;
		case OPT_VERSION:
			printf("xlbd %s\n", PACKAGE_VERSION);
			return EXIT_SUCCESS;
		case OPT_HELP:
			usage(stdout);
			return EXIT_SUCCESS;
		default:
			if (options_take(&cmd->opt, c, optarg) < 0) {
				usage(stderr);
				return EXIT_USAGE;
			}
		}
	}
	if (optind == argc)
		return -1;
	fprintf(stderr, "xlbd: unexpected argument: %s\n", argv[optind]);
	usage(stderr);
	return EXIT_USAGE;
}

int
main(int argc, char **argv)
{
	struct command cmd = { .opt = OPTIONS_INIT };
	struct origin origin = { .argv = argv };
	struct prober *prober;
	struct http *http;
	char self[PATH_MAX];
	ssize_t len;
	bool again;
	int rc;

	rc = command_parse(argc, argv, &cmd);
	if (rc >= 0)
		return rc;
	log_init("xlbd", cmd.debug);
	log_libbpf();
	if (cmd.question != NULL)
		return cmd.question(&cmd.opt);
	len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (len < 0)
		fatal("/proc/self/exe");
	self[len] = '\0';
	origin.path = self;
	log_info("xlbd %s starts, configuration %s", PACKAGE_VERSION,
	    cmd.opt.config);
	rc = prober_fork(PROBER_USER, &prober);
	if (rc < 0) {
		errno = -rc;
		fatal("prober");
	}
	rc = http_fork(PROBER_USER, &http);
	if (rc < 0) {
		errno = -rc;
		fatal("http");
	}
	spawner_rights_rest();
	rc = daemon_run(&cmd.opt, &origin, prober, http, &again);
	if (again) {
		execv(self, argv);
		fatal("%s", self);
	}
	return rc;
}
