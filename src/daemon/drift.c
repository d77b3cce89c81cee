/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What somebody else has changed: counted by object, said once. */
#include "daemon/drift.h"

#include <stdio.h>
#include <string.h>

#include "core/plan.h"
#include "daemon/daemon.h"
#include "io/log.h"

#define NAMED_MAX 16		/* objects that are named in the log at once */

static const char *const kind_text[DRIFT_KINDS] = {
	[DRIFT_SETTINGS] = "settings", [DRIFT_PORT] = "port",
	[DRIFT_NEXTHOP] = "nexthop", [DRIFT_BACKEND] = "backend",
	[DRIFT_RING] = "ring", [DRIFT_VIP] = "vip",
	[DRIFT_SERVICE] = "service", [DRIFT_HEALTH] = "health",
	[DRIFT_PIN] = "pin", [DRIFT_ATTACHMENT] = "attachment",
	[DRIFT_NEIGHBOR] = "neighbor", [DRIFT_PROBES] = "probes",
};

const char *
drift_text(enum drift_kind k)
{
	return kind_text[k];
}

uint64_t
drift_total(const struct drift *t)
{
	uint64_t sum = 0;
	int k;

	for (k = 0; k < DRIFT_KINDS; k++)
		sum += t->n[k];
	return sum;
}

static enum drift_kind
kind_of(enum op_kind kind)
{
	switch (kind) {
	case OP_PORT_PUT:
	case OP_PORT_DEL:
		return DRIFT_PORT;
	case OP_DOOR_PUT:
	case OP_DOOR_DEL:
	case OP_NEXTHOP_PUT:
	case OP_NEXTHOP_DEL:
		return DRIFT_NEXTHOP;
	case OP_BACKEND_PUT:
	case OP_BACKEND_RETIRE:
	case OP_BACKEND_DEL:
	case OP_SOURCE_PUT:
	case OP_SOURCE_DEL:
		return DRIFT_BACKEND;
	case OP_RING_SLOTS:
	case OP_RING_ROLES:
	case OP_RING_NEW:
	case OP_RING_DEL:
		return DRIFT_RING;
	case OP_VIP_PUT:
	case OP_VIP_DEL:
		return DRIFT_VIP;
	case OP_SERVICE_PUT:
	case OP_SERVICE_DEL:
		return DRIFT_SERVICE;
	case OP_SETTINGS_PUT:
	case OP_GRACE:
	case OP_KINDS:
		break;
	}
	return DRIFT_SETTINGS;
}

void
drift_plan(struct drift *t, const struct plan *p)
{
	const struct op *op;
	char name[256];
	size_t i, n = 0;

	for (i = 0; i < p->n; i++) {
		op = &p->op[i];
		if (op->kind == OP_GRACE)	/* of the others */
			continue;
		t->n[kind_of(op->kind)]++;
		if (++n <= NAMED_MAX)
			log_warnx("maps: %s is not as it was left: %s: nobody "
			    "asked to change it", op_print(op, name,
			    sizeof(name)), op_verb(op));
	}
	if (n > NAMED_MAX)
		log_warnx("maps: %zu more are not as they were left",
		    n - NAMED_MAX);
}

void
drift_mend(struct daemon *d)
{
	struct drift *t = &d->drift;
	struct prog_mended m;
	size_t n;

	prog_mend(d->prog, &m);
	t->n[DRIFT_PIN] += m.pins;
	t->n[DRIFT_RING] += m.rings;
	n = health_mend(d);
	t->n[DRIFT_HEALTH] += n;
	if (n > 0)
		log_warnx("maps: health: %zu verdicts were not as they were "
		    "left: nobody asked to change them", n);
	n = netlink_deleted(d->nl);
	t->n[DRIFT_NEIGHBOR] += n;
	if (n > 0)
		log_warnx("%zu neighbours were deleted, and asked for again: "
		    "nobody asked to forget them", n);
}
