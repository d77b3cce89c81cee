/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * xlb0, the TUN device that BIRD's routes point at: it exists only while
 * somebody holds its descriptor. No packet ever goes through it.
 */
#ifndef XLB_TUN_H
#define XLB_TUN_H

#include "core/bird_text.h"

#define TUN_NAME BIRD_DEVICE

/*
 * Takes over `stored` (a descriptor that the service manager kept; -1: none) if
 * it still is xlb0 of this network namespace, and leaves it up or down: down is
 * the operator's emergency stop. Else closes it, makes the device anew and sets
 * it up: then the descriptor is another one than `stored`, and wants to be
 * stored. -errno (logged).
 */
int tun_open(int stored);

#endif
