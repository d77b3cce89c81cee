/* SPDX-License-Identifier: GPL-2.0-or-later */
/* xlb status: once, or again and again in place. */
#include <errno.h>
#include <limits.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/arena.h"
#include "core/diag.h"
#include "ctl/live.h"
#include "io/conf_file.h"
#include "io/tun.h"

#define STATUS_MS 10000

/* Would it start with its file? If not, why. */
static void
file_say(const char *file)
{
	const struct conf *c;
	struct arena *a;
	struct diag dg;

	if (access(file, R_OK) < 0 && errno == ENOENT) {
		fprintf(stderr, "%s is not there: xlbd starts with the "
		    "configuration that was accepted last, if there is one; an "
		    "empty file serves nothing\n", file);
		return;
	}
	a = arena_new();
	diag_init(&dg);
	if (access(file, R_OK) < 0)
		fprintf(stderr, "%s: %s\n", file, strerror(errno));
	else if (conf_file_load(file, a, &c, &dg) < 0)
		fprintf(stderr, "%s does not load: see xlb check\n", file);
	diag_fini(&dg);
	arena_free(a);
}

/* Without a daemon: what it has left, as far as it can be seen, and what to do. */
static void
left_say(const struct context *x)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/program", x->o.bpf_dir);
	if (access(path, F_OK) == 0)
		fprintf(stderr, "packets: still forwarded by what is pinned in "
		    "%s, to the backends that were up; nobody follows their "
		    "health\n", x->o.bpf_dir);
	else if (errno == ENOENT)
		fputs("packets: not forwarded\n", stderr);
	if (if_nametoindex(TUN_NAME) != 0)
		fputs("routes: " TUN_NAME " is there, so BIRD goes on announcing"
		    " what it was told\n", stderr);
	else
		fputs("routes: withdrawn, " TUN_NAME " is gone\n", stderr);
	file_say(x->o.config);
	fputs("why it ended: journalctl -u xlb; start it: systemctl start xlb\n",
	    stderr);
}

static int
status_once(const struct context *x, void *arg)
{
	struct view view = { .colour = x->colour, .whole = true };
	json_t *reply, *result;
	int status;

	(void)arg;
	status = ask(x, "status", NULL, STATUS_MS, &reply);
	if (status == STATUS_NO_DAEMON)
		left_say(x);
	if (status != 0)
		return status;
	status = reply_take(reply);
	result = json_object_get(reply, "result");
	if (x->terminal)
		live_size(&view);
	if (status == STATUS_DONE && (x->flags & FLAG_JSON))
		status = json_out(x, json_incref(result));
	else if (status == STATUS_DONE)
		view_status(result, &view, stdout);
	else
		reply_refused(x, reply);
	json_decref(reply);
	return status;
}

static void
status_draw(json_t *result, const struct view *view, FILE *out,
    void *arg)
{
	(void)arg;
	view_status(result, view, out);
}

int
status_run(const struct context *x)
{
	static const struct live live = { .more = "status",
	    .once = status_once, .request = "status", .draw = status_draw };

	return x->flags & FLAG_WATCH ? live_run(x, &live) :
	    status_once(x, NULL);
}
