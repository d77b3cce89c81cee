/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The launcher: runs commands as other users for as long as the prober waits for
 * them, and takes the first line that they say. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/probe_wire.h"

/* Those that are killed already may need a moment to end. */
#define COMMANDS_MAX (2 * PROBE_COMMANDS_MAX)
#define FDS 3			/* that are watched of each command */
#define DRAIN_MAX 64		/* reads of what an ended command has left */

struct command {
	pid_t pid;		/* 0: this row is free; the leader of a group */
	int pidfd;
	int conn;		/* to the prober; -1: nobody waits any more */
	int out;		/* of its output; -1: it has ended */
	struct exec_outcome outcome;
	size_t len;		/* of what it said */
	bool line_ended;
};

static const char *
limit_set(int what, rlim_t max)
{
	struct rlimit rl;

	if (getrlimit(what, &rl) < 0)
		return "getrlimit";
	if (rl.rlim_max < max)
		max = rl.rlim_max;
	rl.rlim_cur = rl.rlim_max = max;
	return setrlimit(what, &rl) < 0 ? "setrlimit" : NULL;
}

/* Returns what failed, or NULL. */
static const char *
limits_set(const struct exec_order *o)
{
	const char *step;
	int fd;

	/* xlbd is spared where memory is short, a command is not */
	fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	if (fd >= 0) {
		if (write(fd, "0", 1) < 0)
			errno = 0;
		close(fd);
	}
	umask(022);
	if ((step = limit_set(RLIMIT_CORE, 0)) != NULL ||
	    (step = limit_set(RLIMIT_NOFILE, 1024)) != NULL ||
	    (step = limit_set(RLIMIT_MEMLOCK, 65536)) != NULL)
		return step;
	/* for what escapes from its group */
	return limit_set(RLIMIT_CPU, o->timeout_ms / 1000 + 2);
}

static const char *
user_become(const struct exec_order *o)
{
	if (geteuid() == o->uid && o->uid != 0)
		return NULL;	/* xlbd runs as nobody else */
	if (setgroups(0, NULL) < 0)
		return "setgroups";
	if (setresgid(o->gid, o->gid, o->gid) < 0)
		return "setresgid";
	if (setresuid(o->uid, o->uid, o->uid) < 0)
		return "setresuid";
	if (o->uid == 0 || setuid(0) == 0) {
		errno = EPERM;
		return "rights are still there";
	}
	return NULL;
}

static _Noreturn void
command_exec(const struct exec_order *o, char *word)
{
	char address[sizeof("XLB_ADDRESS=") + ADDR_STR_MAX], user[64], port[32];
	char check[sizeof("XLB_CHECK=") + sizeof(o->check)];
	char buf[ADDR_STR_MAX], path[] =
	    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
	char home[] = "HOME=/", lang[] = "LANG=C";
	char *argv[CONF_COMMAND_MAX + 1], *env[] = { path, home, lang, user,
	    check, address, port, NULL };
	struct addr addr;
	size_t i;

	memcpy(addr.b, o->addr, sizeof(addr.b));
	snprintf(user, sizeof(user), "USER=%s", o->user);
	snprintf(check, sizeof(check), "XLB_CHECK=%s", o->check);
	snprintf(address, sizeof(address), "XLB_ADDRESS=%s",
	    addr_print(&addr, buf));
	snprintf(port, sizeof(port), "XLB_PORT=%u", o->port);
	for (i = 0; i < o->argc; i++) {
		argv[i] = word;
		word += strlen(word) + 1;
	}
	argv[i] = NULL;
	execve(argv[0], argv, env);
	dprintf(STDOUT_FILENO, "%s: %s\n", argv[0], strerror(errno));
	_exit(127);
}

