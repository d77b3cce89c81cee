/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Every key of the configuration, one row each. The rows drive the parser, the
 * printer, the test of the manual and the completion: a new key is a field in
 * conf.h, a row here and a paragraph in xlb.yaml(5).
 */
#ifndef XLB_CONF_SCHEMA_H
#define XLB_CONF_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum key_type {
	/* a text that becomes the field at `offset` */
	KEY_BOOL,		/* bool */
	KEY_U16, KEY_U32, KEY_U64,	/* min..max */
	KEY_MSEC,		/* uint32_t, min..max ms */
	KEY_ENUM,		/* an enum (int), a row of `value` */
	KEY_TEXT,		/* const char *, min..max bytes, printable */
	KEY_NAME,		/* const char *, a name */
	KEY_IFNAME,		/* const char *, an interface */
	KEY_PATH,		/* const char *, absolute, up to max bytes */
	KEY_ADDR,		/* struct addr, either family */
	KEY_ADDR4,		/* struct addr, IPv4 */
	KEY_PREFIX,		/* struct prefix; `also`: bool, it is set */
	KEY_PREFIX4, KEY_PREFIX6,
	KEY_COUNT,		/* uint32_t; `also`: bool, it is a percentage */
	KEY_METRICS,		/* metrics.listen: three fields of struct conf */
	/* a name that becomes a pointer */
	KEY_CHECK_REF, KEY_POOL_REF,
	/* a list of texts */
	KEY_COMMUNITIES,	/* struct community_list */
	KEY_CODES,		/* struct http_range_list */
	KEY_WORDS,		/* const char **, NULL-terminated */
	KEY_ADDRS4, KEY_ADDRS6,	/* struct addr_list, of one family */
	KEY_LISTENS,		/* struct conf_listen *; `also`: their number */
	/* more keys */
	KEY_SECTION,		/* a mapping; the struct at `offset` */
	KEY_LIST,		/* a list of mappings; `also`: their number */
	KEY_ADDRESSES,		/* as KEY_LIST; a text is its first key */
	KEY_NAMED,		/* a mapping of names to mappings; `also` */
};

enum key_flag {
	KEY_REQUIRED = 1,
	KEY_PRIME = 2,		/* the number has to be a prime */
	KEY_POW2 = 4,		/* and is rounded up to a power of two */
	KEY_FRAGMENT = 8,	/* a fragment in xlb.d may have it */
	KEY_ZERO_UNSET = 16,	/* the field's 0 means that nobody set it */
	KEY_NO_QUOTE = 32	/* goes between quotes that BIRD cannot escape */
};

/* A value of KEY_ENUM. */
struct key_value {
	const char *name;	/* NULL ends the table */
	int value;
};

struct arena;
struct section;

struct key {
	const char *name;
	enum key_type type;
	unsigned flags;		/* enum key_flag */
	size_t offset;		/* in the section's struct */
	size_t also;		/* offset of the second field; 0: none */
	uint64_t min, max;
	const char *def;	/* as text; NULL: stays zero */
	const char *unset;	/* what that means, for the manual */
	const struct key_value *value;
	const struct section *section;
	unsigned only;		/* bits of enum check_type that have this key;
				 * 0: all */
	const char *help;
};

struct section {
	const char *path;	/* "pools.NAME", "" at the top */
	size_t size;		/* of a list's element */
	const struct key *key;
	size_t n;
};

/* A limit; the number is a CONF_*_MAX of conf.h. */
struct conf_limit {
	const char *what;	/* "pools" */
	uint64_t max;
	const char *why;
};

enum conf_limit_kind {
	LIMIT_SERVICES, LIMIT_LISTENERS, LIMIT_POOLS, LIMIT_BACKENDS,
	LIMIT_CHECKS, LIMIT_TARGETS, LIMIT_INTERFACES, LIMIT_NEIGHBORS,
	LIMIT_SOURCES, LIMIT_NAME, LIMIT_COUNT
};

/* `kind` < LIMIT_COUNT. */
const struct conf_limit *conf_limit_get(enum conf_limit_kind kind);

const struct section *schema_root(void);
const struct key *schema_find(const struct section *s, const char *name);
/* The defaults of `s` into the zeroed struct at `base`; texts are the table's or
 * in `a`. In conf_bind.c. */
void conf_defaults(const struct section *s, struct arena *a, void *base);

/* Calls `fn` for every key, sections before their keys. */
void schema_walk(const struct section *s,
    void (*fn)(const struct section *s, const struct key *k, void *arg),
    void *arg);

/* The words of the manual: "integer 0..1000; default 100". What is not
 * available in this version has a star. */
void key_describe(const struct key *k, FILE *out);
#define KEY_ONLY_MAX 64
/* "http or https": the types of check that `only` stands for. */
const char *key_only_print(unsigned only, char buf[KEY_ONLY_MAX]);

#endif
