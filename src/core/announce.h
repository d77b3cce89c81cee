/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which addresses this node should announce, and why not. Pure: the caller
 * gives the time and is told when to ask again.
 */
#ifndef XLB_ANNOUNCE_H
#define XLB_ANNOUNCE_H

#include "core/mono.h"
#include "core/state.h"

/* Why an address is not announced; the first that applies. */
enum announce_why {
	ANNOUNCE_OK,
	ANNOUNCE_NO_BGP,	/* no bgp: section */
	ANNOUNCE_STOPPING,	/* xlb stop, or the node drains: withdrawn, or
				 * not announced any more */
	ANNOUNCE_NO_DATAPATH,	/* XDP missing, maps not committed */
	ANNOUNCE_NOT_READY,	/* a required service lacks eligible backends */
	ANNOUNCE_UNANSWERED,	/* not established: see health.h */
	ANNOUNCE_HOLD,		/* ready, but not yet for bgp.hold */
};
const char *announce_why_text(enum announce_why w);

/* One address of the configuration; sorted by address. */
struct announce_row {
	struct addr addr;
	const struct conf_address *conf;	/* attributes; the first service's
						 * that names it */
	bool wanted;		/* to be announced */
	bool gshut;		/* with GRACEFUL_SHUTDOWN, RFC 8326: draining */
	enum announce_why why;
	const char *service;	/* the one that is not ready; NULL: none */
	bool unanswered;	/* it would be, but for checks through the
				 * tunnel on this address */
	uint64_t *fingerprint;	/* of its pools' rings; sorted, each once */
	size_t nfingerprint;	/* 0: not to be announced, or not known yet */
	mono_t ready_since;	/* .ns = 0: not ready */
	int64_t since;		/* CLOCK_REALTIME ns of the last change of
				 * `wanted` */
};

struct announce {
	struct announce_row *row;
	size_t n;
	bool changed;		/* by the last announce_step(): a row came or
				 * went, or its `wanted`, `gshut` or `why` */
};

/* How far a drain or a stop of the node has come. */
enum announce_phase {
	PHASE_SERVE,		/* announce what is ready */
	PHASE_GSHUT,		/* what is announced stays, with 65535:0; nothing
				 * new is */
	PHASE_WITHDRAW,		/* nothing is announced */
};

struct announce_input {
	const struct conf *conf;
	const struct state *wanted;	/* its pools say what is ready */
	const uint64_t *fingerprint;	/* of the rings of wanted's pools; NULL:
					 * not to be announced */
	enum announce_phase phase;
	bool datapath;		/* XDP attached as wanted, maps committed */
};

/*
 * The next announcement from the last one (`prev` may be NULL). Rows of
 * addresses that the configuration no longer has vanish. `*next` is in `a`;
 * of `prev` only what outlives its configuration is read. Returns the time at
 * which a hold ends (.ns = 0: none) and the caller should step again. Hold is
 * about the services: neither a drain nor the data path starts it anew.
 */
mono_t announce_step(const struct announce *prev,
    const struct announce_input *in, mono_t now, int64_t realtime,
    struct arena *a, struct announce *next);

/* `next` without what `prev` (NULL: nothing) does not announce, with the
 * fingerprints that `prev` has: what may stay while maps change. Nothing of it
 * is in the arena of `prev`. */
void announce_keep(const struct announce *prev, const struct announce *next,
    struct arena *a, struct announce *out);

/* Where its route leads: the `announce` prefix, else the address alone. Equal
 * prefixes are one route, up while any of their addresses is wanted. */
struct prefix announce_prefix(const struct announce_row *row);

/* What stands for the last announcement at a start: the addresses of `c` whose
 * routes are among the sorted prefixes `p` of BIRD's include. They need no
 * hold, nor are they news. In `a`. */
void announce_adopted(const struct conf *c, const struct prefix *p, size_t np,
    int64_t realtime, struct arena *a, struct announce *out);

#endif
