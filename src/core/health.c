/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Health of backends: the state machine, what to probe, and a pool's verdict. */
#include "core/health.h"

#include <string.h>

#include "core/arena.h"
#include "core/conf.h"
#include "core/rows.h"

/* Health in order: a step down needs `fall` results, a step up `rise`. */
static int
level(enum health_state s)
{
	return s == HEALTH_UP ? 2 : s == HEALTH_DRAIN ? 1 : 0;
}

static enum health_state
state_said(enum probe_result r)
{
	return r == PROBE_OK ? HEALTH_UP :
	    r == PROBE_DRAIN ? HEALTH_DRAIN : HEALTH_DOWN;
}

/* Counts a result other than the state. Of those in a row the one nearest to
 * the state is where they lead. */
static void
run_extend(struct health_fsm *f, enum health_state says)
{
	int now = level(f->state);
	bool better = level(says) > now;

	if (f->run > 0 && (level(f->aim) > now) != better)
		f->run = 0;
	if (f->run == 0 || (better ? level(says) < level(f->aim) :
	    level(says) > level(f->aim)))
		f->aim = says;
	f->run++;
}

bool
health_step(struct health_fsm *f, const struct conf_check *check,
    enum probe_result r, uint16_t detail)
{
	enum health_state says = state_said(r);
	uint32_t need;

	if (r == PROBE_LOCAL)
		return false;
	f->last = r;
	if (r == PROBE_DRAIN)
		f->asked = detail;
	if (f->state == says) {
		f->run = 0;
		return false;
	}
	run_extend(f, says);
	need = level(says) > level(f->state) ? check->rise : check->fall;
	if (f->state != HEALTH_UNKNOWN && f->run < need)
		return false;
	f->state = f->aim;
	f->why = says == f->aim ? r : PROBE_DRAIN;
	f->detail = says == f->aim ? detail : f->asked;
	f->run = 0;
	return true;
}

static int
row_cmp(const void *va, const void *vb)
{
	const struct health_row *a = va, *b = vb;
	int c = addr_cmp(&a->addr, &b->addr);

	if (c == 0)
		c = (a->port > b->port) - (a->port < b->port);
	return c != 0 ? c : strcmp(a->check, b->check);
}

static int
target_cmp(const void *va, const void *vb)
{
	const struct health_target *a = va, *b = vb;
	struct health_row x = { .addr = a->addr, .port = a->port,
	    .check = a->check->name };
	struct health_row y = { .addr = b->addr, .port = b->port,
	    .check = b->check->name };

	return row_cmp(&x, &y);
}

/* Where a service's backends listen; 0 where that is every port. */
static uint16_t
service_port(const struct conf_service *s, size_t i)
{
	return s->backend_port != 0 ? s->backend_port : s->listen[i].port;
}

static int
port_cmp(const void *va, const void *vb)
{
	const uint16_t *a = va, *b = vb;

	return (*a > *b) - (*a < *b);
}

void
health_ports(const struct conf *c, const struct conf_pool *p, struct arena *a,
    struct health_ports *out)
{
	const struct conf_service *s;
	size_t i, k, n = 0;

	out->port = NULL;
	if (p->check == NULL) {
		out->n = 0;
		return;
	}
	if (p->check->port != 0) {
		out->port = arena_dup(a, &p->check->port, sizeof(*out->port));
		out->n = 1;
		return;
	}
	for (i = 0; i < c->nservice; i++) {
		s = &c->service[i];
		if (s->pool != p)
			continue;
		for (k = 0; k < s->nlisten; k++) {
			if (service_port(s, k) == 0)
				continue;
			*(uint16_t *)arena_grow(a, &out->port, n,
			    sizeof(*out->port)) = service_port(s, k);
			n++;
		}
	}
	rows_sort(out->port, n, sizeof(*out->port), port_cmp);
	out->n = rows_unique(out->port, n, sizeof(*out->port), port_cmp);
}

struct health_target *
health_targets(const struct conf *c, struct arena *a, size_t *n)
{
	struct health_target *target = NULL, *t;
	const struct conf_backend *b;
	const struct conf_pool *p;
	struct health_ports ports;
	size_t i, j, k, total = 0;

	for (i = 0; i < c->npool; i++) {
		p = &c->pool[i];
		health_ports(c, p, a, &ports);
		for (j = 0; j < p->nbackend; j++) {
			b = &p->backend[j];
			if (b->state == BACKEND_DOWN)
				continue;
			for (k = 0; k < ports.n; k++) {
				t = arena_grow(a, &target, total, sizeof(*t));
				t->addr = b->address;
				t->port = ports.port[k];
				t->check = p->check;
				total++;
			}
		}
	}
	rows_sort(target, total, sizeof(*target), target_cmp);
	*n = rows_unique(target, total, sizeof(*target), target_cmp);
	return target;
}

struct health_row *
health_find(const struct health_table *t, const struct addr *addr,
    uint16_t port, const char *check)
{
	struct health_row key = { .addr = *addr, .port = port,
	    .check = check };

	return rows_find(&key, t->row, t->n, sizeof(key), row_cmp);
}

enum health_state
health_verdict(const struct conf_check *check, const struct health_ports *ports,
    const struct addr *addr, const struct health_table *t,
    const struct health_row **row)
{
	/* how bad: the worst one decides */
	static const uint8_t rank[] = { [HEALTH_UP] = 0, [HEALTH_DRAIN] = 1,
	    [HEALTH_UNKNOWN] = 2, [HEALTH_DOWN] = 3 };
	enum health_state worst = HEALTH_UP, s;
	const struct health_row *r, *decided = NULL;
	size_t i;

	if (check != NULL && ports->n == 0)
		worst = HEALTH_UNKNOWN;
	for (i = 0; check != NULL && i < ports->n; i++) {
		r = health_find(t, addr, ports->port[i], check->name);
		s = r == NULL ? HEALTH_UNKNOWN : r->fsm.state;
		if (i > 0 && rank[s] <= rank[worst])
			continue;
		worst = s;
		decided = r;
	}
	if (row != NULL)
		*row = decided;
	return worst;
}

enum health_state
health_of(const struct conf *c, const struct conf_pool *p,
    const struct addr *addr, const struct health_table *t,
    const struct health_row **row)
{
	struct arena *a = arena_new();
	struct health_ports ports;
	enum health_state s;

	health_ports(c, p, a, &ports);
	s = health_verdict(p->check, &ports, addr, t, row);
	arena_free(a);
	return s;
}
