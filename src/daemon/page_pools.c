/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The status page's pools: backends with their state, share and rate. */
#include "daemon/page.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/html.h"
#include "daemon/history.h"
#include "daemon/status.h"
#include "io/maps.h"

#define OPEN_MAX 20		/* a pool of more backends is shown when asked for,
				 * unless something is wrong with it */

void
page_pools_begin(struct document *doc)
{
	doc->room = PAGE_MEMBERS_ALL;
	fputs("<section><h2>Pools</h2>\n", doc->out);
	if (doc->d->wanted.npool == 0)
		fputs("<p class=dim>none</p>\n", doc->out);
}

void
page_pools_end(struct document *doc)
{
	size_t n = doc->d->wanted.npool;

	page_more(doc->out, n > PAGE_ROWS ? n - PAGE_ROWS : 0, "xlb pools");
	fputs("</section>\n", doc->out);
}

static bool
is_down(const struct state_member *m)
{
	return !member_is_up(m) && m->state != BACKEND_DOWN;
}

static void
member_state(FILE *out, const struct state_pool *p,
    const struct state_member *m)
{
	char why[HEALTH_WHY_MAX];

	if (m->why == MEMBER_ELIGIBLE)
		page_tag(out, "good", m->health_row != NULL ? "up" :
		    "up, not checked");
	else if (m->state == BACKEND_DRAIN || m->why == MEMBER_ASKS_DRAIN)
		page_tag(out, is_down(m) ? "bad" : "warn",
		    is_down(m) ? "draining, down" : "draining");
	else if (m->why == MEMBER_STATE_DOWN || m->why == MEMBER_WEIGHT_ZERO)
		page_tag(out, "", member_why_text(m->why));
	else
		page_tag(out, m->why == MEMBER_UNKNOWN ? "warn" : "bad",
		    m->why == MEMBER_UNHEALTHY ? "down" :
		    member_why_text(m->why));
	fputs("<small>", out);
	if ((m->why == MEMBER_UNHEALTHY || m->why == MEMBER_ASKS_DRAIN) &&
	    m->health_row != NULL) {
		fputs("<bdi>", out);
		html_text(out, status_member_reason(m, p->conf->check, why));
		fputs("</bdi> ", out);
	}
	if (m->health_row != NULL && m->health_row->since > 0) {
		fputs("for ", out);
		page_since(out, m->health_row->since);
	}
	fputs("</small>", out);
}

static void
member_row(struct document *doc, const struct state_pool *p, size_t i,
    const struct status_ring *ring)
{
	const struct conf_backend *b = &p->conf->backend[i];
	const struct state_member *m = &p->member[i];
	char addr[ADDR_STR_MAX], rate[HTML_NUMBER_MAX];
	struct history_rate past;
	FILE *out = doc->out;

	fprintf(out, "<tr><td class=c1><bdi>%s</bdi><small><code>%s</code>"
	    "</small><td class=c2>", b->name, addr_print(&b->address, addr));
	member_state(out, p, m);
	fputs("<td class=c3>", out);
	html_bar(out, ring->slots[i], ring->size);
	fprintf(out, "<td class=\"c4 n wide\">%.1f %%", ring->size > 0 ?
	    100.0 * ring->slots[i] / ring->size : 0);
	if (history_backend(doc->d, m->number, &past)) {
		fprintf(out, "<td class=\"c5 n\">%s<td class=\"c6 wide\">",
		    html_number(past.value[past.n - 1], rate));
		html_spark(out, past.value, past.n, HISTORY_SAMPLES);
	} else {
		fputs("<td class=\"c5 n\">–<td class=\"c6 wide\">", out);
	}
	fputs("\n", out);
}

/* Those that something is wrong with first, where not all have room. */
static void
members(struct document *doc, const struct state_pool *p,
    const struct status_ring *ring)
{
	size_t n = p->conf->nbackend, room = doc->room, left, i;
	bool all;

	if (room > PAGE_MEMBERS)
		room = PAGE_MEMBERS;
	if (room < PAGE_MEMBERS_LEAST)
		room = PAGE_MEMBERS_LEAST;
	all = n <= room;
	left = all ? n : room;
	doc->room -= left < doc->room ? left : doc->room;

	fputs("<table class=pool><thead><tr><th class=c1>Backend<th class=c2>"
	    "State<th class=c3>Share<th class=\"c4 n wide\"><th class=\"c5 n\">"
	    "Packets/s<th class=\"c6 wide\">Last 4 min</thead><tbody>\n",
	    doc->out);
	for (i = 0; !all && i < n && left > 0; i++)
		if (p->member[i].why != MEMBER_ELIGIBLE) {
			member_row(doc, p, i, ring);
			left--;
		}
	for (i = 0; i < n && left > 0; i++)
		if (all || p->member[i].why == MEMBER_ELIGIBLE) {
			member_row(doc, p, i, ring);
			left--;
		}
	fputs("</tbody></table>\n", doc->out);
	page_more(doc->out, all ? 0 : n - room, "xlb backends");
}

static void
pool_summary(struct document *doc, const struct state_pool *p,
    const struct status_ring *ring)
{
	const struct state_ring *r = state_ring_find(&doc->d->wanted,
	    p->conf->name);
	struct maps_ring_count n;
	FILE *out = doc->out;

	fprintf(out, "<summary><b>%s</b>", p->conf->name);
	page_tag(out, p->failed_open ? "bad" : p->ready ? "good" : "bad",
	    p->failed_open ? "failed open" : p->ready ? "ready" : "not ready");
	fprintf(out, " <span class=dim>%u of %zu eligible, %u needed; ",
	    p->eligible, p->conf->nbackend, p->needed);
	if (r == NULL)
		fputs("no service uses it", out);
	else
		fprintf(out, "ring <code>%016" PRIx64 "</code>",
		    ring->fingerprint);
	if (r != NULL && maps_ring_count(prog_maps(doc->d->prog), r->number,
	    &n) == 0 && (n.prev > 0 || n.lookup > 0)) {
		fprintf(out, "; of %u slots ", ring->size);
		if (n.prev > 0)
			fprintf(out, "%u are moving, ", n.prev);
		fprintf(out, "%u are looked up", n.lookup);
	}
	fputs("</span></summary>\n", out);
}

void
page_pool(struct document *doc, size_t i)
{
	struct daemon *d = doc->d;
	const struct state_pool *p = &d->wanted.pool[i];
	struct arena *a = arena_new();
	struct status_ring ring;
	bool wrong = !p->ready || p->failed_open;
	size_t k;

	for (k = 0; k < p->conf->nbackend; k++)
		wrong |= is_down(&p->member[k]);
	status_ring_of(&d->wanted, p, d->rings, a, &ring);
	fprintf(doc->out, "<details id=\"pool-%s\"%s>\n", p->conf->name,
	    wrong || p->conf->nbackend <= OPEN_MAX ? " open" : "");
	pool_summary(doc, p, &ring);
	members(doc, p, &ring);
	fputs("</details>\n", doc->out);
	arena_free(a);
}
