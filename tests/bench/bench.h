/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ns per packet of the packet program beside its floor. A case is a row: one
 * kind of frame and what the programs make of it.
 */
#ifndef XLB_BENCH_H
#define XLB_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "frame.h"

struct bench_case {
	const char *name;
	void (*build)(struct bench_frame *f);
	int action;		/* what xlb says to such a frame */
	const char *what;
	unsigned flags;		/* BENCH_* */
	void (*run)(void);	/* no packet: this is timed, whatever the flows */
	double most_ms;		/* that it may take */
};
#define BENCH_LOOKUP	1	/* in every slot */
#define BENCH_BUDGET	2	/* of new entries, as xlbd has it */
#define BENCH_NAT	8	/* flows are in NAT's table */
#define BENCH_BEGUN	4	/* every flow has had all its packets, before */

extern const struct bench_case bench_case[];
extern const size_t bench_cases;

/* Net ns, as a multiple of the floor's in the same row, or of what `ack` takes
 * with as many flows. */
struct bench_budget {
	const char *name;	/* of the case */
	uint32_t flows;		/* 0: any number */
	double limit;
	bool of_ack;
};
/* NULL: there is none for this row. */
const struct bench_budget *bench_budget_find(const struct bench_case *c,
    uint32_t flows);

/* Addresses on which cases.c and tables.c agree. */
#define BENCH_VIP4 "203.0.113.10"
#define BENCH_VIP6 "2001:db8:5::10"
#define BENCH_ELSE4 "203.0.113.210"	/* nobody's */
#define BENCH_PORT 443
#define BENCH_PORT_GUE 8080
#define BENCH_PORT_NAT 8443
#define BENCH_NODE4 "10.0.0.1"	/* that NAT sends from */

/* xlb with services, backends and rings, and a flow table for so many flows,
 * which are in it, confirmed: its descriptor, or -1 after saying why. `insns`
 * as loaded; it is loaded anew where the table has to be of another size. */
int tables_open(const struct bench_case *c, uint32_t flows, bool frags,
    uint32_t *insns);
uint64_t tables_confirmed(void);	/* entries, not closing */
uint32_t tables_budget(void);	/* of new entries in a window */

/* What `run` may be, and its row: the ns that it took. */
void ring_build(void);
void ring_health(void);
double ring_row(const struct bench_case *c);

/* The file of --json. 0, or -1 after saying why. */
int json_open(const char *file);
void json_row(const char *name, uint32_t flows, const char *program, double ns,
    double net);
int json_close(const char *file);

/* Somebody else's object, its maps pinned for the hook that fills them. */
struct object {
	struct bpf_object *obj;
	char dir[64];		/* on bpffs; empty: none */
	int fd;			/* of the program */
};
/* 0, or -1 after saying why; object_close() in either case. */
int object_open(struct object *o, const char *file, const char *program,
    bool frags);
int object_hook(const struct object *o, const char *hook, const char *name,
    uint32_t flows);
void object_close(struct object *o);

#endif
