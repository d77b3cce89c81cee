/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An exec check in xlbd and in the prober: the order, and its outcome. */
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/log.h"
#include "io/probe.h"
#include "io/probe_wire.h"

/* Root's, and those that open xlbd's or BIRD's control socket. */
static bool
group_is_trusted(gid_t gid)
{
	static const char *const name[] = { "xlb", "xlb-admin", "bird" };
	const struct group *gr;
	size_t i;

	for (i = 0; i < sizeof(name) / sizeof(name[0]); i++)
		if ((gr = getgrnam(name[i])) != NULL && gr->gr_gid == gid)
			return true;
	return gid == 0;
}

int
exec_user(const char *user, struct exec_order *o)
{
	const struct passwd *pw;

	errno = 0;
	pw = getpwnam(user);
	if (pw == NULL)
		return errno == 0 ? -ENOENT : -errno;
	if (pw->pw_uid == 0)
		return -EPERM;
	o->uid = pw->pw_uid;
	o->gid = pw->pw_gid;
	if (strcmp(pw->pw_name, PROBER_USER) == 0 || group_is_trusted(o->gid))
		return -EACCES;
	return 0;
}

struct exec_order *
exec_order_new(const struct conf_check *c)
{
	struct exec_order *o = calloc(1, sizeof(*o));
	size_t i, at = 0, len;
	int rc;

	if (o == NULL)
		fatal("prober");
	rc = exec_user(c->user, o);
	if (rc < 0) {
		log_warnx("checks.%s.user: %s: %s: its backends keep their "
		    "state", c->name, c->user, strerror(-rc));
		free(o);
		return NULL;
	}
	snprintf(o->user, sizeof(o->user), "%s", c->user);
	snprintf(o->check, sizeof(o->check), "%s", c->name);
	for (i = 0; c->command[i] != NULL; i++) {	/* the limits hold */
		len = strlen(c->command[i]) + 1;
		memcpy(o->argv + at, c->command[i], len);
		at += len;
	}
	o->argc = (uint16_t)i;
	return o;
}

int
exec_begin(const struct spawner *launcher, const struct exec_order *check,
    const struct addr *addr, uint16_t port, uint32_t timeout_ms)
{
	struct exec_order o = *check;
	int pair[2], rc;

	if (launcher->pid == 0)
		return -EAGAIN;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK,
	    0, pair) < 0)
		return -errno;
	memcpy(o.addr, addr->b, sizeof(o.addr));
	o.port = port;
	o.timeout_ms = timeout_ms;
	rc = probe_send(launcher->fd, &o, sizeof(o), pair[1], MSG_DONTWAIT);
	close(pair[1]);
	if (rc < 0) {
		close(pair[0]);
		return -EAGAIN;		/* if it has ended, that is heard of */
	}
	return pair[0];
}

bool
exec_end(int fd, struct probe_end *end)
{
	struct exec_outcome out;
	ssize_t n;

	n = recv(fd, &out, sizeof(out), MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n != sizeof(out)) {
		end->result = PROBE_LOCAL;	/* the launcher ended */
		return true;
	}
	if (WIFSIGNALED(out.status)) {
		end->result = PROBE_SIGNAL;
		end->detail = (uint16_t)WTERMSIG(out.status);
	} else if (WEXITSTATUS(out.status) != 0) {
		end->result = PROBE_EXIT;
		end->detail = (uint16_t)WEXITSTATUS(out.status);
		memcpy(end->said, out.said, sizeof(end->said));
	} else {
		end->result = PROBE_OK;
	}
	return true;
}
