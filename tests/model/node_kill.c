/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * xlbd killed at any point of its work: that is done by a child, which may
 * write to one page of the maps at a time, and is killed when it turns to the
 * n-th. What it wrote stays, as it does in the kernel.
 */
#include "node.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/log.h"
#include "io/maps_int.h"

#define REGIONS 64

static struct region {
	uint8_t *at;
	size_t len;
} region[REGIONS];
static size_t nregion, page;
static unsigned left;		/* pages to go */
static uint8_t *open_page;

static void
on_write(int sig, siginfo_t *info, void *context)
{
	uint8_t *at = info->si_addr;
	size_t i;

	(void)context;
	for (i = 0; i < nregion; i++)
		if (at >= region[i].at && at < region[i].at + region[i].len)
			break;
	if (i == nregion) {
		signal(sig, SIG_DFL);
		return;		/* a fault like any other: it comes again */
	}
	if (left-- == 0)
		_exit(1);
	if (open_page != NULL)
		mprotect(open_page, page, PROT_READ);
	open_page = at - (uintptr_t)at % page;
	mprotect(open_page, page, PROT_READ | PROT_WRITE);
}

static void
protect(void *at, size_t len)
{
	if (at == NULL || nregion == REGIONS)
		return;
	region[nregion].at = at;
	region[nregion++].len = len;
	if (mprotect(at, len, PROT_READ) < 0)
		fatal("mprotect");
}

static _Noreturn void
child(struct node *n, void (*fn)(struct node *), unsigned writes)
{
	struct sigaction sa = { .sa_sigaction = on_write,
	    .sa_flags = SA_SIGINFO | SA_NODEFER };
	struct maps *m = n->maps;
	uint32_t i;

	page = (size_t)sysconf(_SC_PAGESIZE);
	left = writes;
	sigaction(SIGSEGV, &sa, NULL);
	protect(m->tables, sizeof(*m->tables));
	protect(m->flows, (size_t)m->sets * sizeof(*m->flows));
	for (i = 0; i < XLB_RINGS; i++)
		protect(m->ring[i].map, xlb_ring_bytes(m->ring_size));
	fn(n);
	_exit(0);
}

bool
node_kill_in(struct node *n, void (*fn)(struct node *), unsigned writes)
{
	int status;
	pid_t pid = fork();

	if (pid < 0)
		fatal("fork");
	if (pid == 0)
		child(n, fn, writes);
	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) ||
	    WEXITSTATUS(status) > 1)
		fatalx("the child ended with %d", status);
	kernel_sync(n->k);
	node_stop(n);
	n->killed += WEXITSTATUS(status) == 1;
	return WEXITSTATUS(status) == 1;
}
