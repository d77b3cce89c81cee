/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The key table and the table of limits. */
#include "core/conf_schema.h"

#include <inttypes.h>
#include <string.h>

#include "core/conf.h"
#include "core/conf_value.h"

#define AT(type, field) .offset = offsetof(struct type, field)
#define ALSO(type, field) .also = offsetof(struct type, field)
#define COUNTOF(a) (sizeof(a) / sizeof((a)[0]))
#define KEYS(table) .key = (table), .n = COUNTOF(table)

#define HOUR_MS (60 * 60 * 1000)
#define ASN_MAX 4294967294	/* 4294967295 is reserved, RFC 7300 */

#define FOR_HTTP (1U << CHECK_HTTP | 1U << CHECK_HTTPS)
#define FOR_PORT (~(1U << CHECK_ICMP))
#define FOR_HTTPS (1U << CHECK_HTTPS)
#define FOR_UDP (1U << CHECK_UDP)
#define FOR_DNS (1U << CHECK_DNS)
#define FOR_EXEC (1U << CHECK_EXEC)

static const struct key_value node_states[] = {
	{ "active", NODE_ACTIVE },
	{ "drain", NODE_DRAIN },
	{ NULL, 0 }
};

static const struct key_value xdp_modes[] = {
	{ "native", XDP_MODE_NATIVE },
	{ "generic", XDP_MODE_GENERIC },
	{ "auto", XDP_MODE_AUTO },
	{ NULL, 0 }
};

static const struct key_value check_types[] = {
	{ "tcp", CHECK_TCP },
	{ "http", CHECK_HTTP },
	{ "https", CHECK_HTTPS },
	{ "udp", CHECK_UDP },
	{ "dns", CHECK_DNS },
	{ "icmp", CHECK_ICMP },
	{ "exec", CHECK_EXEC },
	{ NULL, 0 }
};

static const struct key_value check_vias[] = {
	{ "tunnel", VIA_TUNNEL },
	{ "direct", VIA_DIRECT },
	{ NULL, 0 }
};

static const struct key_value backend_states[] = {
	{ "active", BACKEND_ACTIVE },
	{ "drain", BACKEND_DRAIN },
	{ "down", BACKEND_DOWN },
	{ NULL, 0 }
};

static const struct key_value forwards[] = {
	{ "ipip", FORWARD_IPIP },
	{ "gue", FORWARD_GUE },
	{ "l2", FORWARD_L2 },
	{ "nat", FORWARD_NAT },
	{ NULL, 0 }
};

static const struct key_value hash_kinds[] = {
	{ "flow", HASH_FLOW },
	{ "source", HASH_SOURCE },
	{ NULL, 0 }
};

static const struct key_value udp_kinds[] = {
	{ "session", UDP_SESSION },
	{ "datagram", UDP_DATAGRAM },
	{ NULL, 0 }
};

static const struct key node_keys[] = {
	{ "name", KEY_TEXT, AT(conf, node_name), .min = 1, .max = 64,
	    .def = "", .unset = "the host's name",
	    .help = "what this node is called in status and metrics" },
	{ "state", KEY_ENUM, AT(conf, node_state), .value = node_states,
	    .def = "active",
	    .help = "drain withdraws every address and keeps forwarding" },
};

static const struct key interface_keys[] = {
	{ "name", KEY_IFNAME, KEY_REQUIRED, AT(conf_interface, name),
	    .help = "the interface on which packets for the services arrive" },
	{ "xdp", KEY_ENUM, AT(conf_interface, xdp), .value = xdp_modes,
	    .def = "native",
	    .help = "native needs the driver and never degrades; generic is "
	    "for trying out; auto takes native where it can" },
};

static const struct key tunnel_keys[] = {
	{ "source_ipv4", KEY_PREFIX4, AT(conf, source4),
	    ALSO(conf, has_source4), .unset = "the node's own address",
	    .help = "outer source of IPIP: this prefix, low bits per flow" },
	{ "source_ipv6", KEY_PREFIX6, AT(conf, source6),
	    ALSO(conf, has_source6), .unset = "the node's own address",
	    .help = "the same for backends with an IPv6 address" },
	{ "gue_port", KEY_U16, AT(conf, gue_port),
	    .min = 1, .max = 65535, .def = "6080",
	    .help = "UDP port on which backends take GUE" },
	{ "mtu", KEY_U32, KEY_ZERO_UNSET, AT(conf, tunnel_mtu),
	    .min = 1280, .max = 65535, .unset = "the link's",
	    .help = "MTU of the path to the backends, where that is less "
	    "than the link's" },
};

