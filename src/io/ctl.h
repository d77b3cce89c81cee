/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The control socket: one request and one reply per connection, each one JSON
 * object on a line. Requests are bounded, a slow or dead client costs nothing;
 * peer credentials decide what is allowed: members of `xlb` read, root and
 * members of `xlb-admin` change.
 *
 *   {"schema":1,"command":"drain","args":{...}}
 *   {"schema":1,"exit":0,"errors":[...],"warnings":[...],"result":{...}}
 *
 * `exit` is the exit status of the client; errors and warnings are lines for
 * stderr.
 */
#ifndef XLB_CTL_H
#define XLB_CTL_H

#include <jansson.h>
#include <stdbool.h>
#include <systemd/sd-event.h>

#define CTL_SCHEMA 1
#define CTL_REQUEST_MAX (32 << 20)	/* bytes: `diff` sends the configuration */
#define CTL_READER_MAX (64 << 10)	/* for those who may only read */
#define CTL_CLIENTS_MAX 64
#define CTL_SOCKET "xlb.sock"		/* in --run-dir */

struct ctl;
struct ctl_request;

/* Called for each whole request. `may_change`: root or xlb-admin. The handler
 * answers, now or later, by exactly one ctl_reply(). */
typedef void (*ctl_fn)(struct ctl_request *rq, const char *command,
    const json_t *args, bool may_change, void *arg);

/* Makes RUN_DIR if need be and listens on RUN_DIR/xlb.sock, 0660 root:xlb (0600
 * where there is no such group). 0, or -errno (logged). A second instance on
 * the same directory finds the lock taken: -EADDRINUSE. */
int ctl_open(sd_event *ev, const char *run_dir, ctl_fn fn, void *arg,
    struct ctl **out);
/* Removes the socket. What is still to be answered is dropped; ctl_reply() may
 * be called for it later. */
void ctl_close(struct ctl *c);

/* `reply` is stolen. Written at once as far as the socket takes it (some 200
 * kB), so a short last word is out before a ctl_close() that follows. */
void ctl_reply(struct ctl_request *rq, json_t *reply);

/* Who asked for what, for the log: "xlb drain by uid 1000". */
#define CTL_ASKED_MAX 64
void ctl_asked(const struct ctl_request *rq, const char *command,
    char buf[CTL_ASKED_MAX]);

/*
 * Instead of ctl_reply(): the reply, and then lines, until one side ends it. The
 * client may go at any time, also within the calls below: then `gone` is called,
 * and the stream must not be used any more. NULL: it has gone already.
 */
struct ctl_stream;
struct ctl_stream *ctl_stream(struct ctl_request *rq, json_t *reply,
    void (*gone)(void *arg), void *arg);
/* `text` ends in a newline. False: no room, since the client does not read what
 * it has; it is given up after CTL_STREAM_SEC of that. */
bool ctl_stream_line(struct ctl_stream *s, const char *text, size_t len);
void ctl_stream_end(struct ctl_stream *s);	/* `gone` is not called */
#define CTL_STREAM_SEC 60
#define CTL_STREAM_BYTES (64 << 10)	/* besides what the socket takes */

/* A JSON string, with '?' for what is not UTF-8: names of interfaces and words
 * of BIRD need not be. */
json_t *ctl_text(const char *text);
json_t *ctl_message(int status);	/* a reply with all its fields */
/* Lines for stderr: an error, a warning (gets "warning: " in front), each row of a
 * diag. `xlb` puts its name before those that are of no place in a file. */
void ctl_error(json_t *reply, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void ctl_warning(json_t *reply, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

struct diag;
void ctl_diag(json_t *reply, const struct diag *dg);

/* The client's side; `args` is stolen (NULL: none), `timeout_ms` < 0: no bound.
 * 0 and the reply, or -errno: -ECONNREFUSED, -ENOENT: no daemon; -EACCES;
 * -ETIMEDOUT; -ECONNRESET: it ended without an answer; -EPROTO. */
int ctl_call(const char *run_dir, const char *command, json_t *args,
    int timeout_ms, json_t **reply);
/* The same for a stream: `line` gets each one that follows a reply with status
 * 0, and ends it by returning false. -ECONNRESET: the daemon has. */
int ctl_call_lines(const char *run_dir, const char *command, json_t *args,
    int timeout_ms, bool (*line)(const json_t *o, void *arg), void *arg,
    json_t **reply);
/* The same; `tick` (NULL: none) is called about once a second while it waits. */
int ctl_call_tick(const char *run_dir, const char *command, json_t *args,
    int timeout_ms, void (*tick)(void *arg), void *arg, json_t **reply);

#endif
