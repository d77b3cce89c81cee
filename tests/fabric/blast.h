/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What blast.c sends and count.bpf.c counts: the map between them. */
#ifndef XLB_TESTS_BLAST_H
#define XLB_TESTS_BLAST_H

#include <linux/types.h>

#define BLAST_PORT 9000		/* of the datagrams; each holds its number */
#define BLAST_NUMBERS (1U << 27)	/* 100 000 a second for 20 minutes */

/* The values of an array, 64 bits each. */
enum {
	BLAST_RECEIVED,		/* different ones */
	BLAST_AGAIN,		/* those that had come before */
	BLAST_SEEN,		/* one bit for each number, from here on */
};
#define BLAST_VALUES (BLAST_SEEN + BLAST_NUMBERS / 64)

#endif
