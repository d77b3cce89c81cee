/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The options that xlbd and xlb share; they come before the command. */
#ifndef XLB_OPTIONS_H
#define XLB_OPTIONS_H

#include <getopt.h>

struct options {
	const char *config;
	const char *run_dir, *bpf_dir, *state_dir;	/* used whole */
	const char *bird_dir;	/* NULL: bgp.bird.directory */
	const char *bird_socket;	/* NULL: bgp.bird.socket */
};

#define OPTIONS_INIT { "/etc/xlb/xlb.yaml", "/run/xlb", "/sys/fs/bpf/xlb", \
    "/var/lib/xlb", NULL, NULL }

/* Rows for getopt_long(); a program adds its own and a zero row. */
enum { OPT_CONFIG = 256, OPT_RUN_DIR, OPT_BPF_DIR, OPT_STATE_DIR,
    OPT_BIRD_DIR, OPT_BIRD_SOCKET, OPT_OWN };
#define OPTIONS_LONG \
	{ "config", required_argument, NULL, OPT_CONFIG }, \
	{ "run-dir", required_argument, NULL, OPT_RUN_DIR }, \
	{ "bpf-dir", required_argument, NULL, OPT_BPF_DIR }, \
	{ "state-dir", required_argument, NULL, OPT_STATE_DIR }, \
	{ "bird-dir", required_argument, NULL, OPT_BIRD_DIR }, \
	{ "bird-socket", required_argument, NULL, OPT_BIRD_SOCKET }

/* 0 if `value` is one of the above and was taken, else -1. */
static inline int
options_take(struct options *o, int value, const char *arg)
{
	const char **field[] = { &o->config, &o->run_dir, &o->bpf_dir,
	    &o->state_dir, &o->bird_dir, &o->bird_socket };

	if (value < OPT_CONFIG || value >= OPT_OWN)
		return -1;
	*field[value - OPT_CONFIG] = arg;
	return 0;
}

#endif
