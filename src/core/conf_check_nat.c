/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Rules for services that translate addresses. */
#include "core/conf_bind.h"

#include <inttypes.h>

#include "core/arena.h"
#include "core/conf_schema.h"

static bool
is_service_address(const struct conf *c, const struct addr *a)
{
	size_t i, j;

	for (i = 0; i < c->nservice; i++)
		for (j = 0; j < c->service[i].naddress; j++)
			if (addr_cmp(&c->service[i].address[j].address,
			    a) == 0)
				return true;
	return false;
}

static void
source_check(struct bind *b, const struct addr_list *l, size_t i,
    const struct node *n)
{
	const struct addr *a = &l->row[i];
	const char *why = addr_is_zero(a) ? NULL : bind_addr_fault(b, a);
	char buf[ADDR_STR_MAX];
	size_t j;

	if (addr_is_zero(a) || n == NULL)
		return;		/* reported */
	addr_print(a, buf);
	if (why != NULL)
		bind_fault(b, DIAG_ERROR, n, "%s %s", buf, why);
	else if (is_service_address(b->c, a))
		bind_fault(b, DIAG_ERROR, n, "%s is a service's address: "
		    "replies would come to any node", buf);
	for (j = 0; j < i; j++)
		if (addr_cmp(&l->row[j], a) == 0) {
			bind_fault(b, DIAG_ERROR, n, "%s is there twice", buf);
			break;
		}
}

static void
sources_check(struct bind *b, const char *key, const struct addr_list *l)
{
	const struct node *nat = node_get(b->root[0], "nat");
	const struct conf_limit *max = conf_limit_get(LIMIT_SOURCES);
	size_t i;

	if (l->n > max->max) {
		bind_fault(b, DIAG_ERROR, bind_element(nat, key, max->max),
		    "more than %" PRIu64 " %s (%s)", max->max, max->what,
		    max->why);
		return;
	}
	for (i = 0; i < l->n; i++)
		source_check(b, l, i, bind_element(nat, key, i));
}

/* No way leads from one family to the other. */
static void
family_check(struct bind *b, const struct conf_service *s,
    const struct node *n)
{
	const struct conf_backend *be;
	const struct addr *vip;
	char buf[ADDR_STR_MAX];
	size_t i, j;

	for (i = 0; i < s->naddress; i++)
		for (j = 0; j < s->pool->nbackend; j++) {
			vip = &s->address[i].address;
			be = &s->pool->backend[j];
			if (addr_is_zero(vip) || addr_is_zero(&be->address) ||
			    addr_is4(vip) == addr_is4(&be->address))
				continue;
			bind_member_fault(b, DIAG_ERROR, n, "forward",
			    "nat: %s is no backend for %s: both have to be "
			    "IPv4 or both IPv6", be->name,
			    addr_print(vip, buf));
			return;
		}
}

static void
service_check(struct bind *b, const struct conf_service *s,
    const struct node *n)
{
	const struct conf_check *check;

	if (s->forward != FORWARD_NAT) {
		if (s->backend_port != 0)
			bind_member_fault(b, DIAG_ERROR, n, "backend_port",
			    "%u needs forward: nat: else packets arrive as the "
			    "client sent them", s->backend_port);
		return;
	}
	if (s->pool == NULL)
		return;		/* reported */
	family_check(b, s, n);
	check = s->pool->check;
	if (check != NULL && check->via == VIA_TUNNEL)
		bind_member_fault(b, DIAG_ERROR, n, "forward",
		    "nat: check %s has via: tunnel, and there is none: say "
		    "via: direct, or nothing", check->name);
}

void
conf_check_nat(struct bind *b)
{
	const struct conf *c = b->c;
	size_t i;

	sources_check(b, "source_ipv4", &c->nat4);
	sources_check(b, "source_ipv6", &c->nat6);
	for (i = 0; i < c->nservice; i++)
		service_check(b, &c->service[i], b->service.row[i].node);
}

bool
conf_uses_nat(const struct conf *c)
{
	size_t i;

	for (i = 0; i < c->nservice; i++)
		if (c->service[i].forward == FORWARD_NAT)
			return true;
	return false;
}
