/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Talks to the daemon, and to who asked. */
#include <errno.h>
#include <regex.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/command.h"
#include "io/ctl.h"

void
complain(const char *fmt, ...)
{
	va_list ap;

	fputs("xlb: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}

int
ask_failed(const struct context *x, int rc)
{
	switch (-rc) {
	case ENOENT:
	case ECONNREFUSED:
		complain("xlbd is not running: %s/%s: %s", x->o.run_dir,
		    CTL_SOCKET, strerror(-rc));
		return STATUS_NO_DAEMON;
	case ECONNRESET:
		complain("xlbd ended before it answered");
		return STATUS_FAILED;
	case ETIMEDOUT:
		complain("xlbd does not answer");
		return STATUS_FAILED;
	case EPROTO:
		complain("xlbd's answer is not understood: xlb and xlbd are of "
		    "different versions");
		return STATUS_FAILED;
	default:
		complain("%s/%s: %s", x->o.run_dir, CTL_SOCKET, strerror(-rc));
		return STATUS_FAILED;
	}
}

int
ask(const struct context *x, const char *command, json_t *args,
    int timeout_ms, json_t **reply)
{
	int rc = ctl_call(x->o.run_dir, command, args, timeout_ms, reply);

	return rc < 0 ? ask_failed(x, rc) : 0;
}

/* "FILE:LINE:COLUMN: what": as `xlb check` has it, and editors look for. */
static bool
has_place(const char *line)
{
	regex_t place;
	bool has;

	if (regcomp(&place, "^[^ ]+:[0-9]+:[0-9]+: ", REG_EXTENDED |
	    REG_NOSUB) != 0)
		return false;
	has = regexec(&place, line, 0, NULL, 0) == 0;
	regfree(&place);
	return has;
}

static void
lines_print(const json_t *reply, const char *key)
{
	const json_t *list = json_object_get(reply, key);
	const char *line;
	size_t i;

	for (i = 0; i < json_array_size(list); i++) {
		line = json_string_value(json_array_get(list, i));
		if (line != NULL && has_place(line))
			fprintf(stderr, "%s\n", line);
		else if (line != NULL)
			complain("%s", line);
	}
}

int
reply_take(const json_t *reply)
{
	json_int_t status = json_integer_value(json_object_get(reply, "exit"));

	lines_print(reply, "errors");
	lines_print(reply, "warnings");
	return status >= 0 && status <= 255 ? (int)status : STATUS_FAILED;
}

int
json_out(const struct context *x, json_t *o)
{
	json_t *all = json_pack("{s:i}", "schema", XLB_SCHEMA);
	int rc;

	json_object_update(all, o);
	json_decref(o);
	rc = json_dumpf(all, stdout, (x->flags & FLAG_WATCH ? JSON_COMPACT :
	    JSON_INDENT(2)) | JSON_REAL_PRECISION(6));
	json_decref(all);
	if (rc < 0 || fputc('\n', stdout) == EOF || fflush(stdout) == EOF) {
		complain("standard output: %s", strerror(errno));
		return STATUS_FAILED;
	}
	return STATUS_DONE;
}

void
reply_refused(const struct context *x, const json_t *reply)
{
	if (x->flags & FLAG_JSON)
		reply_out(x, reply);
}

int
reply_out(const struct context *x, const json_t *reply)
{
	json_t *result = json_object_get(reply, "result");
	json_t *o = json_is_object(result) ? json_copy(result) : json_object();

	json_object_set(o, "errors", json_object_get(reply, "errors"));
	json_object_set(o, "warnings", json_object_get(reply, "warnings"));
	return json_out(x, o);
}

static json_t *
diag_lines(const struct diag *dg, enum diag_level level)
{
	json_t *list = json_array();
	char *line;
	size_t i;

	for (i = 0; i < dg->n; i++) {
		if (dg->row[i].level != level)
			continue;
		line = diag_line(&dg->row[i]);
		json_array_append_new(list, ctl_text(line));
		free(line);
	}
	return list;
}

void
diag_refused(const struct context *x, const struct diag *dg)
{
	if (x->flags & FLAG_JSON)
		json_out(x, json_pack("{s:o, s:o}",
		    "errors", diag_lines(dg, DIAG_ERROR),
		    "warnings", diag_lines(dg, DIAG_WARNING)));
}

void
why_refused(const struct context *x, const char *why)
{
	if (x->flags & FLAG_JSON)
		json_out(x, json_pack("{s:[s], s:[]}", "errors", why,
		    "warnings"));
}
