/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Brings BIRD to announce what is wanted: writes the two includes, asks for a
 * `configure`, reads the reply, verifies from BIRD's tables. Never blocks the
 * loop: every wait has a bound. Unchanged bytes mean no write and no configure;
 * one configure is in flight, later changes go together in the next.
 */
#ifndef XLB_BIRD_H
#define XLB_BIRD_H

#include <systemd/sd-event.h>

#include "core/announce.h"

struct bird;

enum bird_status {
	BIRD_OFF,		/* no bgp: section */
	BIRD_SYNCED,		/* BIRD's tables hold what is in the include */
	BIRD_BUSY,		/* a configure is under way */
	BIRD_ABSENT,		/* no socket, or nobody listens */
	BIRD_DENIED,		/* no permission on the socket */
	BIRD_HUNG,		/* connected, no answer within the bound */
	BIRD_BROKEN,		/* configure was refused: bird.conf has an error */
	BIRD_NOT_INCLUDED,	/* accepted, but our protocols are not there:
				 * the include line is missing from bird.conf */
	BIRD_DISABLED,		/* xlb4 or xlb6 was disabled by hand: nothing is
				 * configured, which would enable it */
	BIRD_DIFFERS,		/* accepted, but BIRD's tables hold something
				 * else: xlb0 is down */
	BIRD_WRITE_FAILED,	/* the include could not be written */
	BIRD_STATUSES
};
/* For status, log and metrics: part of the interface, as doc/json.md has it. */
const char *bird_status_text(enum bird_status s);

struct bird_peer {
	char name[64];		/* of the BGP protocol */
	char state[32];		/* "Established", as BIRD says it */
	uint32_t exported4, exported6;	/* routes of ours exported to it */
	int64_t since;		/* came up or went down, as seen from here, or
				 * before that, as BIRD says: CLOCK_REALTIME,
				 * ns; 0: it says that in another way */
	char error[96];		/* while it is not up: what ended it last */
};

/*
 * Begins to connect; makes the directory whenever it is missing. `changed` is
 * called when status, tables or peers changed: from the loop, never from within
 * a call. It may call bird_set(), not bird_close(). 0, or -errno.
 *
 * Below, a NULL `b` is allowed and is a BIRD that is off.
 */
int bird_open(sd_event *ev, const char *directory, const char *socket,
    void (*changed)(void *arg), void *arg, struct bird **out);
void bird_close(struct bird *b);	/* the includes stay as they are */

/*
 * What to announce from now on. Writes at once and sends `configure` unless one
 * is in flight; returns 0, or -errno if an include could not be written (logged,
 * and tried again every few seconds). Until the first call nothing is written.
 */
int bird_set(struct bird *b, const struct announce *an, const struct conf *c);

/* After bird_set(): the configure is on its way, if a few milliseconds are enough
 * for that. For what has to be told BIRD before anything else is done. */
#define BIRD_PUSH_MS 10		/* BIRD takes one, if it has a processor */
void bird_push(struct bird *b, unsigned most_ms);

/* The prefixes of the includes as they are on disk now, for adoption. */
struct prefix *bird_included(const struct bird *b, struct arena *a, size_t *n);

enum bird_status bird_status(const struct bird *b);
const char *bird_reason(const struct bird *b);	/* BIRD's own words; "" */
/* Since when that is the status, "busy" apart: CLOCK_REALTIME, ns; 0: never. */
int64_t bird_since(const struct bird *b);
bool bird_settled(const struct bird *b);	/* nothing is under way */
/* Routes that BIRD still announces though they have to go: bird.conf is broken,
 * the include can't be written, or nothing may be configured. */
size_t bird_stuck(const struct bird *b);
bool bird_has(const struct bird *b, const struct prefix *p);	/* in BIRD */
/* Peers the prefix is exported to. */
uint32_t bird_exported(const struct bird *b, const struct prefix *p);
/* Is it to this one? `peer`: row of bird_peers(). */
bool bird_exports(const struct bird *b, size_t peer, const struct prefix *p);
const struct bird_peer *bird_peers(const struct bird *b, size_t *n);

/*
 * This node's address towards each neighbour, as the kernel would choose it now,
 * for bird_config_render(): c->bgp.nneighbor rows in `a`, unset without a
 * route. Sends nothing, needs no privilege.
 */
struct addr *bird_locals(const struct conf *c, struct arena *a);

#endif
