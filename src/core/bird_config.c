/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes a complete bird.conf for a node that has no other use for BIRD. */
#include "core/bird_text.h"

#include <netinet/in.h>
#include <string.h>

static const char daemons[] =
    "\nprotocol device {\n}\n"
    "\n# A host or a path that is gone is seen within 300 ms.\n"
    "protocol bfd {\n"
    "\tstrict bind on;\n"
    "\tinterface \"*\" { interval 100 ms; multiplier 3; };\n"
    "\tmultihop { interval 100 ms; multiplier 3; };\n"
    "}\n";

/* No graceful restart: it keeps the routes of a node that is dead. */
static const char session[] =
    "\thold time 9;\n"
    "\tkeepalive time 3;\n"
    "\tgraceful restart off;\n"
    "\tconnect delay time 1;\n"
    "\tconnect retry time 5;\n"
    "\terror wait time 1, 5;\n";

/* The packaged wrapper (bird/xlb.conf) with a directory of its own. */
static void
wrapper_print(const char *dir, FILE *out)
{
	int v;

	fputs("\nipv4 table xlb4t;\nipv6 table xlb6t;\n"
	    "\nattribute int xlb_med;\n", out);
	for (v = 4; v <= 6; v += 2)
		fprintf(out, "\nprotocol static xlb%d {\n"
		    "\tipv%d { table xlb%dt; };\n"
		    "\tinclude \"%s/xlb%d*.conf\";\n}\n", v, v, v, dir, v);
	fputs("\nfilter xlb_export {\n"
	    "\tif defined(xlb_med) then bgp_med = xlb_med;\n"
	    "\taccept;\n}\n", out);
}

static bool
serves(const struct conf *c, int family)
{
	const struct conf_service *s;
	size_t i, j;

	for (i = 0; i < c->nservice; i++) {
		s = &c->service[i];
		for (j = 0; j < s->naddress; j++)
			if (addr_family(&s->address[j].address) == family)
				return true;
	}
	return false;
}

static bool
peers(const struct conf *c, int family)
{
	size_t i;

	for (i = 0; i < c->bgp.nneighbor; i++)
		if (addr_family(&c->bgp.neighbor[i].address) == family)
			return true;
	return false;
}

static void
channel_print(int v, bool extended, FILE *out)
{
	fprintf(out, "\tipv%d {\n\t\ttable xlb%dt;\n\t\timport none;\n"
	    "\t\texport filter xlb_export;\n\t\tnext hop self;\n%s\t};\n",
	    v, v, extended ? "\t\textended next hop on;\n" : "");
}

/*
 * A session carries its own family, and the other one too if that has virtual
 * addresses but no neighbour.
 */
static void
neighbor_print(const struct conf *c, size_t i, const struct addr *local,
    FILE *out)
{
	const struct conf_neighbor *nb = &c->bgp.neighbor[i];
	char buf[ADDR_STR_MAX];
	int own = addr_family(&nb->address);
	int other = own == AF_INET ? AF_INET6 : AF_INET;

	fprintf(out, "\nprotocol bgp xlb_peer%zu {\n\tlocal ", i + 1);
	if (local != NULL)
		fprintf(out, "%s ", addr_print(local, buf));
	fprintf(out, "as %u;\n\tneighbor %s as %u;\n", c->bgp.local_as,
	    addr_print(&nb->address, buf), nb->as);
	if (local != NULL)
		fputs("\tstrict bind on;\n", out);
	if (nb->bfd)
		fputs("\tbfd on;\n", out);
	if (nb->password != NULL)
		fprintf(out, "\tpassword \"%s\";\n", nb->password);
	fputs(session, out);
	channel_print(own == AF_INET ? 4 : 6, false, out);
	if (serves(c, other) && !peers(c, other))
		channel_print(other == AF_INET ? 4 : 6, other == AF_INET, out);
	fputs("}\n", out);
}

/* BIRD's strings end at the next quote; there is no escape. */
static bool
quotable(const char *s)
{
	for (; *s != '\0'; s++)
		if (*s == '"' || (unsigned char)*s < ' ' || *s == 0x7f)
			return false;
	return true;
}

static bool
is_link_local(const struct addr *a)
{
	return a->b[0] == 0xfe && (a->b[1] & 0xc0) == 0x80;
}

static int
config_check(const struct conf *c, struct diag *dg)
{
	static const struct mark nowhere;
	const struct conf_neighbor *nb;
	size_t before = dg->errors, i;

	if (!c->bgp.present) {
		diag_add(dg, DIAG_ERROR, nowhere,
		    "bgp: missing, there is nothing to configure BIRD for");
		return -1;
	}
	if (!quotable(c->bgp.bird_directory))
		diag_add(dg, DIAG_ERROR, nowhere, "bgp.bird.directory: "
		    "BIRD cannot express a quote or a control character");
	for (i = 0; i < c->bgp.nneighbor; i++) {
		nb = &c->bgp.neighbor[i];
		if (nb->password != NULL && !quotable(nb->password))
			diag_add(dg, DIAG_ERROR, nb->mark,
			    "bgp.neighbors[%zu].password: BIRD cannot express "
			    "a quote or a control character", i);
		if (is_link_local(&nb->address))
			diag_add(dg, DIAG_ERROR, nb->mark,
			    "bgp.neighbors[%zu].address: a link-local "
			    "neighbour needs an interface: write its session "
			    "by hand", i);
	}
	return dg->errors == before ? 0 : -1;
}

/* strict bind is for all sessions or for none: a socket on a wildcard address
 * keeps the others from binding. */
static bool
locals_known(const struct conf *c, const struct addr *local)
{
	size_t i;

	for (i = 0; local != NULL && i < c->bgp.nneighbor; i++)
		if (addr_is_zero(&local[i]))
			return false;
	return local != NULL;
}

int
bird_config_render(const struct conf *c, const char *wrapper,
    const struct addr *local, FILE *out, struct diag *dg)
{
	char buf[ADDR_STR_MAX];
	bool known;
	size_t i;

	if (config_check(c, dg) < 0)
		return -1;
	fputs("# BIRD of an xlb node, as `xlb bird-config` prints it\n\n"
	    "log syslog all;\n", out);
	if (!addr_is_zero(&c->bgp.router_id))
		fprintf(out, "router id %s;\n",
		    addr_print(&c->bgp.router_id, buf));
	if (wrapper != NULL &&
	    strcmp(c->bgp.bird_directory, BIRD_DIRECTORY) == 0)
		fprintf(out, "\ninclude \"%s\";\n", wrapper);
	else
		wrapper_print(c->bgp.bird_directory, out);
	fputs(daemons, out);
	known = locals_known(c, local);
	for (i = 0; i < c->bgp.nneighbor; i++)
		neighbor_print(c, i, known ? &local[i] : NULL, out);
	if (ferror(out)) {
		diag_add(dg, DIAG_ERROR, (struct mark){ 0 },
		    "bird-config: cannot write");
		return -1;
	}
	return 0;
}