static const struct key nat_keys[] = {
	{ "source_ipv4", KEY_ADDRS4, AT(conf, nat4),
	    .unset = "the one that the route to the backend uses",
	    .help = "addresses of this node that IPv4 backends are asked "
	    "from" },
	{ "source_ipv6", KEY_ADDRS6, AT(conf, nat6),
	    .unset = "the one that the route to the backend uses",
	    .help = "the same for IPv6" },
};

static const struct key maglev_keys[] = {
	{ "table_size", KEY_U32, KEY_PRIME, AT(conf, table_size),
	    .min = 251, .max = 1048573, .def = "65537",
	    .help = "slots of each pool's ring, the same on every node" },
	{ "seed", KEY_U64, AT(conf, seed), .max = UINT64_MAX, .def = "0",
	    .help = "goes into the rings, the same on every node" },
	{ "key_file", KEY_PATH, AT(conf, key_file), .max = 4095,
	    .unset = "none",
	    .help = "128-bit secret that keys the flow hash, the same on "
	    "every node" },
};

static const struct key flow_table_keys[] = {
	{ "entries", KEY_U32, KEY_POW2, AT(conf, flow_entries),
	    .min = 1024, .max = 1 << 28, .def = "1048576",
	    .help = "entries of the flow table, rounded up to a power of "
	    "two" },
};

static const struct key neighbor_keys[] = {
	{ "address", KEY_ADDR, KEY_REQUIRED, AT(conf_neighbor, address),
	    .help = "the router" },
	{ "as", KEY_U32, KEY_REQUIRED, AT(conf_neighbor, as),
	    .min = 1, .max = ASN_MAX, .help = "its AS number" },
	{ "bfd", KEY_BOOL, AT(conf_neighbor, bfd), .def = "true",
	    .help = "watch the router with BFD" },
	{ "password", KEY_TEXT, KEY_NO_QUOTE, AT(conf_neighbor, password),
	    .min = 1, .max = 80, .unset = "none",
	    .help = "TCP MD5 password of the session" },
};

static const struct key bird_keys[] = {
	{ "directory", KEY_PATH, AT(conf_bgp, bird_directory), .max = 200,
	    .def = "/run/xlb-bird",
	    .help = "where the route lines that BIRD includes are written" },
	{ "socket", KEY_PATH, AT(conf_bgp, bird_socket), .max = 107,
	    .def = "/run/bird/bird.ctl", .help = "BIRD's control socket" },
};

static const struct section interface_section = {
	"interfaces[]", sizeof(struct conf_interface), KEYS(interface_keys)
};
static const struct section node_section = { "node", 0, KEYS(node_keys) };
static const struct section tunnel_section = {
	"tunnel", 0, KEYS(tunnel_keys)
};
static const struct section nat_section = { "nat", 0, KEYS(nat_keys) };
static const struct section maglev_section = {
	"maglev", 0, KEYS(maglev_keys)
};
static const struct section flow_table_section = {
	"flow_table", 0, KEYS(flow_table_keys)
};
static const struct section neighbor_section = {
	"bgp.neighbors[]", sizeof(struct conf_neighbor), KEYS(neighbor_keys)
};
static const struct section bird_section = { "bgp.bird", 0, KEYS(bird_keys) };

static const struct key bgp_keys[] = {
	{ "local_as", KEY_U32, KEY_REQUIRED, AT(conf_bgp, local_as),
	    .min = 1, .max = ASN_MAX, .help = "the AS number of this node" },
	{ "router_id", KEY_ADDR4, AT(conf_bgp, router_id),
	    .unset = "BIRD's choice", .help = "for bird-config" },
	{ "neighbors", KEY_LIST, AT(conf_bgp, neighbor),
	    ALSO(conf_bgp, nneighbor), .section = &neighbor_section,
	    .unset = "none", .help = "for bird-config: the routers" },
	{ "communities", KEY_COMMUNITIES, AT(conf_bgp, communities),
	    .unset = "none", .help = "on every address that is announced" },
	{ "hold", KEY_MSEC, AT(conf_bgp, hold_ms), .max = HOUR_MS,
	    .def = "5s", .help = "a service must be healthy this long before "
	    "its address is announced" },
	{ "graceful_shutdown", KEY_MSEC, AT(conf_bgp, graceful_shutdown_ms),
	    .max = HOUR_MS, .def = "30s", .help = "on drain and stop: announce "
	    "with community 65535:0 for this long, then withdraw; 0s: "
	    "withdraw at once" },
	{ "linger", KEY_MSEC, AT(conf_bgp, linger_ms), .max = HOUR_MS,
	    .def = "5s",
	    .help = "on stop: forward for this long after the withdrawal" },
	{ "fingerprint", KEY_BOOL, AT(conf_bgp, fingerprint),
	    .def = "false",
	    .help = "announce the ring's fingerprint as a large community" },
	{ "bird", KEY_SECTION, .section = &bird_section, .help = "where BIRD "
	    "is" },
};

