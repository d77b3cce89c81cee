/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What xlbd and the prober say to each other, and the process side of it. All
 * messages are of fixed size on SOCK_SEQPACKET pairs; host byte order.
 *
 *   xlbd -- "one more, on this socket" --> spawner -- fork --> prober
 *   xlbd <-------------- requests, answers ------------------> prober
 *
 * The spawner is forked before xlbd has anything open, drops all rights at once
 * and then only forks probers: the prober of a daemon that has been up for
 * months is made from the same clean process as the first one, and xlbd needs
 * no right to change its user.
 */
#ifndef XLB_PROBE_WIRE_H
#define XLB_PROBE_WIRE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/conf.h"
#include "core/health.h"
#include "core/mono.h"

enum probe_request_kind {
	PROBE_REQUEST_TCP = 1,
	PROBE_REQUEST_CANCEL = 2,
	PROBE_REQUEST_HTTP = 3,
	PROBE_REQUEST_UDP = 4,
	PROBE_REQUEST_DNS = 5,
	PROBE_REQUEST_ICMP = 6,
	PROBE_REQUEST_EXEC = 7,
	PROBE_REQUEST_ERROR = 8,	/* asks nothing: the first ICMP error */
};

struct probe_request {		/* xlbd to prober; with the socket if not CANCEL */
	uint32_t id, generation;	/* a CANCEL names the request it ends */
	uint8_t addr[16];	/* as struct addr */
	uint16_t port;
	uint16_t kind;
	uint32_t timeout_ms;
	uint32_t check;		/* slot of its struct probe_check; not TCP */
	uint16_t size;		/* ICMP: of the packet, from its IP header on;
				 * 0: as it comes */
};

#define PROBE_STATUS_MAX 1000	/* HTTP's three digits */
#define PROBE_STATUS_BYTES ((PROBE_STATUS_MAX + 7) / 8)

/* What a check asks and expects: sent before the first request that names its
 * slot, and again when it changed. Texts end in NUL; empty: not set. */
struct probe_check {
	uint32_t slot;
	uint16_t qtype;		/* DNS's number, host byte order */
	bool tls, verify, exec;
	bool ca;		/* a memfd with the authorities comes along */
	char path[1025], method[17], host[256], body[1025];
	char send[1025], reply[1025];
	char sni[256], qname[256];
	uint8_t expect[PROBE_STATUS_BYTES];	/* bits by status */
	uint8_t drain[PROBE_STATUS_BYTES];
	uint8_t pad[3];		/* 0: two are compared whole */
};

struct probe_answer {		/* prober to xlbd */
	uint32_t id, generation;
	uint32_t result;	/* enum probe_result */
	uint32_t detail;	/* of that result */
	char said[HEALTH_SAID_MAX];
};

/* In the prober: how a probe ended, or would if its time were up now. */
struct probe_end {
	enum probe_result result;
	uint16_t detail;
	char said[HEALTH_SAID_MAX];
};

struct probe_spawned {		/* spawner to xlbd */
	int32_t pid;		/* 0: the spawner itself is ready */
	int32_t err;		/* errno; 0: fine */
	char step[40];		/* what failed */
};

/* Requests in flight at most; ids are below it. */
#define PROBE_FLIGHTS_MAX 65536
#define PROBE_FDS_SPARE 64	/* descriptors that are no probes */

/* Descriptors that the prober may have, from the hard limit. */
uint32_t probe_fds(void);

/* probe_spawn.c. The name is for the log, and the process's. */
typedef void (*spawner_fn)(int fd);	/* never returns */
struct spawner {
	const char *name;
	spawner_fn run;		/* the helper's life, on its socket */
	pid_t pid;		/* 0: none */
	int fd, pidfd;		/* -1: none */
	bool launches;		/* is the launcher, which keeps SETUID, SETGID
				 * and KILL; else: */
	bool drop;		/* to these: */
	uid_t uid;
	gid_t gid;
};

/* Whom to run as; logs once if `user` does not exist. 0, or -errno. */
int spawner_init(struct spawner *s, const char *name, spawner_fn run,
    const char *user);
