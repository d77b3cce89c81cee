/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The commands that come over the control socket. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "core/arena.h"
#include "core/flow_count.h"
#include "core/plan.h"
#include "daemon/daemon.h"
#include "daemon/diff.h"
#include "daemon/status.h"
#include "io/conf_file.h"
#include "io/log.h"
#include "io/maps.h"

#define STATUS_CHANGES 20	/* that status tells of */

/* A reload says whether BIRD took it: it waits this long for that. */
#define RELOAD_WAIT_MS 3000

static void
reply_error(struct ctl_request *rq, int status, const char *text)
{
	json_t *reply = ctl_message(status);

	ctl_error(reply, "%s", text);
	ctl_reply(rq, reply);
}

static void
bird_warn(const struct daemon *d, json_t *reply)
{
	enum bird_status s;

	if (d->bird == NULL)
		return;
	s = bird_status(d->bird);
	if (s != BIRD_SYNCED)
		ctl_warning(reply, "bird: %s%s%s: announcements follow when it "
		    "is back", bird_status_text(s),
		    *bird_reason(d->bird) != '\0' ? ": " : "",
		    bird_reason(d->bird));
}

static void
reload_answer(struct daemon *d)
{
	struct reload_wait *w = &d->reload;

	bird_warn(d, w->reply);
	if (d->small == d->config) {
		ctl_error(w->reply, "flow_table.entries: it stays smaller; it "
		    "is tried again (see the log)");
		json_object_set_new(w->reply, "exit", json_integer(1));
	}
	ctl_reply(w->rq, w->reply);
	w->rq = NULL;
	w->reply = NULL;
	w->timer = sd_event_source_unref(w->timer);
}

static bool
reload_waits(const struct daemon *d)
{
	return prog_growing(d->prog) || (!d->reload.late && d->bird != NULL &&
	    !bird_settled(d->bird));
}

void
handlers_changed(struct daemon *d)
{
	if (d->reload.rq != NULL && !reload_waits(d))
		reload_answer(d);
}

static int
on_reload_wait(sd_event_source *s, uint64_t usec, void *arg)
{
	struct daemon *d = arg;

	(void)s;
	(void)usec;
	d->reload.late = true;
	handlers_changed(d);
	return 0;
}

void
handlers_bird_changed(struct daemon *d)
{
	d->epoch++;
	if (d->bird == NULL || !bird_settled(d->bird))
		return;
	handlers_changed(d);
	lifecycle_bird_changed(d);
}

/* `xlb stop` waits in its own place. */
void
handlers_close(struct daemon *d)
{
	if (d->reload.rq != NULL)
		reload_answer(d);
}

static void
handle_reload(struct daemon *d, struct ctl_request *rq, const json_t *args)
{
	struct reload_wait *w = &d->reload;
	json_t *reply = ctl_message(0);
	int status;

	(void)args;
	status = config_reload(d, reply);
	if (status == RELOAD_ANEW) {
		json_decref(reply);
		lifecycle_stop(d, true, rq);
		return;
	}
	json_object_set_new(reply, "exit", json_integer(status));
	w->late &= w->rq != NULL;
	if (status == EXIT_CONFIG || !reload_waits(d) || w->rq != NULL ||
	    sd_event_add_time_relative(d->ev, &w->timer, CLOCK_MONOTONIC,
	    RELOAD_WAIT_MS * 1000ULL, 0, on_reload_wait, d) < 0) {
		if (status != EXIT_CONFIG)
			bird_warn(d, reply);
		ctl_reply(rq, reply);
		return;
	}
	w->rq = rq;
	w->reply = reply;
}

static void
handle_stop(struct daemon *d, struct ctl_request *rq, const json_t *args)
{
	(void)args;
	lifecycle_stop(d, false, rq);
}

static void
handle_restart(struct daemon *d, struct ctl_request *rq, const json_t *args)
{
	if (json_is_true(json_object_get(args, "flush")))
		lifecycle_stop(d, true, rq);
	else
		restart_ask(d, rq);
}

/* Fingerprints and shares of the rings; computed when first asked for. */
static const struct status_ring *
rings(struct daemon *d)
{
	if (d->ring == NULL)
		d->ring = status_rings(&d->wanted, d->rings, d->arena);
	return d->ring;
}

static void
reply_result(struct ctl_request *rq, json_t *result)
{
	json_t *reply = ctl_message(0);

	json_object_set_new(reply, "result", result);
	ctl_reply(rq, reply);
}

const char *
daemon_not_forwarding(const struct daemon *d)
{
	bool attached = false;
	size_t i;

	if (d->config->conf->ninterface == 0)
		return "no interfaces are configured";
	for (i = 0; i < d->config->conf->ninterface; i++)
		attached |= d->link[i].attached;
	if (d->refused)
		return "an interface is not attached as wanted";
	if (!attached)
		return "no interface is attached";
	if (!d->datapath)
		return "no interface is up";
	if (d->failed > 0)
		return "operations on the maps failed, they are tried again";
	return "";
}

