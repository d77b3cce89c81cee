/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A configuration as YAML, driven by the key table. */
#include "core/conf.h"

#include <string.h>

#include "core/arena.h"
#include "core/conf_schema.h"
#include "core/conf_value.h"

#define HEADS_MAX 4

struct printer {
	FILE *out;
	struct arena *a;	/* of one print */
	bool all;		/* defaults too */
	int depth;
	bool dash;		/* the next key begins a list's item */
	/* sections that get their line when their first key is printed */
	const char *head[HEADS_MAX];
	int nhead;
};

static void section_print(struct printer *p, const struct section *s,
    const void *base);

/* Texts that other YAML readers take for something else, or that are no plain
 * text, are quoted. */
static bool
is_plain(const char *s)
{
	static const char *const word[] = { "true", "false", "yes", "no",
	    "on", "off", "null", "y", "n" };
	static const char set[] = "0123456789abcdefghijklmnopqrstuvwxyz"
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZ_./*%-";
	size_t i;

	for (i = 0; i < sizeof(word) / sizeof(word[0]); i++)
		if (strcasecmp(s, word[i]) == 0)
			return false;
	/* what begins with a digit may be a number to somebody */
	return s[0] != '\0' && strchr("*%-.0123456789", s[0]) == NULL &&
	    s[strspn(s, set)] == '\0';
}

static void
text_put(FILE *out, const char *s)
{
	if (is_plain(s)) {
		fputs(s, out);
		return;
	}
	fputc('"', out);
	for (; *s != '\0'; s++) {
		if (*s == '"' || *s == '\\')
			fputc('\\', out);
		fputc(*s, out);
	}
	fputc('"', out);
}

static void
key_put(struct printer *p, const char *name)
{
	int i;

	for (i = 0; i < p->nhead; i++)
		fprintf(p->out, "%*s%s:\n", (p->depth - p->nhead + i) * 2, "",
		    p->head[i]);
	p->nhead = 0;
	fprintf(p->out, "%*s%s", p->depth * 2 - (p->dash ? 2 : 0), "",
	    p->dash ? "- " : "");
	text_put(p->out, name);
	fputc(':', p->out);
	p->dash = false;
}

/* Numbers and words that the key's type already tells apart stay bare. */
static void
value_put(struct printer *p, const struct key *k, const char *text)
{
	bool bare = k->type != KEY_TEXT && k->type != KEY_NAME &&
	    k->type != KEY_CHECK_REF && k->type != KEY_POOL_REF &&
	    k->type != KEY_IFNAME && k->type != KEY_PATH &&
	    k->type != KEY_WORDS && strchr(text, ':') == NULL;

	if (bare)
		fputs(text, p->out);
	else
		text_put(p->out, text);
}

/* The texts of a list, in the arena; their number. */
static size_t
list_texts(struct arena *a, const struct key *k, const void *base,
    const char ***text)
{
	const void *at = (const char *)base + k->offset;
	const struct community_list *communities = at;
	const struct http_range_list *codes = at;
	const struct addr_list *addrs = at;
	const struct conf_listen *const *listen = at;
	const char *const *const *words = at;
	char buf[ADDR_STR_MAX];
	size_t n = 0, i;

	if (k->type == KEY_COMMUNITIES)
		n = communities->n;
	else if (k->type == KEY_CODES)
		n = codes->n;
	else if (k->type == KEY_ADDRS4 || k->type == KEY_ADDRS6)
		n = addrs->n;
	else if (k->type == KEY_LISTENS)
		n = *(const size_t *)(const void *)((const char *)base +
		    k->also);
	else
		while (*words != NULL && (*words)[n] != NULL)
			n++;
	*text = arena_calloc(a, n, sizeof(**text));
	for (i = 0; i < n; i++) {
		if (k->type == KEY_COMMUNITIES)
			(*text)[i] = arena_strdup(a,
			    community_print(&communities->row[i], buf));
		else if (k->type == KEY_LISTENS)
			(*text)[i] = arena_strdup(a,
			    listen_print(&(*listen)[i], buf));
		else if (k->type == KEY_ADDRS4 || k->type == KEY_ADDRS6)
			(*text)[i] = arena_strdup(a,
			    addr_print(&addrs->row[i], buf));
		else if (k->type == KEY_WORDS)
			(*text)[i] = (*words)[i];
		else if (codes->row[i].low == codes->row[i].high)
			(*text)[i] = arena_printf(a, "%u",
			    codes->row[i].low);
		else
			(*text)[i] = arena_printf(a, "%u-%u",
			    codes->row[i].low, codes->row[i].high);
	}
	return n;
}

static void
texts_print(struct printer *p, const struct key *k, const char **text,
    size_t n)
{
	size_t i;

	key_put(p, k->name);
	fputs(" [", p->out);
	for (i = 0; i < n; i++) {
		if (i > 0)
			fputs(", ", p->out);
		value_put(p, k, text[i]);
	}
	fputs("]\n", p->out);
}

