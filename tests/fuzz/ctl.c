/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Requests on the control socket: the socket's framing, the commands' arguments
 * and what becomes of them, in xlbd's own handlers, on a node without maps.
 * Byte 0 says how long the pieces are that come; a client that goes, or ends
 * its request, after the last one.
 */
#include "fuzz.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/arena.h"
#include "core/nat_sweep.h"
#include "core/state.h"
#include "daemon/daemon.h"
#include "io/conf_file.h"
#include "io/events.h"
#include "io/log.h"
#include "io/maps.h"

#define SETS 4
#define ROWS XLB_NAT_ROWS_MIN
#define TURNS 64

static const char yaml[] =
    "interfaces: [{name: eth0}]\n"
    "maglev: {table_size: 251}\n"
    "pools:\n"
    "  web: {backends: [{name: a, address: 10.0.0.1},\n"
    "    {name: b, address: 10.0.0.2, state: down}]}\n"
    "services:\n"
    "  - {name: www, addresses: [192.0.2.1, \"2001:db8::1\"],\n"
    "     listen: [tcp/80, \"udp/*\"], pool: web}\n";

static struct daemon d;
static uint64_t reloads[COUNT_RELOADS];
static struct xlb_flow_set flows[SETS];
static struct xlb_nat rows[ROWS];
static struct nat_sweep *nat;
static char dir[] = "/tmp/xlb-fuzz-XXXXXX";

/* The node: one next hop, all maps empty. */

int
reconcile_try(const struct daemon *node, const struct conf *conf,
    struct arena *a, struct state *found, struct state *wanted,
    struct diag *dg)
{
	static struct hop hop = { .status = HOP_OK, .nexthop = {
	    .ifindex = 2, .mtu = 1500, .mac = { 2 } } };
	static const struct hop_table hops = { &hop, 1 };
	static const struct health_table health = { NULL, 0 };
	struct state_input in = { .conf = conf, .health = &health,
	    .hops = &hops, .overrides = &node->overrides, .found = found };

	addr_parse("10.0.0.1", &hop.addr);
	memset(found, 0, sizeof(*found));
	return state_build(&in, a, wanted, dg);
}

struct maps *
prog_maps(struct prog *p)
{
	(void)p;
	return NULL;
}

bool
prog_growing(const struct prog *p)
{
	(void)p;
	return false;
}

uint32_t
maps_tick(void)
{
	return 1;
}

uint64_t
maps_clock(void)
{
	return 1ULL << 40;
}

uint32_t
maps_flow_entries(const struct maps *m)
{
	(void)m;
	return SETS * XLB_FLOW_WAYS;
}

const struct xlb_flow_set *
maps_flows(const struct maps *m, uint32_t *sets)
{
	(void)m;
	*sets = SETS;
	return flows;
}

struct maps_flows *
maps_flows_open(struct maps *m)
{
	static struct maps_flows f = { flows, SETS, rows, ROWS };

	(void)m;
	return &f;
}

void
maps_flows_close(struct maps_flows *f)
{
	(void)f;
}

void
maps_flows_nat(const struct maps *m, const struct maps_flows *f,
    const struct lookup_flow *flow, struct xlb_nat *out)
{
	(void)m, (void)f;
	memset(out, 0, sizeof(*out));
	out->word = flow->sport % 5;
	out->backend = flow->sport % 7;
}

struct nat_sweep *
maps_nat(struct maps *m)
{
	(void)m;
	return nat;
}

uint32_t
maps_nat_rows(const struct maps *m)
{
	(void)m;
	return ROWS;
}

uint64_t
maps_flows_find(const struct maps *m, const struct maps_flows *f,
    const struct lookup_flow *flow, uint32_t service_flags)
{
	(void)m, (void)f, (void)service_flags;
	return XLB_FLOW(flow->sport, flow->sport % 7, XLB_FLOW_CONFIRMED, 1);
}

int
maps_lookup(struct maps *m, const struct lookup_flow *f,
    struct maps_found *out)
{
	(void)m;
	memset(out, 0, sizeof(*out));
	FUZZ_CHECK(f->proto == IPPROTO_TCP || f->proto == IPPROTO_UDP);
	out->service = XLB_SERVICE_WORD(f->dport % 4, 0, 0, 0);
	out->backend = f->sport;
	return f->dport == 1 ? -2 : 0;
}

int
maps_ring_count(struct maps *m, uint32_t number, struct maps_ring_count *out)
{
	(void)m, (void)number;
	memset(out, 0, sizeof(*out));
	return 0;
}

int
events_open(sd_event *ev, struct maps *m, const struct events_fn *fn,
    struct events **out)
{
	(void)ev, (void)m, (void)fn;
	*out = NULL;
	return 0;
}

void
events_close(struct events *e)
{
	(void)e;
}

void
events_want(struct events *e, unsigned reader, const struct event_want *want)
{
	(void)e;
	FUZZ_CHECK(reader < XLB_EVENT_READERS);
	if (want != NULL)
		FUZZ_CHECK(want->one_in > 0 &&
		    (want->one_in & (want->one_in - 1)) == 0);
}

int
events_loss(struct events *e, struct event_loss loss[XLB_EVENT_READERS])
{
	(void)e;
	memset(loss, 0, sizeof(loss[0]) * XLB_EVENT_READERS);
	return 0;
}

static void
answer(struct ctl_request *rq)
{
	if (rq != NULL)
		ctl_reply(rq, ctl_message(0));
}

