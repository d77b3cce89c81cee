/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Opens the packet program and its maps: adopts what is pinned, makes what is
 * missing, replaces what is older. */
#include "io/prog_int.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "io/log.h"

/* bpftool 7.1 writes a cast that drops const */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wcast-qual"
#include "xlb.skel.h"
#pragma GCC diagnostic pop

#define VERIFIER_LOG (8U << 20)
#define VERIFIER_LINES 12	/* of it in the log; all of it in debug */
#define FLUSH "drain the node, then xlb restart --flush"

/* A map as it has to be. */
struct spec {
	uint32_t type, key, value, max, flags;
};

struct load {
	const struct prog_config *c;
	struct xlb_bpf *skel;
	struct bpf_map *map[MAP_IDS];	/* NULL: none of the program's */
	struct spec spec[MAP_IDS];
	int fd[MAP_IDS];	/* ours; -1: not there */
	bool pinned[MAP_IDS];
	char *log;
};

static void
load_fini(struct load *l)
{
	int i;

	for (i = 0; i < MAP_IDS; i++)
		if (l->fd[i] >= 0)
			close(l->fd[i]);
	xlb_bpf__destroy(l->skel);
	free(l->log);
}

/* Flags that the kernel adds by itself. */
static uint32_t
flags_own(uint32_t type, uint32_t flags)
{
	if (type == BPF_MAP_TYPE_DEVMAP || type == BPF_MAP_TYPE_DEVMAP_HASH)
		flags &= ~(uint32_t)BPF_F_RDONLY_PROG;
	return flags;
}

static void
load_specs(struct load *l)
{
	struct bpf_map *map;
	int i;

	for (i = 0; i < MAP_IDS; i++) {
		if (i == MAP_SAVED) {
			l->spec[i] = (struct spec){ BPF_MAP_TYPE_HASH,
			    sizeof(uint32_t), sizeof(struct xlb_saved),
			    XLB_SAVED, BPF_F_NO_PREALLOC };
			continue;
		}
		map = bpf_object__find_map_by_name(l->skel->obj, map_name[i]);
		if (map == NULL)
			fatalx("the program has no map %s", map_name[i]);
		l->map[i] = map;
		l->spec[i] = (struct spec){ bpf_map__type(map),
		    bpf_map__key_size(map), bpf_map__value_size(map),
		    bpf_map__max_entries(map), bpf_map__map_flags(map) };
	}
}

/* The program in memory, with our sizes; nothing is in the kernel yet. */
static int
load_init(const struct prog_config *c, struct load *l)
{
	struct bpf_map *ring;
	int i;

	memset(l, 0, sizeof(*l));
	l->c = c;
	for (i = 0; i < MAP_IDS; i++)
		l->fd[i] = -1;
	l->skel = xlb_bpf__open();
	if (l->skel == NULL)
		return -errno;
	l->skel->rodata->ring_size = c->ring_size;
	load_specs(l);
	ring = bpf_map__inner_map(l->map[MAP_RING_TABLE]);
	if (ring == NULL)
		return -EINVAL;
	return bpf_map__set_value_size(ring,
	    (uint32_t)maps_ring_bytes(c->ring_size));
}

static int
spec_differs(const char *name, const char *what, uint32_t have, uint32_t need)
{
	if (have == need)
		return 0;
	log_warnx("maps: %s: %s %u is pinned, this xlbd needs %u: " FLUSH,
	    name, what, have, need);
	return -EEXIST;
}

static int
map_check(int fd, const char *name, const struct spec *s)
{
	struct bpf_map_info info;
	uint32_t len = sizeof(info);
	int rc;

	memset(&info, 0, sizeof(info));
	if (bpf_obj_get_info_by_fd(fd, &info, &len) < 0) {
		rc = -errno;
		log_warn("maps: %s", name);
		return rc;
	}
	rc = spec_differs(name, "type", info.type, s->type);
	if (rc == 0)
		rc = spec_differs(name, "key size", info.key_size, s->key);
	if (rc == 0)
		rc = spec_differs(name, "value size", info.value_size,
		    s->value);
	if (rc == 0)
		rc = spec_differs(name, "number of entries", info.max_entries,
		    s->max);
	if (rc == 0)
		rc = spec_differs(name, "flags", flags_own(info.type,
		    info.map_flags), s->flags);
	return rc;
}

