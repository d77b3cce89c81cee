/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A keepalived.conf as a configuration of ours: the top, and what its parts
 * share. */
#include "core/keepalived_int.h"

#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/conf_schema.h"
#include "core/conf_value.h"
#include "core/text.h"

#define HOUR_SECONDS 3600
#define RANGE_MAX 1024		/* addresses of one line of a group */
#define SHOW_MAX 160

static const struct ka_word top_words[] = {
	{ "vrrp_sync_group", "there is no master: all nodes serve" },
	{ "vrrp_script", "a node that cannot serve withdraws by itself; xlb "
	    "drain node does it by hand" },
	{ "vrrp_track_process", "see vrrp_script" },
	{ "vrrp_track_file", "see vrrp_script" },
	{ "track_file", "see vrrp_script" },
	{ "bfd_instance", "BFD is BIRD's: bgp.neighbors[].bfd, or bird.conf" },
	{ "static_ipaddress", "addresses of the host are the network "
	    "configuration's" },
	{ "static_routes", "routes of the host are the network "
	    "configuration's" },
	{ "static_rules", "rules of the host are the network "
	    "configuration's" },
	{ "SSL", "https checks have ca, and no certificate of their own" },
	{ "net_namespace", "start xlbd in the namespace, with directories of "
	    "its own (xlbd(8))" },
	{ "net_namespace_ipvs", "see net_namespace" },
	{ "namespace_with_ipsets", NULL },
	{ "garp_group", "nobody is told an address by ARP" },
	{ "track_group", "see vrrp_sync_group" },
	{ "static_track_group", "see vrrp_sync_group" },
	{ "interface_up_down_delays", "bgp.hold damps" },
	{ "linkbeat_use_polling", NULL },
	{ "linkbeat_interfaces", NULL },
	{ "instance", NULL },
	{ "use_pid_dir", NULL },
	{ "child_wait_time", NULL },
	{ NULL, NULL }
};

static const struct ka_word global_words[] = {
	{ "notification_email", "no mail is sent; follow the journal or xlb "
	    "status" },
	{ "notification_email_from", NULL },	/* said with the above */
	{ "smtp_server", NULL },
	{ "smtp_helo_name", NULL },
	{ "smtp_connect_timeout", NULL },
	{ "smtp_alert", NULL },
	{ "smtp_alert_checker", NULL },
	{ "smtp_alert_vrrp", NULL },
	{ "no_email_faults", NULL },
	{ "lvs_id", NULL },	/* the old name of router_id */
	{ "lvs_sync_daemon", "needs none: every node sends a flow to the same "
	    "backend" },
	{ "lvs_timeouts", "flows are forgotten as xlb.yaml(5) says" },
	{ "lvs_flush", "xlb restart --flush" },
	{ "lvs_flush_onstop", "xlb stop leaves nothing" },
	{ "startup_script", "no scripts are run; ExecStartPre= in a drop-in "
	    "of xlb.service" },
	{ "shutdown_script", "no scripts are run; ExecStopPost= in a drop-in "
	    "of xlb.service" },
	{ "script_user", "user of an exec check" },
	{ "enable_script_security", NULL },
	{ "snmp_server", NULL },
	{ "enable_snmp_checker", "there are metrics instead of SNMP" },
	{ "enable_snmp_vrrp", "there are metrics instead of SNMP" },
	{ "enable_traps", "there are metrics instead of SNMP" },
	{ "checker_log_all_failures", NULL },
	{ "default_interface", NULL },
	{ "dynamic_interfaces", NULL },
	{ "process_names", NULL },
	{ NULL, NULL }
};

static void
said(struct ka_job *j, enum diag_level level, const struct ka_stmt *s,
    const char *fmt, va_list ap)
{
	char text[512], words[SHOW_MAX] = "", buf[TEXT_SHOW_MAX];
	size_t i, n = 0;

	vsnprintf(text, sizeof(text), fmt, ap);
	for (i = 0; i < s->nword && i < 3 && n < sizeof(words); i++)
		n += (size_t)snprintf(words + n, sizeof(words) - n, "%s%s",
		    i > 0 ? " " : "", text_show(s->word[i], buf));
	diag_add(j->dg, level, s->mark, "%s: %s", words, text);
}

void
ka_note(struct ka_job *j, const struct ka_stmt *s, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	said(j, DIAG_WARNING, s, fmt, ap);
	va_end(ap);
}

void
ka_fault(struct ka_job *j, const struct ka_stmt *s, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	said(j, DIAG_ERROR, s, fmt, ap);
	va_end(ap);
}

