/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The lines of a keepalived.conf to statements. */
#include "core/keepalived.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/text.h"

#define EXPAND_MAX 32		/* definitions in definitions */
#define LINE_MAX_BYTES (1 << 20)	/* after expansion */

struct def {
	const struct def *next;
	const char *name;
	const char *value;	/* may have several lines */
};

struct level {
	struct ka_stmt *block;	/* NULL: the top */
	struct ka_stmt **tail;	/* where the next statement goes */
	struct ka_stmt *last;	/* NULL: none yet */
};

struct parser {
	struct arena *a;
	struct diag *dg;
	ka_include *include;
	void *arg;
	struct mark at;		/* the line under way */
	const struct def *def;
	struct level level[KA_DEPTH_MAX + 1];
	int depth;
	unsigned files;
	const char *open[KA_DEPTH_MAX];	/* files that include each other */
	unsigned nopen;
	struct ka_stmt *top;
	/* the statement under way */
	const char **word;
	size_t nword;
	struct mark begin;
};

static void source_parse(struct parser *p, const struct conf_source *src);

static void
fault(struct parser *p, struct mark at, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static void
fault(struct parser *p, struct mark at, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	diag_add(p->dg, DIAG_ERROR, at, "%s", text);
}

static void
statement_end(struct parser *p)
{
	struct level *l = &p->level[p->depth];
	struct ka_stmt *s;

	if (p->nword == 0)
		return;
	s = arena_alloc(p->a, sizeof(*s));
	s->mark = p->begin;
	s->word = p->word;
	s->nword = p->nword;
	*l->tail = l->last = s;
	l->tail = &s->next;
	p->word = NULL;
	p->nword = 0;
}

static void
block_open(struct parser *p)
{
	struct ka_stmt *s;

	statement_end(p);
	s = p->level[p->depth].last;
	if (s == NULL || s->block) {
		fault(p, p->at, "a block that nothing is in front of");
		return;
	}
	if (p->depth == KA_DEPTH_MAX) {
		fault(p, p->at, "more than %d blocks in each other",
		    KA_DEPTH_MAX);
		return;
	}
	s->block = true;
	p->level[++p->depth] = (struct level){ s, &s->child, NULL };
}

static void
block_close(struct parser *p)
{
	statement_end(p);
	if (p->depth == 0)
		fault(p, p->at, "a closing brace that no block is open for");
	else
		p->depth--;
}

/* What stands behind a backslash in quotes; `*s` is left behind it. */
static char
escape_read(const char **s)
{
	static const char from[] = "abEfnrtv", to[] = "\a\b\033\f\n\r\t\v";
	const char *at;
	char digits[4] = "";
	size_t n;

	if (**s == 'x' && isxdigit((unsigned char)(*s)[1])) {
		n = isxdigit((unsigned char)(*s)[2]) ? 2 : 1;
		memcpy(digits, *s + 1, n);
		*s += 1 + n;
		return (char)strtol(digits, NULL, 16);
	}
	n = strspn(*s, "01234567");
	if (n > 0) {
		n = n > 3 ? 3 : n;
		memcpy(digits, *s, n);
		*s += n;
		return (char)strtol(digits, NULL, 8);
	}
	at = strchr(from, **s);
	return (*s)++, at != NULL ? to[at - from] : (*s)[-1];
}

/* A word, quotes taken off. NULL after a mistake. */
static char *
word_read(struct parser *p, const char **s)
{
	char *out = arena_alloc(p->a, strlen(*s) + 1), *to = out;
	char quote = '\0';

	for (; **s != '\0'; ) {
		if (quote == '\0' && strchr(" \t\r{}", **s) != NULL)
			break;
		if (quote == '\0' && (*s)[0] == '$' && (*s)[1] == '{') {
			/* one that is not defined stays as it is */
			while (**s != '\0' && **s != '}')
				*to++ = *(*s)++;
			if (**s == '}')
				*to++ = *(*s)++;
		} else if (quote == '\0' && (**s == '"' || **s == '\'')) {
			quote = *(*s)++;
		} else if (quote != '\0' && **s == quote) {
			quote = '\0';
			(*s)++;
		} else if (quote != '\0' && **s == '\\' && (*s)[1] != '\0') {
			(*s)++;
			*to = escape_read(s);
			if (*to++ == '\0') {
				fault(p, p->at, "a NUL byte in quotes");
				return NULL;
			}
		} else {
			*to++ = *(*s)++;
		}
	}
	if (quote != '\0') {
		fault(p, p->at, "a quote %c that does not end on its line",
		    quote);
		return NULL;
	}
	return out;
}

static bool
is_open(const struct parser *p, const char *name)
{
	unsigned i;

	for (i = 0; i < p->nopen; i++)
		if (strcmp(p->open[i], name) == 0)
			return true;
	return false;
}

static void
include_do(struct parser *p)
{
	struct conf_source *src = NULL;
	struct mark at = p->begin;
	const char **word = p->word;
	size_t n = 0, i, nword = p->nword;

	p->word = NULL;
	p->nword = 0;
	if (nword != 2) {
		fault(p, at, "%s wants one file", word[0]);
		return;
	}
	if (p->nopen == KA_DEPTH_MAX) {
		fault(p, at, "more than %d files in each other", KA_DEPTH_MAX);
		return;
	}
	if (p->include(p->arg, word[1], at, p->a, &src, &n, p->dg) < 0)
		return;
	p->files += (unsigned)n;
	if (p->files > KA_INCLUDES_MAX) {
		fault(p, at, "more than %d included files", KA_INCLUDES_MAX);
		return;
	}
	if (n == 0)
		diag_add(p->dg, strcmp(word[0], "include") == 0 ||
		    strcmp(word[0], "includer") == 0 ? DIAG_WARNING :
		    DIAG_ERROR, at, "%s: no such file", word[1]);
	for (i = 0; i < n; i++)
		if (is_open(p, src[i].name))
			fault(p, at, "%s: files that include each other",
			    src[i].name);
		else
			source_parse(p, &src[i]);
}

static bool
is_include(const char *word)
{
	return strncmp(word, "include", 7) == 0 &&
	    (word[7] == '\0' || (strchr("rmwba", word[7]) != NULL &&
	    word[8] == '\0'));
}

/* A line without comment and definitions to words and braces; it begins in
 * column `col`. */
static void
words_parse(struct parser *p, const char *s, size_t col)
{
	const char **word, *begin = s;
	char *text;

	while (*(s += strspn(s, " \t\r")) != '\0') {
		p->at.col = (unsigned)(col + (size_t)(s - begin));
		if (*s == '{' || *s == '}') {
			if (*s++ == '{')
				block_open(p);
			else
				block_close(p);
			continue;
		}
		if (p->nword == 0)
			p->begin = p->at;
		text = word_read(p, &s);
		if (text == NULL) {
			p->nword = 0;
			return;
		}
		word = arena_grow(p->a, &p->word, p->nword++, sizeof(*word));
		*word = text;
	}
	if (p->nword > 0 && is_include(p->word[0]))
		include_do(p);
	else
		statement_end(p);
}

/* The length of a line up to its comment. */
static size_t
comment_find(const char *s, size_t len)
{
	char quote = '\0';
	size_t i;

	for (i = 0; i < len; i++) {
		if (quote != '\0' && s[i] == '\\' && i + 1 < len)
			i++;
		else if (quote != '\0')
			quote = s[i] == quote ? '\0' : quote;
		else if (s[i] == '"' || s[i] == '\'')
			quote = s[i];
		else if (s[i] == '#' || s[i] == '!')
			break;
	}
	return i;
}

static size_t
name_span(const char *s)
{
	size_t n = strspn(s, "0123456789abcdefghijklmnopqrstuvwxyz"
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZ_");

	return isdigit((unsigned char)*s) ? 0 : n;
}

static const struct def *
def_find(const struct parser *p, const char *name, size_t len)
{
	const struct def *d;

	for (d = p->def; d != NULL; d = d->next)
		if (strlen(d->name) == len && memcmp(d->name, name, len) == 0)
			return d;
	return NULL;
}

/* The first $NAME or ${NAME} in `s` that is defined: its place and length. */
static const struct def *
use_find(const struct parser *p, const char *s, const char **at, size_t *len)
{
	const struct def *d;
	size_t n;

	for (; (s = strchr(s, '$')) != NULL; s++) {
		if (s[1] == '{') {
			n = name_span(s + 2);
			if (n == 0 || s[2 + n] != '}')
				continue;
			d = def_find(p, s + 2, n);
			*len = n + 3;
		} else {
			n = name_span(s + 1);
			if (n == 0 || strchr(" \t\r\n", s[1 + n]) == NULL)
				continue;
			d = def_find(p, s + 1, n);
			*len = n + 1;
		}
		*at = s;
		if (d != NULL)
			return d;
	}
	return NULL;
}

static char *
expand(struct parser *p, const char *line)
{
	char *s = arena_strdup(p->a, line);
	const struct def *d;
	const char *at;
	size_t len;
	int i;

	for (i = 0; (d = use_find(p, s, &at, &len)) != NULL; i++) {
		if (i == EXPAND_MAX * EXPAND_MAX ||
		    strlen(s) + strlen(d->value) > LINE_MAX_BYTES) {
			fault(p, p->at, "$%s: a definition without an end",
			    d->name);
			return NULL;
		}
		s = arena_printf(p->a, "%.*s%s%s", (int)(at - s), s, d->value,
		    at + len);
	}
	return s;
}

/* "$NAME=value" */
static bool
def_take(struct parser *p, const char *line)
{
	const char *s = line + strspn(line, " \t");
	struct def *d;
	size_t n;

	if (*s != '$' || (n = name_span(s + 1)) == 0 || s[1 + n] != '=')
		return false;
	d = arena_alloc(p->a, sizeof(*d));
	d->name = arena_printf(p->a, "%.*s", (int)n, s + 1);
	s += n + 2;
	n = strlen(s);
	while (n > 0 && isspace((unsigned char)s[n - 1]))
		n--;
	d->value = arena_printf(p->a, "%.*s", (int)n, s);
	d->next = p->def;	/* hides an earlier one of the name */
	p->def = d;
	return true;
}

/* @ID: for one of several nodes. Which this is nobody told us, so it is another
 * one. The rest of the line, or NULL. */
static const char *
condition_take(struct parser *p, const char *line)
{
	const char *s = line + strspn(line, " \t"), *rest;
	bool negated;

	if (*s != '@')
		return line;
	negated = s[1] == '^';
	rest = s + strcspn(s, " \t");
	p->at.col = (unsigned)(s - line) + 1;
	diag_add(p->dg, DIAG_WARNING, p->at, "%.*s: %s: all nodes of xlb have "
	    "the same file", (int)(rest - s), s, negated ? "taken" :
	    "this line is left out");
	return negated ? rest : NULL;
}

static void
line_parse(struct parser *p, const char *line, unsigned deep)
{
	const char *rest = condition_take(p, line);
	char *text, *s, *end;

	if (rest == NULL || def_take(p, rest))
		return;
	if (rest[strspn(rest, " \t")] == '~') {
		fault(p, p->at, "~SEQ and ~LST are not understood: write the "
		    "lines out");
		return;
	}
	text = expand(p, rest);
	if (text == NULL)
		return;
	if (strchr(text, '\n') == NULL) {
		words_parse(p, text, (size_t)(rest - line) + 1);
		return;
	}
	if (deep > EXPAND_MAX) {
		fault(p, p->at, "definitions in each other without an end");
		return;
	}
	for (s = text; s != NULL; s = end) {
		end = strchr(s, '\n');
		if (end != NULL)
			*end++ = '\0';
		line_parse(p, s, deep + 1);
	}
}

/* A line, with those that a backslash at the end adds to a definition. */
static const char *
line_read(struct parser *p, const char **s, const char *end, unsigned *lines)
{
	const char *nl, *out = "";
	size_t len;

	for (*lines = 0; *s < end; ) {
		nl = memchr(*s, '\n', (size_t)(end - *s));
		if (nl == NULL)
			nl = end;
		len = comment_find(*s, (size_t)(nl - *s));
		while (len > 0 && isspace((unsigned char)(*s)[len - 1]))
			len--;
		(*lines)++;
		if (len == 0 || (*s)[len - 1] != '\\') {
			out = arena_printf(p->a, "%s%.*s", out, (int)len, *s);
			*s = nl < end ? nl + 1 : end;
			break;
		}
		out = arena_printf(p->a, "%s%.*s\n", out, (int)len - 1, *s);
		*s = nl < end ? nl + 1 : end;
	}
	return out;
}

static void
source_parse(struct parser *p, const struct conf_source *src)
{
	const char *s = src->text, *end = src->text + src->len;
	struct mark saved = p->at;
	unsigned lines, line = 1;
	int depth = p->depth;

	p->open[p->nopen++] = src->name;
	p->at = (struct mark){ arena_strdup(p->a, src->name), 1, 1 };
	if (memchr(src->text, '\0', src->len) != NULL) {
		fault(p, p->at, "holds a NUL byte");
		end = s;
	}
	for (; s < end; line += lines) {
		p->at.line = line;
		line_parse(p, line_read(p, &s, end, &lines), 0);
	}
	if (p->depth > depth)
		fault(p, p->level[p->depth].block->mark,
		    "%s: its block is not closed", p->level[p->depth].block->
		    word[0]);
	else if (p->depth < depth)
		fault(p, p->at, "closes a block of the file that includes it");
	p->depth = depth;
	p->at = saved;
	p->nopen--;
}

struct ka_stmt *
ka_parse(const struct conf_source *src, ka_include *include, void *arg,
    struct arena *a, struct diag *dg)
{
	static const struct def bang = { NULL, "_BANG", "!" };
	static const struct def hash = { &bang, "_HASH", "#" };
	struct parser p = { .a = a, .dg = dg, .include = include, .arg = arg,
	    .def = &hash };
	size_t errors = dg->errors;

	p.level[0].tail = &p.top;
	source_parse(&p, src);
	return dg->errors > errors ? NULL : p.top;
}
