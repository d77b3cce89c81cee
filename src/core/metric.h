/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Every metric: name, type, labels and meaning, in the order in which they are
 * printed; and the text format of Prometheus (version 0.0.4). xlbd(8) has the
 * same table, and a test compares them.
 */
#ifndef XLB_METRIC_H
#define XLB_METRIC_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define SERVICE_LABELS	"service", "address", "protocol", "port"
#define BACKEND_LABELS	"pool", "backend", "address"

/* Name (after `xlb_`, process metrics as they are), type, meaning, labels. */
#define METRICS(X) \
	X(BUILD_INFO, "xlb_build_info", GAUGE, \
	    "1; the version of xlbd", "version") \
	X(NODE_INFO, "xlb_node_info", GAUGE, \
	    "1; the name of this node", "node") \
	X(NODE_DRAINED, "xlb_node_drained", GAUGE, \
	    "1 while the node drains or is stopping: its addresses are " \
	    "withdrawn") \
	X(FORWARDING, "xlb_forwarding", GAUGE, \
	    "1 while packets are forwarded as configured: each interface that " \
	    "is up is attached, and no operation on the maps failed") \
	X(INTERFACE_ATTACHED, "xlb_interface_attached", GAUGE, \
	    "1 if the program is attached in the mode that is wanted", \
	    "interface") \
	X(INTERFACE_MODE_INFO, "xlb_interface_mode_info", GAUGE, \
	    "1; the mode in which the program is attached: native or generic", \
	    "interface", "mode") \
	X(CONFIG_RELOAD_OK, "xlb_config_last_reload_successful", GAUGE, \
	    "1 if the file was accepted when it was last read") \
	X(CONFIG_RELOAD_TIME, "xlb_config_last_reload_timestamp_seconds", GAUGE, \
	    "when the file was last read") \
	X(CONFIG_LOADED_TIME, "xlb_config_loaded_timestamp_seconds", GAUGE, \
	    "when the configuration in force was read") \
	X(CONFIG_KEPT, "xlb_config_kept", GAUGE, \
	    "1 while the configuration accepted last is in force because the " \
	    "file was refused at start") \
	X(CONFIG_RELOADS, "xlb_config_reloads_total", COUNTER, \
	    "reloads, by result: success, partial (something was refused, and " \
	    "is tried again) or failure", "result") \
	X(PACKETS, "xlb_packets_total", COUNTER, \
	    "packets by how they ended; the reasons are explained in xlb(8)", \
	    "reason") \
	X(SERVICE_PACKETS, "xlb_service_packets_total", COUNTER, \
	    "packets sent to backends; port * is every port", SERVICE_LABELS) \
	X(SERVICE_BYTES, "xlb_service_bytes_total", COUNTER, \
	    "bytes of them, from the IP header on, as received", \
	    SERVICE_LABELS) \
	X(SERVICE_DROPS, "xlb_service_drops_total", COUNTER, \
	    "packets of the service that were dropped", SERVICE_LABELS) \
	X(CHECKSUM_FULL, "xlb_checksum_full_total", COUNTER, \
	    "outer checksums that took all of the payload") \
	X(BACKEND_UP, "xlb_backend_up", GAUGE, \
	    "1 if it is not down: its check passes or asks for a drain, there " \
	    "is a way to it, and its state is not down", BACKEND_LABELS) \
	X(BACKEND_ELIGIBLE, "xlb_backend_eligible", GAUGE, \
	    "1 if it takes new flows", BACKEND_LABELS) \
	X(BACKEND_DRAINED, "xlb_backend_drained", GAUGE, \
	    "1 if its state is drain, by the file or by xlb drain", \
	    BACKEND_LABELS) \
	X(BACKEND_WEIGHT, "xlb_backend_weight", GAUGE, \
	    "its weight in the pool", BACKEND_LABELS) \
	X(BACKEND_CHANGED, "xlb_backend_health_changed_timestamp_seconds", GAUGE, \
	    "when its health last changed; missing without a check", \
	    BACKEND_LABELS) \
	X(BACKEND_PACKETS, "xlb_backend_packets_total", COUNTER, \
	    "packets sent to this address, for whatever pool", "address") \
	X(BACKEND_BYTES, "xlb_backend_bytes_total", COUNTER, \
	    "bytes of them, from the client's IP header on", "address") \
	X(BACKEND_PATH_MTU, "xlb_backend_path_mtu_bytes", GAUGE, \
	    "largest packet, with the tunnel's header, that the path to this " \
	    "address is known to carry; missing: not known", "address") \
	X(BACKEND_LINK_MTU, "xlb_backend_link_mtu_bytes", GAUGE, \
	    "what its link takes of that, or tunnel.mtu if that is less", \
	    "address") \
	X(POOL_BACKENDS, "xlb_pool_backends", GAUGE, \
	    "backends of the pool", "pool") \
	X(POOL_ELIGIBLE, "xlb_pool_eligible_backends", GAUGE, \
	    "those that take new flows", "pool") \
	X(POOL_NEEDED, "xlb_pool_needed_backends", GAUGE, \
	    "min_healthy as a count", "pool") \
	X(POOL_READY, "xlb_pool_ready", GAUGE, \
	    "1 if enough of them are eligible", "pool") \
	X(POOL_FAILED_OPEN, "xlb_pool_failed_open", GAUGE, \
	    "1 while all are used because none is healthy (fail_open)", "pool") \
	X(POOL_FINGERPRINT, "xlb_pool_fingerprint_info", GAUGE, \
	    "1; the fingerprint of the ring, the same on all nodes that send " \
	    "flows to the same backends", "pool", "fingerprint") \
	X(POOL_SLOTS, "xlb_pool_slots", GAUGE, \
	    "slots of the ring", "pool") \
	X(POOL_SLOTS_LOOKUP, "xlb_pool_lookup_slots", GAUGE, \
	    "slots that have moved and may have flows elsewhere: their packets " \
	    "are looked up in the flow table", "pool") \
	X(POOL_SLOTS_PREV, "xlb_pool_moving_slots", GAUGE, \
	    "slots that have moved in the last 20 seconds: unknown flows still " \
	    "go to the owner before", "pool") \
	X(POOL_MOVED, "xlb_pool_slots_moved_total", COUNTER, \
	    "slots that were given to another backend", "pool") \
	X(FLOW_ENTRIES, "xlb_flow_table_entries", GAUGE, \
	    "size of the flow table") \
	X(FLOW_LIVE, "xlb_flow_table_live_entries", GAUGE, \
	    "entries that bind a flow, when they were last counted: every hour, " \
	    "and every minute while slots are looked up") \
	X(FLOW_INSERTS, "xlb_flow_inserts_total", COUNTER, \
	    "new entries") \
	X(FLOW_EVICTIONS, "xlb_flow_evictions_total", COUNTER, \
	    "live entries that gave way to a new one, by state: confirmed or " \
	    "unconfirmed", "state") \
	X(FLOW_SKIPPED, "xlb_flow_skipped_total", COUNTER, \
	    "flows that were not written: budget (too many in a short time), " \
	    "full (no room in the set) or raced (two CPUs at once)", "reason") \
	X(FLOW_SAMPLED, "xlb_flow_sampled_total", COUNTER, \
	    "sampled TCP packets with payload in slots that are not looked up") \
	X(FLOW_UNKNOWN, "xlb_flow_unknown_total", COUNTER, \
	    "those of them whose flow was not in the table") \
	X(FLOW_SURGE, "xlb_flow_surge", GAUGE, \
	    "1 while every packet is looked up because many flows are unknown") \
	X(FLOW_SURGE_SECONDS, "xlb_flow_surge_seconds_total", COUNTER, \
	    "seconds of that") \
	X(NAT_ROWS, "xlb_nat_table_rows", GAUGE, \
	    "size of the table of NAT, of which a flow takes two rows") \
	X(NAT_USED, "xlb_nat_table_used_rows", GAUGE, \
	    "rows that are not empty, when they were last counted: every ten " \
	    "seconds or so") \
	X(NAT_FLOWS, "xlb_nat_flows", GAUGE, \
	    "flows that NAT has with this address of the node, at that time", \
	    "address") \
	X(ADDRESS_WANTED, "xlb_address_wanted", GAUGE, \
	    "1 if the address is to be announced", "address") \
	X(ADDRESS_IN_BIRD, "xlb_address_in_bird", GAUGE, \
	    "1 if BIRD has its route", "address") \
	X(ADDRESS_EXPORTED, "xlb_address_exported_sessions", GAUGE, \
	    "BGP sessions that its route is exported to", "address") \
	X(ADDRESS_WHY, "xlb_address_withheld_info", GAUGE, \
	    "1; why the address is not to be announced; missing if it is", \
	    "address", "reason") \
	X(ADDRESS_CHANGED, "xlb_address_changed_timestamp_seconds", GAUGE, \
	    "when that changed", "address") \
	X(BIRD_STATUS, "xlb_bird_status", GAUGE, \
	    "1 for what BIRD is now, 0 for the others; as bird.status of xlb " \
	    "status --json", "status") \
	X(BIRD_STUCK, "xlb_bird_stuck_routes", GAUGE, \
	    "routes that BIRD still announces though they have to go") \
	X(BIRD_UP, "xlb_bird_session_established", GAUGE, \
	    "1 if the BGP session is established", "session") \
	X(BIRD_EXPORTED, "xlb_bird_session_exported_routes", GAUGE, \
	    "routes of xlb that are exported to it", "session") \
	X(DRIFT, "xlb_reconcile_drift_total", COUNTER, \
	    "repairs of what nobody had asked to change, by what it was, as " \
	    "drift of xlb stats --json", \
	    "object") \
	X(FAILED, "xlb_reconcile_failed_operations", GAUGE, \
	    "operations on the maps that failed in the last reconciliation") \
	X(CHANGED, "xlb_reconcile_changed_timestamp_seconds", GAUGE, \
	    "when the maps were last changed; 0: not since the start") \
	X(CHECK_RESULTS, "xlb_check_results_total", COUNTER, \
	    "results of probes: pass, fail, drain, or local (not sent: no " \
	    "verdict)", "check", "result") \
	X(CHECK_DURATION, "xlb_check_duration_seconds", HISTOGRAM, \
	    "how long probes took that were sent", "check") \
	X(EVENTS_LOST, "xlb_events_lost_total", COUNTER, \
	    "events that readers of xlb events were not told of: limited (too " \
	    "many) or unread (no room)", "reason") \
	X(RENDER, "xlb_metrics_render_seconds", GAUGE, \
	    "time that xlbd took to write the metrics before these") \
	X(PROCESS_CPU, "process_cpu_seconds_total", COUNTER, \
	    "processor time of xlbd, over its restarts") \
	X(PROCESS_FDS, "process_open_fds", GAUGE, \
	    "open descriptors of xlbd") \
	X(PROCESS_FDS_MAX, "process_max_fds", GAUGE, \
	    "how many it may have") \
	X(PROCESS_RESIDENT, "process_resident_memory_bytes", GAUGE, \
	    "resident memory of xlbd, maps included") \
	X(PROCESS_VIRTUAL, "process_virtual_memory_bytes", GAUGE, \
	    "virtual memory of xlbd") \
	X(PROCESS_START, "process_start_time_seconds", GAUGE, \
	    "when the process was started")

