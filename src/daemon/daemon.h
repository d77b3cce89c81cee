/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * xlbd: everything it holds, and the parts that act on it. One loop, one
 * thread; only reconcile.c changes maps, attachments and announcements.
 */
#ifndef XLB_DAEMON_H
#define XLB_DAEMON_H

#include <jansson.h>
#include <systemd/sd-event.h>

#include "core/announce.h"
#include "core/conf.h"
#include "core/options.h"
#include "core/path_mtu.h"
#include "core/state.h"
#include "core/surge.h"
#include "daemon/count.h"
#include "daemon/drift.h"
#include "io/bird.h"
#include "io/ctl.h"
#include "io/http.h"
#include "io/netlink.h"
#include "io/ports.h"
#include "io/probe.h"
#include "io/prog.h"
#include "io/tunnel.h"

/* What xlbd exits with, and replies where it would. */
enum { EXIT_STOPPED, EXIT_FAILED, EXIT_USAGE, EXIT_CONFIG };

/* A configuration in force. Replaced as a whole, never edited. */
struct config {
	struct arena *arena;
	const struct conf *conf;
	uint8_t hash_key[16];
	json_t *sources;	/* the accepted text, as kept on disk */
	int64_t loaded;		/* CLOCK_REALTIME, ns */
	struct config *retired;	/* the one before, while what the daemon
				 * knows still points into it */
};

/* The last attempt to load the file; for status. */
struct config_verdict {
	bool ok;
	bool kept;		/* running with the kept text, not the file */
	int64_t at;		/* CLOCK_REALTIME, ns */
	char *why;		/* first error; NULL */
};

/* Where the node is going; see lifecycle.c. */
enum life { LIFE_SERVE, LIFE_DRAIN, LIFE_STOP };

struct lifecycle {
	enum life life;
	enum announce_phase phase;
	bool flush;		/* after LIFE_STOP: start anew */
	/* stages of a stop, after the phases */
	bool withdrawing;	/* until BIRD confirms */
	bool lingering;		/* withdrawn, still forwarding */
	bool removed;		/* reconciling to the empty state */
	sd_event_source *timer;	/* end of the phase, or of the linger */
	int64_t until;		/* the same, CLOCK_REALTIME ns; for status */
	struct ctl_request *waiting;	/* of `xlb stop`; NULL */
};

/* A reload's answer waits until the flow table is as large as asked for, and
 * until BIRD has taken the change, within a bound. */
struct reload_wait {
	struct ctl_request *rq;	/* NULL: nobody waits */
	json_t *reply;
	sd_event_source *timer;
	bool late;		/* BIRD has had its time */
};

/* How this process was begun; a restart executes the same. */
struct origin {
	const char *path;	/* by name: after an upgrade that is the new one */
	char **argv;
};

/* Of `xlb restart`, while the xlbd to come says whether it could take over. */
struct restart {
	struct ctl_request *rq;	/* NULL: nobody is asked */
	char why[CTL_ASKED_MAX];
	pid_t pid;		/* 0: there is none */
	int said;		/* a file in memory with its words */
	sd_event_source *ended, *late;
};

struct event_loss;
struct status_ring;
struct flows_scan;
struct listeners;
struct documents;
struct history;
/* What time asks for; see tidy.c. */
struct tidy {
	struct grace *grace;
	sd_event_source *timer;	/* the next pass */
	sd_event_source *work;	/* a slice of one */
	sd_event_source *second;	/* the next look at the counters */
	sd_event_source *nat_timer;	/* the next pass over NAT's table */
	sd_event_source *nat_work;	/* a slice of one */
	int64_t nat_ns;		/* what it took so far */
	bool again;		/* something changed while a pass was on */
	bool told;		/* of this pass: an old ring may go */
	bool fresh;		/* the table is worth reading soon */
	mono_t scanned;		/* when it was; ns 0: never */
	int64_t work_ns, scan_ns;	/* of this pass, of the last that read it */
	int64_t slice_ns;	/* the longest slice so far */
	struct surge surge;
	int64_t surge_since;	/* CLOCK_REALTIME ns, of the one that is on */
	/* as the last pass left them */
	uint64_t flows;		/* entries that bind one */
	uint32_t prev, lookup, retired;	/* see sweep.h */
};

