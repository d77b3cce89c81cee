/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The prober against real sockets of the loopback interface. */
#include "probe_test.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "io/log.h"

static bool own_net;	/* a network of our own, where nothing else is */
static char lines[8][256];
static size_t nlines;

static void
line_keep(int level, const char *line, void *arg)
{
	(void)level, (void)arg;
	if (nlines < 8)
		snprintf(lines[nlines++], sizeof(lines[0]), "%s", line);
}

/* A port whose queue is full: SYNs to it are dropped. */
static int
hole_open(uint16_t *port, int filler[2])
{
	int fd = port_open(0, port), i;
	struct sockaddr_in in = { .sin_family = AF_INET,
		.sin_port = htons(*port) };

	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	for (i = 0; i < 2; i++) {
		filler[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		connect(filler[i], (struct sockaddr *)&in, sizeof(in));
	}
	usleep(10000);
	return fd;
}

static void
hole_close(int fd, const int filler[2])
{
	close(filler[0]);
	close(filler[1]);
	close(fd);
}

/* A line of /proc/PID/status, without its tab. */
static const char *
status_get(pid_t pid, const char *key)
{
	static char line[512];
	char path[64];
	size_t len = strlen(key);
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f) != NULL)
		if (strncmp(line, key, len) == 0 && line[len] == ':') {
			fclose(f);
			line[strcspn(line, "\n")] = '\0';
			return line + len + 1 + strspn(line + len + 1, "\t ");
		}
	fail_msg("%s has no %s", path, key);
	return NULL;
}

static void
each_end_has_its_result(void **state)
{
	struct conf_check c = check_tcp(60000, 200);
	struct health_target t[4];
	struct bench b;
	uint16_t up, down, hole;
	int filler[2], up_fd = port_open(16, &up), hole_fd, down_fd;
	int64_t ms;
	int i;

	(void)state;
	down_fd = port_open(-1, &down);
	hole_fd = hole_open(&hole, filler);
	bench_open(&b);
	t[0] = target("127.0.0.1", up, &c);
	t[1] = target("127.0.0.1", down, &c);
	t[2] = target("127.0.0.1", hole, &c);
	t[3] = target("192.0.2.1", 80, &c);	/* no route, in our network */
	assert_int_equal(prober_set(b.p, t, own_net ? 4 : 3), 0);
	for (i = 0; i < 300 && (b.got[0] == 0 || b.got[1] == 0 ||
	    b.got[2] == 0 || (own_net && b.got[3] == 0)); i++)
		bench_run(&b, 10, SIZE_MAX);
	assert_int_equal(b.last[0], PROBE_OK);
	assert_int_equal(b.last[1], PROBE_REFUSED);
	assert_int_equal(b.last[2], PROBE_TIMEOUT);
	ms = (b.first_at[2] - b.begin) / 1000000;
	assert_in_range(ms, 199, 1500);
	if (own_net)
		assert_int_equal(b.last[3], PROBE_UNREACHABLE);
	bench_close(&b);
	hole_close(hole_fd, filler);
	close(up_fd);
	close(down_fd);
}

/* No TIME_WAIT is left, which would cap them: the prober ends them by RST. */
static void
connections_end_at_once(void **state)
{
	struct conf_check c = check_tcp(60000, 20000);
	struct health_target t;
	struct bench b;
	uint16_t port;
	int fd = port_open(16, &port), taken;
	char byte;

	(void)state;
	bench_open(&b);
	t = target("127.0.0.1", port, &c);
	assert_int_equal(prober_set(b.p, &t, 1), 0);
	bench_each(&b, 1);
	assert_int_equal(b.last[0], PROBE_OK);
	taken = accept(fd, NULL, NULL);
	assert_true(taken >= 0);
	assert_int_equal(recv(taken, &byte, 1, 0), -1);
	assert_int_equal(errno, ECONNRESET);
	bench_close(&b);
	close(taken);
	close(fd);
}

static void
prober_has_nothing_to_lose(void **state)
{
	struct bench b;
	int fd[50];
	pid_t pid;
	size_t i;

	(void)state;
	for (i = 0; i < 50; i++)	/* none of them close-on-exec */
		fd[i] = open("/dev/zero", O_RDONLY);
	bench_open(&b);
	bench_run(&b, 200, 1);
	pid = prober_pid(b.p);
	assert_true(pid > 0);
	/* 0 to 2 are /dev/null; its socket, and an epoll set */
	assert_int_equal(fds_of(pid), 5);
	assert_string_equal(status_get(pid, "NoNewPrivs"), "1");
	assert_string_equal(status_get(pid, "CapEff"), "0000000000000000");
	assert_string_equal(status_get(pid, "CapPrm"), "0000000000000000");
	assert_string_equal(status_get(pid, "CapInh"), "0000000000000000");
	assert_string_equal(status_get(pid, "CapAmb"), "0000000000000000");
	assert_string_equal(status_get(pid, "Groups"), "");
	assert_string_not_equal(status_get(pid, "Uid"), "0\t0\t0\t0");
	assert_string_not_equal(status_get(pid, "Gid"), "0\t0\t0\t0");
	bench_close(&b);
	for (i = 0; i < 50; i++)
		close(fd[i]);
	assert_int_equal(kill(pid, 0), -1);
	assert_int_equal(errno, ESRCH);
}

