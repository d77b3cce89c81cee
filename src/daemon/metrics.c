/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The samples of each metric, from what the daemon and the maps hold now. */
#include <dirent.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/nat_sweep.h"
#include "core/reason.h"
#include "daemon/document.h"
#include "daemon/metrics.h"
#include "daemon/status.h"
#include "io/conf_file.h"
#include "io/events.h"
#include "io/file.h"
#include "io/maps.h"

#define NS 1000000000LL

/* A sample without labels; times as seconds since 1970. */
static void
put(struct document *doc, enum metric m, uint64_t value)
{
	metric_put(doc->out, m, NULL, value);
}

static void
put_time(struct document *doc, enum metric m, const char *const *label,
    int64_t ns)
{
	metric_put_real(doc->out, m, label, (double)(ns / 1000000) / 1000);
}

static void
put_named(struct document *doc, enum metric m, const char *name,
    uint64_t value)
{
	metric_put(doc->out, m, &name, value);
}

static struct maps *
maps_of(const struct document *doc)
{
	return prog_maps(doc->d->prog);
}

/* ---- the node and its configuration ---- */

void
metric_node(struct document *doc, enum metric m, size_t i)
{
	const struct daemon *d = doc->d;
	char name[NODE_NAME_MAX];

	(void)i;
	switch (m) {
	case METRIC_BUILD_INFO:
		put_named(doc, m, PACKAGE_VERSION, 1);
		break;
	case METRIC_NODE_INFO:
		put_named(doc, m, conf_node_name(d->config->conf, name), 1);
		break;
	case METRIC_NODE_DRAINED:
		put(doc, m, d->lifecycle.life != LIFE_SERVE);
		break;
	case METRIC_FORWARDING:
		put(doc, m, *daemon_not_forwarding(d) == '\0');
		break;
	case METRIC_CONFIG_RELOAD_OK:
		put(doc, m, d->verdict.ok);
		break;
	case METRIC_CONFIG_RELOAD_TIME:
		put_time(doc, m, NULL, d->verdict.at);
		break;
	case METRIC_CONFIG_LOADED_TIME:
		put_time(doc, m, NULL, d->config->loaded);
		break;
	case METRIC_CONFIG_KEPT:
		put(doc, m, d->verdict.kept);
		break;
	case METRIC_FAILED:
		put(doc, m, d->failed);
		break;
	case METRIC_CHANGED:
		put_time(doc, m, NULL, d->changed);
		break;
	default:
		break;
	}
}

void
metric_reloads(struct document *doc, enum metric m, size_t i)
{
	put_named(doc, m, count_reload_text((enum count_reload)i),
	    doc->d->count.reload[i]);
}

void
metric_drift(struct document *doc, enum metric m, size_t i)
{
	count_drift(&doc->d->count, &doc->d->drift);
	put_named(doc, m, drift_text((enum drift_kind)i),
	    doc->d->count.drift[i]);
}

void
metric_interface(struct document *doc, enum metric m, size_t i)
{
	const struct prog_link *l = &doc->d->link[i];
	const char *label[] = { doc->d->config->conf->interface[i].name,
	    l->mode };

	if (m == METRIC_INTERFACE_ATTACHED)
		put_named(doc, m, label[0], l->attached);
	else if (l->mode != NULL && strcmp(l->mode, "-") != 0)
		metric_put(doc->out, m, label, 1);
}

/* ---- packets ---- */

void
metric_packets(struct document *doc, enum metric m, size_t i)
{
	struct xlb_reasons r;
	size_t k;

	(void)i;
	if (maps_reasons(maps_of(doc), &r) < 0)
		return;
	for (k = 0; k < XLB_REASON_COUNT; k++)
		put_named(doc, m, reason_name((enum xlb_reason)k),
		    r.packets[k]);
}

