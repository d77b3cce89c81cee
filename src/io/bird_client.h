/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One connection to BIRD's control socket: one command at a time, its reply
 * line by line, every wait bounded. Knows the framing and nothing else.
 */
#ifndef XLB_BIRD_CLIENT_H
#define XLB_BIRD_CLIENT_H

#include <stdbool.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

#include "core/bird_text.h"

enum client_event {
	CLIENT_UP,		/* greeted: commands may be sent */
	CLIENT_LINE,		/* of a reply; line->last ends it */
	CLIENT_LATE,		/* no answer within the bound; still waiting */
	CLIENT_LOST,		/* closed; `err` is a positive errno */
};

struct bird_client {
	sd_event *ev;
	sd_event_source *io, *timer;
	int fd;			/* -1: closed */
	unsigned opened;	/* counts connections */
	pid_t peer;		/* who listened when it was opened (SO_PEERCRED,
				 * unix(7)); 0: in a pid namespace of its own */
	bool up;		/* the greeting came */
	bool busy;		/* a reply (or the greeting) is awaited */
	bool late;
	bool skip;		/* the rest of an over-long line */
	int code;		/* of the last line; -1: none */
	char buf[4096];
	size_t len;
	void (*fn)(void *arg, enum client_event event,
	    const struct bird_line *line, int err);
	void *arg;
};

void client_init(struct bird_client *c, sd_event *ev,
    void (*fn)(void *arg, enum client_event event,
    const struct bird_line *line, int err), void *arg);

/* 0, or -errno and closed; events come later, never from here. */
int client_open(struct bird_client *c, const char *path);
void client_close(struct bird_client *c);	/* without an event */

/* What the loop would do next, if there is something to read within `ms`; false:
 * there was not. */
bool client_turn(struct bird_client *c, int ms);

/* Sends one command, without the end of line; only while up and not busy.
 * 0, or -errno and closed. */
int client_send(struct bird_client *c, const char *command);

#endif
