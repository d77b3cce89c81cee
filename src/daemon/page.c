/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The status page: for those who look, not for programs. Whatever comes from
 * names, probes or BIRD goes through html_text(). */
#include "daemon/page.h"

#include <inttypes.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "core/html.h"
#include "core/page_text.h"
#include "daemon/history.h"
#include "daemon/status.h"
#include "io/conf_file.h"
#include "io/log.h"
#include "io/maps.h"

void
page_tag(FILE *out, const char *class, const char *text)
{
	fprintf(out, "<span class=\"tag %s\"><bdi>", class);
	html_text(out, text);
	fputs("</bdi></span>", out);
}

void
page_since(FILE *out, int64_t at)
{
	char ago[HTML_NUMBER_MAX];

	if (at > 0)
		fputs(html_ago(daemon_realtime() - at, ago), out);
}

void
page_more(FILE *out, size_t left, const char *command)
{
	if (left > 0)
		fprintf(out, "<p class=dim>%zu more: <code>%s</code></p>\n",
		    left, command);
}

static void
text_cell(FILE *out, const char *text)
{
	fputs("<td><bdi>", out);
	html_text(out, text);
	fputs("</bdi>", out);
}

/* ---- head, and what needs somebody ---- */

static void
head_row(struct document *doc, size_t i)
{
	const struct daemon *d = doc->d;
	char name[NODE_NAME_MAX], ago[HTML_NUMBER_MAX];
	const char *node = conf_node_name(d->config->conf, name);
	bool drains = d->lifecycle.life != LIFE_SERVE;
	bool forwards = *daemon_not_forwarding(d) == '\0';
	FILE *out = doc->out;

	(void)i;
	fputs("<!DOCTYPE html>\n<html lang=en>\n<head>\n<meta charset=utf-8>\n"
	    "<meta name=viewport content=\"width=device-width\">\n<title>", out);
	html_text(out, node);
	fprintf(out, " – xlb</title>\n<noscript><meta http-equiv=refresh "
	    "content=5></noscript>\n<style>%s</style>\n<script defer>%s"
	    "</script>\n</head>\n<body>\n<main>\n<header><h1><bdi>",
	    page_style, page_script);
	html_text(out, node);
	fputs("</bdi></h1>", out);
	page_tag(out, forwards ? "good" : "bad", forwards ? "forwarding" :
	    "not forwarding");
	if (drains)
		page_tag(out, "warn", d->lifecycle.life == LIFE_STOP ?
		    "stopping" : "draining");
	fprintf(out, "<span class=\"tag bad lost\">xlbd does not answer</span>"
	    "<span class=dim>xlbd %s, up %s", PACKAGE_VERSION,
	    html_ago(daemon_realtime() - d->started_at, ago));
	fprintf(out, "; configuration from %s ago</span></header>\n",
	    html_ago(daemon_realtime() - d->config->loaded, ago));
}

/* One line of what needs somebody: `kind` (ours), its name, why. */
static void
trouble(FILE *out, const char *kind, const char *name, const char *why)
{
	fprintf(out, "<li>%s%s<b><bdi>", kind, *name != '\0' ? " " : "");
	html_text(out, name);
	fprintf(out, "</bdi></b>%s<bdi>", *why != '\0' ? ": " : "");
	html_text(out, why);
	fputs("</bdi>\n", out);
}

static void
trouble_bird(const struct daemon *d, FILE *out)
{
	enum bird_status s = bird_status(d->bird);
	char n[32];

	if (s == BIRD_OFF || s == BIRD_SYNCED || s == BIRD_BUSY)
		return;
	trouble(out, "BIRD", bird_status_text(s), bird_reason(d->bird));
	snprintf(n, sizeof(n), "%zu", bird_stuck(d->bird));
	if (bird_stuck(d->bird) > 0)
		trouble(out, "routes that BIRD still announces and that have "
		    "to go", n, "");
}

