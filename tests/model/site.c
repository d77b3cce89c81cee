/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The wanted configuration as YAML. */
#include "site.h"

#include <arpa/inet.h>

struct addr
site_address(unsigned backend)
{
	return addr_from4(htonl(0x0a010001 + backend));
}

int
site_backend(const uint8_t ip4[4])
{
	uint32_t n = (uint32_t)ip4[0] << 24 | (uint32_t)ip4[1] << 16 |
	    (uint32_t)ip4[2] << 8 | ip4[3];

	return n < 0x0a010001 || n >= 0x0a010001 + SITE_BACKENDS ? -1 :
	    (int)(n - 0x0a010001);
}

static void
pool_print(const struct site *s, const struct site_pool *p, FILE *out)
{
	static const char *const state[] = { "active", "drain", "down" };
	char addr[ADDR_STR_MAX];
	struct addr a;
	unsigned i;

	fprintf(out, "  %s:\n    check: up\n    backends:\n", p->name);
	for (i = 0; i < s->nbackend; i++) {
		if (!p->member[i].in)
			continue;
		a = site_address(i);
		fprintf(out, "      - {name: b%u, address: %s, weight: %u, "
		    "state: %s}\n", i, addr_print(&a, addr),
		    p->member[i].weight, state[p->member[i].said != 0 ?
		    BACKEND_ACTIVE : p->member[i].state]);
	}
}

void
site_print(const struct site *s, FILE *out)
{
	unsigned i;

	fprintf(out, "interfaces: [{name: eth0}]\n"
	    "maglev: {table_size: %u}\n"
	    "checks:\n  up: {type: tcp, port: 80, via: direct}\npools:\n",
	    s->ring_size);
	for (i = 0; i < s->npool; i++)
		pool_print(s, &s->pool[i], out);
	fprintf(out, "services:\n");
	for (i = 0; i < s->nservice; i++)
		fprintf(out, "  - {name: s%u, addresses: [203.0.113.10, "
		    "\"2001:db8:5::10\"], listen: [tcp/%u], pool: %s, hash: %s}\n", i,
		    SITE_PORT + i, s->pool[s->service[i].pool].name,
		    s->service[i].source ? "source" : "flow");
}
