/* SPDX-License-Identifier: GPL-2.0-or-later */
/* xlb events: what becomes of packets, one a line, until interrupted. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/reason.h"
#include "core/text.h"
#include "ctl/command.h"
#include "ctl/fields.h"
#include "ctl/grid.h"
#include "io/ctl.h"

#define EVENTS_MS 10000		/* until it begins */
#define SAMPLE 1024
#define SAMPLE_MAX (1L << 20)
#define COUNT_MAX 1000000000L
#define NEW_FLOW "new_flow"

/* Columns grow with what was in them. */
enum { COLUMN_TIME, COLUMN_EVENT, COLUMN_REASON, COLUMN_PROTOCOL,
    COLUMN_SOURCE, COLUMN_DESTINATION, COLUMN_LENGTH, COLUMN_SERVICE, COLUMNS };

struct show {
	const struct context *x;
	long left;		/* events; -1: no end */
	int width[COLUMNS];
	bool failed;		/* it could not be written */
};

static void
time_text(const json_t *o, char *buf, size_t len)
{
	const char *s = text(o, "time"), *rest;
	struct tm tm = { 0 };
	time_t t;

	rest = strptime(s, "%Y-%m-%dT%H:%M:%S", &tm);
	t = rest != NULL ? timegm(&tm) : -1;
	if (rest == NULL || localtime_r(&t, &tm) == NULL) {
		snprintf(buf, len, "%s", s);
		return;
	}
	snprintf(buf, len, "%02d:%02d:%02d%.4s", tm.tm_hour, tm.tm_min,
	    tm.tm_sec, rest);
}

static void
end_text(const json_t *o, const char *key, const char *port_key, char *buf,
    size_t len)
{
	const json_t *port = json_object_get(o, port_key);
	const char *addr = text(o, key);

	if (!json_is_integer(port))
		snprintf(buf, len, "%s", addr);
	else
		snprintf(buf, len, strchr(addr, ':') != NULL ? "[%s]:%lld" :
		    "%s:%lld", addr, (long long)json_integer_value(port));
}

static void
service_text(const json_t *o, char *buf, size_t len)
{
	const char *backend = text(o, "backend");

	if (backend[0] == '\0')
		snprintf(buf, len, "%s", text(o, "service"));
	else
		snprintf(buf, len, "%s > %s/%s", text(o, "service"),
		    text(o, "pool"), backend);
}

static enum tint
event_tint(const char *event)
{
	return strcmp(event, "drop") == 0 ? TINT_BAD :
	    strcmp(event, NEW_FLOW) == 0 ? TINT_GOOD : TINT_NONE;
}

static void
event_print(struct show *s, const json_t *o)
{
	char cell[COLUMNS][160];
	int i, len, last = 0, blank = 0;
	enum tint tint;

	time_text(o, cell[COLUMN_TIME], sizeof(cell[0]));
	snprintf(cell[COLUMN_EVENT], sizeof(cell[0]), "%s", text(o, "event"));
	snprintf(cell[COLUMN_REASON], sizeof(cell[0]), "%s",
	    text(o, "reason"));
	snprintf(cell[COLUMN_PROTOCOL], sizeof(cell[0]), "%s",
	    text(o, "protocol"));
	end_text(o, "source", "source_port", cell[COLUMN_SOURCE],
	    sizeof(cell[0]));
	end_text(o, "destination", "destination_port",
	    cell[COLUMN_DESTINATION], sizeof(cell[0]));
	snprintf(cell[COLUMN_LENGTH], sizeof(cell[0]), "%lld",
	    (long long)json_integer_value(json_object_get(o, "length")));
	service_text(o, cell[COLUMN_SERVICE], sizeof(cell[0]));
	tint = event_tint(cell[COLUMN_EVENT]);
	for (i = 0; i < COLUMNS; i++) {
		len = (int)strlen(cell[i]);
		if (len > s->width[i])
			s->width[i] = len;
		last = len > 0 ? i : last;
	}
	for (i = 0; i <= last; i++) {
		len = (int)strlen(cell[i]);
		if (i == COLUMN_LENGTH)
			blank += s->width[i] - len;
		printf("%*s", blank, "");
		tint_print(i == COLUMN_EVENT || i == COLUMN_REASON ? tint :
		    TINT_NONE, cell[i], (size_t)len, s->x->colour, stdout);
		blank = i == COLUMN_LENGTH ? 2 : s->width[i] - len + 2;
	}
	putchar('\n');
}

static void
lost_print(const struct show *s, const json_t *o)
{
	long long lost = json_integer_value(json_object_get(o, "lost"));
	long long limited = json_integer_value(json_object_get(o, "limited"));
	char line[128];

	if (limited > 0)
		snprintf(line, sizeof(line), "… %lld events lost, %lld of them "
		    "over the rate limit", lost, limited);
	else
		snprintf(line, sizeof(line), "… %lld events lost", lost);
	tint_print(TINT_ODD, line, strlen(line), s->x->colour, stdout);
	putchar('\n');
}

