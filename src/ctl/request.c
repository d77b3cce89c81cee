/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Commands that the daemon does: reload, restart, stop, fingerprint; and detach,
 * for when there is none. */
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ctl/command.h"
#include "ctl/fields.h"
#include "io/ctl.h"
#include "io/netlink.h"
#include "io/prog.h"
#include "io/tunnel.h"

#define QUICK_MS 10000
#define RELOAD_MS 60000
#define TAKE_OVER_MS 70000	/* until the old one knows if it can: 60 s */
#define RESTART_MS 10000	/* until the new daemon answers */
#define END_MS 5000		/* until one that has stopped is gone */
#define POLL_MS 100
#define STARTED_MAX 64		/* bytes of a time */

/* What a stop waits for, on one line that is written over. */
struct progress {
	const struct context *x;
	bool shown;
};

static void
progress_show(void *arg)
{
	struct progress *p = arg;
	json_t *reply, *result;
	const char *phase;

	if (!isatty(STDERR_FILENO) || ctl_call(p->x->o.run_dir, "status", NULL,
	    500, &reply) < 0)
		return;
	result = json_object_get(reply, "result");
	phase = text(result, "phase");
	fprintf(stderr, "\r\033[Kstopping: %s",
	    strcmp(phase, "graceful_shutdown") == 0 ?
	    "still announced, with GRACEFUL_SHUTDOWN" :
	    strcmp(phase, "withdrawn") == 0 ? "withdrawn, still forwarding" :
	    phase);
	p->shown = true;
	json_decref(reply);
}

/* For as long as graceful_shutdown and linger last, which the daemon knows. */
static int
ask_patiently(const struct context *x, const char *command, json_t *args,
    json_t **reply)
{
	struct progress p = { .x = x };
	int rc;

	rc = ctl_call_tick(x->o.run_dir, command, args, -1, progress_show, &p,
	    reply);
	if (p.shown)
		fputs("\r\033[K", stderr);
	return rc < 0 ? ask_failed(x, rc) : 0;
}

/* Shows what came, and `said` (NULL: nothing) if it was done. Takes `reply`. */
static int
reply_show(const struct context *x, int status, json_t *reply,
    const char *said)
{
	int rc = x->flags & FLAG_JSON ? reply_out(x, reply) : STATUS_DONE;

	if (rc != STATUS_DONE && status == STATUS_DONE)
		status = rc;
	if (status == STATUS_DONE && said != NULL && !(x->flags & FLAG_JSON))
		puts(said);
	json_decref(reply);
	return status;
}

/* What is answered at once. */
static int
request(const struct context *x, const char *command, json_t *args,
    int timeout_ms, const char *said)
{
	json_t *reply;
	int status = ask(x, command, args, timeout_ms, &reply);

	return status != 0 ? status :
	    reply_show(x, reply_take(reply), reply, said);
}

/* When the daemon that answers was started; "" if none does. */
static void
started_get(const struct context *x, char *buf, size_t len)
{
	json_t *reply;

	buf[0] = '\0';
	if (ctl_call(x->o.run_dir, "status", NULL, 1000, &reply) < 0)
		return;
	snprintf(buf, len, "%s", text(json_object_get(reply, "result"),
	    "started"));
	json_decref(reply);
}

static int64_t
now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000LL + ts.tv_nsec / 1000000;
}

/* Until nobody listens any more: who asks next is told that there is no daemon. */
static void
end_wait(const struct context *x)
{
	const struct timespec pause = { 0, POLL_MS * 100000L };
	int64_t until = now_ms() + END_MS;
	json_t *reply;
	int rc;

	do {
		rc = ctl_call(x->o.run_dir, "status", NULL, POLL_MS, &reply);
		if (rc == 0)
			json_decref(reply);
		if (rc == -ENOENT || rc == -ECONNREFUSED)
			break;
		nanosleep(&pause, NULL);
	} while (now_ms() < until);
}

int
stop_run(const struct context *x)
{
	json_t *reply;
	int status = ask_patiently(x, "stop", NULL, &reply);

	if (status != 0)
		return status;
	status = reply_take(reply);
	if (status == STATUS_DONE)
		end_wait(x);
	return reply_show(x, status, reply, "stopped");
}

