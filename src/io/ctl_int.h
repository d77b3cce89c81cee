/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of xlbd's side of the control socket share. */
#ifndef XLB_CTL_INT_H
#define XLB_CTL_INT_H

#include <sys/types.h>

#include "io/ctl.h"

enum client_phase {
	CLIENT_READ,
	CLIENT_REFUSE,		/* reads what is left to forget it, then says
				 * why: most clients first write, then read */
	CLIENT_WAIT,		/* for the handler */
	CLIENT_WRITE,
	CLIENT_STREAM		/* lines, for as long as it stays */
};

struct client {
	struct ctl *ctl;
	struct client *next, *prev;
	enum client_phase phase;
	int fd;
	sd_event_source *io, *timer;
	bool may_change;
	uid_t uid;		/* of who asked */
	char *buf;		/* the request, then the reply */
	size_t len, size;	/* bytes in it; of its memory */
	size_t done;		/* bytes written, or read and forgotten */
	struct ctl_request *rq;	/* while the handler has it */
	struct ctl_stream *stream;	/* NULL: one reply was all */
};

struct ctl_request {
	struct client *client;	/* NULL: gone */
};

void client_free(struct client *c);
/* It is given up after so long without a change; 0: never. */
void client_patience(struct client *c, unsigned seconds);
/* Writes what goes. 0: all; 1: the rest waits for EPOLLOUT; -errno. */
int client_push(struct client *c);
void client_end(struct client *c);	/* what is left is written, then it goes */

/* ctl_stream.c */
void stream_ready(struct client *c, uint32_t events);
void stream_gone(struct ctl_stream *s);

#endif
