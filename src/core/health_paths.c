/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is probed of backends, and what all of it says about one. */
#include "core/health.h"

#include <string.h>

#include "core/arena.h"
#include "core/diag.h"
#include "core/rows.h"

/* Where a service's backends listen; 0 where that is every port. */
static uint16_t
service_port(const struct conf_service *s, size_t i)
{
	return s->backend_port != 0 ? s->backend_port : s->listen[i].port;
}

/* Whatever the service's are; 0 where there is no such thing. */
static bool
has_own_port(const struct conf_check *check)
{
	return check->port != 0 || check->type == CHECK_ICMP;
}

bool
health_is_tunnelled(const struct conf_check *check, const struct conf_service *s)
{
	if (check->type == CHECK_EXEC)
		return false;	/* its sockets are its own */
	if (check->via == VIA_DEFAULT)
		return s->forward == FORWARD_IPIP || s->forward == FORWARD_GUE;
	return check->via == VIA_TUNNEL;
}

static int
path_cmp(const void *va, const void *vb)
{
	const struct health_path *a = va, *b = vb;
	int c = addr_cmp(&a->vip, &b->vip);

	return c != 0 ? c : (a->port > b->port) - (a->port < b->port);
}

/* Of two services on one address that send in other forms the first counts. */
static int
path_order(const void *va, const void *vb)
{
	const struct health_path *a = va, *b = vb;
	int c = path_cmp(va, vb);

	return c != 0 ? c : (a->form > b->form) - (a->form < b->form);
}

static void
path_add(struct arena *a, struct health_paths *out, const struct addr *vip,
    uint16_t port, enum forward form)
{
	struct health_path *path;

	path = arena_grow(a, &out->path, out->n++, sizeof(*path));
	memset(path, 0, sizeof(*path));
	if (vip != NULL)
		path->vip = *vip;
	path->port = port;
	path->form = form;
}

/* One port of a service, on its addresses or on the backends' own. */
static void
port_add(struct arena *a, struct health_paths *out,
    const struct conf_check *check, const struct conf_service *s,
    uint16_t port)
{
	size_t i;

	if (!health_is_tunnelled(check, s)) {
		path_add(a, out, NULL, port, FORWARD_IPIP);
		return;
	}
	for (i = 0; i < s->naddress; i++)
		path_add(a, out, &s->address[i].address, port, s->forward);
}

static void
service_add(struct arena *a, struct health_paths *out,
    const struct conf_check *check, const struct conf_service *s)
{
	size_t i;

	if (has_own_port(check)) {
		port_add(a, out, check, s, check->port);
		return;
	}
	for (i = 0; i < s->nlisten; i++)
		if (service_port(s, i) != 0)
			port_add(a, out, check, s, service_port(s, i));
}

/* Behind the last path with the VIP of path `i`. */
static size_t
vip_end(const struct health_paths *paths, size_t i)
{
	size_t end = i;

	while (end < paths->n &&
	    addr_cmp(&paths->path[end].vip, &paths->path[i].vip) == 0)
		end++;
	return end;
}

void
health_local_check(const struct conf *c, const struct addr *local, size_t n,
    struct diag *dg)
{
	const struct conf_service *s;
	char addr[ADDR_STR_MAX];
	size_t i, k;

	for (i = 0; i < c->nservice; i++) {
		s = &c->service[i];
		if (s->pool->check == NULL ||
		    !health_is_tunnelled(s->pool->check, s))
			continue;
		for (k = 0; k < s->naddress; k++)
			if (rows_find(&s->address[k].address, local, n,
			    sizeof(*local), addr_order) != NULL)
				diag_add(dg, DIAG_ERROR, s->address[k].mark,
				    "services[%zu].addresses[%zu]: %s is an "
				    "address of this host, which would answer "
				    "checks through the tunnel itself: remove "
				    "it, or set checks.%s.via to direct", i, k,
				    addr_print(&s->address[k].address, addr),
				    s->pool->check->name);
	}
}

uint32_t
health_needed(const struct conf_pool *p)
{
	size_t n = p->min_healthy;

	if (p->min_healthy_percent)
		n = (p->nbackend * n + 99) / 100;
	return n == 0 ? 1 : (uint32_t)n;	/* 0: of no backends at all */
}

