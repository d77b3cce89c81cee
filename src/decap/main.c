/* SPDX-License-Identifier: GPL-2.0-or-later */
/* xlb-decap: reads the command line. */
#include "decap/decap.h"

#include <err.h>
#include <getopt.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage_text[] =
    "usage: xlb-decap [--bpf-dir DIR] attach IFACE --from PREFIX ... "
    "[--vip PREFIX ...]\n"
    "                 [--mode native|generic|auto] [--gue-port PORT]\n"
    "       xlb-decap [--bpf-dir DIR] detach IFACE\n"
    "       xlb-decap [--bpf-dir DIR] status [--json]\n"
    "       xlb-decap --help | --version\n";

enum { OPT_FROM = 256, OPT_VIP, OPT_MODE, OPT_GUE_PORT, OPT_BPF_DIR, OPT_JSON,
    OPT_HELP, OPT_VERSION };

static const struct option long_options[] = {
	{ "from", required_argument, NULL, OPT_FROM },
	{ "vip", required_argument, NULL, OPT_VIP },
	{ "mode", required_argument, NULL, OPT_MODE },
	{ "gue-port", required_argument, NULL, OPT_GUE_PORT },
	{ "bpf-dir", required_argument, NULL, OPT_BPF_DIR },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "help", no_argument, NULL, OPT_HELP },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ NULL, 0, NULL, 0 },
};

struct arguments {
	struct decap_config c;
	bool json;
	unsigned given;		/* bit per option, from OPT_FROM on */
};

#define GIVEN(o) (1U << ((o) - OPT_FROM))
#define GIVEN_ATTACH (GIVEN(OPT_FROM) | GIVEN(OPT_VIP) | GIVEN(OPT_MODE) | \
    GIVEN(OPT_GUE_PORT))

static _Noreturn void __attribute__((format(printf, 1, 2)))
usage(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vwarnx(fmt, ap);
	va_end(ap);
	fputs(usage_text, stderr);
	exit(EXIT_USAGE);
}

/* getopt_long() has said what. */
static _Noreturn void
usage_again(void)
{
	fputs(usage_text, stderr);
	exit(EXIT_USAGE);
}

/* A prefix, or an address for itself. */
static void
prefix_add(const char *option, const char *text, struct prefix **list,
    size_t *n)
{
	struct prefix p;

	if (addr_parse(text, &p.addr) == 0)
		p.len = (uint8_t)addr_bits(&p.addr);
	else if (prefix_parse(text, &p) < 0)
		errx(EXIT_USAGE, "%s: \"%s\" is not an address or a prefix "
		    "(like 192.0.2.0/24, host bits 0)", option, text);
	if (*n == DECAP_PREFIXES)
		errx(EXIT_USAGE, "%s: more than %d", option, DECAP_PREFIXES);
	*list = reallocarray(*list, *n + 1, sizeof(**list));
	if (*list == NULL)
		err(EXIT_FAILED, "memory");
	(*list)[(*n)++] = p;
}

static enum decap_mode
mode_parse(const char *text)
{
	static const char *const name[] = { [MODE_NATIVE] = "native",
	    [MODE_GENERIC] = "generic", [MODE_AUTO] = "auto" };
	size_t i;

	for (i = 0; i < sizeof(name) / sizeof(name[0]); i++)
		if (strcmp(text, name[i]) == 0)
			return (enum decap_mode)i;
	errx(EXIT_USAGE, "--mode: \"%s\" is not native, generic or auto", text);
}

static uint16_t
port_parse(const char *text)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end != '\0' || n < 1 || n > 65535)
		errx(EXIT_USAGE, "--gue-port: \"%s\" is not in 1..65535", text);
	return (uint16_t)n;
}

static void
option_take(struct arguments *a, int option, const char *arg)
{
	switch (option) {
	case OPT_FROM:
		prefix_add("--from", arg, &a->c.from, &a->c.nfrom);
		break;
	case OPT_VIP:
		prefix_add("--vip", arg, &a->c.vip, &a->c.nvip);
		break;
	case OPT_MODE:
		a->c.mode = mode_parse(arg);
		break;
	case OPT_GUE_PORT:
		a->c.gue_port = port_parse(arg);
		break;
	case OPT_BPF_DIR:
		a->c.dir = arg;
		break;
	case OPT_JSON:
		a->json = true;
		break;
	case OPT_HELP:
		fputs(usage_text, stdout);
		exit(EXIT_DONE);
	case OPT_VERSION:
		printf("xlb-decap %s\n", PACKAGE_VERSION);
		exit(EXIT_DONE);
	default:
		usage_again();
	}
	a->given |= GIVEN(option);
}

static void
root_check(const char *command)
{
	if (geteuid() != 0)
		errx(EXIT_FAILED, "%s: needs root", command);
}

static int
attach_run(struct arguments *a)
{
	if (a->c.nfrom == 0)
		errx(EXIT_USAGE, "attach: --from is required: the addresses "
		    "of the balancers, nobody else's packets are unwrapped");
	root_check("attach");
	a->c.ifindex = if_nametoindex(a->c.name);
	if (a->c.ifindex == 0)
		err(EXIT_FAILED, "%s", a->c.name);
	return attach(&a->c);
}

static int
detach_run(struct arguments *a)
{
	root_check("detach");
	return detach(a->c.dir, a->c.name);
}

static int
status_run(struct arguments *a)
{
	return status(a->c.dir, a->json);
}

static const struct {
	const char *name;
	int args;		/* an interface, or none */
	unsigned options;	/* which it takes besides --bpf-dir */
	int (*run)(struct arguments *a);
} commands[] = {
	{ "attach", 1, GIVEN_ATTACH, attach_run },
	{ "detach", 1, 0, detach_run },
	{ "status", 0, GIVEN(OPT_JSON), status_run },
};

static int
command_run(struct arguments *a, int argc, char *argv[])
{
	size_t i;
	int r;

	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (argc < 1 || strcmp(argv[0], commands[i].name) != 0)
			continue;
		if (argc - 1 < commands[i].args)
			usage("%s: of which interface?", argv[0]);
		if (argc - 1 > commands[i].args)
			usage("%s: too many arguments", argv[0]);
		if ((a->given & ~commands[i].options &
		    ~GIVEN(OPT_BPF_DIR)) != 0)
			usage("%s: an option that is not for this command",
			    argv[0]);
		a->c.name = argv[1];
		r = commands[i].run(a);
		if (fflush(stdout) == EOF)
			err(EXIT_FAILED, "standard output");
		return r;
	}
	if (argc < 1)
		usage_again();
	usage("%s: unknown command", argv[0]);
}

int
main(int argc, char *argv[])
{
	struct arguments a = { .c = { .dir = DECAP_DIR,
	    .gue_port = DECAP_GUE_PORT } };
	int option, r;

	while ((option = getopt_long(argc, argv, "", long_options,
	    NULL)) != -1)
		option_take(&a, option, optarg);
	r = command_run(&a, argc - optind, argv + optind);
	free(a.c.from);
	free(a.c.vip);
	return r;
}