/* Forks the spawner and waits until it has dropped its rights. 0, or -errno
 * (logged). */
int spawner_start(struct spawner *s);
/* Asks for a helper; any earlier one is killed first. Returns our end of its
 * socket at once, or -errno; struct probe_spawned follows on s->fd. */
int spawner_helper(const struct spawner *s);
void spawner_close(struct spawner *s);
void spawner_kill(const struct spawner *s);
/* After its pidfd said that it ended. */
void spawner_reap(struct spawner *s);

/* probe_child.c: the prober's whole life. */
_Noreturn void probe_child(int fd);

/* Certificate authorities of a check, as the file has them. */
struct probe_ca {
	char *pem;		/* NULL: none, or the file cannot be read */
	size_t len;
};
/*
 * A command, from xlbd to the launcher, with one end of a socket pair of which
 * the prober has the other. What became of it goes there; where nobody listens
 * any more the command is killed, so that the prober's deadlines are those of
 * commands too.
 */
struct exec_order {
	uint32_t uid, gid;	/* it is in no other group */
	uint32_t timeout_ms;
	char user[33], check[CONF_NAME_MAX + 1];
	uint8_t addr[16];	/* as struct addr */
	uint16_t port;		/* host byte order */
	uint16_t argc;
	char argv[CONF_COMMAND_BYTES];	/* words that end in NUL */
};

struct exec_outcome {		/* launcher to prober */
	int32_t status;		/* as of waitpid() */
	char said[HEALTH_SAID_MAX];	/* the first line of its output */
};

#define PROBE_COMMANDS_MAX 64	/* at a time */

/* Whom a command runs as. 0, or -errno: -ENOENT: no such user, -EPERM: root,
 * -EACCES: the prober's, or one whose own group opens xlbd's or BIRD's socket. */
int exec_user(const char *user, struct exec_order *o);
/* probe_launch.c: the launcher's whole life. */
_Noreturn void launch_run(int fd);
/* probe_exec.c, in xlbd: has the launcher run the order for one backend. The
 * prober's end of a socket, or -errno (-EAGAIN: later). */
struct spawner;
int exec_begin(const struct spawner *launcher, const struct exec_order *check,
    const struct addr *addr, uint16_t port, uint32_t timeout_ms);
/* NULL: it cannot be run. Malloc'ed. */
struct exec_order *exec_order_new(const struct conf_check *c);
/* In the prober. True: ended, with `*end`. */
bool exec_end(int fd, struct probe_end *end);

#define PROBE_CA_MAX (1 << 20)	/* bytes */
/* 0, or -errno (-EINVAL: there is no certificate in it). */
int probe_ca_read(const char *path, struct probe_ca *ca);

/* probe_check.c, in xlbd: the checks of a list, in slots 0..n-1. */
struct probe_checks {
	const struct conf_check **by;	/* sorted; NULL once settled */
	struct probe_check *row;
	struct probe_ca *ca;
	struct exec_order **order;	/* NULL: it has no command */
	bool *sent;		/* the prober has it */
	size_t n;
};

/* The kind of request for a type of check. */
uint16_t probe_check_kind(const struct conf_check *c);
/* Slots for all checks of a list that have a text. 0, or -errno. */
int probe_checks_set(struct probe_checks *p, const struct health_target *t,
    size_t n);
/* The slot of a check of that list, UINT32_MAX if it has no text. */
uint32_t probe_checks_slot(const struct probe_checks *p,
    const struct conf_check *c);
/* False: it cannot be asked, its authorities are missing. */
bool probe_checks_fit(const struct probe_checks *p, uint32_t slot);
/* To the prober at `sock`. 0, or -errno. */
int probe_checks_send(struct probe_checks *p, uint32_t slot, int sock);
/* All slots are known: the list may go. */
void probe_checks_settled(struct probe_checks *p);
void probe_checks_forget(struct probe_checks *p);	/* a new prober */
void probe_checks_free(struct probe_checks *p);

static inline bool
probe_status_in(const uint8_t *bits, long status)
{
	return status >= 0 && status < PROBE_STATUS_MAX &&
	    (bits[status / 8] >> status % 8 & 1);
}

