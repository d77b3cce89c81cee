/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The conversation with BIRD. What to ask next is decided in one place,
 * ask_next(): a configure before anything else, then the rest of a look (our
 * tables, the sessions, what they export), then nothing until the timer.
 */
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/bird_private.h"
#include "io/log.h"

#define PENDING_MIN_MS 20	/* between two looks at a pending configure */
#define PENDING_MAX_MS 500
#define BACKOFF_MIN_MS 20	/* between two connects */
#define BACKOFF_MAX_MS 1000
#define FULL_LOOK 12		/* looks until every export is asked for */

#define OWNER_MAX 96

#define REPLY_DISABLED 9
#define REPLY_ALREADY_DISABLED 8
#define REPLY_NO_SUCH_SYMBOL 9001

/* After a configure tables and sessions follow within milliseconds. */
static const unsigned look_ms[] = { 5, 50, 250, 1000, 1000, 1000, 1000, 1000,
	1000, 5000 };
#define LOOK_LAST (sizeof(look_ms) / sizeof(look_ms[0]) - 1)

static void
wake_in(struct bird *b, unsigned ms)
{
	sd_event_source_set_time_relative(b->timer, (uint64_t)ms * 1000);
	sd_event_source_set_enabled(b->timer, SD_EVENT_ONESHOT);
}

/* Twice as long next time. */
static unsigned
back_off(unsigned *ms, unsigned max)
{
	unsigned now = *ms;

	*ms = now * 2 > max ? max : now * 2;
	return now;
}

/* Whatever comes from the loop ends here. */
static void
tell(struct bird *b)
{
	if (!b->news || b->within)
		return;
	b->news = false;
	b->changed(b->arg);
}

/* Whose the socket is, where that keeps us out: "" if it cannot be seen. */
static const char *
owner_print(const char *path, char buf[OWNER_MAX])
{
	const struct passwd *u;
	const struct group *g;
	struct stat st;

	buf[0] = '\0';
	if (stat(path, &st) < 0)
		return buf;
	u = getpwuid(st.st_uid);
	g = getgrgid(st.st_gid);
	snprintf(buf, OWNER_MAX, " (it is %s:%s, mode %04o)",
	    u != NULL ? u->pw_name : "?", g != NULL ? g->gr_name : "?",
	    st.st_mode & 07777);
	return buf;
}

static void
disconnected(struct bird *b, int err)
{
	enum bird_status s = BIRD_ABSENT;
	char why[256], owner[OWNER_MAX] = "";

	if (err == EACCES || err == EPERM)
		s = BIRD_DENIED;
	else if (err == EAGAIN || err == ETIMEDOUT || err == EPROTO)
		s = BIRD_HUNG;
	b->ask = ASK_NOTHING;
	b->look = LOOK_END;
	b->pending = b->refused = false;
	b->configure |= bird_wanted(b);
	b->asked_down = false;
	if (s == BIRD_ABSENT)
		b->news |= view_clear(&b->view);
	if (s == BIRD_DENIED)
		owner_print(b->socket, owner);
	snprintf(why, sizeof(why), "%s: %s%s", b->socket,
	    err == EAGAIN ? "its queue of connections is full" :
	    err == ECONNRESET ? "closed by BIRD" :
	    err == EPROTO ? "an answer that BIRD does not give" :
	    strerror(err), owner);
	bird_status_set(b, s, why);
	wake_in(b, back_off(&b->backoff_ms, BACKOFF_MAX_MS));
}

void
talk_again(struct bird *b)
{
	int rc;

	b->ask = ASK_NOTHING;
	client_close(&b->client);
	rc = client_open(&b->client, b->socket);
	if (rc < 0)
		disconnected(b, -rc);
}

static void
look_begin(struct bird *b)
{
	b->look = LOOK_AGAIN;
	b->family = V4;
	b->session = 0;
	b->disabled[V4] = b->disabled[V6] = false;
}

/* The next session and family whose exports are to be asked for. */
static bool
exports_next(struct bird *b)
{
	const struct bird_session *s;

	for (; b->session < b->view.nsession; b->session++) {
		s = &b->view.session[b->session];
		for (b->family = 0; b->family < FAMILIES; b->family++)
			if (s->stale[b->family] &&
			    !b->view.missing[b->family])
				return true;
	}
	b->family = V4;
	return false;
}

