/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A host with two interfaces e0 and e1 (10.1.0.1, fd00:1::1; 10.2.0.1,
 * fd00:2::1), its peer with .2 and ::2 in another namespace behind them, and
 * io/netlink open in the host.
 */
#ifndef XLB_TEST_NET_H
#define XLB_TEST_NET_H

#include "../unit/unit.h"

#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/netlink_int.h"
#include "kern.h"

struct net {
	pid_t peer;
	sd_event *ev;
	struct netlink *nl;
	unsigned calls;		/* of `changed` */
};
extern struct net t;

extern const uint8_t net_mac0[6], net_mac1[6], net_own0[6];

int net_setup(void **state);
int net_teardown(void **state);
void net_reopen(void);

struct addr net_addr(const char *s);
int net_addr_cmp(const void *a, const void *b);
/* Wants exactly these, up to a NULL. */
void want(const char *s, ...);
const struct hop *hop(const char *s);
bool is_ok(const char *s);
bool is(const char *s, enum hop_status status);
bool mac_is(const char *s, const uint8_t mac[6]);
/* How long that neighbour still has to answer, ms; 0: it is not waited for. */
double time_left(const char *s);

/* One turn of the loop, at most `ms` long; turns for so long. */
void turn(unsigned ms);
void turn_for(double ms);

/*
 * Runs the loop until `cond`, and prints how long that took. It takes `limit` ms at
 * most, or longer where others need the processor. An event has to do it: routes
 * are not asked for again here as they else are every ten seconds.
 */
#define FOLLOW_BUSY 30000
#define FOLLOW(limit, what, cond) do { \
	double begin_ = now_ms(); \
	while (!(cond) && now_ms() - begin_ < (limit) + FOLLOW_BUSY) \
		turn(20); \
	if (!(cond)) \
		fail_msg("%s: not within %d ms", (what), \
		    (limit) + FOLLOW_BUSY); \
	print_message("# %s: %.1f ms\n", (what), now_ms() - begin_); \
} while (0)

#define NET_CASE(f) \
	cmocka_unit_test_setup_teardown(f, net_setup, net_teardown)

#endif
