/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The prober against real sockets of the loopback interface. */
#include "probe_test.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <sys/mman.h>

#include "io/log.h"
#include "io/probe_private.h"

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
	int64_t until = probe_now().ns + ENOUGH_NS;
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);

	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	for (i = 0; i < 2; i++) {
		filler[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		connect(filler[i], (struct sockaddr *)&in, sizeof(in));
	}
	/* of a listener: those that wait to be accepted */
	while (info.tcpi_unacked == 0 && probe_now().ns < until) {
		usleep(2000);
		assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info,
		    &len), 0);
	}
	assert_int_equal(info.tcpi_unacked, 1);
	return fd;
}

static void
hole_close(int fd, const int filler[2])
{
	close(filler[0]);
	close(filler[1]);
	close(fd);
}

static const char *
status_get(pid_t pid, const char *key)
{
	const char *value = status_find(pid, key);

	assert_non_null(value);
	return value;
}

static void
each_end_has_its_result(void **state)
{
	struct conf_check c = check_tcp(NEVER_MS, 60000);
	struct conf_check late = check_tcp(NEVER_MS, 200);
	struct health_target t[4];
	struct bench b;
	uint16_t up, down, hole;
	int filler[2], up_fd = port_open(16, &up), hole_fd, down_fd;
	int64_t ms;

	(void)state;
	down_fd = port_open(-1, &down);
	hole_fd = hole_open(&hole, filler);
	bench_open(&b);
	t[0] = target("127.0.0.1", up, &c);
	t[1] = target("127.0.0.1", down, &c);
	t[2] = target("127.0.0.1", hole, &late);
	t[3] = target("192.0.2.1", 80, &c);	/* no route, in our network */
	assert_int_equal(prober_set(b.p, t, own_net ? 4 : 3), 0);
	bench_each(&b, own_net ? 4 : 3);
	assert_int_equal(b.last[0], PROBE_OK);
	assert_int_equal(b.last[1], PROBE_REFUSED);
	assert_int_equal(b.last[2], PROBE_TIMEOUT);
	/* ours and not the kernel's, which takes minutes */
	ms = (b.first_at[2] - b.begin) / 1000000;
	assert_in_range(ms, 199, 30000);
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
	struct conf_check c = check_tcp(NEVER_MS, 60000);
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
	/* 0 to 2 are /dev/null; its socket, and an epoll set */
	BENCH_HOLDS(&b, 5);
	pid = prober_pid(b.p);
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
	process_await(pid, "ZX");
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
lives_on_after(struct bench *b, pid_t victim, int sig)
{
	pid_t before = prober_pid(b->p);

	assert_true(victim > 1);
	assert_int_equal(kill(victim, sig), 0);
	BENCH_AWAIT(b, prober_pid(b->p) != before && prober_pid(b->p) != 0);
	bench_reset(b);
	BENCH_AWAIT(b, b->total >= 5);
	assert_int_equal(b->last[0], PROBE_OK);
	/* nothing piles up: with at most one under way */
	BENCH_AWAIT(b, fds_of(prober_pid(b->p)) >= 5 &&
	    fds_of(prober_pid(b->p)) <= 7);
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
	struct conf_check c = check_tcp(20, 1000);
	struct health_target t;
	struct bench b;
	uint16_t port;
	/* nobody accepts: its queue takes all of them */
	int fd = port_open(4096, &port), many[300];
	pid_t last;
	size_t i, mine;
	void *shared;

	(void)state;
	t = target("127.0.0.1", port, &c);
	bench_open(&b);
	assert_int_equal(prober_set(b.p, &t, 1), 0);
	BENCH_AWAIT(&b, b.total >= 5 && prober_pid(b.p) != 0);
	assert_int_equal(b.last[0], PROBE_OK);
	mine = fds_of(getpid());
	/* as the maps are mapped: no spawner may inherit it */
	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(shared != MAP_FAILED);
	for (i = 0; i < 300; i++)
		many[i] = open("/dev/zero", O_RDONLY);
	lives_on_after(&b, prober_pid(b.p), SIGKILL);
	lives_on_after(&b, prober_pid(b.p), SIGSTOP);
	lives_on_after(&b, atoi(status_get(prober_pid(b.p), "PPid")), SIGKILL);
	assert_false(maps_shared(prober_pid(b.p)));
	assert_true(maps_shared(getpid()));
	munmap(shared, 4096);
	/* the end of xlbd is its only end */
	last = prober_pid(b.p);
	assert_int_equal(kill(last, SIGTERM), 0);
	bench_reset(&b);
	BENCH_AWAIT(&b, b.total >= 5);
	assert_int_equal(prober_pid(b.p), last);
	for (i = 0; i < 300; i++)
		close(many[i]);
	assert_int_equal(fds_of(getpid()), mine);
	bench_close(&b);
	close(fd);
}

static void
black_hole_delays_nobody(void **state)
{
	struct conf_check slow = check_tcp(30, 120000);
	struct conf_check quick = check_tcp(20, 60000);
	struct health_target t[2];
	struct bench b;
	uint16_t up, hole;
	int filler[2], up_fd = port_open(4096, &up);
	int hole_fd = hole_open(&hole, filler);
	size_t a, z;
	int64_t ms;

	(void)state;
	a = up < hole ? 0 : 1;
	z = 1 - a;
	t[a] = target("127.0.0.1", up, &quick);
	t[z] = target("127.0.0.1", hole, &slow);
	bench_open(&b);
	assert_int_equal(prober_set(b.p, t, 2), 0);
	BENCH_AWAIT(&b, b.got[a] >= 50);
	ms = (probe_now().ns - b.begin) / 1000000;
	/* the first one at once, none sooner than its turn */
	assert_in_range(b.got[a], 50, (size_t)ms / 20 + 3);
	assert_int_equal(b.ended[PROBE_OK], b.got[a]);
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
	BENCH_HOLDS(&b, 5);
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
	assert_in_range(fds_of(prober_pid(b.p)), 5, 106);
	bench_idle(&b);
	assert_int_equal(fds_of(getpid()), mine);
	bench_close(&b);
	hole_close(hole_fd, filler);
}

static void
results_are_of_the_list_that_is_set(void **state)
{
	struct conf_check c = check_tcp(NEVER_MS, 60000);
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
	assert_int_equal(b.got[0], 1);
	assert_int_equal(b.total, 1);
	assert_int_equal(b.last[0], PROBE_REFUSED);
	bench_close(&b);
	close(fd);
}

#define SPREAD 200		/* targets, */
#define SPREAD_MS 10000		/* which have their turns in so long */
#define BUCKETS 20

static struct {
	struct bench b;
	int64_t due[SPREAD];	/* ns; 0: not known yet */
	size_t turns;
} spread;

static void
turn_count(size_t id, enum probe_result r, uint16_t detail, const char *said,
    void *arg)
{
	(void)detail, (void)said, (void)arg;
	assert_int_equal(r, PROBE_OK);
	assert_true(id < SPREAD);
	spread.b.got[id]++;
	if (spread.due[id] == 0)
		return;
	assert_true(probe_now().ns >= spread.due[id]);
	spread.turns++;
}

/* When each has its turn, as the prober has planned it: when results come also
 * depends on who else needs the processor. */
static void
turns_judge(const struct prober *p)
{
	const int64_t interval = SPREAD_MS * MSEC;
	size_t bucket[BUCKETS] = { 0 }, i, early = 0, late = 0;
	const struct target *t;
	int64_t off;

	assert_int_equal(p->n, SPREAD);
	for (i = 0; i < SPREAD; i++) {
		t = p->target[i];
		bucket[t->grid % interval / (interval / BUCKETS)]++;
		if (t->flight != NONE)
			continue;
		off = t->node.key - t->grid;	/* later: it waited for us */
		assert_true(off >= -interval / 20);
		early += off < -interval / 100;
		late += off > interval / 100;
		spread.due[i] = t->node.key;
	}
	/* two fifths each are expected: six deviations less */
	assert_in_range(early, SPREAD / 5, SPREAD);
	assert_in_range(late, SPREAD / 5, SPREAD);
	for (i = 0; i < BUCKETS; i++)
		assert_in_range(bucket[i], SPREAD / BUCKETS - 2,
		    SPREAD / BUCKETS + 2);
}

static void
probes_are_spread_over_the_interval(void **state)
{
	struct conf_check c = check_tcp(SPREAD_MS, 60000);
	struct health_target t[SPREAD];
	struct bench *b = &spread.b;
	char addr[32];
	uint16_t port;
	int fd = port_open(-1, &port);
	size_t i;

	(void)state;
	close(fd);
	for (i = 0; i < SPREAD; i++) {
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
	b->begin = probe_now().ns;
	assert_int_equal(prober_start(b->p, b->ev, turn_count, b), 0);
	assert_int_equal(prober_set(b->p, t, SPREAD), 0);
	for (i = 0; i < SPREAD; i++)
		BENCH_AWAIT(b, b->got[i] > 0);
	turns_judge(b->p);
	BENCH_AWAIT(b, spread.turns >= 20);
	turns_judge(b->p);
	bench_close(b);
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

	own_net = net_own();
	log_capture(line_keep, NULL);
	return PROBE_TESTS("probe", test);
}
