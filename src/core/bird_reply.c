/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads the numbered lines of BIRD's control socket; codes decide, texts are
 * only shown. */
#include "core/bird_text.h"

#include <string.h>

/* Codes that matter here, the same in BIRD 2 and 3. */
enum {
	REPLY_RECONFIGURED = 3,
	REPLY_IN_PROGRESS = 4,
	REPLY_QUEUED = 5,
	REPLY_SHUTTING_DOWN = 6,
	REPLY_PROTOCOL = 1002,
	REPLY_PROTOCOL_DETAIL = 1006,
};

struct word {
	const char *s;
	size_t len;
};

static bool
is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Takes the next word off the front of `rest`; empty at the end. */
static struct word
word_next(struct word *rest)
{
	struct word w;

	while (rest->len > 0 && is_space(*rest->s)) {
		rest->s++;
		rest->len--;
	}
	w.s = rest->s;
	while (rest->len > 0 && !is_space(*rest->s)) {
		rest->s++;
		rest->len--;
	}
	w.len = (size_t)(rest->s - w.s);
	return w;
}

static bool
word_is(struct word w, const char *s)
{
	return w.len == strlen(s) && memcmp(w.s, s, w.len) == 0;
}

static void
word_copy(struct word w, char *buf, size_t size)
{
	if (w.len >= size)
		w.len = size - 1;
	memcpy(buf, w.s, w.len);
	buf[w.len] = '\0';
}

/* All that is left, without the blanks around it. */
static struct word
line_rest(struct word rest)
{
	while (rest.len > 0 && is_space(*rest.s)) {
		rest.s++;
		rest.len--;
	}
	while (rest.len > 0 && is_space(rest.s[rest.len - 1]))
		rest.len--;
	return rest;
}

int
bird_line_parse(const char *line, size_t len, int prev, struct bird_line *out)
{
	size_t i;

	memset(out, 0, sizeof(*out));
	if (len > 0 && line[len - 1] == '\r')
		len--;
	if (len > 0 && (line[0] == '+' || line[0] == ' ')) {
		if (line[0] == ' ' && prev < 0)
			return -1;
		out->code = line[0] == '+' ? -1 : prev;
		out->text = line + 1;
		out->len = len - 1;
		return 0;
	}
	if (len < 5 || (line[4] != ' ' && line[4] != '-'))
		return -1;
	for (i = 0; i < 4; i++) {
		if (!is_digit(line[i]))
			return -1;
		out->code = out->code * 10 + (line[i] - '0');
	}
	out->last = line[4] == ' ';
	out->text = line + 5;
	out->len = len - 5;
	return 0;
}

enum bird_verdict
bird_configure_verdict(int code)
{
	switch (code) {
	case REPLY_RECONFIGURED:
		return BIRD_DONE;
	case REPLY_IN_PROGRESS:
	case REPLY_QUEUED:
		return BIRD_PENDING;
	case REPLY_SHUTTING_DOWN:
		return BIRD_RETRY;
	default:
		return BIRD_REFUSED;
	}
}

/* "  Routes:  0 imported, 2 exported, 0 preferred": the number before the
 * word. */
static bool
exported_parse(struct word rest, uint32_t *out)
{
	struct word number = { 0 }, w;
	size_t i;

	for (;;) {
		w = word_next(&rest);
		if (w.len == 0)
			return false;
		if (word_is(w, "exported,") || word_is(w, "exported"))
			break;
		number = w;
	}
	*out = 0;
	for (i = 0; i < number.len; i++) {
		if (!is_digit(number.s[i]) || i == 9)
			return false;
		*out = *out * 10 + (uint32_t)(number.s[i] - '0');
	}
	return number.len > 0;
}

/* The numbers of a word of the form "0000-00-00", which may go on behind `end`. */
static bool
numbers_parse(struct word w, const char *form, char end, int *const *out)
{
	size_t i, len = strlen(form);

	if (w.len < len || (w.len > len && w.s[len] != end))
		return false;
	**out = 0;
	for (i = 0; i < len; i++) {
		if (form[i] == '0' ? !is_digit(w.s[i]) : w.s[i] != form[i])
			return false;
		if (form[i] == '0')
			**out = **out * 10 + (w.s[i] - '0');
		else
			**++out = 0;
	}
	return true;
}

static void
time_parse(struct word rest, struct bird_time *t)
{
	int *const date[] = { &t->year, &t->month, &t->day };
	int *const hour[] = { &t->hour, &t->minute, &t->second };
	struct word w = word_next(&rest);

	t->has_date = numbers_parse(w, "0000-00-00", '\0', date);
	if (t->has_date)
		w = word_next(&rest);
	t->has_time = numbers_parse(w, "00:00:00", '.', hour);
}

enum bird_field
bird_protocol_parse(int code, const char *text, size_t len,
    struct bird_detail *out)
{
	struct word rest = { text, len }, w = word_next(&rest), kind, next;

	memset(out, 0, sizeof(*out));
	if (code == REPLY_PROTOCOL) {
		kind = word_next(&rest);
		word_next(&rest);	/* its table */
		next = word_next(&rest);
		if (next.len == 0 || w.len >= sizeof(out->name))
			return BIRD_FIELD_NONE;
		word_copy(w, out->name, sizeof(out->name));
		word_copy(kind, out->kind, sizeof(out->kind));
		word_copy(next, out->value, sizeof(out->value));
		time_parse(rest, &out->since);
		return BIRD_FIELD_PROTOCOL;
	}
	if (code != REPLY_PROTOCOL_DETAIL)
		return BIRD_FIELD_NONE;
	if (word_is(w, "Routes:") && exported_parse(rest, &out->number))
		return BIRD_FIELD_EXPORTED;
	next = word_next(&rest);
	if (word_is(w, "Channel") && next.len > 0) {
		word_copy(next, out->value, sizeof(out->value));
		return BIRD_FIELD_CHANNEL;
	}
	if (word_is(w, "Last") && word_is(next, "error:")) {
		word_copy(line_rest(rest), out->text, sizeof(out->text));
		return BIRD_FIELD_ERROR;
	}
	if (!word_is(w, "BGP") || !word_is(next, "state:"))
		return BIRD_FIELD_NONE;
	word_copy(word_next(&rest), out->value, sizeof(out->value));
	return BIRD_FIELD_SESSION;
}

int
bird_route_parse(const char *text, size_t len, struct prefix *out)
{
	struct word rest = { text, len }, w;
	char buf[PREFIX_STR_MAX];

	/* A further route of the same network, or its next hop. */
	if (len == 0 || is_space(text[0]))
		return -1;
	w = word_next(&rest);
	if (w.len >= sizeof(buf))
		return -1;
	word_copy(w, buf, sizeof(buf));
	return prefix_parse(buf, out);
}