static const struct key check_keys[] = {
	{ "type", KEY_ENUM, KEY_REQUIRED, AT(conf_check, type),
	    .value = check_types, .help = "how a backend is asked" },
	{ "port", KEY_U16, KEY_ZERO_UNSET, AT(conf_check, port),
	    .min = 1, .max = 65535,
	    .unset = "the service's port; required where that is *",
	    .only = FOR_PORT, .help = "port to probe" },
	{ "via", KEY_ENUM, KEY_ZERO_UNSET, AT(conf_check, via),
	    .value = check_vias, .unset = "tunnel; direct for l2 and nat",
	    .help = "tunnel probes the service's address through the "
	    "backend's tunnel, direct the backend's own address" },
	{ "interval", KEY_MSEC, AT(conf_check, interval_ms),
	    .min = 10, .max = HOUR_MS, .def = "2s",
	    .help = "time between two probes of a backend" },
	{ "timeout", KEY_MSEC, AT(conf_check, timeout_ms),
	    .min = 1, .max = HOUR_MS, .def = "1s",
	    .help = "a probe without an answer has failed after this long; "
	    "not above the interval, which also bounds the default" },
	{ "rise", KEY_U32, AT(conf_check, rise), .min = 1, .max = 1000,
	    .def = "2", .help = "passes in a row that make a backend up" },
	{ "fall", KEY_U32, AT(conf_check, fall), .min = 1, .max = 1000,
	    .def = "3", .help = "failures in a row that make it down" },
	{ "path", KEY_TEXT, AT(conf_check, path), .min = 1, .max = 1024,
	    .def = "/", .only = FOR_HTTP, .help = "path to ask for" },
	{ "method", KEY_TEXT, AT(conf_check, method), .min = 1, .max = 16,
	    .def = "GET", .only = FOR_HTTP, .help = "request method" },
	{ "host", KEY_TEXT, AT(conf_check, host), .min = 1, .max = 255,
	    .unset = "the address", .only = FOR_HTTP,
	    .help = "Host header" },
	{ "expect", KEY_CODES, AT(conf_check, expect), .def = "200",
	    .only = FOR_HTTP, .help = "status codes that pass; no redirection "
	    "is followed" },
	{ "drain_status", KEY_CODES, AT(conf_check, drain_status),
	    .def = "503", .only = FOR_HTTP,
	    .help = "status codes by which a backend asks for no new flows; "
	    "those that it has stay" },
	{ "body", KEY_TEXT, AT(conf_check, body), .min = 1, .max = 1024,
	    .unset = "any", .only = FOR_HTTP,
	    .help = "text that the first 64 KiB of the body have to hold" },
	{ "sni", KEY_TEXT, AT(conf_check, sni), .min = 1, .max = 255,
	    .unset = "none", .only = FOR_HTTPS, .help = "TLS server name" },
	{ "verify", KEY_BOOL, AT(conf_check, verify), .def = "true",
	    .only = FOR_HTTPS, .help = "check the certificate" },
	{ "ca", KEY_PATH, AT(conf_check, ca), .max = 4095,
	    .unset = "the system's", .only = FOR_HTTPS,
	    .help = "file of certificate authorities" },
	{ "send", KEY_TEXT, AT(conf_check, send), .min = 1, .max = 1024,
	    .unset = "nothing", .only = FOR_UDP, .help = "bytes of the datagram "
	    "that is sent" },
	{ "reply", KEY_TEXT, AT(conf_check, reply), .min = 1, .max = 1024,
	    .unset = "any", .only = FOR_UDP,
	    .help = "text that the reply has to hold; without a reply the check "
	    "fails" },
	{ "qname", KEY_TEXT, AT(conf_check, qname), .min = 1, .max = 255,
	    .unset = "the root", .only = FOR_DNS, .help = "name to ask for" },
	{ "qtype", KEY_TEXT, AT(conf_check, qtype), .min = 1, .max = 16,
	    .def = "A", .only = FOR_DNS, .help = "type to ask for" },
	{ "command", KEY_WORDS, AT(conf_check, command), .unset = "none",
	    .only = FOR_EXEC, .help = "program and arguments" },
	{ "user", KEY_TEXT, AT(conf_check, user), .min = 1, .max = 32,
	    .def = "nobody", .only = FOR_EXEC, .help = "user it runs as" },
};