/* Waits for another than the one that was started at `before`. */
static int
restart_wait(const struct context *x, const char *before)
{
	const struct timespec pause = { 0, POLL_MS * 1000000L };
	int64_t until = now_ms() + RESTART_MS;
	char after[STARTED_MAX];

	do {
		nanosleep(&pause, NULL);
		started_get(x, after, sizeof(after));
	} while ((after[0] == '\0' || strcmp(before, after) == 0) &&
	    now_ms() < until);
	if (after[0] != '\0' && strcmp(before, after) != 0)
		return STATUS_DONE;
	complain("no new xlbd answers after %d s: see its log",
	    RESTART_MS / 1000);
	return STATUS_FAILED;
}

/* Where nothing was served yet the daemon may start anew for what it cannot
 * change in maps that are there. What it then says of the same file is what
 * counts. */
int
reload_run(const struct context *x)
{
	char before[STARTED_MAX];
	json_t *reply;
	int status;

	status = ask(x, "reload", NULL, RELOAD_MS, &reply);
	if (status != 0)
		return status;
	if (!json_is_true(json_object_get(json_object_get(reply, "result"),
	    "restarted")))
		return reply_show(x, reply_take(reply), reply, "reloaded");
	status = reply_take(reply);
	snprintf(before, sizeof(before), "%s", text(reply, "started"));
	json_decref(reply);
	if (status == STATUS_DONE)
		status = restart_wait(x, before);
	return status != STATUS_DONE ? status :
	    request(x, "reload", NULL, RELOAD_MS, "reloaded");
}

/* --flush is a stop and a start. */
int
restart_run(const struct context *x)
{
	bool flush = x->flags & FLAG_FLUSH;
	char before[STARTED_MAX];
	json_t *reply, *args;
	int status;

	started_get(x, before, sizeof(before));
	args = json_pack("{s:b}", "flush", flush);
	status = flush ? ask_patiently(x, "restart", args, &reply) :
	    ask(x, "restart", args, TAKE_OVER_MS, &reply);
	if (status != 0)
		return status;
	status = reply_take(reply);
	if (status != STATUS_DONE)
		return reply_show(x, status, reply, NULL);
	status = restart_wait(x, before);
	return reply_show(x, status, reply, "restarted");
}

int
fingerprint_run(const struct context *x)
{
	json_t *reply, *result;
	const char *pool;
	json_t *value;
	int status, width = 0;

	status = ask(x, "fingerprint", NULL, QUICK_MS, &reply);
	if (status != 0)
		return status;
	status = reply_take(reply);
	result = json_object_get(reply, "result");
	if (status == STATUS_DONE && (x->flags & FLAG_JSON)) {
		status = json_out(x, json_incref(result));
	} else if (status == STATUS_DONE) {
		json_object_foreach(result, pool, value)
			if (json_is_string(value) && (int)strlen(pool) > width)
				width = (int)strlen(pool);
		json_object_foreach(result, pool, value)
			if (json_is_string(value))
				printf("%-*s  %s\n", width, pool,
				    json_string_value(value));
	} else {
		reply_refused(x, reply);
	}
	json_decref(reply);
	return status;
}

/* The last resort: with a daemon there would be two that know what is pinned. */
int
detach_run(const struct context *x)
{
	json_t *reply;
	int rc;

	if (!(x->flags & FLAG_FORCE)) {
		complain("detach ends forwarding at once and withdraws "
		    "nothing; if that is meant, add --force");
		return STATUS_USAGE;
	}
	rc = ctl_call(x->o.run_dir, "status", NULL, 2000, &reply);
	if (rc == 0)
		json_decref(reply);
	if (rc == 0 || (rc != -ENOENT && rc != -ECONNREFUSED)) {
		complain("xlbd is running: use xlb stop");
		why_refused(x, "xlbd is running: use xlb stop");
		return STATUS_FAILED;
	}
	if (prog_remove_dir(x->o.bpf_dir) < 0) {
		why_refused(x, "not all could be removed");
		return STATUS_FAILED;	/* it has said why */
	}
	tunnel_remove_rules();
	netlink_forget();
	if (x->flags & FLAG_JSON)
		return json_out(x, json_object());
	puts("detached");
	return STATUS_DONE;
}
