/* SPDX-License-Identifier: GPL-2.0-or-later */
/* xlb status: once, or again and again in place. */
#include "ctl/live.h"

#define STATUS_MS 10000

static int
status_once(const struct context *x, void *arg)
{
	struct view view = { .colour = x->colour };
	json_t *reply, *result;
	int status;

	(void)arg;
	status = ask(x, "status", NULL, STATUS_MS, &reply);
	if (status != 0)
		return status;
	status = reply_take(reply);
	result = json_object_get(reply, "result");
	if (x->terminal)
		live_size(&view);
	view.columns = 0;	/* a long line is better than a cut one */
	if (status == STATUS_DONE && (x->flags & FLAG_JSON))
		status = json_out(x, json_incref(result));
	else if (status == STATUS_DONE)
		view_status(result, &view, stdout);
	json_decref(reply);
	return status;
}

static void
status_draw(json_t *result, const struct view *view, FILE *out,
    void *arg)
{
	(void)arg;
	view_status(result, view, out);
}

int
status_run(const struct context *x)
{
	static const struct live live = { .more = "status",
	    .once = status_once, .request = "status", .draw = status_draw };

	return x->flags & FLAG_WATCH ? live_run(x, &live) :
	    status_once(x, NULL);
}
