/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Attaches the program to an interface, replaces it in place, takes it off. */
#include "decap/decap.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <err.h>
#include <errno.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PLAIN_MTU 1500	/* every driver takes this in one buffer */

struct attach {
	const struct decap_config *c;
	struct host host;
	struct pins pins;
	struct instance old;	/* .link -1: none */
	bool old_generic;	/* its mode */
	struct decap_bpf *bpf;	/* what is attached now */
	bool generic, frags;	/* how */
	char why[1024];		/* the last refusal */
};

static const char *
mode_name(bool generic)
{
	return generic ? "generic" : "native";
}

/* What to do about a refusal; "" if we do not know. */
static const char *
refusal_hint(int error, bool generic, int mtu, const char *ack)
{
	if (strstr(ack, "LRO") != NULL || strstr(ack, "GRO_HW") != NULL)
		return "turn LRO off: ethtool -K IFACE lro off gro_hw off";
	if (strcasestr(ack, "mtu") != NULL || error == ERANGE)
		return "lower the MTU; this driver takes neither as large a "
		    "frame in one buffer nor XDP fragments";
	if (strcasestr(ack, "queue") != NULL || strcasestr(ack, "ring") != NULL)
		return "give XDP its queues: fewer channels (ethtool -L), or "
		    "smaller rings (ethtool -G)";
	if (error == EBUSY || error == EEXIST)
		return "another XDP program came in between";
	if (error == EOPNOTSUPP && !generic)
		return "the driver has no native XDP; --mode generic works "
		    "everywhere, but slower";
	if (error == ENOMEM || error == ENOSPC)
		return "memory or queues are short: fewer channels "
		    "(ethtool -L), smaller rings (ethtool -G)";
	if (error == EPERM)
		return "needs root: CAP_NET_ADMIN, CAP_BPF, CAP_SYS_ADMIN";
	if (mtu > PLAIN_MTU)
		return "a lower MTU may help, or LRO off (ethtool -K)";
	return "";
}

static void
refusal_note(struct attach *a, int error, bool generic)
{
	const char *name = a->c->name, *ack = program_ack(), *hint;
	char driver[32];
	int mtu = host_mtu(name);

	host_driver(name, driver, sizeof(driver));
	hint = refusal_hint(error, generic, mtu, ack);
	snprintf(a->why, sizeof(a->why),
	    "%s: %s XDP refused: %s%s%s%s (driver %s, MTU %d)%s%s", name,
	    mode_name(generic), strerror(error), *ack != '\0' ? ": \"" : "",
	    ack, *ack != '\0' ? "\"" : "", driver, mtu,
	    *hint != '\0' ? ": " : "", hint);
}

/*
 * A link does not tell the kernel's reason, attaching over netlink does. Should
 * that work where the link did not, it is taken back.
 */
static void
refusal_ask(const struct attach *a, int fd, uint32_t mode)
{
	uint32_t flags = mode | XDP_FLAGS_UPDATE_IF_NOEXIST;
	LIBBPF_OPTS(bpf_xdp_attach_opts, opts, .old_prog_fd = fd);

	program_quiet(true);
	if (bpf_xdp_attach((int)a->c->ifindex, fd, flags, NULL) == 0)
		bpf_xdp_detach((int)a->c->ifindex, mode | XDP_FLAGS_REPLACE,
		    &opts);
	program_quiet(false);
}

static int
link_make(const struct attach *a, int prog, bool generic)
{
	LIBBPF_OPTS(bpf_link_create_opts, opts,
	    .flags = generic ? XDP_FLAGS_SKB_MODE : XDP_FLAGS_DRV_MODE);

	return bpf_link_create(prog, (int)a->c->ifindex, BPF_XDP, &opts);
}

/* Pinned, it stays when we end. */
static int
link_pin(struct attach *a, int link)
{
	int r = pins_put(&a->pins, a->c->ifindex, link);

	if (r < 0)
		warnx("%s/%u: %s", a->pins.dir, a->c->ifindex, strerror(-r));
	return r;
}

/*
 * One try. 0: packets go through the new program. -errno after a->why is set,
 * and things are as before.
 */
