/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the kernel's maps should hold (wanted) and what they hold (found): one
 * type for both, sorted rows, so that nothing needs converting before it can be
 * compared. Rows carry the numbers that the packet program uses; wanted rows
 * keep the numbers of equal found rows, so an unchanged object never moves.
 */
#ifndef XLB_STATE_H
#define XLB_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/addr.h"
#include "core/conf.h"
#include "core/health.h"
#include "xlb_abi.h"

struct arena;
struct path_table;

#define STATE_VIP_IDS 65536	/* ids are 1..65535 */

/* An address that services listen on. Sorted by address. */
struct state_vip {
	struct addr addr;
	uint32_t id;		/* 1.., links the services to it */
	uint32_t flags;		/* XLB_VIP_* */
	bool own;		/* no service has it: NAT sends from it */
};

/* Sorted by vip address, protocol, port. */
struct state_service {
	struct addr vip;
	uint8_t proto;
	uint16_t port;		/* host byte order; 0: every port */
	uint32_t vip_id;
	uint32_t number;	/* of its counter line */
	uint32_t ring;
	uint32_t old_ring;	/* that of the pool before, for 20 s after a
				 * change of pool; else `ring` */
	uint32_t flags;		/* XLB_SERVICE_* and XLB_FORWARD_* */
	uint16_t backend_port;	/* NAT; 0: the one that the client asks */
};

/* Sorted by address. */
struct state_backend {
	struct addr addr;
	uint32_t number;	/* 1.. */
	uint32_t nexthop;	/* number of a state_nexthop, 0: unresolved */
	uint64_t sources;	/* numbers of those that NAT sends from to it */
	bool retired;		/* found only: of no pool any more, its number
				 * is kept until no flow names it */
};

/* An address that NAT sends from, now or still for flows that it has. Sorted by
 * address. */
struct state_source {
	struct addr addr;
	uint32_t number;	/* 0.. */
};

/* An interface that clients' packets come in by, where NAT needs to know the way
 * back. Sorted by ifindex. */
struct state_door {
	uint32_t ifindex;
	uint8_t mac[6];
	uint16_t mtu;
	uint32_t number;	/* 0.. */
};

/* A way out, shared by the backends that use it. Sorted by gateway, ifindex,
 * source, source MAC, MTU, VLAN: all but mac, which changes in place. (The same
 * link-local gateway may be behind two VLANs of one device.) */
struct state_nexthop {
	struct addr gateway;	/* the neighbour; the backend itself if on-link */
	uint32_t ifindex;	/* where XDP sends: a VLAN's lower device */
	struct addr src;	/* this node's own address towards it */
	uint8_t src_mac[6];
	uint16_t mtu;		/* bytes from the IP header on */
	uint8_t mac[6];		/* destination */
	uint16_t vlan;		/* TCI, host byte order; 0: untagged */
	uint32_t number;	/* 1.. */
};

/*
 * A pool's ring. In `wanted`, `slot` is NULL and the words come from
 * state_ring_words(), one ring at a time: rings of a large node are never all
 * kept twice. In `found`, `slot` is the active half, in the kernel's memory
 * (other processes may not write it; we are the only writer).
 */
struct state_ring {
	const char *pool;	/* sorted by this name */
	uint32_t number;	/* 0.. */
	const uint32_t *slot;	/* found only: state.ring_size words */
	const uint32_t *past;	/* found only: as many, see xlb_abi.h */
	const uint32_t *roles;	/* XLB_MEMBER_*, RING_MEMBER_WORDS words; found
				 * ones have XLB_MEMBER for former members */
	/* wanted only: */
	const struct maglev_member *member;	/* weight > 0, by address */
	const uint16_t *number_of;	/* member index -> backend number */
	const bool *eligible;	/* by member index */
	const bool *leaving;	/* as many, see STATE_LEAVING; NULL: nobody */
	const bool *held;	/* by backend number: file or drain gave it no
				 * slots until now; NULL: nobody */
	size_t nmember;
};

/* What became of a pool, for announcing and for status. Wanted only; sorted
 * by name, the order of conf.pool. */