static void
missing_user_is_said_once(void **state)
{
	struct prober *p;

	(void)state;
	nlines = 0;
	assert_int_equal(prober_fork("xlb-no-such-user", &p), 0);
	assert_int_equal(nlines, 1);
	assert_string_equal(lines[0],
	    "prober: no user xlb-no-such-user, runs as nobody");
	prober_close(p);
	assert_int_equal(prober_fork("root", &p), -EINVAL);
}

/* Whatever is done to its processes, results go on. */
static void
lives_on_after(struct bench *b, pid_t victim, int sig, int64_t within_ms)
{
	pid_t before = prober_pid(b->p);
	size_t fds;

	assert_true(victim > 1);
	assert_int_equal(kill(victim, sig), 0);
	bench_run(b, 100, b->total + 1000);	/* what was on its way */
	bench_reset(b);
	bench_run(b, within_ms, 5);
	assert_true(b->total >= 5);
	assert_int_equal(b->last[0], PROBE_OK);
	bench_run(b, 200, 1000);
	assert_int_not_equal(prober_pid(b->p), before);
	fds = fds_of(prober_pid(b->p));
	assert_in_range(fds, 5, 7);
}

/* Does the process have memory that it shares with others? */
static bool
maps_shared(pid_t pid)
{
	char path[64], line[512], perms[5];
	bool shared = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	f = fopen(path, "re");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f) != NULL)
		if (sscanf(line, "%*x-%*x %4s", perms) == 1 && perms[3] == 's')
			shared = true;
	fclose(f);
	return shared;
}

static void
prober_is_started_again(void **state)
{
	struct conf_check c = check_tcp(20, 100);
	struct health_target t;
	struct bench b;
	uint16_t port;
	int fd = port_open(64, &port), many[300];
	size_t i, mine;
	void *shared;

	(void)state;
	t = target("127.0.0.1", port, &c);
	bench_open(&b);
	assert_int_equal(prober_set(b.p, &t, 1), 0);
	bench_run(&b, 2000, 5);
	assert_int_equal(b.last[0], PROBE_OK);
	mine = fds_of(getpid());
	/* as the maps are mapped: no spawner may inherit it */
	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(shared != MAP_FAILED);
	for (i = 0; i < 300; i++)
		many[i] = open("/dev/zero", O_RDONLY);
	lives_on_after(&b, prober_pid(b.p), SIGKILL, 4000);
	lives_on_after(&b, prober_pid(b.p), SIGSTOP, 8000);
	lives_on_after(&b, atoi(status_get(prober_pid(b.p), "PPid")), SIGKILL,
	    4000);
	assert_false(maps_shared(prober_pid(b.p)));
	assert_true(maps_shared(getpid()));
	munmap(shared, 4096);
	/* the end of xlbd is its only end */
	assert_int_equal(kill(prober_pid(b.p), SIGTERM), 0);
	bench_reset(&b);
	bench_run(&b, 2000, 5);
	assert_true(b.total >= 5);
	for (i = 0; i < 300; i++)
		close(many[i]);
	assert_int_equal(fds_of(getpid()), mine);
	bench_close(&b);
	close(fd);
}

static void
black_hole_delays_nobody(void **state)
{
	struct conf_check slow = check_tcp(30, 5000), quick = check_tcp(20, 100);
	struct health_target t[2];
	struct bench b;
	uint16_t up, hole;
	int filler[2], up_fd = port_open(64, &up);
	int hole_fd = hole_open(&hole, filler);
	size_t a, z;

	(void)state;
	a = up < hole ? 0 : 1;
	z = 1 - a;
	t[a] = target("127.0.0.1", up, &quick);
	t[z] = target("127.0.0.1", hole, &slow);
	bench_open(&b);
	assert_int_equal(prober_set(b.p, t, 2), 0);
	bench_run(&b, 1000, 10000);
	assert_in_range(b.got[a], 20, 60);	/* 50, if nobody else runs */
	assert_int_equal(b.got[z], 0);
	/* one in flight at a time: its socket, and at most one to `up` */
	assert_in_range(fds_of(prober_pid(b.p)), 6, 7);
	bench_close(&b);
	hole_close(hole_fd, filler);
	close(up_fd);
}

