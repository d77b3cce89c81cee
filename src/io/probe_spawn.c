/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Spawners: one drops every right, then forks a helper whenever it is asked. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "io/log.h"
#include "io/probe.h"
#include "io/probe_wire.h"

#define CHILD_FD 3		/* the one descriptor besides /dev/null */
#define READY_MS 5000

mono_t
probe_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (mono_t){ ts.tv_sec * 1000000000LL + ts.tv_nsec };
}

uint32_t
probe_fds(void)
{
	struct rlimit rl;

	if (getrlimit(RLIMIT_NOFILE, &rl) < 0)
		return 1024;
	return rl.rlim_max > PROBE_FLIGHTS_MAX + PROBE_FDS_SPARE ?
	    PROBE_FLIGHTS_MAX + PROBE_FDS_SPARE : (uint32_t)rl.rlim_max;
}

int
probe_send(int fd, const void *buf, size_t len, int pass, int flags)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov;
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n;

	memcpy(&iov.iov_base, &buf, sizeof(buf));	/* is only read */
	iov.iov_len = len;
	if (pass >= 0) {
		memset(&control, 0, sizeof(control));
		control.align.cmsg_level = SOL_SOCKET;
		control.align.cmsg_type = SCM_RIGHTS;
		control.align.cmsg_len = CMSG_LEN(sizeof(pass));
		memcpy(CMSG_DATA(&control.align), &pass, sizeof(pass));
		msg.msg_control = &control;
		msg.msg_controllen = sizeof(control);
	}
	do
		n = sendmsg(fd, &msg, flags | MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

int
probe_fd_take(struct msghdr *msg)
{
	struct cmsghdr *c;
	int fd, first = -1;
	size_t i, n;

	for (c = CMSG_FIRSTHDR(msg); c != NULL; c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(fd);
		for (i = 0; i < n; i++) {
			memcpy(&fd, CMSG_DATA(c) + i * sizeof(fd), sizeof(fd));
			if (first < 0)
				first = fd;
			else
				close(fd);
		}
	}
	return first;
}

int
spawner_init(struct spawner *s, const char *name, spawner_fn run,
    const char *user)
{
	const struct passwd *pw;

	memset(s, 0, sizeof(*s));
	s->fd = s->pidfd = -1;
	s->name = name;
	s->run = run;
	if (geteuid() != 0)
		return 0;
	pw = getpwnam(user);
	if (pw == NULL) {
		pw = getpwnam("nobody");
		if (pw == NULL) {
			log_warnx("%s: no user %s, and no nobody either", name,
			    user);
			return -ENOENT;
		}
		log_warnx("%s: no user %s, runs as nobody", name, user);
	}
	if (pw->pw_uid == 0) {
		log_warnx("%s: user %s is root", name, pw->pw_name);
		return -EINVAL;
	}
	s->drop = true;
	s->uid = pw->pw_uid;
	s->gid = pw->pw_gid;
	return 0;
}

/* Each step returns what failed, or NULL; errno is set. */
static const char *
signals_reset(void)
{
	/* Ctrl-C and a stop of the unit reach the whole group, while xlbd still
	 * needs probes: the end is EOF, nothing else. */
	static const int ignored[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT,
	    SIGPIPE, SIGUSR1, SIGUSR2 };
	sigset_t none;
	size_t i;
	int sig;

	for (sig = 1; sig < NSIG; sig++)
		signal(sig, SIG_DFL);
	for (i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		signal(ignored[i], SIG_IGN);
	sigemptyset(&none);
	return sigprocmask(SIG_SETMASK, &none, NULL) < 0 ? "sigprocmask" : NULL;
}

/* Memory that is shared with xlbd: the maps that packets are forwarded by, if
 * this is not the first spawner of that xlbd. */
static const char *
shared_unmap(void)
{
	unsigned long begin, end;
	char *line = NULL, perms[5];
	size_t size = 0;
	FILE *f = fopen("/proc/self/maps", "re");

	if (f == NULL)
		return "/proc/self/maps";
	while (getline(&line, &size, f) > 0)
		if (sscanf(line, "%lx-%lx %4s", &begin, &end, perms) == 3 &&
		    perms[3] == 's')
			munmap((void *)begin, end - begin);
	free(line);
	fclose(f);
	return NULL;
}

/* `keep` becomes CHILD_FD, 0 to 2 are /dev/null, all else is closed. */
static const char *
fds_reduce(int keep)
{
	int null, fd;

	keep = fcntl(keep, F_DUPFD, CHILD_FD + 1);
	null = open("/dev/null", O_RDWR);
	if (keep < 0 || null < 0)
		return "/dev/null";
	for (fd = 0; fd < CHILD_FD; fd++)
		if (null != fd && dup2(null, fd) < 0)
			return "dup2";
	if (dup2(keep, CHILD_FD) < 0)
		return "dup2";
	return close_range(CHILD_FD + 1, ~0U, 0) < 0 ? "close_range" : NULL;
}

static const char *
limits_set(void)
{
	const struct rlimit none = { 0, 0 };
	struct rlimit fds;

	if (getrlimit(RLIMIT_NOFILE, &fds) < 0)
		return "getrlimit";
	fds.rlim_cur = probe_fds();
	if (setrlimit(RLIMIT_NOFILE, &fds) < 0 ||
	    setrlimit(RLIMIT_CORE, &none) < 0)
		return "setrlimit";
	return NULL;
}

#define LAUNCH_CAPS (1U << CAP_SETUID | 1U << CAP_SETGID | 1U << CAP_KILL)

/* The sets of this process, in two halves each. */
static int
caps_get(struct __user_cap_data_struct caps[2])
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3 };

	return (int)syscall(SYS_capget, &head, caps);
}

