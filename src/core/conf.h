/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the operator wrote, with every default filled in: after conf_load() no
 * field means "unset". Lives in one arena and is never written afterwards; what
 * is learned at run time is kept elsewhere.
 */
#ifndef XLB_CONF_H
#define XLB_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/addr.h"
#include "core/diag.h"

struct arena;

/* Limits; conf_limit[] in conf_schema.c is the table that check, the manual
 * and the tests read. Each is the size of a map, see xlb_abi.h. */
#define CONF_SERVICES_MAX	4096	/* entries of services: */
#define CONF_LISTENERS_MAX	16384	/* (address, protocol, port) */
#define CONF_POOLS_MAX		1024
#define CONF_CHECKS_MAX		1024	/* one for each pool */
#define CONF_BACKENDS_MAX	16383	/* members, summed over the pools */
#define CONF_TARGETS_MAX	65536	/* (backend, port, check) to probe */
#define CONF_INTERFACES_MAX	64
#define CONF_NEIGHBORS_MAX	64
#define CONF_SOURCES_MAX	32	/* addresses of nat: of one family */
#define CONF_COMMAND_MAX	64	/* words of a command */
#define CONF_COMMAND_BYTES	4096	/* with the ends of its words */
#define CONF_NAME_MAX		63	/* bytes, without the end */

enum node_state { NODE_ACTIVE, NODE_DRAIN };
enum xdp_mode { XDP_MODE_NATIVE, XDP_MODE_GENERIC, XDP_MODE_AUTO };
enum check_type {
	CHECK_TCP, CHECK_HTTP, CHECK_HTTPS, CHECK_UDP, CHECK_DNS, CHECK_ICMP,
	CHECK_EXEC
};
const char *check_type_text(enum check_type t);	/* "tcp" */
enum check_via { VIA_DEFAULT, VIA_TUNNEL, VIA_DIRECT };
enum backend_state { BACKEND_ACTIVE, BACKEND_DRAIN, BACKEND_DOWN };
enum forward { FORWARD_IPIP, FORWARD_GUE, FORWARD_L2, FORWARD_NAT };
enum hash_kind { HASH_FLOW, HASH_SOURCE };
enum udp_kind { UDP_DEFAULT, UDP_SESSION, UDP_DATAGRAM };

struct conf_interface {
	struct mark mark;
	const char *name;
	enum xdp_mode xdp;
};

/* RFC 1997 A:B or RFC 8092 A:B:C */
struct community {
	bool large;
	uint32_t a, b, c;
};

struct community_list {
	struct community *row;
	size_t n;
};

struct addr_list {
	struct addr *row;
	size_t n;
};

struct conf_neighbor {
	struct mark mark;
	struct addr address;
	uint32_t as;
	bool bfd;
	const char *password;	/* NULL: none */
};

struct conf_bgp {
	bool present;		/* false: nothing is announced, no BIRD */
	uint32_t local_as;
	struct addr router_id;	/* all zero: BIRD chooses */
	struct conf_neighbor *neighbor;
	size_t nneighbor;
	struct community_list communities;
	uint32_t hold_ms, graceful_shutdown_ms, linger_ms;
	bool fingerprint;
	const char *bird_directory, *bird_socket;
};

struct http_range {
	uint16_t low, high;	/* status codes, both ends included */
};

struct http_range_list {
	struct http_range *row;
	size_t n;
};

struct conf_check {
	struct mark mark;
	const char *name;
	enum check_type type;
	uint16_t port;		/* host byte order; 0: the service's port */
	enum check_via via;	/* VIA_DEFAULT: tunnel, or direct for l2, nat */
	uint32_t interval_ms, timeout_ms;
	uint32_t rise, fall;
	/* http, https */
	const char *path, *method, *host, *body;	/* host, body: NULL: none */
	struct http_range_list expect, drain_status;
	const char *sni, *ca;	/* NULL: none */
	struct mark ca_mark;	/* where `ca` stands */
	bool verify;
	/* udp, dns, exec */
	const char *send, *reply;
	const char *qname, *qtype;
	const char **command;	/* NULL-terminated; NULL: none */
	const char *user;
	struct mark user_mark;	/* where `user` stands, or the check */
};