/* 0 is /dev/null already. What fails is said as a command would say it. */
static _Noreturn void
command_child(struct exec_order *o, int out, pid_t launcher)
{
	const char *step;
	sigset_t none;
	int sig;

	setsid();
	for (sig = 1; sig < NSIG; sig++)
		signal(sig, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (dup2(out, STDOUT_FILENO) < 0 || dup2(out, STDERR_FILENO) < 0 ||
	    close_range(STDERR_FILENO + 1, ~0U, 0) < 0)
		_exit(126);
	step = limits_set(o);
	if (step == NULL)
		step = user_become(o);
	/* after the user: a change of it takes this back */
	if (step == NULL && prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		step = "prctl";
	if (getppid() != launcher)
		_exit(126);
	if (step == NULL && chdir("/") < 0)
		step = "chdir";
	if (step == NULL)
		command_exec(o, o->argv);
	dprintf(STDOUT_FILENO, "%s: %s\n", step, strerror(errno));
	_exit(126);
}

/* The whole group; by its own number too if it has not made it yet. */
static void
command_kill(const struct command *c)
{
	kill(-c->pid, SIGKILL);
	kill(c->pid, SIGKILL);
}

static void
fd_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* False: there was nothing to read. */
static bool
output_take(struct command *c)
{
	char buf[4096], *end;
	size_t room = sizeof(c->outcome.said) - 1 - c->len, take;
	ssize_t n;

	if (c->out < 0)
		return false;
	n = read(c->out, buf, sizeof(buf));
	if (n < 0)
		return errno == EINTR;
	if (n == 0) {
		fd_close(&c->out);
		return false;
	}
	if (c->line_ended)
		return true;	/* is read so that it can go on writing */
	end = memchr(buf, '\n', (size_t)n);
	take = end != NULL ? (size_t)(end - buf) : (size_t)n;
	c->line_ended = end != NULL || take >= room;
	memcpy(c->outcome.said + c->len, buf, take < room ? take : room);
	c->len += take < room ? take : room;
	return true;
}

/* Its leader has ended: so does the rest of its group, before the number is
 * free for another. */
static void
command_end(struct command *c)
{
	int tries;

	command_kill(c);
	if (waitpid(c->pid, &c->outcome.status, WNOHANG) != c->pid)
		return;
	for (tries = 0; tries < DRAIN_MAX && output_take(c); tries++)
		;
	if (c->conn >= 0)
		send(c->conn, &c->outcome, sizeof(c->outcome),
		    MSG_DONTWAIT | MSG_NOSIGNAL);
	fd_close(&c->conn);
	fd_close(&c->out);
	fd_close(&c->pidfd);
	c->pid = 0;
}

/* Takes `conn`. On failure it is closed: the prober hears that. */
static void
command_begin(struct command *c, struct exec_order *o, int conn)
{
	pid_t self = getpid();
	int out[2];

	if (c == NULL || pipe2(out, O_CLOEXEC) < 0) {
		close(conn);
		return;
	}
	memset(c, 0, sizeof(*c));
	c->pid = fork();
	if (c->pid == 0)
		command_child(o, out[1], self);
	close(out[1]);
	c->conn = conn;
	c->out = out[0];
	c->pidfd = c->pid > 0 ? pidfd_open(c->pid, 0) : -1;
	if (c->pidfd < 0 || fcntl(c->out, F_SETFL, O_NONBLOCK) < 0) {
		if (c->pid > 0) {
			command_kill(c);
			waitpid(c->pid, NULL, 0);
		}
		fd_close(&c->conn);
		fd_close(&c->out);
		fd_close(&c->pidfd);
		c->pid = 0;
	}
}

/* xlbd made it, and it is exactly what exec_order_new() makes. */
static bool
order_fits(const struct exec_order *o)
{
	size_t i, at = 0;

	if (o->argc < 1 || o->argc > CONF_COMMAND_MAX || o->uid == 0 ||
	    o->argv[0] != '/' || o->argv[sizeof(o->argv) - 1] != '\0' ||
	    memchr(o->user, '\0', sizeof(o->user)) == NULL ||
	    memchr(o->check, '\0', sizeof(o->check)) == NULL)
		return false;
	for (i = 0; i < o->argc; i++) {
		if (at >= sizeof(o->argv))
			return false;
		at += strlen(o->argv + at) + 1;
	}
	return true;
}

/* xlbd is gone. By the signal for its parent's death a leader alone would end,
 * not what it began. */
static _Noreturn void
launch_end(const struct command row[COMMANDS_MAX])
{
	size_t i;

	for (i = 0; i < COMMANDS_MAX; i++)
		if (row[i].pid != 0)
			command_kill(&row[i]);
	_exit(0);
}

/* False: xlbd will send no more. */
static bool
order_take(int fd, struct command *free_row)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(sizeof(int))];
	} control;
	struct exec_order o;
	struct iovec iov = { &o, sizeof(o) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1,
	    .msg_control = &control, .msg_controllen = sizeof(control) };
	ssize_t n;
	int conn;

	n = recvmsg(fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return true;
	if (n <= 0)
		return false;
	conn = probe_fd_take(&msg);
	if (n != sizeof(o) || !order_fits(&o))
		_exit(1);
	if (conn >= 0)
		command_begin(free_row, &o, conn);
	return true;
}

static void
command_do(struct command *c, const struct pollfd *pfd)
{
	if (pfd[2].revents != 0)
		output_take(c);
	if (pfd[1].revents != 0) {
		command_end(c);
	} else if (pfd[0].revents & (POLLHUP | POLLERR)) {
		fd_close(&c->conn);
		command_kill(c);
	}
}

_Noreturn void
launch_run(int fd)
{
	static struct command row[COMMANDS_MAX];
	struct pollfd pfd[1 + FDS * COMMANDS_MAX], *at;
	struct command *unused;
	size_t i;

	prctl(PR_SET_NAME, "xlb-launcher", 0, 0, 0);
	for (;;) {
		pfd[0] = (struct pollfd){ .fd = fd, .events = POLLIN };
		unused = NULL;
		for (i = 0; i < COMMANDS_MAX; i++) {
			at = &pfd[1 + FDS * i];
			if (row[i].pid == 0) {
				unused = &row[i];
				at[0] = at[1] = at[2] =
				    (struct pollfd){ .fd = -1 };
				continue;
			}
			at[0] = (struct pollfd){ .fd = row[i].conn };
			at[1] = (struct pollfd){ row[i].pidfd, POLLIN, 0 };
			at[2] = (struct pollfd){ row[i].out, POLLIN, 0 };
		}
		if (poll(pfd, 1 + FDS * COMMANDS_MAX, -1) < 0)
			continue;	/* EINTR */
		for (i = 0; i < COMMANDS_MAX; i++)
			if (row[i].pid != 0)
				command_do(&row[i], &pfd[1 + FDS * i]);
		if (pfd[0].revents != 0 && !order_take(fd, unused))
			launch_end(row);
	}
}