/* The backend has passed on all of paths [from, to) once. */
static bool
has_passed(const struct conf_check *check, const struct addr *addr,
    const struct health_paths *paths, size_t from, size_t to,
    const struct health_table *t)
{
	struct health_target target = { .addr = *addr, .check = check };
	const struct health_row *row;
	size_t i;

	for (i = from; i < to; i++) {
		target.vip = paths->path[i].vip;
		target.port = paths->path[i].port;
		row = health_find(t, &target);
		if (row == NULL || !row->passed)
			return false;
	}
	return true;
}

static bool
is_established(const struct conf_pool *p, const struct health_paths *paths,
    size_t from, size_t to, const struct health_table *t)
{
	uint32_t needed = health_needed(p), n = 0;
	size_t i;

	if (addr_is_zero(&paths->path[from].vip))
		return true;
	for (i = 0; i < p->nbackend && n < needed; i++)
		n += has_passed(p->check, &p->backend[i].address, paths, from,
		    to, t);
	return n == needed;
}

void
health_paths(const struct conf *c, const struct conf_pool *p,
    const struct health_table *t, struct arena *a, struct health_paths *out)
{
	size_t i, end;
	bool yes;

	memset(out, 0, sizeof(*out));
	if (p->check == NULL)
		return;
	for (i = 0; i < c->nservice; i++)
		if (c->service[i].pool == p)
			service_add(a, out, p->check, &c->service[i]);
	/* a pool that waits for its service is known when it comes */
	if (out->n == 0 && (p->check->via == VIA_DIRECT ||
	    p->check->type == CHECK_EXEC) && has_own_port(p->check))
		path_add(a, out, NULL, p->check->port, FORWARD_IPIP);
	rows_sort(out->path, out->n, sizeof(*out->path), path_order);
	out->n = rows_unique(out->path, out->n, sizeof(*out->path), path_cmp);
	for (i = 0; t != NULL && i < out->n; i = end) {
		end = vip_end(out, i);
		yes = is_established(p, out, i, end, t);
		for (; i < end; i++)
			out->path[i].established = yes;
	}
}

bool
health_established(const struct health_paths *paths, const struct addr *vip)
{
	size_t i;

	for (i = 0; i < paths->n; i++)
		if (addr_cmp(&paths->path[i].vip, vip) == 0)
			return paths->path[i].established;
	return true;
}

int
health_row_cmp(const void *va, const void *vb)
{
	const struct health_row *a = va, *b = vb;
	int c = addr_cmp(&a->addr, &b->addr);

	if (c == 0)
		c = addr_cmp(&a->vip, &b->vip);
	if (c == 0)
		c = (a->port > b->port) - (a->port < b->port);
	return c != 0 ? c : strcmp(a->check, b->check);
}

static int
target_cmp(const void *va, const void *vb)
{
	const struct health_target *a = va, *b = vb;
	struct health_row x = { .addr = a->addr, .vip = a->vip,
	    .port = a->port, .check = a->check->name };
	struct health_row y = { .addr = b->addr, .vip = b->vip,
	    .port = b->port, .check = b->check->name };

	return health_row_cmp(&x, &y);
}

static int
target_order(const void *va, const void *vb)
{
	const struct health_target *a = va, *b = vb;
	int c = target_cmp(va, vb);

	return c != 0 ? c : (a->form > b->form) - (a->form < b->form);
}

struct health_target *
health_targets(const struct conf *c, struct arena *a, size_t *n)
{
	struct health_target *target = NULL, *t;
	const struct conf_backend *b;
	const struct conf_pool *p;
	struct health_paths paths;
	size_t i, j, k, total = 0;

	for (i = 0; i < c->npool; i++) {
		p = &c->pool[i];
		health_paths(c, p, NULL, a, &paths);
		for (j = 0; j < p->nbackend; j++) {
			b = &p->backend[j];
			if (b->state == BACKEND_DOWN)
				continue;
			for (k = 0; k < paths.n; k++) {
				t = arena_grow(a, &target, total++,
				    sizeof(*t));
				t->addr = b->address;
				t->vip = paths.path[k].vip;
				t->port = paths.path[k].port;
				t->form = paths.path[k].form;
				t->check = p->check;
			}
		}
	}
	rows_sort(target, total, sizeof(*target), target_order);
	*n = rows_unique(target, total, sizeof(*target), target_cmp);
	return target;
}

