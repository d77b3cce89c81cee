/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The kernel's maps, read back into a state. */
#include "io/maps_int.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/arena.h"
#include "core/sweep.h"
#include "io/log.h"

const char *const map_name[MAP_IDS] = {
	[MAP_TABLES] = "tables", [MAP_RING_TABLE] = "ring_table",
	[MAP_TX_PORTS] = "tx_ports",
	[MAP_STATS] = "stats", [MAP_HEALTH] = "health",
	[MAP_GRACE] = "grace", [MAP_SAVED] = "saved",
	[MAP_FRAGMENTS] = "fragments", [MAP_RARE] = "rare",
	[MAP_EVENTS] = "events", [MAP_EVENT_STATE] = "event_state",
	[MAP_FLOWS] = "flows", [MAP_FLOW_STATS] = "flow_stats",
	[MAP_NAT] = "nat",
};

static size_t
pages(size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (size + page - 1) / page * page;
}

void *
maps_map(int fd, size_t size)
{
	void *p = mmap(NULL, pages(size), PROT_READ | PROT_WRITE, MAP_SHARED,
	    fd, 0);

	return p == MAP_FAILED ? NULL : p;
}

void
maps_unmap(void *p, size_t size)
{
	if (p != NULL)
		munmap(p, pages(size));
}

static int
maps_attach(struct maps *m)
{
	int rc;

	m->tables = maps_map(m->fd[MAP_TABLES], sizeof(*m->tables));
	if (m->tables == NULL)
		return -errno;
	m->grace_fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "xlb_grace",
	    sizeof(uint32_t), sizeof(uint32_t), 1, NULL);
	if (m->grace_fd < 0)
		return -errno;
	m->sweep = sweep_new(m->tables, m->ring_size);
	rc = flows_map(m);
	if (rc == 0)
		rc = nat_map(m);
	if (rc < 0)
		return rc;
	m->ncpu = libbpf_num_possible_cpus();
	if (m->ncpu < 0)
		return m->ncpu;
	m->stats = maps_map(m->fd[MAP_STATS],
	    (size_t)m->ncpu * sizeof(*m->stats));
	return m->stats == NULL ? -errno : 0;
}

int
maps_open(const char *dir, const int fd[MAP_IDS], uint32_t ring_size,
    struct maps **out)
{
	struct maps *m = calloc(1, sizeof(*m));
	int i, rc = 0;

	if (m == NULL)
		fatal("maps");
	m->dir = dir;
	m->ring_size = ring_size;
	m->grace_fd = -1;
	for (i = 0; i < XLB_RINGS; i++)
		m->ring[i].fd = -1;
	for (i = 0; i < MAP_IDS; i++) {
		m->fd[i] = fcntl(fd[i], F_DUPFD_CLOEXEC, 0);
		if (m->fd[i] < 0 && rc == 0)
			rc = -errno;
	}
	if (rc == 0)
		rc = maps_attach(m);
	if (rc == 0)
		rc = ring_adopt(m);
	if (rc == 0)
		table_filter_check(m);
	/* nobody knows when the rows of an earlier xlbd became GONE */
	if (rc == 0 && table_any_gone(m))
		rc = maps_grace(m);
	if (rc < 0) {
		errno = -rc;
		log_warn("maps: %s", dir);
		maps_close(m);
		return rc;
	}
	*out = m;
	return 0;
}

void
maps_close(struct maps *m)
{
	int i;

	if (m == NULL)
		return;
	ring_bury(m);
	sweep_free(m->sweep);
	flows_unmap(m);
	nat_unmap(m);
	for (i = 0; i < XLB_RINGS; i++) {
		maps_unmap(m->ring[i].map, xlb_ring_bytes(m->ring_size));
		if (m->ring[i].fd >= 0)
			close(m->ring[i].fd);
	}
	maps_unmap(m->tables, sizeof(*m->tables));
	maps_unmap(m->stats, (size_t)m->ncpu * sizeof(*m->stats));
	for (i = 0; i < MAP_IDS; i++)
		if (m->fd[i] >= 0)
			close(m->fd[i]);
	if (m->grace_fd >= 0)
		close(m->grace_fd);
	free(m);
}

static void
read_vips(const struct maps *m, struct arena *a, struct state *s)
{
	const struct xlb_vip *row;
	struct state_vip *v;
	uint32_t i;

	for (i = 0; i < XLB_TABLE_ROWS; i++) {
		row = &m->tables->vip[i];
		if (row->id == XLB_ROW_EMPTY || row->id == XLB_ROW_GONE)
			continue;
		v = arena_grow(a, &s->vip, s->nvip++, sizeof(*v));
		memcpy(v->addr.b, row->addr, sizeof(v->addr.b));
		v->id = row->id & ~XLB_VIP_OWN;
		v->own = (row->id & XLB_VIP_OWN) != 0;
		v->flags = row->flags;
	}
}

static int
vip_id_order(const void *a, const void *b)
{
	const struct state_vip *const *x = a, *const *y = b;

	return ((*x)->id > (*y)->id) - ((*x)->id < (*y)->id);
}

