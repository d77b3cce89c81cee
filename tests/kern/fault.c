/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Calls that fail, one in each run: system calls, or what has no memory. */
#include "fault.h"

#include "../unit/unit.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <curl/curl.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <libmnl/libmnl.h>
#include <microhttpd.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <syslog.h>
#include <systemd/sd-event.h>
#include <unistd.h>

#include "io/log.h"
#include "kern.h"

#define LATE_S 120		/* of one run: it hangs */

#define CALLS_MAX 4096

/* Of one run; the process that works, and those that it forks, write it. */
struct run {
	int at;			/* the call that fails; -1: none */
	int err;
	int calls;		/* so far */
	bool helpers;
	bool memory;
	pid_t worker;
	char failed[48];	/* "": none so far */
	bool said;		/* the log has a warning, or names the error */
	bool ended;
	int rc, fds;		/* what it ended with; descriptors left over */
	const char *call[CALLS_MAX];	/* of one in which none failed, in their
					 * order */
	const void *from[CALLS_MAX];	/* who called */
};

static struct run *now;
static int held;
static unsigned wrong;		/* of a sweep, each printed */

int fault_errno(void);
bool fault_call(const char *name);
bool fault_memory(const char *name, const void *from);

int
fault_errno(void)
{
	return now->err;
}

/* True: this call fails, errno is set. */
static bool
fails(const char *name, const void *from, bool memory)
{
	bool ours;
	int i;

	if (now == NULL || now->worker == 0 || held > 0 ||
	    now->memory != memory)
		return false;
	ours = getpid() == now->worker;
	if (ours == now->helpers)
		return false;
	i = __atomic_fetch_add(&now->calls, 1, __ATOMIC_SEQ_CST);
	if (now->at < 0 && i < CALLS_MAX) {
		now->call[i] = name;
		now->from[i] = from;
	}
	if (i != now->at)
		return false;
	snprintf(now->failed, sizeof(now->failed), "%s", name);
	errno = now->err;
	return true;
}

bool
fault_call(const char *name)
{
	return fails(name, NULL, false);
}

bool
fault_memory(const char *name, const void *from)
{
	return fails(name, from, true);
}

int
fault_loop(sd_event *ev, bool (*done)(void *arg), void *arg)
{
	double begun = now_ms(), limit;

	while (!done(arg)) {
		limit = now->failed[0] != '\0' ? 1000 : 60000;
		if (now->said || now_ms() - begun > limit)
			return -ETIMEDOUT;
		assert_true(sd_event_run(ev, 5000) >= 0);
	}
	return 0;
}

void
fault_hold(void)
{
	held++;
}

void
fault_go(void)
{
	held--;
}

