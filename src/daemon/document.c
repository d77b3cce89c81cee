/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes the documents that the HTTP helper asks for. */
#include "daemon/document.h"

#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>

#include "io/log.h"

#define SLICE_NS 500000
#define BEGINS_MAX 5		/* then it is written in one go */
#define PATIENCE_US 500000ULL	/* a loop that is always busy gives it a turn
				 * after that */

struct documents {
	struct daemon *d;
	sd_event_source *work;	/* in turns of the loop that are free */
	sd_event_source *late;	/* it has waited long enough */
	bool wanted[HTTP_DOCUMENTS];
	enum http_document which;	/* is being written, if doc.out */
	struct document doc;
	unsigned begins;
	int64_t took[HTTP_DOCUMENTS];	/* ns, the last one */
};

static const struct document_kind *const kind[HTTP_DOCUMENTS] = {
	[HTTP_METRICS] = &document_metrics,
	[HTTP_PAGE] = &document_page,
};

static void
document_drop(struct document *doc)
{
	if (doc->out != NULL)
		fclose(doc->out);
	free(doc->text);
	free(doc->names);
	free(doc->member);
	free(doc->rate);
	free(doc->change);
	memset(doc, 0, sizeof(*doc));
}

static void
members_list(struct document *doc)
{
	const struct state *w = &doc->d->wanted;
	size_t i, j, n = 0;

	for (i = 0; i < w->npool; i++)
		n += w->pool[i].conf->nbackend;
	doc->member = calloc(n + 1, sizeof(*doc->member));
	if (doc->member == NULL)
		fatal("document");
	for (i = 0; i < w->npool; i++)
		for (j = 0; j < w->pool[i].conf->nbackend; j++)
			doc->member[doc->nmember++] =
			    (struct doc_member){ &w->pool[i], j };
}

static void
document_begin(struct documents *all)
{
	struct document *doc = &all->doc;
	struct daemon *d = all->d;
	int64_t ns = doc->ns;

	document_drop(doc);
	doc->d = d;
	doc->ns = ns;		/* what was in vain counts too */
	doc->epoch = d->epoch;
	doc->names = malloc(sizeof(*doc->names));
	doc->out = open_memstream(&doc->text, &doc->len);
	if (doc->names == NULL || doc->out == NULL)
		fatal("document");
	__fsetlocking(doc->out, FSETLOCKING_BYCALLER);	/* one thread */
	event_names_init(doc->names, d->config->conf, &d->wanted, d->link);
	members_list(doc);
	all->begins++;
}

/* The next row. False: that was all. */
static bool
document_write(struct document *doc, const struct document_kind *k)
{
	size_t n;

	if (doc->row == 0)
		k->begin(doc, doc->part);
	n = k->rows(doc, doc->part);
	if (doc->row < n)
		k->row(doc, doc->part, doc->row++);
	if (doc->row < n)
		return true;
	if (k->end != NULL)
		k->end(doc, doc->part);
	doc->part++;
	doc->row = 0;
	return doc->part < k->parts;
}

static void
document_done(struct documents *all)
{
	struct document *doc = &all->doc;

	if (fclose(doc->out) != 0)
		fatal("document");
	doc->out = NULL;
	http_answer(all->d->http, all->which, doc->text, doc->len);
	all->took[all->which] = doc->ns;
	document_drop(doc);
}

/* The next one that is wanted. False: none is. */
static bool
document_next(struct documents *all)
{
	size_t i;

	for (i = 0; i < HTTP_DOCUMENTS && !all->wanted[i]; i++)
		;
	if (i == HTTP_DOCUMENTS)
		return false;
	all->wanted[i] = false;
	all->which = (enum http_document)i;
	all->begins = 0;
	all->doc.ns = 0;
	document_begin(all);
	return true;
}

static int
on_work(sd_event_source *s, void *arg)
{
	struct documents *all = arg;
	struct document *doc = &all->doc;
	int64_t begin = daemon_now().ns, ns;
	bool more;

	if (doc->out == NULL && !document_next(all)) {
		sd_event_source_set_enabled(s, SD_EVENT_OFF);
		sd_event_source_set_enabled(all->late, SD_EVENT_OFF);
		sd_event_source_set_priority(s, SD_EVENT_PRIORITY_IDLE);
		return 0;
	}
	if (doc->epoch != all->d->epoch)
		document_begin(all);
	do {
		more = document_write(doc, kind[all->which]);
		ns = daemon_now().ns - begin;
	} while (more && (ns < SLICE_NS || all->begins > BEGINS_MAX));
	doc->ns += ns;
	if (!more)
		document_done(all);
	return 0;
}

static int
on_late(sd_event_source *s, uint64_t usec, void *arg)
{
	struct documents *all = arg;

	(void)s;
	(void)usec;
	sd_event_source_set_priority(all->work, SD_EVENT_PRIORITY_NORMAL);
	return 0;
}

static void
on_wanted(enum http_document which, void *arg)
{
	struct documents *all = arg;

	all->wanted[which] = true;
	if (!all->d->started) {
		/* nothing is known yet */
		all->wanted[which] = false;
		http_answer(all->d->http, which, NULL, 0);
		return;
	}
	sd_event_source_set_enabled(all->work, SD_EVENT_ON);
	sd_event_source_set_time_relative(all->late, PATIENCE_US);
	sd_event_source_set_enabled(all->late, SD_EVENT_ONESHOT);
}

int64_t
documents_took(const struct daemon *d, enum http_document which)
{
	return d->documents->took[which];
}

int
documents_open(struct daemon *d)
{
	struct documents *all = calloc(1, sizeof(*all));
	int rc;

	if (all == NULL)
		fatal("document");
	all->d = d;
	d->documents = all;
	rc = sd_event_add_defer(d->ev, &all->work, on_work, all);
	if (rc >= 0)
		rc = sd_event_source_set_priority(all->work,
		    SD_EVENT_PRIORITY_IDLE);
	if (rc >= 0)
		rc = sd_event_source_set_enabled(all->work, SD_EVENT_OFF);
	if (rc >= 0)
		rc = sd_event_add_time(d->ev, &all->late, CLOCK_MONOTONIC, 0,
		    1000, on_late, all);
	if (rc >= 0)
		rc = sd_event_source_set_enabled(all->late, SD_EVENT_OFF);
	if (rc >= 0)
		rc = http_start(d->http, d->ev, on_wanted, all);
	return rc;
}

void
documents_close(struct daemon *d)
{
	struct documents *all = d->documents;

	if (all == NULL)
		return;
	document_drop(&all->doc);
	sd_event_source_disable_unref(all->work);
	sd_event_source_disable_unref(all->late);
	free(all);
	d->documents = NULL;
}

int
documents_listen(struct daemon *d, const struct conf *c)
{
	return http_listen(d->http, c->metrics_on ? &c->metrics_addr : NULL,
	    c->metrics_port);
}
