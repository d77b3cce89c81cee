/* SPDX-License-Identifier: GPL-2.0-or-later */
/* GRO and LRO of an interface in generic mode. */
#include "io/prog_int.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "io/log.h"

static int
ethtool(const char *name, uint32_t cmd, uint32_t *data)
{
	struct ethtool_value v = { .cmd = cmd, .data = *data };
	struct ifreq ifr;
	int fd, rc = 0;

	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	memset(&ifr, 0, sizeof(ifr));
	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", name);
	ifr.ifr_data = (char *)&v;
	if (ioctl(fd, SIOCETHTOOL, &ifr) < 0)
		rc = -errno;
	close(fd);
	*data = v.data;
	return rc;
}

static void
set_gro(const char *name, uint32_t on)
{
	int rc = ethtool(name, ETHTOOL_SGRO, &on);

	if (rc < 0) {
		errno = -rc;
		log_warn("interface %s: turning GRO %s", name,
		    on ? "on" : "off");
	}
}

static void
set_lro(const char *name, bool on)
{
	uint32_t flags = 0;
	int rc;

	rc = ethtool(name, ETHTOOL_GFLAGS, &flags);
	if (rc == 0 && !!(flags & ETH_FLAG_LRO) == on)
		return;
	flags = on ? flags | ETH_FLAG_LRO : flags & ~(uint32_t)ETH_FLAG_LRO;
	if (rc == 0)
		rc = ethtool(name, ETHTOOL_SFLAGS, &flags);
	if (rc < 0) {
		errno = -rc;
		log_warn("interface %s: turning LRO %s", name,
		    on ? "on" : "off");
	}
}

void
offload_off(int saved_fd, const char *name, uint32_t ifindex)
{
	struct xlb_saved saved = { .gro = 0 };
	uint32_t flags = 0;

	/* saved before anything changes, and never by a second one */
	ethtool(name, ETHTOOL_GGRO, &saved.gro);
	if (ethtool(name, ETHTOOL_GFLAGS, &flags) == 0)
		saved.lro = !!(flags & ETH_FLAG_LRO);
	if (bpf_map_update_elem(saved_fd, &ifindex, &saved, BPF_NOEXIST) < 0 &&
	    errno != EEXIST) {
		log_warn("interface %s: saving its GRO setting", name);
		return;
	}
	if (saved.gro)
		set_gro(name, 0);
	set_lro(name, false);
}

void
offload_restore(int saved_fd, uint32_t ifindex)
{
	struct xlb_saved saved;
	char name[IFNAMSIZ];

	if (saved_fd < 0 ||
	    bpf_map_lookup_elem(saved_fd, &ifindex, &saved) < 0)
		return;
	if (if_indextoname(ifindex, name) != NULL) {
		if (saved.gro)
			set_gro(name, 1);
		if (saved.lro)
			set_lro(name, true);
	}
	bpf_map_delete_elem(saved_fd, &ifindex);
}
