/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Health of one target: the state machine. */
#include "core/health.h"

#include <stdio.h>


/* Health in order: a step down needs `fall` results, a step up `rise`. */
static int
level(enum health_state s)
{
	return s == HEALTH_UP ? 2 : s == HEALTH_DRAIN ? 1 : 0;
}

static enum health_state
state_said(enum probe_result r)
{
	return r == PROBE_OK ? HEALTH_UP :
	    r == PROBE_DRAIN ? HEALTH_DRAIN : HEALTH_DOWN;
}

/* Counts a result other than the state. Of those in a row the one nearest to
 * the state is where they lead. */
static void
run_extend(struct health_fsm *f, enum health_state says)
{
	int now = level(f->state);
	bool better = level(says) > now;

	if (f->run > 0 && (level(f->aim) > now) != better)
		f->run = 0;
	if (f->run == 0 || (better ? level(says) < level(f->aim) :
	    level(says) > level(f->aim)))
		f->aim = says;
	f->run++;
}

/* The result by which the state is known. */
static void
why_set(struct health_fsm *f, enum probe_result r, uint16_t detail,
    const char *said)
{
	f->anew = false;
	f->nother = 0;
	f->why = r;
	f->detail = detail;
	snprintf(f->said, sizeof(f->said), "%s", said);
}

/* Two reasons that take turns leave the first. */
static bool
why_outlived(struct health_fsm *f, const struct conf_check *check,
    enum probe_result r, uint16_t detail)
{
	if (r == f->why && detail == f->detail) {
		f->nother = 0;
		return false;
	}
	if (r != f->other)
		f->nother = 0;
	f->other = r;
	return ++f->nother >= check->fall;
}

bool
health_step(struct health_fsm *f, const struct conf_check *check,
    enum probe_result r, uint16_t detail, const char *said)
{
	enum health_state says = state_said(r);
	uint32_t need;

	if (r == PROBE_LOCAL)
		return false;
	f->last = r;
	if (r == PROBE_DRAIN)
		f->asked = detail;
	if (f->state == says) {
		f->run = 0;
		if (why_outlived(f, check, r, detail) || f->anew)
			why_set(f, r, detail, said);
		return false;
	}
	f->nother = 0;
	run_extend(f, says);
	need = level(says) > level(f->state) ? check->rise : check->fall;
	if (f->state != HEALTH_UNKNOWN && f->run < need)
		return false;
	f->state = f->aim;
	f->run = 0;
	if (says == f->aim)
		why_set(f, r, detail, said);
	else
		why_set(f, PROBE_DRAIN, f->asked, "");
	return true;
}