void
metric_service(struct document *doc, enum metric m, size_t i)
{
	const struct state_service *row = &doc->d->wanted.service[i];
	const struct conf_service *s = row->number < XLB_SERVICES ?
	    doc->names->service[row->number] : NULL;
	char addr[ADDR_STR_MAX], port[8] = "*";
	struct xlb_service_stats n;
	const char *label[4];

	if (s == NULL || maps_service_stats(maps_of(doc), row->number, &n) < 0)
		return;
	if (row->port != 0)
		snprintf(port, sizeof(port), "%u", row->port);
	label[0] = s->name;
	label[1] = addr_print(&row->vip, addr);
	label[2] = row->proto == IPPROTO_TCP ? "tcp" : "udp";
	label[3] = port;
	metric_put(doc->out, m, label, m == METRIC_SERVICE_PACKETS ?
	    n.packets : m == METRIC_SERVICE_BYTES ? n.bytes : n.drops);
}

void
metric_checksum(struct document *doc, enum metric m, size_t i)
{
	uint64_t n;

	(void)i;
	if (maps_csum_full(maps_of(doc), &n) == 0)
		put(doc, m, n);
}

void
metric_backend_packets(struct document *doc, enum metric m, size_t i)
{
	const struct state_backend *b = &doc->d->wanted.backend[i];
	char addr[ADDR_STR_MAX];
	struct xlb_backend_stats n;

	if (maps_backend_stats(maps_of(doc), b->number, &n) == 0)
		put_named(doc, m, addr_print(&b->addr, addr),
		    m == METRIC_BACKEND_PACKETS ? n.packets : n.bytes);
}

void
metric_backend_path(struct document *doc, enum metric m, size_t i)
{
	const struct state_backend *b = &doc->d->wanted.backend[i];
	const struct path_mtu *p = path_find(&doc->d->paths, &b->addr);
	char addr[ADDR_STR_MAX];
	uint16_t mtu = p == NULL ? 0 : m == METRIC_BACKEND_PATH_MTU ?
	    p->carries : p->limit;

	if (mtu != 0)
		put_named(doc, m, addr_print(&b->addr, addr), mtu);
}

/* ---- pools and their backends ---- */

void
metric_backend(struct document *doc, enum metric m, size_t i)
{
	const struct state_pool *p = doc->member[i].pool;
	const struct state_member *s = &p->member[doc->member[i].i];
	const struct conf_backend *b = &p->conf->backend[doc->member[i].i];
	char addr[ADDR_STR_MAX];
	const char *label[] = { p->conf->name, b->name,
	    addr_print(&b->address, addr) };

	switch (m) {
	case METRIC_BACKEND_UP:
		metric_put(doc->out, m, label, member_is_up(s));
		break;
	case METRIC_BACKEND_ELIGIBLE:
		metric_put(doc->out, m, label, s->why == MEMBER_ELIGIBLE);
		break;
	case METRIC_BACKEND_DRAINED:
		metric_put(doc->out, m, label, s->state == BACKEND_DRAIN);
		break;
	case METRIC_BACKEND_WEIGHT:
		metric_put(doc->out, m, label, b->weight);
		break;
	default:
		if (s->health_row != NULL && s->health_row->since > 0)
			put_time(doc, m, label, s->health_row->since);
	}
}

void
metric_pool(struct document *doc, enum metric m, size_t i)
{
	const struct daemon *d = doc->d;
	const struct state_pool *p = &d->wanted.pool[i];
	const char *name = p->conf->name;

	switch (m) {
	case METRIC_POOL_BACKENDS:
		put_named(doc, m, name, p->conf->nbackend);
		break;
	case METRIC_POOL_ELIGIBLE:
		put_named(doc, m, name, p->eligible);
		break;
	case METRIC_POOL_NEEDED:
		put_named(doc, m, name, p->needed);
		break;
	case METRIC_POOL_READY:
		put_named(doc, m, name, p->ready);
		break;
	case METRIC_POOL_FAILED_OPEN:
		put_named(doc, m, name, p->failed_open);
		break;
	default:
		put_named(doc, m, name,
		    *d->count.moved[p->conf - d->config->conf->pool]);
	}
}

