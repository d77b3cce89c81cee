/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whether so many flows are unknown that every packet is worth a look-up. */
#include "core/surge.h"

static int64_t
seconds_since(mono_t now, mono_t then)
{
	return mono_ms_since(now, then) / 1000;
}

/* New entries beyond the budget, or in the place of live ones: somebody makes
 * flows faster than they are used. */
static bool
is_flood(const struct xlb_flow_stats *a, const struct xlb_flow_stats *b)
{
	return a->skip_budget != b->skip_budget ||
	    a->evict_unconfirmed != b->evict_unconfirmed ||
	    a->evict_confirmed != b->evict_confirmed;
}

static void
window_begin(struct surge *s, mono_t at)
{
	s->sampled = s->unknown = 0;
	s->window = at;
}

/*
 * Flows that have come to stay are unknown once each, so that looking them up
 * ends it; packets with forged addresses are unknown for as long as they come.
 * A surge that did not end by itself is not begun again before the share has
 * been low.
 */
static bool
judge(struct surge *s, mono_t at)
{
	bool calm = s->flood.ns == 0 ||
	    seconds_since(at, s->flood) >= SURGE_CALM_S;

	s->permille = (uint32_t)(s->unknown * 1000 / s->sampled);
	if (s->on)
		return s->unknown * 1000 < s->sampled * SURGE_OFF_PERMILLE;
	if (s->unknown * 1000 <= s->sampled * SURGE_ON_PERMILLE) {
		s->spent = false;
		return false;
	}
	return calm && !s->spent;
}

static void
count(struct surge *s, const struct xlb_flow_stats *now, mono_t at)
{
	s->sampled += now->sampled - s->last.sampled;
	s->unknown += now->unknown - s->last.unknown;
	if (is_flood(now, &s->last))
		s->flood = at;
	if (s->sampled < SURGE_SAMPLES &&
	    seconds_since(at, s->window) >= SURGE_WINDOW_S) {
		s->sampled /= 2;
		s->unknown /= 2;
		s->window = at;
	}
}

bool
surge_step(struct surge *s, const struct xlb_flow_stats *now, mono_t at)
{
	bool turns = false;

	if (!s->has_last) {
		s->has_last = true;
		s->last = *now;
		s->counted = at;
		window_begin(s, at);
		return false;
	}
	count(s, now, at);
	s->last = *now;
	if (s->on)
		s->seconds += (uint64_t)seconds_since(at, s->counted);
	if (!s->on || seconds_since(at, s->counted) > 0)
		s->counted = at;
	if (s->sampled >= SURGE_SAMPLES) {
		turns = judge(s, at);
		window_begin(s, at);
	}
	if (s->on && !turns && seconds_since(at, s->since) >= SURGE_S) {
		turns = true;
		s->spent = true;
	}
	if (!turns)
		return false;
	s->on = !s->on;
	s->since = at;
	window_begin(s, at);
	return true;
}