static void
handle_status(struct daemon *d, struct ctl_request *rq, const json_t *args)
{
	const struct config *c = d->config;
	struct log_changed change[STATUS_CHANGES];
	char name[NODE_NAME_MAX];
	struct status_config config = {
		.file = d->opt.config, .ok = d->verdict.ok,
		.kept = d->verdict.kept, .error = d->verdict.why,
		.read = d->verdict.at, .loaded = c->loaded,
	};
	struct status_input in = {
		.now = daemon_realtime(), .started = d->started_at,
		.pid = getpid(), .node = conf_node_name(c->conf, name),
		.config = &config, .conf = c->conf,
		.overrides = &d->overrides,
		.node_state = override_node(c->conf, &d->overrides),
		.phase = d->lifecycle.phase,
		.phase_until = d->lifecycle.until,
		.forwarding_reason = daemon_not_forwarding(d),
		.flows = {
			.entries = maps_flow_entries(prog_maps(d->prog)),
			.live = d->tidy.flows, .lookup = d->tidy.lookup,
			.surge = d->tidy.surge.on,
			.surge_since = d->tidy.surge_since,
			.surge_seconds = d->tidy.surge.seconds,
		},
		.link = d->link, .wanted = &d->wanted, .ring = rings(d),
		.paths = &d->paths,
		.announce = &d->announce, .bird = d->bird, .change = change,
		.nchange = log_changes(change, STATUS_CHANGES),
	};

	(void)args;
	in.forwarding = *in.forwarding_reason == '\0';
	reply_result(rq, status_build(&in));
}

static void
handle_fingerprint(struct daemon *d, struct ctl_request *rq,
    const json_t *args)
{
	(void)args;
	reply_result(rq, fingerprint_build(&d->wanted, rings(d)));
}

static json_t *
diff_make(struct daemon *d, const struct conf *c, const struct state *found,
    const struct state *wanted, struct arena *a)
{
	const struct xlb_flow_set *flows;
	struct announce next;
	struct plan plan;
	uint64_t *moved;
	uint32_t sets;
	json_t *diff;

	plan_build(wanted, found, d->rings, maps_tick(), a, &plan);
	moved = arena_calloc(a, wanted->nring, sizeof(*moved));
	flows = maps_flows(prog_maps(d->prog), &sets);
	flow_count(&plan, wanted, found, flows, sets, maps_tick(), moved);
	diff = diff_build(&plan, wanted, moved);
	diff_routes(d->config->conf, c, diff);
	lifecycle_foretell(d, c, wanted, a, &next);
	diff_addresses(&d->announce, &next, diff);
	diff_settings(d->config->conf, c, diff);
	return diff;
}

/* What a reload would refuse, or could not do, on this host. */
static void
check_host(const struct daemon *d, const struct conf *c, struct diag *dg)
{
	const struct addr *local;
	struct netlink_if nif;
	size_t i, n;

	local = netlink_local(d->nl, &n);
	health_local_check(c, local, n, dg);
	for (i = 0; i < c->ninterface; i++) {
		netlink_if(d->nl, c->interface[i].name, &nif);
		if (nif.ifindex == 0)
			diag_add(dg, DIAG_WARNING, c->interface[i].mark,
			    "interfaces[%zu].name: %s: no such interface", i,
			    c->interface[i].name);
	}
	diag_sort(dg);
}

/* What a reload of these sources would do to what is now. */
static void
handle_diff(struct daemon *d, struct ctl_request *rq, const json_t *args)
{
	struct arena *a = arena_new();
	struct state found, wanted;
	struct config *c;
	struct diag dg;
	json_t *reply;
	int status = 0;

	diag_init(&dg);
	c = config_from_sources(json_object_get(args, "sources"), d->config,
	    &dg);
	if (c != NULL && !config_begins_anew(d->config, c))
		config_check_change(d->config, c, &dg);
	if (c != NULL)
		check_host(d, c->conf, &dg);
	if (c == NULL || dg.errors > 0 ||
	    reconcile_try(d, c->conf, a, &found, &wanted, &dg) < 0)
		status = EXIT_CONFIG;
	reply = ctl_message(status);
	ctl_diag(reply, &dg);	/* not for the log: it is not our file */
	diag_fini(&dg);
	if (status == 0)
		json_object_set_new(reply, "result",
		    diff_make(d, c->conf, &found, &wanted, a));
	ctl_reply(rq, reply);
	config_free(c);
	arena_free(a);
}

/* The backend that the arguments name. NULL after answering. */
static const struct conf_backend *
named_backend(struct daemon *d, struct ctl_request *rq, const json_t *args,
    const struct conf_pool **pool)
{
	const char *p = json_string_value(json_object_get(args, "pool"));
	const char *b = json_string_value(json_object_get(args, "backend"));
	const struct conf_backend *backend;
	char text[256];

	*pool = p == NULL ? NULL : conf_pool_find(d->config->conf, p);
	if (*pool == NULL) {
		snprintf(text, sizeof(text), "no pool is named %.64s",
		    p != NULL ? p : "(none)");
		reply_error(rq, 1, text);
		return NULL;
	}
	backend = b == NULL ? NULL : conf_backend_find(*pool, b);
	if (backend == NULL) {
		snprintf(text, sizeof(text), "pool %.64s has no backend %.64s",
		    p, b != NULL ? b : "(none)");
		reply_error(rq, 1, text);
	}
	return backend;
}