static int
caps_set(const struct __user_cap_data_struct caps[2])
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3 };

	return (int)syscall(SYS_capset, &head, caps);
}

/* What is in force, before; LAUNCH_CAPS are, from now on, as far as we have
 * them. */
static void
caps_raise(struct __user_cap_data_struct before[2])
{
	struct __user_cap_data_struct caps[2];

	if (caps_get(before) < 0)
		fatal("capget");
	memcpy(caps, before, sizeof(caps));
	caps[0].effective |= caps[0].permitted & LAUNCH_CAPS;
	if (caps_set(caps) < 0)
		fatal("capset");
}

void
spawner_rights_rest(void)
{
	struct __user_cap_data_struct caps[2];

	if (caps_get(caps) < 0)
		fatal("capget");
	caps[0].effective &= ~LAUNCH_CAPS;
	if (caps_set(caps) < 0)
		fatal("capset");
}

void
spawner_kill(const struct spawner *s)
{
	struct __user_cap_data_struct before[2];

	caps_raise(before);
	if (s->pid > 0)
		kill(s->pid, SIGKILL);
	caps_set(before);
}

/* The launcher's: three, as far as there are. */
static const char *
rights_reduce(void)
{
	struct __user_cap_data_struct caps[2];

	if (caps_get(caps) < 0)
		return "capget";
	caps[0].effective = caps[0].permitted &= LAUNCH_CAPS;
	caps[1].effective = caps[1].permitted = 0;
	caps[0].inheritable = caps[1].inheritable = 0;
	if (geteuid() == 0 && setgroups(0, NULL) < 0)
		return "setgroups";
	if (caps_set(caps) < 0)
		return "capset";
	return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ? "dumpable" : NULL;
}

static const char *
rights_drop(const struct spawner *s)
{
	struct __user_cap_data_struct none[2];
	int cap;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return "no_new_privs";
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	if (s->launches)
		return rights_reduce();
	if (s->drop) {
		/* EPERM: SETPCAP was withheld from us, and so will be all that
		 * an exec could ask for, by no_new_privs */
		for (cap = 0; prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) == 0; cap++)
			;
		if (setgroups(0, NULL) < 0)
			return "setgroups";
		if (setresgid(s->gid, s->gid, s->gid) < 0)
			return "setresgid";
		if (setresuid(s->uid, s->uid, s->uid) < 0)
			return "setresuid";
	}
	memset(none, 0, sizeof(none));
	if (caps_set(none) < 0)
		return "capset";
	if (s->drop && (setuid(0) == 0 || getuid() != s->uid ||
	    geteuid() != s->uid || getgroups(0, NULL) != 0)) {
		errno = EPERM;
		return "rights are still there";
	}
	return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ? "dumpable" : NULL;
}

static _Noreturn void
helper_run(const struct spawner *s, int fd, pid_t parent)
{
	const struct rlimit none = { 0, 0 };
	char name[16];

	snprintf(name, sizeof(name), "xlb-%s", s->name);
	prctl(PR_SET_NAME, name, 0, 0, 0);
	/* Without its spawner nobody could end it by force. */
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (getppid() != parent || fds_reduce(fd) != NULL)
		_exit(1);
	setrlimit(RLIMIT_NPROC, &none);		/* forks no more */
	s->run(CHILD_FD);
	_exit(1);
}

static void
helper_kill(pid_t pid)
{
	if (pid <= 0)
		return;
	kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

/* One request of xlbd: 0 and the new helper's end of its socket, -1: EOF. */
static int
order_read(int *fd)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(sizeof(int))];
	} control;
	char byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1,
	    .msg_control = &control, .msg_controllen = sizeof(control) };
	ssize_t n;

	do
		n = recvmsg(CHILD_FD, &msg, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return -1;
	*fd = probe_fd_take(&msg);
	return 0;
}

