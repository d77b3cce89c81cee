/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From bytes to addresses and the transport header. */
#include <string.h>

#include "ref_packet.h"
#include "xlb_abi.h"

enum { TAG = 0x8100, TAG_SERVICE = 0x88a8, IPV4 = 0x0800, IPV6 = 0x86dd };
enum { HOP_BY_HOP = 0, ROUTING = 43, FRAGMENT = 44, AUTHENTICATION = 51,
    OPTIONS = 60 };

static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

/* Two tags at most. */
static bool
link_find(struct ref_packet *p)
{
	unsigned type;
	size_t at;

	for (at = 12; at <= 12 + 2 * 4; at += 4) {
		if (at + 2 > p->len)
			return false;
		type = ref_16(p->frame + at);
		p->link = at + 2;
		p->ip = p->frame + p->link;
		p->room = p->len - p->link;
		p->v6 = type == IPV6;
		if (type == IPV4 || type == IPV6)
			return true;
		if (type != TAG && type != TAG_SERVICE)
			return false;
	}
	return false;
}

static bool
addresses_find(struct ref_packet *p)
{
	if (p->room < (p->v6 ? 40U : 20U))
		return false;
	if (p->v6) {
		memcpy(p->src, p->ip + 8, 16);
		memcpy(p->dst, p->ip + 24, 16);
		return memcmp(p->dst, mapped, 12) != 0;
	}
	memcpy(p->src, mapped, 12);
	memcpy(p->dst, mapped, 12);
	memcpy(p->src + 12, p->ip + 12, 4);
	memcpy(p->dst + 12, p->ip + 16, 4);
	return true;
}

static bool
vip_find(const struct ref_config *c, const uint8_t addr[16], unsigned *vip)
{
	for (*vip = 0; *vip < c->nvip; ++*vip)
		if (memcmp(c->vip[*vip].addr, addr, 16) == 0)
			return true;
	return false;
}

/* RFC 8200: hop-by-hop options come first or not at all; a second fragment
 * header and more than 8 headers are none of an honest sender. */
enum ref_walk
ref_extensions(const uint8_t *p, size_t *at, size_t end, size_t seen,
    uint8_t *proto, uint8_t id[4])
{
	bool fragment = false, more = false;
	size_t len;
	int n;

	for (n = 0;; n++) {
		if (*proto != HOP_BY_HOP && *proto != ROUTING &&
		    *proto != FRAGMENT && *proto != AUTHENTICATION &&
		    *proto != OPTIONS)
			return more ? REF_FIRST : REF_WHOLE;
		if (n == 8 || *at + 8 > end || *at + 8 > seen ||
		    (*proto == HOP_BY_HOP && n > 0))
			return REF_BAD;
		len = *proto == FRAGMENT ? 8 :
		    *proto == AUTHENTICATION ? (p[*at + 1] + 2U) * 4 :
		    (p[*at + 1] + 1U) * 8;
		if (*at + len > end || (*proto == FRAGMENT && fragment))
			return REF_BAD;
		if (*proto == FRAGMENT) {
			fragment = true;
			memcpy(id, p + *at + 4, 4);
			more = p[*at + 3] & 1;
			if (ref_16(p + *at + 2) >> 3 != 0) {
				*proto = p[*at];
				*at += len;
				return REF_LATER;
			}
		}
		*proto = p[*at];
		*at += len;
	}
}

static bool
header4(struct ref_packet *p)
{
	unsigned fragment = ref_16(p->ip + 6);

	p->total = ref_16(p->ip + 2);
	p->l4 = (p->ip[0] & 15) * 4U;
	if (p->ip[0] >> 4 != 4 || p->l4 < 20 || p->total < p->l4 ||
	    p->total > p->room || p->l4 > p->seen)
		return false;
	p->proto = p->ip[9];
	memcpy(p->id, p->ip + 4, 2);
	p->later = (fragment & 0x1fff) != 0;
	p->first = !p->later && (fragment & 0x2000);
	return true;
}

static bool
header6(struct ref_packet *p)
{
	enum ref_walk walk;

	p->total = 40 + ref_16(p->ip + 4);
	if (p->ip[0] >> 4 != 6 || p->total > p->room)
		return false;
	p->l4 = 40;
	p->proto = p->ip[6];
	walk = ref_extensions(p->ip, &p->l4, p->total, p->seen, &p->proto,
	    p->id);
	p->first = walk == REF_FIRST;
	p->later = walk == REF_LATER;
	return walk != REF_BAD;
}

unsigned
ref_take_apart(const struct ref_config *c, const uint8_t *frame, size_t len,
    struct ref_packet *p)
{
	memset(p, 0, sizeof(*p));
	p->frame = frame;
	p->len = len;
	if (!link_find(p))
		return XLB_REASON_NOT_VIP;
	p->seen = p->room;
	if (c->first_buffer != 0 && c->first_buffer < len)
		p->seen = c->first_buffer - p->link;
	if (!addresses_find(p))
		return XLB_REASON_NOT_VIP;
	p->own = !vip_find(c, p->dst, &p->vip);
	if (p->own && !ref_is_source(c, p->dst))
		return XLB_REASON_NOT_VIP;
	if (!(p->v6 ? header6(p) : header4(p)))
		return p->own ? XLB_REASON_NOT_VIP : XLB_REASON_MALFORMED;
	return REF_NEXT;
}