struct conf_backend {
	struct mark mark;
	const char *name;	/* a label; the address is the identity */
	struct addr address;
	uint32_t weight;	/* 0: takes no new flows */
	enum backend_state state;
};

struct conf_pool {
	struct mark mark;
	const char *name;
	const struct conf_check *check;	/* NULL: always healthy */
	uint32_t min_healthy;
	bool min_healthy_percent;	/* of the backends, rounded up */
	bool fail_open;
	struct conf_backend *backend;	/* in the file's order */
	size_t nbackend;
};

struct conf_address {
	struct mark mark;
	struct addr address;
	struct community_list communities;	/* besides bgp.communities */
	bool has_med;
	uint32_t med;
	uint32_t prepend;	/* times */
	bool has_announce;
	struct prefix announce;	/* covers `address`; else its host route */
};

struct conf_listen {
	struct mark mark;
	uint8_t proto;		/* IPPROTO_TCP or IPPROTO_UDP */
	uint16_t port;		/* host byte order; 0: every port */
};

struct conf_service {
	struct mark mark;
	const char *name;
	struct conf_address *address;
	size_t naddress;
	struct conf_listen *listen;
	size_t nlisten;
	const struct conf_pool *pool;
	enum forward forward;
	enum hash_kind hash;
	enum udp_kind udp;	/* UDP_DEFAULT: datagram on port 53, else session */
	bool required;
	uint16_t backend_port;	/* nat only; 0: the service's port */
};

struct conf {
	const char *node_name;	/* "": the host's name, see conf_node_name() */
	enum node_state node_state;
	struct conf_interface *interface;
	size_t ninterface;
	bool has_source4, has_source6;
	struct prefix source4, source6;	/* outer source of IPIP */
	uint16_t gue_port;
	uint32_t tunnel_mtu;	/* bytes; 0: the link's */
	/* what NAT sends from; none: the address the route to a backend uses */
	struct addr_list nat4, nat6;
	uint32_t table_size;	/* slots of a ring, a prime */
	uint64_t seed;
	const char *key_file;	/* NULL: none */
	uint32_t flow_entries;	/* a power of two */
	struct conf_bgp bgp;
	struct conf_check *check;	/* sorted by name, as all below */
	size_t ncheck;
	struct conf_pool *pool;
	size_t npool;
	struct conf_service *service;
	size_t nservice;
	bool metrics_on;
	struct addr metrics_addr;
	uint16_t metrics_port;
};

/* One file of the configuration: the main file first, then xlb.d/ sorted by
 * name. Fragments may only add pools, services and checks. */
struct conf_source {
	const char *name;	/* as it is to be shown in messages */
	const char *text;
	size_t len;
};

/*
 * Parses, binds, checks. `*out` is in `a` and is only set when there was no
 * error; it points at nothing of `src`. 0, or -1 with the reasons in `dg`,
 * sorted. Warnings are added only where there is no error: half of a
 * configuration would raise false ones.
 */
int conf_load(const struct conf_source *src, size_t n, struct arena *a,
    const struct conf **out, struct diag *dg);

/* The configuration as YAML, every value that is not a default; loads again to
 * an equal configuration. */
int conf_print(const struct conf *c, FILE *out);	/* 0, or -1 */
/* Every field with a value, defaults too: for comparing, need not load. */
int conf_print_all(const struct conf *c, FILE *out);

bool conf_uses_nat(const struct conf *c);	/* a service does */
/* "2 services, 1 pool, 5 backends" */
#define CONF_COUNTS_MAX 96
const char *conf_counts_print(const struct conf *c, char buf[CONF_COUNTS_MAX]);

const struct conf_pool *conf_pool_find(const struct conf *c, const char *name);
const struct conf_backend *conf_backend_find(const struct conf_pool *p,
    const char *name);

#endif