bool
ka_is(const struct ka_stmt *s, const char *word)
{
	return strcmp(s->word[0], word) == 0;
}

bool
ka_known(struct ka_job *j, const struct ka_stmt *s,
    const struct ka_word *table)
{
	for (; table->word != NULL; table++) {
		if (!ka_is(s, table->word))
			continue;
		if (table->why != NULL)
			ka_note(j, s, "no equal: %s", table->why);
		return true;
	}
	return false;
}

void
ka_unknown(struct ka_job *j, const struct ka_stmt *s)
{
	ka_note(j, s, "not known here; left out");
}

const char *
ka_first(struct ka_job *j, const struct ka_stmt *s)
{
	if (s->nword > 1)
		return s->word[1];
	ka_fault(j, s, "has no value");
	return "";
}

const char *
ka_arg(struct ka_job *j, const struct ka_stmt *s)
{
	if (s->nword > 2)
		ka_note(j, s, "takes one value; what follows on the line is "
		    "left out");
	return ka_first(j, s);
}

uint32_t
ka_number(struct ka_job *j, const struct ka_stmt *s, const char *text,
    uint32_t low, uint32_t high)
{
	unsigned long n;
	char *end;

	n = strtoul(text, &end, 10);
	if (text[0] >= '0' && text[0] <= '9' && *end == '\0' && n >= low &&
	    n <= high)
		return (uint32_t)n;
	if (*text != '\0')	/* else it was said */
		ka_fault(j, s, "%s is not in %u..%u", text, low, high);
	return low;
}

bool
ka_bool(const struct ka_stmt *s)
{
	return s->nword < 2 || (strcmp(s->word[1], "off") != 0 &&
	    strcmp(s->word[1], "false") != 0 && strcmp(s->word[1], "no") != 0);
}

uint32_t
ka_msec(struct ka_job *j, const struct ka_stmt *s)
{
	const char *text = ka_arg(j, s);
	double seconds;
	char *end;

	seconds = strtod(text, &end);
	if (end != text && *end == '\0' && seconds > 0 &&
	    seconds <= HOUR_SECONDS)
		return seconds < 0.001 ? 1 : (uint32_t)(seconds * 1000 + 0.5);
	if (*text != '\0')
		ka_fault(j, s, "is no time in seconds, above 0 and up to an "
		    "hour");
	return 1000;
}

bool
ka_timer(struct ka_job *j, const struct ka_stmt *s, struct ka_timers *t)
{
	if (ka_is(s, "delay_loop")) {
		t->interval_ms = ka_msec(j, s);
	} else if (ka_is(s, "connect_timeout")) {
		t->timeout_ms = ka_msec(j, s);
	} else if (ka_is(s, "retry") || ka_is(s, "nb_get_retry") ||
	    ka_is(s, "nb_sock_retry")) {
		t->retry = ka_number(j, s, ka_arg(j, s), 0, 999);
	} else if (ka_is(s, "delay_before_retry")) {
		ka_note(j, s, "no equal: probes follow each other by the "
		    "interval, failed ones too");
	} else {
		return false;
	}
	return true;
}

const char *
ka_name(struct ka_job *j, const struct addr *a)
{
	char buf[ADDR_STR_MAX], *s;

	addr_print(a, buf);
	for (s = buf; *s != '\0'; s++)
		if (*s == '.' || *s == ':')
			*s = '-';
	return arena_printf(j->a, "ip-%s", buf);
}

static void
port_add(struct ka_job *j, struct ka_server *v, const struct ka_stmt *s,
    const struct addr *a, uint16_t port)
{
	struct ka_port *row = arena_grow(j->a, &v->port, v->nport++,
	    sizeof(*row));

	row->address = *a;
	row->port = port;
	row->mark = s->mark;
}

/* `a` and those after it, up to `last`. */
static void
range_add(struct ka_job *j, struct ka_server *v, const struct ka_stmt *s,
    struct addr a, const struct addr *last, uint16_t port)
{
	size_t n = 0;
	int i;

	if (addr_is4(&a) != addr_is4(last) || addr_cmp(&a, last) > 0) {
		ka_fault(j, s, "is no range of addresses");
		return;
	}
	for (;;) {
		if (n++ == RANGE_MAX) {
			ka_note(j, s, "more than %d addresses: the rest is "
			    "left out", RANGE_MAX);
			return;
		}
		port_add(j, v, s, &a, port);
		if (addr_cmp(&a, last) == 0)
			return;
		for (i = 15; ++a.b[i] == 0; i--)
			;
	}
}

