/* SPDX-License-Identifier: GPL-2.0-or-later */
/* xlb stats: the counters, or how fast they go. */
#include <string.h>
#include <time.h>

#include "core/reason.h"
#include "ctl/fields.h"
#include "ctl/grid.h"
#include "ctl/live.h"

#define STATS_MS 10000

/* The answer before, for rates. */
struct stats {
	bool rate;
	json_t *before;		/* NULL: none yet */
	double at;		/* when it came, seconds */
};

static double
now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* Rows of one name and address are the same object. */
static bool
row_same(const json_t *a, const json_t *b)
{
	static const char *const key[] = { "name", "address", "protocol",
	    "port" };
	size_t i;

	for (i = 0; i < sizeof(key) / sizeof(key[0]); i++)
		if (!json_equal(json_object_get(a, key[i]),
		    json_object_get(b, key[i])) && json_object_get(a,
		    key[i]) != json_object_get(b, key[i]))
			return false;
	return true;
}

static const json_t *
row_find(const json_t *list, const json_t *row, size_t hint)
{
	size_t i, n = json_array_size(list);

	if (row_same(json_array_get(list, hint), row))
		return json_array_get(list, hint);
	for (i = 0; i < n; i++)
		if (row_same(json_array_get(list, i), row))
			return json_array_get(list, i);
	return NULL;
}

/* A counter that was not there, or went back, begins at 0. */
static json_t *
member_rate(const json_t *before, const char *key, const json_t *value,
    double seconds)
{
	json_int_t was = json_integer_value(json_object_get(before, key));
	json_int_t is = json_integer_value(value);

	return json_real((double)(is >= was ? is - was : is) / seconds);
}

static json_t *
counters_rate(const json_t *before, json_t *o, double seconds)
{
	json_t *out = json_object(), *value;
	const char *key;

	json_object_foreach(o, key, value)
		json_object_set_new(out, key, json_is_integer(value) &&
		    strcmp(key, "port") != 0 ?
		    member_rate(before, key, value, seconds) :
		    json_incref(value));
	return out;
}

static json_t *
list_rate(const json_t *before, const json_t *list, double seconds)
{
	json_t *out = json_array(), *row;
	size_t i;

	json_array_foreach(list, i, row)
		json_array_append_new(out, counters_rate(row_find(before, row,
		    i), row, seconds));
	return out;
}

/* The same answer with all that counts by the second. */
static json_t *
stats_rate(const json_t *before, json_t *is, double seconds)
{
	json_t *out = json_object(), *value, *was;
	const char *key;

	json_object_foreach(is, key, value) {
		was = json_object_get(before, key);
		if (json_is_array(value))
			value = list_rate(was, value, seconds);
		else if (json_is_object(value))
			value = counters_rate(was, value, seconds);
		else if (json_is_integer(value))
			value = member_rate(before, key, value, seconds);
		else
			json_incref(value);
		json_object_set_new(out, key, value);
	}
	json_object_set_new(out, "seconds", json_real(seconds));
	return out;
}

/* Three digits and a unit: people compare, they don't count. */
static const char *
amount(double n, char buf[16])
{
	static const char unit[] = " kMGTPE";
	size_t i = 0;

	while (n >= 999.5 && unit[i + 1] != '\0') {
		n /= 1000;
		i++;
	}
	if (i == 0)
		snprintf(buf, 16, n < 9.95 && n != (double)(long)n ? "%.1f" :
		    "%.0f", n);
	else
		snprintf(buf, 16, n < 9.995 ? "%.2f%c" : n < 99.95 ? "%.1f%c" :
		    "%.0f%c", n, unit[i]);
	return buf;
}

static void
amount_cell(struct grid *g, const json_t *o, const char *key)
{
	char buf[16];

	grid_cell(g, TINT_NONE, "%s", amount(json_number_value(
	    json_object_get(o, key)), buf));
}

static void
reasons_grid(json_t *result, bool rate, struct grid *g)
{
	json_t *reasons = json_object_get(result, "reasons"), *value;
	const char *key;
	int r;

	grid_cell(g, TINT_HEAD, "REASON");
	grid_cell(g, TINT_HEAD, rate ? "PACKETS/s" : "PACKETS");
	json_object_foreach(reasons, key, value) {
		if (json_number_value(value) <= 0)
			continue;
		r = reason_find(key);
		grid_cell(g, r >= 0 && reason_kind((enum xlb_reason)r) ==
		    REASON_DROP ? TINT_BAD : TINT_NONE, "%s", key);
		amount_cell(g, reasons, key);
	}
}

/* What counts no packets that ended. */
static struct grid *
other_grid(json_t *result, bool rate)
{
	struct grid *g = grid_new("lr");
	const char *key;
	json_t *value;

	grid_cell(g, TINT_HEAD, "BESIDES");
	grid_cell(g, TINT_HEAD, rate ? "EVENTS/s" : "EVENTS");
	json_object_foreach(result, key, value)
		if (json_is_number(value) && json_number_value(value) > 0 &&
		    strcmp(key, "seconds") != 0) {
			grid_cell(g, TINT_NONE, "%s", key);
			amount_cell(g, result, key);
		}
	return g;
}

static void
service_cells(const json_t *s, struct grid *g)
{
	const json_t *port = json_object_get(s, "port");
	char buf[16] = "*";

	if (json_is_integer(port))
		snprintf(buf, sizeof(buf), "%lld", number(s, "port"));
	grid_cell(g, TINT_NONE, "%s", text(s, "name"));
	grid_cell(g, TINT_NONE, "%s", text(s, "address"));
	grid_cell(g, TINT_NONE, "%s/%s", text(s, "protocol"), buf);
}