static int
attach_try(struct attach *a, bool generic, bool frags)
{
	struct decap_bpf *bpf;
	int link, r;

	bpf = program_load(a->c, &a->host, generic, frags,
	    a->old.map[MAP_COUNTERS]);
	if (bpf == NULL)
		exit(EXIT_FAILED);
	if (a->old.link >= 0) {
		r = bpf_link_update(a->old.link, program_fd(bpf), NULL);
	} else {
		r = link = link_make(a, program_fd(bpf), generic);
		if (r < 0)
			refusal_ask(a, program_fd(bpf), generic ?
			    XDP_FLAGS_SKB_MODE : XDP_FLAGS_DRV_MODE);
		else
			r = link_pin(a, link);
		if (link >= 0)
			close(link);
	}
	if (r < 0) {
		refusal_note(a, -r, generic);
		program_close(bpf);
		return r;
	}
	a->bpf = bpf;
	a->generic = generic;
	a->frags = frags;
	return 0;
}

/* In more than one buffer only where the driver wants that for this MTU. */
static int
attach_mode(struct attach *a, bool generic)
{
	int r = attach_try(a, generic, false);

	if (r < 0 && !generic && host_mtu(a->c->name) > PLAIN_MTU)
		r = attach_try(a, generic, true);
	return r;
}

static void
attach_restore(struct attach *a)
{
	int link = link_make(a, a->old.prog, a->old_generic);

	if (link < 0 || link_pin(a, link) < 0)
		warnx("%s: is without xlb-decap now: %s", a->c->name,
		    link < 0 ? strerror(-link) : "not pinned");
	else
		warnx("%s: goes on in %s mode as before", a->c->name,
		    mode_name(a->old_generic));
	if (link >= 0)
		close(link);
}

/* The mode of a link is fixed: another mode is another link, with a moment in
 * which packets stay wrapped. The counters go on. */
static int
attach_other_mode(struct attach *a, bool generic)
{
	int r;

	warnx("%s: changes from %s to %s mode: packets are not unwrapped for a "
	    "moment", a->c->name, mode_name(a->old_generic),
	    mode_name(generic));
	bpf_link_detach(a->old.link);
	pins_remove(&a->pins, a->c->ifindex);
	close(a->old.link);
	a->old.link = -1;
	r = attach_mode(a, generic);
	if (r < 0) {
		warnx("%s", a->why);
		attach_restore(a);
		a->why[0] = '\0';
	}
	return r;
}

static int
attach_wanted(struct attach *a)
{
	bool there = a->old.link >= 0;
	int r;

	switch (a->c->mode) {
	case MODE_NATIVE:
	case MODE_GENERIC:
		if (there && a->old_generic != (a->c->mode == MODE_GENERIC))
			return attach_other_mode(a, !a->old_generic);
		return attach_mode(a, a->c->mode == MODE_GENERIC);
	case MODE_AUTO:
		break;
	}
	if (there)
		return attach_mode(a, a->old_generic);
	r = attach_mode(a, false);
	if (r < 0) {
		warnx("%s", a->why);
		r = attach_mode(a, true);
		if (r == 0)
			warnx("%s: attached in generic mode", a->c->name);
	}
	return r;
}

/* Links whose interface is gone, or that somebody detached by force. */
static void
pins_clean(struct pins *p)
{
	unsigned *list;
	struct instance i;
	size_t n = pins_list(p, &list), k;

	for (k = 0; k < n; k++) {
		if (instance_open(p, list[k], &i) < 0)
			continue;
		if (i.ifindex == 0)
			pins_remove(p, list[k]);
		instance_close(&i);
	}
	free(list);
}

static void
foreign_say(const char *name, uint32_t id, bool generic)
{
	struct bpf_prog_info info = { .type = 0 };
	uint32_t len = sizeof(info);
	int fd = bpf_prog_get_fd_by_id(id);

	if (fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &len) < 0)
		info.name[0] = '\0';
	if (fd >= 0)
		close(fd);
	warnx("%s: XDP program %u%s%s%s is attached already (%s mode) and is "
	    "not ours: left alone", name, id,
	    info.name[0] != '\0' ? " \"" : "", info.name,
	    info.name[0] != '\0' ? "\"" : "", mode_name(generic));
}