static void
troubles(const struct daemon *d, FILE *out)
{
	const struct conf *c = d->config->conf;
	const char *why = daemon_not_forwarding(d);
	size_t i;

	if (*why != '\0' && (c->nservice > 0 || c->ninterface > 0))
		trouble(out, "packets are not forwarded as configured", "",
		    why);
	for (i = 0; i < c->ninterface; i++)
		if (!d->link[i].attached)
			trouble(out, "interface", c->interface[i].name,
			    d->link[i].why);
	if (!d->verdict.ok)
		trouble(out, d->verdict.kept ? "the file was refused at start, "
		    "the configuration accepted last is in force" :
		    "the file was refused, the configuration before is in force",
		    "", d->verdict.why != NULL ? d->verdict.why : "");
	trouble_bird(d, out);
	for (i = 0; i < d->wanted.npool; i++)
		if (d->wanted.pool[i].failed_open)
			trouble(out, "pool", d->wanted.pool[i].conf->name,
			    "no backend is healthy, all are used");
		else if (!d->wanted.pool[i].ready)
			trouble(out, "pool", d->wanted.pool[i].conf->name,
			    "fewer backends than min_healthy are eligible");
	if (d->tidy.surge.on)
		trouble(out, "every packet is looked up", "",
		    "many flows are new to this node");
}

static void
trouble_row(struct document *doc, size_t i)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	(void)i;
	if (out == NULL)
		fatal("page");
	troubles(doc->d, out);
	if (fclose(out) != 0)
		fatal("page");
	if (len > 0)
		fprintf(doc->out, "<div class=\"note bad\" role=status><ul>\n"
		    "%s</ul></div>\n", text);
	free(text);
}

/* ---- addresses ---- */

static size_t
address_rows(const struct document *doc)
{
	size_t n = doc->d->announce.n;

	return n < PAGE_ROWS ? n : PAGE_ROWS;
}

static void
address_begin(struct document *doc)
{
	fputs("<section><h2>Addresses</h2>\n", doc->out);
	if (doc->d->announce.n == 0)
		fputs("<p class=dim>none</p>\n", doc->out);
	else
		fputs("<table><thead><tr><th class=first>Address<th>Announced<th class=n>"
		    "Peers<th class=n>Since</thead><tbody>\n", doc->out);
}

static void
address_row(struct document *doc, size_t i)
{
	const struct announce_row *row = &doc->d->announce.row[i];
	const struct bird *bird = doc->d->bird;
	struct prefix p = announce_prefix(row);
	uint32_t peers = bird_exported(bird, &p);
	char addr[ADDR_STR_MAX], prefix[PREFIX_STR_MAX];
	FILE *out = doc->out;

	fprintf(out, "<tr><td><code>%s</code>", addr_print(&row->addr, addr));
	if (row->conf->has_announce)
		fprintf(out, "<small>as %s</small>", prefix_print(&p, prefix));
	fputs("<td>", out);
	if (!row->wanted)
		page_tag(out, row->why == ANNOUNCE_NO_BGP ? "" : "bad",
		    announce_why_text(row->why));
	else if (!bird_has(bird, &p))
		page_tag(out, "warn", "not in BIRD");
	else if (peers == 0)
		page_tag(out, "bad", "in BIRD");
	else if (row->gshut)
		page_tag(out, "warn", "graceful shutdown");
	else
		page_tag(out, "good", "announced");
	if (!row->wanted && row->service != NULL) {
		fputs("<small>", out);
		html_text(out, row->service);
		fputs("</small>", out);
	} else if (row->wanted && peers == 0 && bird_has(bird, &p)) {
		fputs("<small>no BGP session exports it</small>", out);
	}
	fprintf(out, "<td class=n>%u<td class=n>", peers);
	page_since(out, row->since);
	fputs("\n", out);
}

static void
address_end(struct document *doc)
{
	size_t n = doc->d->announce.n;

	if (n > 0)
		fputs("</tbody></table>\n", doc->out);
	page_more(doc->out, n - address_rows(doc), "xlb status");
	fputs("</section>\n", doc->out);
}

/* ---- services ---- */

static size_t
service_rows(const struct document *doc)
{
	size_t n = doc->d->config->conf->nservice;

	return n < PAGE_ROWS ? n : PAGE_ROWS;
}

