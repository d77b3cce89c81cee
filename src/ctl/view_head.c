/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The first lines of a node's status: each begins with the answer, yes or no,
 * and says how much, since when and why. */
#include <stdlib.h>
#include <string.h>

#include "ctl/fields.h"
#include "ctl/grid.h"
#include "ctl/view_int.h"

#define SESSIONS_MOST 3		/* of those that are down */
#define HEAD_WIDTH 12		/* of the first column, with the gap */

/* A line put together from pieces: one cell. */
struct line {
	char *text;
	size_t len;
	FILE *f;
};

static void
line_open(struct line *l)
{
	l->f = open_memstream(&l->text, &l->len);
	if (l->f == NULL)
		abort();
}

static void
line_cell(struct line *l, struct grid *g, enum tint tint)
{
	fclose(l->f);
	grid_cell(g, tint, "%s", l->text);
	free(l->text);
}

/* At most so many columns of it in a cell; 0: all. */
static void
line_cell_cut(struct line *l, unsigned width, struct grid *g)
{
	fclose(l->f);
	if (width > 3 && l->len > width)
		grid_cell(g, TINT_NONE, "%.*s...", (int)width - 3, l->text);
	else
		grid_cell(g, TINT_NONE, "%s", l->text);
	free(l->text);
}

static void
node_cells(const json_t *status, struct grid *g)
{
	bool serving = strcmp(text(status, "state"), "active") == 0 &&
	    strcmp(text(status, "phase"), "serving") == 0;
	const char *phase = text(status, "phase");
	char buf[24], since[24];
	struct line l;

	line_open(&l);
	fprintf(l.f, "%s: %s", text(status, "node"), text(status, "state"));
	if (*ago(status, status, "state_since", since) != '\0')
		fprintf(l.f, " by hand for %s", since);
	if (strcmp(phase, "graceful_shutdown") == 0)
		fputs(", still announced, with 65535:0", l.f);
	else if (strcmp(phase, "serving") != 0)
		fprintf(l.f, ", %s", phase);
	if (serving)
		fprintf(l.f, ", xlbd %s", text(status, "version"));
	fprintf(l.f, ", up %s", ago(status, status, "started", buf));
	grid_cell(g, TINT_HEAD, "node");
	line_cell(&l, g, serving ? TINT_NONE : TINT_ODD);
}

static size_t
ready_count(const json_t *list)
{
	size_t i, n = 0;

	for (i = 0; i < json_array_size(list); i++)
		n += yes(json_array_get(list, i), "ready");
	return n;
}

/* A program that is attached forwards nothing while no service has backends. */
static void
forwarding_cells(const json_t *status, struct grid *g)
{
	const json_t *list = json_object_get(status, "services"), *row;
	size_t i, all = json_array_size(list), ready = ready_count(list);
	bool on = yes(status, "forwarding");
	struct line l;

	line_open(&l);
	if (!on)
		fprintf(l.f, "no: %s", text(status, "forwarding_reason"));
	else if (all == 0)
		fputs("nothing: no services are configured", l.f);
	else
		fprintf(l.f, "%s %zu of %zu services ready", ready == all ?
		    "yes," : ready > 0 ? "in part:" : "nothing:", ready, all);
	list = json_object_get(status, "interfaces");
	for (i = 0; i < json_array_size(list); i++) {
		row = json_array_get(list, i);
		if (yes(row, "attached"))
			fprintf(l.f, ", %s %s", text(row, "name"),
			    text(row, "mode"));
	}
	grid_cell(g, TINT_HEAD, "forwarding");
	line_cell(&l, g, !on || (ready == 0 && all > 0) ? TINT_BAD :
	    ready < all ? TINT_ODD : TINT_GOOD);
	for (i = 0; i < json_array_size(list); i++) {
		row = json_array_get(list, i);
		if (yes(row, "attached") && *text(row, "reason") == '\0')
			continue;
		grid_cell(g, TINT_NONE, "%s", "");
		grid_cell(g, TINT_BAD, "%s %s: %s", text(row, "name"),
		    yes(row, "attached") ? text(row, "mode") : "not attached",
		    text(row, "reason"));
	}
}

