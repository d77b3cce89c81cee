/* SPDX-License-Identifier: GPL-2.0-or-later */
/* drain and undrain, and to wait until that has had its effect. */
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ctl/command.h"
#include "ctl/fields.h"
#include "io/ctl.h"

#define QUICK_MS 10000
#define COUNT_MS 60000		/* a large table takes its time */
#define GONE_SEC 30		/* a restart is over by then */
#define RATE_SEC 30.0		/* what the rate is an average of, about */
#define SAY_SEC 60.0		/* where there is no terminal to write over */

static volatile sig_atomic_t interrupted;

/* One look at what is waited for. */
struct look {
	bool over;		/* waited for long enough */
	bool undone;		/* somebody has ended the drain */
	long long left, idle;	/* flows; -1: not known */
	double packets;		/* forwarded so far, of the node; -1 */
	char why[160];		/* what is still missing, or how it ended */
};

struct waiter {
	const struct context *x;
	const char *object;	/* "node", "POOL/BACKEND" */
	bool drain;
	struct look look;
	double begin, at, said;	/* seconds: the start, this look, last line */
	double rate;		/* flows that end in a second, smoothed */
	bool shown;		/* a line is on the terminal */
};

static double
now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void
on_signal(int sig)
{
	(void)sig;
	interrupted = 1;
}

/* The row of a list whose member `key` is `value`; NULL. */
static const json_t *
row_by(const json_t *list, const char *key, const char *value, size_t len)
{
	const char *s;
	size_t i;

	for (i = 0; i < json_array_size(list); i++) {
		s = text(json_array_get(list, i), key);
		if (strncmp(s, value, len) == 0 && s[len] == '\0')
			return json_array_get(list, i);
	}
	return NULL;
}

static const json_t *
backend_find(const json_t *status, const char *object)
{
	const char *slash = strchr(object, '/');
	const json_t *pool = row_by(json_object_get(status, "pools"), "name",
	    object, (size_t)(slash - object));

	return row_by(json_object_get(pool, "backends"), "name", slash + 1,
	    strlen(slash + 1));
}

/* Its result; NULL where there is none now. */
static json_t *
result_of(const struct waiter *w, const char *command, int timeout_ms)
{
	json_t *reply, *result = NULL;

	if (ctl_call(w->x->o.run_dir, command, NULL, timeout_ms, &reply) < 0)
		return NULL;
	if (number(reply, "exit") == 0)
		result = json_incref(json_object_get(reply, "result"));
	json_decref(reply);
	return result;
}

static void
backend_left(const json_t *flows, const char *address, struct look *l)
{
	const json_t *row = row_by(json_object_get(flows, "backends"),
	    "address", address, strlen(address));

	if (row == NULL)
		return;
	l->left = number(row, "flows") - number(row, "ended");
	l->idle = number(row, "idle");
	l->over = l->left == 0;
	if (l->over)
		snprintf(l->why, sizeof(l->why), "no flows are left");
}

static void
backend_drained(const struct waiter *w, const json_t *status, struct look *l)
{
	const json_t *b = backend_find(status, w->object);
	json_t *flows;

	if (b == NULL || strcmp(text(b, "state"), "active") == 0) {
		l->undone = true;
		return;
	}
	if (strcmp(text(b, "health"), "down") == 0) {
		/* nobody is sent there any more, drain or not */
		l->over = true;
		snprintf(l->why, sizeof(l->why), "it is down: %s",
		    text(b, "reason"));
		return;
	}
	flows = result_of(w, "flows", COUNT_MS);
	if (flows != NULL)
		backend_left(flows, text(b, "address"), l);
	json_decref(flows);
}

static double
forwarded(const json_t *stats)
{
	const json_t *r = json_object_get(stats, "reasons");

	return stats == NULL ? -1 : (double)(number(r, "forward") +
	    number(r, "forward_prev") + number(r, "forward_pinned"));
}

/* Flows do not end here, they go to other nodes: over when packets stay away. */
static void
node_drained(const struct waiter *w, const json_t *status, struct look *l)
{
	json_t *flows, *stats;

	if (strcmp(text(status, "state"), "drain") != 0) {
		l->undone = true;
		return;
	}
	stats = result_of(w, "stats", QUICK_MS);
	l->packets = forwarded(stats);
	json_decref(stats);
	flows = result_of(w, "flows", COUNT_MS);
	if (flows == NULL)
		return;
	l->left = number(json_object_get(flows, "ages"), "10s");
	l->idle = 0;
	json_decref(flows);
	if (strcmp(text(status, "phase"), "withdrawn") != 0)
		snprintf(l->why, sizeof(l->why), "still announced, with "
		    "65535:0");
	else if (l->left == 0 && l->packets >= 0 &&
	    l->packets <= w->look.packets) {
		l->over = true;
		snprintf(l->why, sizeof(l->why), "no packets come any more");
	}
}