struct daemon {
	struct options opt;
	sd_event *ev;
	struct config *config;
	struct config_verdict verdict;

	struct prober *prober;
	struct http *http;
	struct netlink *nl;
	struct prog *prog;
	struct ports *ports;	/* NULL: this kernel does not tell */
	struct bird *bird;	/* NULL: no bgp: section */
	struct bird *bird_before;	/* announced until a reload; is told
					 * that it is over. NULL: none */
	struct ctl *ctl;
	int tun;		/* xlb0; -1: none */

	/* health.row[i] is the health of target i; names and checks are the
	 * config's */
	struct health_table health;
	struct health_target *health_target;
	bool tunnelled;		/* some of them are asked through a tunnel */
	struct path_table paths;	/* to all that packets are tunnelled to */
	size_t *path_asked;	/* those of them that the prober asks */
	size_t npath_asked;
	struct tunnel *tunnel;
	struct override_list overrides;	/* rows and names on the heap */

	/* The last reconciliation: what was wanted, and how it went. */
	struct arena *arena;
	struct state wanted;
	struct state before;	/* what was wanted under the configuration
				 * before, until there is a reconciliation under
				 * this one; its pools alone are good */
	struct ring_cache *rings;
	struct prog_link *link;	/* as conf->interface */
	bool refused;		/* an interface that is up is not attached */
	bool datapath;		/* all that are up are, as wanted; there is one */
	size_t failed;		/* operations that failed */
	struct drift drift;	/* repairs of what nobody asked for */
	int64_t changed;	/* CLOCK_REALTIME ns of the last change; 0 */
	struct announce announce;
	bool announced;		/* `announce` is real */
	bool attached;		/* it was looked what is attached */

	const struct config *small;	/* whose flow table there was no memory
					 * for; NULL */
	mono_t small_at;

	sd_event_source *soon;	/* a reconciliation is asked for */
	sd_event_source *tick;	/* the next one that nobody asked for */
	mono_t ticked;		/* when the last one was */
	sd_event_source *hold;	/* the next end of a hold */
	bool started;		/* the first reconciliation is done */
	bool applied;		/* a configuration, since the last tick */
	bool stop_asked;	/* before that */
	mono_t start;
	int64_t started_at;	/* CLOCK_REALTIME, ns */
	struct status_ring *ring;	/* of `wanted`, in `arena`; NULL: not
					 * computed yet */

	struct lifecycle lifecycle;
	struct tidy tidy;
	struct reload_wait reload;
	struct restart restart;
	const struct origin *origin;
	struct listeners *listeners;	/* of events */
	struct documents *documents;	/* for the HTTP helper */
	struct history *history;
	uint64_t epoch;		/* another one: config, wanted, announce or what
				 * BIRD said is */
	struct count count;
	struct flows_scan *scan;	/* under way; NULL */
	int status;		/* exit status when the loop ends */
	bool again;		/* execute ourselves anew when the loop ends */
};

/* The exit status. `*again`: to be executed anew, with xlb0 passed on. */
int daemon_run(const struct options *opt, const struct origin *origin,
    struct prober *prober, struct http *http, bool *again);
void daemon_tun(struct daemon *d);	/* opens xlb0, or takes it over */
void daemon_tun_drop(struct daemon *d);	/* it goes, for the manager too */

mono_t daemon_now(void);	/* CLOCK_MONOTONIC */
int64_t daemon_realtime(void);	/* CLOCK_REALTIME, ns */

/* start.c */
void prog_config_init(struct prog_config *pc, const struct options *opt,
    const struct config *c);
/* The file; where that does not load, the text that was accepted last. NULL:
 * neither (logged). */
struct config *start_config(struct daemon *d);
/* Opens d->prog; `*c` may become the one that was accepted last. 0, or -errno
 * (logged). */
