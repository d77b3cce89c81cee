/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The status of a node as text: is it forwarding, is it announcing, what is
 * down, since when, and why. */
#include "ctl/view.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ctl/fields.h"
#include "ctl/grid.h"
#include "ctl/view_int.h"

/* Seconds since 1970 of "2026-01-02T03:04:05.678Z"; -1: none. */
static int64_t
time_of(const json_t *o, const char *key)
{
	struct tm tm = { 0 };

	if (strptime(text(o, key), "%Y-%m-%dT%H:%M:%S", &tm) == NULL)
		return -1;
	return (int64_t)timegm(&tm);
}

const char *
ago(const json_t *status, const json_t *o, const char *key, char buf[24])
{
	int64_t now = time_of(status, "time"), then = time_of(o, key), s;

	buf[0] = '\0';
	if (now < 0 || then < 0)
		return buf;
	s = now > then ? now - then : 0;
	if (s < 120)
		snprintf(buf, 24, "%llds", (long long)s);
	else if (s < 2 * 3600)
		snprintf(buf, 24, "%lldm", (long long)s / 60);
	else if (s < 2 * 86400)
		snprintf(buf, 24, "%lldh", (long long)s / 3600);
	else
		snprintf(buf, 24, "%lldd", (long long)s / 86400);
	return buf;
}

/* Where the address is announced, and how. */
static void
route_cell(const json_t *a, struct grid *g)
{
	const json_t *list = json_object_get(a, "communities");
	char *line;
	size_t i, len;
	FILE *f = open_memstream(&line, &len);

	if (f == NULL)
		return;
	fputs(text(a, "prefix"), f);
	if (json_is_integer(json_object_get(a, "med")))
		fprintf(f, " med %lld", number(a, "med"));
	if (number(a, "prepend") > 0)
		fprintf(f, " prepend %lld", number(a, "prepend"));
	for (i = 0; i < json_array_size(list); i++)
		fprintf(f, " %s", json_string_value(json_array_get(list, i)));
	fclose(f);
	grid_cell(g, TINT_NONE, "%s", line);
	free(line);
}

/* Texts of a list, in one cell. */
void
joined_cell(struct grid *g, const json_t *list)
{
	char buf[1024] = "";
	size_t i, len = 0;

	for (i = 0; i < json_array_size(list) && len < sizeof(buf); i++)
		len += (size_t)snprintf(buf + len, sizeof(buf) - len, "%s%s",
		    i > 0 ? " " : "",
		    json_string_value(json_array_get(list, i)));
	grid_cell(g, TINT_NONE, "%s", buf);
}

static void
peers_cell(const json_t *a, bool names, struct grid *g)
{
	const json_t *list = json_object_get(a, "peers");

	if (names && json_array_size(list) > 0)
		joined_cell(g, list);
	else
		grid_cell(g, TINT_NONE, "%lld", number(a, "exported"));
}

static bool
has_route(enum view_address how)
{
	return how == ADDRESS_ALL || how == ADDRESS_PEERS;
}

static void
address_cells(const json_t *status, const json_t *a, enum view_address how,
    struct grid *g)
{
	bool in_bird = yes(a, "in_bird"), wanted = yes(a, "wanted");
	const json_t *since = a;
	const char *state;
	enum tint tint = TINT_ODD;
	char buf[24];

	if (!in_bird && !wanted) {
		state = "withdrawn";
		tint = TINT_BAD;
	} else if (!in_bird) {
		state = "not in BIRD";
		tint = TINT_BAD;
		since = json_object_get(status, "bird");
	} else if (!wanted) {
		state = "leaving";
	} else if (number(a, "exported") == 0) {
		state = "in BIRD";
		tint = TINT_BAD;
	} else if (yes(a, "graceful_shutdown")) {
		state = "draining";
	} else {
		state = "announced";
		tint = TINT_GOOD;
	}
	grid_cell(g, TINT_NONE, "%s", text(a, "address"));
	grid_cell(g, tint, "%s", state);
	peers_cell(a, how == ADDRESS_PEERS, g);
	grid_cell(g, TINT_NONE, "%s", ago(status, since, "since", buf));
	grid_cell(g, TINT_NONE, "%s%s%s", text(a, "reason"),
	    text(a, "service")[0] != '\0' ? ": " : "", text(a, "service"));
	if (has_route(how))
		route_cell(a, g);
}

bool
view_announced(const json_t *a)
{
	return yes(a, "in_bird") && yes(a, "wanted") &&
	    number(a, "exported") > 0;
}

struct grid *
view_addresses(const json_t *status, enum view_address how)
{
	static const char *const head[2][7] = {
		{ "ADDRESS", "STATE", "PEERS", "SINCE", "WHY", "ROUTE", NULL },
		{ "ADDRESS", "STATE", "PEERS", "SINCE", "WHY", NULL } };
	const json_t *list = json_object_get(status, "addresses"), *a;
	struct grid *g = grid_new(!has_route(how) ? "llrrl" :
	    how == ADDRESS_PEERS ? "lllrll" : "llrrll");
	size_t i;

	for (i = 0; i < json_array_size(list); i++) {
		a = json_array_get(list, i);
		if (how == ADDRESS_TROUBLE && view_announced(a))
			continue;
		if (grid_rows(g) == 0)
			grid_heads(g, head[!has_route(how)]);
		address_cells(status, a, how, g);
	}
	return g;
}

