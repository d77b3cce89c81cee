/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Another XDP object beside xlb: its maps are pinned, a hook fills them. */
#include "bench.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static int
object_fail(const char *file, const char *what, int e)
{
	fprintf(stderr, "bench: %s: %s: %s\n", file, what, strerror(e));
	return -1;
}

int
object_open(struct object *o, const char *file, const char *program,
    bool frags)
{
	struct bpf_program *p;
	int e;

	o->obj = bpf_object__open(file);
	if (o->obj == NULL)
		return object_fail(file, "open", errno);
	p = bpf_object__find_program_by_name(o->obj, program);
	if (p == NULL)
		return object_fail(file, program, ENOENT);
	bpf_program__set_type(p, BPF_PROG_TYPE_XDP);
	if (frags)
		bpf_program__set_flags(p,
		    bpf_program__flags(p) | BPF_F_XDP_HAS_FRAGS);
	e = bpf_object__load(o->obj);
	if (e != 0)
		return object_fail(file, "load", -e);
	snprintf(o->dir, sizeof(o->dir), "/sys/fs/bpf/xlb-bench-%ld",
	    (long)getpid());
	if (mkdir(o->dir, 0700) != 0) {
		e = errno;
		fprintf(stderr, "bench: %s: %s\n", o->dir, strerror(e));
		o->dir[0] = '\0';
		return -1;
	}
	e = bpf_object__pin_maps(o->obj, o->dir);
	if (e != 0)
		return object_fail(file, "pin", -e);
	o->fd = bpf_program__fd(p);
	return 0;
}

int
object_hook(const struct object *o, const char *hook, const char *name,
    uint32_t flows)
{
	char count[16];
	int status;
	pid_t pid;

	snprintf(count, sizeof(count), "%u", flows);
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		execl(hook, hook, o->dir, name, count, (char *)NULL);
		fprintf(stderr, "bench: %s: %s\n", hook, strerror(errno));
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return object_fail(hook, "run", errno);
	if (status != 0) {
		fprintf(stderr, "bench: %s %s %s %s: failed\n", hook, o->dir,
		    name, count);
		return -1;
	}
	return 0;
}

void
object_close(struct object *o)
{
	if (o->dir[0] != '\0') {
		bpf_object__unpin_maps(o->obj, o->dir);
		if (rmdir(o->dir) != 0)
			fprintf(stderr, "bench: %s: %s\n", o->dir,
			    strerror(errno));
	}
	bpf_object__close(o->obj);
}