static bool
is_up(const json_t *peer)
{
	return strcmp(text(peer, "state"), "Established") == 0;
}

static size_t
up_count(const json_t *peers)
{
	size_t i, n = 0;

	for (i = 0; i < json_array_size(peers); i++)
		n += is_up(json_array_get(peers, i));
	return n;
}

/* BIRD itself, on the line of what is announced. */
static void
bird_print(const json_t *status, const json_t *bird, FILE *f)
{
	const json_t *peers = json_object_get(bird, "peers");
	bool synced = strcmp(text(bird, "status"), "synced") == 0;
	size_t all = json_array_size(peers);
	char buf[24];

	fprintf(f, ", BIRD: %s", text(bird, "status"));
	if (!synced && *ago(status, bird, "since", buf) != '\0')
		fprintf(f, " for %s", buf);
	if (all > 0)
		fprintf(f, ", %zu of %zu sessions up", up_count(peers), all);
	else if (synced)
		fputs(", no BGP session is configured", f);
}

/* Why, in lines of their own: they are long. */
static void
bird_cells(const json_t *status, const json_t *bird, struct grid *g)
{
	const json_t *peers = json_object_get(bird, "peers"), *p;
	size_t i, n = 0;
	char buf[24];

	if (number(bird, "stuck") > 0) {
		grid_cell(g, TINT_NONE, "%s", "");
		grid_cell(g, TINT_BAD, "%lld routes have to go and BIRD keeps "
		    "them: %s", number(bird, "stuck"), text(bird, "reason"));
	} else if (*text(bird, "reason") != '\0') {
		grid_cell(g, TINT_NONE, "%s", "");
		grid_cell(g, TINT_ODD, "%s", text(bird, "reason"));
	}
	for (i = 0; i < json_array_size(peers); i++) {
		p = json_array_get(peers, i);
		if (is_up(p) || ++n > SESSIONS_MOST)
			continue;
		ago(status, p, "since", buf);
		grid_cell(g, TINT_NONE, "%s", "");
		grid_cell(g, TINT_ODD, "session %s: %s%s%s%s%s", text(p, "name"),
		    text(p, "state"), *buf != '\0' ? " for " : "", buf,
		    *text(p, "reason") != '\0' ? ": " : "", text(p, "reason"));
	}
	if (n > SESSIONS_MOST) {
		grid_cell(g, TINT_NONE, "%s", "");
		grid_cell(g, TINT_ODD, "and %zu more: xlb bgp", n -
		    SESSIONS_MOST);
	}
}

static void
announcing_cells(const json_t *status, struct grid *g)
{
	const json_t *bird = json_object_get(status, "bird");
	const json_t *list = json_object_get(status, "addresses");
	size_t i, n = 0, all = json_array_size(list);
	struct line l;

	grid_cell(g, TINT_HEAD, "announcing");
	if (!json_is_object(bird)) {
		grid_cell(g, TINT_NONE, "nothing: no bgp: section");
		return;
	}
	for (i = 0; i < all; i++)
		n += view_announced(json_array_get(list, i));
	line_open(&l);
	fprintf(l.f, "%s %zu of %zu addresses", all == 0 ? "nothing:" :
	    n == all ? "yes," : n > 0 ? "in part:" : "no:", n, all);
	bird_print(status, bird, l.f);
	line_cell(&l, g, number(bird, "stuck") > 0 || (n == 0 && all > 0) ?
	    TINT_BAD : n < all || up_count(json_object_get(bird, "peers")) <
	    json_array_size(json_object_get(bird, "peers")) ? TINT_ODD :
	    TINT_GOOD);
	bird_cells(status, bird, g);
}

