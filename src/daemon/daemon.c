/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * xlbd from start to end. Order at start: configuration, control socket (the
 * lock against a second instance), next hops, data path, health, then routes;
 * nothing found is changed before all of it is known.
 */
#include "daemon/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include <time.h>
#include <unistd.h>

#include "core/arena.h"
#include "daemon/history.h"
#include "io/file.h"
#include "io/log.h"
#include "io/maps.h"
#include "io/notify.h"
#include "io/tun.h"

/* A next hop that is asked for has its answer, or none, by then. */
#define HOPS_WAIT_MS 1200
#define HOPS_POLL_US 5000

mono_t
daemon_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (mono_t){ (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec };
}

int64_t
daemon_realtime(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static void
on_netlink(void *arg)
{
	reconcile_soon(arg);
}

static void
on_port_failed(uint32_t ifindex, int err, void *arg)
{
	struct daemon *d = arg;

	netlink_port_failed(d->nl, ifindex, err);
}

#define GROW_AGAIN_MS 60000

static void
on_grown(int rc, void *arg)
{
	struct daemon *d = arg;

	d->small = rc < 0 ? d->config : NULL;
	d->small_at = daemon_now();
	handlers_changed(d);
	/* as the file says now */
	reconcile_soon(d);
}

int
daemon_grow(struct daemon *d)
{
	struct prog_config pc;

	const struct conf *c = d->config->conf;
	const struct maps *m = prog_maps(d->prog);

	if (maps_flow_entries(m) >= c->flow_entries && (!conf_uses_nat(c) ||
	    maps_nat_rows(m) >= c->flow_entries))
		return 0;
	if (d->small == d->config &&
	    mono_ms_since(daemon_now(), d->small_at) < GROW_AGAIN_MS)
		return -ENOMEM;
	prog_config_init(&pc, &d->opt, d->config);
	return prog_grow_begin(d->prog, &pc, d->ev, on_grown, d);
}

/* BIRD's routes point at xlb0; with a service manager it outlives us. */
void
daemon_tun(struct daemon *d)
{
	int rc, stored = notify_stored(TUN_NAME);

	d->tun = tun_open(stored);
	if (d->tun < 0 || d->tun == stored)
		return;		/* logged; routes stay dormant in BIRD */
	notify_unstore(TUN_NAME);
	rc = notify_store(TUN_NAME, d->tun);
	if (rc < 0)
		log_warnx("%s: not stored with the service manager: %s",
		    TUN_NAME, strerror(-rc));
}

void
daemon_tun_drop(struct daemon *d)
{
	notify_unstore(TUN_NAME);
	if (d->tun >= 0)
		close(d->tun);
	d->tun = -1;
}

static bool
hops_known(const struct daemon *d)
{
	const struct hop_table *t = netlink_hops(d->nl);
	size_t i;

	for (i = 0; i < t->n; i++)
		if (t->row[i].status == HOP_RESOLVING)
			return false;
	return true;
}

/* Waits until each next hop is known or known to be missing: an adopted ring
 * must not lose backends because we have only just asked. */
static int
on_start(sd_event_source *s, uint64_t usec, void *arg)
{
	struct daemon *d = arg;
	char counts[CONF_COUNTS_MAX], why[CONF_COUNTS_MAX + 32];
	int rc;

	(void)usec;
	if (!hops_known(d) &&
	    mono_ms_since(daemon_now(), d->start) < HOPS_WAIT_MS) {
		sd_event_source_set_time_relative(s, HOPS_POLL_US);
		sd_event_source_set_enabled(s, SD_EVENT_ONESHOT);
		return 0;
	}
	sd_event_source_unref(s);
	d->started = true;
	/* a node that was drained before stays so, without 65535:0 again */
	lifecycle_update(d, "it was before xlbd started, or the file says so");
	reconcile_now(d);
	tidy_open(d);
	conf_counts_print(d->config->conf, counts);
	snprintf(why, sizeof(why), "%s%s", counts, prog_adopted(d->prog) ?
	    ", adopted what was there" : "");
	log_change("daemon", "starting", "serving", why);
	notify_ready("serving");
	/* its first word starts the manager's clock, ready or not: it would run
	 * while the verifier works */
	rc = sd_event_set_watchdog(d->ev, true);
	if (rc < 0)
		log_warnx("watchdog: %s", strerror(-rc));
	if (d->stop_asked)
		lifecycle_stop(d, false, NULL);
	return 0;
}

static int
on_hup(sd_event_source *s, const struct signalfd_siginfo *si, void *arg)
{
	(void)s;
	(void)si;
	if (config_reload(arg, NULL) == RELOAD_ANEW)
		lifecycle_stop(arg, true, NULL);
	return 0;
}

/*
 * SIGTERM: a stop takes everything away; for a restart, and where nobody
 * says, we end at once and leave everything as a crash does.
 */
static int
on_term(sd_event_source *s, const struct signalfd_siginfo *si, void *arg)
{
	struct daemon *d = arg;

	(void)s;
	(void)si;
	if (notify_job() == JOB_STOP) {
		/* the routes that we found go with the others */
		d->stop_asked = !d->started;
		if (d->started)
			lifecycle_stop(d, false, NULL);
		return 0;
	}
	log_info("xlbd ends for a restart, or was told to by hand: the packets "
	    "go on, addresses stay announced while xlb0 is there");
	sd_event_exit(d->ev, 0);
	return 0;
}

static int
start_signals(struct daemon *d)
{
	sigset_t set;
	int rc;

	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	rc = sd_event_add_signal(d->ev, NULL, SIGHUP, on_hup, d);
	if (rc >= 0)
		rc = sd_event_add_signal(d->ev, NULL, SIGTERM, on_term, d);
	if (rc >= 0)
		rc = sd_event_add_signal(d->ev, NULL, SIGINT, on_term, d);
	return rc;
}

static int
start_io(struct daemon *d)
{
	int rc;

	rc = file_mkdir(d->opt.run_dir, 0755);
	if (rc < 0) {
		log_warnx("%s: %s", d->opt.run_dir, strerror(-rc));
		return rc;
	}
	rc = file_mkdir(d->opt.state_dir, 0700);
	if (rc < 0) {
		log_warnx("%s: %s", d->opt.state_dir, strerror(-rc));
		return rc;
	}
	rc = ctl_open(d->ev, d->opt.run_dir, handlers_request, d, &d->ctl);
	if (rc < 0) {
		log_warnx("%s: %s", d->opt.run_dir, rc == -EADDRINUSE ?
		    "another xlbd runs on this directory" : strerror(-rc));
		return rc;
	}
	count_open(&d->count, d->opt.run_dir);
	rc = netlink_open(d->ev, on_netlink, d, &d->nl);
	if (rc < 0)
		log_warnx("netlink: %s", strerror(-rc));
	return rc;
}

/* A reload refuses it; a start does what it can, and these wait. */
static void
start_local(struct daemon *d)
{
	const struct addr *local;
	struct diag dg;
	size_t n;

	diag_init(&dg);
	local = netlink_local(d->nl, &n);
	health_local_check(d->config->conf, local, n, &dg);
	config_messages(&dg, NULL);
	diag_fini(&dg);
}

static int
daemon_start(struct daemon *d, struct config **c)
{
	int rc;

	d->started_at = daemon_realtime();
	rc = sd_event_default(&d->ev);
	if (rc >= 0)
		rc = start_signals(d);
	if (rc >= 0)
		rc = reconcile_init(d);
	if (rc < 0) {
		log_warnx("event loop: %s", strerror(-rc));
		return 1;
	}
	if (start_io(d) < 0)
		return 1;
	*c = start_config(d);
	if (*c == NULL)
		return EXIT_CONFIG;
	if (start_datapath(d, c) < 0)
		return 1;
	if (listeners_open(d) < 0)
		return 1;
	ports_open(d->ev, prog_ports(d->prog), on_port_failed, d, &d->ports);
	d->tunnel = tunnel_new(prog_tables(d->prog));
	rc = prober_start(d->prober, d->ev, health_result, d);
	if (rc < 0) {
		log_warnx("prober: %s", strerror(-rc));
		return 1;
	}
	rc = history_open(d);
	if (rc >= 0)
		rc = documents_open(d);
	if (rc < 0) {
		log_warnx("http: %s", strerror(-rc));
		return 1;
	}
	overrides_load(d);
	health_adopt(d);
	path_adopt(d);
	d->start = daemon_now();
	config_apply(d, *c);
	*c = NULL;
	start_local(d);
	rc = sd_event_add_time_relative(d->ev, NULL, CLOCK_MONOTONIC, 0, 1,
	    on_start, d);
	return rc < 0 ? 1 : 0;
}

/* The way that the manager's descriptor store hands xlb0 over: as descriptor 3
 * with its name in the environment (sd_listen_fds(3)). */
static void
pass_tun(int fd)
{
	char pid[16];

	if (fd < 0 || dup2(fd, SD_LISTEN_FDS_START) < 0)
		return;
	if (fd == SD_LISTEN_FDS_START)
		fcntl(fd, F_SETFD, 0);
	snprintf(pid, sizeof(pid), "%d", getpid());
	setenv("LISTEN_PID", pid, 1);
	setenv("LISTEN_FDS", "1", 1);
	setenv("LISTEN_FDNAMES", TUN_NAME, 1);
}

/* Everything that the kernel keeps stays as it is. */
static void
daemon_close(struct daemon *d)
{
	handlers_close(d);
	restart_close(d);
	documents_close(d);
	history_close(d);
	http_close(d->http);
	listeners_close(d);
	flows_close(d);
	ctl_close(d->ctl);
	prober_close(d->prober);
	count_close(&d->count);
	bird_close(d->bird);
	bird_close(d->bird_before);
	ports_close(d->ports);
	tunnel_free(d->tunnel);
	tidy_close(d);
	prog_close(d->prog);
	netlink_close(d->nl);
	overrides_free(&d->overrides);
	free(d->health.row);
	free(d->health_target);
	free(d->paths.row);
	free(d->path_asked);
	free(d->link);
	free(d->verdict.why);
	arena_free(d->arena);
	ring_cache_free(d->rings);
	config_free(d->config);
	reconcile_close(d);
	sd_event_source_disable_unref(d->lifecycle.timer);
	sd_event_unref(d->ev);
}

int
daemon_run(const struct options *opt, const struct origin *origin,
    struct prober *prober, struct http *http, bool *again)
{
	struct daemon d = { .opt = *opt, .origin = origin, .prober = prober,
	    .http = http, .tun = -1, .restart.said = -1 };
	struct config *c = NULL;
	int rc;

	rc = daemon_start(&d, &c);
	if (rc == 0) {
		rc = sd_event_loop(d.ev);
		if (rc < 0) {
			log_warnx("event loop: %s", strerror(-rc));
			rc = 1;
		}
	}
	config_free(c);
	*again = d.again;
	daemon_close(&d);
	if (d.again) {
		pass_tun(d.tun);
		notify_again();
	} else if (d.tun >= 0) {
		close(d.tun);
	}
	return rc;
}
