/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Health of backends: the state machine, what to probe, and a pool's verdict. */
#include "core/health.h"

#include <string.h>

#include "core/arena.h"
#include "core/conf.h"
#include "core/rows.h"

static const char *const result_text[PROBE_RESULTS] = {
	[PROBE_OK] = "ok",
	[PROBE_TIMEOUT] = "timeout",
	[PROBE_REFUSED] = "connection refused",
	[PROBE_UNREACHABLE] = "unreachable",
	[PROBE_RESET] = "connection reset",
	[PROBE_LOCAL] = "this node could not send",
};

static const char *const state_text[] = {
	[HEALTH_UNKNOWN] = "unknown",
	[HEALTH_UP] = "up",
	[HEALTH_DOWN] = "down",
};

/* Results and states are read back from a pinned map, which an other version
 * may have written: any number is printed. */
const char *
probe_result_text(enum probe_result r)
{
	return (unsigned)r < PROBE_RESULTS ? result_text[r] : "other";
}

const char *
health_state_text(enum health_state s)
{
	return (unsigned)s < sizeof(state_text) / sizeof(state_text[0]) ?
	    state_text[s] : "other";
}

bool
health_step(struct health_fsm *f, const struct conf_check *check,
    enum probe_result r)
{
	enum health_state says = r == PROBE_OK ? HEALTH_UP : HEALTH_DOWN;
	uint32_t need;

	if (r == PROBE_LOCAL)
		return false;
	f->last = r;
	if (f->state == says) {
		f->run = 0;
		return false;
	}
	f->run++;
	need = says == HEALTH_UP ? check->rise : check->fall;
	if (f->state != HEALTH_UNKNOWN && f->run < need)
		return false;
	f->state = says;
	f->why = r;
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
	struct health_row x = { a->addr, a->port, a->check->name, { 0 }, 0 };
	struct health_row y = { b->addr, b->port, b->check->name, { 0 }, 0 };

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
	struct health_row key = { *addr, port, check, { 0 }, 0 };

	return rows_find(&key, t->row, t->n, sizeof(key), row_cmp);
}

enum health_state
health_verdict(const struct conf_check *check, const struct health_ports *ports,
    const struct addr *addr, const struct health_table *t,
    const struct health_row **row)
{
	/* how bad: the worst one decides */
	static const uint8_t rank[] = { [HEALTH_UP] = 0, [HEALTH_UNKNOWN] = 1,
	    [HEALTH_DOWN] = 2 };
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