/* Within a look: the next question, or false at its end. */
static bool
look_next(struct bird *b)
{
	int f;

	switch (b->look) {
	case LOOK_AGAIN:
		if (down_next(b) != NULL) {
			b->ask = ASK_AGAIN;
			return true;
		}
		b->look = LOOK_TABLES;
		/* FALLTHROUGH */
	case LOOK_TABLES:
		b->ask = ASK_TABLE;
		return true;
	case LOOK_DISABLE:
		for (f = 0; f < FAMILIES; f++)
			if (judge_disable(b, f)) {
				b->disabled[f] = true;
				b->family = f;
				b->ask = ASK_DISABLE;
				return true;
			}
		b->look = LOOK_SESSIONS;
		/* FALLTHROUGH */
	case LOOK_SESSIONS:
		b->ask = ASK_SESSIONS;
		return true;
	case LOOK_EXPORTS:
		if (exports_next(b)) {
			b->ask = ASK_EXPORTS;
			return true;
		}
		b->look = LOOK_END;
		judge_look(b);
		/* FALLTHROUGH */
	case LOOK_END:
		break;
	}
	return false;
}

static void
command_print(struct bird *b, char *buf, size_t len)
{
	static const char *const channel[FAMILIES] = { "ipv4", "ipv6" };
	const char *proto = bird_protocol[b->family];

	switch (b->ask) {
	case ASK_DOWN:
		snprintf(buf, len, "show protocols");
		break;
	case ASK_AGAIN:
		snprintf(buf, len, "disable \"%s\"", down_next(b));
		break;
	case ASK_CONFIGURE:
		snprintf(buf, len, "configure");
		break;
	case ASK_PENDING:
		snprintf(buf, len, "configure status");
		break;
	case ASK_TABLE:
		snprintf(buf, len, "show route protocol %s", proto);
		break;
	case ASK_DISABLE:
		snprintf(buf, len, "disable \"%s\"", proto);
		break;
	case ASK_SESSIONS:
		snprintf(buf, len, "show protocols all");
		break;
	case ASK_EXPORTS:
		snprintf(buf, len, "show route export '%s'.%s protocol %s",
		    b->view.session[b->session].peer.name,
		    channel[b->family], proto);
		break;
	case ASK_NOTHING:
		buf[0] = '\0';
		break;
	}
}

static struct bird_routes *
asked_routes(struct bird *b)
{
	if (b->ask == ASK_TABLE)
		return &b->view.table[b->family];
	return &b->view.session[b->session].routes[b->family];
}

static void
ask_send(struct bird *b)
{
	char command[256];
	int rc;

	command_print(b, command, sizeof(command));
	log_debug("bird: %s", command);
	b->ask_code = -1;
	if (b->ask == ASK_DOWN)
		down_begin(b);
	else if (b->ask == ASK_CONFIGURE)
		down_sent(b);
	else if (b->ask == ASK_SESSIONS)
		sessions_begin(&b->view);
	else if (b->ask == ASK_TABLE || b->ask == ASK_EXPORTS)
		routes_begin(asked_routes(b));
	rc = client_send(&b->client, command);
	if (rc < 0)
		disconnected(b, -rc);
}

/* What is disabled, then the configure. */
static void
configure_next(struct bird *b)
{
	b->ask = b->asked_down ? ASK_CONFIGURE : ASK_DOWN;
	b->configure = !b->asked_down;
	b->asked_down = false;
	b->looks = 0;
	if (!b->refused)
		bird_status_set(b, BIRD_BUSY, "");
}

/* A configure before anything else, then the look, then rest. */
static void
ask_next(struct bird *b)
{
	b->ask = ASK_NOTHING;
	if (!b->client.up || b->client.busy || !bird_wanted(b))
		return;
	if (b->configure && !down_holds(b)) {
		configure_next(b);
	} else if (!look_next(b)) {
		/* the end of the look may have found one necessary */
		if (b->configure && !down_holds(b))
			ask_next(b);
		else if (b->pending)
			wake_in(b, back_off(&b->pending_ms, PENDING_MAX_MS));
		else
			wake_in(b, look_ms[b->looks]);
		return;
	}
	sd_event_source_set_enabled(b->timer, SD_EVENT_OFF);
	ask_send(b);
}

/* BIRD has what the files say, unless they are newer again. */
static void
accepted(struct bird *b)
{
	if (b->pending || b->refused || b->configure)
		return;
	if (unlink(b->marker) < 0 && errno != ENOENT)
		log_debug("%s: %s", b->marker, strerror(errno));
}

static void
on_configured(struct bird *b, const struct bird_line *line)
{
	switch (bird_configure_verdict(line->code)) {
	case BIRD_DONE:
		b->pending = b->refused = false;
		break;
	case BIRD_PENDING:
		b->pending = true;
		b->refused = false;
		b->pending_ms = PENDING_MIN_MS;
		bird_status_set(b, BIRD_BUSY, "reconfiguration in progress");
		break;
	case BIRD_RETRY:
		client_close(&b->client);
		disconnected(b, ECONNRESET);
		return;
	case BIRD_REFUSED:
		b->refused = true;
		b->pending = false;
		judge_refusal(b, line);
		break;
	}
	accepted(b);
	look_begin(b);
}

