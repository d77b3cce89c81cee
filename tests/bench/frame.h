/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A frame as the bench's driver sends it: the same but for what makes a flow. */
#ifndef XLB_BENCH_FRAME_H
#define XLB_BENCH_FRAME_H

#include <linux/types.h>

#define BENCH_FRAME 96		/* bytes; every case's frame has as many */

struct bench_frame {
	__u64 word[BENCH_FRAME / 8];	/* as on the wire */
	__u32 address;		/* offset of 4 bytes of the source address */
	__u32 ports;		/* offset of the source port */
	__u32 fragment;		/* offset of the word that makes it a first and a
				 * later fragment by turns; 0: it is none */
};

#endif
