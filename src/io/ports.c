/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Loads what watches for frames that interfaces did not take, and listens. */
#include "io/ports.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "io/log.h"
#include "ports_abi.h"

/* bpftool 7.1 writes a cast that drops const */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wcast-qual"
#include "ports.skel.h"
#pragma GCC diagnostic pop

struct ports {
	struct ports_bpf *skel;
	struct ring_buffer *errors;
	sd_event_source *io;
	void (*failed)(uint32_t ifindex, int err, void *arg);
	void *arg;
};

static int
on_error(void *arg, void *data, size_t len)
{
	const struct port_error *e = data;
	struct ports *p = arg;

	if (len >= sizeof(*e))
		p->failed(e->ifindex, e->err, p->arg);
	return 0;
}

static int
on_ready(sd_event_source *s, int fd, uint32_t revents, void *arg)
{
	struct ports *p = arg;

	(void)s;
	(void)fd;
	(void)revents;
	ring_buffer__consume(p->errors);
	return 0;
}

static int
constants_set(struct ports *p, int tx_ports)
{
	struct bpf_map_info info;
	uint32_t len = sizeof(info);
	struct stat net;

	memset(&info, 0, sizeof(info));
	if (bpf_obj_get_info_by_fd(tx_ports, &info, &len) < 0 ||
	    stat("/proc/self/ns/net", &net) < 0)
		return -errno;
	p->skel->rodata->tx_ports_id = info.id;
	p->skel->rodata->netns = (uint32_t)net.st_ino;
	return 0;
}

static int
ports_start(struct ports *p, sd_event *ev, int tx_ports)
{
	int rc;

	p->skel = ports_bpf__open();
	if (p->skel == NULL)
		return -errno;
	rc = constants_set(p, tx_ports);
	if (rc == 0)
		rc = ports_bpf__load(p->skel);
	if (rc < 0)
		return rc;
	p->errors = ring_buffer__new(bpf_map__fd(p->skel->maps.port_errors),
	    on_error, p, NULL);
	if (p->errors == NULL)
		return -errno;
	rc = sd_event_add_io(ev, &p->io, ring_buffer__epoll_fd(p->errors),
	    EPOLLIN, on_ready, p);
	return rc < 0 ? rc : ports_bpf__attach(p->skel);
}

int
ports_open(sd_event *ev, int tx_ports,
    void (*failed)(uint32_t ifindex, int err, void *arg), void *arg,
    struct ports **out)
{
	struct ports *p = calloc(1, sizeof(*p));
	int rc;

	if (p == NULL)
		fatal("ports");
	p->failed = failed;
	p->arg = arg;
	rc = ports_start(p, ev, tx_ports);
	if (rc < 0) {
		log_warnx("interfaces that cannot send XDP frames are not "
		    "noticed: %s", strerror(-rc));
		ports_close(p);
		p = NULL;
	}
	*out = p;
	return rc;
}

void
ports_close(struct ports *p)
{
	if (p == NULL)
		return;
	sd_event_source_disable_unref(p->io);
	ring_buffer__free(p->errors);
	ports_bpf__destroy(p->skel);
	free(p);
}
