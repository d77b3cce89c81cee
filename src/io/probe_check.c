/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Checks as the prober gets them: in slots, each with its text. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/conf.h"
#include "core/dns.h"
#include "core/rows.h"
#include "io/log.h"
#include "io/probe_wire.h"

uint16_t
probe_check_kind(const struct conf_check *c)
{
	switch (c->type) {
	case CHECK_TCP:
		break;
	case CHECK_HTTP:
	case CHECK_HTTPS:
		return PROBE_REQUEST_HTTP;
	case CHECK_UDP:
		return PROBE_REQUEST_UDP;
	case CHECK_DNS:
		return PROBE_REQUEST_DNS;
	case CHECK_ICMP:
		return PROBE_REQUEST_ICMP;
	case CHECK_EXEC:
		return PROBE_REQUEST_EXEC;
	}
	return PROBE_REQUEST_TCP;
}

static void
statuses_set(uint8_t *bits, const struct http_range_list *l)
{
	unsigned status;
	size_t i;

	for (i = 0; i < l->n; i++)
		for (status = l->row[i].low; status <= l->row[i].high &&
		    status < PROBE_STATUS_MAX; status++)
			bits[status / 8] |= (uint8_t)(1U << status % 8);
}

static void
text_set(char *to, size_t size, const char *text)
{
	if (text != NULL)	/* the schema bounds it */
		snprintf(to, size, "%s", text);
}

static void
check_fill(struct probe_check *p, const struct conf_check *c, uint32_t slot)
{
	memset(p, 0, sizeof(*p));
	p->slot = slot;
	text_set(p->path, sizeof(p->path), c->path);
	text_set(p->method, sizeof(p->method), c->method);
	text_set(p->host, sizeof(p->host), c->host);
	text_set(p->body, sizeof(p->body), c->body);
	text_set(p->send, sizeof(p->send), c->send);
	text_set(p->reply, sizeof(p->reply), c->reply);
	text_set(p->sni, sizeof(p->sni), c->sni);
	text_set(p->qname, sizeof(p->qname), c->qname);
	p->qtype = c->qtype != NULL ? dns_type_parse(c->qtype) : 0;
	p->tls = c->type == CHECK_HTTPS;
	p->verify = c->verify;
	p->ca = c->type == CHECK_HTTPS && c->ca != NULL;
	p->exec = c->type == CHECK_EXEC;
	statuses_set(p->expect, &c->expect);
	statuses_set(p->drain, &c->drain_status);
}

/* By name: a check keeps its slot while the others stay. */
static int
by_cmp(const void *va, const void *vb)
{
	const struct conf_check *const *a = va, *const *b = vb;

	return strcmp((*a)->name, (*b)->name);
}

static size_t
checks_collect(const struct conf_check **by, const struct health_target *t,
    size_t n)
{
	size_t i, k = 0;

	for (i = 0; i < n; i++)
		if (t[i].check->type != CHECK_TCP &&
		    t[i].check->type != CHECK_ICMP)
			by[k++] = t[i].check;
	rows_sort(by, k, sizeof(by[0]), by_cmp);
	return rows_unique(by, k, sizeof(by[0]), by_cmp);
}

/* xlbd reads them, since the prober is nobody who may. */
static void
ca_fill(struct probe_ca *ca, const struct conf_check *c)
{
	int rc;

	if (c->ca == NULL || c->type != CHECK_HTTPS)
		return;
	rc = probe_ca_read(c->ca, ca);
	if (rc < 0)
		log_warnx("checks.%s.ca: %s: %s: its backends keep their "
		    "state", c->name, c->ca, strerror(-rc));
}

static bool
ca_same(const struct probe_ca *a, const struct probe_ca *b)
{
	return a->len == b->len && (a->pem == NULL) == (b->pem == NULL) &&
	    (a->pem == NULL || memcmp(a->pem, b->pem, a->len) == 0);
}

int
probe_checks_set(struct probe_checks *p, const struct health_target *t,
    size_t n)
{
	const struct conf_check **by = calloc(n + 1, sizeof(by[0]));
	struct probe_checks next = { 0 };
	size_t i, k;

	if (by == NULL)
		return -ENOMEM;
	k = checks_collect(by, t, n);
	next.by = by;
	next.row = calloc(k + 1, sizeof(*next.row));
	next.ca = calloc(k + 1, sizeof(*next.ca));
	next.order = calloc(k + 1, sizeof(*next.order));
	next.sent = calloc(k + 1, sizeof(*next.sent));
	if (next.row == NULL || next.ca == NULL || next.order == NULL ||
	    next.sent == NULL) {
		probe_checks_free(&next);
		return -ENOMEM;
	}
	next.n = k;
	for (i = 0; i < k; i++) {
		check_fill(&next.row[i], by[i], (uint32_t)i);
		ca_fill(&next.ca[i], by[i]);
		if (by[i]->type == CHECK_EXEC)
			next.order[i] = exec_order_new(by[i]);
		next.sent[i] = i < p->n && p->sent[i] &&
		    memcmp(&next.row[i], &p->row[i], sizeof(p->row[i])) == 0 &&
		    ca_same(&next.ca[i], &p->ca[i]);
	}
	probe_checks_free(p);
	*p = next;
	return 0;
}

uint32_t
probe_checks_slot(const struct probe_checks *p, const struct conf_check *c)
{
	const struct conf_check **found = rows_find(&c, p->by, p->n,
	    sizeof(p->by[0]), by_cmp);

	return found == NULL ? UINT32_MAX : (uint32_t)(found - p->by);
}

bool
probe_checks_fit(const struct probe_checks *p, uint32_t slot)
{
	if (slot >= p->n)
		return true;
	return p->row[slot].exec ? p->order[slot] != NULL :
	    !p->row[slot].ca || p->ca[slot].pem != NULL;
}

/* A descriptor to read them from, -1 if there are none, or another -errno. */
static int
ca_open(const struct probe_ca *ca)
{
	int fd, rc;

	if (ca->pem == NULL)
		return -1;
	fd = memfd_create("xlb-ca", MFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	/* memory takes all of it at once, or is short */
	if (write(fd, ca->pem, ca->len) != (ssize_t)ca->len) {
		rc = errno != 0 ? -errno : -ENOMEM;
		close(fd);
		return rc;
	}
	return fd;
}

int
probe_checks_send(struct probe_checks *p, uint32_t slot, int sock)
{
	int fd = ca_open(&p->ca[slot]), rc;

	if (fd < -1)
		return fd;
	rc = probe_send(sock, &p->row[slot], sizeof(p->row[slot]), fd,
	    MSG_DONTWAIT);
	if (fd >= 0)
		close(fd);
	p->sent[slot] = rc == 0;
	return rc;
}

void
probe_checks_settled(struct probe_checks *p)
{
	free(p->by);
	p->by = NULL;
}

void
probe_checks_forget(struct probe_checks *p)
{
	size_t i;

	for (i = 0; i < p->n; i++)
		p->sent[i] = false;
}

void
probe_checks_free(struct probe_checks *p)
{
	size_t i;

	for (i = 0; i < p->n; i++) {
		free(p->ca[i].pem);
		free(p->order[i]);
	}
	free(p->by);
	free(p->row);
	free(p->ca);
	free(p->order);
	free(p->sent);
	memset(p, 0, sizeof(*p));
}