static const char *
state_text(enum backend_state s)
{
	return s == BACKEND_ACTIVE ? "active" : s == BACKEND_DRAIN ? "drain" :
	    "down";
}

/* Puts the object into `state`: by an override, or by ending the one that is
 * there where the file says the same. */
static void
override_set(struct daemon *d, struct ctl_request *rq, struct override *want,
    const char *object)
{
	struct override *o = override_find(&d->overrides, want->pool,
	    &want->addr);
	enum backend_state was = o != NULL ? o->state : want->file_state;
	char why[CTL_ASKED_MAX];
	json_t *reply;
	int rc;

	if (was == want->state) {
		reply = ctl_message(0);
		ctl_warning(reply, "%s: is %s already", object,
		    state_text(was));
		ctl_reply(rq, reply);
		return;
	}
	if (want->state == want->file_state)
		override_del(&d->overrides, o);
	else
		override_put(&d->overrides, want);
	rc = overrides_save(d);
	ctl_asked(rq, want->state == BACKEND_DRAIN ? "drain" : "undrain", why);
	if (want->pool != NULL)		/* the node's is logged as it follows */
		log_change(object, state_text(was), state_text(want->state),
		    why);
	lifecycle_update(d, why);
	reconcile_now(d);
	reply = ctl_message(rc < 0 ? 1 : 0);
	if (rc < 0)
		ctl_error(reply, "%s: in force, but not kept for a restart: %s",
		    object, strerror(-rc));
	ctl_reply(rq, reply);
}

static void
handle_override(struct daemon *d, struct ctl_request *rq, const json_t *args,
    enum backend_state state)
{
	struct override o = { .state = state, .since = daemon_realtime() };
	const struct conf_backend *b;
	const struct conf_pool *p;
	char object[160];

	if (json_is_true(json_object_get(args, "node"))) {
		o.file_state = d->config->conf->node_state == NODE_DRAIN ?
		    BACKEND_DRAIN : BACKEND_ACTIVE;
		override_set(d, rq, &o, "node");
		return;
	}
	b = named_backend(d, rq, args, &p);
	if (b == NULL)
		return;
	snprintf(object, sizeof(object), "backend %s/%s", p->name, b->name);
	if (b->state == BACKEND_DOWN) {
		reply_error(rq, 1, "the file sets this backend's state to "
		    "down: change it there");
		return;
	}
	o.pool = p->name;
	o.addr = b->address;
	o.file_state = b->state;
	override_set(d, rq, &o, object);
}

static void
handle_drain(struct daemon *d, struct ctl_request *rq, const json_t *args)
{
	handle_override(d, rq, args, BACKEND_DRAIN);
}

static void
handle_undrain(struct daemon *d, struct ctl_request *rq, const json_t *args)
{
	handle_override(d, rq, args, BACKEND_ACTIVE);
}

static void
handle_stats(struct daemon *d, struct ctl_request *rq, const json_t *args)
{
	json_t *result = stats_build(d);

	(void)args;
	if (result != NULL)
		reply_result(rq, result);
	else
		reply_error(rq, 1, "the maps cannot be read");
}

static void
handle_neighbors(struct daemon *d, struct ctl_request *rq, const json_t *args)
{
	(void)args;
	reply_result(rq, neighbors_build(d));
}

static void
handle_rings(struct daemon *d, struct ctl_request *rq, const json_t *args)
{
	(void)args;
	reply_result(rq, rings_build(d, rings(d)));
}

static const struct handler {
	const char *command;
	bool changes;		/* for root and xlb-admin */
	void (*fn)(struct daemon *, struct ctl_request *, const json_t *);
} handler[] = {
	{ "diff", false, handle_diff },
	{ "drain", true, handle_drain },
	{ "events", false, listeners_add },
	{ "fingerprint", false, handle_fingerprint },
	{ "flows", false, handle_flows },
	{ "lookup", false, handle_lookup },
	{ "neighbors", false, handle_neighbors },
	{ "reload", true, handle_reload },
	{ "restart", true, handle_restart },
	{ "rings", false, handle_rings },
	{ "stats", false, handle_stats },
	{ "status", false, handle_status },
	{ "stop", true, handle_stop },
	{ "undrain", true, handle_undrain },
};

void
handlers_request(struct ctl_request *rq, const char *command,
    const json_t *args, bool may_change, void *arg)
{
	struct daemon *d = arg;
	const struct handler *h = NULL;
	size_t i;

	for (i = 0; i < sizeof(handler) / sizeof(handler[0]); i++)
		if (strcmp(handler[i].command, command) == 0)
			h = &handler[i];
	if (h == NULL)
		reply_error(rq, 2, "xlbd does not know this command");
	else if (h->changes && !may_change)
		reply_error(rq, 1, "permission denied: this needs root or "
		    "the group xlb-admin");
	else if (!d->started)
		reply_error(rq, 1, "xlbd is starting");
	else
		h->fn(d, rq, args);
}