int start_datapath(struct daemon *d, struct config **c);
/* Both change nothing; the exit status, with the reasons on stderr. Is the file
 * valid, and does it fit what is pinned? */
int preflight(const struct options *opt);
/* With what would a start end; 0: it would go on. */
int preflight_restart(const struct options *opt);

/* restart.c */
void restart_ask(struct daemon *d, struct ctl_request *rq);
void restart_close(struct daemon *d);	/* nobody waits any more */

/* config.c */

/* Reads and checks the file. NULL with the reasons in `dg`. */
struct config *config_load(const struct options *opt, struct diag *dg);
/* From the text in the state directory. NULL: none, or it does not load. */
struct config *config_kept(const struct options *opt, struct diag *dg);
/* 0, or -errno (logged). */
int config_keep(const struct options *opt, const struct config *c);
void config_free(struct config *c);
/* From {"name","text"} rows. `running`: they came with a request, and no other
 * key file than its is opened. */
struct config *config_from_sources(const json_t *sources,
    const struct config *running, struct diag *dg);
/* What would move every flow is refused while maps are in use. */
void config_check_change(const struct config *old, const struct config *new,
    struct diag *dg);
/* Such a change where there is no flow that could move, for no service is
 * configured: taken, but with new maps. */
bool config_begins_anew(const struct config *old, const struct config *new);
void config_verdict_set(struct config_verdict *v, const struct diag *dg,
    bool kept);
/* Takes `c` over: targets, next hops, BIRD, interfaces follow. */
void config_apply(struct daemon *d, struct config *c);
/* Errors go to the log and into the reply, warnings into the reply; where there
 * is no reply (NULL), they go to the log too. */
void config_messages(const struct diag *dg, json_t *reply);
/* 0, 1 (an operation or interface was refused) or 3 (the file). `reply` gets
 * errors and warnings; NULL: they are only logged. RELOAD_ANEW: nothing was done
 * yet, config_begins_anew(); the caller has xlbd flush and start anew. */
#define RELOAD_ANEW (-1)
int config_reload(struct daemon *d, json_t *reply);

/* daemon.c */
/* The flow table follows the configuration, beside the loop. 0, or -errno
 * (logged): it stays smaller, and is tried again after a while. */
int daemon_grow(struct daemon *d);

/* health_run.c */
void health_adopt(struct daemon *d);	/* verdicts of an earlier xlbd */
void health_follow(struct daemon *d, const struct conf *c);
/* The table that it would begin with; in `a`. */
void health_foretell(const struct daemon *d, const struct conf *c,
    struct arena *a, struct health_table *out);
/* The pinned verdicts are those that are known here. How many were not. */
size_t health_mend(struct daemon *d);
/* Numbers and ways of backends may have changed, or what leads probes there. `s`:
 * what the maps hold. */
void health_mark(struct daemon *d, const struct state *s);
void health_result(size_t id, enum probe_result r, uint16_t detail,
    const char *said, void *arg);
/* How a target is reached: by the number that its backend has in the maps, and
 * from the address that packets to it come from if it is of the VIP's family.
 * 0: not now. */
uint32_t health_target_mark(const struct daemon *d, const struct state *s,
    const struct health_target *t, struct addr *src);

/* path_run.c */
void path_adopt(struct daemon *d);	/* as an earlier xlbd found them */
void path_follow(struct daemon *d);	/* after health_follow() */
void path_tick(struct daemon *d);	/* every few seconds */

/* reconcile.c */
void reconcile_soon(struct daemon *d);	/* this turn of the loop */
void reconcile_now(struct daemon *d);
/* Something does not work that did: perhaps somebody has changed the maps. */
void reconcile_look(struct daemon *d);
int reconcile_init(struct daemon *d);
void reconcile_close(struct daemon *d);
/* What `conf` would make of the maps as they are. 0, or -1: it cannot be done,
 * `dg` says why. Changes nothing. */
int reconcile_try(const struct daemon *d, const struct conf *conf,
    struct arena *a, struct state *found, struct state *wanted,
    struct diag *dg);
