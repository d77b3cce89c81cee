/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What BIRD holds against what is wanted: the status, and what to do. */
#include <errno.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "io/bird_private.h"
#include "io/log.h"

#define REPAIR_MIN_MS 5000	/* between two tries to repair or to retry */
#define REPAIR_MAX_MS 60000

static size_t
lacking(const struct prefix *of, size_t nof, const struct prefix *in,
    size_t nin)
{
	size_t i, n = 0;

	for (i = 0; i < nof; i++)
		n += !prefix_find(in, nin, &of[i]);
	return n;
}

size_t
judge_surplus(const struct bird *b, int f)
{
	return lacking(b->view.table[f].row, b->view.table[f].n,
	    b->inc[f].want, b->inc[f].nwant);
}

static size_t
missing(const struct bird *b, int f)
{
	return lacking(b->inc[f].want, b->inc[f].nwant,
	    b->view.table[f].row, b->view.table[f].n);
}

bool
judge_is_stuck(const struct bird *b, int f)
{
	return b->refused || b->inc[f].err < 0 || down_holds(b);
}

/* BIRD cannot be told, and every route that it has in this family must go. */
bool
judge_disable(const struct bird *b, int f)
{
	size_t n = b->view.table[f].n;

	return judge_is_stuck(b, f) && !b->disabled[f] && n > 0 &&
	    judge_surplus(b, f) == n;
}

static bool
not_included(const struct bird *b)
{
	const struct bird_view *v = &b->view;

	return (v->missing[V4] && v->missing[V6]) ||
	    (v->missing[V4] && b->inc[V4].nwant > 0) ||
	    (v->missing[V6] && b->inc[V6].nwant > 0);
}

static bool
device_up(void)
{
	struct ifreq ifr = { .ifr_name = BIRD_DEVICE };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool up;

	up = fd >= 0 && ioctl(fd, SIOCGIFFLAGS, &ifr) == 0 &&
	    (ifr.ifr_flags & IFF_UP) != 0;
	if (fd >= 0)
		close(fd);
	return up;
}

/* Why the tables differ, for people; false if a configure won't help. */
static bool
difference(const struct bird *b, char *buf, size_t len)
{
	size_t more = judge_surplus(b, V4) + judge_surplus(b, V6);
	size_t less = missing(b, V4) + missing(b, V6);

	if (more == 0 && !device_up()) {
		snprintf(buf, len, BIRD_DEVICE " is down or absent");
		return false;
	}
	snprintf(buf, len, "%zu routes missing, %zu too many", less, more);
	return true;
}

static uint64_t
now_us(struct bird *b)
{
	uint64_t us = 0;

	sd_event_now(b->ev, CLOCK_MONOTONIC, &us);
	return us;
}

/* A configure that may help; ever more rarely, until all is well again. */
static void
repair(struct bird *b)
{
	uint64_t now = now_us(b);

	if (now < b->repair_at)
		return;
	b->configure = true;
	b->repair_at = now + (uint64_t)b->repair_ms * 1000;
	b->repair_ms *= 2;
	if (b->repair_ms > REPAIR_MAX_MS)
		b->repair_ms = REPAIR_MAX_MS;
}

void
judge_init(struct bird *b)
{
	b->repair_ms = REPAIR_MIN_MS;
	b->repair_at = 0;
}

void
judge_refusal(struct bird *b, const struct bird_line *line)
{
	char why[sizeof(b->reason)];

	snprintf(why, sizeof(why), "%.*s", (int)line->len, line->text);
	bird_status_set(b, BIRD_BROKEN, why);
	/* the same again at once would only be refused again */
	if (b->repair_at == 0)
		b->repair_at = now_us(b) + REPAIR_MIN_MS * 1000;
}

static void
stuck_log(struct bird *b)
{
	size_t n = bird_stuck(b);

	if (n != b->stuck && n > 0)
		log_warnx("bird: %zu routes have to go and stay: %s", n,
		    b->reason);
	b->stuck = n;
}

static void
status_judge(struct bird *b)
{
	char why[sizeof(b->reason)];
	int f;

	if (b->refused) {
		bird_status_set(b, BIRD_BROKEN, b->reason);
		repair(b);
		return;
	}
	for (f = 0; f < FAMILIES; f++)
		if (b->inc[f].err < 0) {
			snprintf(why, sizeof(why), "%s: %s", b->inc[f].path,
			    strerror(-b->inc[f].err));
			bird_status_set(b, BIRD_WRITE_FAILED, why);
			return;
		}
	if (not_included(b)) {
		bird_status_set(b, BIRD_NOT_INCLUDED,
		    "bird.conf does not include xlb.conf");
		return;
	}
	if (b->pending)
		return;
	for (f = 0; f < FAMILIES; f++)
		if (down_by_hand(b, f) &&
		    (b->inc[f].nwant > 0 || b->configure)) {
			snprintf(why, sizeof(why), "protocol %s was disabled "
			    "by hand%s", bird_protocol[f], b->configure ?
			    "; changes wait, since a configure would enable it"
			    : "");
			bird_status_set(b, BIRD_DISABLED, why);
			return;
		}
	if (judge_surplus(b, V4) + judge_surplus(b, V6) + missing(b, V4) +
	    missing(b, V6) == 0) {
		judge_init(b);
		bird_status_set(b, BIRD_SYNCED, "");
		return;
	}
	if (b->looks < LOOK_GRACE)
		return;
	if (difference(b, why, sizeof(why)))
		repair(b);
	bird_status_set(b, BIRD_DIFFERS, why);
}

void
judge_look(struct bird *b)
{
	status_judge(b);
	stuck_log(b);
}
