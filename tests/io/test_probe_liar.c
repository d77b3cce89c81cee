/* SPDX-License-Identifier: GPL-2.0-or-later */
/* xlbd against a prober that is not what it should be: this one is linked
 * instead of probe_child.c. */
#include "probe_test.h"

#include "io/log.h"
#include "lives.h"

static size_t complaints;

#define NOISE 2000		/* messages for each request */

/* Of the right size, with results that there are; all else at random. What is
 * said has no end. */
static void
noise(int fd, const struct probe_request *rq, unsigned *dice)
{
	struct probe_answer a;
	unsigned char *byte = (unsigned char *)&a;
	size_t i, k;

	for (i = 0; i < NOISE; i++) {
		for (k = 0; k < sizeof(a); k++)
			byte[k] = (unsigned char)(1 + rand_r(dice) % 255);
		a.result %= PROBE_RESULTS;
		a.detail %= UINT16_MAX;
		if (rand_r(dice) % 2)
			a.id = rq->id;
		else if (rand_r(dice) % 2)
			a.generation = rq->generation;
		if (a.id == rq->id && a.generation == rq->generation)
			a.id++;
		send(fd, &a, sizeof(a), 0);
	}
}

/* Its nth life: 0 too short, 1 too long, 2 no such result, 3 ends, 4 strange
 * ids and generations before the right answer, and whatever comes to mind. */
_Noreturn void
probe_child(int fd)
{
	struct probe_request rq;
	struct probe_answer a[2];
	unsigned dice = 1;
	ssize_t n = life_begin();

	for (;;) {
		if (recv(fd, &rq, sizeof(rq), 0) != sizeof(rq))
			_exit(0);
		memset(a, 0, sizeof(a));
		a[0].id = rq.id;
		a[0].generation = rq.generation;
		if (n == 1)
			send(fd, a, 7, 0);
		else if (n == 2)
			send(fd, a, sizeof(a), 0);
		else if (n == 3)
			a[0].result = PROBE_RESULTS,
			    send(fd, a, sizeof(a[0]), 0);
		else if (n == 4)
			_exit(0);
		else {
			a[1] = a[0];
			a[1].id = 4000000000u;
			send(fd, &a[1], sizeof(a[1]), 0);
			a[1].id = rq.id + 1;
			send(fd, &a[1], sizeof(a[1]), 0);
			a[1].id = rq.id;
			a[1].generation = rq.generation - 1;
			send(fd, &a[1], sizeof(a[1]), 0);
			noise(fd, &rq, &dice);
			a[0].result = PROBE_RESET;
			memset(a[0].said, 'x', sizeof(a[0].said));
			send(fd, &a[0], sizeof(a[0]), 0);
			send(fd, &a[0], sizeof(a[0]), 0);
		}
	}
}

static void
complaint_count(int level, const char *line, void *arg)
{
	(void)level, (void)arg;
	if (strstr(line, "started again") != NULL)
		complaints++;
}

static void
nonsense_ends_the_prober(void **state)
{
	struct conf_check c = check_tcp(NEVER_MS, 60000);
	struct health_target t = target("127.0.0.1", 9, &c);
	struct bench b;

	(void)state;
	bench_open(&b);
	assert_int_equal(prober_set(b.p, &t, 1), 0);
	bench_run(&b, 60000, 1);
	bench_run(&b, 100, 2);
	assert_int_equal(complaints, 4);
	assert_int_equal(b.total, 1);	/* one result, though it said 2005 */
	assert_int_equal(b.last[0], PROBE_RESET);
	assert_true(strlen(b.said[0]) < sizeof(b.said[0]));
	bench_close(&b);
}

int
main(void)
{
	const struct CMUnitTest test[] = {
		cmocka_unit_test(nonsense_ends_the_prober),
	};
	char path[] = "/tmp/xlb-liar.XXXXXX";
	int rc;

	if (lives_begin(path) < 0)
		return 1;
	log_capture(complaint_count, NULL);
	rc = cmocka_run_group_tests_name("probe_liar", test, NULL, NULL);
	unlink(path);
	return rc;
}
