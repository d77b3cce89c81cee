/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which function writes which metric, and for what rows. */
#include "daemon/document.h"
#include "daemon/metrics.h"

enum rows {
	ROWS_ONE, ROWS_INTERFACE, ROWS_RELOAD, ROWS_SERVICE, ROWS_MEMBER,
	ROWS_BACKEND, ROWS_POOL, ROWS_RING, ROWS_ADDRESS, ROWS_BIRD_STATUS,
	ROWS_SESSION, ROWS_OBJECT, ROWS_CHECK, ROWS_SOURCE
};

static const struct {
	void (*write)(struct document *doc, enum metric m, size_t i);
	enum rows rows;
} table[METRIC_COUNT] = {
	[METRIC_BUILD_INFO] = { metric_node, ROWS_ONE },
	[METRIC_NODE_INFO] = { metric_node, ROWS_ONE },
	[METRIC_NODE_DRAINED] = { metric_node, ROWS_ONE },
	[METRIC_FORWARDING] = { metric_node, ROWS_ONE },
	[METRIC_INTERFACE_ATTACHED] = { metric_interface, ROWS_INTERFACE },
	[METRIC_INTERFACE_MODE_INFO] = { metric_interface, ROWS_INTERFACE },
	[METRIC_CONFIG_RELOAD_OK] = { metric_node, ROWS_ONE },
	[METRIC_CONFIG_RELOAD_TIME] = { metric_node, ROWS_ONE },
	[METRIC_CONFIG_LOADED_TIME] = { metric_node, ROWS_ONE },
	[METRIC_CONFIG_KEPT] = { metric_node, ROWS_ONE },
	[METRIC_CONFIG_RELOADS] = { metric_reloads, ROWS_RELOAD },
	[METRIC_PACKETS] = { metric_packets, ROWS_ONE },
	[METRIC_SERVICE_PACKETS] = { metric_service, ROWS_SERVICE },
	[METRIC_SERVICE_BYTES] = { metric_service, ROWS_SERVICE },
	[METRIC_SERVICE_DROPS] = { metric_service, ROWS_SERVICE },
	[METRIC_CHECKSUM_FULL] = { metric_checksum, ROWS_ONE },
	[METRIC_BACKEND_UP] = { metric_backend, ROWS_MEMBER },
	[METRIC_BACKEND_ELIGIBLE] = { metric_backend, ROWS_MEMBER },
	[METRIC_BACKEND_DRAINED] = { metric_backend, ROWS_MEMBER },
	[METRIC_BACKEND_WEIGHT] = { metric_backend, ROWS_MEMBER },
	[METRIC_BACKEND_CHANGED] = { metric_backend, ROWS_MEMBER },
	[METRIC_BACKEND_PACKETS] = { metric_backend_packets, ROWS_BACKEND },
	[METRIC_BACKEND_BYTES] = { metric_backend_packets, ROWS_BACKEND },
	[METRIC_BACKEND_PATH_MTU] = { metric_backend_path, ROWS_BACKEND },
	[METRIC_BACKEND_LINK_MTU] = { metric_backend_path, ROWS_BACKEND },
	[METRIC_POOL_BACKENDS] = { metric_pool, ROWS_POOL },
	[METRIC_POOL_ELIGIBLE] = { metric_pool, ROWS_POOL },
	[METRIC_POOL_NEEDED] = { metric_pool, ROWS_POOL },
	[METRIC_POOL_READY] = { metric_pool, ROWS_POOL },
	[METRIC_POOL_FAILED_OPEN] = { metric_pool, ROWS_POOL },
	[METRIC_POOL_FINGERPRINT] = { metric_ring, ROWS_RING },
	[METRIC_POOL_SLOTS] = { metric_ring, ROWS_RING },
	[METRIC_POOL_SLOTS_LOOKUP] = { metric_ring, ROWS_RING },
	[METRIC_POOL_SLOTS_PREV] = { metric_ring, ROWS_RING },
	[METRIC_POOL_MOVED] = { metric_pool, ROWS_POOL },
	[METRIC_FLOW_ENTRIES] = { metric_flows, ROWS_ONE },
	[METRIC_FLOW_LIVE] = { metric_flows, ROWS_ONE },
	[METRIC_FLOW_INSERTS] = { metric_flows, ROWS_ONE },
	[METRIC_FLOW_EVICTIONS] = { metric_flows, ROWS_ONE },
	[METRIC_FLOW_SKIPPED] = { metric_flows, ROWS_ONE },
	[METRIC_FLOW_SAMPLED] = { metric_flows, ROWS_ONE },
	[METRIC_FLOW_UNKNOWN] = { metric_flows, ROWS_ONE },
	[METRIC_FLOW_SURGE] = { metric_flows, ROWS_ONE },
	[METRIC_FLOW_SURGE_SECONDS] = { metric_flows, ROWS_ONE },
	[METRIC_NAT_ROWS] = { metric_nat, ROWS_ONE },
	[METRIC_NAT_USED] = { metric_nat, ROWS_ONE },
	[METRIC_NAT_FLOWS] = { metric_nat_source, ROWS_SOURCE },
	[METRIC_ADDRESS_WANTED] = { metric_address, ROWS_ADDRESS },
	[METRIC_ADDRESS_IN_BIRD] = { metric_address, ROWS_ADDRESS },
	[METRIC_ADDRESS_EXPORTED] = { metric_address, ROWS_ADDRESS },
	[METRIC_ADDRESS_WHY] = { metric_address, ROWS_ADDRESS },
	[METRIC_ADDRESS_CHANGED] = { metric_address, ROWS_ADDRESS },
	[METRIC_BIRD_STATUS] = { metric_bird_status, ROWS_BIRD_STATUS },
	[METRIC_BIRD_STUCK] = { metric_bird, ROWS_ONE },
	[METRIC_BIRD_UP] = { metric_bird, ROWS_SESSION },
	[METRIC_BIRD_EXPORTED] = { metric_bird, ROWS_SESSION },
	[METRIC_DRIFT] = { metric_drift, ROWS_OBJECT },
	[METRIC_FAILED] = { metric_node, ROWS_ONE },
	[METRIC_CHANGED] = { metric_node, ROWS_ONE },
	[METRIC_CHECK_RESULTS] = { metric_check, ROWS_CHECK },
	[METRIC_CHECK_DURATION] = { metric_check, ROWS_CHECK },
	[METRIC_EVENTS_LOST] = { metric_events, ROWS_ONE },
	[METRIC_RENDER] = { metric_process, ROWS_ONE },
	[METRIC_PROCESS_CPU] = { metric_process, ROWS_ONE },
	[METRIC_PROCESS_FDS] = { metric_process, ROWS_ONE },
	[METRIC_PROCESS_FDS_MAX] = { metric_process, ROWS_ONE },
	[METRIC_PROCESS_RESIDENT] = { metric_process, ROWS_ONE },
	[METRIC_PROCESS_VIRTUAL] = { metric_process, ROWS_ONE },
	[METRIC_PROCESS_START] = { metric_process, ROWS_ONE },
};