/* 0 if nothing but our own program is on the interface. */
static int
foreign_check(struct attach *a)
{
	LIBBPF_OPTS(bpf_xdp_query_opts, q);
	uint32_t ours = a->old.link >= 0 ? a->old.prog_id : 0, id;
	int r = bpf_xdp_query((int)a->c->ifindex, 0, &q);

	if (r < 0) {
		warnx("%s: XDP: %s", a->c->name, strerror(-r));
		return r;
	}
	a->old_generic = ours != 0 && q.skb_prog_id == ours;
	id = q.hw_prog_id != 0 ? q.hw_prog_id : q.drv_prog_id;
	if (id == ours || id == 0)
		id = q.skb_prog_id;
	if (id == ours || id == 0)
		return 0;
	foreign_say(a->c->name, id, id == q.skb_prog_id);
	return -EBUSY;
}

/* Interface numbers mean something in one network namespace only. */
static int
netns_check(const struct instance *i, const char *dir, const char *name)
{
	if (i->settings.abi == 0 || i->settings.netns == host_netns())
		return 0;
	warnx("%s: %s belongs to %s of another network namespace: give each "
	    "its own --bpf-dir", name, dir, i->settings.name);
	return -EXDEV;
}

static int
old_open(struct attach *a)
{
	int r = instance_open(&a->pins, a->c->ifindex, &a->old);

	if (r == -ENOENT)
		return 0;
	if (r < 0) {
		warnx("%s/%u: not a link of xlb-decap: %s", a->pins.dir,
		    a->c->ifindex, strerror(-r));
		return r;
	}
	return netns_check(&a->old, a->pins.dir, a->c->name);
}

int
attach(const struct decap_config *c)
{
	struct attach a = { .c = c, .old = { .link = -1, .prog = -1 } };
	int r;

	program_quiet(false);
	r = host_read(&a.host);
	if (r < 0)
		errx(EXIT_FAILED, "addresses of the host: %s", strerror(-r));
	if (pins_open(c->dir, true, &a.pins) < 0)
		return EXIT_FAILED;
	pins_clean(&a.pins);
	r = old_open(&a);
	if (r == 0)
		r = foreign_check(&a);
	if (r == 0) {
		r = attach_wanted(&a);
		if (r < 0 && a.why[0] != '\0')
			warnx("%s", a.why);
	}
	if (a.bpf != NULL)
		program_close(a.bpf);
	instance_close(&a.old);
	pins_close(&a.pins);
	host_free(&a.host);
	return r < 0 ? EXIT_FAILED : EXIT_DONE;
}

/* By number; by the name it had if the interface is gone. 0: none. */
static unsigned
pin_find(const struct pins *p, const char *name)
{
	unsigned *list, ifindex = if_nametoindex(name), found = 0;
	size_t n = pins_list(p, &list), k;
	struct instance i;

	for (k = 0; k < n && found == 0; k++) {
		if (list[k] == ifindex)
			found = ifindex;
		if (ifindex != 0 || instance_open(p, list[k], &i) < 0)
			continue;
		if (i.settings.abi != 0 &&
		    strncmp(i.settings.name, name, IF_NAMESIZE) == 0)
			found = list[k];
		instance_close(&i);
	}
	free(list);
	return found;
}

static int
pin_detach(struct pins *p, unsigned ifindex, const char *name)
{
	struct instance i;
	int r = instance_open(p, ifindex, &i);

	if (r < 0) {
		warnx("%s/%u: not a link of xlb-decap: %s", p->dir, ifindex,
		    strerror(-r));
		return r;
	}
	r = netns_check(&i, p->dir, name);
	if (r == 0 && i.ifindex != 0)
		r = bpf_link_detach(i.link);
	if (r == 0)
		r = pins_remove(p, ifindex);
	if (r < 0 && r != -EXDEV)
		warnx("%s: detach: %s", name, strerror(-r));
	instance_close(&i);
	return r;
}

int
detach(const char *dir, const char *name)
{
	struct pins pins;
	unsigned ifindex;
	int r = -ENOENT;

	program_quiet(true);
	if (pins_open(dir, false, &pins) < 0)
		return EXIT_FAILED;
	ifindex = pin_find(&pins, name);
	if (ifindex != 0)
		r = pin_detach(&pins, ifindex, name);
	else if (if_nametoindex(name) == 0)
		warnx("%s: no such interface", name);
	else
		warnx("%s: xlb-decap is not attached", name);
	pins_clean(&pins);
	pins_close(&pins);
	return r < 0 ? EXIT_FAILED : EXIT_DONE;
}
