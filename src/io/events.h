/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the packet program tells about packets, while somebody reads. What
 * readers want is written into the program's filter; that somebody reads at all
 * is a lease, which the program itself ends if xlbd is no more.
 */
#ifndef XLB_EVENTS_IO_H
#define XLB_EVENTS_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "xlb_abi.h"

struct events;
struct maps;

struct event_want {
	uint32_t reasons;	/* bits of XLB_REASON_*, XLB_EVENT_NEW_FLOW */
	bool any;		/* of any service, and of none */
	const uint16_t *service;	/* else of these numbers */
	size_t nservice;
	uint32_t one_in;	/* of what is no news; a power of two */
};

/* What was not told to a reader: too much for the rate, no room in the ring.
 * Since the maps were made. */
struct event_loss {
	uint64_t limited, unread;
};

struct events_fn {
	/* Of the readers in `e->readers`. */
	void (*event)(const struct xlb_event *e, void *arg);
	void (*second)(void *arg);	/* each, while somebody reads */
	void *arg;
};

/* Ends what an earlier xlbd may have begun. `m` stays the caller's. 0, or
 * -errno (logged). */
int events_open(sd_event *ev, struct maps *m, const struct events_fn *fn,
    struct events **out);
void events_close(struct events *e);	/* NULL is allowed */
/* For reader 0 to XLB_EVENT_READERS - 1; NULL: it is gone. */
void events_want(struct events *e, unsigned reader,
    const struct event_want *want);
/* 0, or -errno. */
int events_loss(struct events *e, struct event_loss loss[XLB_EVENT_READERS]);

#endif
