/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Log lines to the journal with fields, or to stderr. */
#include "io/log.h"

#include <bpf/libbpf.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <syslog.h>
#include <systemd/sd-journal.h>
#include <time.h>
#include <unistd.h>

/* Of every state change, so that `journalctl MESSAGE_ID=` finds them. */
#define CHANGE_ID "MESSAGE_ID=5d1a5d7c8f0e4b1f9a6e2c3b7d4f8e10"

static struct {
	const char *name;
	bool debug, journal;
	void (*capture)(int, const char *, void *);
	void *capture_arg;
	struct log_changed changed[LOG_CHANGES];
	size_t nchanged;	/* ever; the next goes to this modulo size */
} logger = { .name = "xlb" };

/* systemd.exec(5): JOURNAL_STREAM holds device:inode of the stream that the
 * service manager connected to the journal. */
static bool
stderr_is_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long dev, ino;
	struct stat st;

	if (stream == NULL || sscanf(stream, "%llu:%llu", &dev, &ino) != 2)
		return false;
	return fstat(STDERR_FILENO, &st) == 0 && st.st_dev == dev &&
	    st.st_ino == ino;
}

void
log_init(const char *name, bool debug)
{
	logger.name = name;
	logger.debug = debug;
	logger.journal = stderr_is_journal();
}

void
log_capture(void (*fn)(int level, const char *line, void *arg), void *arg)
{
	logger.capture = fn;
	logger.capture_arg = arg;
}

static void
emit(int level, const char *line)
{
	if (level == LOG_DEBUG && !logger.debug)
		return;
	if (logger.capture != NULL)
		logger.capture(level, line, logger.capture_arg);
	else if (logger.journal)
		sd_journal_send("MESSAGE=%s", line, "PRIORITY=%d", level,
		    NULL);
	else
		fprintf(stderr, "%s: %s\n", logger.name, line);
}

static void
vlog(int level, int err, const char *fmt, va_list ap)
{
	char line[2048];
	int saved = errno;
	size_t n;

	vsnprintf(line, sizeof(line), fmt, ap);
	n = strlen(line);
	if (err != 0)
		snprintf(line + n, sizeof(line) - n, ": %s", strerror(err));
	emit(level, line);
	errno = saved;
}

#define LOG_BODY(level, err) do { \
	int err_ = (err); \
	va_list ap; \
	va_start(ap, fmt); \
	vlog(level, err_, fmt, ap); \
	va_end(ap); \
} while (0)

void
log_warn(const char *fmt, ...)
{
	LOG_BODY(LOG_WARNING, errno);
}

void
log_warnx(const char *fmt, ...)
{
	LOG_BODY(LOG_WARNING, 0);
}

void
log_info(const char *fmt, ...)
{
	LOG_BODY(LOG_INFO, 0);
}

void
log_debug(const char *fmt, ...)
{
	LOG_BODY(LOG_DEBUG, 0);
}

void
fatal(const char *fmt, ...)
{
	LOG_BODY(LOG_CRIT, errno);
	exit(1);
}

void
fatalx(const char *fmt, ...)
{
	LOG_BODY(LOG_CRIT, 0);
	exit(1);
}

static void
change_keep(const char *object, const char *from, const char *to,
    const char *why)
{
	struct log_changed *c = &logger.changed[logger.nchanged++ %
	    LOG_CHANGES];
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	c->at = ts.tv_sec * INT64_C(1000000000) + ts.tv_nsec;
	snprintf(c->object, sizeof(c->object), "%s", object);
	snprintf(c->from, sizeof(c->from), "%s", from);
	snprintf(c->to, sizeof(c->to), "%s", to);
	snprintf(c->why, sizeof(c->why), "%s", why);
}

size_t
log_changes(struct log_changed *out, size_t max)
{
	size_t n;

	for (n = 0; n < max && n < LOG_CHANGES && n < logger.nchanged; n++)
		out[n] = logger.changed[(logger.nchanged - 1 - n) %
		    LOG_CHANGES];
	return n;
}

/* "backend web/b (10.0.0.7:80)": XLB_BACKEND=web/b. What has no name, as the
 * node, is its own. */
static void
field_print(const char *object, char *buf, size_t size)
{
	size_t kind = strcspn(object, " "), i;
	const char *name = object + kind + (object[kind] == ' ');

	for (i = 0; i < kind && i < 32; i++)
		if (!isalpha((unsigned char)object[i]))
			break;
	snprintf(buf, size, "XLB_%.*s=%.*s", (int)i, object,
	    (int)(*name != '\0' ? strcspn(name, " ") : kind),
	    *name != '\0' ? name : object);
	for (i = 4; buf[i] != '='; i++)
		buf[i] = (char)toupper((unsigned char)buf[i]);
}

void
log_change(const char *object, const char *from, const char *to,
    const char *why)
{
	char line[1024], field[256];
	int saved = errno;

	change_keep(object, from, to, why);
	snprintf(line, sizeof(line), "%s: %s -> %s%s%s", object, from, to,
	    *why != '\0' ? ": " : "", why);
	field_print(object, field, sizeof(field));
	if (logger.capture == NULL && logger.journal)
		sd_journal_send("MESSAGE=%s", line, "PRIORITY=%d", LOG_NOTICE,
		    CHANGE_ID, "XLB_OBJECT=%s", object, "XLB_OLD=%s", from,
		    "XLB_NEW=%s", to, "XLB_REASON=%s", why, "%s", field, NULL);
	else
		emit(LOG_NOTICE, line);
	errno = saved;
}

static int
libbpf_line(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	char line[2048];
	size_t n;

	vsnprintf(line, sizeof(line), fmt, ap);
	n = strlen(line);
	while (n > 0 && line[n - 1] == '\n')
		line[--n] = '\0';
	emit(level == LIBBPF_WARN ? LOG_WARNING : LOG_DEBUG, line);
	return 0;
}

void
log_libbpf(void)
{
	libbpf_set_print(libbpf_line);
}
