/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the parts of ka_import() share. */
#ifndef XLB_KEEPALIVED_INT_H
#define XLB_KEEPALIVED_INT_H

#include "core/keepalived.h"

/* What a virtual server, its real servers and their checks hand down; a text
 * that is NULL was not said. */
struct ka_timers {
	uint32_t interval_ms, timeout_ms;	/* 0: not said */
	uint32_t retry;			/* UINT32_MAX: not said */
	const char *virtualhost;
};

/* A keyword: what becomes of it. */
struct ka_word {
	const char *word;
	const char *why;	/* why it has no equal, and what instead; NULL:
				 * nothing is lost without it */
};

struct ka_port {
	struct addr address;
	uint16_t port;		/* host byte order; 0: every port */
	struct mark mark;
};

/* A virtual_server on its way. */
struct ka_server {
	const struct ka_stmt *stmt;
	const char *name;	/* of its group; NULL: it has none */
	struct ka_port *port;
	size_t nport;
	uint8_t proto;
	enum forward forward;
	enum hash_kind hash;
	bool one_packet;	/* no datagram has to do with another */
	bool by_weight;		/* false: the scheduler does not look at it */
	uint32_t quorum;
	struct ka_timers timers;
	const struct ka_stmt **real;	/* the real_server statements */
	size_t nreal;
};

/* Those that are taken. */
struct ka_names {
	const char **row;
	size_t n;
};

struct ka_job {
	struct arena *a;
	struct diag *dg;
	const struct ka_stmt *top;
	struct conf *c;
	/* in the order of the file; flat arrays in `c` only at the end */
	struct conf_check **check;
	struct conf_pool **pool;
	struct conf_service **service;
	size_t ncheck, npool, nservice;
	struct ka_names checks, pools, services;
	bool has_gue_port;
};

/* "KEYWORD ARGUMENT: what", at the statement. */
void ka_note(struct ka_job *j, const struct ka_stmt *s, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void ka_fault(struct ka_job *j, const struct ka_stmt *s, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* A keyword of the table: said what is lost, true. */
bool ka_known(struct ka_job *j, const struct ka_stmt *s,
    const struct ka_word *table);
void ka_unknown(struct ka_job *j, const struct ka_stmt *s);

bool ka_is(const struct ka_stmt *s, const char *word);
/* The first argument; "" and a fault where there is none. */
const char *ka_first(struct ka_job *j, const struct ka_stmt *s);
/* The only one; says what is lost where there are more. */
const char *ka_arg(struct ka_job *j, const struct ka_stmt *s);
/* The same as a number of low..high; `low`, and a fault, if it is none. */
uint32_t ka_number(struct ka_job *j, const struct ka_stmt *s, const char *text,
    uint32_t low, uint32_t high);
/* on, off and their like; without one: true. */
bool ka_bool(const struct ka_stmt *s);
/* Seconds with a fraction, as milliseconds in 1..an hour. */
uint32_t ka_msec(struct ka_job *j, const struct ka_stmt *s);
/* True if it is one of the timers, which `t` has then. */
bool ka_timer(struct ka_job *j, const struct ka_stmt *s, struct ka_timers *t);

/* A name of ours for an address: "ip-203-0-113-10". */
const char *ka_name(struct ka_job *j, const struct addr *a);

/* The check of a real server, in the arena, nameless; NULL: it has none.
 * `port`: of the virtual server. */
struct conf_check *ka_check(struct ka_job *j, const struct ka_stmt *real,
    uint16_t port, const struct ka_timers *t);
bool ka_check_same(const struct conf_check *a, const struct conf_check *b);

/* lvs_method or lb_kind, of the virtual server or one of its real ones. */
void ka_method_take(struct ka_job *j, const struct ka_stmt *s,
    struct ka_server *v);

/* "NAME", or "NAME-2" and so on where that is taken. */
const char *ka_name_free(struct ka_job *j, const char *want,
    struct ka_names *names);

/* The pool of its real servers, with their check; one that is the same as an
 * earlier one's is that. `name`: what they are called if they are new. */
struct conf_pool *ka_pool_take(struct ka_job *j, const struct ka_server *v,
    const char *name);

/* A virtual_server whose statement, name and ports are there to a pool, its
 * check, and services. */
void ka_server_build(struct ka_job *j, struct ka_server *v);

#endif
