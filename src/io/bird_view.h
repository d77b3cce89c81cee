/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What BIRD holds, as its replies say: our routes, its BGP sessions, and which
 * of our routes each of them exports. Filled line by line.
 */
#ifndef XLB_BIRD_VIEW_H
#define XLB_BIRD_VIEW_H

#include "core/bird_text.h"
#include "io/bird.h"

enum { V4, V6, FAMILIES };

/* A list of routes; `fresh` is the one being read. */
struct bird_routes {
	struct prefix *row, *fresh;	/* sorted; as they come */
	size_t n, nfresh;
	struct arena *a, *afresh;
};

struct bird_session {
	struct bird_peer peer;
	uint32_t counted[FAMILIES];	/* what BIRD says its channels export */
	bool up;
	bool stale[FAMILIES];	/* `routes` is to be asked for */
	struct bird_routes routes[FAMILIES];
};

struct bird_view {
	struct bird_routes table[FAMILIES];	/* of xlb4 and xlb6 */
	bool missing[FAMILIES];	/* no such protocol: not included */
	char state[FAMILIES][32];	/* of xlb4 and xlb6, "up" */
	struct bird_session *session;	/* sorted by name */
	size_t nsession;
	struct bird_peer *peer;	/* as bird_peers() gives them out */
	/* `show protocols all` being read */
	struct bird_session *scan;
	size_t nscan;
	bool in_session;	/* its lines belong to scan[nscan - 1] */
	int channel;		/* V4, V6; -1: another one */
};

extern const char *const bird_protocol[FAMILIES];	/* "xlb4", "xlb6" */

/* A reply is read between _begin and _end; one that is cut off leaves what was
 * known. Those that return bool say whether anything differs from before. */
bool routes_clear(struct bird_routes *r);
void routes_begin(struct bird_routes *r);
void routes_line(struct bird_routes *r, const struct bird_line *line);
bool routes_end(struct bird_routes *r);

void sessions_begin(struct bird_view *v);
void sessions_line(struct bird_view *v, const struct bird_line *line);
/* `all`: ask for the exports of every session again. */
bool sessions_end(struct bird_view *v, bool all);

/* The state of one of our protocols; false: it is another one. */
bool view_state(struct bird_view *v, const struct bird_detail *d);
/* May the name stand in a command? */
bool bird_name_ok(const char *s);

/* To be called after routes of a session changed. */
void peers_update(struct bird_view *v);

bool view_clear(struct bird_view *v);	/* BIRD is gone, and so is all it had */
void view_free(struct bird_view *v);

#endif