static void
config_cells(const json_t *status, struct grid *g)
{
	const json_t *c = json_object_get(status, "config");
	char buf[24];

	ago(status, c, "loaded", buf);
	grid_cell(g, TINT_HEAD, "config");
	if (yes(c, "ok")) {
		grid_cell(g, TINT_NONE, "%s, loaded %s ago", text(c, "file"),
		    buf);
		return;
	}
	grid_cell(g, TINT_BAD, "the file does not load; %s %s ago is in force",
	    yes(c, "kept") ? "the kept one of" : "what was loaded", buf);
	grid_cell(g, TINT_NONE, "%s", "");
	grid_cell(g, TINT_BAD, "%s", text(c, "error"));
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

/* What these services cost; see xlb.yaml(5). */
static void
nat_cells(const json_t *status, struct grid *g)
{
	const json_t *list = json_object_get(status, "services"), *s;
	char names[128] = "";
	size_t i, n = 0;

	json_array_foreach(list, i, s) {
		if (strcmp(text(s, "forward"), "nat") != 0)
			continue;
		if (n + strlen(text(s, "name")) + 8 > sizeof(names)) {
			snprintf(names + n, sizeof(names) - n, ", ...");
			break;
		}
		n += (size_t)snprintf(names + n, sizeof(names) - n, "%s%s",
		    n > 0 ? ", " : "", text(s, "name"));
	}
	if (n == 0)
		return;
	grid_cell(g, TINT_HEAD, "nat");
	grid_cell(g, TINT_NONE, "%s: flows are stable on this node only; "
	    "backends see its address", names);
}

/* The node's own is in its line. */
static void
overrides_cells(const json_t *status, struct grid *g)
{
	const json_t *list = json_object_get(status, "overrides"), *row;
	bool any = false;
	char buf[24];
	size_t i;

	for (i = 0; i < json_array_size(list); i++) {
		row = json_array_get(list, i);
		if (strcmp(text(row, "object"), "node") == 0)
			continue;
		grid_cell(g, TINT_HEAD, any ? "" : "by hand");
		grid_cell(g, TINT_ODD, "%s: %s, %s ago", text(row, "object"),
		    text(row, "state"), ago(status, row, "since", buf));
		any = true;
	}
}

void
view_head(const json_t *status, struct grid *g)
{
	node_cells(status, g);
	forwarding_cells(status, g);
	announcing_cells(status, g);
	config_cells(status, g);
	flows_cells(status, g);
	nat_cells(status, g);
	overrides_cells(status, g);
}

/* As in the log; of what is asked through a tunnel, which VIP: one backend has
 * a verdict on each. */
static void
change_print(const json_t *status, const json_t *c, FILE *f)
{
	const char *object = text(c, "object"), *from = strstr(object, " (");
	const char *vip = from != NULL ? strstr(from, " for ") : NULL;
	char buf[24];

	fprintf(f, "%s ago, ", ago(status, c, "time", buf));
	if (vip != NULL)
		fprintf(f, "%.*s%.*s", (int)(from - object), object,
		    (int)strcspn(vip, ")"), vip);
	else
		fputs(object, f);
	fprintf(f, ": %s -> %s", text(c, "old"), text(c, "new"));
	if (*text(c, "reason") != '\0')
		fprintf(f, ": %s", text(c, "reason"));
}

void
view_changes(const json_t *status, size_t most, unsigned columns,
    struct grid *g)
{
	const json_t *list = json_object_get(status, "changes");
	struct line l;
	size_t i;

	for (i = 0; i < json_array_size(list) && i < most && i < CHANGES_MOST;
	    i++) {
		line_open(&l);
		change_print(status, json_array_get(list, i), l.f);
		grid_cell(g, TINT_HEAD, i == 0 ? "changed" : "");
		line_cell_cut(&l, columns > HEAD_WIDTH ? columns - HEAD_WIDTH :
		    0, g);
	}
}

void
view_rest(const json_t *status, FILE *out)
{
	const json_t *list = json_object_get(status, "addresses"), *backends;
	size_t i, k, announced = 0, all = 0, fine = 0;

	for (i = 0; i < json_array_size(list); i++)
		announced += view_announced(json_array_get(list, i));
	list = json_object_get(status, "pools");
	for (i = 0; i < json_array_size(list); i++) {
		backends = json_object_get(json_array_get(list, i), "backends");
		all += json_array_size(backends);
		for (k = 0; k < json_array_size(backends); k++)
			fine += yes(json_array_get(backends, k), "eligible");
	}
	fprintf(out, "\n%zu addresses announced and %zu of %zu backends in "
	    "order: not listed\n", announced, fine, all);
}