static void
pool_line(const json_t *p, struct grid *g)
{
	bool ready = yes(p, "ready"), open = yes(p, "failed_open");

	grid_line(g, open ? TINT_ODD : ready ? TINT_NONE : TINT_BAD,
	    "%s: %s, %lld of %zu eligible, %lld needed", text(p, "name"),
	    open ? "fail open" : ready ? "ready" : "not ready",
	    number(p, "eligible"),
	    json_array_size(json_object_get(p, "backends")),
	    number(p, "needed"));
}

/* One word for both: what the operator wants, if that is not that it is used;
 * else what its health is. */
static void
backend_state_cell(const json_t *b, struct grid *g)
{
	const char *health = text(b, "health"), *state = text(b, "state");

	if (strcmp(state, "active") != 0)
		grid_cell(g, TINT_ODD, "%s", strcmp(state, "down") == 0 ?
		    "off" : state);
	else
		grid_cell(g, strcmp(health, "up") == 0 ? TINT_GOOD :
		    strcmp(health, "down") == 0 ? TINT_BAD : TINT_ODD, "%s",
		    health);
}

void
view_backend(const json_t *status, const json_t *b, long long slots,
    struct grid *g)
{
	char buf[24];

	grid_cell(g, TINT_NONE, "%s", text(b, "address"));
	grid_cell(g, TINT_NONE, "%lld", number(b, "weight"));
	if (slots > 0)
		grid_cell(g, TINT_NONE, "%.1f%%", 100.0 *
		    (double)number(b, "slots") / (double)slots);
	else
		grid_cell(g, TINT_NONE, "%s", "");
	backend_state_cell(b, g);
	/* drained, or put back, since then, and not since a check said so */
	grid_cell(g, TINT_NONE, "%s", ago(status, b,
	    strcmp(text(b, "state"), "active") != 0 ? "state_since" : "since",
	    buf));
	if (number(b, "path_mtu") > 0 &&
	    number(b, "path_mtu") < number(b, "link_mtu") &&
	    *text(b, "reason") == '\0')
		grid_cell(g, TINT_ODD, "MTU %lld of %lld",
		    number(b, "path_mtu"), number(b, "link_mtu"));
	else
		grid_cell(g, TINT_NONE, "%s", text(b, "reason"));
}

static void
backend_line(const json_t *status, const json_t *p, const json_t *b,
    struct grid *g)
{
	grid_cell(g, TINT_NONE, "  %s", text(b, "name"));
	view_backend(status, b, number(p, "slots"), g);
}

static bool
pool_fine(const json_t *p)
{
	const json_t *list = json_object_get(p, "backends");
	size_t i;

	for (i = 0; i < json_array_size(list); i++)
		if (!yes(json_array_get(list, i), "eligible"))
			return false;
	return yes(p, "ready") && !yes(p, "failed_open");
}

static struct grid *
pools_grid(const json_t *status, bool brief)
{
	static const char *const head[] = { "POOL/BACKEND", "ADDRESS",
	    "WEIGHT", "SHARE", "STATE", "SINCE", "WHY", NULL };
	const json_t *list = json_object_get(status, "pools"), *p, *b;
	struct grid *g = grid_new("llrrlrl");
	size_t i, j;

	for (i = 0; i < json_array_size(list); i++) {
		p = json_array_get(list, i);
		if (brief && pool_fine(p))
			continue;
		if (grid_rows(g) == 0)
			grid_heads(g, head);
		pool_line(p, g);
		for (j = 0; j < json_array_size(json_object_get(p, "backends"));
		    j++) {
			b = json_array_get(json_object_get(p, "backends"), j);
			if (!brief || !yes(b, "eligible"))
				backend_line(status, p, b, g);
		}
	}
	return g;
}

static size_t
lines_of(const struct grid *g)
{
	size_t n = grid_rows(g);

	return n > 0 ? n + 1 : 0;	/* an empty line before it */
}

/* All of it, or what is not in order, without what changed last. */
struct parts {
	struct grid *head, *addresses, *pools;
	bool brief;
};

static size_t
parts_lines(const struct parts *p)
{
	return grid_rows(p->head) + lines_of(p->addresses) +
	    lines_of(p->pools) + (p->brief ? 2 : 0);
}

static void
parts_make(const json_t *status, const struct view *view, struct parts *p)
{
	p->head = grid_new("ll");
	view_head(status, p->head);
	p->addresses = view_addresses(status, ADDRESS_ALL);
	if (view->columns > 0 && grid_width(p->addresses) > view->columns) {
		grid_free(p->addresses);
		p->addresses = view_addresses(status, ADDRESS_NARROW);
	}
	p->pools = pools_grid(status, false);
	p->brief = false;
	p->brief = view->rows > 0 && parts_lines(p) + 1 >= view->rows;
	if (!p->brief)
		return;
	grid_free(p->addresses);
	grid_free(p->pools);
	p->addresses = view_addresses(status, ADDRESS_TROUBLE);
	p->pools = pools_grid(status, true);
}

void
view_status(const json_t *status, const struct view *view, FILE *out)
{
	unsigned width = view->whole ? 0 : view->columns;
	struct parts p;
	size_t lines;

	parts_make(status, view, &p);
	lines = parts_lines(&p) + 1;	/* and the prompt behind it */
	view_changes(status, view->rows == 0 ? CHANGES_MOST :
	    lines < view->rows ? view->rows - lines : 1, view->columns, p.head);
	grid_print(p.head, width, view->colour, out);
	if (grid_rows(p.addresses) > 0)
		fputc('\n', out);
	grid_print(p.addresses, width, view->colour, out);
	if (grid_rows(p.pools) > 0)
		fputc('\n', out);
	grid_print(p.pools, width, view->colour, out);
	if (p.brief)
		view_rest(status, out);
	grid_free(p.head);
	grid_free(p.addresses);
	grid_free(p.pools);
}