/* Each service's rate: over all its addresses and ports. */
static void
service_rates(struct document *doc)
{
	const struct state *w = &doc->d->wanted;
	const struct conf *c = doc->d->config->conf;
	const struct conf_service *s;
	size_t i;

	free(doc->rate);
	doc->rate = calloc(c->nservice + 1, sizeof(*doc->rate));
	if (doc->rate == NULL)
		fatal("page");
	for (i = 0; i < w->nservice; i++) {
		s = w->service[i].number < XLB_SERVICES ?
		    doc->names->service[w->service[i].number] : NULL;
		if (s != NULL)
			doc->rate[s - c->service] += history_service(doc->d,
			    w->service[i].number);
	}
}

static void
service_begin(struct document *doc)
{
	service_rates(doc);
	fputs("<section><h2>Services</h2>\n", doc->out);
	if (service_rows(doc) == 0)
		fputs("<p class=dim>none</p>\n", doc->out);
	else
		fputs("<table><thead><tr><th>Service<th>Listens on<th>Pool<th "
		    "class=n>Packets/s</thead><tbody>\n", doc->out);
}

static void
service_row(struct document *doc, size_t i)
{
	const struct conf_service *s = &doc->d->config->conf->service[i];
	char addr[ADDR_STR_MAX], rate[HTML_NUMBER_MAX];
	const struct conf_listen *l;
	FILE *out = doc->out;
	size_t k;

	fputs("<tr>", out);
	text_cell(out, s->name);
	if (!s->required)
		fputs("<small>not required</small>", out);
	fputs("<td>", out);
	for (k = 0; k < s->nlisten; k++) {
		l = &s->listen[k];
		fprintf(out, "%s%s/", k > 0 ? " " : "",
		    l->proto == IPPROTO_TCP ? "tcp" : "udp");
		fprintf(out, l->port != 0 ? "%u" : "*", l->port);
	}
	fputs("<small>", out);
	for (k = 0; k < s->naddress && k < 4; k++)
		fprintf(out, "%s%s", k > 0 ? " " : "",
		    addr_print(&s->address[k].address, addr));
	if (s->naddress > 4)
		fprintf(out, " and %zu more", s->naddress - 4);
	fputs("</small>", out);
	text_cell(out, s->pool->name);
	fprintf(out, "<td class=n>%s\n", html_number(doc->rate[i], rate));
}

static void
service_end(struct document *doc)
{
	if (service_rows(doc) > 0)
		fputs("</tbody></table>\n", doc->out);
	page_more(doc->out, doc->d->config->conf->nservice - service_rows(doc),
	    "xlb services");
	fputs("</section>\n", doc->out);
}

/* ---- the node: interfaces, sessions, flows ---- */

static void
interfaces(const struct daemon *d, FILE *out)
{
	const struct conf *c = d->config->conf;
	size_t i;

	for (i = 0; i < c->ninterface; i++) {
		fputs("<tr>", out);
		text_cell(out, c->interface[i].name);
		fputs("<td>", out);
		page_tag(out, !d->link[i].attached ? "bad" :
		    strcmp(d->link[i].mode, "generic") == 0 ? "warn" : "good",
		    d->link[i].attached ? d->link[i].mode : "not attached");
		if (*d->link[i].why != '\0') {
			fputs("<small>", out);
			html_text(out, d->link[i].why);
			fputs("</small>", out);
		}
		fputs("<td class=n>\n", out);
	}
}

static void
sessions(const struct daemon *d, FILE *out)
{
	const struct bird_peer *peer;
	size_t i, n;
	uint32_t routes;

	peer = bird_peers(d->bird, &n);
	for (i = 0; i < n; i++) {
		routes = peer[i].exported4 + peer[i].exported6;
		fputs("<tr>", out);
		text_cell(out, peer[i].name);
		fputs("<td>", out);
		page_tag(out, strcmp(peer[i].state, "Established") == 0 ?
		    "good" : "bad", peer[i].state);
		if (peer[i].error[0] != '\0') {
			fputs("<small>", out);
			html_text(out, peer[i].error);
			fputs("</small>", out);
		}
		fprintf(out, "<td class=n>%u %s\n", routes,
		    routes == 1 ? "route" : "routes");
	}
}

