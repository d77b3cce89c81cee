/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Drives io/bird and io/tun from standard input, for the tests beside it:
 *	set ADDRESS...		bird_set() of these, in either family
 *	gshut ADDRESS...	the same, with the community
 *	push MS ADDRESS...	bird_set() and bird_push() of so many, then nothing
 *				for 300 ms
 *	many N ADDRESS...	N calls: nothing and these in turn, these last
 *	range N			bird_set() of N addresses from 10.0.0.0 on
 *	show PREFIX...		has it, how many peers is it exported to
 *	peers, included, quit
 * and prints what happens, each line with CLOCK_MONOTONIC in microseconds. Or
 * prints a bird.conf for the neighbours given as ADDRESS=AS.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/arena.h"
#include "core/bird_text.h"
#include "io/bird.h"
#include "io/log.h"
#include "io/tun.h"

static struct conf conf;

struct drive {
	sd_event *ev;
	struct bird *bird;
	char line[65536];
	size_t len;
};

static int64_t
stamp(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static void
on_log(int level, const char *line, void *arg)
{
	(void)arg;
	printf("%" PRId64 " log %d %s\n", stamp(), level, line);
	fflush(stdout);
}

static void
status_print(const struct drive *d, const char *what)
{
	printf("%" PRId64 " %s %s|%s|%d|%zu\n", stamp(), what,
	    bird_status_text(bird_status(d->bird)), bird_reason(d->bird),
	    bird_settled(d->bird), bird_stuck(d->bird));
	fflush(stdout);
}

static void
on_changed(void *arg)
{
	status_print(arg, "changed");
}

static void
row_add(struct announce *an, struct arena *a, const struct addr *addr,
    bool gshut)
{
	struct conf_address *ca = arena_alloc(a, sizeof(*ca));
	struct announce_row *row = arena_grow(a, &an->row, an->n, sizeof(*row));

	ca->address = *addr;
	row->addr = *addr;
	row->conf = ca;
	row->wanted = true;
	row->gshut = gshut;
	an->n++;
}

#define PAUSE_US 300000		/* what a caller does then that takes time */

/* `push_ms`: 0: none. */
static void
set(struct drive *d, char *save, bool gshut, unsigned times,
    unsigned push_ms)
{
	struct announce an = { 0 }, none = { 0 };
	struct arena *a = arena_new();
	struct addr addr;
	const char *word;
	int64_t before;
	unsigned i;
	int rc = 0;

	while ((word = strtok_r(NULL, " ", &save)) != NULL) {
		if (addr_parse(word, &addr) < 0)
			fatalx("%s: no address", word);
		row_add(&an, a, &addr, gshut);
	}
	before = stamp();
	for (i = 0; i < times; i++)
		rc = bird_set(d->bird, (times - i) % 2 == 1 ? &an : &none,
		    &conf);
	if (push_ms > 0) {
		bird_push(d->bird, push_ms);
		usleep(PAUSE_US);
	}
	printf("%" PRId64 " set %d %" PRId64 "\n", before, rc,
	    stamp() - before);
	status_print(d, "status");
	arena_free(a);
}

static void
range(struct drive *d, uint32_t n)
{
	struct announce an = { 0 };
	struct arena *a = arena_new();
	struct addr addr;
	int64_t before;
	uint32_t i;
	int rc;

	for (i = 0; i < n; i++) {
		addr = addr_from4(__builtin_bswap32(0x0a000000 + i));
		row_add(&an, a, &addr, false);
	}
	before = stamp();
	rc = bird_set(d->bird, &an, &conf);
	printf("%" PRId64 " set %d %" PRId64 "\n", before, rc,
	    stamp() - before);
	status_print(d, "status");
	arena_free(a);
}

static void
show(struct drive *d, char *save)
{
	struct prefix p;
	const char *word;

	printf("%" PRId64 " show", stamp());
	while ((word = strtok_r(NULL, " ", &save)) != NULL) {
		if (prefix_parse(word, &p) < 0)
			fatalx("%s: no prefix", word);
		printf(" %s=%d/%u", word, bird_has(d->bird, &p),
		    bird_exported(d->bird, &p));
	}
	printf("\n");
	fflush(stdout);
}

static void
peers(struct drive *d)
{
	const struct bird_peer *peer;
	size_t n, i;

	peer = bird_peers(d->bird, &n);
	printf("%" PRId64 " peers", stamp());
	for (i = 0; i < n; i++)
		printf(" %s=%s/%u/%u", peer[i].name, peer[i].state,
		    peer[i].exported4, peer[i].exported6);
	printf("\n");
	fflush(stdout);
}

static void
included(struct drive *d)
{
	struct arena *a = arena_new();
	char buf[PREFIX_STR_MAX];
	struct prefix *p;
	size_t n, i;

	p = bird_included(d->bird, a, &n);
	printf("%" PRId64 " included", stamp());
	for (i = 0; i < n; i++)
		printf(" %s", prefix_print(&p[i], buf));
	printf("\n");
	fflush(stdout);
	arena_free(a);
}

static void
command(struct drive *d, char *line)
{
	char *save, *word = strtok_r(line, " ", &save), *number;

	if (word == NULL)
		return;
	if (strcmp(word, "set") == 0)
		set(d, save, false, 1, 0);
	else if (strcmp(word, "gshut") == 0)
		set(d, save, true, 1, 0);
	else if (strcmp(word, "push") == 0 &&
	    (number = strtok_r(NULL, " ", &save)) != NULL)
		set(d, save, false, 1, (unsigned)atoi(number));
	else if (strcmp(word, "many") == 0 &&
	    (number = strtok_r(NULL, " ", &save)) != NULL)
		set(d, save, false, (unsigned)atoi(number), 0);
	else if (strcmp(word, "range") == 0 &&
	    (number = strtok_r(NULL, " ", &save)) != NULL)
		range(d, (uint32_t)atoi(number));
	else if (strcmp(word, "show") == 0)
		show(d, save);
	else if (strcmp(word, "peers") == 0)
		peers(d);
	else if (strcmp(word, "included") == 0)
		included(d);
	else if (strcmp(word, "quit") == 0)
		sd_event_exit(d->ev, 0);
	else
		fatalx("%s: no such command", word);
}

static int
on_stdin(sd_event_source *s, int fd, uint32_t revents, void *arg)
{
	struct drive *d = arg;
	char *eol;
	ssize_t n;

	(void)s;
	(void)revents;
	n = read(fd, d->line + d->len, sizeof(d->line) - d->len - 1);
	if (n <= 0) {
		sd_event_exit(d->ev, 0);
		return 0;
	}
	d->len += (size_t)n;
	d->line[d->len] = '\0';
	while ((eol = strchr(d->line, '\n')) != NULL) {
		*eol = '\0';
		command(d, d->line);
		d->len -= (size_t)(eol + 1 - d->line);
		memmove(d->line, eol + 1, d->len + 1);
	}
	return 0;
}

static int
config(const char *directory, char **neighbor, size_t n)
{
	struct conf_neighbor *nb = calloc(n, sizeof(*nb));
	struct arena *a = arena_new();
	struct diag dg;
	char *as;
	size_t i;
	int rc;

	for (i = 0; i < n; i++) {
		as = strchr(neighbor[i], '=');
		if (as == NULL)
			fatalx("%s: no ADDRESS=AS", neighbor[i]);
		*as++ = '\0';
		if (addr_parse(neighbor[i], &nb[i].address) < 0)
			fatalx("%s: no address", neighbor[i]);
		nb[i].as = (uint32_t)atoi(as);
		nb[i].bfd = true;
		nb[i].password = "open sesame";
	}
	conf.bgp.bird_directory = directory;
	conf.bgp.neighbor = nb;
	conf.bgp.nneighbor = n;
	diag_init(&dg);
	rc = bird_config_render(&conf, NULL, bird_locals(&conf, a), stdout,
	    &dg);
	diag_print(&dg, stderr);
	diag_fini(&dg);
	arena_free(a);
	free(nb);
	return rc < 0;
}

int
main(int argc, char **argv)
{
	static struct drive d;
	int tun = -1, rc;

	log_init("drive", getenv("DRIVE_DEBUG") != NULL);
	log_capture(on_log, NULL);
	if (argc < 3)
		fatalx("usage: drive DIRECTORY SOCKET [tun]\n"
		    "drive: config DIRECTORY ADDRESS=AS...");
	conf.bgp.present = true;
	conf.bgp.local_as = 65001;
	if (strcmp(argv[1], "config") == 0)
		return config(argv[2], argv + 3, (size_t)argc - 3);
	if (argc > 3 && (tun = tun_open(-1)) < 0)
		fatalx("no " TUN_NAME);
	if (sd_event_new(&d.ev) < 0 ||
	    sd_event_add_io(d.ev, NULL, STDIN_FILENO, EPOLLIN, on_stdin,
	    &d) < 0 ||
	    bird_open(d.ev, argv[1], argv[2], on_changed, &d, &d.bird) < 0)
		fatalx("cannot start");
	printf("%" PRId64 " ready\n", stamp());
	fflush(stdout);
	rc = sd_event_loop(d.ev);
	bird_close(d.bird);
	sd_event_unref(d.ev);
	if (tun >= 0)
		close(tun);
	return rc < 0;
}
