/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Health of backends: the state machine, what to probe, and a pool's verdict.*/
#include "core/health.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/conf.h"

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
key_cmp(const struct addr *a, uint16_t aport, const char *acheck,
    const struct addr *b, uint16_t bport, const char *bcheck)
{
	int c = addr_cmp(a, b);

	if (c == 0)
		c = (aport > bport) - (aport < bport);
	return c != 0 ? c : strcmp(acheck, bcheck);
}

static int
target_cmp(const void *va, const void *vb)
{
	const struct health_target *a = va, *b = vb;

	return key_cmp(&a->addr, a->port, a->check->name, &b->addr, b->port,
	    b->check->name);
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
	if (n > 0)
		qsort(out->port, n, sizeof(*out->port), port_cmp);
	for (i = k = 0; i < n; i++)
		if (k == 0 || out->port[k - 1] != out->port[i])
			out->port[k++] = out->port[i];
	out->n = k;
}

struct health_target *
health_targets(const struct conf *c, struct arena *a, size_t *n)
{
	struct health_target *target = NULL, *t;
	const struct conf_backend *b;
	const struct conf_pool *p;
	struct health_ports ports;
	size_t i, k, total = 0;

	for (p = c->pool; p < c->pool + c->npool; p++) {
		health_ports(c, p, a, &ports);
		for (b = p->backend; b < p->backend + p->nbackend; b++) {
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
	if (total > 0)
		qsort(target, total, sizeof(*target), target_cmp);
	for (i = k = 0; i < total; i++)
		if (k == 0 || target_cmp(&target[k - 1], &target[i]) != 0)
			target[k++] = target[i];
	*n = k;
	return target;
}

struct health_row *
health_find(const struct health_table *t, const struct addr *addr,
    uint16_t port, const char *check)
{
	struct health_row *row;
	size_t low = 0, high = t->n, mid;
	int c;

	while (low < high) {
		mid = low + (high - low) / 2;
		row = &t->row[mid];
		c = key_cmp(addr, port, check, &row->addr, row->port,
		    row->check);
		if (c == 0)
			return row;
		if (c < 0)
			high = mid;
		else
			low = mid + 1;
	}
	return NULL;
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
