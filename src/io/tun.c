/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Makes TUN devices; takes xlb0 over from an earlier run. */
#include "io/tun.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/log.h"

/* The namespace that the device of `fd` is in is the one we are in. */
static bool
in_our_netns(int fd)
{
	struct stat ours, its;
	int ns;
	bool same;

	ns = ioctl(fd, TUNGETDEVNETNS);
	if (ns < 0)
		return false;
	same = stat("/proc/self/ns/net", &ours) == 0 &&
	    fstat(ns, &its) == 0 && ours.st_dev == its.st_dev &&
	    ours.st_ino == its.st_ino;
	close(ns);
	return same;
}

/* A device that was deleted leaves its descriptor behind, useless. The name is
 * asked of the device itself: somebody may have renamed it. */
static bool
is_ours(int fd)
{
	struct ifreq ifr;

	memset(&ifr, 0, sizeof(ifr));
	return ioctl(fd, TUNGETIFF, &ifr) == 0 &&
	    strcmp(ifr.ifr_name, TUN_NAME) == 0 &&
	    (ifr.ifr_flags & IFF_TUN) != 0 && in_our_netns(fd);
}

/* Its flags; with `up` it is set up before. -errno. */
static int
flags_of(const char *name, bool up)
{
	struct ifreq ifr = { .ifr_flags = 0 };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), rc = 0;

	if (fd < 0)
		return -errno;
	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", name);
	if (ioctl(fd, SIOCGIFFLAGS, &ifr) < 0)
		rc = -errno;
	if (rc == 0 && up) {
		ifr.ifr_flags |= IFF_UP;
		if (ioctl(fd, SIOCSIFFLAGS, &ifr) < 0)
			rc = -errno;
	}
	close(fd);
	return rc < 0 ? rc : ifr.ifr_flags;
}

int
tun_make(const char *name)
{
	struct ifreq ifr = { .ifr_flags = IFF_TUN | IFF_NO_PI };
	int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK), rc = 0;

	if (fd < 0) {
		rc = -errno;
		log_warn("/dev/net/tun");
		return rc;
	}
	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", name);
	if (ioctl(fd, TUNSETIFF, &ifr) < 0)
		rc = -errno;
	if (rc == -EBUSY)
		log_warnx("%s: another process holds it", name);
	else if (rc < 0)
		log_warnx("%s: %s", name, strerror(-rc));
	if (rc == 0) {
		rc = flags_of(name, true);
		if (rc < 0)
			log_warnx("%s: cannot set it up: %s", name,
			    strerror(-rc));
	}
	if (rc < 0) {
		close(fd);
		return rc;
	}
	return fd;
}

int
tun_open(int stored)
{
	int flags, fd;

	if (stored >= 0 && is_ours(stored)) {
		flags = flags_of(TUN_NAME, false);
		if (flags >= 0 && (flags & IFF_UP) == 0)
			log_warnx(TUN_NAME " is down, so BIRD announces "
			    "nothing: `ip link set " TUN_NAME " up` ends that");
		return stored;
	}
	/* closed after the other is made: the caller compares the numbers */
	fd = tun_make(TUN_NAME);
	if (stored >= 0) {
		log_info(TUN_NAME ": the stored descriptor is of no use");
		close(stored);
	}
	return fd;
}
