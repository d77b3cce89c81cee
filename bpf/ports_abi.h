/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What ports.bpf.c tells xlbd. */
#ifndef XLB_PORTS_ABI_H
#define XLB_PORTS_ABI_H

#include <linux/types.h>

#define PORTS_SLOTS	256
#define PORTS_EVERY_NS	100000000	/* no more often for one interface */

struct port_error {
	__u32 ifindex;
	__s32 err;		/* -ENXIO, -EOPNOTSUPP */
};

#endif
