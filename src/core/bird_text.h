/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * BIRD's two texts: the include that we write and the replies that we read.
 * Source for both: BIRD 2.0 User's Guide, and the framing of its control
 * socket (doc/reply_codes in BIRD's sources).
 */
#ifndef XLB_BIRD_TEXT_H
#define XLB_BIRD_TEXT_H

#include <stdio.h>

#include "core/announce.h"

#define BIRD_DEVICE "xlb0"		/* where the routes point, io/tun.h */
#define BIRD_DIRECTORY "/run/xlb-bird"	/* that of the packaged wrapper */

/*
 * The include of one family: sorted, deduplicated route lines, the same bytes
 * for the same input; see core/announce_route.h. 0, or -1 on a write error.
 */
int bird_render(const struct announce *an, const struct conf *c, int family,
    FILE *out);

/*
 * A complete bird.conf for the `bgp:` section (xlb bird-config). It includes
 * the packaged `wrapper`; NULL, or a bgp.bird.directory of its own: the wrapper
 * is written out. `local`: this node's address towards each neighbour; NULL, or
 * one unset: no `strict bind`, for which BIRD wants it. 0, or -1 with the
 * reasons in `dg`: no bgp: section, or what BIRD's language cannot express.
 */
int bird_config_render(const struct conf *c, const char *wrapper,
    const struct addr *local, FILE *out, struct diag *dg);

/* Addresses and prefixes of the route lines in an include that an earlier
 * xlbd wrote. Sorted prefixes; lines that are not ours are skipped. */
struct prefix *bird_include_parse(const char *text, size_t len,
    struct arena *a, size_t *n);

/* One line of a reply. */
struct bird_line {
	int code;		/* 0..9999; -1: asynchronous, to be skipped */
	bool last;		/* the reply ends here */
	const char *text;	/* into the input */
	size_t len;
};

/* `prev` is the code of the line before (a line that starts with a space
 * continues it). 0, or -1: not a line of BIRD's protocol. */
int bird_line_parse(const char *line, size_t len, int prev,
    struct bird_line *out);

/* What a code means to `configure`. */
enum bird_verdict { BIRD_DONE, BIRD_PENDING, BIRD_RETRY, BIRD_REFUSED };
enum bird_verdict bird_configure_verdict(int code);

/* One line of `show protocols all`, which the caller reads in order. */
enum bird_field {
	BIRD_FIELD_NONE,	/* nothing that matters here */
	BIRD_FIELD_PROTOCOL,	/* a new one begins: name, kind, value = state */
	BIRD_FIELD_SESSION,	/* value: "Established" */
	BIRD_FIELD_CHANNEL,	/* a new one begins, value: "ipv4" */
	BIRD_FIELD_EXPORTED,	/* number: routes the channel exports */
	BIRD_FIELD_ERROR,	/* text: what ended the session last */
};
/* A time as BIRD says it, by its own clock and zone: "15:14:37.123" of the last
 * day, else "2026-11-29", or both. Another `timeformat protocol`: neither. */
struct bird_time {
	bool has_date, has_time;
	int year, month, day, hour, minute, second;
};
struct bird_detail {
	char name[64], kind[16], value[32];	/* cut to fit */
	char text[96];		/* the same */
	uint32_t number;
	struct bird_time since;	/* of a protocol: when its state began */
};
enum bird_field bird_protocol_parse(int code, const char *text, size_t len,
    struct bird_detail *out);

/* " 192.0.2.1/32  unicast [xlb4 ...] * (200)": 0 and the prefix, -1: no route
 * line. */
int bird_route_parse(const char *text, size_t len, struct prefix *out);

#endif
