/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Keeps what BIRD's replies say about its tables and sessions. */
#include "io/bird_view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/arena.h"
#include "io/log.h"

#define SESSIONS_MAX 1024	/* more are not looked at */

const char *const bird_protocol[FAMILIES] = { "xlb4", "xlb6" };
static const char *const channel_name[FAMILIES] = { "ipv4", "ipv6" };

bool
routes_clear(struct bird_routes *r)
{
	bool had = r->n > 0;

	arena_free(r->a);
	arena_free(r->afresh);
	memset(r, 0, sizeof(*r));
	return had;
}

void
routes_begin(struct bird_routes *r)
{
	arena_free(r->afresh);
	r->afresh = NULL;
	r->fresh = NULL;
	r->nfresh = 0;
}

void
routes_line(struct bird_routes *r, const struct bird_line *line)
{
	struct prefix p;

	if (bird_route_parse(line->text, line->len, &p) < 0)
		return;
	if (r->afresh == NULL)
		r->afresh = arena_new();
	*(struct prefix *)arena_grow(r->afresh, &r->fresh, r->nfresh,
	    sizeof(p)) = p;
	r->nfresh++;
}

bool
routes_end(struct bird_routes *r)
{
	size_t i, n = prefix_sort(r->fresh, r->nfresh);
	bool same = n == r->n;

	for (i = 0; same && i < n; i++)
		same = prefix_cmp(&r->row[i], &r->fresh[i]) == 0;
	arena_free(r->a);
	r->a = r->afresh;
	r->row = r->fresh;
	r->n = n;
	r->afresh = NULL;
	r->fresh = NULL;
	r->nfresh = 0;
	return !same;
}

static void
session_free(struct bird_session *s)
{
	routes_clear(&s->routes[V4]);
	routes_clear(&s->routes[V6]);
}

void
sessions_begin(struct bird_view *v)
{
	v->nscan = 0;
	v->in_session = false;
	v->state[V4][0] = v->state[V6][0] = '\0';
}

/* Names go into commands between quotes: BIRD's own letters only. */
bool
bird_name_ok(const char *s)
{
	return s[strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	    "abcdefghijklmnopqrstuvwxyz0123456789_.:-")] == '\0';
}

bool
view_state(struct bird_view *v, const struct bird_detail *d)
{
	int f;

	for (f = 0; f < FAMILIES; f++) {
		if (strcmp(d->name, bird_protocol[f]) != 0)
			continue;
		memcpy(v->state[f], d->value, sizeof(v->state[f]));
		return true;
	}
	return false;
}

/* CLOCK_REALTIME, ns; 0: BIRD does not say it in a way that is understood. */
static int64_t
time_of(const struct bird_time *t)
{
	time_t now = time(NULL), then;
	struct tm tm;

	if ((!t->has_date && !t->has_time) || localtime_r(&now, &tm) == NULL)
		return 0;
	if (t->has_date) {
		tm.tm_year = t->year - 1900;
		tm.tm_mon = t->month - 1;
		tm.tm_mday = t->day;
	}
	tm.tm_hour = t->hour;
	tm.tm_min = t->minute;
	tm.tm_sec = t->second;
	tm.tm_isdst = -1;
	then = mktime(&tm);
	if (then > now && !t->has_date) {
		tm.tm_mday--;
		tm.tm_isdst = -1;
		then = mktime(&tm);
	}
	return then <= 0 || then > now ? 0 : then * INT64_C(1000000000);
}

static void
protocol_begin(struct bird_view *v, const struct bird_detail *d)
{
	struct bird_session *s;

	v->in_session = false;
	view_state(v, d);
	if (strcmp(d->kind, "BGP") != 0 || !bird_name_ok(d->name) ||
	    v->nscan == SESSIONS_MAX)
		return;
	s = reallocarray(v->scan, v->nscan + 1, sizeof(*s));
	if (s == NULL)
		fatal("bird");
	v->scan = s;
	s += v->nscan++;
	memset(s, 0, sizeof(*s));
	memcpy(s->peer.name, d->name, sizeof(s->peer.name));
	s->peer.since = time_of(&d->since);
	v->in_session = true;
	v->channel = -1;
}

