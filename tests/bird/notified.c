/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A service that does with io/notify and io/tun what xlbd does, and with the
 * rest of the unit's sandbox too; appends what it saw to a file.
 *	notified FILE		until SIGTERM
 *	notified FILE sandbox	the same, and tries what the unit forbids
 *	notified FILE job	asks once for the job
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <systemd/sd-daemon.h>
#include <time.h>
#include <unistd.h>

#include "io/file.h"
#include "io/log.h"
#include "io/notify.h"
#include "io/tun.h"

#define PIN_DIR "/sys/fs/bpf/xlbbird"

static FILE *out;
static volatile sig_atomic_t term;

static void
on_term(int sig)
{
	(void)sig;
	term = 1;
}

static void
job_print(void)
{
	static const char *const text[] = { [JOB_NONE] = "none",
	    [JOB_STOP] = "stop", [JOB_RESTART] = "restart" };
	struct timespec a, b;
	enum notify_job job;

	clock_gettime(CLOCK_MONOTONIC, &a);
	job = notify_job();
	clock_gettime(CLOCK_MONOTONIC, &b);
	fprintf(out, "job %s %ld\n", text[job],
	    (b.tv_sec - a.tv_sec) * 1000 + (b.tv_nsec - a.tv_nsec) / 1000000);
}

static int
writable(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* What the sandbox must leave: bpf(2) and its file system, the includes; and
 * what it must take. */
static void
sandbox_print(void)
{
	int map, rc = -1, include;

	map = bpf_map_create(BPF_MAP_TYPE_ARRAY, "notified", 4, 4, 1, NULL);
	if (map >= 0 && (mkdir(PIN_DIR, 0700) == 0 || errno == EEXIST)) {
		unlink(PIN_DIR "/map");
		rc = bpf_obj_pin(map, PIN_DIR "/map");
	}
	include = file_replace("/run/xlb-bird/xlb4.conf", "", 0, 0644);
	fprintf(out, "map %d pin %d include %d groups %d etc %d sysctl %d "
	    "kernel %d\n", map >= 0, rc, include, getgroups(0, NULL),
	    writable("/etc/xlb-notified"),
	    writable("/proc/sys/net/ipv4/ip_forward"),
	    writable("/sys/kernel/mm/transparent_hugepage/enabled"));
}

int
main(int argc, char **argv)
{
	struct sigaction sa = { .sa_handler = on_term };
	int stored, tun;

	log_init("notified", true);
	if (argc < 2 || (out = fopen(argv[1], "a")) == NULL)
		fatal("usage: notified FILE [sandbox | job]");
	setvbuf(out, NULL, _IOLBF, 0);
	if (argc > 2 && strcmp(argv[2], "job") == 0) {
		job_print();
		return 0;
	}
	sigaction(SIGTERM, &sa, NULL);
	stored = notify_stored("xlb0");
	tun = tun_open(stored);
	if (tun < 0)
		return 1;
	if (tun != stored) {
		notify_unstore("xlb0");
		notify_store("xlb0", tun);
	}
	if (argc > 2)
		sandbox_print();
	fprintf(out, "start %s ifindex %u\n",
	    tun == stored ? "stored" : "new", if_nametoindex(TUN_NAME));
	notify_ready("2 services\nREADY=0");
	while (!term) {
		sd_notify(0, "WATCHDOG=1");
		usleep(200000);
	}
	job_print();
	notify_stopping();
	return 0;
}