/* What may not change while flows are on: it would move them all. */
static int
settings_check(const struct load *l)
{
	struct xlb_settings s;
	uint32_t zero = 0;
	int rc;

	if (bpf_map_lookup_elem(l->fd[MAP_SETTINGS], &zero, &s) < 0) {
		rc = -errno;
		log_warn("maps: settings");
		return rc;
	}
	if (s.abi != XLB_ABI)
		log_warnx("maps: pinned with layout %u, this xlbd has %u: "
		    FLUSH, s.abi, XLB_ABI);
	else if (s.ring_size != l->c->ring_size)
		log_warnx("maps: pinned with maglev.table_size %u, the "
		    "configuration says %u: " FLUSH, s.ring_size,
		    l->c->ring_size);
	else if (s.seed != l->c->seed)
		log_warnx("maps: pinned with maglev.seed %llu, the "
		    "configuration says %llu: " FLUSH,
		    (unsigned long long)s.seed,
		    (unsigned long long)l->c->seed);
	else if (memcmp(s.hash_key, l->c->hash_key, sizeof(s.hash_key)) != 0)
		log_warnx("maps: pinned with another maglev.key_file: " FLUSH);
	else
		return 0;
	return -EEXIST;
}

/* Opens what is pinned and looks whether it is what we need. */
static int
load_pins(struct load *l)
{
	char path[MAPS_PATH_MAX];
	int i, rc;

	for (i = 0; i < MAP_IDS; i++) {
		l->fd[i] = bpf_obj_get(pin_path(path, l->c->bpf_dir, "%s",
		    map_name[i]));
		if (l->fd[i] < 0 && errno != ENOENT) {
			rc = -errno;
			log_warn("maps: %s", path);
			return rc;
		}
		l->pinned[i] = l->fd[i] >= 0;
		if (!l->pinned[i])
			continue;
		rc = map_check(l->fd[i], map_name[i], &l->spec[i]);
		if (rc < 0)
			return rc;
		if (!l->pinned[MAP_SETTINGS]) {
			log_warnx("maps: %s is pinned, settings is not: " FLUSH,
			    map_name[i]);
			return -EEXIST;
		}
	}
	rc = l->pinned[MAP_SETTINGS] ? settings_check(l) : 0;
	return rc < 0 ? rc : ring_check(l->c->bpf_dir, l->c->ring_size);
}

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
	load_fini(&l);
	return rc;
}

/* The verifier says why in its last lines. */
static void
log_verifier(const char *text)
{
	const char *end = text + strlen(text), *from = end, *line;
	int n;

	for (n = 0; from > text && n <= VERIFIER_LINES; n += *from == '\n')
		from--;
	for (line = text; line < end; line += n + 1) {
		n = (int)strcspn(line, "\n");
		if (line >= from)
			log_warnx("verifier: %.*s", n, line);
		else
			log_debug("verifier: %.*s", n, line);
		if (line[n] == '\0')
			break;
	}
}

static void
need(const char *what, int rc)
{
	if (rc == 0)
		log_warnx("this kernel has no %s", what);
}

