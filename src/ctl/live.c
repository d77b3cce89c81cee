/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Views that go on until they are interrupted, and leave the terminal clean. */
#include "ctl/live.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "io/ctl.h"

#define SCREEN_ENTER "\033[?1049h\033[?25l"	/* the other screen, no cursor */
#define SCREEN_LEAVE "\033[?25h\033[?1049l"

static volatile sig_atomic_t ended;

static void
end(int sig)
{
	(void)sig;
	ended = 1;
}

void
live_size(struct view *v)
{
	struct winsize ws;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &ws) == 0 && ws.ws_row > 0) {
		v->rows = ws.ws_row;
		v->columns = ws.ws_col;
	}
}

/* Each line over the old one, then nothing below: no flicker. */
static void
screen_draw(const char *text, const struct view *view, const char *again)
{
	unsigned row = 0, more = 0;
	const char *end_of;

	fputs("\033[H", stdout);
	for (; *text != '\0' && row + 1 < view->rows; row++) {
		end_of = strchrnul(text, '\n');
		printf("%.*s\033[K\n", (int)(end_of - text), text);
		text = *end_of == '\0' ? end_of : end_of + 1;
	}
	fputs("\033[J", stdout);
	for (; *text != '\0'; text++)
		more += *text == '\n';
	if (more > 0)
		printf("%u more lines: xlb %s | less", more, again);
	fflush(stdout);
}

static void
screen_refresh(const struct context *x, const struct live *l)
{
	struct view view = { .colour = x->colour, .rows = 24, .columns = 80 };
	json_t *reply;
	char *text;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	int rc;

	if (f == NULL)
		return;
	live_size(&view);
	rc = ctl_call(x->o.run_dir, l->request, NULL, LIVE_MS, &reply);
	if (rc < 0) {
		fprintf(f, "xlbd does not answer: %s/%s: %s\n", x->o.run_dir,
		    CTL_SOCKET, strerror(-rc));
	} else {
		l->draw(json_object_get(reply, "result"), &view, f, l->arg);
		json_decref(reply);
	}
	fclose(f);
	screen_draw(text, &view, l->more);
	free(text);
}

int
live_run(const struct context *x, const struct live *l)
{
	const struct sigaction sa = { .sa_handler = end };
	const struct timespec second = { 1, 0 };
	bool screen = x->terminal && !(x->flags & FLAG_JSON);
	int status = STATUS_DONE;

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGHUP, &sa, NULL);
	if (screen)
		fputs(SCREEN_ENTER, stdout);
	while (!ended) {
		if (screen) {
			screen_refresh(x, l);
		} else {
			status = l->once(x, l->arg);
			if (status != STATUS_DONE || fflush(stdout) == EOF)
				break;
		}
		nanosleep(&second, NULL);
	}
	if (screen) {
		fputs(SCREEN_LEAVE, stdout);
		fflush(stdout);
	}
	return status;
}