static void
on_disabled(struct bird *b)
{
	const char *proto = bird_protocol[b->family];

	if (b->ask_code == REPLY_DISABLED ||
	    b->ask_code == REPLY_ALREADY_DISABLED) {
		log_warnx("bird: disabled %s: all its addresses have to go and "
		    "BIRD takes no new configuration", proto);
		down_ours(b, b->family, true);
	} else
		log_warnx("bird: cannot disable %s: reply %04d", proto,
		    b->ask_code);
	b->look = LOOK_TABLES;
	b->family = V4;
}

/* The end of a reply, `line` being its last one. */
static void
on_reply(struct bird *b, const struct bird_line *line)
{
	struct bird_view *v = &b->view;
	int f = b->family;

	switch (b->ask) {
	case ASK_DOWN:
		down_end(b);
		b->asked_down = !down_holds(b);
		if (!b->asked_down)
			look_begin(b);
		break;
	case ASK_AGAIN:
		down_done(b, b->ask_code == REPLY_DISABLED);
		break;
	case ASK_CONFIGURE:
		on_configured(b, line);
		break;
	case ASK_PENDING:
		b->pending = bird_configure_verdict(b->ask_code) ==
		    BIRD_PENDING;
		if (b->pending)
			break;
		accepted(b);
		down_again(b);
		look_begin(b);
		break;
	case ASK_TABLE:
		v->missing[f] = line->code == REPLY_NO_SUCH_SYMBOL;
		if (routes_end(&v->table[f])) {
			b->news = true;
			b->full = FULL_LOOK;
		}
		b->family = f == V4 ? V6 : V4;
		if (f == V6)
			b->look = LOOK_DISABLE;
		break;
	case ASK_DISABLE:
		on_disabled(b);
		break;
	case ASK_SESSIONS:
		b->news |= sessions_end(v, b->full >= FULL_LOOK);
		down_settle(b);
		b->full = b->full >= FULL_LOOK ? 0 : b->full + 1;
		b->look = LOOK_EXPORTS;
		b->session = 0;
		break;
	case ASK_EXPORTS:
		v->session[b->session].stale[f] = false;
		if (routes_end(asked_routes(b))) {
			peers_update(v);
			b->news = true;
		}
		break;
	case ASK_NOTHING:
		break;
	}
}

static void
on_line(struct bird *b, const struct bird_line *line)
{
	if (b->ask_code < 0)
		b->ask_code = line->code;
	if (b->ask == ASK_DOWN)
		down_line(b, line);
	else if (b->ask == ASK_SESSIONS)
		sessions_line(&b->view, line);
	else if (b->ask == ASK_TABLE || b->ask == ASK_EXPORTS)
		routes_line(asked_routes(b), line);
	if (!line->last)
		return;
	/* it answers again */
	if (b->status == BIRD_HUNG)
		bird_status_set(b, BIRD_BUSY, "");
	on_reply(b, line);
	ask_next(b);
}

static void
on_client(void *arg, enum client_event event, const struct bird_line *line,
    int err)
{
	struct bird *b = arg;

	switch (event) {
	case CLIENT_UP:
		down_met(b, b->client.peer);
		b->backoff_ms = BACKOFF_MIN_MS;
		b->looks = 0;
		b->full = FULL_LOOK;
		bird_status_set(b, BIRD_BUSY, "");
		talk_start(b);
		break;
	case CLIENT_LINE:
		on_line(b, line);
		break;
	case CLIENT_LATE:
		bird_status_set(b, BIRD_HUNG, b->client.up ?
		    "no answer to a command" : "no greeting");
		break;
	case CLIENT_LOST:
		disconnected(b, err);
		break;
	}
	tell(b);
}

int
talk_timer(sd_event_source *s, uint64_t usec, void *arg)
{
	struct bird *b = arg;

	(void)s;
	(void)usec;
	if (b->client.fd < 0) {
		talk_again(b);
	} else if (b->pending) {
		b->ask = ASK_PENDING;
		ask_send(b);
	} else if (bird_wanted(b)) {
		bird_write(b);
		if (b->looks < LOOK_LAST)
			b->looks++;
		talk_start(b);
	}
	tell(b);
	return 0;
}

void
talk_init(struct bird *b)
{
	b->backoff_ms = BACKOFF_MIN_MS;
	b->look = LOOK_END;
	client_init(&b->client, b->ev, on_client, b);
}

void
talk_start(struct bird *b)
{
	look_begin(b);
	ask_next(b);
}