/* What the kernel would need, after it said no. */
static void
log_features(int err)
{
	struct utsname u;
	unsigned major, minor;

	if (err == EPERM) {
		log_warnx("BPF needs the capabilities BPF, NET_ADMIN and "
		    "PERFMON");
		return;
	}
	need("BPF programs of type xdp",
	    libbpf_probe_bpf_prog_type(BPF_PROG_TYPE_XDP, NULL));
	need("BPF maps of type array_of_maps",
	    libbpf_probe_bpf_map_type(BPF_MAP_TYPE_ARRAY_OF_MAPS, NULL));
	need("BPF maps of type devmap_hash",
	    libbpf_probe_bpf_map_type(BPF_MAP_TYPE_DEVMAP_HASH, NULL));
	need("BPF maps of type percpu_array",
	    libbpf_probe_bpf_map_type(BPF_MAP_TYPE_PERCPU_ARRAY, NULL));
	need("BPF helper redirect_map", libbpf_probe_bpf_helper(
	    BPF_PROG_TYPE_XDP, BPF_FUNC_redirect_map, NULL));
	need("BPF helper xdp_adjust_tail", libbpf_probe_bpf_helper(
	    BPF_PROG_TYPE_XDP, BPF_FUNC_xdp_adjust_tail, NULL));
	if (uname(&u) == 0 && sscanf(u.release, "%u.%u", &major, &minor) == 2 &&
	    (major < 6 || (major == 6 && minor < 1)))
		log_warnx("this is Linux %s; the oldest that works is 6.1",
		    u.release);
}

static int
load_reuse(struct load *l)
{
	int i, rc;

	for (i = 0; i < MAP_IDS; i++) {
		if (!l->pinned[i] || l->map[i] == NULL)
			continue;
		rc = bpf_map__reuse_fd(l->map[i], l->fd[i]);
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* Program and missing maps into the kernel. */
static int
load_run(struct load *l)
{
	struct bpf_program *prog = l->skel->progs.xlb;
	int rc, err;

	l->log = calloc(1, VERIFIER_LOG);
	if (l->log == NULL)
		fatal("prog");
	rc = load_reuse(l);
	if (rc == 0)
		rc = bpf_program__set_log_buf(prog, l->log, VERIFIER_LOG);
	if (rc == 0 && l->c->frags)
		rc = bpf_program__set_flags(prog, bpf_program__flags(prog) |
		    BPF_F_XDP_HAS_FRAGS);
	if (rc < 0)
		return rc;
	rc = xlb_bpf__load(l->skel);
	if (rc < 0) {
		err = -rc;
		errno = err;
		log_warn("loading the packet program");
		log_verifier(l->log);
		if (err == E2BIG)
			log_warnx("maglev.table_size %u may be too large for "
			    "this kernel", l->c->ring_size);
		log_features(err);
	}
	return rc;
}

/* The settings that rings depend on are there before anything is. */
static int
settings_init(const struct load *l)
{
	struct xlb_settings s;
	uint32_t zero = 0;

	memset(&s, 0, sizeof(s));
	s.abi = XLB_ABI;
	s.ring_size = l->c->ring_size;
	s.seed = l->c->seed;
	memcpy(s.hash_key, l->c->hash_key, sizeof(s.hash_key));
	return bpf_map_update_elem(l->fd[MAP_SETTINGS], &zero, &s,
	    BPF_ANY) < 0 ? -errno : 0;
}

static int
map_new(struct load *l, enum map_id i)
{
	const struct spec *s = &l->spec[i];
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = s->flags);

	if (l->map[i] != NULL)
		l->fd[i] = dup(bpf_map__fd(l->map[i]));
	else
		l->fd[i] = bpf_map_create(s->type, map_name[i], s->key,
		    s->value, s->max, &opts);
	return l->fd[i] < 0 ? -errno : 0;
}

static int
load_pin(struct load *l)
{
	char path[MAPS_PATH_MAX];
	int i, rc = 0;

	for (i = 0; rc == 0 && i < MAP_IDS; i++) {
		if (l->pinned[i])
			continue;
		pin_path(path, l->c->bpf_dir, "%s", map_name[i]);
		rc = map_new(l, (enum map_id)i);
		if (rc == 0 && i == MAP_SETTINGS)
			rc = settings_init(l);
		if (rc == 0 && bpf_obj_pin(l->fd[i], path) < 0)
			rc = -errno;
		if (rc < 0) {
			errno = -rc;
			log_warn("maps: %s", path);
		}
	}
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
	p->adopted = l.pinned[MAP_SETTINGS];
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
	maps_close(p->maps);
	if (p->fd >= 0)
		close(p->fd);
	free(p->known);
	free(p->dir);
	free(p);
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
