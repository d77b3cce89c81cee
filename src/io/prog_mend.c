/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What somebody removes under our feet: everything that is pinned is open here
 * too, so it can be pinned again, and no packet was lost meanwhile. */
#include "io/prog_int.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/log.h"

static struct prog_hold *
hold_find(const struct prog *p, uint32_t ifindex)
{
	size_t i;

	for (i = 0; i < p->nhold; i++)
		if (p->hold[i].ifindex == ifindex)
			return &p->hold[i];
	return NULL;
}

void
hold_put(struct prog *p, uint32_t ifindex, int fd)
{
	struct prog_hold *h = hold_find(p, ifindex);

	if (h != NULL) {
		close(h->fd);
		h->fd = fd;
		return;
	}
	h = reallocarray(p->hold, p->nhold + 1, sizeof(*h));
	if (h == NULL)
		fatal("prog");
	p->hold = h;
	p->hold[p->nhold++] = (struct prog_hold){ ifindex, fd };
}

int
hold_dup(const struct prog *p, uint32_t ifindex)
{
	const struct prog_hold *h = hold_find(p, ifindex);

	return h != NULL ? fcntl(h->fd, F_DUPFD_CLOEXEC, 0) : -1;
}

void
hold_drop(struct prog *p, uint32_t ifindex)
{
	struct prog_hold *h = hold_find(p, ifindex);

	if (h == NULL)
		return;
	close(h->fd);
	*h = p->hold[--p->nhold];
}

void
hold_free(struct prog *p)
{
	while (p->nhold > 0)
		close(p->hold[--p->nhold].fd);
	free(p->hold);
	p->hold = NULL;
}

static int
pin_mend(const char *path, int fd, size_t *n)
{
	if (access(path, F_OK) == 0)
		return 0;
	if (bpf_obj_pin(fd, path) < 0)
		return -errno;
	++*n;
	return 0;
}

/* In the order in which a start looks for them. */
static int
pins_mend(const struct prog *p, struct prog_mended *out)
{
	char path[MAPS_PATH_MAX];
	int rc = 0;
	size_t i;

	if (access(pin_path(path, p->dir, "rings"), F_OK) < 0 ||
	    access(pin_path(path, p->dir, "links"), F_OK) < 0)
		rc = pin_dir_make(p->dir);
	for (i = 0; rc == 0 && i < MAP_IDS; i++)
		rc = pin_mend(pin_path(path, p->dir, "%s", map_name[i]),
		    p->maps->fd[i], &out->pins);
	if (rc == 0)
		rc = ring_mend(p->maps, &out->pins, &out->rings);
	if (rc == 0)
		rc = pin_mend(pin_path(path, p->dir, "program"), p->fd,
		    &out->pins);
	for (i = 0; rc == 0 && i < p->nhold; i++)
		rc = pin_mend(pin_path(path, p->dir, "links/%u",
		    p->hold[i].ifindex), p->hold[i].fd, &out->pins);
	return rc;
}

void
prog_mend(struct prog *p, struct prog_mended *out)
{
	int rc;

	memset(out, 0, sizeof(*out));
	rc = pins_mend(p, out);
	if (rc < 0 && rc != p->mend_err)
		log_warnx("%s: pins are missing and cannot be put back: %s: "
		    "without them a restart of xlbd moves every flow", p->dir,
		    strerror(-rc));
	p->mend_err = rc;
	if (out->pins > 0)
		log_warnx("%s: %zu pins were missing and are back: nobody "
		    "asked to remove them", p->dir, out->pins);
	if (out->rings > 0)
		log_warnx("maps: ring_table: %zu entries were missing and are "
		    "back: nobody asked to remove them", out->rings);
}