static void
lists_come_and_go(void **state)
{
	struct conf_check c = check_tcp(60000, 5000);
	struct health_target t[100];
	struct bench b;
	uint16_t hole;
	int filler[2], hole_fd = hole_open(&hole, filler);
	size_t i, n, mine;
	char addr[32];

	(void)state;
	bench_open(&b);
	bench_run(&b, 100, 1);
	mine = fds_of(getpid());
	for (n = 0; n < 200; n++) {
		/* half of them stay each time; none ever answers */
		for (i = 0; i < 100; i++) {
			snprintf(addr, sizeof(addr), "127.0.%zu.1",
			    i < 50 ? i : n % 150 + i);
			t[i] = target(addr, hole, &c);
		}
		assert_int_equal(prober_set(b.p, t, 100), 0);
		bench_run(&b, 2, 1000);
		assert_in_range(fds_of(getpid()), mine, mine + 1);
	}
	bench_run(&b, 100, b.total + 1000);
	assert_in_range(fds_of(prober_pid(b.p)), 5, 105);
	assert_int_equal(prober_set(b.p, NULL, 0), 0);
	bench_run(&b, 100, b.total + 1);
	assert_int_equal(fds_of(prober_pid(b.p)), 5);
	assert_int_equal(fds_of(getpid()), mine);
	bench_close(&b);
	hole_close(hole_fd, filler);
}

static void
results_are_of_the_list_that_is_set(void **state)
{
	struct conf_check c = check_tcp(60000, 300);
	struct health_target t[2];
	struct bench b;
	uint16_t port;
	int fd = port_open(16, &port);

	(void)state;
	bench_open(&b);
	t[0] = target("127.0.0.1", port, &c);
	t[1] = target("127.0.0.2", port, &c);	/* nobody listens */
	assert_int_equal(prober_set(b.p, t, 2), 0);
	/* both are under way; the first one goes: the other is 0 from now on,
	 * keeps its probe, and is the only one heard of */
	assert_int_equal(prober_set(b.p, &t[1], 1), 0);
	bench_each(&b, 1);
	bench_run(&b, 300, SIZE_MAX);
	/* once, or more often: its next turn is at any moment of the minute */
	assert_int_equal(b.ended[PROBE_REFUSED], b.got[0]);
	assert_int_equal(b.total, b.got[0]);
	bench_close(&b);
	close(fd);
}

static struct {
	struct bench b;
	size_t bucket[20];
	int64_t begin;
} spread;

static void
bucket_count(size_t id, enum probe_result r, uint16_t detail, const char *said,
    void *arg)
{
	int64_t at = (probe_now().ns - spread.begin) / 50000000;

	(void)id, (void)detail, (void)said, (void)arg;
	assert_int_equal(r, PROBE_OK);
	if (at >= 0 && at < 20)
		spread.bucket[at]++;
}

static void
probes_are_spread_over_the_interval(void **state)
{
	struct conf_check c = check_tcp(500, 400);
	struct health_target t[200];
	struct bench *b = &spread.b;
	char addr[32];
	uint16_t port;
	int fd = port_open(512, &port);
	size_t i, total, even, tries;

	(void)state;
	close(fd);
	for (i = 0; i < 200; i++) {
		snprintf(addr, sizeof(addr), "127.0.2.%zu", i);
		t[i] = target(addr, port, &c);
	}
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in any = { .sin_family = AF_INET,
		.sin_port = htons(port) };
	assert_int_equal(bind(fd, (struct sockaddr *)&any, sizeof(any)), 0);
	assert_int_equal(listen(fd, 4096), 0);
	assert_int_equal(prober_fork("_xlb", &b->p), 0);
	assert_true(sd_event_new(&b->ev) >= 0);
	spread.begin = INT64_MAX / 2;
	assert_int_equal(prober_start(b->p, b->ev, bucket_count, b), 0);
	assert_int_equal(prober_set(b->p, t, 200), 0);
	bench_run(b, 700, SIZE_MAX);
	for (tries = 0; tries < 5; tries++) {	/* others may need the CPU */
		memset(spread.bucket, 0, sizeof(spread.bucket));
		spread.begin = probe_now().ns;
		bench_run(b, 1050, SIZE_MAX);
		even = total = 0;
		for (i = 0; i < 20; i++) {	/* 20 each, if it were perfect */
			even += spread.bucket[i] >= 10 &&
			    spread.bucket[i] <= 30;
			total += spread.bucket[i];
		}
		if (even == 20 && total >= 360 && total <= 420)
			break;
	}
	assert_in_range(tries, 0, 4);
	bench_close(b);
	close(fd);
}

static void
net_own(void)
{
	struct ifreq ifr = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	int fd;

	if (geteuid() != 0 || unshare(CLONE_NEWNET) < 0)
		return;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	own_net = ioctl(fd, SIOCSIFFLAGS, &ifr) == 0;
	close(fd);
}

int
main(void)
{
	const struct CMUnitTest test[] = {
		cmocka_unit_test(each_end_has_its_result),
		cmocka_unit_test(connections_end_at_once),
		cmocka_unit_test(prober_has_nothing_to_lose),
		cmocka_unit_test(missing_user_is_said_once),
		cmocka_unit_test(prober_is_started_again),
		cmocka_unit_test(black_hole_delays_nobody),
		cmocka_unit_test(lists_come_and_go),
		cmocka_unit_test(results_are_of_the_list_that_is_set),
		cmocka_unit_test(probes_are_spread_over_the_interval),
	};

	net_own();
	log_capture(line_keep, NULL);
	return PROBE_TESTS("probe", test);
}