struct state_pool {
	const struct conf_pool *conf;
	uint32_t eligible;	/* healthy, active, with a next hop */
	uint32_t needed;	/* min_healthy as a count */
	bool ready;		/* eligible >= needed, or fail_open rescued it */
	bool failed_open;	/* nobody is eligible and one is known to be
				 * down: all active ones with a next hop are
				 * used */
	struct health_paths paths;	/* of its check */
	struct state_member *member;	/* as conf->backend, same order */
};

/* Why a backend takes no new flows; the first that applies. */
enum member_why {
	MEMBER_ELIGIBLE, MEMBER_STATE_DOWN, MEMBER_STATE_DRAIN,
	MEMBER_WEIGHT_ZERO, MEMBER_UNHEALTHY, MEMBER_UNKNOWN,
	MEMBER_ASKS_DRAIN, MEMBER_NO_ROUTE, MEMBER_NO_NEIGHBOR, MEMBER_NO_PORT
};
const char *member_why_text(enum member_why w);
struct state_member;
/* Not down: it answers its check, there is a way to it, and its state is not
 * down. */
bool member_is_up(const struct state_member *m);

/* Flows of a backend that drains since less than that, ns, are likelier to come
 * to a node that begins than those that others have begun in its slots. */
#define STATE_LEAVING	60000000000LL

struct state_member {
	enum backend_state state;	/* after overrides */
	enum health_state health;
	const struct health_row *health_row;	/* that decided; NULL: none */
	enum member_why why;
	bool keeps;		/* its flows stay: it is active or draining,
				 * and alive */
	bool leaving;		/* drains by an override that is young */
	uint32_t number;	/* backend number */
};

struct state {
	struct state_vip *vip;
	size_t nvip;
	struct state_service *service;
	size_t nservice;
	struct state_ring *ring;
	size_t nring;
	struct state_backend *backend;
	size_t nbackend;
	struct state_nexthop *nexthop;
	size_t nnexthop;
	struct state_source *source;
	size_t nsource;
	struct state_door *door;
	size_t ndoor;
	uint32_t *port;		/* ifindexes packets may leave by, sorted */
	size_t nport;
	uint32_t ring_size;	/* slots */
	uint64_t seed;
	struct xlb_settings settings;
	struct state_pool *pool;	/* wanted only */
	size_t npool;
};

/* What the kernel's routes and neighbours say about a backend. Filled by
 * io/netlink, sorted by address. */
enum hop_status {
	HOP_OK, HOP_NO_ROUTE, HOP_RESOLVING, HOP_NO_NEIGHBOR,
	HOP_NO_PORT		/* its interface cannot send XDP frames */
};

struct hop {
	struct addr addr;	/* of the backend */
	enum hop_status status;
	const char *why;	/* static text if it is not HOP_OK, else NULL */
	struct state_nexthop nexthop;	/* number unset; whole if HOP_OK */
};

struct hop_table {
	struct hop *row;
	size_t n;
};

/* An operator's `xlb drain` or `undrain`, which outlives restarts. */
struct override {
	const char *pool;	/* NULL: the node itself */
	struct addr addr;	/* of the backend; unset for the node */
	enum backend_state state;	/* BACKEND_ACTIVE or BACKEND_DRAIN */
	enum backend_state file_state;	/* the file's value when it was said:
					 * another one there ends the override */
	int64_t since;		/* CLOCK_REALTIME, ns */
};

struct override_list {
	struct override *row;
	size_t n;
};

/* False once it has ended: the object is gone, or the file's value is another
 * one now. Such a one has no effect and should be dropped. */
bool override_live(const struct conf *c, const struct override *o);
enum node_state override_node(const struct conf *c,
    const struct override_list *l);	/* the node's state, with overrides */

/* Everything that `wanted` is made from. */
struct state_input {
	const struct conf *conf;
	const struct override_list *overrides;
	const struct health_table *health;
	const struct path_table *paths;	/* NULL: nothing is known of any */
	const struct hop_table *hops;
	const struct addr *local;	/* the host's own addresses, sorted */
	size_t nlocal;
	struct state_door door[XLB_DOORS];	/* by ifindex; no numbers */
	size_t ndoor;
	uint64_t named_sources;	/* numbers of those that flows still use */
	uint8_t hash_key[16];
	bool surge;		/* every packet is looked up */
	int64_t now;		/* CLOCK_REALTIME, ns, as in overrides */
	const struct state *found;	/* whose numbers are kept */
	const struct state *before;	/* what was wanted last; NULL: nothing */
};