static void
backend_serves(const struct waiter *w, const json_t *status, struct look *l)
{
	const json_t *b = backend_find(status, w->object);

	if (b == NULL || strcmp(text(b, "state"), "active") != 0) {
		l->undone = true;
		return;
	}
	l->over = yes(b, "eligible");
	snprintf(l->why, sizeof(l->why), "%s", l->over ?
	    "takes new flows" : text(b, "reason"));
}

/* Does a service that is not ready keep it back? */
static bool
held_by_service(const json_t *status, const char *address)
{
	const json_t *list = json_object_get(status, "services"), *s, *a;
	size_t i, k;

	for (i = 0; i < json_array_size(list); i++) {
		s = json_array_get(list, i);
		a = json_object_get(s, "addresses");
		for (k = 0; !yes(s, "ready") && k < json_array_size(a); k++)
			if (strcmp(json_string_value(json_array_get(a, k)),
			    address) == 0)
				return true;
	}
	return false;
}

static void
node_serves(const json_t *status, struct look *l)
{
	const json_t *list = json_object_get(status, "addresses"), *a;
	size_t i, n = json_array_size(list), done = 0;

	if (strcmp(text(status, "state"), "active") != 0) {
		l->undone = true;
		return;
	}
	for (i = 0; i < n; i++) {
		a = json_array_get(list, i);
		done += yes(a, "in_bird") ||
		    held_by_service(status, text(a, "address"));
	}
	l->over = done == n || !json_is_object(json_object_get(status, "bird"));
	snprintf(l->why, sizeof(l->why), "%zu of %zu addresses are announced, "
	    "or have a service that is not ready", done, n);
}

/* False: nobody answers. */
static bool
look_take(struct waiter *w, struct look *l)
{
	json_t *status = result_of(w, "status", QUICK_MS);
	bool node = strcmp(w->object, "node") == 0;

	*l = (struct look){ .left = -1, .packets = -1 };
	if (status == NULL)
		return false;
	if (w->drain && node)
		node_drained(w, status, l);
	else if (w->drain)
		backend_drained(w, status, l);
	else if (node)
		node_serves(status, l);
	else
		backend_serves(w, status, l);
	json_decref(status);
	return true;
}

static void
span_print(double s, FILE *f)
{
	if (s < 120)
		fprintf(f, "%.0f s", s);
	else if (s < 7200)
		fprintf(f, "%.0f min", s / 60);
	else
		fprintf(f, "%.0f h", s / 3600);
}

static void
progress_print(const struct waiter *w, FILE *f)
{
	const struct look *l = &w->look;
	double s;

	fprintf(f, "%s %s: ", w->drain ? "draining" : "waiting for", w->object);
	if (*l->why != '\0')
		fprintf(f, "%s%s", l->why, l->left >= 0 ? ", " : "");
	else if (l->left < 0)
		fputs("flows are not counted yet", f);
	if (l->left < 0)
		return;
	fprintf(f, "%lld flow%s %s", l->left, l->left == 1 ? "" : "s",
	    strcmp(w->object, "node") == 0 ? "in the last 10 s" : "left");
	if (l->idle > 0)
		fprintf(f, ", %lld of them idle", l->idle);
	if (w->rate > 0.005) {
		fprintf(f, ", %.*f/s end, about ", w->rate < 9.95 ? 1 : 0,
		    w->rate);
		s = (double)l->left / w->rate;
		span_print(s < 1 ? 1 : s, f);	/* as long as any is left */
	}
}

/* On one line of the terminal, or a line now and then. */
static void
progress_show(struct waiter *w)
{
	bool terminal = isatty(STDERR_FILENO);

	if (!terminal && w->said > 0 && w->at - w->said < SAY_SEC)
		return;
	w->said = w->at;
	if (terminal)
		fputs("\r\033[K", stderr);
	progress_print(w, stderr);
	if (!terminal)
		fputc('\n', stderr);
	w->shown = terminal;
	fflush(stderr);
}

static void
progress_clear(struct waiter *w)
{
	if (w->shown)
		fputs("\r\033[K", stderr);
	w->shown = false;
}

