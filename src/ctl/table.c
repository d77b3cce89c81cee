/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What xlb can do. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/command.h"

const struct command command_table[] = {
	{ "check", "[FILE]", 0, 1, 0, COMPLETE_FILE,
	    "read the configuration, say what is wrong with it", check_run },
	{ "diff", "[FILE]", 0, 1, FLAG_EXIT_CODE, COMPLETE_FILE,
	    "show what a reload would change", diff_run },
	{ "reload", "", 0, 0, 0, COMPLETE_NONE,
	    "make the daemon read its configuration again", reload_run },
	{ "restart", "", 0, 0, FLAG_FLUSH, COMPLETE_NONE,
	    "replace the daemon; no packet is lost", restart_run },
	{ "stop", "", 0, 0, 0, COMPLETE_NONE,
	    "withdraw everything, then stop forwarding", stop_run },
	{ "detach", "", 0, 0, FLAG_FORCE, COMPLETE_NONE,
	    "take the packet program away, without a daemon", detach_run },
	{ "status", "", 0, 0, FLAG_WATCH, COMPLETE_NONE,
	    "show what is served, what is down, and why",
	    status_run },
	{ "stats", "", 0, 0, FLAG_WATCH | FLAG_RATE, COMPLETE_NONE,
	    "show what was counted", stats_run },
	{ "services", "", 0, 0, 0, COMPLETE_NONE,
	    "show what is listened on, and who serves it", services_run },
	{ "pools", "", 0, 0, 0, COMPLETE_NONE,
	    "show the pools, and whether they are ready", pools_run },
	{ "backends", "", 0, 0, 0, COMPLETE_NONE,
	    "show each backend, its share and its health", backends_run },
	{ "rings", "", 0, 0, 0, COMPLETE_NONE,
	    "show each pool's ring: shares, and what has moved", rings_run },
	{ "flows", "", 0, 0, FLAG_CLIENT | FLAG_NAT, COMPLETE_NONE,
	    "count the flows in the table", flows_run },
	{ "lookup", "tcp|udp SRC:PORT DST:PORT", 3, 3, 0, COMPLETE_PROTOCOL,
	    "show where a flow goes, and why", lookup_run },
	{ "neighbors", "", 0, 0, 0, COMPLETE_NONE,
	    "show how each backend is reached", neighbors_run },
	{ "bgp", "", 0, 0, 0, COMPLETE_NONE,
	    "show BIRD's sessions, and what is announced", bgp_run },
	{ "events", "", 0, 0, FLAG_SERVICE | FLAG_REASON | FLAG_COUNT |
	    FLAG_SAMPLE, COMPLETE_NONE,
	    "show what becomes of packets, as it happens", events_run },
	{ "drain", "POOL/BACKEND|node", 1, 1, FLAG_WAIT, COMPLETE_OBJECT,
	    "send no new flows there, until undrain", drain_run },
	{ "undrain", "POOL/BACKEND|node", 1, 1, FLAG_WAIT, COMPLETE_OBJECT,
	    "end a drain", undrain_run },
	{ "fingerprint", "", 0, 0, 0, COMPLETE_NONE,
	    "show the fingerprint of each pool's ring", fingerprint_run },
	{ "bird-config", "", 0, 0, 0, COMPLETE_NONE,
	    "print a whole bird.conf for the bgp: section", bird_config_run },
	{ "import-keepalived", "FILE", 1, 1, 0, COMPLETE_FILE,
	    "print an xlb.yaml for a keepalived.conf", import_run },
	{ "version", "", 0, 0, 0, COMPLETE_NONE,
	    "show the version", version_run },
	{ "help", "[COMMAND]", 0, 1, 0, COMPLETE_COMMAND,
	    "show the commands, or one of them", help_run },
	{ .name = NULL }
};

const struct flag_row flag_table[] = {
	{ "--json", FLAG_JSON, "print JSON", NULL, COMPLETE_NONE },
	{ "-w", FLAG_WATCH, "go on showing it, in place", NULL, COMPLETE_NONE },
	{ "--rate", FLAG_RATE, "by the second, from now on", NULL,
	    COMPLETE_NONE },
	{ "--exit-code", FLAG_EXIT_CODE, "exit with 1 if there are changes",
	    NULL, COMPLETE_NONE },
	{ "--force", FLAG_FORCE, "required: traffic stops at once", NULL,
	    COMPLETE_NONE },
	{ "--flush", FLAG_FLUSH, "begin with empty maps: every flow may move",
	    NULL, COMPLETE_NONE },
	{ "--wait", FLAG_WAIT,
	    "return when no flow is left, or when it serves again", NULL,
	    COMPLETE_NONE },
	{ "--service", FLAG_SERVICE, "of this service alone", "NAME",
	    COMPLETE_SERVICE },
	{ "--reason", FLAG_REASON,
	    "for these reasons alone, or new_flow, or drop", "NAME[,NAME]",
	    COMPLETE_REASON },
	{ "--client", FLAG_CLIENT, "find this client's instead", "ADDRESS",
	    COMPLETE_NONE },
	{ "--nat", FLAG_NAT, "of NAT's own table", NULL, COMPLETE_NONE },
	{ "--count", FLAG_COUNT, "end after so many", "N", COMPLETE_NONE },
	{ "--sample", FLAG_SAMPLE,
	    "of packets that are no news, one in so many (1024)", "N",
	    COMPLETE_NONE },
	{ .name = NULL }
};

const char *const option_table[] = { "--config FILE", "--run-dir DIR",
    "--bpf-dir DIR", "--state-dir DIR", "--bird-dir DIR",
    "--bird-socket PATH", NULL };

const struct command *
command_find(const char *name)
{
	const struct command *c;

	for (c = command_table; c->name != NULL; c++)
		if (strcmp(c->name, name) == 0)
			return c;
	return NULL;
}

const char *
flag_value(const struct context *x, enum flag f)
{
	return x->value[__builtin_ctz(f)];
}

bool
flag_number(const struct context *x, enum flag f, long most, long *out)
{
	const char *s = flag_value(x, f);
	const struct flag_row *row;
	char *end;
	long n;

	if (s == NULL)
		return true;
	errno = 0;
	n = strtol(s, &end, 10);
	if (errno == 0 && end != s && *end == '\0' && n >= 1 && n <= most) {
		*out = n;
		return true;
	}
	for (row = flag_table; row->flag != f; row++)
		;
	complain("%s: %s is not in 1..%ld", row->name, s, most);
	return false;
}
