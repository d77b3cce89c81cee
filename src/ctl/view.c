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

struct counts {
	size_t addresses, announced, backends, fine;
};

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

static void
counts_take(const json_t *status, struct counts *n)
{
	const json_t *list = json_object_get(status, "addresses"), *backends;
	size_t i, j;

	memset(n, 0, sizeof(*n));
	n->addresses = json_array_size(list);
	for (i = 0; i < n->addresses; i++)
		n->announced += yes(json_array_get(list, i), "in_bird");
	list = json_object_get(status, "pools");
	for (i = 0; i < json_array_size(list); i++) {
		backends = json_object_get(json_array_get(list, i), "backends");
		n->backends += json_array_size(backends);
		for (j = 0; j < json_array_size(backends); j++)
			n->fine += yes(json_array_get(backends, j), "eligible");
	}
}

static void
node_cells(const json_t *status, struct grid *g)
{
	const char *phase = text(status, "phase");
	char buf[24];

	grid_cell(g, TINT_HEAD, "node");
	grid_cell(g, strcmp(text(status, "state"), "active") == 0 ? TINT_NONE :
	    TINT_ODD, "%s: %s%s%s, xlbd %s, up %s", text(status, "node"),
	    text(status, "state"), strcmp(phase, "serving") != 0 ? ", " : "",
	    strcmp(phase, "serving") != 0 ? phase : "",
	    text(status, "version"), ago(status, status, "started", buf));
}

static void
forwarding_cells(const json_t *status, struct grid *g)
{
	const json_t *list = json_object_get(status, "interfaces"), *row;
	bool on = yes(status, "forwarding");
	char *line;
	size_t i, len;
	FILE *f = open_memstream(&line, &len);

	if (f == NULL)
		return;
	fputs(on ? "yes" : "no", f);
	if (text(status, "forwarding_reason")[0] != '\0')
		fprintf(f, ": %s", text(status, "forwarding_reason"));
	for (i = 0; i < json_array_size(list); i++) {
		row = json_array_get(list, i);
		fprintf(f, ", %s ", text(row, "name"));
		if (yes(row, "attached"))
			fputs(text(row, "mode"), f);
		else
			fprintf(f, "not attached: %s", text(row, "reason"));
	}
	fclose(f);
	grid_cell(g, TINT_HEAD, "forwarding");
	grid_cell(g, on ? TINT_GOOD : TINT_BAD, "%s", line);
	free(line);
}

static void
announcing_cells(const json_t *status, const struct counts *n, struct grid *g)
{
	const json_t *bird = json_object_get(status, "bird"), *peers;
	long long stuck = number(bird, "stuck");
	size_t i, up = 0, all;
	char *line;
	size_t len;
	FILE *f = open_memstream(&line, &len);

	if (f == NULL)
		return;
	if (!json_is_object(bird)) {
		fclose(f);
		free(line);
		grid_cell(g, TINT_HEAD, "announcing");
		grid_cell(g, TINT_NONE, "nothing: no bgp: section");
		return;
	}
	peers = json_object_get(bird, "peers");
	all = json_array_size(peers);
	for (i = 0; i < all; i++)
		up += strcmp(text(json_array_get(peers, i), "state"),
		    "Established") == 0;
	fprintf(f, "%zu of %zu addresses, BIRD: %s", n->announced,
	    n->addresses, text(bird, "status"));
	if (text(bird, "reason")[0] != '\0')
		fprintf(f, " (%s)", text(bird, "reason"));
	fprintf(f, ", %zu of %zu sessions up", up, all);
	if (stuck > 0)
		fprintf(f, ", %lld stuck in BIRD", stuck);
	fclose(f);
	grid_cell(g, TINT_HEAD, "announcing");
	grid_cell(g, stuck > 0 ? TINT_BAD : n->announced == n->addresses && up == all ? TINT_GOOD :
	    n->announced > 0 ? TINT_ODD : TINT_BAD, "%s", line);
	free(line);
}

static void
config_cells(const json_t *status, struct grid *g)
{
	const json_t *c = json_object_get(status, "config");
	char buf[24];

	ago(status, c, "loaded", buf);
	grid_cell(g, TINT_HEAD, "config");
	if (yes(c, "ok"))
		grid_cell(g, TINT_NONE, "%s, loaded %s ago", text(c, "file"),
		    buf);
	else
		grid_cell(g, TINT_BAD, "not loaded, %s %s ago stays: %s",
		    yes(c, "kept") ? "the kept one of" : "the one of", buf,
		    text(c, "error"));
}