static void
flows(const struct daemon *d, FILE *out)
{
	uint32_t entries = maps_flow_entries(prog_maps(d->prog));
	char live[HTML_NUMBER_MAX], all[HTML_NUMBER_MAX];

	fputs("<tr><td>flow table<td>", out);
	html_bar(out, d->tidy.flows, entries);
	fprintf(out, "<td class=n>%s of %s\n", html_number(d->tidy.flows, live),
	    html_number(entries, all));
}

static void
node_row(struct document *doc, size_t i)
{
	(void)i;
	fputs("<section><h2>Interfaces, BGP sessions, flows</h2>\n<table><tbody>"
	    "\n", doc->out);
	interfaces(doc->d, doc->out);
	sessions(doc->d, doc->out);
	flows(doc->d, doc->out);
	fputs("</tbody></table></section>\n", doc->out);
}

/* ---- changes ---- */

static size_t
change_rows(const struct document *doc)
{
	return doc->nchange;
}

static void
change_begin(struct document *doc)
{
	doc->change = calloc(PAGE_CHANGES, sizeof(*doc->change));
	if (doc->change == NULL)
		fatal("page");
	doc->nchange = log_changes(doc->change, PAGE_CHANGES);
	fputs("<section><h2>Last changes</h2>\n", doc->out);
	if (doc->nchange == 0)
		fputs("<p class=dim>none since xlbd began</p>\n", doc->out);
	else
		fputs("<table><thead><tr><th class=n>Ago<th>What<th>Change"
		    "</thead><tbody>\n", doc->out);
}

static void
change_row(struct document *doc, size_t i)
{
	const struct log_changed *c = &doc->change[i];
	FILE *out = doc->out;

	fputs("<tr><td class=n>", out);
	page_since(out, c->at);
	text_cell(out, c->object);
	fputs("<td><bdi>", out);
	html_text(out, c->from);
	fputs(*c->from != '\0' ? " → <b>" : "<b>", out);
	html_text(out, c->to);
	fputs("</b></bdi>", out);
	if (*c->why != '\0' && strcmp(c->why, "ok") != 0) {
		fputs("<small><bdi>", out);
		html_text(out, c->why);
		fputs("</bdi></small>", out);
	}
	fputs("\n", out);
}

static void
change_end(struct document *doc)
{
	if (doc->nchange > 0)
		fputs("</tbody></table>\n", doc->out);
	fputs("</section>\n<footer><a href=/metrics>metrics</a> · what each "
	    "means: <code>man xlbd</code> · more: <code>xlb status</code>, "
	    "<code>xlb backends</code>, <code>xlb events</code></footer>\n"
	    "</main>\n</body>\n</html>\n", doc->out);
}

/* ---- the page ---- */

static size_t
pool_rows(const struct document *doc)
{
	size_t n = doc->d->wanted.npool;

	return n < PAGE_ROWS ? n : PAGE_ROWS;
}

static const struct {
	size_t (*rows)(const struct document *doc);	/* NULL: one */
	void (*begin)(struct document *doc);		/* NULL: nothing */
	void (*row)(struct document *doc, size_t i);
	void (*end)(struct document *doc);
} part[] = {
	{ NULL, NULL, head_row, NULL },
	{ NULL, NULL, trouble_row, NULL },
	{ address_rows, address_begin, address_row, address_end },
	{ service_rows, service_begin, service_row, service_end },
	{ pool_rows, page_pools_begin, page_pool, page_pools_end },
	{ NULL, NULL, node_row, NULL },
	{ change_rows, change_begin, change_row, change_end },
};

static size_t
page_rows(const struct document *doc, size_t p)
{
	return part[p].rows != NULL ? part[p].rows(doc) : 1;
}

static void
page_begin(struct document *doc, size_t p)
{
	if (part[p].begin != NULL)
		part[p].begin(doc);
}

static void
page_row(struct document *doc, size_t p, size_t i)
{
	part[p].row(doc, i);
}

static void
page_end(struct document *doc, size_t p)
{
	if (part[p].end != NULL)
		part[p].end(doc);
}

const struct document_kind document_page = {
	.parts = sizeof(part) / sizeof(part[0]),
	.rows = page_rows,
	.begin = page_begin,
	.row = page_row,
	.end = page_end,
};
