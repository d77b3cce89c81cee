/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who reads events: what each asked for goes to the packet program, and what it
 * tells to each of them. One that is slow loses events, and is told so. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/reason.h"
#include "daemon/daemon.h"
#include "daemon/event_json.h"
#include "io/events.h"
#include "io/log.h"

#define SAMPLE_MAX (1U << 20)

struct listener {
	struct listeners *all;
	struct ctl_stream *stream;	/* NULL: free */
	char *service;		/* name; NULL: whatever it is */
	uint32_t reasons;	/* as struct event_want */
	uint32_t one_in;
	uint64_t since;		/* CLOCK_MONOTONIC, ns: what is older was meant
				 * for another one in this place */
	struct event_loss said;	/* what it was told of already */
	uint64_t unsent;	/* events that it did not take */
};

struct listeners {
	struct daemon *d;
	struct events *events;
	struct listener row[XLB_EVENT_READERS];
	struct event_names *names;	/* NULL: nobody listens */
	int64_t realtime;	/* see event_build() */
};

static int64_t
clock_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static void
send_json(struct listener *l, json_t *o, size_t events)
{
	char *text = json_dumps(o, JSON_COMPACT);
	size_t len;

	if (text == NULL)
		fatal("events");
	len = strlen(text);
	text[len++] = '\n';	/* instead of the end */
	if (!ctl_stream_line(l->stream, text, len))
		l->unsent += events;
	free(text);
}

static void
on_event(const struct xlb_event *e, void *arg)
{
	struct listeners *all = arg;
	struct listener *l;
	json_t *o;
	size_t i;

	o = event_build(e, all->names, all->realtime);
	for (i = 0; i < XLB_EVENT_READERS; i++) {
		l = &all->row[i];
		if ((e->readers >> i & 1) && l->stream != NULL &&
		    e->at >= l->since)
			send_json(l, o, 1);
	}
	json_decref(o);
}

/* Each second: the clock may have been set, events may have been lost. */
static void
on_second(void *arg)
{
	struct listeners *all = arg;
	struct event_loss loss[XLB_EVENT_READERS];
	uint64_t limited, lost;
	struct listener *l;
	json_t *o;
	size_t i;

	all->realtime = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC);
	if (events_loss(all->events, loss) < 0)
		return;
	for (i = 0; i < XLB_EVENT_READERS; i++) {
		l = &all->row[i];
		if (l->stream == NULL)
			continue;
		limited = loss[i].limited - l->said.limited;
		lost = limited + loss[i].unread - l->said.unread + l->unsent;
		if (lost == 0)
			continue;
		o = json_pack("{s:s, s:I, s:I}", "event", "lost", "lost",
		    (json_int_t)lost, "limited", (json_int_t)limited);
		l->said = loss[i];
		l->unsent = 0;
		send_json(l, o, lost);
		json_decref(o);
	}
}

/* What it wants, in today's numbers. */
static void
listener_want(struct listener *l)
{
	struct listeners *all = l->all;
	struct event_want want = { .reasons = l->reasons,
	    .any = l->service == NULL, .one_in = l->one_in };
	uint16_t *number = calloc(XLB_SERVICES, sizeof(*number));
	const struct conf_service *s;
	size_t i;

	if (number == NULL)
		fatal("events");
	for (i = 0; i < XLB_SERVICES; i++) {
		s = all->names->service[i];
		if (s != NULL && l->service != NULL &&
		    strcmp(s->name, l->service) == 0)
			number[want.nservice++] = (uint16_t)i;
	}
	want.service = number;
	events_want(all->events, (unsigned)(l - all->row), &want);
	free(number);
}

static bool
anybody(const struct listeners *all)
{
	size_t i;

	for (i = 0; i < XLB_EVENT_READERS; i++)
		if (all->row[i].stream != NULL)
			return true;
	return false;
}

int
listeners_loss(struct daemon *d, struct event_loss *all)
{
	struct event_loss loss[XLB_EVENT_READERS];
	size_t i;
	int rc;

	rc = events_loss(d->listeners->events, loss);
	if (rc < 0)
		return rc;
	memset(all, 0, sizeof(*all));
	for (i = 0; i < XLB_EVENT_READERS; i++) {
		all->limited += loss[i].limited;
		all->unread += loss[i].unread;
	}
	return 0;
}

static void
listener_gone(void *arg)
{
	struct listener *l = arg;
	struct listeners *all = l->all;

	l->stream = NULL;
	events_want(all->events, (unsigned)(l - all->row), NULL);
	free(l->service);
	l->service = NULL;
}

