/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Loads the packet program: on the maps that are pinned, if they are the ones
 * it needs, and on new ones where none are. */
#include "io/prog_load.h"

#include <assert.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "io/log.h"

#define VERIFIER_LOG (8U << 20)
#define VERIFIER_LINES 12	/* of it in the log; all of it in debug */
#define FLUSH "drain the node, then xlb restart --flush; where no xlbd runs, " \
	"xlb detach --force"

void
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
		/* the program has `tables` by address, as its .bss */
		map = i == MAP_TABLES ? l->skel->maps.bss :
		    bpf_object__find_map_by_name(l->skel->obj, map_name[i]);
		if (map == NULL)
			fatalx("the program has no map %s", map_name[i]);
		l->map[i] = map;
		l->spec[i] = (struct spec){ bpf_map__type(map),
		    bpf_map__key_size(map), bpf_map__value_size(map),
		    bpf_map__max_entries(map), bpf_map__map_flags(map) };
	}
}

int
load_init(const struct prog_config *c, struct load *l)
{
	uint32_t sets = c->flow_entries / XLB_FLOW_WAYS;
	uint32_t rows = c->nat ? c->flow_entries : XLB_NAT_ROWS_MIN;
	struct bpf_map *ring;
	int i, rc, cpus;

	assert(sets > 0 && (sets & (sets - 1)) == 0);
	memset(l, 0, sizeof(*l));
	l->c = c;
	for (i = 0; i < MAP_IDS; i++)
		l->fd[i] = -1;
	l->skel = xlb_bpf__open();
	if (l->skel == NULL)
		return -errno;
	l->skel->rodata->ring_size = c->ring_size;
	l->skel->rodata->flow_mask = sets - 1;
	l->skel->rodata->nat_mask = rows - 1;
	cpus = libbpf_num_possible_cpus();
	rc = cpus < 0 ? cpus :
	    bpf_map__set_max_entries(l->skel->maps.stats, (uint32_t)cpus);
	if (rc == 0)
		rc = bpf_map__set_max_entries(l->skel->maps.flows, sets);
	if (rc == 0)
		rc = bpf_map__set_max_entries(l->skel->maps.nat, rows);
	if (rc < 0)
		return rc;
	load_specs(l);
	ring = bpf_map__inner_map(l->map[MAP_RING_TABLE]);
	if (ring == NULL)
		return -EINVAL;
	return bpf_map__set_value_size(ring,
	    (uint32_t)xlb_ring_bytes(c->ring_size));
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
	struct xlb_settings *at = maps_map(l->fd[MAP_TABLES], sizeof(*at)), s;
	int rc;

	if (at == NULL) {
		rc = -errno;
		log_warn("maps: tables");
		return rc;
	}
	s = *at;
	maps_unmap(at, sizeof(*at));
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

/* A table that is in use may be smaller than the one that is wanted: it grows
 * when all else is there (see prog_grow()). */
static int
flows_adopt(struct load *l)
{
	struct bpf_map_info info;
	uint32_t len = sizeof(info), want = l->spec[MAP_FLOWS].max;

	memset(&info, 0, sizeof(info));
	if (bpf_obj_get_info_by_fd(l->fd[MAP_FLOWS], &info, &len) < 0)
		return -errno;
	if (info.max_entries > want) {
		log_warnx("maps: pinned with flow_table.entries %u, the "
		    "configuration says %u; a table in use does not shrink: "
		    FLUSH, info.max_entries * XLB_FLOW_WAYS,
		    want * XLB_FLOW_WAYS);
		return -EEXIST;
	}
	if (info.max_entries == 0 ||
	    (info.max_entries & (info.max_entries - 1)) != 0)
		return 0;	/* map_check() says so */
	l->spec[MAP_FLOWS].max = info.max_entries;
	l->skel->rodata->flow_mask = info.max_entries - 1;
	return bpf_map__set_max_entries(l->skel->maps.flows, info.max_entries);
}

/* It may be larger, since services that needed it may be gone; and smaller, as
 * above. */
static int
nat_adopt(struct load *l)
{
	struct bpf_map_info info;
	uint32_t len = sizeof(info);

	memset(&info, 0, sizeof(info));
	if (bpf_obj_get_info_by_fd(l->fd[MAP_NAT], &info, &len) < 0)
		return -errno;
	if (info.max_entries < XLB_NAT_ROWS_MIN ||
	    (info.max_entries & (info.max_entries - 1)) != 0)
		return 0;	/* map_check() says so */
	l->spec[MAP_NAT].max = info.max_entries;
	l->skel->rodata->nat_mask = info.max_entries - 1;
	return bpf_map__set_max_entries(l->skel->maps.nat, info.max_entries);
}

int
load_pins(struct load *l)
{
	return load_pins_but(l, 0);
}

int
load_pins_but(struct load *l, uint32_t but)
{
	char path[MAPS_PATH_MAX];
	int i, rc;

	for (i = 0; i < MAP_IDS; i++) {
		if (but >> i & 1)
			continue;
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
		rc = i == MAP_FLOWS ? flows_adopt(l) :
		    i == MAP_NAT ? nat_adopt(l) : 0;
		if (rc == 0)
			rc = map_check(l->fd[i], map_name[i], &l->spec[i]);
		if (rc < 0)
			return rc;
		if (!l->pinned[MAP_TABLES]) {
			log_warnx("maps: %s is pinned, tables is not: " FLUSH,
			    map_name[i]);
			return -EEXIST;
		}
	}
	rc = l->pinned[MAP_TABLES] ? settings_check(l) : 0;
	return rc < 0 ? rc : ring_check(l->c->bpf_dir, l->c->ring_size);
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

int
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
	struct xlb_settings *s = maps_map(l->fd[MAP_TABLES], sizeof(*s));

	if (s == NULL)
		return -errno;
	s->abi = XLB_ABI;
	s->ring_size = l->c->ring_size;
	s->seed = l->c->seed;
	memcpy(s->hash_key, l->c->hash_key, sizeof(s->hash_key));
	maps_unmap(s, sizeof(*s));
	return 0;
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

int
load_pin(struct load *l)
{
	char path[MAPS_PATH_MAX];
	int i, rc = 0;

	for (i = 0; rc == 0 && i < MAP_IDS; i++) {
		if (l->pinned[i])
			continue;
		pin_path(path, l->c->bpf_dir, "%s", map_name[i]);
		rc = map_new(l, (enum map_id)i);
		if (rc == 0 && i == MAP_TABLES)
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