/* Services name their VIP by its id; one whose VIP is gone keeps address 0. */
static void
read_services(const struct maps *m, struct arena *a, struct state *s)
{
	struct state_vip key = { .id = 0 };
	const struct state_vip **by_id, **v, *want = &key;
	const struct xlb_service *row;
	struct state_service *to;
	uint32_t i;

	by_id = arena_calloc(a, s->nvip, sizeof(*by_id));
	for (i = 0; i < s->nvip; i++)
		by_id[i] = &s->vip[i];
	qsort(by_id, s->nvip, sizeof(*by_id), vip_id_order);
	for (i = 0; i < XLB_TABLE_ROWS; i++) {
		row = &m->tables->service[i];
		if (!(row->key & XLB_SERVICE_VALID))
			continue;
		to = arena_grow(a, &s->service, s->nservice++, sizeof(*to));
		to->vip_id = (uint32_t)(row->key >> 24);
		to->proto = (uint8_t)(row->key >> 16);
		to->port = (uint16_t)row->key;
		to->number = XLB_WORD_NUMBER(row->word);
		to->ring = XLB_WORD_RING(row->word);
		to->old_ring = XLB_WORD_OLD_RING(row->word);
		to->flags = XLB_WORD_FLAGS(row->word);
		to->backend_port = m->tables->backend_port[to->number %
		    XLB_SERVICES];
		key.id = to->vip_id;
		v = bsearch(&want, by_id, s->nvip, sizeof(*by_id),
		    vip_id_order);
		if (v != NULL)
			to->vip = (*v)->addr;
	}
}

static void
read_backends(const struct maps *m, struct arena *a, struct state *s)
{
	struct state_backend *b;
	struct addr addr;
	uint32_t i;

	for (i = 1; i < XLB_BACKENDS; i++) {
		memcpy(addr.b, m->tables->backend[i].addr, sizeof(addr.b));
		if (addr_is_zero(&addr))
			continue;
		b = arena_grow(a, &s->backend, s->nbackend++, sizeof(*b));
		b->addr = addr;
		b->number = i;
		b->nexthop = m->tables->backend[i].nexthop;
		b->sources = m->tables->backend[i].sources;
		b->retired = m->tables->backend[i].flags & XLB_BACKEND_RETIRED;
	}
}

static void
read_nexthops(const struct maps *m, struct arena *a, struct state *s)
{
	const struct xlb_nexthop *row;
	struct state_nexthop *nh;
	uint8_t mac_vlan[8];
	uint32_t i;

	for (i = 1; i < XLB_NEXTHOPS; i++) {
		row = &m->tables->nexthop[i];
		if (!(row->flags & XLB_NEXTHOP_VALID))
			continue;
		nh = arena_grow(a, &s->nexthop, s->nnexthop++, sizeof(*nh));
		memcpy(nh->gateway.b, row->gateway, sizeof(nh->gateway.b));
		nh->ifindex = row->ifindex;
		memcpy(nh->src.b, row->src, sizeof(nh->src.b));
		memcpy(nh->src_mac, row->src_mac, sizeof(nh->src_mac));
		nh->mtu = row->mtu;
		memcpy(mac_vlan, &row->mac_vlan, sizeof(mac_vlan));
		memcpy(nh->mac, mac_vlan, sizeof(nh->mac));
		nh->vlan = (uint16_t)(mac_vlan[6] << 8 | mac_vlan[7]);
		nh->number = i;
	}
}

static void
read_nat(const struct maps *m, struct arena *a, struct state *s)
{
	const struct xlb_nexthop *row;
	struct state_source *source;
	struct state_door *door;
	struct addr addr;
	uint32_t i;

	for (i = 0; i < XLB_NAT_SOURCES; i++) {
		memcpy(addr.b, m->tables->source[i].addr, sizeof(addr.b));
		if (addr_is_zero(&addr))
			continue;
		source = arena_grow(a, &s->source, s->nsource++,
		    sizeof(*source));
		source->addr = addr;
		source->number = i;
	}
	for (i = 0; i < XLB_DOORS; i++) {
		row = &m->tables->door[i];
		if (!(row->flags & XLB_NEXTHOP_VALID))
			continue;
		door = arena_grow(a, &s->door, s->ndoor++, sizeof(*door));
		door->ifindex = row->ifindex;
		memcpy(door->mac, row->src_mac, sizeof(door->mac));
		door->mtu = row->mtu;
		door->number = i;
	}
}

static void
read_rings(const struct maps *m, struct arena *a, struct state *s)
{
	struct xlb_ring *ring;
	struct state_ring *r;
	uint32_t i;

	for (i = 0; i < XLB_RINGS; i++) {
		ring = m->ring[i].map;
		if (ring == NULL)
			continue;
		r = arena_grow(a, &s->ring, s->nring++, sizeof(*r));
		r->pool = arena_printf(a, "%.*s", XLB_POOL_NAME - 1,
		    ring->pool);
		r->number = i;
		r->slot = ring_part(m, ring, ring->active & 1);
		r->past = ring_part(m, ring, 2);
		r->roles = ring->member;
	}
}

static int
read_ports(const struct maps *m, struct arena *a, struct state *s)
{
	int fd = m->fd[MAP_TX_PORTS];
	uint32_t key, next, *port;
	void *from = NULL;

	while (bpf_map_get_next_key(fd, from, &next) == 0) {
		port = arena_grow(a, &s->port, s->nport++, sizeof(*port));
		*port = key = next;
		from = &key;
	}
	return errno == ENOENT ? 0 : -errno;
}

int
maps_read(struct maps *m, struct arena *a, struct state *found)
{
	int rc;

	ring_bury(m);
	memset(found, 0, sizeof(*found));
	found->settings = m->tables->settings;
	found->settings.listening = 0;	/* events.c's */
	found->ring_size = m->ring_size;
	found->seed = m->tables->settings.seed;
	read_vips(m, a, found);
	read_services(m, a, found);
	read_backends(m, a, found);
	read_nexthops(m, a, found);
	read_nat(m, a, found);
	read_rings(m, a, found);
	rc = read_ports(m, a, found);
	if (rc < 0) {
		errno = -rc;
		log_warn("maps: tx_ports");
		return rc;
	}
	state_sort(found);
	return 0;
}
