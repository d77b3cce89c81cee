/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files that a configuration names: are they there? */
#include "io/conf_world.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/probe_wire.h"
#include "xlb_abi.h"

static void
ca_check(const struct conf_check *c, enum diag_level level, struct diag *dg)
{
	struct probe_ca ca = { 0 };
	int rc = probe_ca_read(c->ca, &ca);

	free(ca.pem);
	if (rc == 0)
		return;
	/* `xlb check` needs no root; xlbd may read it all the same */
	if (rc == -EACCES && geteuid() != 0)
		level = DIAG_WARNING;
	diag_add(dg, level, c->ca_mark, "checks.%s.ca: %s: %s", c->name, c->ca,
	    rc == -EINVAL ? "holds no certificate" : strerror(-rc));
}

static void
user_check(const struct conf_check *c, enum diag_level level, struct diag *dg)
{
	struct exec_order o;
	int rc = exec_user(c->user, &o);

	if (rc < 0)
		diag_add(dg, level, c->user_mark, "checks.%s.user: %s%s",
		    c->name, c->user, rc == -ENOENT ? ": no such user" :
		    rc == -EPERM ? " is root: commands run without its rights" :
		    rc == -EACCES ? " can act on xlbd or BIRD: name another, "
		    "like nobody" : ": cannot be looked up");
}

/* NAT's ports are not the host's: else a connection of its own may meet a flow's.
 */
static void
ports_check(struct diag *dg)
{
	FILE *f = fopen("/proc/sys/net/ipv4/ip_local_port_range", "re");
	unsigned low, high, last = XLB_NAT_PORT + XLB_NAT_PORTS - 1;
	int n;

	if (f == NULL)
		return;
	n = fscanf(f, "%u %u", &low, &high);
	fclose(f);
	if (n != 2 || low > last || high < XLB_NAT_PORT)
		return;
	diag_add(dg, DIAG_WARNING, (struct mark){ 0 }, "forward: nat uses "
	    "ports %u to %u, and this host takes %u to %u for connections of "
	    "its own: sysctl -w net.ipv4.ip_local_port_range=\"%u %u\"",
	    XLB_NAT_PORT, last, low, high, last + 1,
	    high > last + 1000 ? high : 60999U);
}

int
conf_world_check(const struct conf *c, enum diag_level level, struct diag *dg)
{
	size_t i, errors = dg->errors;

	for (i = 0; i < c->ncheck; i++)
		if (c->check[i].type == CHECK_HTTPS && c->check[i].ca != NULL)
			ca_check(&c->check[i], level, dg);
	for (i = 0; i < c->ncheck; i++)
		if (c->check[i].type == CHECK_EXEC)
			user_check(&c->check[i], level, dg);
	reply_filter_check(c, dg);
	if (conf_uses_nat(c))
		ports_check(dg);
	diag_sort(dg);
	return dg->errors == errors ? 0 : -1;
}