/* "192.0.2.1-9", "192.0.2.1-192.0.3.1", "2001:db8::1-f": the last one. 0 or -1 */
static int
last_parse(const char *first, const char *text, struct addr *out)
{
	const char *cut = strrchr(first, strchr(first, ':') != NULL ? ':' :
	    '.');
	char buf[2 * ADDR_STR_MAX];

	if (addr_parse(text, out) == 0)
		return 0;
	if (cut == NULL || strlen(text) > 4)
		return -1;
	snprintf(buf, sizeof(buf), "%.*s%s", (int)(cut - first) + 1, first,
	    text);
	return addr_parse(buf, out);
}

/* An address, a range, or a prefix, all of whose addresses are meant. */
static void
place_take(struct ka_job *j, struct ka_server *v, const struct ka_stmt *s,
    const char *text, uint16_t port)
{
	char first[ADDR_STR_MAX + 8];
	size_t len = strcspn(text, "-/");
	struct addr a, last;
	unsigned i;

	snprintf(first, sizeof(first), "%.*s", (int)len, text);
	if (len >= sizeof(first) || addr_parse(first, &a) < 0) {
		ka_fault(j, s, "%s is not an address", first);
	} else if (text[len] == '\0') {
		port_add(j, v, s, &a, port);
	} else if (text[len] == '-') {
		if (last_parse(first, text + len + 1, &last) < 0)
			ka_fault(j, s, "is no range of addresses");
		else
			range_add(j, v, s, a, &last, port);
	} else {
		i = ka_number(j, s, text + len + 1, 0, addr_bits(&a)) + 128 -
		    addr_bits(&a);
		for (last = a; i < 128; i++) {
			a.b[i / 8] &= (uint8_t)~(0x80 >> i % 8);
			last.b[i / 8] |= (uint8_t)(0x80 >> i % 8);
		}
		range_add(j, v, s, a, &last, port);
	}
}

static void
group_take(struct ka_job *j, struct ka_server *v, const struct ka_stmt *s)
{
	const struct ka_stmt *g, *k;

	for (g = j->top; g != NULL; g = g->next)
		if (ka_is(g, "virtual_server_group") && g->nword > 1 &&
		    strcmp(g->word[1], v->name) == 0)
			break;
	if (g == NULL) {
		ka_fault(j, s, "there is no such virtual_server_group");
		return;
	}
	for (k = g->child; k != NULL; k = k->next) {
		if (ka_is(k, "fwmark"))
			ka_note(j, k, "no equal: packets are known by address "
			    "and port; write those");
		else
			place_take(j, v, k, k->word[0], k->nword > 1 ?
			    (uint16_t)ka_number(j, k, k->word[1], 0, 65535) :
			    0);
	}
}

static void
server_take(struct ka_job *j, const struct ka_stmt *s)
{
	struct ka_server v = { .stmt = s, .proto = IPPROTO_TCP,
	    .forward = FORWARD_IPIP, .by_weight = true, .quorum = 1,
	    .timers.retry = UINT32_MAX };
	const char *what = ka_first(j, s);

	if (strcmp(what, "fwmark") == 0) {
		ka_note(j, s, "no equal: packets are known by address and "
		    "port; write those");
		return;
	}
	if (strcmp(what, "group") == 0) {
		if (s->nword < 3) {
			ka_fault(j, s, "has no name");
			return;
		}
		v.name = s->word[2];
		group_take(j, &v, s);
		if (!name_is_valid(v.name))
			v.name = NULL;
	} else if (*what != '\0') {
		place_take(j, &v, s, what, s->nword > 2 ?
		    (uint16_t)ka_number(j, s, s->word[2], 0, 65535) : 0);
	}
	if (v.nport > 0)
		ka_server_build(j, &v);
}

static void
interface_add(struct ka_job *j, const char *name)
{
	struct conf_interface *row;
	size_t i;

	for (i = 0; i < j->c->ninterface; i++)
		if (strcmp(j->c->interface[i].name, name) == 0)
			return;
	row = arena_grow(j->a, &j->c->interface, j->c->ninterface++,
	    sizeof(*row));
	row->name = name;
	row->xdp = XDP_MODE_NATIVE;
}

