/* SPDX-License-Identifier: GPL-2.0-or-later */
/* BIRD and xlb0 follow the bgp: section: where it goes, or names another
 * directory, what was announced there is withdrawn first. */
#include <string.h>
#include <unistd.h>

#include "daemon/daemon.h"
#include "io/log.h"
#include "io/notify.h"
#include "io/tun.h"

struct place {
	const char *dir, *sock;	/* NULL: no bgp: section */
};

static struct place
place_of(const struct options *opt, const struct conf *c)
{
	if (c == NULL || !c->bgp.present)
		return (struct place){ 0 };
	return (struct place){
		opt->bird_dir != NULL ? opt->bird_dir : c->bgp.bird_directory,
		opt->bird_socket != NULL ? opt->bird_socket :
		    c->bgp.bird_socket,
	};
}

static bool
same(const char *a, const char *b)
{
	return a != NULL && b != NULL && strcmp(a, b) == 0;
}

/* It announces nothing from now on, and stays until that is done. */
static void
routes_leave(struct daemon *d, const struct conf *c)
{
	static const struct announce nothing;

	bird_close(d->bird_before);
	d->bird_before = d->bird;
	d->bird = NULL;
	bird_set(d->bird_before, &nothing, c);
}

static void
bird_event(void *arg)
{
	struct daemon *d = arg;

	if (d->bird_before != NULL)
		reconcile_soon(d);
	handlers_bird_changed(d);
}

void
routes_follow(struct daemon *d, const struct conf *old, const struct conf *new)
{
	struct place was = place_of(&d->opt, old);
	struct place is = place_of(&d->opt, new);
	int rc;

	if (d->bird == NULL) {
		/* two at one directory would fight over the files */
		bird_close(d->bird_before);
		d->bird_before = NULL;
	} else if (!same(was.dir, is.dir)) {
		routes_leave(d, new);
	} else if (!same(was.sock, is.sock)) {
		bird_close(d->bird);
		d->bird = NULL;
	}
	if (is.dir == NULL) {
		routes_tidy(d);
		return;
	}
	if (d->tun < 0)
		daemon_tun(d);
	if (d->bird != NULL)
		return;
	rc = bird_open(d->ev, is.dir, is.sock, bird_event, d, &d->bird);
	if (rc < 0)
		log_warnx("bird: %s: nothing is announced", strerror(-rc));
}

void
routes_tidy(struct daemon *d)
{
	enum bird_status s = bird_status(d->bird_before);

	/* one that is absent will read empty files */
	if (s != BIRD_OFF && s != BIRD_SYNCED && s != BIRD_ABSENT &&
	    s != BIRD_NOT_INCLUDED)
		return;
	bird_close(d->bird_before);
	d->bird_before = NULL;
	if (d->bird != NULL || d->tun < 0)
		return;
	log_info(TUN_NAME ": removed, there is no bgp: section");
	daemon_tun_drop(d);
}