/* An average that forgets: a quiet second is no standstill. */
static void
rate_step(struct waiter *w, const struct look *next, double at)
{
	double part, gone, seconds = at - w->at;

	if (w->look.left < 0 || next->left < 0 || seconds <= 0)
		return;
	gone = (double)(w->look.left - next->left) / seconds;
	part = seconds < RATE_SEC ? seconds / RATE_SEC : 1;
	if (at - w->begin < RATE_SEC)	/* of all so far */
		part = seconds / (at - w->begin);
	w->rate += ((gone > 0 ? gone : 0) - w->rate) * part;
}

/* 0: over; else the exit status, and it is said why. */
static int
wait_on(struct waiter *w)
{
	struct timespec pause = { 1, 0 };
	struct look next;
	double begin, answered;

	w->begin = w->at = answered = now();
	w->look = (struct look){ .left = -1, .packets = -1 };
	while (!interrupted) {
		begin = now();
		if (look_take(w, &next)) {
			answered = now();
			rate_step(w, &next, answered);
			if (next.left < 0)	/* counted for another one */
				next.left = w->look.left;
			w->look = next;
			w->at = answered;
		} else if (now() - answered > GONE_SEC) {
			progress_clear(w);
			complain("xlbd does not answer: %s stays %s", w->object,
			    w->drain ? "drained" : "undrained");
			return STATUS_NO_DAEMON;
		}
		if (w->look.over)
			return STATUS_DONE;
		if (w->look.undone) {
			progress_clear(w);
			complain("%s: somebody else has changed its state, or "
			    "removed it", w->object);
			return STATUS_FAILED;
		}
		progress_show(w);
		/* a table that takes long to read is not read all the time */
		pause.tv_sec = 1 + (time_t)(5 * (now() - begin));
		nanosleep(&pause, NULL);
	}
	progress_clear(w);
	if (w->drain)
		complain("interrupted: %s stays drained, until xlb undrain %s",
		    w->object, w->object);
	else
		complain("interrupted: %s stays undrained", w->object);
	return STATUS_FAILED;
}

static int
wait_run(const struct context *x, const char *object, bool drain,
    json_t *reply)
{
	const struct sigaction sa = { .sa_handler = on_signal };
	struct waiter w = { .x = x, .object = object, .drain = drain };
	json_t *o;
	int status, rc;

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	status = wait_on(&w);
	progress_clear(&w);
	if (x->flags & FLAG_JSON) {
		o = json_pack("{s:s, s:b, s:o, s:f}", "object", object,
		    "done", status == STATUS_DONE, "flows", w.look.left < 0 ?
		    json_null() : json_integer(w.look.left), "seconds",
		    now() - w.begin);
		json_object_update(json_object_get(reply, "result"), o);
		json_decref(o);
		rc = reply_out(x, reply);
		return status != STATUS_DONE ? status : rc;
	}
	if (status == STATUS_DONE) {
		printf("%s: %s, after ", object, w.look.why);
		span_print(now() - w.begin, stdout);
		putchar('\n');
	}
	return status;
}

/* NULL, after saying so: it is no name of anything. */
static json_t *
object_args(const struct context *x, const char *what)
{
	const char *slash = strchr(what, '/');
	json_t *args;

	if (strcmp(what, "node") == 0)
		return json_pack("{s:b}", "node", 1);
	if (slash == NULL || slash == what || slash[1] == '\0' ||
	    strchr(slash + 1, '/') != NULL) {
		complain("%s: %s is neither POOL/BACKEND nor node",
		    x->command->name, what);
		return NULL;
	}
	args = json_pack("{s:s%, s:s}", "pool", what, (size_t)(slash - what),
	    "backend", slash + 1);
	if (args == NULL)
		complain("%s: the name is not UTF-8", x->command->name);
	return args;
}

static int
drain_request(const struct context *x, bool drain)
{
	json_t *args = object_args(x, x->arg[0]), *reply;
	int status;

	if (args == NULL)
		return STATUS_USAGE;
	status = ask(x, x->command->name, args, QUICK_MS, &reply);
	if (status != 0)
		return status;
	status = reply_take(reply);
	if (status == STATUS_DONE && (x->flags & FLAG_WAIT))
		status = wait_run(x, x->arg[0], drain, reply);
	else if (x->flags & FLAG_JSON && reply_out(x, reply) != STATUS_DONE &&
	    status == STATUS_DONE)
		status = STATUS_FAILED;
	json_decref(reply);
	return status;
}

int
drain_run(const struct context *x)
{
	return drain_request(x, true);
}

int
undrain_run(const struct context *x)
{
	return drain_request(x, false);
}