static _Noreturn void
spawner_run(const struct spawner *s)
{
	struct probe_spawned ready = { 0 }, said;
	pid_t self = getpid(), helper = 0;
	int fd;

	prctl(PR_SET_NAME, "xlb-spawner", 0, 0, 0);
	probe_send(CHILD_FD, &ready, sizeof(ready), -1, 0);
	while (order_read(&fd) == 0) {
		helper_kill(helper);
		memset(&said, 0, sizeof(said));
		helper = fork();
		if (helper == 0)
			helper_run(s, fd, self);
		if (helper < 0) {
			said.err = errno;
			snprintf(said.step, sizeof(said.step), "fork");
		}
		said.pid = helper < 0 ? 0 : helper;
		close(fd);
		probe_send(CHILD_FD, &said, sizeof(said), -1, 0);
	}
	helper_kill(helper);
	_exit(0);
}

static _Noreturn void
spawner_child(const struct spawner *s, int fd)
{
	struct probe_spawned said = { 0 };
	const char *step;

	step = signals_reset();
	if (step == NULL)
		step = shared_unmap();
	if (step == NULL && (step = fds_reduce(fd)) == NULL) {
		fd = CHILD_FD;
		if ((step = limits_set()) == NULL)
			step = rights_drop(s);
	}
	if (step == NULL && chdir("/") < 0)
		step = "chdir";
	if (step == NULL && s->launches) {
		probe_send(CHILD_FD, &said, sizeof(said), -1, 0);
		launch_run(CHILD_FD);
	}
	if (step == NULL)
		spawner_run(s);
	said.err = errno;
	snprintf(said.step, sizeof(said.step), "%s", step);
	probe_send(fd, &said, sizeof(said), -1, 0);
	_exit(1);
}

/* Its first message: 0, or -errno. */
static int
ready_wait(const struct spawner *s)
{
	struct pollfd pfd = { .fd = s->fd, .events = POLLIN };
	struct probe_spawned said;
	ssize_t n;

	if (poll(&pfd, 1, READY_MS) <= 0) {
		log_warnx("%s: no word from its spawner", s->name);
		return -ETIMEDOUT;
	}
	n = recv(s->fd, &said, sizeof(said), MSG_DONTWAIT);
	if (n != sizeof(said)) {
		log_warnx("%s: its spawner ended", s->name);
		return -ECHILD;
	}
	if (said.err != 0) {
		said.step[sizeof(said.step) - 1] = '\0';
		errno = said.err;
		log_warn("%s: %s", s->name, said.step);
		return -said.err;
	}
	return 0;
}

int
spawner_start(struct spawner *s)
{
	struct __user_cap_data_struct before[2];
	int pair[2], rc;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
		rc = -errno;
		log_warn("%s: socketpair", s->name);
		return rc;
	}
	caps_raise(before);
	s->pid = fork();
	if (s->pid == 0)
		spawner_child(s, pair[1]);
	rc = s->pid < 0 ? -errno : 0;
	caps_set(before);
	close(pair[1]);
	s->fd = pair[0];
	if (rc == 0 && (s->pidfd = pidfd_open(s->pid, 0)) < 0)
		rc = -errno;
	if (rc < 0)
		log_warnx("%s: fork: %s", s->name, strerror(-rc));
	else
		rc = ready_wait(s);
	if (rc < 0)
		spawner_close(s);
	return rc;
}

int
spawner_helper(const struct spawner *s)
{
	int pair[2], rc;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	rc = probe_send(s->fd, "", 1, pair[1], MSG_DONTWAIT);
	close(pair[1]);
	if (rc < 0) {
		close(pair[0]);
		return rc;
	}
	return pair[0];
}

void
spawner_reap(struct spawner *s)
{
	if (s->fd >= 0)
		close(s->fd);
	if (s->pidfd >= 0)
		close(s->pidfd);
	s->fd = s->pidfd = -1;
	if (s->pid > 0)
		waitpid(s->pid, NULL, WNOHANG);
	s->pid = 0;
}

/* Ends it by EOF; by force if it does not listen. */
void
spawner_close(struct spawner *s)
{
	struct pollfd pfd = { .fd = s->pidfd, .events = POLLIN };

	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
	if (s->pid > 0 && s->pidfd >= 0 && poll(&pfd, 1, 1000) == 0) {
		spawner_kill(s);
		poll(&pfd, 1, 1000);
	}
	spawner_reap(s);
}
