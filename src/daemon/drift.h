/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What somebody else has changed behind our back, by the object that was put
 * right. A number here is for good: it goes up, and begins anew with xlbd.
 */
#ifndef XLB_DRIFT_H
#define XLB_DRIFT_H

#include <stdint.h>

enum drift_kind {
	DRIFT_SETTINGS, DRIFT_PORT, DRIFT_NEXTHOP, DRIFT_BACKEND, DRIFT_RING,
	DRIFT_VIP, DRIFT_SERVICE,	/* rows of the maps */
	DRIFT_HEALTH,		/* verdicts in the pinned map */
	DRIFT_PIN,
	DRIFT_ATTACHMENT,	/* the program on an interface */
	DRIFT_NEIGHBOR,		/* the kernel's entry */
	DRIFT_PROBES,		/* device, program and rules of the tunnel */
	DRIFT_KINDS
};

struct drift {
	uint64_t n[DRIFT_KINDS];
};

struct daemon;
struct plan;

const char *drift_text(enum drift_kind k);	/* the metric's label */
uint64_t drift_total(const struct drift *t);
/* A plan that nobody asked for: counts and names what it puts right. */
void drift_plan(struct drift *t, const struct plan *p);
/* Puts back what no plan knows of. */
void drift_mend(struct daemon *d);

#endif