static bool
on_line(const json_t *o, void *arg)
{
	struct show *s = arg;
	bool lost = strcmp(text(o, "event"), "lost") == 0;

	if (s->x->flags & FLAG_JSON) {
		if (json_out(s->x, json_deep_copy(o)) != STATUS_DONE)
			s->failed = true;
	} else {
		if (lost)
			lost_print(s, o);
		else
			event_print(s, o);
		if (fflush(stdout) == EOF)
			s->failed = true;	/* main() says so */
	}
	if (!lost && s->left > 0)
		s->left--;
	return !s->failed && s->left != 0;
}

static int
reason_unknown(const char *name)
{
	struct text_guess guess;
	char buf[TEXT_SHOW_MAX];
	int i;

	text_guess_init(&guess, name);
	text_guess_try(&guess, NEW_FLOW);
	text_guess_try(&guess, "drop");
	for (i = 0; i < XLB_REASON_COUNT; i++)
		text_guess_try(&guess, reason_name((enum xlb_reason)i));
	complain("--reason: unknown reason: %s%s%s%s", text_show(name, buf),
	    guess.best != NULL ? ", did you mean " : ", see xlb(8)",
	    guess.best != NULL ? guess.best : "",
	    guess.best != NULL ? "?" : "");
	return STATUS_USAGE;
}

/* Packets for others are most of a host's own, this terminal's too: they are
 * shown to those who ask for them. */
static void
reasons_default(json_t *list)
{
	int i;

	json_array_append_new(list, json_string(NEW_FLOW));
	for (i = 0; i < XLB_REASON_COUNT; i++)
		if (i != XLB_REASON_NOT_VIP)
			json_array_append_new(list,
			    json_string(reason_name((enum xlb_reason)i)));
}

static void
reasons_drop(json_t *list)
{
	int i;

	for (i = 0; i < XLB_REASON_COUNT; i++)
		if (reason_kind((enum xlb_reason)i) == REASON_DROP)
			json_array_append_new(list,
			    json_string(reason_name((enum xlb_reason)i)));
}

/* 0, or the exit status. */
static int
reasons_take(const char *value, json_t *list)
{
	char *copy = strdup(value), *save = NULL, *name;
	int status = STATUS_DONE;

	if (copy == NULL)
		abort();
	for (name = strtok_r(copy, ",", &save); name != NULL &&
	    status == STATUS_DONE; name = strtok_r(NULL, ",", &save)) {
		if (strcmp(name, "drop") == 0)
			reasons_drop(list);
		else if (strcmp(name, NEW_FLOW) == 0 ||
		    reason_find(name) >= 0)
			json_array_append_new(list, json_string(name));
		else
			status = reason_unknown(name);
	}
	free(copy);
	if (status == STATUS_DONE && json_array_size(list) == 0) {
		complain("--reason: none is named");
		status = STATUS_USAGE;
	}
	return status;
}

static int
args_make(const struct context *x, json_t **args, long *count)
{
	const char *reason = flag_value(x, FLAG_REASON);
	const char *service = flag_value(x, FLAG_SERVICE);
	json_t *reasons = json_array();
	long sample = SAMPLE;
	int status = STATUS_DONE;

	if (!flag_number(x, FLAG_SAMPLE, SAMPLE_MAX, &sample) ||
	    !flag_number(x, FLAG_COUNT, COUNT_MAX, count))
		status = STATUS_USAGE;
	else if (reason != NULL)
		status = reasons_take(reason, reasons);
	else
		reasons_default(reasons);
	if (status != STATUS_DONE) {
		json_decref(reasons);
		return status;
	}
	*args = json_pack("{s:o, s:I}", "reasons", reasons, "sample",
	    (json_int_t)sample);
	if (service != NULL)
		json_object_set_new(*args, "service", ctl_text(service));
	return STATUS_DONE;
}

int
events_run(const struct context *x)
{
	/* so that most lines of the first minute are aligned already */
	struct show s = { .x = x, .left = -1, .width = { [COLUMN_EVENT] = 8,
	    [COLUMN_REASON] = 10, [COLUMN_PROTOCOL] = 3, [COLUMN_SOURCE] = 21,
	    [COLUMN_DESTINATION] = 18, [COLUMN_LENGTH] = 4 } };
	struct context each = *x;
	json_t *args, *reply;
	int status, rc;

	each.flags |= FLAG_WATCH;	/* an object a line */
	s.x = &each;
	status = args_make(x, &args, &s.left);
	if (status != STATUS_DONE)
		return status;
	rc = ctl_call_lines(x->o.run_dir, "events", args, EVENTS_MS, on_line,
	    &s, &reply);
	if (rc == -ECONNRESET) {
		complain("xlbd ended");
		return STATUS_FAILED;
	}
	if (rc < 0)
		return ask_failed(x, rc);
	status = reply_take(reply);
	if (status != STATUS_DONE)
		reply_refused(&each, reply);
	json_decref(reply);
	return s.failed ? STATUS_FAILED : status;
}