/* Of rings, those that a service uses. */
void
metric_ring(struct document *doc, enum metric m, size_t i)
{
	const struct daemon *d = doc->d;
	const struct state_ring *ring = &d->wanted.ring[i];
	const char *label[2] = { ring->pool, NULL };
	struct maps_ring_count n;
	char hex[17];

	if (m == METRIC_POOL_FINGERPRINT) {
		snprintf(hex, sizeof(hex), "%016llx", (unsigned long long)
		    state_ring_fingerprint(d->rings, &d->wanted, ring));
		label[1] = hex;
		metric_put(doc->out, m, label, 1);
	} else if (m == METRIC_POOL_SLOTS) {
		metric_put(doc->out, m, label, d->wanted.ring_size);
	} else if (maps_ring_count(maps_of(doc), ring->number, &n) == 0) {
		metric_put(doc->out, m, label,
		    m == METRIC_POOL_SLOTS_LOOKUP ? n.lookup : n.prev);
	}
}

/* ---- flows ---- */

void
metric_flows(struct document *doc, enum metric m, size_t i)
{
	const struct daemon *d = doc->d;
	struct xlb_flow_stats n;

	(void)i;
	if (maps_flow_stats(maps_of(doc), &n) < 0)
		return;
	switch (m) {
	case METRIC_FLOW_ENTRIES:
		put(doc, m, maps_flow_entries(maps_of(doc)));
		break;
	case METRIC_FLOW_LIVE:
		put(doc, m, d->tidy.flows);
		break;
	case METRIC_FLOW_INSERTS:
		put(doc, m, n.insert);
		break;
	case METRIC_FLOW_EVICTIONS:
		put_named(doc, m, "confirmed", n.evict_confirmed);
		put_named(doc, m, "unconfirmed", n.evict_unconfirmed);
		break;
	case METRIC_FLOW_SKIPPED:
		put_named(doc, m, "budget", n.skip_budget);
		put_named(doc, m, "full", n.full);
		put_named(doc, m, "raced", n.cas_lost);
		break;
	case METRIC_FLOW_SAMPLED:
		put(doc, m, n.sampled);
		break;
	case METRIC_FLOW_UNKNOWN:
		put(doc, m, n.unknown);
		break;
	case METRIC_FLOW_SURGE:
		put(doc, m, d->tidy.surge.on);
		break;
	default:
		put(doc, m, *d->count.surge);
	}
}

void
metric_nat(struct document *doc, enum metric m, size_t i)
{
	(void)i;
	put(doc, m, m == METRIC_NAT_ROWS ? maps_nat_rows(maps_of(doc)) :
	    nat_sweep_result(maps_nat(maps_of(doc)))->used);
}

void
metric_nat_source(struct document *doc, enum metric m, size_t i)
{
	const struct state_source *s = &doc->d->wanted.source[i];
	char addr[ADDR_STR_MAX];

	put_named(doc, m, addr_print(&s->addr, addr),
	    nat_sweep_result(maps_nat(maps_of(doc)))->source[s->number %
	    XLB_NAT_SOURCES]);
}

/* ---- announcements ---- */

void
metric_address(struct document *doc, enum metric m, size_t i)
{
	const struct announce_row *row = &doc->d->announce.row[i];
	const struct bird *bird = doc->d->bird;
	struct prefix p = announce_prefix(row);
	char addr[ADDR_STR_MAX];
	const char *label[] = { addr_print(&row->addr, addr),
	    announce_why_text(row->why) };

	switch (m) {
	case METRIC_ADDRESS_WANTED:
		metric_put(doc->out, m, label, row->wanted);
		break;
	case METRIC_ADDRESS_IN_BIRD:
		metric_put(doc->out, m, label, bird_has(bird, &p));
		break;
	case METRIC_ADDRESS_EXPORTED:
		metric_put(doc->out, m, label, bird_exported(bird, &p));
		break;
	case METRIC_ADDRESS_WHY:
		if (!row->wanted)
			metric_put(doc->out, m, label, 1);
		break;
	default:
		put_time(doc, m, label, row->since);
	}
}

