/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Opens the packet program and its maps: adopts what is pinned, makes what is
 * missing, replaces what is older. */
#include "io/prog_load.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/log.h"

int
prog_check(const struct prog_config *c)
{
	struct load l;
	bool there;
	int rc;

	rc = pin_dir_check(c->bpf_dir, &there);
	if (rc < 0 || !there)
		return rc;
	rc = load_init(c, &l);
	if (rc == 0)
		rc = load_pins(&l);
	if (rc == 0)
		rc = load_run(&l);
	load_fini(&l);
	return rc;
}

static int
prog_info(int fd, struct bpf_prog_info *info, uint32_t *ids, uint32_t nids)
{
	uint32_t len = sizeof(*info);

	memset(info, 0, sizeof(*info));
	info->map_ids = (uint64_t)(uintptr_t)ids;
	info->nr_map_ids = nids;
	return bpf_obj_get_info_by_fd(fd, info, &len) < 0 ? -errno : 0;
}

static bool
has_map(int fd, const uint32_t *ids, uint32_t n)
{
	struct bpf_map_info info;
	uint32_t len = sizeof(info), i;

	memset(&info, 0, sizeof(info));
	if (bpf_obj_get_info_by_fd(fd, &info, &len) < 0)
		return false;
	for (i = 0; i < n; i++)
		if (ids[i] == info.id)
			return true;
	return false;
}

/* The pinned program is the one built in, on the maps that are pinned. The tag
 * covers the instructions alone, neither maps nor flags. */
static bool
program_same(const struct load *l, int old)
{
	uint32_t ids[MAP_IDS * 2], mine[MAP_IDS * 2], zero = 0, i;
	struct bpf_prog_info a, b;
	struct xlb_saved saved;

	if (prog_info(old, &a, ids, MAP_IDS * 2) < 0 ||
	    prog_info(bpf_program__fd(l->skel->progs.xlb), &b, mine,
	    MAP_IDS * 2) < 0)
		return false;
	if (memcmp(a.tag, b.tag, sizeof(a.tag)) != 0)
		return false;
	if (bpf_map_lookup_elem(l->fd[MAP_SAVED], &zero, &saved) < 0 ||
	    saved.frags != l->c->frags)
		return false;
	for (i = 0; i < MAP_IDS; i++)
		if (has_map(l->fd[i], mine, b.nr_map_ids) &&
		    !has_map(l->fd[i], ids, a.nr_map_ids))
			return false;
	return true;
}

/* Ours in the place of `old` (-1: there is none). A crash anywhere in here is
 * made up for by the next start. */
static int
program_replace(struct prog *p, const struct load *l, int old)
{
	struct xlb_saved saved = { .frags = l->c->frags };
	uint32_t zero = 0;
	int rc;

	if (old >= 0)
		log_info("the packet program is replaced by this build's");
	prog_links_update(p, p->fd, p->id);
	rc = pin_replace(p->dir, "program", p->fd);
	if (rc == 0 && bpf_map_update_elem(l->fd[MAP_SAVED], &zero, &saved,
	    BPF_ANY) < 0)
		rc = -errno;
	if (rc < 0) {
		errno = -rc;
		log_warn("%s/program", p->dir);
	}
	return rc;
}

static int
program_place(struct prog *p, const struct load *l)
{
	struct bpf_prog_info info;
	char path[MAPS_PATH_MAX];
	int old, rc = 0;
	bool same;

	old = bpf_obj_get(pin_path(path, p->dir, "program"));
	same = old >= 0 && program_same(l, old);
	p->fd = dup(same ? old : bpf_program__fd(l->skel->progs.xlb));
	if (p->fd < 0 || prog_info(p->fd, &info, NULL, 0) < 0)
		rc = -errno;
	p->id = rc == 0 ? info.id : 0;
	if (rc == 0 && same)
		prog_links_update(p, p->fd, p->id);
	else if (rc == 0)
		rc = program_replace(p, l, old);
	if (old >= 0)
		close(old);
	return rc;
}

int
prog_switch(struct prog *p, const struct load *l)
{
	int fd = dup(bpf_program__fd(l->skel->progs.xlb)), old = p->fd, rc;
	uint32_t id = p->id;
	struct bpf_prog_info info;

	rc = fd < 0 ? -errno : prog_info(fd, &info, NULL, 0);
	if (rc == 0) {
		p->fd = fd;
		p->id = info.id;
		rc = program_replace(p, l, -1);
	}
	if (rc < 0 && p->fd != old) {
		/* packets would use tables that nobody keeps */
		p->fd = old;
		p->id = id;
		prog_links_update(p, old, id);
		pin_replace(p->dir, "program", old);
	}
	if (rc == 0)
		close(old);
	else if (fd >= 0)
		close(fd);
	return rc;
}

static int
prog_load(struct prog *p, struct load *l)
{
	int rc;

	rc = load_pins(l);
	if (rc == 0)
		rc = load_run(l);
	if (rc == 0)
		rc = load_pin(l);
	if (rc == 0)
		rc = program_place(p, l);
	if (rc == 0)
		rc = maps_open(p->dir, l->fd, l->c->ring_size, &p->maps);
	return rc;
}

int
prog_open(const struct prog_config *c, struct prog **out)
{
	struct prog *p;
	struct load l;
	bool there;
	int rc;

	rc = pin_dir_check(c->bpf_dir, &there);
	if (rc == 0)
		rc = pin_dir_make(c->bpf_dir);
	if (rc < 0)
		return rc;
	p = calloc(1, sizeof(*p));
	if (p == NULL)
		fatal("prog");
	p->fd = -1;
	p->frags = c->frags;
	p->dir = strdup(c->bpf_dir);
	if (p->dir == NULL)
		fatal("prog");
	rc = load_init(c, &l);
	if (rc == 0)
		rc = prog_load(p, &l);
	p->adopted = l.pinned[MAP_TABLES];
	load_fini(&l);
	if (rc < 0) {
		prog_close(p);
		return rc;
	}
	*out = p;
	return 0;
}

void
prog_close(struct prog *p)
{
	if (p == NULL)
		return;
	grow_close(p);
	maps_close(p->maps);
	hold_free(p);
	if (p->fd >= 0)
		close(p->fd);
	free(p->known);
	free(p->dir);
	free(p);
}

int
prog_ports(const struct prog *p)
{
	return p->maps->fd[MAP_TX_PORTS];
}

int
prog_tables(const struct prog *p)
{
	return p->maps->fd[MAP_TABLES];
}

struct maps *
prog_maps(struct prog *p)
{
	return p->maps;
}

bool
prog_adopted(const struct prog *p)
{
	return p->adopted;
}

int
prog_remove(struct prog *p)
{
	return prog_remove_dir(p->dir);
}
