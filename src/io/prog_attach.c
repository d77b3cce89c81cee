/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The program on interfaces, through links that are pinned. */
#include "io/prog_int.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/if_link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/log.h"

static const char *const native = "native", *const generic = "generic",
    *const nothing = "-";

struct links_update {
	struct prog *p;
	int fd;
	uint32_t id;
};

static int
link_info(int fd, struct bpf_link_info *info)
{
	uint32_t len = sizeof(*info);

	memset(info, 0, sizeof(*info));
	return bpf_obj_get_info_by_fd(fd, info, &len) < 0 ? -errno : 0;
}

static int
update_one(void *arg, uint32_t ifindex)
{
	const struct links_update *u = arg;
	int fd = pin_link_open(u->p->dir, ifindex);
	struct bpf_link_info info;
	char name[IFNAMSIZ];

	if (fd < 0)
		return 0;
	/* one without its device is for prog_attach() to remove */
	if (link_info(fd, &info) == 0 && info.xdp.ifindex == ifindex &&
	    info.prog_id != u->id && bpf_link_update(fd, u->fd, NULL) < 0)
		log_warn("interface %s: replacing the program",
		    if_indextoname(ifindex, name) != NULL ? name : "?");
	close(fd);
	return 0;
}

void
prog_links_update(struct prog *p, int fd, uint32_t id)
{
	struct links_update u = { .p = p, .fd = fd, .id = id };

	pin_links(p->dir, update_one, &u);
}

/* The mode in which our program is on the interface; `nothing` if it is not. */
static const char *
mode_of(uint32_t ifindex, uint32_t id)
{
	LIBBPF_OPTS(bpf_xdp_query_opts, q);

	if (bpf_xdp_query((int)ifindex, 0, &q) < 0)
		return nothing;
	if (q.drv_prog_id == id)
		return native;
	return q.skb_prog_id == id ? generic : nothing;
}

static bool
mode_fits(enum xdp_mode want, const char *mode)
{
	if (mode == nothing)
		return false;
	return want == XDP_MODE_AUTO ||
	    (mode == native) == (want == XDP_MODE_NATIVE);
}

static int
saved_fd(const struct prog *p)
{
	return p->maps->fd[MAP_SAVED];
}

static void
link_remove(struct prog *p, uint32_t ifindex)
{
	hold_drop(p, ifindex);	/* without a pin it ends by that */
	pin_link_remove(p->dir, saved_fd(p), ifindex);
}

/*
 * A driver may refuse our program where it took the one before (a single-buffer
 * one, above its MTU). That one goes by the same maps: it stays, and is named.
 * Its id, or ours.
 */
static uint32_t
link_update(const struct prog *p, int fd, const struct bpf_link_info *info,
    struct prog_link *row)
{
	int err;

	if (info->prog_id == p->id || bpf_link_update(fd, p->fd, NULL) == 0)
		return p->id;
	err = errno;
	snprintf(row->why, sizeof(row->why), "link %u keeps program %u of an "
	    "earlier xlbd and refuses this one's, %u: %s", info->id,
	    info->prog_id, p->id, strerror(err));
	return info->prog_id;
}

/* Is our link there, alive, with the right program, in the right mode? What is
 * not so, and can't be mended in place, is removed. */
static bool
link_adopt(struct prog *p, const struct conf_interface *want,
    struct prog_link *row)
{
	int fd = pin_link_open(p->dir, row->ifindex);
	struct bpf_link_info info;
	bool ok;

	if (fd < 0)
		fd = hold_dup(p, row->ifindex);	/* see prog_mend() */
	if (fd < 0)
		return false;
	ok = link_info(fd, &info) == 0 && info.xdp.ifindex == row->ifindex;
	row->mode = ok ? mode_of(row->ifindex, link_update(p, fd, &info, row)) :
	    nothing;
	if (mode_fits(want->xdp, row->mode)) {
		hold_put(p, row->ifindex, fd);
		return true;
	}
	close(fd);
	row->moved = row->mode != nothing;
	row->mode = nothing;
	link_remove(p, row->ifindex);
	return false;
}

/* 0, or -errno. */
static int
link_make(struct prog *p, const struct prog_link *row, uint32_t flags)
{
	LIBBPF_OPTS(bpf_link_create_opts, opts, .flags = flags);
	char path[MAPS_PATH_MAX];
	int fd, rc = 0;

	if (flags == XDP_FLAGS_SKB_MODE)
		offload_off(saved_fd(p), row->name, row->ifindex);
	fd = bpf_link_create(p->fd, (int)row->ifindex, BPF_XDP, &opts);
	if (fd < 0)
		rc = -errno;
	else if (bpf_obj_pin(fd, pin_path(path, p->dir, "links/%u",
	    row->ifindex)) < 0)
		rc = -errno;
	if (rc == 0)
		hold_put(p, row->ifindex, fd);
	else if (fd >= 0)
		close(fd);	/* not pinned: detached by that */
	if (rc < 0 && flags == XDP_FLAGS_SKB_MODE)
		offload_restore(saved_fd(p), row->ifindex);
	return rc;
}