static size_t
metrics_rows(const struct document *doc, size_t part)
{
	const struct daemon *d = doc->d;
	const struct conf *c = d->config->conf;
	size_t n;

	switch (table[part].rows) {
	case ROWS_ONE:
		return 1;
	case ROWS_INTERFACE:
		return c->ninterface;
	case ROWS_RELOAD:
		return COUNT_RELOADS;
	case ROWS_SERVICE:
		return d->wanted.nservice;
	case ROWS_MEMBER:
		return doc->nmember;
	case ROWS_BACKEND:
		return d->wanted.nbackend;
	case ROWS_POOL:
		return d->wanted.npool;
	case ROWS_RING:
		return d->wanted.nring;
	case ROWS_ADDRESS:
		return d->announce.n;
	case ROWS_BIRD_STATUS:
		return BIRD_STATUSES;
	case ROWS_SESSION:
		bird_peers(d->bird, &n);
		return n;
	case ROWS_OBJECT:
		return DRIFT_KINDS;
	case ROWS_CHECK:
		return c->ncheck;
	case ROWS_SOURCE:
		return d->wanted.nsource;
	}
	return 0;
}

static void
metrics_begin(struct document *doc, size_t part)
{
	metric_head(doc->out, (enum metric)part);
}

static void
metrics_row(struct document *doc, size_t part, size_t i)
{
	table[part].write(doc, (enum metric)part, i);
}

const struct document_kind document_metrics = {
	.parts = METRIC_COUNT,
	.rows = metrics_rows,
	.begin = metrics_begin,
	.row = metrics_row,
};
