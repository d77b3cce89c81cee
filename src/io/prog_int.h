/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of io/prog share. */
#ifndef XLB_PROG_INT_H
#define XLB_PROG_INT_H

#include <net/if.h>

#include "io/maps_int.h"
#include "io/prog.h"

/* What was said last about an interface: only changes are logged. */
struct prog_known {
	char name[IFNAMSIZ];
	bool attached;
	const char *mode;
	char why[sizeof(((struct prog_link *)0)->why)];
};

/* A link of ours, open: it outlives its pin. */
struct prog_hold {
	uint32_t ifindex;
	int fd;
};

struct prog {
	char *dir;
	bool adopted;
	bool frags;
	int fd;			/* of the program */
	uint32_t id;
	struct maps *maps;
	struct prog_known *known;
	size_t nknown;
	struct prog_hold *hold;
	size_t nhold;
	struct grow *grow;	/* a larger flow table on its way; NULL */
	int mend_err;		/* why the last prog_mend() did not; 0 */
};

/* prog_pin.c */
const char *pin_path(char buf[MAPS_PATH_MAX], const char *dir,
    const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* `dir` may be used: a bpffs, no dots, ours. `*there`: it exists. 0, or -errno
 * after logging why not. */
int pin_dir_check(const char *dir, bool *there);
int pin_dir_make(const char *dir);
/* Pins `fd` as DIR/NAME in the place of what may be there, in one step. */
int pin_replace(const char *dir, const char *name, int fd);
/* Calls `fn` for each pinned link; stops at the first that is not 0. */
int pin_links(const char *dir, int (*fn)(void *arg, uint32_t ifindex),
    void *arg);
int pin_link_open(const char *dir, uint32_t ifindex);
/* Detaches, unpins, puts the interface's settings back. */
void pin_link_remove(const char *dir, int saved_fd, uint32_t ifindex);

/* prog_offload.c: generic XDP runs after GRO and LRO, so they are turned off
 * there; what was before is in the map `saved`. */
void offload_off(int saved_fd, const char *name, uint32_t ifindex);
void offload_restore(int saved_fd, uint32_t ifindex);

/* prog_why.c: why attaching failed with `err`, for people. */
void prog_why(const struct prog *p, const char *name, uint32_t ifindex,
    uint32_t flags, int err, char *buf, size_t size);

/* What helps against it, by what the kernel said, or "". */
void prog_hint(const struct prog *p, const char *name, uint32_t ifindex,
    uint32_t flags, int err, const char *kernel, char *buf, size_t size);

/* prog_grow.c */
void grow_close(struct prog *p);

/* prog_attach.c: links whose program is another one get ours. */
void prog_links_update(struct prog *p, int fd, uint32_t id);

/* prog_mend.c: links that are held open. `fd` is taken over. */
void hold_put(struct prog *p, uint32_t ifindex, int fd);
int hold_dup(const struct prog *p, uint32_t ifindex);	/* -1: none is held */
void hold_drop(struct prog *p, uint32_t ifindex);
void hold_free(struct prog *p);

#endif