/* probe_socket.c, in xlbd: the socket for a request. A descriptor, or -errno. */
int probe_socket(enum probe_request_kind kind, const struct addr *to);
/* What it sends is never cut, whatever the route says of its MTU. 0, or
 * -errno. */
int probe_socket_whole(int fd, const struct addr *to);
/* Through a backend's tunnel, from `src` (unset: the kernel chooses). Made in
 * xlbd, which may set marks. 0, or -errno. */
int probe_socket_mark(int fd, uint32_t mark, const struct addr *src);

/* probe_tcp.c. Made in xlbd. A descriptor, or -errno. */
int probe_tcp_socket(const struct addr *to);
/* In the prober. True: ended at once with `*r`. */
bool probe_tcp_begin(int fd, const struct addr *to, uint16_t port,
    enum probe_result *r);
enum probe_result probe_tcp_end(int fd, const struct addr *to, uint16_t port);
/* An errno as a result. `sync`: the call itself said it, not the network. */
enum probe_result probe_errno(int err, bool sync);
/* What became of a connection that was made, by its errno. */
enum probe_result probe_tcp_result(int err);

/* What a datagram has to be the answer to; malloc'ed. */
struct probe_asked {
	size_t len;
	uint8_t b[];
};
struct probe_asked *probe_asked_new(const void *b, size_t len);

/* probe_udp.c, as probe_tcp.c. True: ended, with `*end`; else `*end` is what it
 * ends with if nothing else comes. */
int probe_udp_socket(const struct addr *to);
bool probe_udp_begin(int fd, const struct addr *to, uint16_t port,
    const struct probe_check *check, struct probe_asked **asked,
    struct probe_end *end);
bool probe_udp_end(int fd, const struct probe_asked *asked,
    struct probe_end *end);
/* probe_dns.c; its socket is probe_udp_socket()'s. */
bool probe_dns_begin(int fd, const struct addr *to, uint16_t port,
    const struct probe_check *check, struct probe_asked **asked,
    struct probe_end *end);
bool probe_dns_end(int fd, const struct probe_asked *asked,
    struct probe_end *end);
/* probe_icmp.c, as probe_udp.c. The socket takes NET_RAW to make. `size` as in
 * struct probe_request. */
int probe_icmp_socket(const struct addr *to);
bool probe_icmp_begin(int fd, const struct addr *to, uint16_t size,
    struct probe_asked **asked, struct probe_end *end);
bool probe_icmp_end(int fd, const struct addr *to,
    const struct probe_asked *asked, struct probe_end *end);
/* RFC 1071; 0 over a message that has its sum in it. */
uint16_t probe_icmp_sum(const void *b, size_t len);
/*
 * probe_error.c: ICMP errors about packets of the tunnels (core/path_error.h).
 * The socket takes NET_RAW to make; a descriptor, or -errno. In the prober: one
 * message, `*others` counts those that were about something else. True: ended,
 * with whom the packet was for, who says so, and the MTU as detail.
 */
int probe_error_socket(bool is4);
bool probe_error_end(int fd, const struct addr *family, uint16_t gue_port,
    uint16_t *others, struct probe_end *end);
/* In xlbd: what is in `end`. False: the prober has said something else. */
bool probe_error_read(const struct probe_end *end, struct addr *to,
    struct addr *from);
/* Connects; sends one datagram. True: it failed. */
bool probe_datagram_connect(int fd, const struct addr *to, uint16_t port,
    struct probe_end *end);
bool probe_datagram_send(int fd, const void *b, size_t len,
    struct probe_end *end);
/* Takes one into `*got`, which is static. Its length; -1: none after all,
 * -2: ended. */
ssize_t probe_datagram_take(int fd, const uint8_t **got, struct probe_end *end);

mono_t probe_now(void);

/* The one descriptor in a message, or -1. Closes any further one. */
struct msghdr;
int probe_fd_take(struct msghdr *msg);
/* Sends `len` bytes and, if `pass` is not -1, a descriptor. 0, or -errno. */
int probe_send(int fd, const void *buf, size_t len, int pass, int flags);

#endif
