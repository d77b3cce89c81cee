/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The reasons in which packets end, by name. */
#ifndef XLB_REASON_H
#define XLB_REASON_H

#include "xlb_abi.h"

enum reason_kind { REASON_SENT, REASON_PASS, REASON_DROP };

const char *reason_name(enum xlb_reason r);
enum reason_kind reason_kind(enum xlb_reason r);
int reason_find(const char *name);	/* -1: there is none */

#endif