enum metric {
#define X(NAME, ...) METRIC_##NAME,
	METRICS(X)
#undef X
	METRIC_COUNT
};

enum metric_type { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM };

#define METRIC_LABELS_MAX 4

struct metric_row {
	const char *name;
	enum metric_type type;
	const char *help;
	const char *label[METRIC_LABELS_MAX + 1];	/* ends in NULL */
};

const struct metric_row *metric_get(enum metric m);
const char *metric_type_text(enum metric_type t);

/* Before the samples of each: HELP and TYPE. */
void metric_head(FILE *out, enum metric m);
/* One sample. `label` has a value for each label of the row, any bytes: what is
 * not UTF-8 becomes '?'. */
void metric_put(FILE *out, enum metric m, const char *const *label,
    uint64_t value);
void metric_put_real(FILE *out, enum metric m, const char *const *label,
    double value);

/* Durations of probes: upper bounds in ns, and one bucket beyond. */
#define METRIC_BUCKETS 10
struct metric_histogram {
	uint64_t bucket[METRIC_BUCKETS + 1];	/* not cumulative */
	uint64_t sum;		/* ns */
};
void metric_histogram_add(struct metric_histogram *h, uint64_t ns);
void metric_put_histogram(FILE *out, enum metric m, const char *const *label,
    const struct metric_histogram *h);

/* How many bytes of `s` are one UTF-8 character (RFC 3629); 0: none. Not for
 * the end of the text. */
size_t utf8_length(const char *s);

#endif
