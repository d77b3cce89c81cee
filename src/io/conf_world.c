/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files that a configuration names: are they there? */
#include "io/conf_world.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/probe_wire.h"

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
	diag_sort(dg);
	return dg->errors == errors ? 0 : -1;
}
