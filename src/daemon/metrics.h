/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writers of metrics, for the table in metrics_table.c: the samples of one
 * metric for row `i` of what it is about. */
#ifndef XLB_METRICS_H
#define XLB_METRICS_H

#include "core/metric.h"

struct document;

void metric_node(struct document *doc, enum metric m, size_t i);
void metric_reloads(struct document *doc, enum metric m, size_t i);
void metric_drift(struct document *doc, enum metric m, size_t i);
void metric_interface(struct document *doc, enum metric m, size_t i);
void metric_packets(struct document *doc, enum metric m, size_t i);
void metric_service(struct document *doc, enum metric m, size_t i);
void metric_checksum(struct document *doc, enum metric m, size_t i);
void metric_backend_packets(struct document *doc, enum metric m, size_t i);
void metric_backend_path(struct document *doc, enum metric m, size_t i);
void metric_backend(struct document *doc, enum metric m, size_t i);
void metric_pool(struct document *doc, enum metric m, size_t i);
void metric_ring(struct document *doc, enum metric m, size_t i);
void metric_flows(struct document *doc, enum metric m, size_t i);
void metric_nat(struct document *doc, enum metric m, size_t i);
void metric_nat_source(struct document *doc, enum metric m, size_t i);
void metric_address(struct document *doc, enum metric m, size_t i);
void metric_bird_status(struct document *doc, enum metric m, size_t i);
void metric_bird(struct document *doc, enum metric m, size_t i);
void metric_check(struct document *doc, enum metric m, size_t i);
void metric_events(struct document *doc, enum metric m, size_t i);
void metric_process(struct document *doc, enum metric m, size_t i);

#endif