const char *
conf_key_print(const struct key *k, const void *base, struct arena *a)
{
	const char **text, *all = "";
	size_t n, i;

	if (k->type < KEY_COMMUNITIES || k->type > KEY_LISTENS)
		return value_print(k, base, a);
	n = list_texts(a, k, base, &text);
	for (i = 0; i < n; i++)
		all = arena_printf(a, "%s%s%s", all, i > 0 ? ", " : "",
		    text[i]);
	return n > 0 ? all : NULL;
}

/* A value that need not be said. */
static bool
is_default(const struct printer *p, const struct key *k, const char *text)
{
	if (text == NULL || (k->type == KEY_TEXT && *text == '\0'))
		return true;
	return !p->all && k->def != NULL && strcmp(text, k->def) == 0;
}

/* True if the key's line would not be printed; else prints it, unless `dry`. */
static bool
key_skip(struct printer *p, const struct key *k, const void *base, bool dry)
{
	const char **text, *one;
	size_t n;

	if (k->type >= KEY_COMMUNITIES && k->type <= KEY_LISTENS) {
		n = list_texts(p->a, k, base, &text);
		if (n == 0 || (n == 1 && is_default(p, k, text[0])))
			return true;
		if (!dry)
			texts_print(p, k, text, n);
		return false;
	}
	one = value_print(k, base, p->a);
	if (is_default(p, k, one))
		return true;
	if (!dry) {
		key_put(p, k->name);
		fputc(' ', p->out);
		value_put(p, k, one);
		fputc('\n', p->out);
	}
	return false;
}

struct head {
	struct mark mark;	/* all that stands in lists begins with these */
	const char *name;
};

/* An address of a service that is nothing else. */
static bool
is_bare_address(struct printer *p, const struct key *k, const void *base)
{
	size_t i;

	if (k->type != KEY_ADDRESSES || p->all)
		return false;
	for (i = 1; i < k->section->n; i++)
		if (!key_skip(p, &k->section->key[i], base, true))
			return false;
	return true;
}

static void
element_print(struct printer *p, const struct key *k, const void *base)
{
	const struct head *head = base;

	if (k->type == KEY_NAMED) {
		p->depth++;
		key_put(p, head->name);
		fputc('\n', p->out);
		p->depth++;
		section_print(p, k->section, base);
	} else if (is_bare_address(p, k, base)) {
		p->depth += 2;
		fprintf(p->out, "%*s- ", p->depth * 2 - 2, "");
		value_put(p, &k->section->key[0],
		    value_print(&k->section->key[0], base, p->a));
		fputc('\n', p->out);
	} else {
		p->depth += 2;
		p->dash = true;
		section_print(p, k->section, base);
	}
	p->depth -= 2;
}

static void
elements_print(struct printer *p, const struct key *k, const void *base)
{
	const char *at = *(const char *const *)(const void *)
	    ((const char *)base + k->offset);
	size_t n = *(const size_t *)(const void *)((const char *)base +
	    k->also), i;

	if (n == 0)
		return;
	key_put(p, k->name);
	fputc('\n', p->out);
	for (i = 0; i < n; i++)
		element_print(p, k, at + i * k->section->size);
}

static void
subsection_print(struct printer *p, const struct key *k, const void *base)
{
	int saved = p->nhead;

	if (k->also != 0 && !*(const bool *)((const char *)base + k->also))
		return;
	p->head[p->nhead++] = k->name;
	p->depth++;
	section_print(p, k->section, (const char *)base + k->offset);
	p->depth--;
	if (p->nhead > saved)
		p->nhead = saved;	/* nothing was printed */
}

static void
section_print(struct printer *p, const struct section *s, const void *base)
{
	const struct key *k;
	size_t i;

	for (i = 0; i < s->n; i++) {
		k = &s->key[i];
		if (k->type == KEY_SECTION)
			subsection_print(p, k, base);
		else if (k->section != NULL)
			elements_print(p, k, base);
		else
			key_skip(p, k, base, false);
	}
}

static int
print(const struct conf *c, bool all, FILE *out)
{
	struct printer p = { .out = out, .a = arena_new(), .all = all };

	section_print(&p, schema_root(), c);
	arena_free(p.a);
	return fflush(out) != 0 || ferror(out) ? -1 : 0;
}

int
conf_print(const struct conf *c, FILE *out)
{
	return print(c, false, out);
}

int
conf_print_all(const struct conf *c, FILE *out)
{
	return print(c, true, out);
}

const char *
conf_counts_print(const struct conf *c, char buf[CONF_COUNTS_MAX])
{
	size_t i, n = 0;

	for (i = 0; i < c->npool; i++)
		n += c->pool[i].nbackend;
	snprintf(buf, CONF_COUNTS_MAX, "%zu service%s, %zu pool%s, "
	    "%zu backend%s", c->nservice, c->nservice == 1 ? "" : "s",
	    c->npool, c->npool == 1 ? "" : "s", n, n == 1 ? "" : "s");
	return buf;
}
