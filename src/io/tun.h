/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * TUN devices. xlb0 is what BIRD's routes point at: it exists only while
 * somebody holds its descriptor, and no packet ever goes through it.
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

/* A device of this name, which is there as long as the descriptor is open; it
 * is up. -errno (logged). */
int tun_make(const char *name);

#endif
