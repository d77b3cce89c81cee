/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Interfaces that do not take the frames that the packet program redirects to
 * them: the kernel tells, see bpf/ports.bpf.c. */
#ifndef XLB_PORTS_H
#define XLB_PORTS_H

#include <stdint.h>
#include <systemd/sd-event.h>

struct ports;

/* `failed` is called from the event loop, at most ten times a second for an
 * interface of this network namespace. `tx_ports` is the descriptor of that
 * map. 0, or -errno after logging why. */
int ports_open(sd_event *ev, int tx_ports,
    void (*failed)(uint32_t ifindex, int err, void *arg), void *arg,
    struct ports **out);
void ports_close(struct ports *p);

#endif