struct health_row *
health_find(const struct health_table *t, const struct health_target *target)
{
	struct health_row key = { .addr = target->addr, .vip = target->vip,
	    .port = target->port, .check = target->check->name };

	return rows_find(&key, t->row, t->n, sizeof(key), health_row_cmp);
}

static int
row_addr_cmp(const void *va, const void *vb)
{
	const struct health_row *a = va, *b = vb;

	return addr_cmp(&a->addr, &b->addr);
}

/* The worst one decides. */
static bool
is_worse(enum health_state a, enum health_state b)
{
	static const uint8_t rank[] = { [HEALTH_UP] = 0, [HEALTH_DRAIN] = 1,
	    [HEALTH_UNKNOWN] = 2, [HEALTH_DOWN] = 3 };

	return rank[a] > rank[b];
}

const struct health_row *
health_kin(const struct health_table *t, const struct health_target *target)
{
	struct health_row key = { .addr = target->addr };
	const struct health_row *row, *kin = NULL;
	bool tunnel = !addr_is_zero(&target->vip);

	row = rows_find(&key, t->row, t->n, sizeof(key), row_addr_cmp);
	for (; row != NULL && row < t->row + t->n &&
	    addr_cmp(&row->addr, &target->addr) == 0; row++) {
		if (strcmp(row->check, target->check->name) != 0 ||
		    (tunnel && !addr_is_zero(&row->vip) &&
		    addr_cmp(&row->vip, &target->vip) != 0))
			continue;
		if (kin == NULL || is_worse(row->fsm.state, kin->fsm.state))
			kin = row;
	}
	return kin;
}

/* Over the targets of one VIP, which are paths [from, to). */
static enum health_state
vip_verdict(const struct health_target *key, const struct health_paths *paths,
    size_t from, size_t to, const struct health_table *t,
    const struct health_row **decided)
{
	enum health_state worst = HEALTH_UP, s;
	struct health_target target = *key;
	const struct health_row *r;
	size_t i;

	*decided = NULL;
	target.vip = paths->path[from].vip;
	for (i = from; i < to; i++) {
		target.port = paths->path[i].port;
		r = health_find(t, &target);
		s = r == NULL ? HEALTH_UNKNOWN : r->fsm.state;
		if (i > from && !is_worse(s, worst))
			continue;
		worst = s;
		*decided = r;
	}
	return worst;
}

/* Some are: then the others do not count. */
static bool
any_established(const struct health_paths *paths)
{
	size_t i;

	for (i = 0; i < paths->n; i++)
		if (paths->path[i].established)
			return true;
	return false;
}

/* Of two VIPs' verdicts on a backend. One that is not known yet takes nobody
 * down: the VIP may be new. */
static bool
counts_more(enum health_state s, enum health_state than, bool established)
{
	if (s == HEALTH_UNKNOWN || than == HEALTH_UNKNOWN)
		return than == HEALTH_UNKNOWN;
	return established ? is_worse(s, than) : is_worse(than, s);
}

enum health_state
health_verdict(const struct conf_check *check, const struct health_paths *paths,
    const struct addr *addr, const struct health_table *t,
    const struct health_row **row)
{
	const struct health_target key = { .addr = *addr, .check = check };
	const struct health_row *r, *decided = NULL;
	enum health_state verdict = HEALTH_UP, s;
	bool established = any_established(paths), first = true;
	size_t i, end;

	if (check != NULL && paths->n == 0)
		verdict = HEALTH_UNKNOWN;
	for (i = 0; check != NULL && i < paths->n; i = end) {
		end = vip_end(paths, i);
		if (paths->path[i].established != established)
			continue;
		s = vip_verdict(&key, paths, i, end, t, &r);
		if (!first && !counts_more(s, verdict, established))
			continue;
		first = false;
		verdict = s;
		decided = r;
	}
	if (row != NULL)
		*row = decided;
	return verdict;
}
