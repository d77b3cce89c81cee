/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the files of io/bird share. bird.c is what others see, bird_talk.c the
 * conversation with BIRD, bird_judge.c what its answers amount to, bird_down.c
 * what was disabled by hand.
 */
#ifndef XLB_BIRD_PRIVATE_H
#define XLB_BIRD_PRIVATE_H

#include "io/bird.h"
#include "io/bird_client.h"
#include "io/bird_include.h"
#include "io/bird_view.h"

enum bird_ask {
	ASK_NOTHING,
	ASK_DOWN,		/* before a configure: what is disabled? */
	ASK_CONFIGURE, ASK_PENDING,
	ASK_AGAIN,		/* after it: disables that again */
	ASK_TABLE, ASK_DISABLE, ASK_SESSIONS, ASK_EXPORTS
};

/* A look at BIRD goes through these in order. */
enum bird_look {
	LOOK_AGAIN, LOOK_TABLES, LOOK_DISABLE, LOOK_SESSIONS, LOOK_EXPORTS, LOOK_END
};

/* Protocols to be disabled again after a configure. */
struct bird_down {
	char (*name)[64];
	size_t n, next;		/* before `next`: done */
	size_t left;		/* of the configure before: these in any case */
	bool sent;		/* the configure that enables the others */
	pid_t bird;		/* whose they are; 0: not known */
};

struct bird {
	sd_event *ev;
	sd_event_source *timer;	/* the next connect, look or question */
	char *socket, *directory, *marker;
	void (*changed)(void *);
	void *arg;
	struct bird_client client;
	struct bird_view view;
	struct include inc[FAMILIES];
	enum bird_status status, logged;
	int64_t since;		/* `logged`; CLOCK_REALTIME, ns */
	char reason[256];
	bool news;		/* to be told with `changed` */
	bool within;		/* a call of ours: `changed` has to wait */
	bool push;		/* there is something for bird_push() */

	bool configure;		/* the files are newer than BIRD */
	bool asked_down;	/* ASK_DOWN is answered, the configure is next */
	bool pending;		/* BIRD said: in progress */
	bool refused;		/* the last configure was */
	unsigned backoff_ms, pending_ms, repair_ms;
	uint64_t repair_at;	/* monotonic, us: not before; 0: at once */
	size_t stuck;		/* as last logged */

	enum bird_ask ask;	/* whose reply is awaited */
	int ask_code;		/* first code of the reply; -1: none yet */
	int family;		/* of the ask */
	size_t session;
	enum bird_look look;
	bool disabled[FAMILIES];	/* tried in this look */
	bool ours[FAMILIES];	/* disabled by us, or an earlier xlbd */
	struct bird_down down;
	unsigned looks;		/* since the last configure */
	unsigned full;		/* looks since all exports were asked for */
};

bool bird_wanted(const struct bird *b);	/* bird_set() was called */
int bird_write(struct bird *b);	/* the includes; 0, or -errno of one */
/* Logged once per change, and not while something is under way. */
void bird_status_set(struct bird *b, enum bird_status s, const char *reason);

/* bird_talk.c */
void talk_init(struct bird *b);
void talk_start(struct bird *b);	/* at rest: ask what is to be asked */
void talk_again(struct bird *b);	/* give up what is asked, connect anew */
int talk_timer(sd_event_source *s, uint64_t usec, void *arg);

/* bird_down.c */
void down_init(struct bird *b);
void down_free(struct bird *b);
void down_met(struct bird *b, pid_t bird);	/* a connection to this one */
void down_ours(struct bird *b, int family, bool ours);
bool down_by_hand(const struct bird *b, int family);
bool down_holds(const struct bird *b);	/* a configure is due and must wait */
void down_settle(struct bird *b);	/* after a listing of the protocols */
void down_begin(struct bird *b);	/* they are asked for */
void down_end(struct bird *b);
void down_sent(struct bird *b);	/* the configure is on its way */
void down_line(struct bird *b, const struct bird_line *line);
const char *down_next(struct bird *b);	/* to be disabled again; NULL */
void down_done(struct bird *b, bool was_enabled);
void down_again(struct bird *b);	/* all of them once more */

/* bird_judge.c */
#define LOOK_GRACE 3		/* looks before a difference counts */
void judge_init(struct bird *b);
size_t judge_surplus(const struct bird *b, int family);	/* not wanted */
bool judge_is_stuck(const struct bird *b, int family);	/* can't be told */
bool judge_disable(const struct bird *b, int family);
void judge_refusal(struct bird *b, const struct bird_line *line);
void judge_look(struct bird *b);	/* at its end: sets the status */

#endif