static const struct key backend_keys[] = {
	{ "name", KEY_NAME, KEY_REQUIRED, AT(conf_backend, name),
	    .help = "a label, unique in the pool" },
	{ "address", KEY_ADDR, KEY_REQUIRED, AT(conf_backend, address),
	    .help = "what the backend is; once per pool" },
	{ "weight", KEY_U32, AT(conf_backend, weight), .max = 1000,
	    .def = "100", .help = "its share of the pool; 0 takes no new "
	    "flows" },
	{ "state", KEY_ENUM, AT(conf_backend, state),
	    .value = backend_states, .def = "active",
	    .help = "drain takes no new flows, down takes none" },
};

static const struct section backend_section = {
	"pools.NAME.backends[]", sizeof(struct conf_backend),
	KEYS(backend_keys)
};

static const struct key pool_keys[] = {
	{ "check", KEY_CHECK_REF, AT(conf_pool, check),
	    .unset = "none: always healthy", .help = "the check of each "
	    "backend" },
	{ "min_healthy", KEY_COUNT, AT(conf_pool, min_healthy),
	    ALSO(conf_pool, min_healthy_percent), .min = 1,
	    .max = CONF_BACKENDS_MAX, .def = "1", .help = "eligible backends "
	    "that make the pool ready" },
	{ "fail_open", KEY_BOOL, AT(conf_pool, fail_open), .def = "false",
	    .help = "with no healthy backend, use all of them" },
	{ "backends", KEY_LIST, AT(conf_pool, backend),
	    ALSO(conf_pool, nbackend), .section = &backend_section,
	    .unset = "none", .help = "the servers" },
};

static const struct key address_keys[] = {
	{ "address", KEY_ADDR, KEY_REQUIRED, AT(conf_address, address),
	    .help = "the virtual address" },
	{ "communities", KEY_COMMUNITIES, AT(conf_address, communities),
	    .unset = "none", .help = "besides those of bgp.communities" },
	{ "med", KEY_U32, AT(conf_address, med),
	    ALSO(conf_address, has_med), .max = UINT32_MAX, .unset = "none",
	    .help = "multi-exit discriminator" },
	{ "prepend", KEY_U32, AT(conf_address, prepend), .max = 16,
	    .def = "0", .help = "how often the AS is prepended" },
	{ "announce", KEY_PREFIX, AT(conf_address, announce),
	    ALSO(conf_address, has_announce), .unset = "the address alone",
	    .help = "prefix to announce, which holds the address" },
};

static const struct section address_section = {
	"services[].addresses[]", sizeof(struct conf_address),
	KEYS(address_keys)
};

static const struct key service_keys[] = {
	{ "name", KEY_NAME, KEY_REQUIRED, AT(conf_service, name),
	    .help = "unique among services" },
	{ "addresses", KEY_ADDRESSES, KEY_REQUIRED,
	    AT(conf_service, address), ALSO(conf_service, naddress),
	    .section = &address_section, .help = "virtual addresses" },
	{ "listen", KEY_LISTENS, KEY_REQUIRED, AT(conf_service, listen),
	    ALSO(conf_service, nlisten), .help = "what is balanced; * is "
	    "every port that no other service names" },
	{ "pool", KEY_POOL_REF, KEY_REQUIRED, AT(conf_service, pool),
	    .help = "where packets go" },
	{ "forward", KEY_ENUM, AT(conf_service, forward),
	    .value = forwards, .def = "ipip",
	    .help = "how packets reach a backend" },
	{ "hash", KEY_ENUM, AT(conf_service, hash), .value = hash_kinds,
	    .def = "flow", .help = "flow spreads by the 5-tuple, source by "
	    "the client's address" },
	{ "udp", KEY_ENUM, KEY_ZERO_UNSET, AT(conf_service, udp),
	    .value = udp_kinds, .unset = "session; datagram on port 53",
	    .help = "datagram: no packet has to do with another" },
	{ "required", KEY_BOOL, AT(conf_service, required), .def = "true",
	    .help = "an address is announced only while its required "
	    "services are ready" },
	{ "backend_port", KEY_U16, KEY_ZERO_UNSET,
	    AT(conf_service, backend_port), .min = 1, .max = 65535,
	    .unset = "the service's port", .help = "port on the backend, "
	    "with forward: nat" },
};

