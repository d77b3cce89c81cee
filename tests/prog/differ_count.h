/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What became of the frames that were compared, and whether that is enough. */
#ifndef XLB_PROG_DIFFER_COUNT_H
#define XLB_PROG_DIFFER_COUNT_H

#include "reference.h"
#include "xlb_abi.h"

enum { DIFFER_CLIENT, DIFFER_BACKEND };		/* who sent it */

struct differ_count {
	unsigned long packets, reason[XLB_REASON_COUNT];
	/* for services with NAT, and to addresses that it sends from; of them:
	 * translated and sent on */
	unsigned long nat[2], translated[2];
};

const char *differ_reason(unsigned reason);
void differ_count_add(struct differ_count *c, const struct ref_result *r);
/* Each prints what there is. Frames end in each reason, and of NAT there are
 * many; two of five frames are translated by NAT, a seventh in each direction. */
bool differ_count_reasons(const struct differ_count *c);
bool differ_count_nat(const struct differ_count *c);

#endif
