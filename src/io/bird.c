/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Keeps BIRD at what is wanted. The includes are the truth: they are written
 * first and never rolled back; then BIRD is told to configure, and asked what
 * it holds.
 */
#include "io/bird.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/arena.h"
#include "io/bird_private.h"
#include "io/log.h"

static const char *const status_text[] = {
	[BIRD_OFF] = "off",
	[BIRD_SYNCED] = "synced",
	[BIRD_BUSY] = "busy",
	[BIRD_ABSENT] = "absent",
	[BIRD_DENIED] = "permission denied",
	[BIRD_HUNG] = "hung",
	[BIRD_BROKEN] = "configuration refused",
	[BIRD_NOT_INCLUDED] = "xlb is not included",
	[BIRD_DISABLED] = "disabled",
	[BIRD_DIFFERS] = "differs",
	[BIRD_WRITE_FAILED] = "include not written",
};

const char *
bird_status_text(enum bird_status s)
{
	return status_text[s];
}

bool
bird_wanted(const struct bird *b)
{
	return b->inc[V4].text != NULL;
}

void
bird_status_set(struct bird *b, enum bird_status s, const char *reason)
{
	struct timespec now;

	if (s != b->status || strcmp(reason, b->reason) != 0)
		b->news = true;
	b->status = s;
	if (reason != b->reason)
		snprintf(b->reason, sizeof(b->reason), "%s", reason);
	if (s == BIRD_BUSY || s == b->logged)
		return;
	log_change("bird", status_text[b->logged], status_text[s], b->reason);
	b->logged = s;
	clock_gettime(CLOCK_REALTIME, &now);
	b->since = now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* Normally tmpfiles.d did; whatever our umask, BIRD has to get in. Where it
 * cannot be made the writing fails, which is said. */
static void
directory_make(const char *path)
{
	if (mkdir(path, 0755) == 0 && chmod(path, 0755) < 0)
		log_warn("%s", path);
}

int
bird_write(struct bird *b)
{
	int f, rc = 0;

	directory_make(b->directory);
	for (f = 0; f < FAMILIES; f++) {
		b->configure |= include_write(&b->inc[f], b->marker);
		if (b->inc[f].err < 0)
			rc = b->inc[f].err;
	}
	return rc;
}

int
bird_open(sd_event *ev, const char *directory, const char *socket,
    void (*changed)(void *arg), void *arg, struct bird **out)
{
	struct bird *b = calloc(1, sizeof(*b));
	int rc;

	if (b == NULL)
		return -ENOMEM;
	b->ev = ev;
	b->changed = changed;
	b->arg = arg;
	b->status = b->logged = BIRD_BUSY;
	b->inc[V4].family = AF_INET;
	b->inc[V6].family = AF_INET6;
	talk_init(b);
	judge_init(b);
	b->socket = strdup(socket);
	b->directory = strdup(directory);
	if (b->socket == NULL || b->directory == NULL ||
	    asprintf(&b->marker, "%s/configure.pending", directory) < 0 ||
	    asprintf(&b->inc[V4].path, "%s/xlb4.conf", directory) < 0 ||
	    asprintf(&b->inc[V6].path, "%s/xlb6.conf", directory) < 0)
		fatal("bird");
	b->configure = access(b->marker, F_OK) == 0;
	down_init(b);
	rc = sd_event_add_time_relative(ev, &b->timer, CLOCK_MONOTONIC, 0,
	    1000, talk_timer, b);
	if (rc < 0) {
		bird_close(b);
		return rc;
	}
	*out = b;
	return 0;
}

void
bird_close(struct bird *b)
{
	int f;

	if (b == NULL)
		return;
	client_close(&b->client);
	sd_event_source_disable_unref(b->timer);
	view_free(&b->view);
	down_free(b);
	for (f = 0; f < FAMILIES; f++)
		include_free(&b->inc[f]);
	free(b->socket);
	free(b->marker);
	free(b->directory);
	free(b);
}

int
bird_set(struct bird *b, const struct announce *an, const struct conf *c)
{
	bool first, differs;
	int rc;

	if (b == NULL)
		return 0;
	b->push = false;
	first = !bird_wanted(b);
	differs = include_render(&b->inc[V4], an, c);
	differs |= include_render(&b->inc[V6], an, c);
	if (!differs)
		return b->inc[V4].err < 0 ? b->inc[V4].err : b->inc[V6].err;
	rc = bird_write(b);
	b->push = true;
	if (!b->client.up || b->client.late || (!b->configure && !first))
		return rc;
	b->status = BIRD_BUSY;
	if (!b->client.busy)
		talk_start(b);
	else if (b->ask == ASK_TABLE || b->ask == ASK_SESSIONS ||
	    b->ask == ASK_EXPORTS)
		/* a long listing must not delay a withdrawal */
		talk_again(b);
	return rc;
}

static int64_t
now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* Before the configure BIRD is asked what is disabled; that answer is what there
 * is to wait for. What it means comes to the loop later, with the next one. */
void
bird_push(struct bird *b, unsigned most_ms)
{
	int64_t end = now_ms() + most_ms, left;

	if (b == NULL || !b->push)
		return;
	b->push = false;
	b->within = true;
	while (b->configure && !b->pending && !b->client.late &&
	    !down_holds(b) && (left = end - now_ms()) > 0 &&
	    client_turn(&b->client, (int)left))
		;
	b->within = false;
}

struct prefix *
bird_included(const struct bird *b, struct arena *a, size_t *n)
{
	struct prefix *part, *out = NULL;
	size_t npart, i;
	int f;

	*n = 0;
	for (f = 0; b != NULL && f < FAMILIES; f++) {
		part = include_read(&b->inc[f], a, &npart);
		for (i = 0; i < npart; i++, (*n)++)
			*(struct prefix *)arena_grow(a, &out, *n,
			    sizeof(*out)) = part[i];
	}
	*n = prefix_sort(out, *n);
	return out;
}

enum bird_status
bird_status(const struct bird *b)
{
	return b == NULL ? BIRD_OFF : b->status;
}

const char *
bird_reason(const struct bird *b)
{
	return b == NULL ? "" : b->reason;
}

int64_t
bird_since(const struct bird *b)
{
	return b == NULL ? 0 : b->since;
}

bool
bird_settled(const struct bird *b)
{
	return b == NULL || b->status != BIRD_BUSY;
}

size_t
bird_stuck(const struct bird *b)
{
	size_t n = 0;
	int f;

	for (f = 0; b != NULL && f < FAMILIES; f++)
		if (judge_is_stuck(b, f))
			n += judge_surplus(b, f);
	return n;
}

static int
family_of(const struct prefix *p)
{
	return addr_is4(&p->addr) ? V4 : V6;
}

bool
bird_has(const struct bird *b, const struct prefix *p)
{
	const struct bird_routes *r;

	if (b == NULL)
		return false;
	r = &b->view.table[family_of(p)];
	return prefix_find(r->row, r->n, p);
}

bool
bird_exports(const struct bird *b, size_t peer, const struct prefix *p)
{
	const struct bird_routes *r =
	    &b->view.session[peer].routes[family_of(p)];

	return prefix_find(r->row, r->n, p);
}

uint32_t
bird_exported(const struct bird *b, const struct prefix *p)
{
	uint32_t n = 0;
	size_t i;

	for (i = 0; b != NULL && i < b->view.nsession; i++)
		n += bird_exports(b, i, p);
	return n;
}

const struct bird_peer *
bird_peers(const struct bird *b, size_t *n)
{
	*n = b == NULL ? 0 : b->view.nsession;
	return b == NULL ? NULL : b->view.peer;
}

struct addr *
bird_locals(const struct conf *c, struct arena *a)
{
	struct addr *out = arena_calloc(a, c->bgp.nneighbor, sizeof(*out));
	const struct conf_neighbor *nb;
	struct sockaddr_storage ss;
	socklen_t len;
	size_t i;
	int fd;

	for (i = 0; i < c->bgp.nneighbor; i++) {
		nb = &c->bgp.neighbor[i];
		len = addr_sockaddr(&nb->address, 179, &ss);
		fd = socket(ss.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		if (fd < 0)
			continue;
		if (connect(fd, (const struct sockaddr *)&ss, len) == 0) {
			len = sizeof(ss);
			if (getsockname(fd, (struct sockaddr *)&ss, &len) == 0)
				out[i] = addr_from_sockaddr(&ss);
		}
		close(fd);
	}
	return out;
}