void
metric_bird_status(struct document *doc, enum metric m, size_t i)
{
	put_named(doc, m, bird_status_text((enum bird_status)i),
	    bird_status(doc->d->bird) == (enum bird_status)i);
}

void
metric_bird(struct document *doc, enum metric m, size_t i)
{
	const struct bird_peer *peer;
	size_t n;

	if (m == METRIC_BIRD_STUCK) {
		put(doc, m, bird_stuck(doc->d->bird));
		return;
	}
	peer = bird_peers(doc->d->bird, &n);
	if (i >= n)
		return;
	put_named(doc, m, peer[i].name, m == METRIC_BIRD_UP ?
	    strcmp(peer[i].state, "Established") == 0 :
	    peer[i].exported4 + peer[i].exported6);
}

/* ---- checks, events, the process ---- */

void
metric_check(struct document *doc, enum metric m, size_t i)
{
	const struct daemon *d = doc->d;
	const struct count_check *row = d->count.check[i];
	const char *label[2] = { d->config->conf->check[i].name, NULL };
	size_t k;

	if (m == METRIC_CHECK_DURATION) {
		metric_put_histogram(doc->out, m, label, &row->took);
		return;
	}
	for (k = 0; k < COUNT_RESULTS; k++) {
		label[1] = count_result_text((enum count_result)k);
		metric_put(doc->out, m, label, row->result[k]);
	}
}

void
metric_events(struct document *doc, enum metric m, size_t i)
{
	struct event_loss all;

	(void)i;
	if (listeners_loss(doc->d, &all) < 0)
		return;
	put_named(doc, m, "limited", all.limited);
	put_named(doc, m, "unread", all.unread);
}

static uint64_t
fds_open(void)
{
	DIR *dir = opendir("/proc/self/fd");
	uint64_t n = 0;
	struct dirent *e;

	if (dir == NULL)
		return 0;
	while ((e = readdir(dir)) != NULL)
		n += *e->d_name != '.';
	closedir(dir);
	return n - 1;		/* its own */
}

/* proc(5): pages in all, resident. */
static uint64_t
memory_bytes(bool resident)
{
	unsigned long long all = 0, here = 0;
	char *text = NULL;
	size_t len;

	if (file_read("/proc/self/statm", 4096, &text, &len) == 0)
		sscanf(text, "%llu %llu", &all, &here);
	free(text);
	return (resident ? here : all) * (uint64_t)sysconf(_SC_PAGESIZE);
}

void
metric_process(struct document *doc, enum metric m, size_t i)
{
	struct daemon *d = doc->d;
	struct rlimit rl = { 0, 0 };

	(void)i;
	switch (m) {
	case METRIC_RENDER:
		metric_put_real(doc->out, m, NULL, (double)documents_took(d,
		    HTTP_METRICS) / NS);
		break;
	case METRIC_PROCESS_CPU:
		metric_put_real(doc->out, m, NULL,
		    (double)count_cpu(&d->count) / NS);
		break;
	case METRIC_PROCESS_FDS:
		put(doc, m, fds_open());
		break;
	case METRIC_PROCESS_FDS_MAX:
		getrlimit(RLIMIT_NOFILE, &rl);
		put(doc, m, rl.rlim_cur);
		break;
	case METRIC_PROCESS_RESIDENT:
		put(doc, m, memory_bytes(true));
		break;
	case METRIC_PROCESS_VIRTUAL:
		put(doc, m, memory_bytes(false));
		break;
	default:
		put_time(doc, m, NULL, d->started_at);
	}
}
