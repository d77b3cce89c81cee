/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Speaks to the service manager over its notify socket, and once over its bus:
 * to ask whether SIGTERM means stop or restart. */
#include "io/notify.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-daemon.h>
#include <time.h>
#include <unistd.h>

#include "io/log.h"

#define JOB_BOUND_US 500000
#define START_US UINT64_C(60000000)	/* for the watchdog */
#define MANAGER "org.freedesktop.systemd1"
#define MANAGER_PATH "/org/freedesktop/systemd1"

/* A status has no end of line: it would begin another assignment. */
static void
clean(char *buf, size_t size, const char *s)
{
	size_t i;

	for (i = 0; s[i] != '\0' && i + 1 < size; i++)
		buf[i] = s[i] == '\n' ? ' ' : s[i];
	buf[i] = '\0';
}

static void
check(int rc)
{
	if (rc < 0)
		log_warnx("notify: %s", strerror(-rc));
}

void
notify_ready(const char *status)
{
	char line[512];
	uint64_t usec;

	clean(line, sizeof(line), status);
	check(sd_notifyf(0, "READY=1\nSTATUS=%s", line));
	if (sd_watchdog_enabled(0, &usec) > 0)
		check(sd_notifyf(0, "WATCHDOG=1\nWATCHDOG_USEC=%" PRIu64,
		    usec));
}

/* The manager would count what a start takes as silence of the one before: a
 * slow machine's verifier needs more than that for the programs. */
void
notify_again(void)
{
	if (sd_watchdog_enabled(0, NULL) > 0)
		check(sd_notifyf(0, "WATCHDOG=1\nWATCHDOG_USEC=%" PRIu64,
		    START_US));
}

void
notify_stopping(void)
{
	check(sd_notify(0, "STOPPING=1"));
}

void
notify_extend(uint64_t usec)
{
	check(sd_notifyf(0, "EXTEND_TIMEOUT_USEC=%" PRIu64, usec));
}

int
notify_store(const char *name, int fd)
{
	char state[128];
	int rc;

	/* FDPOLL=0: else the manager drops it when the device says EPOLLERR */
	snprintf(state, sizeof(state), "FDSTORE=1\nFDNAME=%s\nFDPOLL=0", name);
	rc = sd_pid_notify_with_fds(0, 0, state, &fd, 1);
	check(rc);
	return rc < 0 ? rc : 0;
}

void
notify_unstore(const char *name)
{
	check(sd_notifyf(0, "FDSTOREREMOVE=1\nFDNAME=%s", name));
}

int
notify_stored(const char *name)
{
	char **names = NULL;
	int n, i, fd = -1;

	n = sd_listen_fds_with_names(0, &names);
	for (i = 0; i < n; i++) {
		if (fd < 0 && strcmp(names[i], name) == 0)
			fd = SD_LISTEN_FDS_START + i;
		free(names[i]);
	}
	free(names);
	return fd;
}

/* ---- which job is it? ---- */

static uint64_t
now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

/* sd_bus_call() would wait for the authentication as long as it takes. */
static int
bus_ready(sd_bus *bus, uint64_t until)
{
	uint64_t now;
	int rc = 0;

	while (rc >= 0 && sd_bus_is_ready(bus) == 0) {
		now = now_us();
		if (now >= until)
			return -ETIMEDOUT;
		rc = sd_bus_process(bus, NULL);
		if (rc == 0)
			rc = sd_bus_wait(bus, until - now);
	}
	return rc < 0 ? rc : sd_bus_is_ready(bus) > 0 ? 0 : -ENOTCONN;
}

/* One call, within what is left of the bound. */
static sd_bus_message *
ask(sd_bus *bus, uint64_t until, const char *path, const char *interface,
    const char *method, const char *types, ...)
{
	sd_bus_message *m = NULL, *reply = NULL;
	uint64_t now = now_us();
	va_list ap;
	int rc;

	if (now >= until)
		return NULL;
	rc = sd_bus_message_new_method_call(bus, &m, MANAGER, path, interface,
	    method);
	if (rc >= 0) {
		va_start(ap, types);
		rc = sd_bus_message_appendv(m, types, ap);
		va_end(ap);
	}
	if (rc >= 0)
		rc = sd_bus_call(bus, m, until - now, NULL, &reply);
	if (rc < 0)
		log_debug("notify: %s: %s", method, strerror(-rc));
	sd_bus_message_unref(m);
	return rc < 0 ? NULL : reply;
}

#define PROPERTIES "org.freedesktop.DBus.Properties", "Get", "ss"

/* The path is in the reply, which the caller frees; NULL: no job. */
static sd_bus_message *
job_find(sd_bus *bus, uint64_t until, const char **path)
{
	sd_bus_message *unit, *job = NULL;
	const char *unit_path;
	uint32_t id = 0;

	unit = ask(bus, until, MANAGER_PATH, MANAGER ".Manager",
	    "GetUnitByPID", "u", (uint32_t)getpid());
	if (unit != NULL && sd_bus_message_read(unit, "o", &unit_path) > 0)
		job = ask(bus, until, unit_path, PROPERTIES, MANAGER ".Unit",
		    "Job");
	sd_bus_message_unref(unit);
	if (job != NULL && sd_bus_message_read(job, "v", "(uo)", &id,
	    path) > 0 && id != 0)
		return job;
	sd_bus_message_unref(job);
	return NULL;
}

static enum notify_job
job_type(sd_bus *bus, uint64_t until)
{
	enum notify_job result = JOB_NONE;
	sd_bus_message *job, *m;
	const char *path, *type;

	job = job_find(bus, until, &path);
	if (job == NULL)
		return JOB_NONE;
	m = ask(bus, until, path, PROPERTIES, MANAGER ".Job", "JobType");
	if (m != NULL && sd_bus_message_read(m, "v", "s", &type) > 0) {
		if (strcmp(type, "stop") == 0)
			result = JOB_STOP;
		else if (strcmp(type, "restart") == 0)
			result = JOB_RESTART;
	}
	sd_bus_message_unref(m);
	sd_bus_message_unref(job);
	return result;
}

/*
 * The manager's own socket is beside the notify socket that it gave us, and
 * works without a bus daemon, which may be gone when the machine goes down.
 */
static int
manager_open(sd_bus **out)
{
	const char *notify = getenv("NOTIFY_SOCKET"), *slash;
	char address[512];
	sd_bus *bus;
	int rc, n;

	if (notify == NULL || *notify != '/')
		return -ENOENT;
	slash = strrchr(notify, '/');
	n = snprintf(address, sizeof(address), "unix:path=%.*s/private",
	    (int)(slash - notify), notify);
	if (n < 0 || (size_t)n >= sizeof(address))
		return -ENAMETOOLONG;
	rc = sd_bus_new(&bus);
	if (rc < 0)
		return rc;
	rc = sd_bus_set_address(bus, address);
	if (rc >= 0)
		rc = sd_bus_start(bus);
	if (rc < 0) {
		sd_bus_unref(bus);
		return rc;
	}
	*out = bus;
	return 0;
}

enum notify_job
notify_job(void)
{
	uint64_t until = now_us() + JOB_BOUND_US;
	enum notify_job result;
	sd_bus *bus = NULL;

	if (getenv("NOTIFY_SOCKET") == NULL)
		return JOB_NONE;
	if (manager_open(&bus) < 0 && sd_bus_open_system(&bus) < 0)
		return JOB_NONE;
	result = bus_ready(bus, until) < 0 ? JOB_NONE : job_type(bus, until);
	sd_bus_close(bus);
	sd_bus_unref(bus);
	return result;
}
