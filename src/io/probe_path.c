/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is asked and heard of the paths to backends, beside their checks. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/path_mtu.h"
#include "io/log.h"
#include "io/probe_private.h"

#define ERRORS_MS 60000		/* for which errors are waited for, each time */
#define ERRORS_PAUSE_MS 10	/* after one: others have their turn */
#define ERRORS_AGAIN_MS 5000	/* where that could not be done */

static struct target *
path_new(struct prober *p, uint16_t kind, uint32_t timeout_ms, int64_t at)
{
	struct target *t = calloc(1, sizeof(*t));

	if (t == NULL)
		fatal("prober");
	t->kind = kind;
	t->timeout_ms = timeout_ms;
	t->slot = UINT32_MAX;
	t->flight = NONE;
	t->fd = -1;
	heap_put(&p->due, &t->node, at);
	return t;
}

static uint32_t
error_ended(struct prober *p, const struct probe_end *end)
{
	struct addr to, from;

	if (end->result == PROBE_LOCAL)
		return ERRORS_AGAIN_MS;
	if (probe_error_read(end, &to, &from))
		p->path_error(&to, &from, end->detail, p->arg);
	return ERRORS_PAUSE_MS;
}

void
path_ended(struct prober *p, struct target *t, const struct probe_end *end)
{
	uint32_t ms = t->path ? p->path_said(t->index, end->result, p->arg) :
	    error_ended(p, end);

	heap_put(&p->due, &t->node, probe_now().ns + ms * MSEC);
}

int
prober_paths(struct prober *p, size_t n, path_ask_fn ask, path_said_fn said)
{
	struct target **next = calloc(n + 1, sizeof(next[0]));
	int64_t now = probe_now().ns;
	size_t i;

	if (next == NULL)
		return -ENOMEM;
	for (i = 0; i < p->npath; i++)
		target_free(p, p->path[i]);
	free(p->path);
	for (i = 0; i < n; i++) {
		/* a thousand in a second */
		next[i] = path_new(p, PROBE_REQUEST_ICMP, PATH_TIMEOUT_MS,
		    now + (int64_t)i * MSEC);
		next[i]->path = true;
		next[i]->index = i;
	}
	p->path = next;
	p->npath = n;
	p->path_ask = ask;
	p->path_said = said;
	prober_turns(p);
	return 0;
}

void
prober_path_soon(struct prober *p, size_t id)
{
	struct target *t = p->path[id];

	/* else its answer, whatever it is, is followed by the next question */
	if (t->flight == NONE)
		heap_put(&p->due, &t->node, probe_now().ns);
}

int
prober_errors(struct prober *p, uint16_t gue_port, path_error_fn fn)
{
	struct target *t;
	int rc = 0, fd, i;

	p->path_error = fn;
	for (i = 0; i < 2; i++) {
		if (p->error[i] != NULL && p->error[i]->port == gue_port)
			continue;
		target_free(p, p->error[i]);
		p->error[i] = NULL;
		fd = probe_error_socket(i == 0);
		if (fd < 0) {
			rc = fd == -EAFNOSUPPORT ? rc : fd;
			continue;
		}
		t = path_new(p, PROBE_REQUEST_ERROR, ERRORS_MS,
		    probe_now().ns);
		t->port = gue_port;
		t->fd = fd;
		if (i == 0)	/* any address tells the family */
			t->addr.b[10] = t->addr.b[11] = 0xff;
		p->error[i] = t;
	}
	prober_turns(p);
	return rc;
}

/* At the end: nothing is cancelled any more. */
void
paths_free(struct prober *p)
{
	size_t i;

	for (i = 0; i < p->npath; i++)
		free(p->path[i]);
	free(p->path);
	for (i = 0; i < 2; i++) {
		if (p->error[i] == NULL)
			continue;
		close(p->error[i]->fd);
		free(p->error[i]);
	}
}