static const struct key metrics_keys[] = {
	{ "listen", KEY_METRICS, .offset = 0, .def = "127.0.0.1:9555",
	    .help = "where metrics and the status page are" },
};

static const struct section bgp_section = { "bgp", 0, KEYS(bgp_keys) };
static const struct section check_section = {
	"checks.NAME", sizeof(struct conf_check), KEYS(check_keys)
};
static const struct section pool_section = {
	"pools.NAME", sizeof(struct conf_pool), KEYS(pool_keys)
};
static const struct section service_section = {
	"services[]", sizeof(struct conf_service), KEYS(service_keys)
};
static const struct section metrics_section = {
	"metrics", 0, KEYS(metrics_keys)
};

static const struct key root_keys[] = {
	{ "node", KEY_SECTION, .section = &node_section,
	    .help = "this machine" },
	{ "interfaces", KEY_LIST, AT(conf, interface),
	    ALSO(conf, ninterface), .section = &interface_section,
	    .unset = "none; required where there are services",
	    .help = "XDP is attached to each" },
	{ "tunnel", KEY_SECTION, .section = &tunnel_section,
	    .help = "the way to the backends" },
	{ "nat", KEY_SECTION, .section = &nat_section,
	    .help = "for services with forward: nat" },
	{ "maglev", KEY_SECTION, .section = &maglev_section,
	    .help = "the rings; equal on every node" },
	{ "flow_table", KEY_SECTION, .section = &flow_table_section,
	    .help = "memory of flows" },
	{ "bgp", KEY_SECTION, AT(conf, bgp), ALSO(conf, bgp.present),
	    .section = &bgp_section, .unset = "nothing is announced",
	    .help = "what BIRD announces" },
	{ "checks", KEY_NAMED, KEY_FRAGMENT, AT(conf, check),
	    ALSO(conf, ncheck), .section = &check_section, .unset = "none",
	    .help = "health checks by name" },
	{ "pools", KEY_NAMED, KEY_FRAGMENT, AT(conf, pool),
	    ALSO(conf, npool), .section = &pool_section, .unset = "none",
	    .help = "pools of backends by name" },
	{ "services", KEY_LIST, KEY_FRAGMENT, AT(conf, service),
	    ALSO(conf, nservice), .section = &service_section,
	    .unset = "none", .help = "virtual services" },
	{ "metrics", KEY_SECTION, .section = &metrics_section,
	    .help = "Prometheus metrics and the status page" },
};

static const struct section root_section = { "", 0, KEYS(root_keys) };

static const struct conf_limit conf_limit[LIMIT_COUNT] = {
	[LIMIT_SERVICES] = { "services", CONF_SERVICES_MAX,
	    "entries of services:" },
	[LIMIT_LISTENERS] = { "listeners", CONF_LISTENERS_MAX,
	    "(address, protocol, port) in all services" },
	[LIMIT_POOLS] = { "pools", CONF_POOLS_MAX, "one ring each" },
	[LIMIT_BACKENDS] = { "backends", CONF_BACKENDS_MAX,
	    "summed over the pools" },
	[LIMIT_CHECKS] = { "checks", CONF_CHECKS_MAX, "one for each pool" },
	[LIMIT_TARGETS] = { "probe targets", CONF_TARGETS_MAX,
	    "(backend, port) of every pool with a check" },
	[LIMIT_INTERFACES] = { "interfaces", CONF_INTERFACES_MAX,
	    "XDP is attached to each" },
	[LIMIT_NEIGHBORS] = { "neighbors", CONF_NEIGHBORS_MAX,
	    "entries of bgp.neighbors" },
	[LIMIT_SOURCES] = { "NAT addresses", CONF_SOURCES_MAX,
	    "of one family in nat" },
	[LIMIT_NAME] = { "bytes of a name", CONF_NAME_MAX,
	    "of a service, check, pool or backend" },
};

const struct conf_limit *
conf_limit_get(enum conf_limit_kind kind)
{
	return &conf_limit[kind];
}

const struct section *
schema_root(void)
{
	return &root_section;
}