static void
names_update(struct listeners *all)
{
	struct daemon *d = all->d;

	if (all->names == NULL) {
		all->names = malloc(sizeof(*all->names));
		if (all->names == NULL)
			fatal("events");
	}
	event_names_init(all->names, d->config->conf, &d->wanted, d->link);
}

void
listeners_follow(struct daemon *d)
{
	struct listeners *all = d->listeners;
	size_t i;

	if (!anybody(all)) {
		free(all->names);
		all->names = NULL;
		return;
	}
	names_update(all);
	for (i = 0; i < XLB_EVENT_READERS; i++)
		if (all->row[i].stream != NULL)
			listener_want(&all->row[i]);
}

/* The names as bits. False: one is not known. */
static bool
reasons_take(const json_t *list, uint32_t *out)
{
	const char *name;
	size_t i;
	int r;

	*out = 0;
	for (i = 0; i < json_array_size(list); i++) {
		name = json_string_value(json_array_get(list, i));
		r = name == NULL ? -1 : strcmp(name, "new_flow") == 0 ?
		    XLB_EVENT_NEW_FLOW : reason_find(name);
		if (r < 0)
			return false;
		*out |= 1U << r;
	}
	return true;
}

/* 0 and `l` filled, or the exit status with the reason in `reply`. */
static int
args_take(struct daemon *d, const json_t *args, struct listener *l,
    json_t *reply)
{
	const char *service = json_string_value(json_object_get(args,
	    "service"));
	json_int_t one_in = json_integer_value(json_object_get(args,
	    "sample"));
	const struct conf *c = d->config->conf;
	size_t i;

	for (l->one_in = 1; (json_int_t)l->one_in < one_in &&
	    l->one_in < SAMPLE_MAX; l->one_in *= 2)
		;
	if (!reasons_take(json_object_get(args, "reasons"), &l->reasons)) {
		ctl_error(reply, "xlbd does not know one of these reasons");
		return 2;
	}
	if (service == NULL)
		return 0;
	for (i = 0; i < c->nservice; i++)
		if (strcmp(c->service[i].name, service) == 0) {
			l->service = strdup(service);
			return 0;
		}
	ctl_error(reply, "no service is named %.64s", service);
	return 1;
}

void
listeners_add(struct daemon *d, struct ctl_request *rq, const json_t *args)
{
	struct listeners *all = d->listeners;
	struct listener *l = all->row;
	json_t *reply = ctl_message(0);
	struct event_loss loss[XLB_EVENT_READERS];
	struct listener new = { .all = all };
	int status;

	while (l < all->row + XLB_EVENT_READERS && l->stream != NULL)
		l++;
	status = args_take(d, args, &new, reply);
	if (status == 0 && l == all->row + XLB_EVENT_READERS) {
		ctl_error(reply, "%d others read events already: there cannot "
		    "be more", XLB_EVENT_READERS);
		status = 1;
	}
	if (status == 0 && events_loss(all->events, loss) < 0) {
		ctl_error(reply, "the maps cannot be read");
		status = 1;
	}
	if (status != 0) {
		json_object_set_new(reply, "exit", json_integer(status));
		ctl_reply(rq, reply);
		free(new.service);
		return;
	}
	new.said = loss[l - all->row];
	new.since = (uint64_t)clock_ns(CLOCK_MONOTONIC);
	*l = new;
	l->stream = ctl_stream(rq, reply, listener_gone, l);
	if (l->stream == NULL) {
		free(l->service);
		return;
	}
	all->realtime = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC);
	names_update(all);
	listener_want(l);
}

int
listeners_open(struct daemon *d)
{
	struct listeners *all = calloc(1, sizeof(*all));
	struct events_fn fn = { .event = on_event, .second = on_second,
	    .arg = all };
	size_t i;

	if (all == NULL)
		fatal("events");
	all->d = d;
	for (i = 0; i < XLB_EVENT_READERS; i++)
		all->row[i].all = all;
	d->listeners = all;
	return events_open(d->ev, prog_maps(d->prog), &fn, &all->events);
}

void
listeners_close(struct daemon *d)
{
	struct listeners *all = d->listeners;
	size_t i;

	if (all == NULL)
		return;
	for (i = 0; i < XLB_EVENT_READERS; i++)
		if (all->row[i].stream != NULL) {
			ctl_stream_end(all->row[i].stream);
			free(all->row[i].service);
		}
	events_close(all->events);
	free(all->names);
	free(all);
	d->listeners = NULL;
}
