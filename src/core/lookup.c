/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The packet program's answer to where a flow goes, from the same
 * words. */
#include "core/lookup.h"

#include <netinet/in.h>

#include "core/flow_entry.h"

const char *
lookup_why_text(enum lookup_why w)
{
	static const char *const name[] = { [LOOKUP_RING] = "ring",
	    [LOOKUP_ENTRY] = "entry", [LOOKUP_PREV] = "prev",
	    [LOOKUP_NO_BACKEND] = "no_backend" };

	return name[w];
}

uint64_t
lookup_age(uint64_t entry, uint64_t now)
{
	uint32_t age = flow_entry_age(entry,
	    (uint32_t)(now >> XLB_FLOW_TICK_SHIFT));

	return (uint64_t)(age > XLB_FLOW_AHEAD ? age - XLB_FLOW_AHEAD : 0) <<
	    XLB_FLOW_TICK_SHIFT;
}

static bool
keeps(const struct lookup_in *in, uint32_t backend)
{
	return XLB_MEMBER_BITS(in->member[backend % XLB_BACKENDS / 16],
	    backend) & XLB_MEMBER_KEEPS;
}

static bool
entry_binds(const struct lookup_in *in, bool moved)
{
	uint32_t e = (uint32_t)in->entry, life;

	if (XLB_FLOW_BACKEND(in->entry) == XLB_SLOT_CUR(in->word))
		life = XLB_FLOW_KNOWN;
	else if (e & XLB_FLOW_CLOSING)
		life = XLB_FLOW_SESSION;
	else
		life = moved ? XLB_FLOW_KNOWN : e & XLB_FLOW_CONFIRMED ?
		    XLB_FLOW_LIVE : XLB_FLOW_OPENING;
	return flow_entry_age(in->entry, (uint32_t)(in->now >>
	    XLB_FLOW_TICK_SHIFT)) <= XLB_FLOW_AHEAD + life;
}

uint32_t
lookup_decide(const struct lookup_in *in, enum lookup_why *why)
{
	uint32_t flags = XLB_WORD_FLAGS(in->service);
	uint32_t cur = XLB_SLOT_CUR(in->word), before = XLB_SLOT_PREV(in->word);
	uint32_t pinned = XLB_FLOW_BACKEND(in->entry);
	bool moved = (in->word & XLB_SLOT_LOOKUP) ||
	    (flags & XLB_SERVICE_LOOKUP);

	*why = cur != 0 ? LOOKUP_RING : LOOKUP_NO_BACKEND;
	if (in->proto == IPPROTO_UDP &&
	    (!moved || (flags & XLB_SERVICE_DATAGRAM)))
		return cur;
	if (pinned != 0 && entry_binds(in, moved)) {
		if (pinned == cur || !keeps(in, pinned))
			return cur;
		*why = LOOKUP_ENTRY;
		return pinned;
	}
	if (in->old != 0)
		before = in->old;
	if (before != 0 && before != cur && keeps(in, before)) {
		*why = LOOKUP_PREV;
		return before;
	}
	return cur;
}
