/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The packet program's hash of a flow, by its own code. */
#include <netinet/in.h>
#include <string.h>

#include "hash.h"
#include "io/maps_int.h"

void
maps_hash(const struct xlb_settings *s, const struct lookup_flow *f,
    uint32_t service_flags, struct lookup_hash *out)
{
	__be32 src[4], dst[4];
	uint16_t port[2] = { htons(f->sport), htons(f->dport) };
	__be32 ports;
	bool v4 = addr_is4(&f->dst);

	memcpy(src, f->src.b, sizeof(src));
	memcpy(dst, f->dst.b, sizeof(dst));
	memcpy(&ports, port, sizeof(ports));
	out->flow = v4 ? hash_flow4(&s->hash, src[3], dst[3], ports,
	    f->proto) : hash_flow6(&s->hash, src, dst, ports, f->proto);
	out->select = hash_select(out->flow);
	if (service_flags & XLB_SERVICE_HASH_SOURCE)
		out->select = hash_select(v4 ? hash_source4(&s->hash, src[3]) :
		    hash_source6(&s->hash, src));
	out->slot = hash_slot(out->select, s->ring_size);
}