/*
 * Builds what should be. Numbers: an equal found row keeps its number, new ones
 * take numbers that no found row has or names. Every pool has a ring and every
 * member a backend row, used by a service or not. A pool that has another name
 * now is known by its members, and keeps its ring. A service whose ring is
 * another one than it was found with keeps that as `old_ring`, and has
 * XLB_SERVICE_LOOKUP from then on. A backend whose neighbour is
 * being asked for (HOP_RESOLVING, or no row in `hops`) keeps the next hop that
 * was found. 0, or -1 if a table is full or the maps are of another size (`dg`
 * says which, with the limit and the setting); `*wanted` is in `a`, and points
 * into the input.
 */
int state_build(const struct state_input *in, struct arena *a,
    struct state *wanted, struct diag *dg);

/* The pools alone: what may be announced, whatever becomes of the maps. Of
 * `found` only backends and next hops are read. */
void state_judge(const struct state_input *in, struct arena *a,
    struct state *wanted);

/* Settings that would move every flow must be the same: table_size, seed, the
 * hash key, a service's hash. 0, or -1 with the reasons in `dg`. */
int state_keeps_flows(const struct state *wanted, const struct state *found,
    struct diag *dg);

/* The slot words of a wanted ring; caches primary owners between calls. The
 * limit has room for CONF_POOLS_MAX rings of the default size: all are gone
 * through in turn, so in a cache that is too small each would be thrown out just
 * before it is needed. */
#define RING_CACHE_MAX (160 << 20)	/* bytes */
struct ring_cache;
struct ring_cache *ring_cache_new(void);
void ring_cache_free(struct ring_cache *rc);	/* NULL is allowed */
/* Forget rings that `wanted` no longer has. */
void ring_cache_trim(struct ring_cache *rc, const struct state *wanted);
void state_ring_words(struct ring_cache *rc, const struct state *wanted,
    const struct state_ring *ring, uint32_t *word);
/* The same if only `eligible` of the ring's members were. */
void state_ring_words_of(struct ring_cache *rc, const struct state *wanted,
    const struct state_ring *ring, const bool *eligible, uint32_t *word);
/* True if the owners in `word` are those that state_ring_words() would give. */
bool state_ring_same(struct ring_cache *rc, const struct state *wanted,
    const struct state_ring *ring, const uint32_t *word);
uint64_t state_ring_fingerprint(struct ring_cache *rc,
    const struct state *wanted, const struct state_ring *ring);
const struct state_pool *state_pool_find(const struct state *s,
    const char *name);
/* The ring of a pool of that name; NULL: no service uses it. */
const struct state_ring *state_ring_find(const struct state *s,
    const char *pool);

/* The state of a node that serves nothing: what `xlb stop` reconciles to. */
void state_empty(struct state *s, const struct state *found);

/* Order of the rows, by number where the keys are equal; for qsort(). */
int state_vip_cmp(const void *a, const void *b);
int state_service_cmp(const void *a, const void *b);
int state_backend_cmp(const void *a, const void *b);
int state_nexthop_cmp(const void *a, const void *b);
int state_ring_cmp(const void *a, const void *b);
int state_port_cmp(const void *a, const void *b);
int state_source_cmp(const void *a, const void *b);
int state_door_cmp(const void *a, const void *b);
void state_sort(struct state *s);	/* rows read in any order */
/* The keys alone: what makes a row the same one. */
int state_vip_key_cmp(const void *a, const void *b);
int state_service_key_cmp(const void *a, const void *b);
int state_backend_key_cmp(const void *a, const void *b);
int state_nexthop_key_cmp(const void *a, const void *b);
int state_ring_key_cmp(const void *a, const void *b);
int state_source_key_cmp(const void *a, const void *b);
int state_door_key_cmp(const void *a, const void *b);

/* After every step: no service names a missing ring, no slot a backend that is
 * missing or no member, no backend a missing next hop, no next hop a missing
 * port, no backend but a present one keeps flows; numbers
 * are unique, rows are sorted. NULL if it holds, else what is wrong (in `a`).
 * Used by tests and by `xlbd --preflight`. */
const char *state_check(const struct state *s, struct arena *a);

#endif
