/* SPDX-License-Identifier: GPL-2.0-or-later */
/* xlbd against an HTTP helper that is not what it should be: this one is linked
 * instead of http_child.c. Whatever it says, it gets documents, each of them once
 * in a second, or is replaced. */
#include "probe_test.h"

#include "io/http_wire.h"
#include "io/log.h"
#include "lives.h"

#define SECONDS 3	/* for which the last one asks as fast as it can */

enum life { TOO_SHORT = 1, TOO_LONG, NO_SUCH, THRICE, NOISE, ENDS, IMPATIENT };

static struct http *http;
static size_t asked, nonsense, ended;
static int64_t first_at, over_at;	/* ns: the first wish, its asker's end */

/* The document is what was asked for: its first byte says which. */
static void
answer_check(int fd, uint32_t want)
{
	char control[CMSG_SPACE(sizeof(int))];
	struct http_order o;
	struct iovec iov = { &o, sizeof(o) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1,
	    .msg_control = control, .msg_controllen = sizeof(control) };
	char text[2];
	int doc;

	if (recvmsg(fd, &msg, MSG_CMSG_CLOEXEC) != sizeof(o))
		_exit(0);
	doc = probe_fd_take(&msg);
	if (o.kind != HTTP_DOCUMENT || o.document != want || o.length != 2 ||
	    pread(doc, text, 2, 0) != 2 || text[0] != (char)('0' + want) ||
	    write(doc, text, 1) >= 0)
		_exit(1);
	close(doc);
}

static void
wish_send(int fd, uint32_t document)
{
	struct http_wish w = { document };

	send(fd, &w, sizeof(w), MSG_NOSIGNAL);
}

static void
noise(int fd)
{
	unsigned dice = 1;
	uint8_t b[64];
	size_t i, n, k;

	for (i = 0; i < 1000; i++) {
		n = (size_t)rand_r(&dice) % sizeof(b);
		for (k = 0; k < n; k++)
			b[k] = (uint8_t)rand_r(&dice);
		send(fd, b, n, MSG_NOSIGNAL);
	}
}

_Noreturn void
http_child(int fd)
{
	uint32_t two[2] = { 0 }, doc = 0;
	ssize_t n = life_begin();

	if (n == TOO_SHORT)
		send(fd, two, 3, MSG_NOSIGNAL);
	else if (n == TOO_LONG)
		send(fd, two, sizeof(two), MSG_NOSIGNAL);
	else if (n == NO_SUCH)
		wish_send(fd, HTTP_DOCUMENTS);
	else if (n == THRICE)	/* one is answered, one waits its time: more
				 * than that, where nobody reads for a second */
		for (doc = 0; doc < 30; doc++)
			wish_send(fd, HTTP_PAGE);
	else if (n == NOISE)
		noise(fd);
	else if (n == ENDS)
		_exit(0);
	for (doc = 0; n == IMPATIENT;) {
		wish_send(fd, doc);
		answer_check(fd, doc);
		doc = (doc + 1) % HTTP_DOCUMENTS;
	}
	for (;;)		/* until xlbd ends it */
		if (recv(fd, two, sizeof(two), MSG_TRUNC) <= 0)
			_exit(0);
}

static void
is_wanted(enum http_document doc, void *arg)
{
	char text[2] = { (char)('0' + doc), '\n' };

	(void)arg;
	assert_true(doc < HTTP_DOCUMENTS);
	if (asked++ == 0)
		first_at = probe_now().ns;
	http_answer(http, doc, text, sizeof(text));
}

static void
complaint_count(int level, const char *line, void *arg)
{
	(void)level, (void)arg;
	if (asked > 0 && over_at == 0)
		over_at = probe_now().ns;
	nonsense += strstr(line, "http: sent nonsense, is started") != NULL;
	ended += strstr(line, "http: ended, is started") != NULL;
}

/* In how many of them something may be that is once in a second. */
static size_t
seconds_since(int64_t begun)
{
	return (size_t)((probe_now().ns - begun) / 1000000000 + 2);
}

static void
a_liar_is_replaced(void **state)
{
	int64_t until, begun = probe_now().ns;
	sd_event *ev;
	size_t before;
	pid_t pid;

	(void)state;
	assert_int_equal(http_fork("_xlb", &http), 0);
	assert_true(sd_event_new(&ev) >= 0);
	assert_int_equal(http_start(http, ev, is_wanted, NULL), 0);
	until = begun + ENOUGH_NS;
	while (nonsense + ended < IMPATIENT - 1 && probe_now().ns < until)
		sd_event_run(ev, 100000);
	assert_int_equal(nonsense, 5);
	assert_int_equal(ended, 1);
	/* a second one only where nobody read for so long */
	assert_in_range(asked, 1, 1 + (over_at - first_at) / 900000000);
	until = probe_now().ns + ENOUGH_NS;
	for (before = asked; (asked == before || http_pid(http) == 0) &&
	    probe_now().ns < until;)
		sd_event_run(ev, 100000);
	pid = http_pid(http);
	before = asked;
	begun = probe_now().ns;
	while (asked - before < SECONDS * HTTP_DOCUMENTS &&
	    probe_now().ns < begun + ENOUGH_NS)
		sd_event_run(ev, 10000);
	/* each kind once in a second */
	assert_in_range(asked - before, SECONDS * HTTP_DOCUMENTS,
	    HTTP_DOCUMENTS * seconds_since(begun));
	assert_int_equal(http_pid(http), pid);
	assert_int_equal(nonsense + ended, IMPATIENT - 1);
	http_close(http);
	sd_event_unref(ev);
}

int
main(void)
{
	const struct CMUnitTest test[] = {
		cmocka_unit_test(a_liar_is_replaced),
	};
	char path[] = "/tmp/xlb-liar.XXXXXX";
	int rc;

	if (lives_begin(path) < 0)
		return 1;
	log_capture(complaint_count, NULL);
	rc = cmocka_run_group_tests_name("http_liar", test, NULL, NULL);
	unlink(path);
	return rc;
}