/* An address of VRRP that no service has belongs to the host. */
static void
virtual_address_take(struct ka_job *j, const struct ka_stmt *s)
{
	char text[ADDR_STR_MAX + 8];
	const struct conf_service *sv;
	struct addr a;
	size_t i, k;

	snprintf(text, sizeof(text), "%.*s", (int)strcspn(s->word[0], "/"),
	    s->word[0]);
	if (addr_parse(text, &a) < 0) {
		ka_fault(j, s, "is not an address");
		return;
	}
	for (i = 0; i < j->nservice; i++) {
		sv = j->service[i];
		for (k = 0; k < sv->naddress; k++)
			if (addr_cmp(&sv->address[k].address, &a) == 0)
				return;
	}
	ka_note(j, s, "no equal: no virtual_server has this address, and only "
	    "services are announced; keep VRRP for it, or route it");
}

static void
vrrp_take(struct ka_job *j, const struct ka_stmt *s)
{
	const struct ka_stmt *k, *v;

	ka_note(j, s, "no equal: every node announces the addresses by BGP, "
	    "and routers spread over all; write a bgp: section");
	for (k = s->child; k != NULL; k = k->next) {
		if (ka_is(k, "interface"))
			interface_add(j, ka_arg(j, k));
		else if (ka_is(k, "virtual_ipaddress") ||
		    ka_is(k, "virtual_ipaddress_excluded"))
			for (v = k->child; v != NULL; v = v->next)
				virtual_address_take(j, v);
		else if (strncmp(k->word[0], "notify", 6) == 0)
			ka_note(j, k, "no equal: no scripts are run; follow "
			    "the journal or xlb status");
	}
}

static void
global_take(struct ka_job *j, const struct ka_stmt *s)
{
	const struct ka_stmt *k;
	const char *name;

	for (k = s->child; k != NULL; k = k->next) {
		if (ka_is(k, "router_id")) {
			name = ka_arg(j, k);
			if (strlen(name) <= 64)
				j->c->node_name = name;
			else
				ka_note(j, k, "too long for node.name");
		} else if (strncmp(k->word[0], "vrrp_", 5) != 0 &&
		    !ka_known(j, k, global_words)) {
			ka_unknown(j, k);
		}
	}
}

/* Flat arrays, and the pointers between them. */
static void
arrays_build(struct ka_job *j)
{
	struct conf *c = j->c;
	size_t i, k;

	c->ncheck = j->ncheck;
	c->check = arena_calloc(j->a, c->ncheck, sizeof(*c->check));
	for (i = 0; i < c->ncheck; i++)
		c->check[i] = *j->check[i];
	c->npool = j->npool;
	c->pool = arena_calloc(j->a, c->npool, sizeof(*c->pool));
	for (i = 0; i < c->npool; i++) {
		c->pool[i] = *j->pool[i];
		for (k = 0; k < c->ncheck; k++)
			if (c->pool[i].check == j->check[k])
				break;
		c->pool[i].check = k < c->ncheck ? &c->check[k] : NULL;
	}
	c->nservice = j->nservice;
	c->service = arena_calloc(j->a, c->nservice, sizeof(*c->service));
	for (i = 0; i < c->nservice; i++) {
		c->service[i] = *j->service[i];
		for (k = 0; c->service[i].pool != j->pool[k]; k++)
			;
		c->service[i].pool = &c->pool[k];
	}
}

int
ka_import(const struct ka_stmt *top, struct arena *a, struct conf *out,
    struct diag *dg)
{
	struct ka_job j = { .a = a, .dg = dg, .top = top, .c = out };
	size_t errors = dg->errors;
	const struct ka_stmt *s;

	memset(out, 0, sizeof(*out));
	conf_defaults(schema_root(), a, out);
	for (s = top; s != NULL; s = s->next)
		if (ka_is(s, "virtual_server"))
			server_take(&j, s);
	for (s = top; s != NULL; s = s->next) {
		if (ka_is(s, "vrrp_instance"))
			vrrp_take(&j, s);
		else if (ka_is(s, "global_defs"))
			global_take(&j, s);
		else if (!ka_is(s, "virtual_server") &&
		    !ka_is(s, "virtual_server_group") &&
		    !ka_known(&j, s, top_words))
			ka_unknown(&j, s);
	}
	if (dg->errors == errors && j.nservice > 0 && out->ninterface == 0) {
		diag_add(dg, DIAG_WARNING, top->mark, "no vrrp_instance names "
		    "an interface: put yours in the place of eth0");
		interface_add(&j, "eth0");
	}
	arrays_build(&j);
	diag_sort(dg);
	return dg->errors > errors ? -1 : 0;
}
