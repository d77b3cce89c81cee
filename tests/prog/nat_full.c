/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * All ports of an address of ours in use: what the next flow meets, what the
 * others notice of it, and that ports come back as time goes by, which here is a
 * pass of core/nat_sweep for a later hour. Speaks TAP.
 */
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/nat_sweep.h"
#include "engine.h"
#include "nat_site.h"

#define ROWS	131072
#define CLIENT	0xc0000000U
/* The last port is found by about one flow in 500 that try 32 of 16384. */
#define FLOWS	60000

static struct nat_site site;
static struct nat_sweep *sweep;
static uint16_t port_of[2 * FLOWS];	/* by flow; 0: it has none */
static uint32_t flows;			/* that were tried */
static int number;

static int
result(bool good, const char *what)
{
	printf("%sok %d - %s\n", good ? "" : "not ", ++number, what);
	return good ? 0 : 1;
}

static int
send(uint32_t flow, uint8_t flags, uint16_t *port)
{
	uint8_t frame[NAT_SITE_LEN];

	nat_site_frame(frame, CLIENT + flow / 50000,
	    (uint16_t)(1024 + flow % 50000), flags);
	return nat_site_run(frame, port);
}

/* The backend answers, and the client that. */
static bool
establish(uint32_t flow)
{
	uint8_t frame[NAT_SITE_LEN];
	uint16_t to, port;

	nat_site_reply(frame, port_of[flow], NAT_SITE_SYN | NAT_SITE_ACK);
	return nat_site_run(frame, &to) == XDP_TX &&
	    send(flow, NAT_SITE_ACK, &port) == XDP_TX && port == port_of[flow];
}

static uint64_t
drops(void)
{
	uint64_t count[3] = { 0 };

	engine_counters("service", 1, count, 3);
	return count[2];
}

/* New flows until as many have ports; how many were refused, or -1. */
static int
fill(int wanted)
{
	uint64_t full = nat_site_count(XLB_REASON_NAT_EXHAUSTED);
	int have = nat_site_flows(&site), refused = 0, action;

	while (have < wanted && flows < 2 * FLOWS) {
		action = send(flows, NAT_SITE_SYN, &port_of[flows]);
		if (action == XDP_TX)
			have++;
		else
			port_of[flows] = 0;
		refused += action == XDP_DROP;
		flows++;
	}
	return have == wanted && nat_site_flows(&site) == wanted &&
	    nat_site_count(XLB_REASON_NAT_EXHAUSTED) == full +
	    (uint64_t)refused ? refused : -1;
}

static bool
each_port_once(void)
{
	static uint8_t seen[65536];
	uint32_t i, n = 0;

	memset(seen, 0, sizeof(seen));
	for (i = 0; i < flows; i++)
		if (port_of[i] != 0) {
			n += !seen[port_of[i]];
			seen[port_of[i]] = 1;
		}
	for (i = 0; i < XLB_NAT_PORTS && seen[XLB_NAT_PORT + i]; i++)
		;
	return n == XLB_NAT_PORTS && i == n;
}

/* So many more are dropped and counted, and leave nothing behind. */
static bool
refuses(uint32_t n)
{
	uint64_t full = nat_site_count(XLB_REASON_NAT_EXHAUSTED) + n;
	uint64_t dropped = drops() + n;
	uint16_t port;
	bool ok = true;
	uint32_t i;

	for (i = 0; i < n; i++)
		ok = send(3 * FLOWS + i, NAT_SITE_SYN, &port) == XDP_DROP && ok;
	return ok && nat_site_count(XLB_REASON_NAT_EXHAUSTED) == full &&
	    drops() == dropped && nat_site_flows(&site) == XLB_NAT_PORTS;
}

/* Every fourth of those with a port. */
static bool
goes_on(void)
{
	bool ok = true;
	uint32_t i;

	for (i = 0; i < flows; i += 4)
		if (port_of[i] != 0)
			ok = establish(i) && ok;
	return ok;
}

/* So many ticks from now. How many flows have ended. */
static uint32_t
later(uint32_t ticks)
{
	uint32_t now = 0, i;

	for (i = 0; i < ROWS && now == 0; i++)
		if (site.row[i].word & XLB_NAT_FORWARD)
			now = XLB_NAT_USED(site.row[i].word);
	nat_sweep_begin(sweep, now + ticks);
	while (nat_sweep_step(sweep))
		;
	return nat_sweep_result(sweep)->expired;
}

/* A flow that did not go on has lost its port. */
static uint32_t
forget(void)
{
	uint32_t i, n = 0;

	for (i = 0; i < flows; i++) {
		if (port_of[i] != 0 && i % 4 != 0)
			port_of[i] = 0;
		n += port_of[i] != 0;
	}
	return n;
}

static int
first_address(void)
{
	int refused, bad;

	bad = result(fill(XLB_NAT_PORTS * 3 / 4) == 0,
	    "three quarters, and nobody waits for one");
	refused = fill(XLB_NAT_PORTS);
	printf("# %d flows refused until the last port was found\n", refused);
	bad += result(refused > 0, "all ports of an address");
	bad += result(each_port_once(), "each of them once");
	bad += result(refuses(1000), "the next flow is dropped and counted");
	bad += result(goes_on(), "what is established goes on");
	return bad;
}

/* In ticks that are 4.3 s each. */
static int
time_goes_by(void)
{
	int bad = 0, refused;
	uint32_t left;

	bad += result(later(XLB_NAT_OPENING / 2) == 0 && refuses(100),
	    "half a minute changes nothing");
	left = later(2 + XLB_NAT_OPENING);
	bad += result(left + forget() == XLB_NAT_PORTS && left > 0 &&
	    nat_site_flows(&site) == (int)(XLB_NAT_PORTS - left),
	    "who never went on ends in a minute");
	bad += result(goes_on(), "the others do not");
	refused = fill((int)(XLB_NAT_PORTS - left / 2));
	bad += result(refused == 0, "their ports are free");
	bad += result(fill(XLB_NAT_PORTS) >= 0 && each_port_once(),
	    "all of them, again");
	return bad;
}

/* Room for as many more. */
static int
second_address(void)
{
	nat_site_address(&site);
	return result(fill(3 * XLB_NAT_PORTS / 2) == 0,
	    "another address has ports of its own");
}

int
main(void)
{
	int bad;

	if (nat_site_open(&site, ROWS) != 0)
		return 1;
	printf("1..11\n");
	sweep = nat_sweep_new(site.tables);
	nat_sweep_table(sweep, site.row, ROWS);
	bad = first_address();
	bad += time_goes_by();
	bad += second_address();
	nat_sweep_free(sweep);
	engine_close();
	return bad == 0 ? 0 : 1;
}
