/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What conf_load's stages share; nobody else includes this. */
#ifndef XLB_CONF_BIND_H
#define XLB_CONF_BIND_H

#include "core/conf.h"
#include "core/yaml.h"

struct section;

/* A check, pool or service where it stands in the files. */
struct object {
	const char *name;	/* NULL: a service that has none */
	const struct node *node;
	size_t seq;		/* in the order of the files */
};

/* Sorted by name; row i is the conf's check, pool or service i. */
struct objects {
	struct object *row;
	size_t n;
};

struct bind {
	struct arena *a;
	struct diag *dg;
	struct conf *c;
	const struct node **root;	/* of each source, the main file first */
	size_t nroot;
	struct objects check, pool, service;
};

/* "path: what" at the value, or at the key where the key is what is wrong. */
void bind_fault(struct bind *b, enum diag_level level, const struct node *n,
    const char *fmt, ...) __attribute__((format(printf, 4, 5)));
void bind_key_fault(struct bind *b, const struct node *n, const char *fmt,
    ...) __attribute__((format(printf, 3, 4)));
/* At `map`, about its key `key`, which need not be there. */
void bind_member_fault(struct bind *b, enum diag_level level,
    const struct node *map, const char *key, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));

/* Element `i` of `object`'s list `key`. */
const struct node *bind_element(const struct node *object, const char *key,
    size_t i);

/* "FILE:4:9", in the arena */
const char *bind_place(struct bind *b, struct mark at);

/* True if `n` is of the kind, else reported; an empty value is an empty list or
 * mapping, false and fine. */
bool bind_expect(struct bind *b, const struct node *n, enum node_kind kind);
/* `n` has a key that section `s` does not have. */
void bind_unknown(struct bind *b, const struct section *s,
    const struct node *n);

/* The keys of `map` into the struct at `base`; NULL: defaults alone. */
void bind_section(struct bind *b, const struct section *s,
    const struct node *map, void *base);

/* Everything that one root has by itself; checks, pools and services are
 * collected first and bound last. */
void bind_root(struct bind *b, const struct node *root, bool fragment);
void bind_objects(struct bind *b);

/* Before anything is bound: what is over a limit is not looked into. 0, or -1
 * and reported. */
int conf_check_limits(struct bind *b);
/* Rules that more than one value takes part in. They run after mistakes too,
 * and skip the values that have them: an address of 16 zero bytes, a protocol
 * 0, a name or pool NULL. */
void conf_check_rules(struct bind *b);
void conf_check_services(struct bind *b);	/* called by the above */
void conf_check_nat(struct bind *b);
/* What will surprise the operator. */
void conf_check_warnings(struct bind *b);

/* Why `a` can be no host's address; NULL: it can. */
const char *addr_fault(const struct addr *a);
/* The same with the tunnel's source prefix, whose addresses are nobody's. */
const char *bind_addr_fault(struct bind *b, const struct addr *a);

#endif