struct state_input reconcile_input(const struct daemon *d,
    const struct conf *conf, const struct state *found);

/* story.c: what a pass changes, in the log */
struct plan;
void story_plan(const struct plan *p);
void story_state(const struct state *prev, const struct state *next);
void story_announce(const struct daemon *d, const struct announce *next);

/* tidy.c */
int tidy_open(struct daemon *d);	/* 0, or -errno (logged) */
void tidy_close(struct daemon *d);
void tidy_soon(struct daemon *d);	/* the maps have changed */

/* routes.c */
void routes_follow(struct daemon *d, const struct conf *old,
    const struct conf *new);
void routes_tidy(struct daemon *d);	/* what a reload left is over? */

/* lifecycle.c */
/* The node is drained or not any more, and why, for the log. */
void lifecycle_update(struct daemon *d, const char *why);
/* Which addresses a reload leaves announced, as soon as a drain or a hold that it
 * begins is over. In `a`. */
void lifecycle_foretell(const struct daemon *d, const struct conf *c,
    const struct state *wanted, struct arena *a, struct announce *next);
void lifecycle_stop(struct daemon *d, bool flush, struct ctl_request *rq);
void lifecycle_bird_changed(struct daemon *d);

/* overrides.c */
void overrides_load(struct daemon *d);
int overrides_save(const struct daemon *d);	/* 0, or -errno (logged) */
void overrides_follow(struct daemon *d, const struct conf *c);
void overrides_free(struct override_list *l);
/* The one on this object; NULL. `addr` is not read for the node. */
struct override *override_find(const struct override_list *l,
    const char *pool, const struct addr *addr);
void override_put(struct override_list *l, const struct override *o);
void override_del(struct override_list *l, struct override *o);

/* listeners.c: who reads events. */
int listeners_open(struct daemon *d);	/* 0, or -errno (logged) */
void listeners_close(struct daemon *d);
void listeners_follow(struct daemon *d);	/* numbers have changed */
/* What all of them, ever, were not told. 0, or -errno. */
int listeners_loss(struct daemon *d, struct event_loss *all);
/* Answers, and then says what happens, or says why not. */
void listeners_add(struct daemon *d, struct ctl_request *rq,
    const json_t *args);

/* stats.c: who has an address, sorted by it. The rows are the heap's. */
struct members {
	struct member {
		const struct conf_pool *pool;
		const struct conf_backend *backend;
	} *row;
	size_t n;
};
void members_init(struct members *m, const struct conf *c);
/* "POOL/NAME" of all that have this address. */
json_t *members_json(const struct members *m, const struct addr *addr);

/* Results of the commands of these names. NULL: the maps cannot be
 * read. */
json_t *stats_build(struct daemon *d);
json_t *neighbors_build(struct daemon *d);

/* lookup.c: of the commands of these names. */
void handle_lookup(struct daemon *d, struct ctl_request *rq,
    const json_t *args);
json_t *rings_build(struct daemon *d, const struct status_ring *ring);

/* flows.c: answers later, when all of the table was looked at. */
void handle_flows(struct daemon *d, struct ctl_request *rq,
    const json_t *args);
void flows_close(struct daemon *d);

/* document.c: what the HTTP helper gives out. */
int documents_open(struct daemon *d);	/* 0, or -errno */
void documents_close(struct daemon *d);
/* 0, or -errno: it is tried again. */
int documents_listen(struct daemon *d, const struct conf *c);
int64_t documents_took(const struct daemon *d, enum http_document which);

/* handlers.c */
/* Why packets are not forwarded as they should be; "" if they are. */
const char *daemon_not_forwarding(const struct daemon *d);
void handlers_request(struct ctl_request *rq, const char *command,
    const json_t *args, bool may_change, void *arg);
void handlers_bird_changed(struct daemon *d);
void handlers_changed(struct daemon *d);	/* what a reload waits for, perhaps */
void handlers_close(struct daemon *d);	/* nobody waits any more */

#endif