const struct key *
schema_find(const struct section *s, const char *name)
{
	size_t i;

	for (i = 0; i < s->n; i++)
		if (strcmp(s->key[i].name, name) == 0)
			return &s->key[i];
	return NULL;
}

void
schema_walk(const struct section *s,
    void (*fn)(const struct section *s, const struct key *k, void *arg),
    void *arg)
{
	size_t i;

	for (i = 0; i < s->n; i++) {
		fn(s, &s->key[i], arg);
		if (s->key[i].section != NULL)
			schema_walk(s->key[i].section, fn, arg);
	}
}

static void
values_print(const struct key *k, FILE *out)
{
	const struct key_value *v;

	for (v = k->value; v->name != NULL; v++)
		fprintf(out, "%s%s", v == k->value ? "" : ", ", v->name);
}

static void
msec_range_print(const struct key *k, FILE *out)
{
	char low[MSEC_STR_MAX], high[MSEC_STR_MAX];

	fprintf(out, "duration %s..%s", msec_print((uint32_t)k->min, low),
	    msec_print((uint32_t)k->max, high));
}

static void
type_print(const struct key *k, FILE *out)
{
	static const char *const word[] = {
		[KEY_BOOL] = "true, false",
		[KEY_NAME] = "name",
		[KEY_IFNAME] = "interface",
		[KEY_PATH] = "absolute path",
		[KEY_ADDR] = "address",
		[KEY_ADDR4] = "IPv4 address",
		[KEY_PREFIX] = "prefix",
		[KEY_PREFIX4] = "IPv4 prefix",
		[KEY_PREFIX6] = "IPv6 prefix",
		[KEY_METRICS] = "address:port, off",
		[KEY_CHECK_REF] = "name of a check",
		[KEY_POOL_REF] = "name of a pool",
		[KEY_COMMUNITIES] = "list of A:B or A:B:C",
		[KEY_CODES] = "list of codes or ranges",
		[KEY_WORDS] = "list of texts",
		[KEY_ADDRS4] = "list of IPv4 addresses",
		[KEY_ADDRS6] = "list of IPv6 addresses",
		[KEY_LISTENS] = "list of tcp/PORT, udp/PORT, tcp/*, udp/*",
		[KEY_SECTION] = "mapping",
		[KEY_LIST] = "list of mappings",
		[KEY_ADDRESSES] = "list of addresses or mappings",
		[KEY_NAMED] = "mapping by name",
	};

	switch (k->type) {
	case KEY_U16:
	case KEY_U32:
	case KEY_U64:
		fprintf(out, "%s %" PRIu64 "..%" PRIu64,
		    k->flags & KEY_PRIME ? "prime in" : "integer", k->min,
		    k->max);
		break;
	case KEY_COUNT:
		fprintf(out, "integer %" PRIu64 "..%" PRIu64
		    ", or 1%%..100%%", k->min, k->max);
		break;
	case KEY_MSEC:
		msec_range_print(k, out);
		break;
	case KEY_ENUM:
		values_print(k, out);
		break;
	case KEY_TEXT:
		fprintf(out, "text of up to %" PRIu64 " bytes", k->max);
		break;
	default:
		fputs(word[k->type], out);
	}
}

static void
default_print(const struct key *k, FILE *out)
{
	if (k->flags & KEY_REQUIRED)
		fputs("; required", out);
	else if (k->unset != NULL)
		fprintf(out, "; default: %s", k->unset);
	else if (k->def != NULL)
		fprintf(out, "; default %s", k->def);
}

const char *
check_type_text(enum check_type t)
{
	const struct key_value *v;

	for (v = check_types; v->name != NULL && v->value != (int)t; v++)
		;
	return v->name != NULL ? v->name : "check";
}

const char *
key_only_print(unsigned only, char buf[KEY_ONLY_MAX])
{
	const struct key_value *v;
	size_t n = 0;

	buf[0] = '\0';
	for (v = check_types; v->name != NULL; v++)
		if (only & 1U << v->value)
			n += (size_t)snprintf(buf + n, KEY_ONLY_MAX - n,
			    "%s%s", n > 0 ? " or " : "", v->name);
	return buf;
}

void
key_describe(const struct key *k, FILE *out)
{
	char only[KEY_ONLY_MAX];

	type_print(k, out);
	default_print(k, out);
	if (k->only != 0)
		fprintf(out, "; only for type %s",
		    key_only_print(k->only, only));
}