static struct grid *
table_grid(json_t *result, bool rate)
{
	json_t *flows = json_object_get(result, "flow_table"), *value;
	struct grid *g = grid_new("lr");
	const char *key;

	grid_cell(g, TINT_HEAD, "FLOW TABLE");
	grid_cell(g, TINT_HEAD, rate ? "EVENTS/s" : "EVENTS");
	json_object_foreach(flows, key, value)
		if (json_number_value(value) > 0) {
			grid_cell(g, strcmp(key, "evict_confirmed") == 0 ?
			    TINT_BAD : TINT_NONE, "%s", key);
			amount_cell(g, flows, key);
		}
	return g;
}

static struct grid *
services_grid(const json_t *result, bool rate)
{
	static const char *const head[] = { "SERVICE", "ADDRESS", "LISTEN",
	    "PACKETS", "BYTES", "DROPS", NULL };
	static const char *const head_rate[] = { "SERVICE", "ADDRESS",
	    "LISTEN", "PACKETS/s", "BYTES/s", "DROPS/s", NULL };
	const json_t *list = json_object_get(result, "services"), *s;
	struct grid *g = grid_new("lllrrr");
	size_t i;

	grid_heads(g, rate ? head_rate : head);
	for (i = 0; i < json_array_size(list); i++) {
		s = json_array_get(list, i);
		service_cells(s, g);
		amount_cell(g, s, "packets");
		amount_cell(g, s, "bytes");
		amount_cell(g, s, "drops");
	}
	return g;
}

static struct grid *
backends_grid(const json_t *result, bool rate)
{
	static const char *const head[] = { "BACKEND", "ADDRESS", "PACKETS",
	    "BYTES", NULL };
	static const char *const head_rate[] = { "BACKEND", "ADDRESS",
	    "PACKETS/s", "BYTES/s", NULL };
	const json_t *list = json_object_get(result, "backends"), *b, *names;
	struct grid *g = grid_new("llrr");
	size_t i, n;

	grid_heads(g, rate ? head_rate : head);
	for (i = 0; i < json_array_size(list); i++) {
		b = json_array_get(list, i);
		names = json_object_get(b, "backends");
		n = json_array_size(names);
		if (n > 1)
			grid_cell(g, TINT_NONE, "%s +%zu", json_string_value(
			    json_array_get(names, 0)), n - 1);
		else
			grid_cell(g, TINT_NONE, "%s", n == 0 ? "" :
			    json_string_value(json_array_get(names, 0)));
		grid_cell(g, TINT_NONE, "%s", text(b, "address"));
		amount_cell(g, b, "packets");
		amount_cell(g, b, "bytes");
	}
	return g;
}

static void
stats_print(json_t *result, bool rate, const struct view *view,
    FILE *out)
{
	struct grid *g[] = { grid_new("lr"),
	    table_grid(result, rate), other_grid(result, rate),
	    services_grid(result, rate), backends_grid(result, rate) };
	bool any = false;
	size_t i;

	reasons_grid(result, rate, g[0]);
	for (i = 0; i < sizeof(g) / sizeof(g[0]); i++) {
		if (grid_rows(g[i]) > 1) {
			if (any)
				fputc('\n', out);
			any = true;
			grid_print(g[i], view->columns, view->colour, out);
		}
		grid_free(g[i]);
	}
}

/* What is to be shown of an answer: itself, or what it is more than the one
 * before. NULL: it is the first. A new reference. */
static json_t *
stats_take(struct stats *s, json_t *result)
{
	double at = now();
	json_t *out = NULL;

	if (!s->rate)
		return json_incref(result);
	if (s->before != NULL && at > s->at)
		out = stats_rate(s->before, result, at - s->at);
	json_decref(s->before);
	s->before = json_incref(result);
	s->at = at;
	return out;
}

static int
stats_once(const struct context *x, void *arg)
{
	const struct timespec second = { 1, 0 };
	struct view view = { .colour = x->colour };
	struct stats *s = arg;
	json_t *reply, *shown = NULL;
	int status;

	do {
		status = ask(x, "stats", NULL, STATS_MS, &reply);
		if (status != 0)
			return status;
		status = reply_take(reply);
		if (status == STATUS_DONE)
			shown = stats_take(s, json_object_get(reply,
			    "result"));
		else
			reply_refused(x, reply);
		json_decref(reply);
		if (status == STATUS_DONE && shown == NULL)
			nanosleep(&second, NULL);
	} while (status == STATUS_DONE && shown == NULL);
	if (status != STATUS_DONE)
		return status;
	if (x->flags & FLAG_JSON)
		return json_out(x, shown);
	stats_print(shown, s->rate, &view, stdout);
	json_decref(shown);
	return STATUS_DONE;
}

static void
stats_draw(json_t *result, const struct view *view, FILE *out, void *arg)
{
	struct stats *s = arg;
	json_t *shown = stats_take(s, result);

	if (shown == NULL)
		fputs("rates come with the next answer\n", out);
	else
		stats_print(shown, s->rate, view, out);
	json_decref(shown);
}

int
stats_run(const struct context *x)
{
	struct stats s = { .rate = (x->flags & FLAG_RATE) != 0 };
	const struct live live = { .more = "stats", .once = stats_once,
	    .request = "stats", .draw = stats_draw, .arg = &s };
	int status;

	status = x->flags & FLAG_WATCH ? live_run(x, &live) :
	    stats_once(x, &s);
	json_decref(s.before);
	return status;
}