void
lifecycle_stop(struct daemon *node, bool flush, struct ctl_request *rq)
{
	(void)node, (void)flush;
	answer(rq);
}

void
lifecycle_update(struct daemon *node, const char *why)
{
	(void)node, (void)why;
}

void
lifecycle_bird_changed(struct daemon *node)
{
	(void)node;
}

const struct addr *
netlink_local(const struct netlink *nl, size_t *n)
{
	(void)nl;
	*n = 0;
	return NULL;
}

void
netlink_if(const struct netlink *nl, const char *name, struct netlink_if *out)
{
	(void)nl, (void)name;
	*out = (struct netlink_if){ .ifindex = 7, .mtu = 1500, .up = true };
}

void
reconcile_now(struct daemon *node)
{
	(void)node;
}

void
count_follow(struct count *c, const struct conf *conf)
{
	(void)c, (void)conf;
}

int
documents_listen(struct daemon *node, const struct conf *c)
{
	(void)node, (void)c;
	return 0;
}

void
health_follow(struct daemon *node, const struct conf *c)
{
	(void)node, (void)c;
}

void
routes_follow(struct daemon *node, const struct conf *old,
    const struct conf *new)
{
	(void)node, (void)old, (void)new;
}

void
path_follow(struct daemon *node)
{
	(void)node;
}

json_t *
stats_build(struct daemon *node)
{
	(void)node;
	return NULL;
}

json_t *
neighbors_build(struct daemon *node)
{
	(void)node;
	return json_object();
}

void
members_init(struct members *m, const struct conf *c)
{
	(void)c;
	memset(m, 0, sizeof(*m));
}

json_t *
members_json(const struct members *m, const struct addr *addr)
{
	(void)m, (void)addr;
	return json_array();
}

int64_t
daemon_realtime(void)
{
	return 1767873600000000000LL;
}

static void
log_drop(int level, const char *line, void *arg)
{
	(void)level, (void)line, (void)arg;
}

static void
end(void)
{
	ctl_close(d.ctl);
	nat_sweep_free(nat);
	if (chdir(dir) == 0) {
		unlink("xlb.lock");
		unlink("overrides");
		(void)!chdir("/");
		rmdir(dir);
	}
}

static void
begin(void)
{
	static const struct xlb_tables tables;
	struct diag dg;
	struct state found;
	json_t *sources = json_pack("[{s:s, s:s}]", "name", "f", "text", yaml);

	log_capture(log_drop, NULL);
	diag_init(&dg);
	FUZZ_CHECK(mkdtemp(dir) != NULL);
	d.opt.config = "/nonexistent/xlb.yaml";
	d.opt.run_dir = d.opt.state_dir = dir;
	d.config = config_from_sources(sources, NULL, &dg);
	FUZZ_CHECK(d.config != NULL);
	d.arena = arena_new();
	d.rings = ring_cache_new();
	nat = nat_sweep_new(&tables);
	FUZZ_CHECK(reconcile_try(&d, d.config->conf, d.arena, &found,
	    &d.wanted, &dg) == 0);
	d.link = calloc(1, sizeof(*d.link));
	d.count.reload = reloads;
	d.started = true;
	d.lifecycle.life = LIFE_STOP;	/* a restart would end the loop */
	FUZZ_CHECK(sd_event_new(&d.ev) >= 0 && listeners_open(&d) == 0);
	FUZZ_CHECK(ctl_open(d.ev, dir, handlers_request, &d, &d.ctl) == 0);
	diag_fini(&dg);
	json_decref(sources);
	atexit(end);
}

static int
client_connect(void)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);

	snprintf(sun.sun_path, sizeof(sun.sun_path), "%s/" CTL_SOCKET, dir);
	FUZZ_CHECK(fd >= 0 && connect(fd, (const struct sockaddr *)&sun,
	    sizeof(sun)) == 0);
	return fd;
}

static void
turn(void)
{
	int i;

	for (i = 0; i < TURNS && sd_event_run(d.ev, 0) > 0; i++)
		;
}

/* What it gets is one JSON object on each line, the first with an exit. */
static void
reply_check(int fd)
{
	static char buf[1 << 20];
	size_t len = 0;
	ssize_t n;
	json_t *o;
	char *eol;

	while (len < sizeof(buf) && (n = recv(fd, buf + len, sizeof(buf) - len,
	    0)) > 0)
		len += (size_t)n;
	eol = memchr(buf, '\n', len);
	if (eol == NULL)
		return;		/* it was given up */
	o = json_loadb(buf, (size_t)(eol - buf), 0, NULL);
	FUZZ_CHECK(json_is_integer(json_object_get(o, "exit")));
	FUZZ_CHECK(json_is_array(json_object_get(o, "errors")));
	json_decref(o);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct fuzz_in in = { data, data + len };
	const uint8_t *at;
	uint8_t kind = fuzz_byte(&in);
	size_t n, piece;
	int fd;

	if (d.ev == NULL)
		begin();
	piece = kind < 128 ? len + 1 : 1 + len / 16 + kind % 64;
	fd = client_connect();
	while (in.at < in.end) {
		n = piece;
		at = fuzz_bytes(&in, &n);
		if (send(fd, at, n, MSG_NOSIGNAL) < 0)
			break;
		turn();
	}
	if (kind & 1)
		shutdown(fd, SHUT_WR);
	turn();
	if (kind & 2)
		reply_check(fd);
	close(fd);
	turn();
	FUZZ_CHECK(d.scan == NULL);
	overrides_free(&d.overrides);
	memset(&d.overrides, 0, sizeof(d.overrides));
	return 0;
}