#define CALL(type, fails, name, params, args) \
	type __real_##name params; \
	type __wrap_##name params; \
	type __wrap_##name params \
	{ \
		return fault_call(#name) ? (type)(fails) : __real_##name args; \
	}
#include "fault_calls.inc"
#undef CALL

#define MEMORY(type, fails, name, params, args) \
	type __real_##name params; \
	type __wrap_##name params; \
	type __wrap_##name params \
	{ \
		return fault_memory(#name, __builtin_return_address(0)) ? \
		    (type)(fails) : __real_##name args; \
	}
#include "fault_memory.inc"
#undef MEMORY

int __wrap_asprintf(char **text, const char *fmt, ...);

int
__wrap_asprintf(char **text, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (fault_memory("asprintf", __builtin_return_address(0)))
		return -1;
	va_start(ap, fmt);
	n = vasprintf(text, fmt, ap);
	va_end(ap);
	return n;
}

/* Ours: where nothing but the end is left, as fatal(). What assert() says is
 * another one. */
_Noreturn void __wrap_abort(void);

_Noreturn void
__wrap_abort(void)
{
	_exit(1);
}

/* Those that take what they take. */
int __real_open(const char *path, int flags, ...);
int __real_fcntl(int fd, int cmd, ...);
int __real_ioctl(int fd, unsigned long request, ...);
int __real_prctl(int option, ...);
long __real_syscall(long number, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_fcntl(int fd, int cmd, ...);
int __wrap_ioctl(int fd, unsigned long request, ...);
int __wrap_prctl(int option, ...);
long __wrap_syscall(long number, ...);

#define REST(last, n) \
	unsigned long a[n]; \
	va_list ap; \
	size_t i_; \
	va_start(ap, last); \
	for (i_ = 0; i_ < (n); i_++) \
		a[i_] = va_arg(ap, unsigned long); \
	va_end(ap)

int
__wrap_open(const char *path, int flags, ...)
{
	REST(flags, 1);

	return fault_call("open") ? -1 : __real_open(path, flags, a[0]);
}

int
__wrap_fcntl(int fd, int cmd, ...)
{
	REST(cmd, 1);

	return fault_call("fcntl") ? -1 : __real_fcntl(fd, cmd, a[0]);
}

int
__wrap_ioctl(int fd, unsigned long request, ...)
{
	REST(request, 1);

	return fault_call("ioctl") ? -1 : __real_ioctl(fd, request, a[0]);
}

int
__wrap_prctl(int option, ...)
{
	REST(option, 4);

	return fault_call("prctl") ? -1 :
	    __real_prctl(option, a[0], a[1], a[2], a[3]);
}

long
__wrap_syscall(long number, ...)
{
	REST(number, 2);	/* capabilities */

	return fault_call("syscall") ? -1 :
	    __real_syscall(number, a[0], a[1]);
}

int __real_munmap(void *at, size_t len);
int __wrap_munmap(void *at, size_t len);

/* A spawner gives up what it shares with others. */
int
__wrap_munmap(void *at, size_t len)
{
	return at == (void *)now ? 0 : __real_munmap(at, len);
}

/*
 * The packet program takes the verifier a third of a second, in each run: where it
 * is `small`, another one that does nothing takes its place, on the same maps.
 */
static bool small;
static int small_fd[4];
static unsigned nsmall;

int __real_bpf_object__load_skeleton(struct bpf_object_skeleton *s);
int __wrap_bpf_object__load_skeleton(struct bpf_object_skeleton *s);
int __real_bpf_program__fd(const struct bpf_program *p);
int __wrap_bpf_program__fd(const struct bpf_program *p);

int
__wrap_bpf_object__load_skeleton(struct bpf_object_skeleton *s)
{
	const struct bpf_insn pass[] = {
		{ .code = 0xb7, .imm = 2 }, { .code = 0x95 } };
	struct bpf_program *p;
	int rc;

	if (fault_call("bpf_object__load_skeleton"))
		return -fault_errno();
	if (!small)
		return __real_bpf_object__load_skeleton(s);
	bpf_object__for_each_program(p, *s->obj)
		bpf_program__set_autoload(p, false);
	rc = __real_bpf_object__load_skeleton(s);
	if (rc < 0)
		return rc;
	assert_in_range(nsmall, 0, 3);
	small_fd[nsmall] = bpf_prog_load(BPF_PROG_TYPE_XDP, "xlb", "GPL", pass,
	    2, NULL);
	assert_true(small_fd[nsmall] >= 0);
	nsmall++;
	return 0;
}

int
__wrap_bpf_program__fd(const struct bpf_program *p)
{
	return small ? small_fd[nsmall - 1] : __real_bpf_program__fd(p);
}

void
fault_small_programs(bool on)
{
	small = on;
	while (!on && nsmall > 0)
		close(small_fd[--nsmall]);
}

static int
fds_count(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	assert_non_null(d);
	while (readdir(d) != NULL)
		n++;
	closedir(d);
	return n;
}

static void
line_take(int level, const char *line, void *arg)
{
	(void)arg;
	if (now->failed[0] != '\0' && (level <= LOG_WARNING ||
	    strstr(line, strerror(now->err)) != NULL))
		now->said = true;
}

static _Noreturn void
work(const struct fault_work *w)
{
	int before, rc;

	alarm(LATE_S);
	setenv("CMOCKA_TEST_ABORT", "1", 1);	/* not back into the parent's */
	log_capture(line_take, NULL);
	before = fds_count();
	now->worker = getpid();
	rc = w->run();
	now->worker = 0;
	now->rc = rc;
	now->fds = fds_count() - before;
	now->ended = true;
	_exit(0);
}

static void
complain(const struct fault_work *w, const char *what, int n)
{
	print_message("# %s: call %d, %s: %s: %d\n", w->name, now->at,
	    now->failed[0] != '\0' ? now->failed : "none", what, n);
	wrong++;
}

/*
 * Nothing fails: how many calls there are, and which. In this process, so that
 * what libraries find out once they know in each run.
 */
static int
dry_run(const struct fault_work *w, bool memory)
{
	memset(now, 0, sizeof(*now));
	now->at = -1;
	now->helpers = w->helpers;
	now->memory = memory;
	now->worker = getpid();
	log_capture(line_take, NULL);
	assert_int_equal(w->run(), 0);
	now->worker = 0;
	return now->calls < CALLS_MAX ? now->calls : CALLS_MAX;
}

/* Memory for the same line of code. */
static bool
is_asked_before(int at)
{
	int i;

	for (i = 0; i < at && now->from[i] != now->from[at]; i++)
		;
	return i < at;
}

/* A loop over rows, of up to three calls each: two rows tell. */
static bool
is_more_of_the_same(int at)
{
	int n, i;

	if (now->from[at] != NULL)
		return is_asked_before(at);
	for (n = 1; n <= 3; n++) {
		for (i = 0; i < 2 * n && at - i - n >= 0 &&
		    now->call[at - i] == now->call[at - i - n]; i++)
			;
		if (i == 2 * n)
			return true;
	}
	return false;
}

static bool
is_borne(const struct fault_work *w)
{
	char list[256], word[64];

	snprintf(list, sizeof(list), " %s ", w->borne != NULL ? w->borne : "");
	snprintf(word, sizeof(word), " %s ", now->failed);
	return strstr(list, word) != NULL;
}

/* What a run has left ends with it, and may hold a lock until then. */
static void
orphans_await(void)
{
	double begun = now_ms();
	pid_t pid;

	now->worker = 0;
	while ((pid = waitpid(-1, NULL, WNOHANG)) >= 0 &&
	    now_ms() - begun < LATE_S * 1000)
		if (pid == 0)
			usleep(1000);
}

/* The run with call number `at` failing, if it comes to that. */
static void
run_one(const struct fault_work *w, int at, bool memory)
{
	int status;
	pid_t pid;

	memset(now, 0, offsetof(struct run, call));
	now->at = at;
	now->err = w->err != 0 ? w->err : ENOMEM;
	now->helpers = w->helpers;
	now->memory = memory;
	pid = __real_fork();
	if (pid == 0)
		work(w);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	orphans_await();
	now->at = at;
	if (WIFSIGNALED(status))
		complain(w, "signal", WTERMSIG(status));
	else if (!now->ended && WEXITSTATUS(status) != 1)
		complain(w, "exit status", WEXITSTATUS(status));
	if (now->ended && now->fds != 0)
		complain(w, "descriptors are left", now->fds);
	if (now->failed[0] != '\0' && now->ended && now->rc >= 0 &&
	    !now->said && !w->helpers && !is_borne(w))
		complain(w, "nothing is said", now->rc);
}

static void
sweep(const struct fault_work *w, bool memory)
{
	int at, calls, n = 0;
	bool begun = false;
	double since;

	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
	wrong = 0;
	held = 0;
	small = false;
	now = mmap(NULL, sizeof(*now), PROT_READ | PROT_WRITE, MAP_SHARED |
	    MAP_ANONYMOUS, -1, 0);
	assert_true(now != MAP_FAILED);
	since = now_ms();
	calls = dry_run(w, memory);
	for (at = 0; at < calls && (w->most == 0 || n < w->most); at++) {
		begun |= w->from == NULL || memory ||
		    strcmp(now->call[at], w->from) == 0;
		if (!begun || is_more_of_the_same(at))
			continue;
		n++;
		run_one(w, at, memory);
	}
	print_message("# %s%s: %d of %d calls, %.0f ms\n", w->name,
	    memory ? ", no memory" : "", n, calls, now_ms() - since);
	__real_munmap(now, sizeof(*now));
	now = NULL;
	if ((n == 0 && !memory) || wrong > 0)
		fail_msg("%s: see above", w->name);
}

void
fault_sweep(const struct fault_work *w)
{
	sweep(w, false);
}

void
fault_sweep_memory(const struct fault_work *w)
{
	sweep(w, true);
}
