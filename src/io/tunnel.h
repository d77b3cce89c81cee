/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The way of probes through the backends' tunnels. What is marked (probe_abi.h)
 * is led by a rule to a table of its own, whose only way out is xlbp0, a TUN
 * device that nobody reads; a program on its egress sends packets on to the
 * backend that the mark names. Without device or program a marked packet ends
 * there: the table's other route is "unreachable".
 * Device and program end with this process; rules and that route stay.
 */
#ifndef XLB_TUNNEL_H
#define XLB_TUNNEL_H

#include <stdbool.h>

#define TUNNEL_DEVICE	"xlbp0"
#define TUNNEL_TABLE	30828	/* 0x786c, as in the mark */
#define TUNNEL_PRIORITY	1	/* of the rules: after `local`, before all else */
/* What probes may be on the inside, so that all paths carry them: the least
 * that IPv6 has to. */
#define TUNNEL_MTU	1280

struct tunnel;

/* `tables`: the packet program's map of that name. Makes nothing yet. */
struct tunnel *tunnel_new(int tables);
/* Ends the device and the program. */
void tunnel_free(struct tunnel *t);

/*
 * Makes what is missing of all of it, and says so where it had been there. How
 * many pieces those were; -errno (logged, once for each reason): it is tried
 * again by the next call, and no marked packet leaves until then.
 */
int tunnel_mend(struct tunnel *t);
bool tunnel_ready(const struct tunnel *t);	/* the last call had no error */

/* Takes away all that is in this network namespace. */
void tunnel_remove(struct tunnel *t);
/* The same without a daemon. */
void tunnel_remove_rules(void);

#endif