static bool
try_mode(struct prog *p, struct prog_link *row, uint32_t flags)
{
	int rc = link_make(p, row, flags);

	if (rc == 0) {
		row->mode = flags == XDP_FLAGS_DRV_MODE ? native : generic;
		return true;
	}
	prog_why(p, row->name, row->ifindex, flags, -rc, row->why,
	    sizeof(row->why));
	return false;
}

static struct prog_known *
known_find(const struct prog *p, const char *name)
{
	size_t i;

	for (i = 0; i < p->nknown; i++)
		if (strcmp(p->known[i].name, name) == 0)
			return &p->known[i];
	return NULL;
}

static void
attach_one(struct prog *p, const struct conf_interface *want,
    struct prog_link *row)
{
	const struct prog_known *k = known_find(p, want->name);

	row->ifindex = if_nametoindex(want->name);
	if (row->ifindex == 0) {
		snprintf(row->why, sizeof(row->why), "no such interface");
		return;
	}
	row->attached = row->adopted = link_adopt(p, want, row);
	if (!row->attached && want->xdp != XDP_MODE_GENERIC)
		row->attached = try_mode(p, row, XDP_FLAGS_DRV_MODE);
	if (!row->attached && want->xdp != XDP_MODE_NATIVE)
		row->attached = try_mode(p, row, XDP_FLAGS_SKB_MODE);
	row->again = row->attached && !row->adopted && !row->moved &&
	    k != NULL && k->attached;
}

/* Says what is another than when it was said last. An automatic choice keeps
 * the reason of its choice. */
static void
report(const struct prog *p, struct prog_link *row)
{
	const struct prog_known *k = known_find(p, row->name);
	const char *before = k == NULL ? "detached" :
	    k->attached ? k->mode : "detached";
	char object[IFNAMSIZ + 16];

	snprintf(object, sizeof(object), "interface %s", row->name);
	if (row->again)
		log_change(object, "detached", row->mode,
		    "nobody asked to take it off");
	if (k != NULL && k->attached && row->attached &&
	    k->mode == row->mode) {
		if (*row->why == '\0' && row->mode == generic)
			memcpy(row->why, k->why, sizeof(row->why));
		if (strcmp(k->why, row->why) == 0)
			return;
	}
	if (k != NULL && !k->attached && !row->attached &&
	    strcmp(k->why, row->why) == 0)
		return;
	if (!row->attached)
		log_warnx("%s: no XDP: %s", object, row->why);
	else if (*row->why != '\0')
		log_warnx("%s: %s: %s", object, row->adopted ? row->mode :
		    "generic, because native was refused", row->why);
	else if (k != NULL && k->attached && k->mode == row->mode)
		log_info("%s: %s, with this xlbd's program", object, row->mode);
	else if (k == NULL && row->adopted)
		log_info("%s: %s, as it was found", object, row->mode);
	else if (!row->again)
		log_change(object, before, row->mode, "");
}

struct unwanted {
	struct prog *p;
	const struct prog_link *link;
	size_t n;
};

static int
drop_unwanted(void *arg, uint32_t ifindex)
{
	const struct unwanted *u = arg;
	char name[IFNAMSIZ], object[IFNAMSIZ + 16];
	size_t i;

	for (i = 0; i < u->n; i++)
		if (if_nametoindex(u->link[i].name) == ifindex)
			return 0;
	link_remove(u->p, ifindex);
	if (if_indextoname(ifindex, name) == NULL)
		snprintf(name, sizeof(name), "%u", ifindex);
	snprintf(object, sizeof(object), "interface %s", name);
	log_change(object, "attached", "detached",
	    if_nametoindex(name) != 0 ? "no longer wanted" : "it is gone");
	return 0;
}

/* What has lost its pin is not met there. */
static void
hold_unwanted(struct prog *p, const struct prog_link *link, size_t n)
{
	size_t i, k;

	for (i = p->nhold; i-- > 0;) {
		for (k = 0; k < n && link[k].ifindex != p->hold[i].ifindex;
		    k++)
			;
		if (k == n)
			link_remove(p, p->hold[i].ifindex);
	}
}

static void
remember(struct prog *p, const struct prog_link *link, size_t n)
{
	size_t i;

	free(p->known);
	p->known = calloc(n > 0 ? n : 1, sizeof(*p->known));
	if (p->known == NULL)
		fatal("prog");
	for (i = 0; i < n; i++) {
		snprintf(p->known[i].name, sizeof(p->known[i].name), "%s",
		    link[i].name);
		p->known[i].attached = link[i].attached;
		p->known[i].mode = link[i].mode;
		memcpy(p->known[i].why, link[i].why, sizeof(link[i].why));
	}
	p->nknown = n;
}

int
prog_attach(struct prog *p, const struct conf_interface *want, size_t n,
    struct prog_link *link)
{
	struct unwanted u = { .p = p, .link = link, .n = n };
	int rc = 0;
	size_t i;

	for (i = 0; i < n; i++)
		link[i] = (struct prog_link){ .name = want[i].name,
		    .mode = nothing };
	pin_links(p->dir, drop_unwanted, &u);
	for (i = 0; i < n; i++) {
		attach_one(p, &want[i], &link[i]);
		report(p, &link[i]);
		if (!link[i].attached)
			rc = -1;
	}
	hold_unwanted(p, link, n);
	remember(p, link, n);
	return rc;
}
