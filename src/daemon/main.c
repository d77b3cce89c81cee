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
	{ "preflight", no_argument, NULL, OPT_PREFLIGHT },
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
	    "[--preflight]\n"
	    "            [--version] [--help]\n");
}

int
main(int argc, char **argv)
{
	struct options opt = OPTIONS_INIT;
	struct prober *prober;
	struct http *http;
	bool debug = false, preflight = false, again;
	char self[PATH_MAX];
	ssize_t len;
	int c, rc;

	while ((c = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
		switch (c) {
		case OPT_DEBUG:
			debug = true;
			break;
		case OPT_PREFLIGHT:
			preflight = true;
			break;
		case OPT_VERSION:
			printf("xlbd %s\n", PACKAGE_VERSION);
			return EXIT_SUCCESS;
		case OPT_HELP:
			usage(stdout);
			return EXIT_SUCCESS;
		default:
			if (options_take(&opt, c, optarg) < 0) {
				usage(stderr);
				return EXIT_USAGE;
			}
		}
	}
	if (optind != argc) {
		fprintf(stderr, "xlbd: unexpected argument: %s\n",
		    argv[optind]);
		usage(stderr);
		return EXIT_USAGE;
	}
	log_init("xlbd", debug);
	log_libbpf();
	if (preflight)
		return daemon_preflight(&opt);
	/* by name: after an upgrade that is the new one */
	len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (len < 0)
		fatal("/proc/self/exe");
	self[len] = '\0';
	log_info("xlbd %s starts, configuration %s", PACKAGE_VERSION,
	    opt.config);
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
	rc = daemon_run(&opt, prober, http, &again);
	if (again) {
		execv(self, argv);
		fatal("%s", self);
	}
	return rc;
}