void
sessions_line(struct bird_view *v, const struct bird_line *line)
{
	struct bird_session *s;
	struct bird_detail d;
	enum bird_field field;
	int f;

	field = bird_protocol_parse(line->code, line->text, line->len, &d);
	if (field == BIRD_FIELD_PROTOCOL)
		protocol_begin(v, &d);
	if (!v->in_session)
		return;
	s = &v->scan[v->nscan - 1];
	switch (field) {
	case BIRD_FIELD_SESSION:
		memcpy(s->peer.state, d.value, sizeof(s->peer.state));
		s->up = strcmp(d.value, "Established") == 0;
		break;
	case BIRD_FIELD_CHANNEL:
		v->channel = -1;
		for (f = 0; f < FAMILIES; f++)
			if (strcmp(d.value, channel_name[f]) == 0)
				v->channel = f;
		break;
	case BIRD_FIELD_EXPORTED:
		if (v->channel >= 0)
			s->counted[v->channel] = d.number;
		break;
	case BIRD_FIELD_ERROR:
		memcpy(s->peer.error, d.text, sizeof(s->peer.error));
		break;
	case BIRD_FIELD_NONE:
	case BIRD_FIELD_PROTOCOL:
		break;
	}
}

static int
session_cmp(const void *a, const void *b)
{
	const struct bird_session *x = a, *y = b;

	return strcmp(x->peer.name, y->peer.name);
}

/* Up or down, and not what BIRD tries in between; a session that is seen for
 * the first time is told as it is. */
static void
session_log(struct bird_session *s, const struct bird_session *old)
{
	struct timespec ts;
	char object[96];

	if (s->up)
		s->peer.error[0] = '\0';
	if (old != NULL)
		s->peer.since = old->peer.since;
	if (old != NULL && old->up == s->up)
		return;
	if (old != NULL) {
		clock_gettime(CLOCK_REALTIME, &ts);
		s->peer.since = ts.tv_sec * INT64_C(1000000000) + ts.tv_nsec;
	}
	snprintf(object, sizeof(object), "session %s", s->peer.name);
	log_change(object, old != NULL ? old->peer.state : "unknown",
	    s->peer.state, s->peer.error);
}

/* What was known of `old` stays, as far as the counts say that it holds. */
static bool
session_carry(struct bird_session *s, struct bird_session *old, bool all)
{
	bool news = old == NULL ||
	    strcmp(s->peer.state, old->peer.state) != 0;
	int f;

	session_log(s, old);
	for (f = 0; f < FAMILIES; f++) {
		s->stale[f] = s->up && s->counted[f] > 0 &&
		    (all || old == NULL || old->stale[f] ||
		    old->counted[f] != s->counted[f]);
		if (old == NULL)
			continue;
		s->routes[f] = old->routes[f];
		memset(&old->routes[f], 0, sizeof(old->routes[f]));
		if (!s->up || s->counted[f] == 0)
			news |= routes_clear(&s->routes[f]);
	}
	return news;
}

bool
sessions_end(struct bird_view *v, bool all)
{
	bool news = v->nscan != v->nsession;
	struct bird_session *s, *old;
	size_t i;

	if (v->nscan > 0)
		qsort(v->scan, v->nscan, sizeof(*s), session_cmp);
	for (i = 0; i < v->nscan; i++) {
		s = &v->scan[i];
		old = v->nsession == 0 ? NULL : bsearch(s, v->session,
		    v->nsession, sizeof(*s), session_cmp);
		news |= session_carry(s, old, all);
	}
	for (i = 0; i < v->nsession; i++)
		session_free(&v->session[i]);
	free(v->session);
	v->session = v->scan;
	v->nsession = v->nscan;
	v->scan = NULL;
	v->nscan = 0;
	v->in_session = false;
	peers_update(v);
	return news;
}

void
peers_update(struct bird_view *v)
{
	struct bird_session *s;
	size_t i;

	free(v->peer);
	v->peer = calloc(v->nsession + 1, sizeof(*v->peer));
	if (v->peer == NULL)
		fatal("bird");
	for (i = 0; i < v->nsession; i++) {
		s = &v->session[i];
		s->peer.exported4 = (uint32_t)s->routes[V4].n;
		s->peer.exported6 = (uint32_t)s->routes[V6].n;
		v->peer[i] = s->peer;
	}
}

bool
view_clear(struct bird_view *v)
{
	bool had = v->nsession > 0;
	size_t i;
	int f;

	for (f = 0; f < FAMILIES; f++) {
		had |= routes_clear(&v->table[f]);
		v->missing[f] = false;
		v->state[f][0] = '\0';
	}
	for (i = 0; i < v->nsession; i++)
		session_free(&v->session[i]);
	v->nsession = v->nscan = 0;
	v->in_session = false;
	return had;
}

void
view_free(struct bird_view *v)
{
	view_clear(v);
	free(v->session);
	free(v->scan);
	free(v->peer);
	memset(v, 0, sizeof(*v));
}
