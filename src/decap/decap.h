/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The parts of xlb-decap. Only the link of each interface is pinned, as
 * DIR/IFINDEX (bpffs refuses dots, and interfaces like eth0.100 have them); the
 * program and its maps hang on the link and are found through it, so there is
 * nothing beside it that could disagree with it.
 */
#ifndef XLB_DECAP_H
#define XLB_DECAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/bpf.h>

#include "core/addr.h"
#include "decap_abi.h"

#define DECAP_DIR	"/sys/fs/bpf/xlb-decap"
#define DECAP_GUE_PORT	6080
#define DECAP_PREFIXES	1024	/* --from and --vip each; far above need */

enum { EXIT_DONE, EXIT_FAILED, EXIT_USAGE };

enum decap_mode { MODE_NATIVE, MODE_GENERIC, MODE_AUTO };

/* What attach was asked for. */
struct decap_config {
	const char *dir;
	const char *name;	/* of the interface */
	unsigned ifindex;
	enum decap_mode mode;
	uint16_t gue_port;	/* host byte order */
	struct prefix *from, *vip;
	size_t nfrom, nvip;
};

/* keys.c: between core's addresses and the keys of the maps */
struct decap_prefix key_build(const struct prefix *p);
void key_prefix(const struct decap_prefix *key, struct prefix *out);

/* host.c: what the kernel knows about this host */
struct host_addr {
	struct prefix p;	/* a whole address, or (IPv4 on lo) its network:
				 * all of it is local then */
	uint32_t flags;		/* DECAP_HOST, DECAP_LO */
};
struct host {
	struct host_addr *addr;
	size_t n;
};
int host_read(struct host *out);	/* 0, or -errno */
void host_free(struct host *h);
int host_mtu(const char *name);		/* -1 if unknown */
void host_driver(const char *name, char *buf, size_t len);	/* or "-" */
uint64_t host_netns(void);		/* cookie of ours, 0 if unknown */

/* program.c: the program with its maps filled, not attached yet */
struct decap_bpf;
/* `counters`: the map to go on with, or -1. NULL after saying why. */
struct decap_bpf *program_load(const struct decap_config *c,
    const struct host *h, bool generic, bool frags, int counters);
int program_fd(const struct decap_bpf *bpf);
void program_close(struct decap_bpf *bpf);
void program_quiet(bool quiet);		/* libbpf's warnings are not printed */
const char *program_ack(void);	/* the kernel's words since the last load */

/* pins.c: the directory and what is pinned in it */
struct pins {
	const char *dir;
	int fd;			/* locked; -1: there is no such directory */
};
/* 0, or -1 after saying why. Without `make` a missing one is empty. */
int pins_open(const char *dir, bool make, struct pins *out);
/* Removes the directory if it is empty. */
void pins_close(struct pins *p);
/* Interface indices, sorted; the caller frees. */
size_t pins_list(const struct pins *p, unsigned **out);
int pins_put(const struct pins *p, unsigned ifindex, int link);
int pins_remove(const struct pins *p, unsigned ifindex);	/* or -errno */

enum { MAP_SETTINGS, MAP_FROM, MAP_VIPS, MAP_LOCALS, MAP_COUNTERS, MAP_COUNT };

/* One pinned link and what hangs on it. */
struct instance {
	int link, prog;
	int map[MAP_COUNT];	/* -1: this program has none */
	unsigned ifindex;	/* where it is attached; 0: nowhere any more */
	uint32_t prog_id;
	struct decap_settings settings;	/* .abi 0: of another version */
};
int instance_open(const struct pins *p, unsigned ifindex,
    struct instance *out);	/* 0, or -errno: nothing is open */
void instance_close(struct instance *i);

/* attach.c, status.c: the commands; an exit status */
int attach(const struct decap_config *c);
int detach(const char *dir, const char *name);
int status(const char *dir, bool json);

#endif