/* Only what is out of the ordinary. */
static void
flows_cells(const json_t *status, struct grid *g)
{
	const json_t *f = json_object_get(status, "flow_table");
	char buf[24];

	if (!yes(f, "surge"))
		return;
	grid_cell(g, TINT_HEAD, "flows");
	grid_cell(g, TINT_ODD, "many came from other nodes: every packet is "
	    "looked up since %s", ago(status, f, "surge_since", buf));
}

static void
overrides_cells(const json_t *status, struct grid *g)
{
	const json_t *list = json_object_get(status, "overrides"), *row;
	char buf[24];
	size_t i;

	for (i = 0; i < json_array_size(list); i++) {
		row = json_array_get(list, i);
		grid_cell(g, TINT_HEAD, i == 0 ? "overrides" : "");
		grid_cell(g, TINT_ODD, "%s: %s since %s", text(row, "object"),
		    text(row, "state"), ago(status, row, "since", buf));
	}
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

static void
address_cells(const json_t *status, const json_t *a, enum view_address how,
    struct grid *g)
{
	bool in_bird = yes(a, "in_bird"), wanted = yes(a, "wanted");
	const char *state;
	enum tint tint = TINT_ODD;
	char buf[24];

	if (!in_bird && !wanted) {
		state = "withdrawn";
		tint = TINT_BAD;
	} else if (!in_bird) {
		state = "coming";
	} else if (!wanted) {
		state = "leaving";
	} else if (yes(a, "graceful_shutdown")) {
		state = "draining";
	} else {
		state = "announced";
		tint = TINT_GOOD;
	}
	grid_cell(g, TINT_NONE, "%s", text(a, "address"));
	grid_cell(g, tint, "%s", state);
	peers_cell(a, how == ADDRESS_PEERS, g);
	grid_cell(g, TINT_NONE, "%s", ago(status, a, "since", buf));
	grid_cell(g, TINT_NONE, "%s%s%s", text(a, "reason"),
	    text(a, "service")[0] != '\0' ? ": " : "", text(a, "service"));
	if (how != ADDRESS_TROUBLE)
		route_cell(a, g);
}

struct grid *
view_addresses(const json_t *status, enum view_address how)
{
	static const char *const head[2][7] = {
		{ "ADDRESS", "STATE", "PEERS", "SINCE", "WHY", "ROUTE", NULL },
		{ "ADDRESS", "STATE", "PEERS", "SINCE", "WHY", NULL } };
	const json_t *list = json_object_get(status, "addresses"), *a;
	struct grid *g = grid_new(how == ADDRESS_TROUBLE ? "llrrl" :
	    how == ADDRESS_PEERS ? "lllrll" : "llrrll");
	size_t i;

	for (i = 0; i < json_array_size(list); i++) {
		a = json_array_get(list, i);
		if (how == ADDRESS_TROUBLE && yes(a, "in_bird") && yes(a, "wanted"))
			continue;
		if (grid_rows(g) == 0)
			grid_heads(g, head[how == ADDRESS_TROUBLE]);
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
	grid_cell(g, TINT_NONE, "%s", ago(status, b, "since", buf));
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

void
view_status(const json_t *status, const struct view *view, FILE *out)
{
	struct grid *top = grid_new("ll"), *addresses, *pools;
	struct counts n;
	bool brief;

	counts_take(status, &n);
	node_cells(status, top);
	forwarding_cells(status, top);
	announcing_cells(status, &n, top);
	config_cells(status, top);
	flows_cells(status, top);
	overrides_cells(status, top);
	addresses = view_addresses(status, ADDRESS_ALL);
	pools = pools_grid(status, false);
	brief = view->rows > 0 && grid_rows(top) + lines_of(addresses) +
	    lines_of(pools) >= view->rows;
	if (brief) {
		grid_free(addresses);
		grid_free(pools);
		addresses = view_addresses(status, ADDRESS_TROUBLE);
		pools = pools_grid(status, true);
	}
	grid_print(top, view->columns, view->colour, out);
	if (grid_rows(addresses) > 0)
		fputc('\n', out);
	grid_print(addresses, view->columns, view->colour, out);
	if (grid_rows(pools) > 0)
		fputc('\n', out);
	grid_print(pools, view->columns, view->colour, out);
	if (brief)
		fprintf(out, "\n%zu addresses announced and %zu of %zu "
		    "backends in order: not listed\n", n.announced, n.fine,
		    n.backends);
	grid_free(top);
	grid_free(addresses);
	grid_free(pools);
}
