/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Protocols that somebody disabled by hand: a configure would enable them. One
 * that is not ours is disabled again right after it; while one of ours is, there
 * is no configure. What we disabled ourselves is noted beside the includes, so
 * that our successor does not take it for the operator's.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/bird_private.h"
#include "io/log.h"

#define DOWN_MAX 1024		/* more are left to the configure */

static bool
is_down(const char *state)
{
	return strcmp(state, "down") == 0;
}

static void
note_path(const struct bird *b, int f, char *buf, size_t len)
{
	snprintf(buf, len, "%s/%s.disabled", b->directory, bird_protocol[f]);
}

void
down_init(struct bird *b)
{
	char path[4096];
	int f;

	for (f = 0; f < FAMILIES; f++) {
		note_path(b, f, path, sizeof(path));
		b->ours[f] = access(path, F_OK) == 0;
	}
}

void
down_ours(struct bird *b, int f, bool ours)
{
	char path[4096];
	int fd;

	if (b->ours[f] == ours)
		return;
	b->ours[f] = ours;
	note_path(b, f, path, sizeof(path));
	if (!ours) {
		if (unlink(path) < 0 && errno != ENOENT)
			log_debug("%s: %s", path, strerror(errno));
		return;
	}
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	if (fd < 0)
		log_debug("%s: %s", path, strerror(errno));
	else
		close(fd);
}

/* In another BIRD nobody has disabled them, or somebody will have done it anew. */
void
down_met(struct bird *b, pid_t bird)
{
	if (bird == 0 || bird != b->down.bird)
		down_free(b);
	b->down.bird = bird;
}

bool
down_by_hand(const struct bird *b, int f)
{
	return is_down(b->view.state[f]) && !b->ours[f];
}

/*
 * A BIRD that does not include us has nothing of ours to configure. One that has
 * just started shows everything as down for a moment, ours as well: that is no
 * time to conclude anything.
 */
bool
down_holds(const struct bird *b)
{
	return b->configure && (down_by_hand(b, V4) || down_by_hand(b, V6) ||
	    (b->view.missing[V4] && b->view.missing[V6]));
}

void
down_settle(struct bird *b)
{
	int f;

	for (f = 0; f < FAMILIES; f++)
		if (b->view.state[f][0] != '\0' && !is_down(b->view.state[f]))
			down_ours(b, f, false);
}

/* Those that were disabled again are done with; what else a configure has enabled
 * still has to be. */
void
down_begin(struct bird *b)
{
	struct bird_down *d = &b->down;

	d->n = (d->sent ? d->n : d->left) - d->next;
	if (d->n > 0)
		memmove(d->name, d->name + d->next, d->n * sizeof(*d->name));
	d->left = d->n;
	d->next = 0;
	d->sent = false;
	b->view.state[V4][0] = b->view.state[V6][0] = '\0';
}

void
down_end(struct bird *b)
{
	int f;

	for (f = 0; f < FAMILIES; f++)
		b->view.missing[f] = b->view.state[f][0] == '\0';
}

void
down_sent(struct bird *b)
{
	b->down.sent = true;
}

static void
down_add(struct bird_down *d, const char *name)
{
	size_t i;

	for (i = 0; i < d->n; i++)
		if (strcmp(d->name[i], name) == 0)
			return;
	if (d->n == DOWN_MAX)
		return;
	d->name = reallocarray(d->name, d->n + 1, sizeof(*d->name));
	if (d->name == NULL)
		fatal("bird");
	snprintf(d->name[d->n++], sizeof(*d->name), "%s", name);
}

void
down_line(struct bird *b, const struct bird_line *line)
{
	struct bird_detail d;

	if (bird_protocol_parse(line->code, line->text, line->len, &d) ==
	    BIRD_FIELD_PROTOCOL && !view_state(&b->view, &d) &&
	    is_down(d.value) && bird_name_ok(d.name))
		down_add(&b->down, d.name);
}

const char *
down_next(struct bird *b)
{
	struct bird_down *d = &b->down;

	return d->next < (d->sent ? d->n : d->left) ? d->name[d->next] : NULL;
}

void
down_done(struct bird *b, bool was_enabled)
{
	if (was_enabled)
		log_info("bird: %s was disabled by hand, and is so again after "
		    "the configure", b->down.name[b->down.next]);
	b->down.next++;
}

void
down_again(struct bird *b)
{
	b->down.next = 0;
}

void
down_free(struct bird *b)
{
	free(b->down.name);
	memset(&b->down, 0, sizeof(b->down));
}
