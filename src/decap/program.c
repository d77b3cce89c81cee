/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Loads the program with the settings of one interface in its maps. */
#include "decap/decap.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <err.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* bpftool 7.1 writes a cast that drops const */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wcast-qual"
#include "decap.skel.h"
#pragma GCC diagnostic pop

#define LOG_LINES 30

static struct {
	bool quiet;
	char ack[512];
} heard;

/* The verifier's log is long, and its end tells. */
static const char *
text_tail(const char *text, int lines)
{
	const char *at = text + strlen(text);

	for (; at > text; at--)
		if (at[-1] == '\n' && at[0] != '\0' && --lines == 0)
			break;
	return at;
}

/* libbpf prints the kernel's extended acknowledgement and gives no other way
 * to it. */
static int
libbpf_line(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	static const char ack[] = "Kernel error message: ";
	char *text;
	const char *at;

	if (level != LIBBPF_WARN)
		return 0;
	if (vasprintf(&text, fmt, ap) < 0)
		err(EXIT_FAILED, "memory");
	at = strstr(text, ack);
	if (at != NULL) {
		snprintf(heard.ack, sizeof(heard.ack), "%s", at + strlen(ack));
		heard.ack[strcspn(heard.ack, "\n")] = '\0';
	} else if (!heard.quiet) {
		fputs(text_tail(text, LOG_LINES), stderr);
	}
	free(text);
	return 0;
}

void
program_quiet(bool quiet)
{
	heard.quiet = quiet;
	libbpf_set_print(libbpf_line);
}

const char *
program_ack(void)
{
	return heard.ack;
}

static int
sizes_set(struct decap_bpf *bpf, const struct decap_config *c,
    const struct host *h)
{
	uint32_t n = (uint32_t)h->n;
	int r;

	r = bpf_map__set_max_entries(bpf->maps.from, (uint32_t)c->nfrom + 1);
	if (r == 0)
		r = bpf_map__set_max_entries(bpf->maps.vips,
		    (uint32_t)c->nvip + n + 1);
	if (r == 0)
		r = bpf_map__set_max_entries(bpf->maps.locals, n + 1);
	return r;
}

/* A key that is there keeps its flags and gets these besides. */
static int
key_put(int map, const void *key, uint32_t flags)
{
	uint32_t old = 0;

	bpf_map_lookup_elem(map, key, &old);
	flags |= old;
	return bpf_map_update_elem(map, key, &flags, BPF_ANY);
}

static int
prefixes_put(int map, const struct prefix *p, size_t n)
{
	struct decap_prefix key;
	size_t i;
	int r = 0;

	for (i = 0; i < n && r == 0; i++) {
		key = key_build(&p[i]);
		r = bpf_map_update_elem(map, &key, &(uint32_t){ DECAP_GIVEN },
		    BPF_ANY);
	}
	return r;
}

static int
host_put(struct decap_bpf *bpf, const struct host *h)
{
	int locals = bpf_map__fd(bpf->maps.locals);
	int vips = bpf_map__fd(bpf->maps.vips), r = 0;
	struct decap_prefix key;
	size_t i;

	for (i = 0; i < h->n && r == 0; i++) {
		key = key_build(&h->addr[i].p);
		if (h->addr[i].flags & DECAP_HOST)
			r = key_put(locals, &key.a, h->addr[i].flags);
		else if (bpf_map_lookup_elem(vips, &key, &(uint32_t){ 0 }) < 0)
			r = key_put(vips, &key, h->addr[i].flags);
	}
	return r;
}

static int
maps_fill(struct decap_bpf *bpf, const struct decap_config *c,
    const struct host *h, bool generic, bool frags)
{
	struct decap_settings s = {
		.abi = DECAP_ABI,
		.gue_port = htons(c->gue_port),
		.generic = generic,
		.frags = frags,
		.netns = host_netns(),
	};
	int r;

	snprintf(s.name, sizeof(s.name), "%s", c->name);
	r = bpf_map_update_elem(bpf_map__fd(bpf->maps.settings),
	    &(uint32_t){ 0 }, &s, BPF_ANY);
	if (r == 0)
		r = prefixes_put(bpf_map__fd(bpf->maps.from), c->from,
		    c->nfrom);
	if (r == 0)
		r = prefixes_put(bpf_map__fd(bpf->maps.vips), c->vip, c->nvip);
	if (r == 0)
		r = host_put(bpf, h);
	return r;
}

/* Counters of another layout (an older version) start anew. */
static bool
counters_fit(int fd)
{
	struct bpf_map_info info = { .type = 0 };
	uint32_t len = sizeof(info);

	return fd >= 0 && bpf_obj_get_info_by_fd(fd, &info, &len) == 0 &&
	    info.type == BPF_MAP_TYPE_PERCPU_ARRAY && info.max_entries == 1 &&
	    info.value_size == sizeof(struct decap_counters);
}

struct decap_bpf *
program_load(const struct decap_config *c, const struct host *h, bool generic,
    bool frags, int counters)
{
	struct decap_bpf *bpf;
	int r;

	heard.ack[0] = '\0';
	bpf = decap_bpf__open();
	if (bpf == NULL) {
		warn("program");
		return NULL;
	}
	r = sizes_set(bpf, c, h);
	if (r == 0 && counters_fit(counters))
		r = bpf_map__reuse_fd(bpf->maps.counters, counters);
	if (r == 0 && frags)
		r = bpf_program__set_flags(bpf->progs.xlb_decap,
		    BPF_F_XDP_HAS_FRAGS);
	if (r == 0)
		r = decap_bpf__load(bpf);
	if (r == 0)
		r = maps_fill(bpf, c, h, generic, frags);
	if (r < 0) {
		warnx("program does not load: %s%s", strerror(-r), r == -EPERM ?
		    " (needs root: CAP_BPF, CAP_NET_ADMIN, CAP_PERFMON)" : "");
		decap_bpf__destroy(bpf);
		return NULL;
	}
	return bpf;
}

int
program_fd(const struct decap_bpf *bpf)
{
	return bpf_program__fd(bpf->progs.xlb_decap);
}

void
program_close(struct decap_bpf *bpf)
{
	decap_bpf__destroy(bpf);
}
